// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Relation of two clocks, from messages between them.
//!
//! ```text
//! theirs ──── send ────────── recv ───►      a message there:  f(send) <= recv
//!                 ╲         ╱                one back:         f(recv) >= send
//! ours   ────────── recv ─ send ──────►      f: their time to ours, a straight line
//! ```
//!
//! [`Crossings`] finds the messages with both ends; [`Observed`] holds the constraints that they give,
//! and [`Lines`] all lines that satisfy them.

mod crossings;
mod lines;

pub use crossings::{Crossing, Crossings};
pub use lines::{Lines, Observed, Unknown};
