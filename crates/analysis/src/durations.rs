// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributions of durations.

use crate::Histogram;

/// Durations in nanoseconds, kept individually, so that all percentiles are exact; above a limit only
/// counted by size.
///
/// Cost: eight bytes each up to the limit, then none.
#[derive(Debug, Clone)]
pub struct Durations {
    nanos: Vec<u64>,
    sum: u128,
    limit: usize,
    beyond: Option<Box<Beyond>>,
}

/// State once there are too many to keep each.
#[derive(Debug, Clone)]
struct Beyond {
    histogram: Histogram,
    min: u64,
    max: u64,
    /// Running mean and sum of squared deviations (Welford).
    mean: f64,
    squares: f64,
}

impl Default for Durations {
    fn default() -> Self {
        Self::with_limit(usize::MAX)
    }
}

/// Summary of durations, all in nanoseconds.
///
/// A percentile is a duration that occurred: the smallest one that at least that percentage of all
/// durations do not exceed (nearest rank). If there were too many to keep ([`Distribution::is_rough`]),
/// it is the lower edge of the bucket of that duration: never too large, and too small by less than
/// [`Histogram::ERROR`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Distribution {
    /// Number of durations.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Arithmetic mean, with its fraction: [`mean`].
    pub mean: f64,
    /// Standard deviation: [`stddev`].
    pub stddev: f64,
    /// 50 %.
    pub median: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// Longest.
    pub max: u64,
    /// Sum, saturating.
    pub total: u64,
    /// Whether the percentiles come from a histogram.
    pub is_rough: bool,
}

impl Durations {
    /// Keeps at most this many durations individually.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { nanos: Vec::new(), sum: 0, limit, beyond: None }
    }

    /// Adds a duration.
    pub fn push(&mut self, nanos: u64) {
        self.sum += u128::from(nanos);
        if let Some(beyond) = &mut self.beyond {
            beyond.push(nanos);
            return;
        }
        if self.nanos.len() >= self.limit {
            let mut beyond = Beyond {
                histogram: Histogram::default(),
                min: u64::MAX,
                max: 0,
                mean: 0.0,
                squares: 0.0,
            };
            std::mem::take(&mut self.nanos).into_iter().for_each(|nanos| beyond.push(nanos));
            beyond.push(nanos);
            self.beyond = Some(Box::new(beyond));
            return;
        }
        self.nanos.push(nanos);
    }

    /// Number of durations.
    #[must_use]
    pub fn len(&self) -> usize {
        let beyond = self.beyond.as_ref().map_or(0, |beyond| beyond.histogram.count());
        self.nanos.len() + beyond as usize
    }

    /// Whether there are no durations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum, saturating.
    #[must_use]
    pub fn total(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Histogram of the durations.
    ///
    /// Cost: a step for each kept duration.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        if let Some(beyond) = &self.beyond {
            return beyond.histogram.clone();
        }
        let mut histogram = Histogram::default();
        histogram.add_all(&self.nanos);
        histogram
    }

    /// The summary; `None` if there are no durations.
    ///
    /// Cost: some steps for each kept duration.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        let Some(beyond) = &self.beyond else {
            return Distribution::of(&[&self.nanos]);
        };
        let count = beyond.histogram.count();
        let mut all = Distribution {
            count,
            mean: mean(self.sum, count),
            total: self.total(),
            min: beyond.min,
            max: beyond.max,
            is_rough: true,
            stddev: stddev(beyond.squares, count),
            ..Distribution::default()
        };
        for (per_mille, place) in all.percentiles() {
            let bucket = beyond.histogram.at_rank(rank(count, per_mille));
            *place = bucket.map_or(0, |bucket| bucket.low.max(beyond.min));
        }
        Some(all)
    }
}

impl Distribution {
    /// Summary of durations in nanoseconds, in any order and in any number of slices; `None` if there are
    /// none.
    ///
    /// Cost: four steps each. A histogram gives the buckets of the percentiles, and only the values in
    /// those are sorted. Memory: those buckets.
    #[must_use]
    pub fn of(pieces: &[&[u64]]) -> Option<Self> {
        Self::with_histogram(pieces).0
    }

    /// Like [`Distribution::of`], also returns the histogram, which is computed anyway.
    #[must_use]
    pub fn with_histogram(pieces: &[&[u64]]) -> (Option<Self>, Histogram) {
        let mut histogram = Histogram::default();
        pieces.iter().for_each(|piece| histogram.add_all(piece));
        (Self::of_pieces(pieces, &histogram), histogram)
    }

    fn of_pieces(pieces: &[&[u64]], histogram: &Histogram) -> Option<Self> {
        let count = histogram.count();
        if count == 0 {
            return None;
        }
        let each = |of: fn(&[u64]) -> u128| pieces.iter().map(move |piece| of(piece));
        let sum: u128 = each(sum).sum();
        let mean = mean(sum, count);
        let (whole, rest) = ((sum / u128::from(count)) as u64, (sum % u128::from(count)) as f64);
        let squares = squares_from(pieces, whole) as f64;
        // Correction from the integer part of the mean to the mean.
        let squares = (squares - rest * rest / count as f64).max(0.0);
        let all = || pieces.iter().flat_map(|piece| piece.iter().copied());
        let mut summary = Self {
            count,
            mean,
            stddev: stddev(squares, count),
            total: u64::try_from(sum).unwrap_or(u64::MAX),
            min: all().min()?,
            max: all().max()?,
            ..Self::default()
        };
        let mut buckets: Vec<(crate::Bucket, u64, Vec<u64>)> = Vec::with_capacity(4);
        for (per_mille, _) in summary.percentiles() {
            let (bucket, before) = histogram.bucket_of_rank(rank(count, per_mille))?;
            if buckets.last().is_none_or(|(last, ..)| *last != bucket) {
                buckets.push((bucket, before, Vec::with_capacity(bucket.count as usize)));
            }
        }
        pick(&mut buckets, pieces);
        buckets.iter_mut().for_each(|(_, _, inside)| inside.sort_unstable());
        // Buckets of ascending percentiles are ascending.
        for (per_mille, place) in summary.percentiles() {
            let rank = rank(count, per_mille);
            let (_, before, inside) =
                buckets.iter().rfind(|(_, before, _)| *before < rank).or(buckets.first())?;
            *place = inside.get((rank - before) as usize - 1).copied().unwrap_or(0);
        }
        Some(summary)
    }

    /// Per mille of each percentile, and its field.
    pub(crate) fn percentiles(&mut self) -> [(u128, &mut u64); 4] {
        let Self { median, p90, p99, p999, .. } = self;
        [(500, median), (900, p90), (990, p99), (999, p999)]
    }
}

impl Beyond {
    fn push(&mut self, nanos: u64) {
        self.histogram.add(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        let from_mean = nanos as f64 - self.mean;
        self.mean += from_mean / self.histogram.count() as f64;
        self.squares += from_mean * (nanos as f64 - self.mean);
    }
}

/// Arithmetic mean of `count` > 0 numbers, from their exact sum: used for every mean of durations. The
/// division rounds once, so the result is the nearest `f64` as long as the sum is below 2^53.
#[must_use]
pub fn mean(sum: u128, count: u64) -> f64 {
    sum as f64 / count as f64
}

/// Standard deviation of `count` numbers from the sum of their squared deviations: used for every
/// standard deviation. A recording is a sample of what the program does, so the sum is divided by `count`
/// - 1, as by SQL's `stddev` and seL4's benchmarks; 0 for a single number.
#[must_use]
pub fn stddev(squares: f64, count: u64) -> f64 {
    if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 }
}

/// Sum of numbers. Cost: that of reading them.
pub(crate) fn sum(numbers: &[u64]) -> u128 {
    // Sums of the 32-bit halves of a chunk do not overflow, and can be vectorised.
    const PIECE: usize = 1 << 16;
    numbers.chunks(PIECE).fold(0, |sum: u128, piece| {
        let low: u64 = piece.iter().map(|number| number & u64::from(u32::MAX)).sum();
        let high: u64 = piece.iter().map(|number| number >> 32).sum();
        sum + u128::from(low) + (u128::from(high) << 32)
    })
}

/// Sum of squared distances from a number, saturating; integers, so that their order does not matter.
fn squares_from(pieces: &[&[u64]], from: u64) -> u128 {
    let square = |number: &u64| u128::from(number.abs_diff(from)).pow(2);
    pieces.iter().copied().flatten().map(square).fold(0, u128::saturating_add)
}

/// Puts numbers into the buckets to which they belong; few belong to any.
fn pick(buckets: &mut [(crate::Bucket, u64, Vec<u64>)], pieces: &[&[u64]]) {
    // Always four ranges; unused ones are empty.
    let mut ranges = [(u64::MAX, 0); 4];
    for (range, (bucket, ..)) in ranges.iter_mut().zip(buckets.iter()) {
        *range = (bucket.low, bucket.high - bucket.low);
    }
    let is_in = |number: u64, (low, width): (u64, u64)| number.wrapping_sub(low) <= width;
    for &number in pieces.iter().copied().flatten() {
        // All ranges are tested, as a branch after each would be mispredicted.
        if ranges.iter().fold(false, |found, &range| found | is_in(number, range)) {
            let inside = |(bucket, ..): &&mut (crate::Bucket, u64, Vec<u64>)| {
                bucket.low <= number && number <= bucket.high
            };
            if let Some((_, _, numbers)) = buckets.iter_mut().find(inside) {
                numbers.push(number);
            }
        }
    }
}

/// Nearest rank among `count` > 0, counted from 1.
pub(crate) fn rank(count: u64, per_mille: u128) -> u64 {
    (u128::from(count) * per_mille).div_ceil(1000).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(nanos: impl IntoIterator<Item = u64>) -> Option<Distribution> {
        let mut durations = Durations::default();
        nanos.into_iter().for_each(|nanos| durations.push(nanos));
        durations.distribution()
    }

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(of([]), None);
    }

    #[test]
    fn one_is_its_own_everything() {
        let one = of([7]).unwrap();
        let all = [one.min, one.median, one.p90, one.p99, one.p999, one.max, one.total];
        assert_eq!(all, [7; 7]);
        assert_eq!((one.mean, one.stddev), (7.0, 0.0));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let d = of((1..=1000).rev()).unwrap();
        assert_eq!((d.median, d.p90, d.p99, d.p999, d.max), (500, 900, 990, 999, 1000));
        // n (n² - 1) / 12 is the sum of squared deviations.
        let squares = 1000.0 * (1e6 - 1.0) / 12.0;
        assert_eq!(d.stddev, f64::sqrt(squares / 999.0));
        let d = of([10, 20]).unwrap();
        assert_eq!((d.median, d.p90, d.mean, d.stddev), (10, 20, 15.0, 50.0f64.sqrt()));
    }

    proptest! {
        #[test]
        fn sums_are_those_of_wide_numbers(
            numbers in prop::collection::vec(any::<u64>(), 0..300), often in 1usize..400,
        ) {
            let numbers = numbers.repeat(often);
            prop_assert_eq!(sum(&numbers), numbers.iter().map(|n| u128::from(*n)).sum::<u128>());
        }
    }

    #[test]
    fn sums_do_not_overflow() {
        let d = of([u64::MAX, u64::MAX]).unwrap();
        assert_eq!((d.mean, d.total, d.stddev), (u64::MAX as f64, u64::MAX, 0.0));
    }

    #[test]
    fn a_mean_has_its_fraction_above_and_below_the_limit() {
        let nanos = [10, 11, 11];
        for limit in [0, 3] {
            let mut durations = Durations::with_limit(limit);
            nanos.iter().for_each(|&nanos| durations.push(nanos));
            assert_eq!(durations.distribution().unwrap().mean, 32.0 / 3.0, "limit {limit}");
        }
        assert_eq!(Distribution::of(&[&nanos[..1], &nanos[1..]]).unwrap().mean, 32.0 / 3.0);
        // Not computed from saturated sums.
        assert_eq!(of([u64::MAX, u64::MAX, 0]).unwrap().mean, u64::MAX as f64 * 2.0 / 3.0);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_durations(
            mut nanos in prop::collection::vec((0u64..1 << 40, 0u32..40), 1..3000),
            cut in any::<prop::sample::Index>(),
        ) {
            let nanos: Vec<u64> = nanos.iter_mut().map(|(n, shift)| *n >> *shift).collect();
            let (one, two) = nanos.split_at(cut.index(nanos.len()));
            let found = Distribution::of(&[one, &[], two]).unwrap();
            let mut sorted = nanos.clone();
            sorted.sort_unstable();
            let at = |per_mille| sorted[rank(sorted.len() as u64, per_mille) as usize - 1];
            prop_assert_eq!(
                (found.median, found.p90, found.p99, found.p999),
                (at(500), at(900), at(990), at(999))
            );
            prop_assert_eq!((found.min, found.max), (sorted[0], sorted[sorted.len() - 1]));
            prop_assert_eq!(found.total, nanos.iter().sum::<u64>());
        }

        #[test]
        fn above_the_limit_only_percentiles_are_rough(
            nanos in prop::collection::vec(0u64..1 << 40, 1..300), limit in 0usize..300,
        ) {
            let exact = of(nanos.iter().copied()).unwrap();
            let mut limited = Durations::with_limit(limit);
            nanos.iter().for_each(|&nanos| limited.push(nanos));
            prop_assert_eq!(limited.len(), nanos.len());
            let rough = limited.distribution().unwrap();
            prop_assert_eq!(rough.is_rough, nanos.len() > limit);
            prop_assert_eq!(
                (rough.count, rough.min, rough.max, rough.mean, rough.total),
                (exact.count, exact.min, exact.max, exact.mean, exact.total)
            );
            prop_assert!((rough.stddev - exact.stddev).abs() <= 1e-6 * exact.stddev.max(1.0));
            for (rough, exact) in [
                (rough.median, exact.median), (rough.p90, exact.p90),
                (rough.p99, exact.p99), (rough.p999, exact.p999),
            ] {
                prop_assert!(rough <= exact);
                prop_assert!((exact - rough) as f64 <= Histogram::ERROR * rough as f64 + 1.0);
            }
        }
    }
}
