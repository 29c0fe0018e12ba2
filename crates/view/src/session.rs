// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recordings that are looked at, and what the page has asked to see of them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lateralis_lanes::{Chosen, Lanes, PointRef, Wanted};
use lateralis_model::Source as _;
use lateralis_model::{Names, Trace};
use lateralis_store::Recording;
use lateralis_store::facts::Facts;
use lateralis_store::stacks::Samples;
use lateralis_traces::OpenOptions;

use crate::answer::Problem;
use crate::control::Control;
use crate::flow::{FlowRows, ImageSource, open_flow};
use crate::growth::Growth;
use crate::host::Host;
use crate::methods::{Compared, Remembered};
use crate::rows::{Drawn, is_deeper, number_of_found, numbered, rows, rows_of_growing};
use crate::scripts::Scripts;
use crate::search::{Hits, Search};
use crate::sections::{KeptTables, Sections};
use crate::sides::Sides;
use crate::{index_file, indexing};

/// Filters that are kept at hand; of older ones it is only known what they were.
const FILTERS_KEPT: usize = 6;
/// Searches whose hits are kept: of others they are searched for again.
const SEARCHES_KEPT: usize = 4;
/// Filters that are known at all.
const FILTERS_MAX: usize = 100_000;

/// A filter: what is wanted, and the scripts that choose from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lanes, classes, applications.
    pub wanted: Wanted,
    /// Scripts whose filters keep it.
    pub scripts: Vec<u32>,
    /// A search that finds it.
    pub search: Option<Search>,
}

#[derive(Default)]
struct Filters {
    known: Vec<Filter>,
    /// The last used at the end; of which state of the session each is.
    kept: Vec<(usize, u64, Arc<Chosen>)>,
}

/// What all states of a session that grows have in common.
#[derive(Default)]
pub struct Common {
    filters: Mutex<Filters>,
    /// The newest hits at the end; of which state of the session each is.
    hits: Mutex<Vec<(Search, u64, Arc<Hits>)>>,
    /// Scripts of the page.
    pub scripts: Scripts,
    /// Asks the recorder, where that is possible.
    pub control: Option<Box<dyn Control>>,
    /// Computes the sections of `lat stats`, if the program can.
    pub sections: Option<Arc<dyn Sections>>,
}

impl Common {
    /// With the code that computes sections.
    #[must_use]
    pub fn with_sections(self, sections: Option<Arc<dyn Sections>>) -> Self {
        Self { sections, ..self }
    }

    /// Of states that a host shows: it is told when scripts find something, those that are behind after
    /// so many events at least.
    #[must_use]
    pub fn told_to(host: &Arc<Host>, turn_events: Option<u64>) -> Self {
        let host = Arc::downgrade(host);
        let tell = move || {
            if let Some(host) = host.upgrade() {
                host.show_again();
            }
        };
        Self { scripts: Scripts::waking(Arc::new(tell), turn_events), ..Self::default() }
    }
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

/// What is looked at: all of it, or as far as it had grown.
pub struct Session {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    /// What stands on which lane.
    pub lanes: Arc<Lanes>,
    /// Rows by lane in the order in which they are drawn, each with its number, without those of
    /// scripts.
    rows: Vec<Vec<(u32, Drawn)>>,
    source: OnceLock<Result<Arc<Source>, Problem>>,
    /// Filters and scripts.
    pub common: Arc<Common>,
    /// The list of spans that was asked for last.
    pub remembered: Mutex<Remembered>,
    /// Its recordings each by itself.
    pub sides: Sides,
    /// What was compared last.
    pub compared: Mutex<Compared>,
    /// Tables of the newest request for a section.
    pub tables: KeptTables,
    /// How it grows, if it does.
    pub growth: Option<Growth>,
    /// Whether another will take its place that has more.
    goes_on: bool,
    images: Option<ImageSource>,
    /// Calls of threads whose instructions were recorded.
    flow: OnceLock<Option<FlowRows>>,
    /// Stacks of samples, for what is asked of one.
    pub stacks: OnceLock<Option<Mutex<Samples<'static>>>>,
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

/// Traces of which it is known that they can be read.
pub struct Opening {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    identity: String,
    place: Option<PathBuf>,
    /// None: there is an index.
    recording: Option<Recording>,
    kept: Option<Lanes>,
    images: Option<ImageSource>,
    sections: Option<Arc<dyn Sections>>,
}

impl Opening {
    /// Opens traces, and their index, where one is kept that is of them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn new(paths: &[PathBuf], options: &OpenOptions) -> Result<Self, lateralis_traces::Error> {
        Self::with_images(paths, options, None)
    }

    /// The same with stacks and calls: `images` gives what stands in the files of programs, and says which
    /// files these are, for stacks with other names are another index.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn with_images(
        paths: &[PathBuf],
        options: &OpenOptions,
        images: Option<ImageSource>,
    ) -> Result<Self, lateralis_traces::Error> {
        let OpenOptions { frequency_hz, definitions, format, abi, relate, .. } = options;
        let readers = env!("LATERALIS_READERS");
        let of_images = images.as_ref().map(|images| &images.options);
        let how = format!(
            "{readers} {frequency_hz:?} {definitions:?} {format:?} {abi:?} {relate:?} {of_images:?}"
        );
        let identity = index_file::identity(paths, &how).map_err(|cause| {
            let path = paths.first().cloned().unwrap_or_default();
            lateralis_traces::Error::Io { path, source: cause }
        })?;
        let place = index_file::place(paths, index_file::NAME);
        let kept = place.as_deref().and_then(|place| index_file::open(place, &identity));
        let recording = match &kept {
            Some(_) => None,
            None => Some(Recording::open_all(paths, options)?),
        };
        let (paths, options) = (paths.to_vec(), options.clone());
        Ok(Self { paths, options, identity, place, recording, kept, images, sections: None })
    }

    /// With the code that computes sections.
    #[must_use]
    pub fn with_sections(self, sections: Option<Arc<dyn Sections>>) -> Self {
        Self { sections, ..self }
    }

    /// Looked at once: no index of it is used, or kept.
    #[must_use]
    pub fn in_memory(self) -> Self {
        Self { place: None, ..self }
    }

    /// Makes the index, where there is none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn index(self, progress: indexing::Progress<'_>) -> io::Result<Session> {
        let Self { paths, options, identity, place, recording, kept, images, sections } = self;
        let mut recording = recording;
        let mut flow = None;
        let lanes = match (kept, &mut recording) {
            (Some(lanes), _) => lanes,
            (None, Some(recording)) => {
                recording.learn_names();
                flow = images.as_ref().and_then(|images| open_flow(&paths, recording, images));
                let sources = (images.as_ref(), flow.as_ref());
                let mut write = |out: &mut dyn io::Write| {
                    let spool = index_file::spool(place.as_deref());
                    indexing::index((recording, &identity), sources, spool, progress, out)
                };
                index_file::make(place.as_deref(), &identity, &mut write)?
            }
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        let rows = numbered(rows(&lanes));
        let all = (Arc::new(lanes), rows);
        let common = Arc::new(Common::default().with_sections(sections));
        let session = Session::with((paths, options), all, common, None, images);
        if let Some(flow) = flow {
            let _ = session.flow.set(FlowRows::new(flow, session.lanes.meta()));
        }
        if let Some(recording) = recording {
            let _ = session.source.set(Ok(Arc::new(session.source_of(recording))));
        }
        Ok(session)
    }
}

impl Session {
    fn with(
        (paths, options): (Vec<PathBuf>, OpenOptions),
        (lanes, rows): (Arc<Lanes>, Vec<Vec<(u32, Drawn)>>),
        common: Arc<Common>,
        growth: Option<Growth>,
        images: Option<ImageSource>,
    ) -> Self {
        Self {
            sides: Sides::new(&paths, &options, images.clone(), common.sections.clone()),
            compared: Mutex::default(),
            tables: KeptTables::default(),
            paths,
            options,
            rows,
            lanes,
            source: OnceLock::new(),
            common,
            remembered: Mutex::default(),
            growth,
            goes_on: false,
            images,
            flow: OnceLock::new(),
            stacks: OnceLock::new(),
        }
    }

    /// Of an index alone: what is not in it is not found.
    #[must_use]
    pub fn of_index(lanes: Lanes) -> Self {
        let rows = numbered(rows(&lanes));
        let paths = vec![PathBuf::new()];
        let all = (Arc::new(lanes), rows);
        Self::with((paths, OpenOptions::default()), all, Arc::default(), None, None)
    }

    /// A state of one that grows.
    #[must_use]
    pub fn grown(
        path: PathBuf,
        lanes: Lanes,
        common: Arc<Common>,
        growth: Growth,
        images: Option<ImageSource>,
    ) -> Self {
        let rows = rows_of_growing(&lanes);
        let options = OpenOptions::default();
        let all = (Arc::new(lanes), rows);
        Self::with((vec![path], options), all, common, Some(growth), images)
    }

    /// The same where more may come: another session that has that as well.
    #[must_use]
    pub fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// Whether more may come.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.goes_on || self.growth.as_ref().is_some_and(|growth| growth.is_live)
    }

    /// Asks the recorder, where that is possible and of use.
    #[must_use]
    pub fn control(&self) -> Option<&dyn Control> {
        self.common.control.as_deref().filter(|_| self.is_live())
    }

    /// Whether scripts have found all that there is in it, or were stopped.
    #[must_use]
    pub fn scripts_are_done(&self) -> bool {
        self.common.scripts.are_done(self)
    }

    /// Which state of the session it is.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.growth.as_ref().map_or(0, |growth| growth.serial)
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
        let meta = self.lanes.meta();
        let since = |time: u64| meta.origin.saturating_add_unsigned(time);
        self.source_between(since(meta.begin), since(meta.end))
    }

    /// The same where only a stretch is read, both ends included; of one that grows as little
    /// else as possible is opened.
    ///
    /// # Errors
    /// They cannot be read any more.
    pub fn source_between(&self, begin: i64, end: i64) -> Result<Arc<Source>, Problem> {
        if let Some(growth) = &self.growth {
            let open = |recording| self.source_of(recording);
            return growth.again.source(&self.paths, (begin, end), &open);
        }
        let open = || match opened(&self.paths, &self.options) {
            Ok(recording) => Ok(Arc::new(self.source_of(recording))),
            Err(error) => {
                Err(Problem::new("cannot read the trace", error.to_string(), "open it again"))
            }
        };
        self.source.get_or_init(open).clone()
    }

    /// Calls of threads whose instructions were recorded; `None` where there are none, or they cannot be read
    /// any more.
    #[must_use]
    pub fn flow(&self) -> Option<&FlowRows> {
        let meta = self.lanes.meta();
        if meta.flows.is_empty() {
            return None;
        }
        let open = || {
            let source = self.source().ok()?;
            let flow = open_flow(&self.paths, &source.recording, self.images.as_ref()?)?;
            FlowRows::new(flow, meta)
        };
        self.flow.get_or_init(open).as_ref()
    }

    /// Gives what stands in the files of programs, if they can be read.
    #[must_use]
    pub fn images(&self) -> Option<&ImageSource> {
        self.images.as_ref()
    }

    /// Stacks of samples, of any time; `None` where the files of programs cannot be read.
    #[must_use]
    pub fn stacks(&self) -> Option<&Mutex<Samples<'static>>> {
        let open = || {
            let (source, images) = (self.source().ok()?, self.images.as_ref()?);
            let mut samples = Samples::new(images.open(), &source.trace);
            let mut events = source.recording.source.events();
            while let Some(event) = events.next_event() {
                samples.see(&event);
            }
            samples.at_any_time();
            Some(Mutex::new(samples))
        };
        self.stacks.get_or_init(open).as_ref()
    }

    /// The number of a filter.
    ///
    /// # Errors
    /// There are too many.
    pub fn filter(&self, filter: Filter) -> Result<usize, Problem> {
        if filter == Filter::default() {
            return Ok(0);
        }
        let mut filters = lock(&self.common.filters);
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
        known
            .and_then(|index| lock(&self.common.filters).known.get(index).cloned())
            .ok_or_else(none)
    }

    /// What a search finds.
    ///
    /// Cost: of one that is not at hand as of [`Hits::of`].
    ///
    /// # Errors
    /// As [`Hits::of`].
    pub fn hits(
        &self,
        search: &Search,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Arc<Hits>, Problem> {
        let is_it = |of: &(Search, u64, Arc<Hits>)| of.0 == *search && of.1 == self.serial();
        if let Some((.., hits)) = lock(&self.common.hits).iter().find(|of| is_it(of)) {
            return Ok(Arc::clone(hits));
        }
        let hits = Arc::new(Hits::of(self, search, is_cancelled)?);
        let mut kept = lock(&self.common.hits);
        kept.retain(|of| of.0 != *search);
        if kept.len() >= SEARCHES_KEPT {
            kept.remove(0);
        }
        kept.push((search.clone(), self.serial(), Arc::clone(&hits)));
        Ok(hits)
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
        let mut before = None;
        let filter = {
            let mut filters = lock(&self.common.filters);
            if let Some(place) = filters.kept.iter().position(|(kept, ..)| *kept == index) {
                let kept = filters.kept.remove(place);
                filters.kept.push(kept.clone());
                if kept.1 == self.serial() {
                    return Ok(Some(kept.2));
                }
                before = (kept.1 < self.serial()).then_some(kept.2);
            }
            filters.known.get(index).cloned()
        };
        let none = || Problem::new("no such filter", "filter", "ask for one with `filter` first");
        let Filter { wanted, scripts, search } = filter.ok_or_else(none)?;
        let hits = search.map(|search| self.hits(&search, &|| false)).transpose()?;
        let scripts = scripts.iter().map(|script| self.common.scripts.get(*script));
        let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
        for ran in &scripts {
            ran.catch_up(self)?;
        }
        let kept: Vec<_> = scripts.iter().filter_map(|ran| ran.kept()).collect();
        let also = |point: PointRef| {
            let forgotten = self.lanes.points(point.lane).map_or(0, |points| points.forgotten());
            kept.iter().all(|kept| kept.has(point.lane, forgotten + u64::from(point.index)))
                && hits.as_ref().is_none_or(|hits| hits.has(point))
        };
        let also: Option<&(dyn Fn(PointRef) -> bool + Sync)> =
            if kept.is_empty() && hits.is_none() { None } else { Some(&also) };
        let chosen = Arc::new(Chosen::after(before.as_ref(), &self.lanes, &wanted, also));
        let mut filters = lock(&self.common.filters);
        let newest = filters.kept.iter().find(|(kept, ..)| *kept == index).map(|kept| kept.1);
        if newest.is_none_or(|newest| newest < self.serial()) {
            filters.kept.retain(|(kept, ..)| *kept != index);
            if filters.kept.len() >= FILTERS_KEPT {
                filters.kept.remove(0);
            }
            filters.kept.push((index, self.serial(), Arc::clone(&chosen)));
        }
        Ok(Some(chosen))
    }

    /// The rows of a lane with their numbers, in the order in which they are drawn; those of scripts
    /// come last, in the order of the scripts.
    #[must_use]
    pub fn rows_of(&self, lane: u32) -> Vec<(u32, Drawn)> {
        let mut rows = self.rows.get(lane as usize).cloned().unwrap_or_default();
        for (flow, of) in self.lanes.meta().flows.iter().enumerate() {
            if of.lane == lane
                && let Some(flows) = self.flow()
            {
                let first = rows.len() as u32;
                let calls = |depth| (first + depth, Drawn::Calls(flow, depth));
                rows.extend((0..flows.depths(flow)).map(calls));
            }
        }
        let mut next = rows.len() as u32;
        for (script, ran) in (0..).zip(self.common.scripts.all()) {
            let Some(found) = ran.found() else { continue };
            let all = &found.lanes.meta().rows;
            let is_drawn = |row: &lateralis_lanes::Row| row.lane == lane && !is_deeper(row);
            let of_lane = all.iter().enumerate().filter(|(_, row)| is_drawn(row));
            let mut of_script: Vec<(u32, usize)> = (0..).zip(of_lane.map(|(row, _)| row)).collect();
            if self.growth.is_none() {
                for (_, row) in of_script {
                    rows.push((next, Drawn::Found(script, row)));
                    next += 1;
                }
                continue;
            }
            // Numbered as they came, drawn as an index that is written has them.
            of_script.sort_by_key(|(_, row)| (&all[*row].name, all[*row].depth));
            let drawn =
                |(nth, row)| Some((number_of_found(script, nth)?, Drawn::Found(script, row)));
            rows.extend(of_script.into_iter().filter_map(drawn));
        }
        rows
    }

    /// The row of a lane.
    ///
    /// # Errors
    /// There is none.
    pub fn drawn(&self, lane: u32, row: u32) -> Result<Drawn, Problem> {
        let rows = self.rows_of(lane);
        let of = rows.iter().find(|(number, _)| *number == row).map(|(_, drawn)| *drawn);
        of.ok_or_else(|| Problem::new("no such row", format!("lane {lane}, row {row}"), ""))
    }
}
