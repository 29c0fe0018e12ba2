// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of data that is known without reading events, and of entities.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use lateralis_model::role::PHASE;
use lateralis_model::{
    ColumnRequest, Damage, Interval, Look, Loss, Quality, Seen, Source, StreamIndex, Wanted,
};
use lateralis_semantics::Extent;
use lateralis_units::Nanos;

use super::build::{Builder, Holds, TooLong};
use super::opened::Opened;
use super::shape::Described;
use super::{BATCH_ROWS, Scan, StoreError, Table, derived, lanes};
use crate::Recording;
use crate::facts::Facts;

/// A table that is made in one go, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Small {
    Recordings,
    Streams,
    Classes,
    Packets,
    Losses,
    Damage,
    Threads,
    Cpus,
    Applications,
    Spans,
    Messages,
    States,
    Counters,
    ThreadStates,
    Contradictions,
    NetworkPackets,
    Calls,
    BlockRequests,
    PageFaults,
    DevicePackets,
    IdleStates,
    Allocations,
}

impl Small {
    pub const ALL: [Self; 22] = [
        Self::Recordings,
        Self::Streams,
        Self::Classes,
        Self::Packets,
        Self::Losses,
        Self::Damage,
        Self::Threads,
        Self::Cpus,
        Self::Applications,
        Self::Spans,
        Self::Messages,
        Self::States,
        Self::Counters,
        Self::ThreadStates,
        Self::Contradictions,
        Self::NetworkPackets,
        Self::Calls,
        Self::BlockRequests,
        Self::PageFaults,
        Self::DevicePackets,
        Self::IdleStates,
        Self::Allocations,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Recordings => "recordings",
            Self::Streams => "streams",
            Self::Classes => "classes",
            Self::Packets => "packets",
            Self::Losses => "losses",
            Self::Damage => "damage",
            Self::Threads => "threads",
            Self::Cpus => "cpus",
            Self::Applications => "applications",
            Self::Spans => "spans",
            Self::Messages => "messages",
            Self::States => "states",
            Self::Counters => "counters",
            Self::ThreadStates => "thread_states",
            Self::Contradictions => "contradictions",
            Self::NetworkPackets => "network_packets",
            Self::Calls => "calls",
            Self::BlockRequests => "block_requests",
            Self::PageFaults => "page_faults",
            Self::DevicePackets => "device_packets",
            Self::IdleStates => "idle_states",
            Self::Allocations => "allocations",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Recordings => "the recordings of the session, and what they cover",
            Self::Streams => "the streams that events are in",
            Self::Classes => "the kinds of events, and how many there are of each",
            Self::Packets => "the packets of the streams",
            Self::Losses => "events that the producer counted and did not record",
            Self::Damage => "bytes that cannot be read",
            Self::Threads => "the threads that wrote events, or that events tell of",
            Self::Cpus => "the processors, and how many events there are of each",
            Self::Applications => "the programs and components that wrote events",
            Self::Spans => "what begins and ends, by schema or convention, as it ends",
            Self::Messages => "what is sent and received, as it arrives",
            Self::States => "how long machines are in which state",
            Self::Counters => "levels that events tell",
            Self::ThreadStates => "how long threads ran, waited for a processor, or slept",
            Self::Contradictions => {
                "where switches contradict each other: what was done then is unknown"
            }
            Self::NetworkPackets => "packets of networks, and which threads sent and read them",
            Self::Calls => "calls of the system, with what they returned, as they return",
            Self::BlockRequests => "requests to block devices, as they are done",
            Self::PageFaults => "page faults",
            Self::DevicePackets => "packets at network devices of the kernel",
            Self::IdleStates => "how long processors were in idle states",
            Self::Allocations => "memory of the kernel, allocated and freed",
        }
    }

    pub fn columns(self) -> Vec<Described> {
        use Holds::{Bool, Int, Real, Text, Word};
        let mut all: Vec<Described> = vec![("recording", Word, "", "which of the recordings")];
        let rest: &[Described] = match self {
            Self::Recordings => &[
                ("format", Word, "", "format of the trace"),
                ("begin_ts", Int, "ns", "its first event"),
                ("end_ts", Int, "ns", "its last event, or the last end of a complete span"),
                ("streams", Int, "", "number of streams"),
                ("is_damaged", Bool, "", "whether anything in it could not be read"),
                ("loses_events", Bool, "", "whether the producer counted lost events"),
                ("clock", Word, "", "name of its clock; null: it has none"),
                (
                    "clock_relation",
                    Word,
                    "",
                    "to the first: `reference`, `same`, `exchange`, `messages`, `epoch`, `origin`, \
                     `unrelated`",
                ),
                ("clock_offset", Int, "ns", "zero of the clock since 1970; null: not known"),
                ("clock_error", Int, "ns", "its times may be off the first's; null: by any"),
            ],
            Self::Streams => &[
                ("stream", Int, "", "its number in the recording"),
                ("name", Text, "", "its name: of a file, a processor, an interface"),
                ("cpu", Int, "", "the processor all its events happened on"),
                ("packets", Int, "", "number of packets; 0 where the format has none"),
                ("bytes", Int, "B", "size in its files; 0 where streams share them"),
            ],
            Self::Classes => &[
                ("class", Text, "", "name of the events, and of their table"),
                ("id", Int, "", "number given by the producer"),
                ("stream_class", Int, "", "the kind of stream they are in"),
                ("count", Int, "", "events that can be read"),
                ("first", Int, "ns", "time of the earliest"),
                ("last", Int, "ns", "time of the latest"),
                (
                    "phase",
                    Word,
                    "",
                    "what they are where their names do not tell: `begin`, `end`, `complete` …",
                ),
                ("quality", Word, "", "of the count: `exact`, or `lower_bound` beside losses"),
            ],
            Self::Packets => &[
                ("stream", Int, "", "its stream"),
                ("packet", Int, "", "its number in the stream, from 0"),
                ("begin_ts", Int, "ns", "when its events begin, as it says"),
                ("end_ts", Int, "ns", "when they end"),
                ("cpu", Int, "", "the processor that wrote it"),
                ("offset", Int, "B", "where it begins in its file"),
                ("bytes", Int, "B", "its size in the file"),
                ("content", Int, "bit", "how much of that it uses"),
                ("sequence", Int, "", "its number as the producer counts"),
                ("discarded", Int, "", "events discarded in the stream up to its end"),
            ],
            Self::Losses => &[
                ("stream", Int, "", "in which stream"),
                ("cause", Word, "", "`full`, `too_big`, `contended`, `no_ring`, `packets`, …"),
                ("count", Int, "", "events, packets if the cause says so; null: some"),
                ("begin_ts", Int, "ns", "not before"),
                ("end_ts", Int, "ns", "not after"),
            ],
            Self::Damage => &[
                ("file", Text, "", "the file"),
                ("begin_bytes", Int, "B", "first byte"),
                ("end_bytes", Int, "B", "byte behind the last"),
                ("reason", Text, "", "what is wrong"),
                ("begin_ts", Int, "ns", "its events happened not before, as far as others tell"),
                ("end_ts", Int, "ns", "not after"),
            ],
            Self::Threads => &[
                ("tid", Int, "", "its number"),
                ("pid", Int, "", "number of its process"),
                ("thread", Text, "", "its name, where it is told"),
                ("process", Text, "", "name of its process, where it is told"),
                ("events", Int, "", "events it wrote"),
                ("first", Int, "ns", "time of the earliest"),
                ("last", Int, "ns", "time of the latest"),
                ("quality", Word, "", "of the count: `exact`, or `lower_bound` beside losses"),
            ],
            Self::Cpus => &[
                ("cpu", Int, "", "its number"),
                ("events", Int, "", "events that happened there"),
                ("first", Int, "ns", "time of the earliest"),
                ("last", Int, "ns", "time of the latest"),
                ("quality", Word, "", "of the count: `exact`, or `lower_bound` beside losses"),
            ],
            Self::Applications => &[
                ("application", Text, "", "label of the component, else name of the process"),
                ("pid", Int, "", "number of its process"),
                ("threads", Int, "", "threads of it that wrote events"),
                ("events", Int, "", "events it wrote"),
                ("quality", Word, "", "of the count: `exact`, or `lower_bound` beside losses"),
            ],
            Self::Spans => &[
                ("ts", Int, "ns", "when it begins; of an orphan when it ends"),
                ("end_ts", Int, "ns", "when it ends; null: unfinished"),
                ("duration", Int, "ns", "how long it takes; null unless complete"),
                ("span", Word, "", "its kind"),
                ("key", Text, "", "what tells it from others of its kind; null: its thread"),
                ("process", Word, "", "name of the process that begins it"),
                ("pid", Int, "", "number of that process"),
                ("thread", Word, "", "name of the thread that begins it"),
                ("tid", Int, "", "number of that thread"),
                ("end_pid", Int, "", "the process that ends it"),
                ("end_tid", Int, "", "the thread that ends it"),
                ("status", Word, "", "`complete`, `unfinished`, or `orphan`: an end alone"),
                ("clock_error", Int, "ns", "the duration may be off by two clocks; null: by any"),
                ("quality", Word, "", "of the duration: `exact`, or `unknown` beside losses"),
            ],
            Self::Messages => &[
                ("ts", Int, "ns", "when it leaves; if it never did, when it arrives"),
                ("end_ts", Int, "ns", "when it arrives"),
                ("latency", Int, "ns", "how long it is on the way; null unless complete"),
                ("channel", Word, "", "its channel"),
                ("key", Text, "", "what tells it from others; null: their order"),
                ("cpu", Int, "", "the processor it leaves"),
                ("pid", Int, "", "the process that sends it"),
                ("tid", Int, "", "the thread that sends it"),
                ("to_cpu", Int, "", "the processor it arrives at"),
                ("to_pid", Int, "", "the process that receives it"),
                ("to_tid", Int, "", "the thread that receives it"),
                ("status", Word, "", "`complete`, `not_received`, `not_sent`"),
                ("clock_error", Int, "ns", "the latency may be off by two clocks; null: by any"),
                ("quality", Word, "", "of the latency: `exact`, or `unknown` beside losses"),
            ],
            Self::States => &[
                ("ts", Int, "ns", "when it is entered"),
                (
                    "end_ts",
                    Int,
                    "ns",
                    "when it is left; of an unfinished one the end of the recording",
                ),
                ("duration", Int, "ns", "how long it holds; of an unfinished one at least"),
                ("machine", Word, "", "name of the machine"),
                ("state", Word, "", "the state"),
                ("owner", Word, "", "whose: of a `thread`, a `cpu`, a `stream`"),
                ("cpu", Int, "", "the processor it is entered on"),
                ("pid", Int, "", "the process of the thread"),
                ("tid", Int, "", "the thread"),
                ("stream", Int, "", "the stream that tells it"),
                ("status", Word, "", "`complete` or `unfinished`"),
                ("quality", Word, "", "of the duration: `exact`, `lower_bound`, `unknown`"),
            ],
            Self::Counters => &[
                ("ts", Int, "ns", "when it is told"),
                ("counter", Word, "", "event and field: `app:QUEUE.free`"),
                ("value", Real, "", "the level"),
                ("cpu", Int, "", "the processor"),
                ("pid", Int, "", "the process that tells it"),
                ("tid", Int, "", "the thread that tells it"),
                ("quality", Word, "", "of the value: `exact`, for the event tells it itself"),
            ],
            Self::ThreadStates => &[
                ("ts", Int, "ns", "when it began"),
                ("end_ts", Int, "ns", "when it ended; of one that has not, when the trace did"),
                ("duration", Int, "ns", "between them"),
                (
                    "state",
                    Word,
                    "",
                    "`running`, `runnable`, `preempted`, `sleeping`, `blocked`, `stopped`, `unknown`",
                ),
                ("cpu", Int, "", "of one that runs, the processor"),
                ("pid", Int, "", "the process of the thread"),
                ("tid", Int, "", "the thread"),
                ("thread", Word, "", "its name"),
                ("woken_by", Word, "", "of one that was woken: `thread`, `interrupt`, `unknown`"),
                ("waker_tid", Int, "", "the thread that woke it"),
                ("status", Word, "", "`complete`, or `unfinished` at the end of the trace"),
                ("quality", Word, "", "of the duration: `exact`, `lower_bound`, `unknown`"),
            ],
            Self::Contradictions => &[
                ("ts", Int, "ns", "since when it is unknown what the processor did"),
                ("end_ts", Int, "ns", "until when"),
                ("duration", Int, "ns", "between them"),
                (
                    "kind",
                    Word,
                    "",
                    "`other_thread_left` than came; `runs_elsewhere`: the one that came, before it left",
                ),
                ("cpu", Int, "", "the processor"),
                ("tid", Int, "", "the thread that came; null: none, the processor was idle"),
                ("thread", Word, "", "its name"),
                ("left_tid", Int, "", "the other thread that left; null: none"),
                ("left_thread", Word, "", "its name"),
            ],
            Self::NetworkPackets => &[
                ("ts", Int, "ns", "when it was captured"),
                ("interface", Word, "", "name of the interface"),
                ("direction", Word, "", "`inbound`, `outbound`, `unknown`"),
                ("bytes", Int, "B", "its length on the network"),
                ("captured", Int, "B", "how much of it was captured"),
                ("sent_ts", Int, "ns", "when a thread gave it to an interface; null: not known"),
                ("sent_pid", Int, "", "the process of that thread"),
                ("sent_tid", Int, "", "that thread"),
                ("sent_thread", Word, "", "its name"),
                (
                    "sent_in",
                    Text,
                    "",
                    "the spans it was in, the outermost first, with ` > ` between",
                ),
                ("read_ts", Int, "ns", "when a thread first read of it; null: not known"),
                ("read_pid", Int, "", "the process of that thread"),
                ("read_tid", Int, "", "that thread"),
                ("read_thread", Word, "", "its name"),
                ("read_in", Text, "", "the spans it was in"),
                ("quality", Word, "", "of sender and reader: `exact` or `unknown`"),
            ],
            Self::Calls => &[
                ("ts", Int, "ns", "when it began; where that was not seen, when it returned"),
                ("end_ts", Int, "ns", "when it returned; null: not seen"),
                ("duration", Int, "ns", "between them; null unless complete"),
                ("call", Word, "", "its name; `#N` by number, `?` of an exit without its entry"),
                ("layer", Word, "", "who was called: the `kernel`, the C `library`"),
                ("pid", Int, "", "the process that called"),
                ("tid", Int, "", "the thread that called; null: not known"),
                ("thread", Word, "", "its name"),
                ("value", Int, "", "what it returned"),
                ("error", Text, "", "name of the error that it returned: `ENOENT`"),
                ("bytes", Int, "B", "how many it moved, of calls that return that"),
                ("moves", Word, "", "where to: `in`, `out`, `through` from file to file"),
                ("status", Word, "", "`complete`, `unfinished`, `no_begin`, `no_end`: not seen"),
                ("quality", Word, "", "of the duration: `exact` or `unknown`"),
            ],
            Self::BlockRequests => &[
                ("ts", Int, "ns", "its first event"),
                ("end_ts", Int, "ns", "when the device was done; null: not seen"),
                ("device", Text, "", "`MAJOR:MINOR`"),
                ("operation", Word, "", "`read`, `write`, `discard`, `flush`, `other`"),
                ("sector", Int, "", "its first sector"),
                ("bytes", Int, "B", "how many were done; unless complete, how many were asked for"),
                ("issue_ts", Int, "ns", "when it was given to the device last"),
                (
                    "queue_ns",
                    Int,
                    "ns",
                    "how long it waited in queues; null: in none, or not known",
                ),
                ("service_ns", Int, "ns", "how long the device took; null: not known"),
                ("requeues", Int, "", "how often the device gave it back"),
                ("error", Int, "", "what the device told; 0: none"),
                ("pid", Int, "", "the process of the thread of its first event"),
                ("tid", Int, "", "that thread; null: not known"),
                ("thread", Word, "", "its name"),
                ("status", Word, "", "`complete`, `unfinished`, or `missing`: its end is"),
                ("quality", Word, "", "of the times: `exact` or `unknown`"),
            ],
            Self::PageFaults => &[
                ("ts", Int, "ns", "when"),
                ("kind", Word, "", "in the program: `user`, in the `kernel`, a `sample` of perf"),
                ("address", Int, "", "the address that was not there"),
                ("ip", Int, "", "the instruction that wanted it"),
                ("cpu", Int, "", "on which processor"),
                ("pid", Int, "", "the process of the thread"),
                ("tid", Int, "", "in which thread; null: not known"),
                ("thread", Word, "", "its name"),
                ("quality", Word, "", "of what is said of the thread: `exact` or `unknown`"),
            ],
            Self::DevicePackets => &[
                ("ts", Int, "ns", "when"),
                ("device", Word, "", "name of the device"),
                ("step", Word, "", "`queued`, `sent`, `refused`, `backlogged`, `received`"),
                ("bytes", Int, "B", "its length; of one that came without the header of the link"),
                ("cpu", Int, "", "on which processor"),
                ("pid", Int, "", "the process of the thread"),
                ("tid", Int, "", "the thread that had the processor; null: not known"),
                ("thread", Word, "", "its name"),
                ("quality", Word, "", "of what is said of the thread: `exact` or `unknown`"),
            ],
            Self::IdleStates => &[
                ("ts", Int, "ns", "when it was entered; where that was not seen, when it was left"),
                ("end_ts", Int, "ns", "when it was left; of an unfinished one the last event"),
                ("duration", Int, "ns", "between them; null: one of them was not seen"),
                ("cpu", Int, "", "the processor"),
                ("state", Int, "", "which state; null: not known"),
                ("status", Word, "", "`complete`, `unfinished`, `no_begin`, `no_end`: not seen"),
                ("quality", Word, "", "of the duration: `exact`, `lower_bound`, `unknown`"),
            ],
            Self::Allocations => &[
                ("ts", Int, "ns", "when"),
                ("allocator", Word, "", "`slab`: sizes are bytes; `pages`: sizes are pages"),
                ("is_free", Bool, "", "whether it is freed"),
                ("address", Int, "", "the address, or the number of the first page"),
                ("size", Int, "", "how much; null: freed, and the allocation was not seen"),
                ("cpu", Int, "", "on which processor"),
                ("pid", Int, "", "the process of the thread"),
                ("tid", Int, "", "the thread that had the processor; null: not known"),
                ("thread", Word, "", "its name"),
                ("owner_tid", Int, "", "of what is freed, who allocated it; null: not known"),
                (
                    "quality",
                    Word,
                    "",
                    "of what is said of the threads, and of what is freed: `exact` or `unknown`",
                ),
            ],
        };
        all.extend(rest.iter().cloned());
        all
    }
}

/// Rows that are delivered as they come.
pub struct Rows<'s> {
    table: &'s Table,
    builders: Vec<Builder>,
    columns: Vec<usize>,
    rows: usize,
    left: usize,
    interval: Interval,
    /// Column with the time of a row, if there is one.
    time: Option<usize>,
    see: Box<dyn FnMut(RecordBatch) -> ControlFlow<()> + 's>,
    error: Option<StoreError>,
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    /// A word with a number that identifies it in this column until [`Rows::flush`], which saves the
    /// lookup of its text.
    Word(u64, Option<&'a str>),
}

impl From<Option<Nanos>> for Cell<'_> {
    fn from(time: Option<Nanos>) -> Self {
        time.map_or(Cell::Null, |time| Cell::Int(time.0))
    }
}

impl From<Option<u32>> for Cell<'_> {
    fn from(number: Option<u32>) -> Self {
        number.map_or(Cell::Null, |number| Cell::Int(number.into()))
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Cell::Null, |number| Cell::Int(number as i64))
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Cell::Null, Cell::Text)
    }
}

impl<'s> Rows<'s> {
    pub fn new(
        table: &'s Table,
        scan: &Scan,
        see: impl FnMut(RecordBatch) -> ControlFlow<()> + 's,
    ) -> Self {
        let count = table.holds.len();
        let columns: Vec<usize> = match &scan.columns {
            Some(columns) => columns.iter().copied().filter(|column| *column < count).collect(),
            None => (0..count).collect(),
        };
        let builders = columns.iter().map(|&column| Builder::new(&table.holds[column])).collect();
        let left = scan.limit.unwrap_or(usize::MAX);
        let time = table.schema.index_of("ts").ok();
        let interval = scan.interval;
        let see = Box::new(see);
        Self { table, builders, columns, rows: 0, left, interval, time, see, error: None }
    }

    /// Whether a column is needed.
    pub fn wants(&self, column: &str) -> bool {
        self.columns.iter().any(|index| self.table.schema.field(*index).name() == column)
    }

    /// Adds a row: a value for each column of the table.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> ControlFlow<()> {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        if let Some(Cell::Int(time)) = self.time.and_then(|time| cells.get(time)) {
            let (begin, end) = (self.interval.begin, self.interval.end);
            if begin.is_some_and(|begin| *time < begin.0) || end.is_some_and(|end| *time > end.0) {
                return ControlFlow::Continue(());
            }
        }
        for (builder, column) in self.builders.iter_mut().zip(&self.columns) {
            let done = match cells.get(*column).copied().unwrap_or(Cell::Null) {
                Cell::Null => {
                    builder.null();
                    Ok(())
                }
                Cell::Int(value) => {
                    builder.int(value);
                    Ok(())
                }
                Cell::Real(value) => {
                    builder.real(value);
                    Ok(())
                }
                Cell::Text(text) => builder.text(text),
                Cell::Word(number, text) => {
                    builder.word_of(number, || text.map(std::borrow::Cow::Borrowed))
                }
            };
            if done == Err(TooLong) {
                self.error = Some(StoreError::TooLong { table: self.table.name.clone() });
                return ControlFlow::Break(());
            }
        }
        self.rows += 1;
        self.left -= 1;
        if self.rows >= BATCH_ROWS || self.left == 0 {
            self.flush()?;
        }
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Delivers the rows so far. The numbers of words start anew.
    pub fn flush(&mut self) -> ControlFlow<()> {
        if self.rows == 0 {
            return ControlFlow::Continue(());
        }
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        let schema = match self.table.schema.project(&self.columns) {
            Ok(schema) => Arc::new(schema),
            Err(_) => Arc::clone(&self.table.schema),
        };
        match RecordBatch::try_new_with_options(schema, arrays, &options) {
            Ok(batch) => (self.see)(batch),
            Err(error) => {
                let (table, reason) = (self.table.name.clone(), error.to_string());
                self.error = Some(StoreError::Arrow { table, reason });
                ControlFlow::Break(())
            }
        }
    }

    /// Number of rows that have not been delivered.
    pub fn count(&self) -> usize {
        self.rows
    }

    /// Takes the error that prevents more rows.
    pub fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    /// Delivers the remaining rows.
    pub fn end(mut self) -> Result<(), StoreError> {
        if self.error.is_none() {
            let _ = self.flush();
        }
        self.error.map_or(Ok(()), Err)
    }
}

/// Delivers the rows of a small table.
pub fn scan(
    small: Small,
    recordings: &[Opened],
    tables: (&Table, &Table),
    scan: &Scan,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<Vec<Damage>, StoreError> {
    match small {
        Small::Spans
        | Small::Messages
        | Small::States
        | Small::Counters
        | Small::ThreadStates
        | Small::Contradictions
        | Small::NetworkPackets
        | Small::Calls
        | Small::BlockRequests
        | Small::PageFaults
        | Small::DevicePackets
        | Small::IdleStates
        | Small::Allocations => {
            derived::beside(see, |see| scan_here(small, recordings, tables, scan, see))
        }
        _ => scan_here(small, recordings, tables, scan, see),
    }
}

fn scan_here(
    small: Small,
    recordings: &[Opened],
    (table, events): (&Table, &Table),
    scan: &Scan,
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<Vec<Damage>, StoreError> {
    let mut rows = Rows::new(table, scan, see);
    let mut damage = Vec::new();
    for (index, opened) in recordings.iter().enumerate() {
        let flow = match small {
            Small::Spans
            | Small::Messages
            | Small::States
            | Small::Counters
            | Small::ThreadStates
            | Small::Contradictions
            | Small::NetworkPackets
            | Small::Calls
            | Small::BlockRequests
            | Small::PageFaults
            | Small::DevicePackets
            | Small::IdleStates
            | Small::Allocations => derived::rows(small, opened, &mut rows, &mut damage),
            Small::Recordings => recording_rows(opened, &mut rows),
            Small::Streams => stream_rows(opened, &mut rows),
            Small::Packets => packet_rows(opened, &mut rows),
            Small::Losses => loss_rows(opened, &mut rows),
            Small::Damage => damage_rows(opened, &mut rows),
            Small::Classes => class_rows(opened, &mut rows, &mut damage),
            Small::Threads | Small::Cpus | Small::Applications => {
                lanes::rows(small, events, (index, opened), &mut rows, &mut damage)?
            }
        };
        if flow.is_break() {
            break;
        }
    }
    rows.end()?;
    Ok(damage)
}

fn recording_rows(opened: &Opened, rows: &mut Rows<'_>) -> ControlFlow<()> {
    let source = &opened.recording.source;
    let mut extents: BTreeMap<u32, Extent> = BTreeMap::new();
    let mut see = |stream: StreamIndex, first: Nanos, last: Nanos| {
        extents.entry(stream.0).or_default().add_events(first, last);
    };
    let meaning = Facts::new(opened.annotated(), &opened.recording.streams);
    let look = |stream_class, class| match meaning.has_wholes(stream_class, class) {
        true => Look::Whole,
        false => Look::Ends,
    };
    let inner = source.survey(&look, &mut |seen| match seen {
        Seen::Event(event) => see(event.stream, event.time, meaning.end_of(event)),
        Seen::Ends { stream, first, last, .. } => see(stream, first, last),
        Seen::Times { stream, times, .. } => {
            times.iter().for_each(|time| see(stream, *time, *time))
        }
        Seen::Written { .. } => {}
    });
    for group in &opened.groups {
        let traces = source.parts().get(group.traces.clone()).unwrap_or_default();
        let mut formats: Vec<&str> = traces.iter().map(|trace| trace.source.format()).collect();
        formats.dedup();
        // Packets may begin earlier and end later.
        let of_events = || {
            extents.iter().filter(|(of, _)| group.streams.contains(of)).map(|(_, extent)| extent)
        };
        let intervals = || traces.iter().map(|trace| trace.source.interval());
        let begin = of_events().filter_map(Extent::begin).min();
        let begin = begin.or_else(|| intervals().filter_map(|of| of.begin).min());
        let end = of_events().filter_map(Extent::end).max();
        let end = end.or_else(|| intervals().filter_map(|of| of.end).max());
        let lost = |loss: &Loss| group.streams.contains(&loss.stream.0) && loss.count != Some(0);
        let all = source.damage().iter().chain(&inner);
        let damaged = all.map(|damage| opened.label_of_file(&damage.file));
        let clock = &group.clock;
        rows.row(&[
            Cell::Text(&group.label),
            Cell::Text(&formats.join(", ")),
            begin.into(),
            end.into(),
            Cell::Int(group.streams.len() as i64),
            Cell::Int(damaged.into_iter().any(|label| label == group.label).into()),
            Cell::Int(source.losses().iter().any(lost).into()),
            clock.name.as_deref().into(),
            clock.relation().into(),
            clock.offset_ns.map_or(Cell::Null, Cell::Int),
            clock.error_ns().into(),
        ])?;
    }
    ControlFlow::Continue(())
}

fn stream_rows(opened: &Opened, rows: &mut Rows<'_>) -> ControlFlow<()> {
    for (index, stream) in opened.recording.streams.iter().enumerate() {
        rows.row(&[
            Cell::Text(opened.label_of(StreamIndex(index as u32))),
            Cell::Int(index as i64),
            Cell::Text(&stream.name),
            stream.cpu.map(|cpu| cpu.0).into(),
            Cell::Int(stream.packets as i64),
            Cell::Int(stream.bytes as i64),
        ])?;
    }
    ControlFlow::Continue(())
}

fn packet_rows(opened: &Opened, rows: &mut Rows<'_>) -> ControlFlow<()> {
    opened.recording.source.packets(&mut |stream, number, packet, interval| {
        rows.row(&[
            Cell::Text(opened.label_of(stream)),
            Cell::Int(stream.0.into()),
            Cell::Int(number as i64),
            interval.begin.into(),
            interval.end.into(),
            packet.cpu.map(|cpu| cpu.0).into(),
            Cell::Int(packet.offset_bytes as i64),
            Cell::Int(packet.size_bytes as i64),
            Cell::Int(packet.content_bits as i64),
            packet.sequence.into(),
            packet.discarded.into(),
        ])
    })
}

fn loss_rows(opened: &Opened, rows: &mut Rows<'_>) -> ControlFlow<()> {
    for loss in opened.recording.source.losses() {
        rows.row(&[
            Cell::Text(opened.label_of(loss.stream)),
            Cell::Int(loss.stream.0.into()),
            Cell::Text(loss.cause.name()),
            loss.count.into(),
            loss.interval.begin.into(),
            loss.interval.end.into(),
        ])?;
    }
    ControlFlow::Continue(())
}

fn damage_rows(opened: &Opened, rows: &mut Rows<'_>) -> ControlFlow<()> {
    for damage in opened.recording.all_damage(opened.inner_damage()) {
        rows.row(&[
            Cell::Text(opened.label_of_file(&damage.file)),
            Cell::Text(&damage.file),
            Cell::Int(damage.begin_bytes as i64),
            Cell::Int(damage.end_bytes as i64),
            Cell::Text(&damage.reason.to_string()),
            damage.interval.begin.into(),
            damage.interval.end.into(),
        ])?;
    }
    ControlFlow::Continue(())
}

/// Count, first and last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub count: u64,
    pub first: Option<Nanos>,
    pub last: Option<Nanos>,
}

impl Tally {
    pub fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }
}

/// Events missing anywhere, or of disabled classes, may belong to any class, thread or CPU.
pub fn quality(opened: &Opened) -> Cell<'static> {
    let Recording { filtered, disabled, .. } = &opened.recording;
    let is_filtered = !filtered.is_empty() || !disabled.is_empty();
    Cell::Text(quality_of(opened, is_filtered).name())
}

/// Likewise for events of which the recorder may have dropped some.
fn quality_of(opened: &Opened, is_filtered: bool) -> Quality {
    let of_filter = if is_filtered { Quality::LowerBound } else { Quality::Exact };
    opened.gaps().of_count(Nanos(i64::MIN), Nanos(i64::MAX)).and(of_filter)
}

fn class_rows(opened: &Opened, rows: &mut Rows<'_>, damage: &mut Vec<Damage>) -> ControlFlow<()> {
    let source = &opened.recording.source;
    let trace = source.trace();
    let mut tallies: Vec<Vec<Tally>> = trace
        .stream_classes
        .iter()
        .map(|class| vec![Tally::default(); class.event_classes.len()])
        .collect();
    let parts: Vec<usize> = (0..opened.parts().len()).collect();
    let wanted = Wanted::times(trace);
    let request = ColumnRequest { parts: &parts, interval: Interval::default(), wanted: &wanted };
    damage.extend(source.columns(&request, &mut |batch| {
        let Some(of) = tallies.get_mut(batch.stream_class() as usize) else {
            return ControlFlow::Continue(());
        };
        for index in 0..batch.class_count() {
            let class = batch.class(index);
            class.times.iter().for_each(|&time| of[class.class as usize].add(time));
        }
        for index in 0..batch.row_count() {
            let event = batch.row(index);
            of[event.class_index as usize].add(event.time);
        }
        ControlFlow::Continue(())
    }));
    for (stream, class) in trace.stream_classes.iter().enumerate() {
        for (index, event) in class.event_classes.iter().enumerate() {
            let tally = tallies[stream][index];
            let Recording { filtered, disabled, .. } = &opened.recording;
            let is_filtered = filtered.contains(&event.name) || disabled.contains(&event.name);
            let quality = quality_of(opened, is_filtered);
            rows.row(&[
                Cell::Text(opened.label_of_class(stream as u32)),
                Cell::Text(&event.name),
                Cell::Int(event.id as i64),
                Cell::Int(stream as i64),
                Cell::Int(tally.count as i64),
                tally.first.into(),
                tally.last.into(),
                event.attribute(PHASE).into(),
                Cell::Text(quality.name()),
            ])?;
        }
    }
    ControlFlow::Continue(())
}
