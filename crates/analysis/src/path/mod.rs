// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Critical path: why something took as long as it did.
//!
//! Walks from the end of a span back to its begin. While the thread worked, the time is its own; where it
//! waited, the time is that of the thread that ended the wait, for as long as the wait lasted, and so on.
//!
//! ```text
//! shop    ──work──┐                                ┌──work──      the span
//!                 wait for the lock  · · · · · · · ┘
//! desk         ───holds the lock──┐       ┌──────┘ release
//!                                 read from disk
//! path    ──work───────────desk───desk: read─desk────work──
//! ```
//!
//! Knowledge about a thread: with CPU switches, when it ran, was runnable and was blocked, and its wakers
//! ([`Did`]); without them, only waits whose end is known to have been caused by another thread
//! ([`Wait`]): a lock that was released, a message that was sent.
//!
//! Kernels over plain numbers: threads and names are indices of the caller. Input may be in any order and
//! contradict itself; the segments of a path always cover the span, each part of it once, and cycles of
//! waits end where they would start over.

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
