// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live recordings (`spec/live.md`): the server in the recorder, and its clients.
//!
//! ```text
//! output ─► server: Window ─ bell ─► serve (a thread for each client) ─► wire
//!                      └────────────► Follower (in this process)
//! receive ◄─ wire
//! ```
//!
//! The recorder's thread copies a packet into the window and rings; both take a bounded time
//! whatever clients do. It holds no socket and never waits for a client except once, at the very end, after
//! the programs have been drained.

mod bell;
mod connection;
mod follower;
mod let_go;
mod pace;
mod receive;
mod received_clock;
mod received_files;
mod receiver;
mod recount;
mod secure;
mod serve;
mod server;
mod tls;
mod wire;

pub use follower::Follower;
pub use lateralis_live::{Count, Folder, Item, bfscope};
pub use let_go::LetGo;
pub use receive::{ReceiveFrom, ReceiveOptions, ReceiveProgress, ReceiveSummary, receive};
pub(super) use server::LiveServer;

/// From now on termination signals do not end this process, but are reported by [`is_asked_to_end`].
pub fn notice_endings() {
    super::signals::catch_endings();
}

/// Whether this process has received a termination signal since [`receive`] or [`notice_endings`] was first
/// called.
#[must_use]
pub fn is_asked_to_end() -> bool {
    super::signals::interrupts() + super::signals::terminations() > 0
}
