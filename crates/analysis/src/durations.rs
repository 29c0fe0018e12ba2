// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long things took.

/// Durations in nanoseconds, kept one by one, so that all percentiles are exact.
///
/// Cost: eight bytes each; sorting once when asked.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    nanos: Vec<u64>,
    sum: u128,
}

/// Summary of durations, all in nanoseconds.
///
/// A percentile is a duration that really occurred: the smallest one that at
/// least so many percent do not exceed (nearest rank).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Arithmetic mean, rounded down.
    pub mean: u64,
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
    /// All together, saturating.
    pub total: u64,
}

impl Durations {
    /// Adds one.
    pub fn push(&mut self, nanos: u64) {
        self.nanos.push(nanos);
        self.sum += u128::from(nanos);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nanos.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nanos.is_empty()
    }

    /// The summary; `None` of nothing.
    ///
    /// Cost: sorts in place, O(n log n).
    pub fn distribution(&mut self) -> Option<Distribution> {
        self.nanos.sort_unstable();
        let (&min, &max) = (self.nanos.first()?, self.nanos.last()?);
        let count = self.nanos.len() as u64;
        Some(Distribution {
            count,
            min,
            mean: (self.sum / u128::from(count)) as u64,
            median: self.at_per_mille(500),
            p90: self.at_per_mille(900),
            p99: self.at_per_mille(990),
            p999: self.at_per_mille(999),
            max,
            total: u64::try_from(self.sum).unwrap_or(u64::MAX),
        })
    }

    /// Nearest rank in sorted, non-empty durations.
    fn at_per_mille(&self, per_mille: u128) -> u64 {
        let rank = (self.nanos.len() as u128 * per_mille).div_ceil(1000).max(1);
        self.nanos[rank as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all = [one.min, one.mean, one.median, one.p90, one.p99, one.p999, one.max, one.total];
        assert_eq!(all, [7; 8]);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let d = of((1..=1000).rev()).unwrap();
        assert_eq!((d.median, d.p90, d.p99, d.p999, d.max), (500, 900, 990, 999, 1000));
        let d = of([10, 20]).unwrap();
        assert_eq!((d.median, d.p90, d.mean), (10, 20, 15));
    }

    #[test]
    fn sums_do_not_overflow() {
        let d = of([u64::MAX, u64::MAX]).unwrap();
        assert_eq!((d.mean, d.total), (u64::MAX, u64::MAX));
    }
}
