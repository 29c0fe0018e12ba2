// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lists of a session, to which numbers refer.

use serde::{Deserialize, Serialize};

/// Name of a quality by number: `exact`, `lower_bound`, `unknown`.
#[must_use]
pub fn quality_name(quality: u8) -> &'static str {
    ["exact", "lower_bound"].get(quality as usize).copied().unwrap_or("unknown")
}

/// All lists. Times are nanoseconds since the origin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Begin of the session on the timeline of the trace.
    pub origin: i64,
    /// Begin of the kept time range; 0 except in growing sessions.
    #[serde(default)]
    pub begin: u64,
    /// End of the session.
    pub end: u64,
    /// The opened recordings.
    pub recordings: Vec<Recorded>,
    /// Lanes.
    pub lanes: Vec<Lane>,
    /// Rows of intervals, by lane.
    pub rows: Vec<Row>,
    /// Classes of events.
    pub classes: Vec<Class>,
    /// Processes; the first one is for events of an unknown process.
    pub applications: Vec<Application>,
    /// Threads; the first one is for events of an unknown thread.
    pub threads: Vec<Thread>,
    /// Names of spans and states.
    pub names: Vec<String>,
    /// Kinds of spans; they have the first names.
    pub span_kinds: Vec<SpanKind>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// Counters, one for each owner.
    pub counters: Vec<Counter>,
    /// Losses.
    pub losses: Vec<Lost>,
    /// Damage.
    pub damage: Vec<Missing>,
    /// Contradictions between switches: the first of them.
    #[serde(default)]
    pub contradictions: Vec<Contradictory>,
    /// Number of all contradictions.
    #[serde(default)]
    pub contradiction_count: u64,
    /// Classes of which the recorder dropped some events, in order.
    #[serde(default)]
    pub filtered: Vec<String>,
    /// Number of span ends without a begin.
    pub orphans: u64,
    /// Threads and CPUs whose instructions were recorded.
    #[serde(default)]
    pub flows: Vec<FlowLane>,
}

/// Lanes and counters for the instructions of a thread or CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowLane {
    /// Lane of its calls.
    pub lane: u32,
    /// Counter of its instructions over time.
    pub counter: u32,
}

/// A recording that was opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Path as given.
    pub path: String,
    /// Its format.
    pub format: String,
    /// Number of events.
    pub events: u64,
    /// Quality of that number.
    pub quality: String,
    /// Ticks per second of its clock, if all its streams have the same.
    #[serde(default)]
    pub ticks_hz: Option<u64>,
}

/// Kind of object that a lane is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// A CPU.
    Cpu,
    /// A process: the lanes of its threads are below.
    Process,
    /// A thread.
    #[default]
    Thread,
    /// The source that a stream represents.
    Component,
    /// A counter.
    Counter,
    /// Packets of a network.
    Packets,
}

/// A lane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Kind of object.
    pub kind: LaneKind,
    /// Its name.
    pub name: String,
    /// The lane above it in the hierarchy.
    pub parent: Option<u32>,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its thread.
    pub tid: Option<u32>,
    /// Number of events.
    pub events: u64,
    /// Intervals in which events were lost: disjoint, ascending, inclusive.
    pub lost: Vec<(u64, u64)>,
    /// Intervals in which events are damaged.
    pub damaged: Vec<(u64, u64)>,
}

/// Contents of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// CPU occupancy: names are processes.
    Running,
    /// Process of the events of a CPU, from its first to its last event before those of another: it need
    /// not have run all the time in between. Names are processes.
    Seen,
    /// States of a thread: running, waiting for a CPU, sleeping. Names are states.
    #[serde(rename = "thread_states")]
    ThreadStates,
    /// Spans.
    #[default]
    Spans,
    /// States of a machine.
    States,
    /// Call stack samples: intervals of length 0. Names are events.
    Samples,
    /// Functions on the stacks of samples, one below the other. If two consecutive samples have the same
    /// function, it is one interval; the actual time of the call is not known more precisely.
    Stacks,
    /// Wakeups of a thread, from the wakeup until it came to a CPU: threads are the wakers, and names are
    /// numbers of [`WakerKind`]. Not drawn as a row.
    Wakes,
}

/// Kind of waker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakerKind {
    /// A thread.
    Thread,
    /// An interrupt, or an idle CPU.
    Interrupt,
    /// The trace does not contain it.
    Unknown,
}

impl WakerKind {
    /// All kinds, by number.
    pub const ALL: [Self; 3] = [Self::Thread, Self::Interrupt, Self::Unknown];

    /// Name of the kind, as in the table `thread_states`.
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
    /// Whether its names are processes: CPU occupancy, or processes of events.
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
    /// Contents.
    pub kind: RowKind,
    /// Name of its machine, or the source of its contents.
    pub name: Option<String>,
    /// Nesting depth of spans.
    pub depth: u32,
    /// Names with the most time.
    pub main: Vec<u32>,
    /// For the deepest possible row: number of intervals that had room on none, and are left out.
    #[serde(default)]
    pub left_out: u64,
}

/// A class of events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its full name.
    pub name: String,
    /// Number of events.
    pub count: u64,
    /// Time of the first event.
    pub first: Option<u64>,
    /// Time of the last event.
    pub last: Option<u64>,
    /// Whether its events send messages.
    pub sends: bool,
    /// Whether its events receive messages.
    pub receives: bool,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Process id.
    pub pid: Option<u32>,
    /// Number of events.
    pub events: u64,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Process id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its process.
    pub application: u32,
    /// Its lane, if it has one.
    pub lane: Option<u32>,
}

/// A kind of span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanKind {
    /// Its name.
    pub name: String,
    /// Number of spans.
    pub count: u64,
    /// Fields that form the key.
    pub keys: Vec<String>,
    /// Budgets in the schema.
    pub budgets: Vec<Budget>,
}

/// A budget for the duration of spans of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Text in the schema, without the name of the span: `p99 < 5 ms`.
    pub text: String,
    /// The limited statistic, as named in the schema: `p99`.
    pub number: String,
    /// Limit in nanoseconds; `None` if it is in cycles of an unknown clock.
    pub limit_ns: Option<f64>,
    /// Whether a value equal to the limit is allowed.
    pub is_inclusive: bool,
}

impl Budget {
    /// Whether a value in nanoseconds keeps the budget, if that can be decided.
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
    /// Number of messages with both ends.
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
    /// Their lane.
    pub lane: Option<u32>,
    /// Begin of the interval.
    pub begin: u64,
    /// End of the interval.
    pub end: u64,
    /// Number of events.
    pub count: Option<u64>,
    /// Cause.
    pub cause: String,
}

/// An interval of a CPU in which its switches contradict others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contradictory {
    /// Lane of the CPU.
    pub lane: Option<u32>,
    /// Begin.
    pub begin: u64,
    /// End.
    pub end: u64,
    /// Description of the contradiction.
    pub reason: String,
}

/// Bytes that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// Their lane.
    pub lane: Option<u32>,
    /// The file.
    pub file: String,
    /// First byte.
    pub begin_bytes: u64,
    /// The byte after the last.
    pub end_bytes: u64,
    /// Reason.
    pub reason: String,
    /// Begin of the interval.
    pub begin: Option<u64>,
    /// End of the interval.
    pub end: Option<u64>,
}
