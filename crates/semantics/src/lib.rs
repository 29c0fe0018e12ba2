// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What events mean.
//!
//! ```text
//! events ─ Facts ───► begin, end, send, receive, state, switch, wake-up …   what one event says
//!          Deriver ─► spans, flows, states                                  what two say together
//! ```

mod clock_errors;
mod derived;
mod deriver;
pub mod facts;
mod successions;

pub use clock_errors::ClockErrors;
pub use derived::{DerivedFlow, DerivedSink, DerivedSpan, SpanEnd, SpanStatus, StateInterval, Tag};
pub use deriver::{Deriver, Deriving, Known};
pub use successions::Successions;
