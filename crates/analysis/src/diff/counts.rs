// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests whether something happens more often than before.

use lateralis_model::Quality;

use super::pace::Pace;
use super::run::{Estimate, variance};
use super::shift::{Options, Shift, shift};
use super::student::binomial_upper_tail;

/// Counts vary between runs of one program by this factor more than durations.
const COUNT_NOISE: f64 = 2.0;

/// Number of events of one kind in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counted {
    /// The number of events.
    pub count: u64,
    /// Events of all kinds in the run.
    pub all: u64,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// The count in each of equal parts of the run. Parts have equal numbers of events of all kinds
    /// rather than equal time, so that a program held up by others does not appear to work in bursts.
    pub stretches: Vec<u64>,
    /// Upper bound of missing events; `u64::MAX` if unknown.
    pub missing: u64,
}

impl Counted {
    /// Size of the bursts in which the events come: each burst counts as one independent event.
    fn bunch(&self) -> f64 {
        let each: Vec<f64> = self.stretches.iter().map(|&count| count as f64).collect();
        let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
        let bunch = if mean > 0.0 { (variance(&each) / mean).max(1.0) } else { 1.0 };
        bunch.min((self.count as f64).max(1.0))
    }
}

/// Counts of both sides, with the quantity that they are divided by.
struct Rates {
    good: Vec<(f64, f64)>,
    bad: Vec<(f64, f64)>,
    bunch: f64,
}

impl Rates {
    /// Shift of the rate: per run, per second or per event, depending on the divisor.
    fn shift(&self, options: &Options) -> Option<Shift> {
        // Only variation within one program matters here: all its runs are added up.
        let sum = |side: &[(f64, f64)]| {
            side.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
        };
        let (good, bad) = (sum(&self.good), sum(&self.bad));
        let rate = (good.0 + bad.0).max(0.5) / (good.1 + bad.1).max(1e-9);
        let estimates = |side: &[(f64, f64)]| -> Vec<Estimate> {
            let of = |&(count, per): &(f64, f64)| Estimate {
                // Half an event is added: an event that never happened may well have a small rate.
                value: (count + 0.5) / per.max(1e-9),
                error: (self.bunch / (rate * per).max(0.5)).sqrt(),
            };
            side.iter().map(of).collect()
        };
        // A slower machine does not change counts.
        let (pace, noise) = (Pace::steady(), COUNT_NOISE * options.noise);
        let shift = shift(&estimates(&self.good), &estimates(&self.bad), noise, &pace, options)?;
        // For small counts the logarithm overstates: then test whether their split between the sides is
        // chance.
        let (more, of) = if shift.is_up() { (bad, good) } else { (good, bad) };
        let chance = more.1 / (more.1 + of.1).max(1e-9);
        let (more, all) = (more.0 / self.bunch, (more.0 + of.0) / self.bunch);
        let by_chance = 2.0 * binomial_upper_tail(more, all, chance);
        let least = |probability: f64| probability.max(by_chance).min(1.0);
        Some(Shift {
            probability: least(shift.probability),
            probability_within: least(shift.probability_within),
            ..shift
        })
    }
}

/// Compares counts per run, per second and per event of all kinds; returns the shift with the weakest
/// evidence of a change. So a longer run, a slower run of the same work, or twice the same work does not
/// make every kind of event differ. `None` if there are no runs.
/// same work, nor twice the same work makes every kind of event different. `None` without runs.
#[must_use]
pub fn compare_counts(
    good: &[Counted],
    bad: &[Counted],
    options: &Options,
) -> Option<(Shift, Quality)> {
    let ways: [fn(&Counted) -> f64; 3] = [|_| 1.0, |run| run.seconds, |run| run.all as f64];
    let bunch = good.iter().chain(bad).map(Counted::bunch).fold(1.0, f64::max);
    let mut shifts = Vec::new();
    for way in ways {
        let side = |runs: &[Counted], missing: bool| -> Vec<(f64, f64)> {
            let extra = |run: &Counted| if missing { run.missing as f64 } else { 0.0 };
            runs.iter().map(|run| (run.count as f64 + extra(run), way(run))).collect()
        };
        let rates = |good, bad| Rates { good, bad, bunch };
        let seen = rates(side(good, false), side(bad, false)).shift(options)?;
        // Missing events are assumed on the side that weakens the shift.
        let up = seen.is_up();
        let least = rates(side(good, up), side(bad, !up)).shift(options)?;
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
        // One run each: an event that never happened now does, or happens half as often.
        assert!(p(&none, &counted(60, 10_060, 1.0)) < 1e-6);
        assert!(p(&counted(60, 10_060, 1.0), &none) < 1e-6);
        assert!(p(&none, &counted(4, 10_004, 1.0)) > 0.05);
        assert!(p(&counted(600, 10_000, 1.0), &counted(300, 9_700, 1.3)) < 1e-4);
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
