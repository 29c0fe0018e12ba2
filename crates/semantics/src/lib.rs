// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What events mean.
//!
//! ```text
//! events ─ facts ─► begin, end, send, receive, state, switch, wake-up …   what one event says
//! ```

mod clock_errors;
pub mod facts;
mod successions;

pub use clock_errors::ClockErrors;
pub use successions::Successions;
