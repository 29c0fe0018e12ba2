// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why something took as long as it did: its critical path.
//!
//! From the end of a span back to its beginning: as long as its thread worked, the time is its
//! own; where it waited, the time is that of whoever ended the wait, for as long as the wait
//! lasted, and so on.
//!
//! ```text
//! shop    ──work──┐                                ┌──work──      the span
//!                 wait for the lock  · · · · · · · ┘
//! desk         ───holds the lock──┐       ┌──────┘ release
//!                                 read from disk
//! path    ──work───────────desk───desk: read─desk────work──
//! ```
//!
//! What is known of a thread: with switches of processors, when it ran, was ready and was
//! blocked, and who woke it ([`Did`]); without, only its waits whose end somebody else is known to have
//! caused ([`Wait`]): a lock that was released, a message that was sent.
//!
//! Kernels over plain numbers: threads and names are indices of the caller. Input may be of any
//! order and contradict itself; the segments of a path always cover the span, each stretch of it
//! once, and waits that go round in a circle end where they would begin again.

mod labels;
mod scene;
#[cfg(test)]
mod tests;
mod threads;
mod waits;
mod walk;

pub use scene::{Busy, Message, Named, Occupant, Occupied, Scene, SceneBuilder, WokenBy};
pub use threads::{Did, State};
pub use waits::{Hold, Wait, Waiting, causes};
pub use walk::{Doing, Path, Segment, Share, shares};
