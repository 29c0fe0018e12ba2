// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of traces queries have read: what was left out cost nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all cores.
#[derive(Debug, Default)]
pub struct Reads {
    packets: AtomicU64,
    rows: AtomicU64,
}

impl Reads {
    /// Adds runs of packets that are decoded, and rows that came out of some.
    pub fn add(&self, packets: usize, rows: usize) {
        // Nothing else is ordered by these sums.
        self.packets.fetch_add(packets as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Runs of packets and rows since this was asked last.
    pub fn take(&self) -> (u64, u64) {
        (self.packets.swap(0, Ordering::Relaxed), self.rows.swap(0, Ordering::Relaxed))
    }
}
