// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Retains the newest packets, and cuts windows of time out of them.
//!
//! ```text
//! packets ─▶ Retention (bounded by time and bytes) ─ Windows: from, to ─▶ cut ─▶ RingStream::seal
//! ```
//!
//! Pure: the packets come from a session; `linux/keep` writes the cut parts to a recording.

mod cut;
mod plans;
mod retention;
mod windows;

pub use cut::{Cut, cut};
pub use plans::Plans;
pub use retention::{Held, HeldStream, Retention, split};
pub use windows::{Next, Windows};
