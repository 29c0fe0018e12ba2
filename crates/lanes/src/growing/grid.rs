// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A grid of time over a growing column: its buckets widen with the covered time.

use super::pieces::Pieces;
use crate::grid::Grid;

/// Binary logarithm of the width of the first buckets in nanoseconds.
const NARROWEST: u32 = 10;
/// Minimum average number of items per bucket.
const ITEMS: u64 = 16;
/// Number of buckets that any grid may have.
const BUCKETS_MIN: u64 = 64;

/// See the module documentation.
pub struct GrowingGrid {
    shift: u32,
    /// Number of the first bucket.
    base: u64,
    /// Index of the first item of each bucket, including evicted ones, modulo 2^32.
    first: Pieces<u32>,
}

impl Default for GrowingGrid {
    fn default() -> Self {
        Self { shift: NARROWEST, base: 0, first: Pieces::default() }
    }
}

impl GrowingGrid {
    /// Adds an item that `forgotten` plus `count` others precede, of which `count` remain.
    pub fn push(&mut self, time: u64, forgotten: usize, count: usize) {
        if self.first.len() == 0 {
            self.base = time >> self.shift;
        }
        let most = BUCKETS_MIN + count as u64 / ITEMS;
        while (time >> self.shift).saturating_sub(self.base) >= most && self.shift < 63 {
            self.widen();
        }
        let number = (forgotten + count) as u32;
        while self.base + (self.first.len() as u64) <= time >> self.shift {
            self.first.push(number);
        }
    }

    /// Joins pairs of buckets.
    fn widen(&mut self) {
        let (base, before) = (self.base, std::mem::take(&mut self.first));
        self.shift += 1;
        self.base = base >> 1;
        let last = base + (before.len() as u64).saturating_sub(1);
        for bucket in self.base..=last >> 1 {
            // The first pair may lack its first half: nothing was before that.
            let of = (bucket << 1).max(base) - base;
            self.first.push(before.get(of as usize));
        }
    }

    /// Evicts buckets before a time.
    pub fn forget(&mut self, time: u64) {
        let old = (time >> self.shift).saturating_sub(self.base);
        // One is kept, so that the base is that of an existing bucket.
        let old = old.min((self.first.len() as u64).saturating_sub(1));
        self.first.forget(old as usize);
        self.base += old;
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.first.bytes()
    }

    /// Snapshot of the grid.
    pub fn grid(&self, forgotten: usize) -> Grid {
        Grid::grown(self.shift, self.first.column(), self.base, forgotten as u32)
    }
}
