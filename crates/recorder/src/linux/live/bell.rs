// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakes a thread that waits for packets.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// One for each thread that waits.
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

    /// Wakes the thread if it waits or is about to. Never blocks: the descriptor does not.
    pub(super) fn ring(&self) {
        // Pair: the swap in `arm`. Whoever rings has changed something before; whoever armed
        // looks at it after. So either it is seen, or this is.
        if self.waits.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From now on a change rings. To be called before the last look at what may change.
    pub(super) fn arm(&self) {
        // What rang before is over.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        // Pair: the swap in `ring`.
        self.waits.swap(true, Ordering::SeqCst);
    }

    /// Readable when it rang.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
