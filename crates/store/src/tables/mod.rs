// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables over opened traces, as Arrow columns.
//!
//! ```text
//! Recordings ─ Session ─┬─ one table per kind of event ──┐ Source::parts, pruned by time
//!                       ├─ events, all of them           ┼─► and CPU; Source::columns,
//!                       │                                │ only requested columns
//!                       ├─ packets, losses, damage, …    │ known since opening
//!                       ├─ flow_calls, flow_blocks, …    │ packets of processors, decoded
//!                       └─ spans, messages, states, …    ┘ facts of events in time order
//! ```
//!
//! Nothing is decoded before a scan, and nothing is kept after it: memory is that of a batch. Several
//! threads may scan partitions of one session at the same time.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lateralis_store::{Recording, Scan, Session};
//! let session = Session::new(vec![Recording::open("demo".as_ref())?]);
//! let table = session.table("events").unwrap();
//! let scan = Scan::default();
//! for partition in session.partitions(table, &scan) {
//!     session.scan(table, &partition, &scan, &mut |batch| {
//!         println!("{} rows", batch.num_rows());
//!         ControlFlow::Continue(())
//!     })?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod build;
mod clocks;
mod derived;
mod export;
mod flow;
mod ipc;
mod json;
mod lanes;
mod opened;
mod owners;
mod scan;
mod shape;
mod small;
mod stacks;
mod units;
mod weighed;

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use lateralis_model::{Damage, Event, Interval, Source, Step};

pub use export::{ExportError, Exported, TableFormat, TableWriter};
pub use scan::Feed;
pub use weighed::WEIGHT;

use crate::Recording;
use crate::flow::Recorded;
use build::Holds;
use flow::Flow;
use opened::Opened;
use shape::Variant;
use small::Small;
pub use stacks::OpenImages;
use stacks::Stacked;

/// Largest number of rows in a batch.
pub const BATCH_ROWS: usize = 8192;

/// Minimum size of a partition in bytes of the trace.
const PARTITION_BYTES: u64 = 4 << 20;

/// Approximate largest number of partitions of a table: more than any machine has CPUs.
const PARTITIONS: u64 = 256;

/// Recordings opened together, and the tables over them.
///
/// Recordings of one counter are exactly on one timeline: all are converted as the first of them. The
/// relations of others, and the errors of their times, are in the table `recordings`.
pub struct Session {
    recordings: Vec<Opened>,
    tables: Vec<Table>,
    /// Execution of processors; scans decode it one after the other.
    flow: Option<Mutex<Recorded<'static>>>,
    /// Provides the contents of program files.
    images: Option<OpenImages>,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name: `events`, or that of an event class, `threads:MUTEX_LOCK`.
    pub name: String,
    /// Description of its rows.
    pub description: String,
    /// Its columns; metadata of a field: `unit`, `description`.
    pub schema: SchemaRef,
    kind: Kind,
    holds: Vec<Holds>,
}

/// Source of the rows of a table.
#[derive(Debug)]
enum Kind {
    /// Events of some classes.
    Events { variants: Vec<Variant>, has_class: bool },
    /// Few rows, made in one go.
    Small(Small),
    /// Decoded from packets of processors.
    Flow(Flow),
    /// Call stacks of samples.
    Stacks(Stacked),
}

/// Selection of a table.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Columns by index, in this order; all if `None`.
    pub columns: Option<Vec<usize>>,
    /// Only rows in this time range, inclusive: by `ts`, in tables that have it.
    pub interval: Interval,
    /// Only events on these CPUs, in tables of events.
    pub cpus: Option<Vec<u32>>,
    /// Only events of these kinds, in `events`.
    pub classes: Option<Vec<String>>,
    /// Largest number of rows of a partition.
    pub limit: Option<usize>,
    /// Whether the order of events is irrelevant: they are then delivered class by class, which is
    /// several times as fast. If columns contain only packet and class, events are counted and not
    /// decoded.
    pub any_order: bool,
    /// Rows may represent several events: an additional last column contains their number ([`WEIGHT`]).
    /// Rows that differ only in times within one [`Step`] are then combined, with one time of this step.
    pub weighs: Option<Step>,
}

impl Scan {
    /// Whether events of a class may be needed.
    fn wants(&self, recording: &Recording, variant: &Variant) -> bool {
        let Some(classes) = &self.classes else { return true };
        let trace = recording.source.trace();
        let stream = trace.stream_classes.get(variant.stream_class as usize);
        let class = stream.and_then(|stream| stream.event_classes.get(variant.class as usize));
        class.is_some_and(|class| classes.contains(&class.name))
    }
}

/// A part of a table that can be read independently.
#[derive(Debug, Clone)]
pub struct Partition(Piece);

impl Partition {
    /// Number of runs of packets that are read for it, each some hundred KiB of one stream; 0 if none are
    /// needed.
    #[must_use]
    pub fn part_count(&self) -> usize {
        match &self.0 {
            Piece::Parts { parts, .. } => parts.len(),
            Piece::Whole => 0,
        }
    }
}

#[derive(Debug, Clone)]
enum Piece {
    /// Parts of a recording, by index.
    Parts { recording: usize, parts: Vec<usize> },
    /// The whole recording.
    Whole,
}

/// Reason why a table cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// A text, a blob or a list is too long for a column.
    TooLong {
        /// The table.
        table: String,
    },
    /// Inconsistent columns.
    Arrow {
        /// The table.
        table: String,
        /// The error of Arrow.
        reason: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { table } => write!(
                f,
                "cannot read the table: {table}: a value has more than 256 MiB: leave out its column"
            ),
            Self::Arrow { table, reason } => write!(f, "cannot read the table: {table}: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl Table {
    /// Whether each of its rows is an event.
    #[must_use]
    pub fn is_of_events(&self) -> bool {
        matches!(self.kind, Kind::Events { .. })
    }
}

impl Session {
    /// A session of recordings. Two with the same path are distinguished by number.
    ///
    /// Cost: proportional to the classes, not to the events.
    #[must_use]
    pub fn new(mut recordings: Vec<Recording>) -> Self {
        let groups = clocks::relate(&mut recordings);
        let mut tables: Vec<Table> = Vec::new();
        let mut events = shape::common();
        events.push(("class", Holds::Word, "", "its kind: the table with its fields"));
        let phase = "what they are where their names do not tell: `begin`, `end`, `complete` …";
        events.push(("phase", Holds::Word, "", phase));
        events.push(("fields", Holds::Text, "", "its fields as JSON"));
        let names: Vec<&str> = Small::ALL.iter().map(|small| small.name()).collect();
        let of_flow = Flow::ALL.iter().map(|flow| flow.name());
        let of_stacks = Stacked::ALL.iter().map(|stacked| stacked.name());
        let taken: Vec<&str> = names.iter().copied().chain(["events"]).collect();
        let taken: Vec<&str> = taken.into_iter().chain(of_flow).chain(of_stacks).collect();
        let classes = shape::classes(&recordings, &taken);
        let variants = classes.iter().flat_map(|class| class.variants.iter().cloned()).collect();
        tables.push(described(
            "events",
            "all events",
            events,
            Kind::Events { variants, has_class: true },
        ));
        for small in Small::ALL {
            let (name, text, columns) = (small.name(), small.description(), small.columns());
            tables.push(described(name, text, columns, Kind::Small(small)));
        }
        tables.extend(classes.into_iter().map(|class| Table {
            name: class.name,
            description: class.description,
            schema: class.schema,
            holds: class.holds,
            kind: Kind::Events { variants: class.variants, has_class: false },
        }));
        let several = recordings.len() > 1;
        let mut labels: Vec<String> = Vec::new();
        let opened = recordings.into_iter().zip(groups).map(|(recording, groups)| {
            let mut label = recording.path.display().to_string();
            if several && labels.contains(&label) {
                label = format!("{label}#{}", labels.len());
            }
            labels.push(label.clone());
            Opened::new(recording, label, groups)
        });
        Self { recordings: opened.collect(), tables, flow: None, images: None }
    }

    /// Adds tables of the execution of processors.
    #[must_use]
    pub fn with_flow(mut self, recorded: Recorded<'static>) -> Self {
        for flow in Flow::ALL {
            let (name, text, columns) = (flow.name(), flow.description(), flow.columns());
            self.tables.push(described(name, text, columns, Kind::Flow(flow)));
        }
        self.flow = Some(Mutex::new(recorded));
        self
    }

    /// Adds tables of the call stacks of samples.
    #[must_use]
    pub fn with_stacks(mut self, images: OpenImages) -> Self {
        for stacked in Stacked::ALL {
            let (name, text, columns) = (stacked.name(), stacked.description(), stacked.columns());
            self.tables.push(described(name, text, columns, Kind::Stacks(stacked)));
        }
        self.images = Some(images);
        self
    }

    /// Execution of processors, with the missing parts found by scans of its tables.
    #[must_use]
    pub fn into_flow(self) -> Option<Recorded<'static>> {
        let recorded = self.flow?;
        Some(recorded.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tables: `events`, those known since opening, those of event classes by name.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table with this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Names of tables similar to one that does not exist; at most five, the most similar first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let wrong = name.to_lowercase();
        let likeness = |table: &str| {
            let table = table.to_lowercase();
            let last = table.rsplit(':').next().unwrap_or(&table).to_owned();
            let part = if !wrong.is_empty() && table.contains(&wrong) { 0.9 } else { 0.0 };
            [strsim::jaro_winkler(&wrong, &table), strsim::jaro_winkler(&wrong, &last), part]
                .into_iter()
                .fold(0.0, f64::max)
        };
        let mut near: Vec<(f64, &str)> = self
            .tables
            .iter()
            .map(|table| (likeness(&table.name), table.name.as_str()))
            .filter(|(likeness, _)| *likeness >= 0.8)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        near.into_iter().take(5).map(|(_, name)| name).collect()
    }

    /// Parts of a table with the selected rows: without those of other times or CPUs, or of streams that
    /// have no such events. Parts of one stream are in stream order.
    ///
    /// Cost: proportional to the packets of the trace; the first call walks over them.
    #[must_use]
    pub fn partitions(&self, table: &Table, scan: &Scan) -> Vec<Partition> {
        let Kind::Events { variants, .. } = &table.kind else {
            return vec![Partition(Piece::Whole)];
        };
        let mut found = Vec::new();
        for (recording, opened) in self.recordings.iter().enumerate() {
            let mut of_class = Vec::new();
            let of_recording = |variant: &&Variant| variant.recording == recording;
            let wanted = |variant: &&Variant| scan.wants(&opened.recording, variant);
            for variant in variants.iter().filter(of_recording).filter(wanted) {
                let class = variant.stream_class as usize;
                if of_class.len() <= class {
                    of_class.resize(class + 1, false);
                }
                of_class[class] = true;
            }
            if of_class.is_empty() {
                continue;
            }
            let wanted = |part: &lateralis_model::PartSummary| {
                let (begin, end) = (part.interval.begin, part.interval.end);
                let late = begin.zip(scan.interval.end).is_some_and(|(begin, end)| begin > end);
                let early = end.zip(scan.interval.begin).is_some_and(|(end, begin)| end < begin);
                let class = part.stream_class.map(|class| class as usize);
                let of_class =
                    class.is_none_or(|class| of_class.get(class).copied().unwrap_or(false));
                let on_cpu = match (&scan.cpus, part.cpu) {
                    (Some(cpus), Some(cpu)) => cpus.contains(&cpu.0),
                    _ => true,
                };
                !late && !early && of_class && on_cpu
            };
            gather(opened.parts(), recording, &wanted, &mut found);
        }
        found
    }

    /// Delivers the rows of a partition, in batches of at most [`BATCH_ROWS`], until `see` breaks. Events
    /// come in stream order, not in time order. Returns the damage found while reading.
    ///
    /// Cost: events of the partition are found by their headers, and only the requested columns are
    /// decoded. For a trace in which events contain threads or names, the first scan that needs them
    /// reads those events.
    ///
    /// # Errors
    /// [`StoreError::TooLong`] if a value is too long for a column.
    pub fn scan(
        &self,
        table: &Table,
        partition: &Partition,
        scan: &Scan,
        see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<Vec<Damage>, StoreError> {
        match (&table.kind, &partition.0) {
            (Kind::Events { variants, has_class }, Piece::Parts { recording, parts }) => {
                let Some(opened) = self.recordings.get(*recording) else {
                    return Ok(Vec::new());
                };
                let wanted = |variant: &&Variant| {
                    variant.recording == *recording && scan.wants(&opened.recording, variant)
                };
                let variants = variants.iter().filter(wanted);
                let columns = (&table.schema, table.holds.as_slice());
                let scanner = scan::Scanner::new(
                    &table.name,
                    opened,
                    columns,
                    variants,
                    *has_class,
                    scan,
                    see,
                );
                scanner.run(parts)
            }
            (Kind::Small(small), _) => {
                small::scan(*small, &self.recordings, (table, &self.tables[0]), scan, see)
            }
            (Kind::Flow(flow), _) => {
                let Some(recorded) = &self.flow else { return Ok(Vec::new()) };
                // State of a scan that ended early, or failed, is not used by the next one.
                let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                flow::scan(*flow, &mut recorded, table, scan, see)?;
                Ok(Vec::new())
            }
            (Kind::Stacks(stacked), _) => {
                let Some(images) = &self.images else { return Ok(Vec::new()) };
                stacks::scan(*stacked, &self.recordings, images, table, scan, see)
            }
            (Kind::Events { .. }, Piece::Whole) => Ok(Vec::new()),
        }
    }

    /// Makes rows of the events of the only recording of this session that `contains` selects, in the order
    /// of time and otherwise as [`Session::scan`] does. Returns the damage found on the way. A table that is
    /// not [of events](Table::is_of_events) has no rows of them.
    ///
    /// Cost: decodes every event of the time of `scan`.
    ///
    /// # Errors
    /// As [`Session::scan`].
    pub fn selected_rows(
        &self,
        table: &Table,
        scan: &Scan,
        contains: &dyn Fn(&Event<'_>) -> bool,
        see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<Vec<Damage>, StoreError> {
        let (Kind::Events { variants, has_class }, [opened]) =
            (&table.kind, self.recordings.as_slice())
        else {
            return Ok(Vec::new());
        };
        let wanted = |variant: &&Variant| scan.wants(&opened.recording, variant);
        let variants = variants.iter().filter(wanted);
        let columns = (&table.schema, table.holds.as_slice());
        let scanner =
            scan::Scanner::new(&table.name, opened, columns, variants, *has_class, scan, see);
        scanner.run_selected(contains)
    }

    /// Makes rows of events that do not come from a scan but from a [`crate::Tail`], in their order. They
    /// must belong to the only recording of this session. A table that is not [of
    /// events](Table::is_of_events) has no rows for them.
    ///
    /// # Errors
    /// As [`Session::scan`].
    pub fn rows_of(
        &self,
        table: &Table,
        scan: &Scan,
        feed: &mut Feed<'_>,
        see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (Kind::Events { variants, has_class }, [opened]) =
            (&table.kind, self.recordings.as_slice())
        else {
            return Ok(());
        };
        let columns = (&table.schema, table.holds.as_slice());
        let scanner = scan::Scanner::new(
            &table.name,
            opened,
            columns,
            variants.iter(),
            *has_class,
            scan,
            see,
        );
        scanner.run_events(feed)
    }

    /// Names of the recordings in tables, in order, and their paths.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.recordings.iter().flat_map(Opened::paths)
    }

    /// The recordings.
    pub fn recordings(&self) -> impl ExactSizeIterator<Item = &Recording> {
        self.recordings.iter().map(|opened| &opened.recording)
    }
}

fn described(name: &str, text: &str, columns: Vec<shape::Described>, kind: Kind) -> Table {
    // Packets do not always have times.
    let is_nullable = |name: &str| name != "ts" || matches!(kind, Kind::Flow(_));
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, holds, unit, text)| {
            shape::column(name, holds, unit, text).with_nullable(is_nullable(name))
        })
        .collect();
    Table {
        name: name.to_owned(),
        description: text.to_owned(),
        schema: Arc::new(Schema::new(fields)),
        kind,
        holds: columns.into_iter().map(|(_, holds, ..)| holds).collect(),
    }
}

/// Consecutive parts become one partition until it is worth a thread.
fn gather(
    parts: &[lateralis_model::PartSummary],
    recording: usize,
    wanted: &dyn Fn(&lateralis_model::PartSummary) -> bool,
    found: &mut Vec<Partition>,
) {
    // If the format has no sizes, an event is assumed to take about as much as in memory.
    let size = |part: &lateralis_model::PartSummary| {
        part.bytes.max(part.events.unwrap_or(0).saturating_mul(48))
    };
    let total: u64 = parts.iter().filter(|part| wanted(part)).map(size).sum();
    let enough = PARTITION_BYTES.max(total / PARTITIONS);
    let (mut bytes, mut piece) = (0, Vec::new());
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| wanted(part)) {
        piece.push(index);
        bytes += size(part);
        if bytes >= enough {
            let parts = std::mem::take(&mut piece);
            found.push(Partition(Piece::Parts { recording, parts }));
            bytes = 0;
        }
    }
    if !piece.is_empty() {
        found.push(Partition(Piece::Parts { recording, parts: piece }));
    }
}
