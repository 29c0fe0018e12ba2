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
//! whatever clients do. It holds no socket and waits for nobody but once, at the very end, when
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

/// From now on whoever asks this process to end leaves it to [`is_asked_to_end`] to say so.
pub fn notice_endings() {
    super::signals::catch_endings();
}

/// Whether somebody has asked this process to end since [`receive`] or [`notice_endings`] was called
/// first.
#[must_use]
pub fn is_asked_to_end() -> bool {
    super::signals::interrupts() + super::signals::terminations() > 0
}
