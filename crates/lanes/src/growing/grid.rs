// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A grid of time over a column that grows: its buckets get wider with the time that it covers.

use super::pieces::Pieces;
use crate::grid::Grid;

/// Nanoseconds of the first buckets, as a power of two.
const NARROWEST: u32 = 10;
/// Items to a bucket, at least on average.
const ITEMS: u64 = 16;
/// Buckets that any grid may have.
const BUCKETS_MIN: u64 = 64;

/// See the module's description.
pub struct GrowingGrid {
    shift: u32,
    /// The first bucket there is.
    base: u64,
    /// Number of the first item of each bucket, those forgotten included, modulo 2^32.
    first: Pieces<u32>,
}

impl Default for GrowingGrid {
    fn default() -> Self {
        Self { shift: NARROWEST, base: 0, first: Pieces::default() }
    }
}

impl GrowingGrid {
    /// An item, of which `forgotten` plus `count` came before: `count` are left.
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

    /// Two buckets become one.
    fn widen(&mut self) {
        let (base, before) = (self.base, std::mem::take(&mut self.first));
        self.shift += 1;
        self.base = base >> 1;
        let last = base + (before.len() as u64).saturating_sub(1);
        for bucket in self.base..=last >> 1 {
            // Of the first there may be the second half only: nothing was before that.
            let of = (bucket << 1).max(base) - base;
            self.first.push(before.get(of as usize));
        }
    }

    /// Nothing before a time is asked any more.
    pub fn forget(&mut self, time: u64) {
        let old = (time >> self.shift).saturating_sub(self.base);
        // One stays, so that the base is one that was.
        let old = old.min((self.first.len() as u64).saturating_sub(1));
        self.first.forget(old as usize);
        self.base += old;
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.first.bytes()
    }

    /// As it is now.
    pub fn grid(&self, forgotten: usize) -> Grid {
        Grid::grown(self.shift, self.first.column(), self.base, forgotten as u32)
    }
}
