// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that are kept for a while, and windows of time that are cut out of them.
//!
//! ```text
//! packets ─▶ Retention (bounded by time and bytes) ─ Windows: from, to ─▶ cut ─▶ RingStream::seal
//! ```
//!
//! Pure: the packets come from a session, what is cut goes to a recording in `linux/keep`.

mod cut;
mod plans;
mod retention;
mod windows;

pub use cut::{Cut, cut};
pub use plans::Plans;
pub use retention::{Held, HeldStream, Retention, split};
pub use windows::{Next, Windows};
