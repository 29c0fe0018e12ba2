// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recordings that are looked at, and what the page has asked to see of them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lateralis_lanes::{Chosen, LaneKind, Lanes, PointRef, RowKind, Wanted};
use lateralis_model::{Names, Trace};
use lateralis_store::Recording;
use lateralis_store::facts::Facts;
use lateralis_traces::OpenOptions;

use crate::answer::Problem;
use crate::methods::{Compared, Remembered};
use crate::scripts::Scripts;
use crate::sides::Sides;
use crate::{index_file, indexing};

/// Filters that are kept at hand; of older ones it is only known what they were.
const FILTERS_KEPT: usize = 6;
/// Filters that are known at all.
const FILTERS_MAX: usize = 100_000;

/// A row of a lane as the page counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// The events of the lane.
    Events,
    /// A row of intervals, by its number in the index.
    Intervals(usize),
    /// A counter, by its number.
    Level(u32),
    /// Activities of a script: its number, and its row there.
    Found(u32, usize),
}

/// A filter: what is wanted, and the scripts that choose from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lanes, classes, applications.
    pub wanted: Wanted,
    /// Scripts whose filters keep it.
    pub scripts: Vec<u32>,
}

#[derive(Default)]
struct Filters {
    known: Vec<Filter>,
    /// The last used at the end.
    kept: Vec<(usize, Arc<Chosen>)>,
}

/// A recording opened for its events.
pub struct Source {
    /// The recording, with all names.
    pub recording: Recording,
    /// Its classes with their roles.
    pub trace: Trace,
    /// Names of threads as the index has them as well.
    pub names: Names,
    /// What its events mean; for where they happened.
    pub facts: Mutex<Facts>,
    /// Numbers of classes by name.
    pub classes: HashMap<String, u16>,
}

/// What is looked at.
pub struct Session {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    /// What stands on which lane.
    pub lanes: Arc<Lanes>,
    /// Rows by lane, without those of scripts.
    rows: Vec<Vec<Drawn>>,
    source: OnceLock<Result<Arc<Source>, Problem>>,
    filters: Mutex<Filters>,
    /// Scripts of the page.
    pub scripts: Scripts,
    /// The list of spans that was asked for last.
    pub remembered: Mutex<Remembered>,
    /// Its recordings each by itself.
    pub sides: Sides,
    /// What was compared last.
    pub compared: Mutex<Compared>,
}

/// Locks; what a thread that panicked left behind is still whole, for nothing is taken apart in
/// between.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opened(paths: &[PathBuf], options: &OpenOptions) -> Result<Recording, lateralis_traces::Error> {
    let mut recording = Recording::open_all(paths, options)?;
    recording.learn_names();
    Ok(recording)
}

/// Why a session cannot begin.
#[derive(Debug)]
pub enum OpenError {
    /// The traces cannot be read.
    Trace(lateralis_traces::Error),
    /// The index cannot be made.
    Index(io::Error),
}

impl From<lateralis_traces::Error> for OpenError {
    fn from(error: lateralis_traces::Error) -> Self {
        Self::Trace(error)
    }
}

impl Session {
    /// Opens traces: by the index that is kept, if it is of them, else by reading them once.
    ///
    /// # Errors
    /// If they cannot be read, or the index not be written.
    pub fn open(
        paths: &[PathBuf],
        options: &OpenOptions,
        progress: indexing::Progress<'_>,
    ) -> Result<Self, OpenError> {
        let OpenOptions { frequency_hz, definitions, format, abi, relate, .. } = options;
        let readers = env!("LATERALIS_READERS");
        let how =
            format!("{readers} {frequency_hz:?} {definitions:?} {format:?} {abi:?} {relate:?}");
        let identity = index_file::identity(paths, &how).map_err(|cause| {
            let path = paths.first().cloned().unwrap_or_default();
            OpenError::Trace(lateralis_traces::Error::Io { path, source: cause })
        })?;
        let place = index_file::place(paths, index_file::NAME);
        let kept = place.as_deref().and_then(|place| index_file::open(place, &identity));
        let (lanes, recording) = match kept {
            Some(lanes) => (lanes, None),
            None => {
                let recording = opened(paths, options)?;
                let mut write = |out: &mut dyn io::Write| {
                    let spool = index_file::spool(place.as_deref());
                    indexing::index(&recording, &identity, spool, progress, out)
                };
                let lanes = index_file::make(place.as_deref(), &identity, &mut write);
                (lanes.map_err(OpenError::Index)?, Some(recording))
            }
        };
        let session = Self {
            paths: paths.to_vec(),
            options: options.clone(),
            rows: rows(&lanes),
            lanes: Arc::new(lanes),
            source: OnceLock::new(),
            filters: Mutex::default(),
            scripts: Scripts::default(),
            remembered: Mutex::default(),
            sides: Sides::new(paths, options),
            compared: Mutex::default(),
        };
        if let Some(recording) = recording {
            let _ = session.source.set(Ok(Arc::new(session.source_of(recording))));
        }
        Ok(session)
    }

    /// Where notes are kept.
    #[must_use]
    pub fn notes(&self) -> Option<PathBuf> {
        index_file::place(&self.paths, index_file::NOTES)
    }

    /// The paths as they were given.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Counts of a clock in a second, where somebody had to say.
    #[must_use]
    pub fn frequency_hz(&self) -> Option<u64> {
        self.options.frequency_hz
    }

    /// The traces opened once more, for whoever takes them apart.
    ///
    /// # Errors
    /// They cannot be read any more.
    pub fn recording_again(&self) -> Result<Recording, Problem> {
        Recording::open_all(&self.paths, &self.options).map_err(|error| {
            Problem::new("cannot read the trace", error.to_string(), "open it again")
        })
    }

    fn source_of(&self, recording: Recording) -> Source {
        let trace = recording.annotated().into_owned();
        let facts = Facts::new(&trace, &recording.streams);
        let mut names = recording.names.clone();
        for thread in &self.lanes.meta().threads {
            if let Some(tid) = thread.tid.filter(|_| !thread.name.is_empty()) {
                names.threads.entry(tid).or_insert_with(|| thread.name.clone());
            }
        }
        for application in &self.lanes.meta().applications {
            if let Some(pid) = application.pid {
                names.processes.entry(pid).or_insert_with(|| application.name.clone());
            }
        }
        let classes = self.lanes.meta().classes.iter().zip(0u16..);
        let classes = classes.map(|(class, id)| (class.name.clone(), id)).collect();
        Source { recording, trace, names, facts: Mutex::new(facts), classes }
    }

    /// The traces themselves; opened when somebody asks for what is not in the index.
    ///
    /// # Errors
    /// They cannot be read any more.
    pub fn source(&self) -> Result<Arc<Source>, Problem> {
        let open = || match opened(&self.paths, &self.options) {
            Ok(recording) => Ok(Arc::new(self.source_of(recording))),
            Err(error) => {
                Err(Problem::new("cannot read the trace", error.to_string(), "open it again"))
            }
        };
        self.source.get_or_init(open).clone()
    }

    /// The number of a filter.
    ///
    /// # Errors
    /// There are too many.
    pub fn filter(&self, filter: Filter) -> Result<usize, Problem> {
        if filter == Filter::default() {
            return Ok(0);
        }
        let mut filters = lock(&self.filters);
        if let Some(known) = filters.known.iter().position(|known| *known == filter) {
            return Ok(known + 1);
        }
        if filters.known.len() >= FILTERS_MAX {
            return Err(Problem::new("too many filters", "filter", "load the page again"));
        }
        filters.known.push(filter);
        Ok(filters.known.len())
    }

    /// What a filter is by its number.
    ///
    /// # Errors
    /// There is no such filter.
    pub fn filter_of(&self, number: u64) -> Result<Filter, Problem> {
        let Some(index) = number.checked_sub(1) else { return Ok(Filter::default()) };
        let known = usize::try_from(index).ok();
        let none = || Problem::new("no such filter", "filter", "ask for one with `filter` first");
        known.and_then(|index| lock(&self.filters).known.get(index).cloned()).ok_or_else(none)
    }

    /// What a filter leaves; `None` of the one that leaves all.
    ///
    /// Cost: of one that is not at hand a look at each event.
    ///
    /// # Errors
    /// There is no such filter; or what its scripts have to say.
    pub fn chosen(&self, number: u64) -> Result<Option<Arc<Chosen>>, Problem> {
        let Some(index) = number.checked_sub(1) else { return Ok(None) };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let filter = {
            let mut filters = lock(&self.filters);
            if let Some(place) = filters.kept.iter().position(|(kept, _)| *kept == index) {
                let kept = filters.kept.remove(place);
                filters.kept.push(kept.clone());
                return Ok(Some(kept.1));
            }
            filters.known.get(index).cloned()
        };
        let none = || Problem::new("no such filter", "filter", "ask for one with `filter` first");
        let Filter { wanted, scripts } = filter.ok_or_else(none)?;
        let scripts = scripts.iter().map(|script| self.scripts.get(*script));
        let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
        let also = |point: PointRef| {
            scripts.iter().all(|ran| ran.kept.as_ref().is_none_or(|kept| kept.has(point)))
        };
        let chosen = Chosen::new(&self.lanes, &wanted, (!scripts.is_empty()).then_some(&also));
        let chosen = Arc::new(chosen);
        let mut filters = lock(&self.filters);
        if filters.kept.len() >= FILTERS_KEPT {
            filters.kept.remove(0);
        }
        filters.kept.push((index, Arc::clone(&chosen)));
        Ok(Some(chosen))
    }

    /// The rows of a lane; those of scripts come last, in the order of the scripts.
    #[must_use]
    pub fn rows_of(&self, lane: u32) -> Vec<Drawn> {
        let mut rows = self.rows.get(lane as usize).cloned().unwrap_or_default();
        for (script, ran) in (0..).zip(self.scripts.all()) {
            let found = ran.found.as_ref().map_or(&[][..], |found| &found.meta().rows);
            let of_lane = found.iter().enumerate().filter(|(_, row)| row.lane == lane);
            rows.extend(of_lane.map(|(row, _)| Drawn::Found(script, row)));
        }
        rows
    }

    /// The row of a lane.
    ///
    /// # Errors
    /// There is none.
    pub fn drawn(&self, lane: u32, row: u32) -> Result<Drawn, Problem> {
        let of = self.rows_of(lane).get(row as usize).copied();
        of.ok_or_else(|| Problem::new("no such row", format!("lane {lane}, row {row}"), ""))
    }
}

/// Rows of each lane: who ran, events, states, spans, levels.
fn rows(lanes: &Lanes) -> Vec<Vec<Drawn>> {
    let meta = lanes.meta();
    let mut rows: Vec<Vec<Drawn>> = vec![Vec::new(); meta.lanes.len()];
    let add = |rows: &mut Vec<Vec<Drawn>>, kind: RowKind| {
        for (index, row) in meta.rows.iter().enumerate().filter(|(_, row)| row.kind == kind) {
            if let Some(rows) = rows.get_mut(row.lane as usize) {
                rows.push(Drawn::Intervals(index));
            }
        }
    };
    add(&mut rows, RowKind::Running);
    for (lane, told) in (0..).zip(&meta.lanes) {
        if lanes.points(lane).is_some() || told.kind == LaneKind::Cpu {
            rows[lane as usize].push(Drawn::Events);
        }
    }
    add(&mut rows, RowKind::States);
    add(&mut rows, RowKind::Spans);
    for (counter, told) in (0..).zip(&meta.counters) {
        if let Some(rows) = rows.get_mut(told.lane as usize) {
            rows.push(Drawn::Level(counter));
        }
    }
    rows
}
