// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sums over time, in a bounded number of equal buckets.

use lateralis_units::Nanos;

/// Time cut into equal buckets from a begin on. If a time is beyond the last bucket, pairs of buckets are
/// joined and the width doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub begin: Nanos,
    /// Width is `1 << shift` nanoseconds.
    shift: u32,
    limit: usize,
}

impl Grid {
    pub fn new(begin: Nanos, limit: usize) -> Self {
        Self { begin, shift: 0, limit: limit.max(2) }
    }

    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// Nanoseconds since the begin, 0 before it.
    pub fn offset(&self, time: Nanos) -> u64 {
        // The difference of two i64 fits a u64.
        if time <= self.begin { 0 } else { time.0.wrapping_sub(self.begin.0) as u64 }
    }

    pub fn index(&self, offset: u64) -> usize {
        (offset >> self.shift) as usize
    }

    pub fn begin_of(&self, index: usize) -> Nanos {
        let offset = (index as u128) << self.shift;
        Nanos::nearest(i128::from(self.begin.0) + offset as i128)
    }

    /// Widens the buckets until one contains `offset`: `join` merges pairs.
    pub fn reach(&mut self, offset: u64, mut join: impl FnMut()) {
        while offset >> self.shift >= self.limit as u64 {
            self.shift += 1;
            join();
        }
    }
}

/// A sum in each of a bounded number of equal buckets of time.
///
/// Memory: eight bytes per bucket. The width is the smallest power of two of nanoseconds with which the
/// buckets suffice.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    grid: Grid,
    values: Vec<u64>,
}

impl Default for Series {
    fn default() -> Self {
        Self::new(Nanos(0), 2)
    }
}

impl Series {
    /// Starts at `begin`, with at most `buckets` buckets (at least 2).
    #[must_use]
    pub fn new(begin: Nanos, buckets: usize) -> Self {
        Self { grid: Grid::new(begin, buckets), values: Vec::new() }
    }

    fn reach(&mut self, offset: u64) -> usize {
        let values = &mut self.values;
        self.grid.reach(offset, || {
            *values = values.chunks(2).map(|pair| pair.iter().sum()).collect();
        });
        let index = self.grid.index(offset);
        if index >= values.len() {
            values.resize(index + 1, 0);
        }
        index
    }

    /// Adds to the bucket of a time; times before the begin count in the first.
    pub fn add(&mut self, time: Nanos, amount: u64) {
        let index = self.reach(self.grid.offset(time));
        self.values[index] += amount;
    }

    /// Adds to each bucket its part of the nanoseconds of `from`..`until`.
    ///
    /// Cost: a step for each bucket touched.
    pub fn add_stretch(&mut self, from: Nanos, until: Nanos) {
        let (mut at, end) = (self.grid.offset(from), self.grid.offset(until));
        if at >= end {
            return;
        }
        self.reach(end - 1);
        while at < end {
            let index = self.grid.index(at);
            let next = ((index as u128 + 1) * u128::from(self.grid.width())).min(u128::from(end));
            self.values[index] = self.values[index].saturating_add(next as u64 - at);
            at = next as u64;
        }
    }

    /// Width of a bucket in nanoseconds.
    #[must_use]
    pub fn width_nanos(&self) -> u64 {
        self.grid.width()
    }

    /// Start time of a bucket.
    #[must_use]
    pub fn begin_of(&self, index: usize) -> Nanos {
        self.grid.begin_of(index)
    }

    /// Sums up to the last bucket that has any.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_widen_by_two() {
        let mut series = Series::new(Nanos(100), 4);
        [100, 101, 102, 103].into_iter().for_each(|time| series.add(Nanos(time), 1));
        assert_eq!((series.width_nanos(), series.values()), (1, &[1, 1, 1, 1][..]));
        series.add(Nanos(108), 1);
        assert_eq!((series.width_nanos(), series.values()), (4, &[4, 0, 1][..]));
        assert_eq!(series.begin_of(2), Nanos(108));
        series.add(Nanos(0), 5);
        assert_eq!(series.values()[0], 9);
    }

    #[test]
    fn the_whole_time_line_fits() {
        let mut series = Series::new(Nanos(i64::MIN), 3);
        series.add_stretch(Nanos(i64::MIN), Nanos(i64::MAX));
        assert_eq!(series.values().iter().sum::<u64>(), u64::MAX);
        assert!(series.values().len() <= 3);
    }

    proptest! {
        #[test]
        fn stretches_are_cut_where_buckets_end(
            stretches in prop::collection::vec((0i64..500, 0i64..200), 1..30),
        ) {
            let mut series = Series::new(Nanos(0), 16);
            let mut each = vec![0u64; 1024];
            for (from, length) in stretches {
                series.add_stretch(Nanos(from), Nanos(from + length));
                each[from as usize..(from + length) as usize].iter_mut().for_each(|n| *n += 1);
            }
            let width = series.width_nanos() as usize;
            for (index, value) in series.values().iter().enumerate() {
                let part = &each[index * width..((index + 1) * width).min(each.len())];
                prop_assert_eq!(*value, part.iter().sum::<u64>());
            }
            prop_assert!(series.values().len() <= 16);
        }
    }
}
