// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether something happens more often than it did.

use lateralis_model::Quality;

use super::pace::Pace;
use super::run::{Estimate, variance};
use super::shift::{Options, Shift, shift};

/// Counts vary between runs of one program so many times as much as durations.
const COUNT_NOISE: f64 = 2.0;

/// How often one kind of event happened in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counted {
    /// How often.
    pub count: u64,
    /// Events of all kinds in the run.
    pub all: u64,
    /// How long the run was, in seconds.
    pub seconds: f64,
    /// The count of each of equal stretches of the run.
    pub stretches: Vec<u64>,
    /// How many more there may have been; `u64::MAX`: nobody knows.
    pub missing: u64,
}

impl Counted {
    fn estimate(&self, per: f64, extra: f64) -> Estimate {
        let count = self.count as f64 + extra;
        // One that never happened might as well have happened half a time.
        let value = (count + 0.5) / per.max(1e-9);
        let each: Vec<f64> = self.stretches.iter().map(|&count| count as f64).collect();
        let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
        // Events that come in bunches: as many independent ones as there are bunches.
        let bunch = if mean > 0.0 { (variance(&each) / mean).max(1.0) } else { 1.0 };
        Estimate { value, error: (bunch.min(count.max(1.0)) / (count + 0.5)).sqrt() }
    }
}

/// Compares counts: per run, per second and per event of all kinds; the shift is that of the
/// three which speaks most against a change. So neither a longer run, nor a slower one of the
/// same work, nor twice the same work makes every kind of event different. `None` without runs.
#[must_use]
pub fn compare_counts(
    good: &[Counted],
    bad: &[Counted],
    options: &Options,
) -> Option<(Shift, Quality)> {
    let ways: [fn(&Counted) -> f64; 3] = [|_| 1.0, |run| run.seconds, |run| run.all as f64];
    let mut shifts = Vec::new();
    // A slower machine does not make anything more often.
    let pace = Pace::steady();
    for way in ways {
        let side = |runs: &[Counted], missing: bool| -> Vec<Estimate> {
            let extra = |run: &Counted| if missing { run.missing as f64 } else { 0.0 };
            runs.iter().map(|run| run.estimate(way(run), extra(run))).collect()
        };
        let noise = COUNT_NOISE * options.noise;
        let seen = shift(&side(good, false), &side(bad, false), noise, &pace, options)?;
        // The missing ones are where they speak against the shift.
        let up = seen.is_up();
        let least = shift(&side(good, up), &side(bad, !up), noise, &pace, options)?;
        shifts.push(if least.is_up() == up {
            let (probability, within) = (least.probability, least.probability_within);
            Shift { probability, probability_within: within, ..seen }
        } else {
            Shift { probability: 1.0, probability_within: 1.0, ..seen }
        });
    }
    let exact = good.iter().chain(bad).all(|run| run.missing == 0);
    let quality = if exact { Quality::Exact } else { Quality::LowerBound };
    let mut all = shifts.into_iter();
    let per_run = all.next()?;
    let mut result = per_run;
    for other in all {
        let agrees = other.is_up() == per_run.is_up();
        let other = if agrees { other.probability } else { 1.0 };
        if other > result.probability {
            result.probability = other;
        }
    }
    if result.probability > 0.5 {
        result.probability_within = 1.0;
    }
    Some((result, quality))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(count: u64, all: u64, seconds: f64) -> Counted {
        let stretches = (0..20).map(|i| (i + 1) * count / 20 - i * count / 20).collect();
        Counted { count, all, seconds, stretches, missing: 0 }
    }

    fn p(good: &Counted, bad: &Counted) -> f64 {
        let (good, bad) = (std::slice::from_ref(good), std::slice::from_ref(bad));
        compare_counts(good, bad, &Options::default()).unwrap().0.probability
    }

    #[test]
    fn a_longer_or_slower_run_of_the_same_is_no_difference() {
        let good = counted(1000, 10_000, 1.0);
        assert!(p(&good, &counted(1000, 10_000, 3.0)) > 0.5);
        assert!(p(&good, &counted(3000, 30_000, 3.0)) > 0.5);
        assert!(p(&good, &counted(3000, 30_000, 1.0)) > 0.5);
        assert!(p(&good, &counted(3000, 12_000, 1.0)) < 0.001);
    }

    #[test]
    fn what_is_new_or_gone_is_found_and_a_single_one_is_not() {
        let none = counted(0, 10_000, 1.0);
        assert!(p(&none, &counted(800, 10_800, 1.0)) < 0.001);
        assert!(p(&counted(800, 10_800, 1.0), &none) < 0.001);
        assert!(p(&none, &counted(1, 10_001, 1.0)) > 0.1);
    }

    #[test]
    fn bunches_are_not_so_many_independent_events() {
        let even = counted(600, 10_000, 1.0);
        let mut bunch = counted(900, 10_300, 1.0);
        assert!(p(&even, &bunch) < 0.01);
        bunch.stretches = vec![0; 20];
        bunch.stretches[3] = 900;
        assert!(p(&even, &bunch) > 0.05);
    }

    #[test]
    fn lost_events_may_be_what_is_missing() {
        let good = counted(1000, 10_000, 1.0);
        let mut fewer = counted(500, 9_500, 1.0);
        assert!(p(&good, &fewer) < 0.01);
        fewer.missing = 600;
        assert!(p(&good, &fewer) > 0.5);
        fewer.missing = u64::MAX;
        assert!(p(&good, &fewer) > 0.5);
        let mut more = counted(3000, 12_000, 1.0);
        more.missing = u64::MAX;
        assert!(p(&good, &more) < 0.01, "more than was seen is still more");
    }
}
