// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How two clocks relate, by what each saw of the other.
//!
//! ```text
//! theirs ──── send ────────── recv ───►      a message there:  f(send) <= recv
//!                 ╲         ╱                one back:         f(recv) >= send
//! ours   ────────── recv ─ send ──────►      f: their time to ours, a straight line
//! ```
//!
//! [`Crossings`] finds the messages that both saw; [`Observed`] holds what they say of the line,
//! and [`Lines`] all lines that contradict none of it.

mod crossings;
mod lines;

pub use crossings::{Crossing, Crossings};
pub use lines::{Lines, Observed, Unknown};
