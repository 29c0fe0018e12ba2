// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds positions in a column of times.

use std::ops::Range;

use crate::column::{Column, Reading};
use crate::pixels::Scale;

/// Index of the first item of each bucket of time.
#[derive(Clone)]
pub struct Grid {
    /// Binary logarithm of the width of a bucket in nanoseconds.
    shift: u32,
    first: Column<u32>,
    /// Number of the first bucket.
    base: u64,
    /// For a growing column: number of evicted items, modulo 2^32, which its indices include.
    forgotten: Option<u32>,
}

impl Grid {
    /// From a column; `shift` of a hostile index may have any value.
    pub fn new(shift: u32, first: Column<u32>) -> Self {
        Self { shift: shift.min(63), first, base: 0, forgotten: None }
    }

    pub(crate) fn grown(shift: u32, first: Column<u32>, base: u64, forgotten: u32) -> Self {
        Self { shift, first, base, forgotten: Some(forgotten) }
    }

    /// Byte range in the file.
    pub fn place(&self) -> Option<Range<usize>> {
        self.first.place()
    }

    fn first(&self, firsts: &Reading<'_, u32>, bucket: usize) -> usize {
        let number = firsts.get(bucket);
        match self.forgotten {
            None => number as usize,
            // Fewer than 2^31 are kept: a larger difference means that the item was evicted.
            Some(forgotten) => (number.wrapping_sub(forgotten) as i32).max(0) as usize,
        }
    }

    /// Range of the first item, among `count` ones, that is not before a time.
    #[inline]
    fn range(&self, firsts: &Reading<'_, u32>, count: usize, time: i64) -> (usize, usize) {
        let Ok(time) = u64::try_from(time) else {
            return (0, 0);
        };
        let Some(bucket) = (time >> self.shift).checked_sub(self.base) else {
            return (0, 0);
        };
        let bucket = usize::try_from(bucket).unwrap_or(usize::MAX);
        if bucket >= firsts.len() {
            return (count, count);
        }
        let low = self.first(firsts, bucket).min(count);
        let next = bucket + 1;
        let end = if next < firsts.len() { self.first(firsts, next) } else { count };
        (low, end.clamp(low, count))
    }

    /// Number of these ascending times that are before the given one.
    ///
    /// Cost: a lookup, and a step for each halving of the number of items in the bucket.
    #[inline]
    pub fn before(&self, times: &Column<u64>, time: i64) -> usize {
        let (mut low, mut high) = self.range(&self.first.reading(), times.len(), time);
        let times = times.reading();
        while low < high {
            (low, high) = halved(&times, (low, high), time);
        }
        low
    }

    /// Like [`Grid::before`], for the begin and the end of each pixel.
    ///
    /// In a long column, each access is a cache miss, which takes a hundred times as long as the
    /// computation. Therefore several searches advance in lockstep: their accesses overlap.
    pub fn pixels(&self, times: &Column<u64>, scale: &Scale) -> Before {
        /// Searches at a time: their state stays in the L1 cache.
        const TOGETHER: usize = 512;
        let (asked, apart) = scale.edges();
        let (times, firsts) = (times.reading(), self.first.reading());
        let count = times.len();
        let mut found = Vec::with_capacity(asked.len());
        let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(TOGETHER);
        for asked in asked.chunks(TOGETHER) {
            ranges.clear();
            ranges.extend(asked.iter().map(|time| self.range(&firsts, count, *time)));
            let mut widest = ranges.iter().map(|(low, high)| high - low).max().unwrap_or(0);
            while widest > 0 {
                widest = 0;
                for (range, time) in ranges.iter_mut().zip(asked) {
                    if range.0 < range.1 {
                        *range = halved(&times, *range, *time);
                        widest = widest.max(range.1 - range.0);
                    }
                }
            }
            found.extend(ranges.iter().map(|(low, _)| *low));
        }
        Before { found, apart }
    }

    /// The exponent for this number of items up to a time: some 64 per bucket.
    pub fn shift_for(count: usize, end: u64) -> u32 {
        let buckets = (count as u64 / 64).max(1);
        (0..63).find(|shift| end >> shift < buckets).unwrap_or(63)
    }
}

/// A step of a binary search on a range that is not empty. Branch-free, as a branch would be
/// unpredictable.
#[inline]
fn halved(times: &Reading<'_, u64>, (low, high): (usize, usize), time: i64) -> (usize, usize) {
    let middle = low + (high - low) / 2;
    let is_before = times.get(middle) < time as u64;
    (if is_before { middle + 1 } else { low }, if is_before { high } else { middle })
}

/// Number of items before the begin and the end of pixels.
pub struct Before {
    found: Vec<usize>,
    /// Distance from the begin of a pixel to that of the next, which may be its end.
    apart: usize,
}

impl Before {
    /// For a pixel.
    #[inline]
    pub fn of(&self, pixel: u32) -> (usize, usize) {
        let at = pixel as usize * self.apart;
        let from = self.found.get(at).copied().unwrap_or(0);
        (from, self.found.get(at + 1).copied().unwrap_or(0).max(from))
    }
}
