// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakes a thread that waits for packets.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// One for each waiting thread.
#[derive(Debug)]
pub(super) struct Bell {
    event: OwnedFd,
    waits: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> std::io::Result<Bell> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { event, waits: AtomicBool::new(false) })
    }

    /// Wakes the thread if it waits or is about to. Never blocks, because the descriptor does not.
    pub(super) fn ring(&self) {
        // Pair: the swap in `arm`. The ringing thread has changed the data before this; the arming thread
        // reads them after its swap. So either it sees the change, or this sees `waits`.
        if self.waits.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From now on a change rings. Must be called before the last check of the data.
    pub(super) fn arm(&self) {
        // Discards earlier rings.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        // Pair: the swap in `ring`.
        self.waits.swap(true, Ordering::SeqCst);
    }

    /// Readable after a ring.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
