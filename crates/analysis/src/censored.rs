// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Percentiles of durations some of which are only known from below: spans that have not ended.

use crate::{Distribution, Histogram};

/// Bounds of the percentiles of durations some of which are only known from below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Censored {
    /// If all open ones ended now: lower bounds of the percentiles.
    pub least: Distribution,
    /// If open ones never ended: upper bounds of the percentiles; `u64::MAX` if unbounded.
    pub most: Distribution,
}

impl Censored {
    /// From the known durations `ended`, the lower bounds `open`, and the total number of open ones,
    /// `open_count`: those that are not in `open` may have any duration.
    ///
    /// `None` if there are no durations. Cost: that of [`Distribution::of`], twice.
    #[must_use]
    pub fn of(ended: &[&[u64]], open: &[u64], open_count: u64) -> Option<Self> {
        let count = usize::try_from(open_count).unwrap_or(usize::MAX).max(open.len());
        let mut at_once = open.to_vec();
        at_once.resize(count, 0);
        let never = vec![u64::MAX; count];
        let with = |open: &[u64]| Distribution::of(&[ended, &[open]].concat());
        Some(Self { least: with(&at_once)?, most: with(&never)? })
    }

    /// Like [`Censored::of`], for durations that are only available as a histogram.
    #[must_use]
    pub fn of_histogram(ended: &Histogram, open: &[u64], open_count: u64) -> Option<Self> {
        let of = |with: &mut dyn FnMut(&mut Histogram), is_least: bool| {
            let mut histogram = ended.clone();
            with(&mut histogram);
            let mut of = Distribution { is_rough: true, ..Distribution::default() };
            of.count = histogram.count();
            for (per_mille, place) in of.percentiles() {
                let bucket =
                    histogram.at_rank(crate::durations::rank(histogram.count(), per_mille))?;
                *place = if is_least { bucket.low } else { bucket.high };
            }
            Some(of)
        };
        let rest = open_count.saturating_sub(open.len() as u64);
        let mut at_once = |histogram: &mut Histogram| {
            histogram.add_all(open);
            (0..rest).for_each(|_| histogram.add(0));
        };
        let mut never = |histogram: &mut Histogram| {
            (0..rest + open.len() as u64).for_each(|_| histogram.add(u64::MAX));
        };
        Some(Self { least: of(&mut at_once, true)?, most: of(&mut never, false)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn however_long_the_open_ones_last_it_lies_between(
            ended in prop::collection::vec(1..5000_u64, 0..40),
            seen in prop::collection::vec((1..5000_u64, 0..100_000_u64, any::<bool>()), 1..12),
        ) {
            let known = seen.iter().filter(|of| of.2);
            let open: Vec<u64> = known.map(|of| of.0).collect();
            let count = seen.len() as u64;
            let of = Censored::of(&[&ended], &open, count).unwrap();
            let last = |(seen, more, is_known): &(u64, u64, bool)| {
                if *is_known { seen + more } else { *more }
            };
            let mut all: Vec<u64> = ended.iter().copied().chain(seen.iter().map(last)).collect();
            let truth = Distribution::of(&[&all]).unwrap();
            // The nearest cases: the open ones end at once, or never.
            all.truncate(ended.len());
            all.extend(seen.iter().map(|of| if of.2 { of.0 } else { 0 }));
            prop_assert_eq!(of.least, Distribution::of(&[&all]).unwrap());
            let mut histogram = Histogram::default();
            histogram.add_all(&ended);
            let rough = Censored::of_histogram(&histogram, &open, count).unwrap();
            for of in [of, rough] {
                for (least, truth, most) in [
                    (of.least.median, truth.median, of.most.median),
                    (of.least.p90, truth.p90, of.most.p90),
                    (of.least.p99, truth.p99, of.most.p99),
                    (of.least.p999, truth.p999, of.most.p999),
                ] {
                    prop_assert!(least <= truth && truth <= most, "{} {} {}", least, truth, most);
                }
            }
        }
    }

    #[test]
    fn one_that_hangs_is_the_99th_percentile_of_two_and_not_of_a_thousand() {
        let two = Censored::of(&[&[1000]], &[10_000_000_000], 1).unwrap();
        assert_eq!((two.least.p99, two.most.p99), (10_000_000_000, u64::MAX));
        let many = Censored::of(&[&[1000; 999]], &[10_000_000_000], 1).unwrap();
        assert_eq!((many.least.p99, many.most.p99), (1000, 1000));
        assert_eq!(Censored::of(&[], &[], 0), None);
    }
}
