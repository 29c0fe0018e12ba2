// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts how much of the traces queries have read, which shows the effect of pruning.

use std::sync::atomic::{AtomicU64, Ordering};

/// Totals of all cores.
#[derive(Debug, Default)]
pub struct Reads {
    packets: AtomicU64,
    rows: AtomicU64,
}

impl Reads {
    /// Adds decoded runs of packets, and rows that they produced.
    pub fn add(&self, packets: usize, rows: usize) {
        // Nothing else is ordered by these sums.
        self.packets.fetch_add(packets as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Runs of packets and rows since the last call.
    pub fn take(&self) -> (u64, u64) {
        (self.packets.swap(0, Ordering::Relaxed), self.rows.swap(0, Ordering::Relaxed))
    }
}
