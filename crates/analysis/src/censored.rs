// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Percentiles of durations some of which are known from below only: spans that have not ended.

use crate::Histogram;
use crate::durations::rank;

/// Where a percentile of all durations lies: at least the first; at most the second, if anything bounds it.
///
/// `ended` are those that are known; `open` are those of `open_count` more of which it is known how long they
/// were seen, longest first: each lasts at least so long, and the others any time. Nearest rank, in
/// buckets of the histogram. `None` of nothing. Cost: linear in `open`, times the buckets.
#[must_use]
pub fn percentile_between(
    ended: &Histogram,
    open: &[u64],
    open_count: u64,
    per_mille: u128,
) -> Option<(u64, Option<u64>)> {
    let (ended_count, all) = (ended.count(), ended.count() + open_count);
    if all == 0 {
        return None;
    }
    let rank = rank(all, per_mille);
    // If all that are open last for ever, it is among those that have ended, or there is no bound.
    let most = ended.at_rank(rank).map(|bucket| bucket.high);
    // The number of durations at or above the percentile, itself included: some of the longest open ones,
    // and the rest from those that have ended.
    let needed = all - rank + 1;
    let least = (0..=open.len().min(needed as usize)).map(|taken| {
        let of_open = taken.checked_sub(1).map_or(u64::MAX, |last| open[last]);
        let rest = needed - taken as u64;
        let of_ended = match rest {
            0 => u64::MAX,
            _ if rest > ended_count => 0,
            _ => ended.at_rank(ended_count - rest + 1).map_or(0, |bucket| bucket.low),
        };
        of_open.min(of_ended)
    });
    Some((least.max()?, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(mut all: Vec<u64>, per_mille: u128) -> u64 {
        all.sort_unstable();
        all[rank(all.len() as u64, per_mille) as usize - 1]
    }

    proptest! {
        #[test]
        fn however_long_the_open_ones_last_it_lies_between(
            ended in prop::collection::vec(1..5000_u64, 0..40),
            seen in prop::collection::vec((1..5000_u64, 0..100_000_u64, any::<bool>()), 1..12),
            per_mille in prop::sample::select(vec![500_u128, 900, 990, 999]),
        ) {
            let mut histogram = Histogram::default();
            histogram.add_all(&ended);
            let mut open: Vec<u64> = seen.iter().filter(|of| of.2).map(|of| of.0).collect();
            open.sort_unstable_by(|a, b| b.cmp(a));
            let (least, most) =
                percentile_between(&histogram, &open, seen.len() as u64, per_mille).unwrap();
            let of_seen = |(seen, more, is_known): &(u64, u64, bool)| {
                if *is_known { seen + more } else { *more }
            };
            let all: Vec<u64> = ended.iter().copied().chain(seen.iter().map(of_seen)).collect();
            let truth = exact(all, per_mille);
            prop_assert!(least <= truth, "{least} {truth}");
            prop_assert!(most.is_none_or(|most| truth <= most), "{truth} {most:?}");
            // As near as it can be: when they end at once, but for the width of a bucket.
            let at_once = |of: &(u64, u64, bool)| if of.2 { of.0 } else { 0 };
            let all = ended.iter().copied().chain(seen.iter().map(at_once)).collect();
            let nearest = exact(all, per_mille);
            prop_assert!(least as f64 >= nearest as f64 * (1.0 - Histogram::ERROR) - 1.0);
        }
    }

    #[test]
    fn one_that_hangs_is_the_99th_percentile_of_two_and_not_of_a_thousand() {
        let mut two = Histogram::default();
        two.add_all(&[1000]);
        assert_eq!(
            percentile_between(&two, &[10_000_000_000], 1, 990),
            Some((10_000_000_000, None))
        );
        let mut many = Histogram::default();
        many.add_all(&[1000; 999]);
        let (least, most) = percentile_between(&many, &[10_000_000_000], 1, 990).unwrap();
        assert!(least <= 1000 && most.is_some_and(|most| most < 1100), "{least} {most:?}");
        assert_eq!(percentile_between(&Histogram::default(), &[], 0, 990), None);
    }
}
