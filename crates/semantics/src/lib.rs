// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meaning of events.
//!
//! ```text
//! events ─ Facts ───► begin, end, send, receive, state, switch, wakeup …    facts of single events
//!          Deriver ─► spans, flows, states, threads, CPUs                   derived from pairs of events
//!          KernelEvents ─► calls and results …                              kernel activity, with its values
//! ```

mod clock_errors;
mod contradictions;
mod derived;
mod deriver;
mod extent;
pub mod facts;
pub mod kernel;
mod simultaneous;
mod successions;
mod thread_orders;
mod timelines;

pub use clock_errors::ClockErrors;
pub use contradictions::{Contradiction, ContradictionKind, Contradictions};
pub use derived::{DerivedFlow, DerivedSink, DerivedSpan, SpanEnd, SpanStatus, StateInterval, Tag};
pub use deriver::{Deriver, Deriving, Known};
pub use extent::Extent;
pub use successions::Successions;
pub use timelines::{CpuInterval, Schedule, ThreadStateInterval};
