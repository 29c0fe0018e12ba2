// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What events mean.
//!
//! ```text
//! events ─ Facts ───► begin, end, send, receive, state, switch, wake-up …   what one event says
//!          Deriver ─► spans, flows, states, threads, processors             what two say together
//!          KernelEvents ─► calls and their values …              what a kernel did, with its numbers
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
