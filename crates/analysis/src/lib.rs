// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses of a trace: counts and rates, spans and their durations, scheduling, waits and their causes,
//! missing data; differences between traces; and event filters.
//!
//! Kernels over plain numbers: the reader of a trace extracts times and keys, and passes them one by one
//! or as slices. Only [`filter`] reads events themselves. Nothing here knows formats or files. No I/O, no
//! clock, no threads.

mod censored;
mod certainty;
mod contradictions;
mod credits;
pub mod diff;
mod durations;
mod early;
mod early_ends;
pub mod filter;
mod flows;
mod gaps;
mod histogram;
mod in_flight;
mod kernel_time;
mod keyless;
mod levels;
mod losses;
mod messages;
mod nesting;
mod network;
mod numbering;
mod occupancy;
pub mod path;
pub mod relate;
mod rhythm;
mod scheduling;
mod series;
mod span_kind;
mod span_pairer;
mod span_table;
mod spans;
mod states;
mod tally;
mod thread_states;
mod thread_times;
pub mod tracepoints;
mod utilisation;
mod wholes;

pub use censored::Censored;
pub use certainty::{Joined, SpanCertainty};
pub use contradictions::{Contradiction, ContradictionKind};
pub use durations::{Distribution, Durations, mean, stddev};
pub use early::{Arrival, Early};
pub use flows::{Flow, Flows};
pub use gaps::Gaps;
pub use histogram::{Bucket, Histogram};
pub use in_flight::{InFlight, Level as InFlightLevel};
pub use kernel_time::{Call, KernelTime};
pub use levels::{Level, Point};
pub use losses::{LossTotal, total_by_cause, total_by_stream};
pub use messages::{End, Matcher, Message};
pub use nesting::Nesting;
pub use network::{Network, Passage, Tied, Touch};
pub use numbering::Numbering;
pub use occupancy::{Occupant, Stretch, Switch};
pub use rhythm::{Rhythm, Silence};
pub use scheduling::{ScheduleSums, Scheduling};
pub use series::Series;
pub use span_kind::{Group, GroupKey, OfThread, SpanKind, SpanLimits};
pub use span_pairer::{PairedSpan, SpanInRun, SpanPairer, SpanSink, ThreadEdge};
pub use span_table::{SpanQuality, SpanTable};
pub use spans::{Edge, NOBODY, Pairer, Pairs, Side, Span, pair};
pub use states::{InState, States};
pub use tally::Tally;
pub use thread_states::{GoesInto, ThreadInterval, ThreadState};
pub use thread_times::{LongestWait, StateTime, ThreadTimes, ThreadTotals};
pub use utilisation::{CpuTime, ThreadTime, Utilisation};
pub use wholes::{Ended, Wholes};
