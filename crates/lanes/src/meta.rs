// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lists of a session: what its numbers stand for.

use serde::{Deserialize, Serialize};

/// Of a quality as a number: `exact`, `lower_bound`, `unknown`.
#[must_use]
pub fn quality_name(quality: u8) -> &'static str {
    ["exact", "lower_bound"].get(quality as usize).copied().unwrap_or("unknown")
}

/// All lists. Times are nanoseconds since the origin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The begin of the session on the time line of the trace.
    pub origin: i64,
    /// What was before is not here any more; 0 but in sessions that grow.
    #[serde(default)]
    pub begin: u64,
    /// Its end.
    pub end: u64,
    /// What was opened.
    pub recordings: Vec<Recorded>,
    /// Lanes.
    pub lanes: Vec<Lane>,
    /// Rows of intervals, by lane.
    pub rows: Vec<Row>,
    /// Classes of events.
    pub classes: Vec<Class>,
    /// Processes; the first is that of events of which nobody knows any.
    pub applications: Vec<Application>,
    /// Threads; the first likewise.
    pub threads: Vec<Thread>,
    /// Names of spans and states.
    pub names: Vec<String>,
    /// Kinds of spans; their names are the first ones.
    pub span_kinds: Vec<SpanKind>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// Counters, one for each thing that has one.
    pub counters: Vec<Counter>,
    /// Losses.
    pub losses: Vec<Lost>,
    /// Damage.
    pub damage: Vec<Missing>,
    /// Where switches contradict each other: the first of them.
    #[serde(default)]
    pub contradictions: Vec<Contradictory>,
    /// Number of all of them.
    #[serde(default)]
    pub contradiction_count: u64,
    /// Classes of which the recorder left out some events, in order.
    #[serde(default)]
    pub filtered: Vec<String>,
    /// Ends of spans that never began.
    pub orphans: u64,
    /// Threads and processors whose instructions were recorded.
    #[serde(default)]
    pub flows: Vec<FlowLane>,
}

/// Where the instructions of a thread or processor stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowLane {
    /// The lane of its calls.
    pub lane: u32,
    /// The counter of its instructions along time.
    pub counter: u32,
}

/// A recording that was opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// As it was given.
    pub path: String,
    /// Its format.
    pub format: String,
    /// Its events.
    pub events: u64,
    /// How far that number is to be trusted.
    pub quality: String,
    /// Ticks per second of its clock, where all its streams have one.
    #[serde(default)]
    pub ticks_hz: Option<u64>,
}

/// What a lane is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// A processor.
    Cpu,
    /// A process: its threads are below.
    Process,
    /// A thread.
    #[default]
    Thread,
    /// Whatever a stream stands for.
    Component,
    /// A counter.
    Counter,
    /// Packets of a network.
    Packets,
}

/// A lane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// What it is of.
    pub kind: LaneKind,
    /// Its name.
    pub name: String,
    /// The lane it is below.
    pub parent: Option<u32>,
    /// Its processor.
    pub cpu: Option<u32>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its thread.
    pub tid: Option<u32>,
    /// Its events.
    pub events: u64,
    /// Where events of it were lost: disjoint stretches that ascend, both ends included.
    pub lost: Vec<(u64, u64)>,
    /// Where they cannot be read.
    pub damaged: Vec<(u64, u64)>,
}

/// What a row shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// Who ran: names are applications.
    Running,
    /// Whose events come from there, from the first to the last before somebody else's: it need not have
    /// run all the time in between. Names are applications.
    Seen,
    /// What a thread did: running, waiting for a processor, sleeping. Names are states.
    #[serde(rename = "thread_states")]
    ThreadStates,
    /// Spans.
    #[default]
    Spans,
    /// States of a machine.
    States,
    /// Samples of a call stack: one of no length each. Names are of events.
    Samples,
    /// Functions that samples found on a stack, one below the other. Where two samples that follow each other
    /// found the same one it is one interval, and how long it was there is not known any better.
    Stacks,
    /// Wake-ups of a thread, from the wake-up to when it came to a processor: threads are those that woke it,
    /// and names are numbers of [`WakerKind`]. Not drawn as a row.
    Wakes,
}

/// What woke a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakerKind {
    /// A thread.
    Thread,
    /// An interrupt, or an idle processor.
    Interrupt,
    /// The trace does not say.
    Unknown,
}

impl WakerKind {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Thread, Self::Interrupt, Self::Unknown];

    /// The word for it, as in the table `thread_states`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Interrupt => "interrupt",
            Self::Unknown => "unknown",
        }
    }
}

impl RowKind {
    /// Whether its names are applications: of who ran, or was seen.
    #[must_use]
    pub fn is_of_applications(self) -> bool {
        matches!(self, Self::Running | Self::Seen)
    }

    /// Whether it is drawn above the events of its lane.
    #[must_use]
    pub fn is_before_events(self) -> bool {
        self.is_of_applications() || self == Self::ThreadStates
    }
}

/// A row of intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its lane.
    pub lane: u32,
    /// What it shows.
    pub kind: RowKind,
    /// Its machine, or how it is known.
    pub name: Option<String>,
    /// How deep spans are nested.
    pub depth: u32,
    /// Names that take the most time.
    pub main: Vec<u32>,
    /// Of the deepest row that there may be: intervals that had room on none, and are not here.
    #[serde(default)]
    pub left_out: u64,
}

/// A class of events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its full name.
    pub name: String,
    /// Its events.
    pub count: u64,
    /// When the first happened.
    pub first: Option<u64>,
    /// When the last did.
    pub last: Option<u64>,
    /// Whether it sends messages.
    pub sends: bool,
    /// Whether it receives them.
    pub receives: bool,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: Option<u32>,
    /// Its events.
    pub events: u64,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: Option<u32>,
    /// Its number.
    pub tid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its application.
    pub application: u32,
    /// Its lane, where it has one.
    pub lane: Option<u32>,
}

/// A kind of span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanKind {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u64,
    /// The fields that tell one from another.
    pub keys: Vec<String>,
    /// What its schema promises.
    pub budgets: Vec<Budget>,
}

/// A promise about how long spans of a kind take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// As the schema says it, without the name of the span: `p99 < 5 ms`.
    pub text: String,
    /// Which number of their durations, in the schema's word: `p99`.
    pub number: String,
    /// In nanoseconds; none where it is in cycles of a clock that nobody knows.
    pub limit_ns: Option<f64>,
    /// Whether the limit itself keeps it.
    pub is_inclusive: bool,
}

impl Budget {
    /// Whether so many nanoseconds keep it, where that can be told.
    #[must_use]
    pub fn is_kept_by(&self, nanos: f64) -> Option<bool> {
        self.limit_ns.map(|limit| if self.is_inclusive { nanos <= limit } else { nanos < limit })
    }
}

/// A channel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Messages with both ends.
    pub count: u64,
}

/// A counter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its lane.
    pub lane: u32,
}

/// Events that were not recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Of which lane.
    pub lane: Option<u32>,
    /// From when.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// How many.
    pub count: Option<u64>,
    /// Why.
    pub cause: String,
}

/// An interval of a processor in which its switches contradict others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contradictory {
    /// Lane of the processor.
    pub lane: Option<u32>,
    /// Since when.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// What contradicts what.
    pub reason: String,
}

/// Bytes that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// Of which lane.
    pub lane: Option<u32>,
    /// In which file.
    pub file: String,
    /// First byte.
    pub begin_bytes: u64,
    /// The one behind the last.
    pub end_bytes: u64,
    /// What is wrong.
    pub reason: String,
    /// From when.
    pub begin: Option<u64>,
    /// Until when.
    pub end: Option<u64>,
}
