// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Histogram with buckets whose width grows with the value.

/// Number of equal buckets into which each power of two is divided.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;

/// Counts in log-linear buckets: values below 128 have a bucket each; above, no bucket is wider than
/// 1/128 of its values.
///
/// Histograms of parts can be merged into the histogram of the whole. Memory: eight bytes per bucket up
/// to the greatest value, at most 59 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

/// Values of about one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of the bucket.
    pub low: u64,
    /// Greatest value of the bucket.
    pub high: u64,
    /// Number of values in it.
    pub count: u64,
}

impl Histogram {
    /// Largest width of a bucket relative to its values.
    pub const ERROR: f64 = 1.0 / STEPS as f64;

    /// Adds a value. Cost: constant.
    #[inline]
    pub fn add(&mut self, number: u64) {
        let index = index_of(number);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
    }

    /// Adds values. Cost: some instructions each.
    pub fn add_all(&mut self, numbers: &[u64]) {
        let Some(max) = numbers.iter().max() else {
            return;
        };
        let needed = index_of(*max) + 1;
        if needed > self.counts.len() {
            self.counts.resize(needed, 0);
        }
        let counts = &mut self.counts[..];
        numbers.iter().for_each(|&number| counts[index_of(number)] += 1);
        self.total += numbers.len() as u64;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Bucket of the value with this rank, counted from 1 in ascending order; `None` if there are fewer
    /// values.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<Bucket> {
        self.bucket_of_rank(rank).map(|(bucket, _)| bucket)
    }

    /// Like [`Histogram::at_rank`], also returns the number of values in the buckets before.
    pub(crate) fn bucket_of_rank(&self, rank: u64) -> Option<(Bucket, u64)> {
        let mut before = 0;
        let mut buckets = self.fine().filter(|_| rank >= 1);
        buckets.find_map(|bucket| {
            let first = before;
            before += bucket.count;
            (rank <= before).then_some((bucket, first))
        })
    }

    /// Buckets that are not empty, in ascending order.
    pub fn fine(&self) -> impl Iterator<Item = Bucket> + '_ {
        let bucket = |(index, &count): (usize, &u64)| Bucket {
            low: low_of(index),
            high: low_of(index + 1).wrapping_sub(1),
            count,
        };
        self.counts.iter().enumerate().map(bucket).filter(|bucket| bucket.count > 0)
    }

    /// One bucket for each power of two, including empty ones in between: few enough to draw.
    #[must_use]
    pub fn coarse(&self) -> Vec<Bucket> {
        let mut all: Vec<Bucket> = Vec::new();
        for fine in self.fine() {
            let (low, high): (u64, u64) = match fine.low {
                0 => (0, 0),
                low => (1 << low.ilog2(), u64::MAX >> low.leading_zeros()),
            };
            while let Some(last) = all.last()
                && last.high < low.saturating_sub(1)
            {
                let low = last.high + 1;
                all.push(Bucket { low, high: low.saturating_mul(2) - 1, count: 0 });
            }
            match all.last_mut().filter(|last| last.low == low) {
                Some(last) => last.count += fine.count,
                None => all.push(Bucket { low, high, count: fine.count }),
            }
        }
        all
    }
}

#[inline]
fn index_of(number: u64) -> usize {
    // Values below 128 are not shifted.
    let shift = (number | STEPS).ilog2() - STEP_BITS;
    // The leading bit counts as the first of the next row.
    (u64::from(shift) * STEPS + (number >> shift)) as usize
}

/// Smallest value of a bucket; 0 for the one after the last, which wraps.
fn low_of(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    (u128::from(STEPS + index % STEPS) << shift) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_touch_and_cover_all_numbers() {
        let last = index_of(u64::MAX);
        for index in 0..last {
            assert_eq!(index_of(low_of(index)), index);
            assert_eq!(index_of(low_of(index + 1) - 1), index);
        }
        assert_eq!(low_of(last + 1), 0, "the one after the last wraps");
    }

    #[test]
    fn coarse_buckets_are_powers_of_two_without_holes() {
        let mut histogram = Histogram::default();
        [0, 1, 5, 5, 300, u64::MAX].into_iter().for_each(|number| histogram.add(number));
        let coarse = histogram.coarse();
        assert_eq!(coarse.iter().map(|bucket| bucket.count).sum::<u64>(), 6);
        for pair in coarse.windows(2) {
            assert_eq!(pair[0].high + 1, pair[1].low, "{coarse:?}");
        }
        assert_eq!(coarse[3], Bucket { low: 4, high: 7, count: 2 });
        assert_eq!(coarse.last().unwrap().high, u64::MAX);
    }

    proptest! {
        #[test]
        fn ranks_are_found_within_the_width_of_a_bucket(
            mut numbers in prop::collection::vec(any::<u64>().prop_flat_map(
                |n| (0u32..64).prop_map(move |shift| n >> shift)), 1..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let of = |numbers: &[u64]| {
                let mut histogram = Histogram::default();
                numbers.iter().for_each(|&number| histogram.add(number));
                histogram
            };
            let (one, two) = numbers.split_at(cut.index(numbers.len()));
            let mut merged = of(one);
            merged.merge(&of(two));
            let whole = of(&numbers);
            prop_assert_eq!(&merged, &whole);
            numbers.sort_unstable();
            for (index, &number) in numbers.iter().enumerate() {
                let bucket = whole.at_rank(index as u64 + 1).unwrap();
                prop_assert!(bucket.low <= number && number <= bucket.high);
                let width = (bucket.high - bucket.low) as f64;
                prop_assert!(width <= Histogram::ERROR * bucket.low as f64);
            }
            prop_assert_eq!(whole.at_rank(0), None);
            prop_assert_eq!(whole.at_rank(numbers.len() as u64 + 1), None);
        }
    }
}
