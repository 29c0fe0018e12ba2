// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds functions in which more or fewer samples were taken.
//!
//! The probability that a sample falls into a function is the fraction of time that the program spends in
//! it. So the count of a function is only known up to chance: if nothing changed, the samples of both
//! sides are distributed in proportion to their numbers of runs ([`binomial_upper_tail`]).

use super::student::binomial_upper_tail;
use super::{Options, adjust};

/// Samples taken in a function, in all runs of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledCount {
    /// Samples of the good runs.
    pub before: u64,
    /// Samples of the bad runs.
    pub after: u64,
}

/// Shift of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledShift {
    /// Index among the compared functions.
    pub index: usize,
    /// Samples per good run; scaled by `pace` to a bad run.
    pub before: f64,
    /// Samples per bad run.
    pub after: f64,
    /// Expected fraction of wrong results among this and all more certain ones.
    pub probability: f64,
}

impl SampledShift {
    /// Number of additional samples.
    #[must_use]
    pub fn more(&self) -> f64 {
        self.after - self.before
    }
}

/// Functions that differ by more than the threshold, and by more than chance and the variation between
/// runs of one program explain; those with the largest effect first. `runs`: number of runs per side;
/// `pace`: samples of a bad run for each sample of a good one if no function changed.
///
/// Cost: one logarithm per function.
#[must_use]
pub fn compare_samples(
    counts: &[SampledCount],
    runs: (usize, usize),
    pace: f64,
    options: &Options,
) -> Vec<SampledShift> {
    let (good, bad) = (runs.0.max(1) as f64, runs.1.max(1) as f64 * pace);
    let shift = |(index, of): (usize, &SampledCount)| {
        let (before, after) = (of.before as f64, of.after as f64);
        let all = before + after;
        let expected = before * pace / good;
        let is_more = after * good > before * bad;
        // Variation between runs of one program is not a difference.
        let noise = 1.0 + options.noise;
        let bad = if is_more { bad * noise } else { bad / noise };
        let chance = bad / (good + bad);
        let tail = match is_more {
            true => binomial_upper_tail(after, all, chance),
            false => binomial_upper_tail(before, all, 1.0 - chance),
        };
        let after = after / runs.1.max(1) as f64;
        // Two-sided: it may be more or fewer.
        SampledShift { index, before: expected, after, probability: (2.0 * tail).min(1.0) }
    };
    let mut all: Vec<SampledShift> = counts.iter().enumerate().map(shift).collect();
    let mut probabilities: Vec<f64> = all.iter().map(|of| of.probability).collect();
    adjust(&mut probabilities);
    all.iter_mut().zip(probabilities).for_each(|(of, adjusted)| of.probability = adjusted);
    let is_large = |of: &SampledShift| {
        let (less, more) = (of.before.min(of.after), of.before.max(of.after));
        more > less * (1.0 + options.threshold)
    };
    all.retain(|of| of.probability <= options.error && is_large(of));
    all.sort_by(|one, other| other.more().abs().total_cmp(&one.more().abs()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(u64, u64)]) -> Vec<SampledCount> {
        all.iter().map(|(before, after)| SampledCount { before: *before, after: *after }).collect()
    }

    #[test]
    fn what_chance_does_is_no_difference_and_what_it_does_not_is_ranked() {
        let all = counts(&[(1000, 1040), (400, 800), (10, 14), (0, 60), (500, 250), (3, 0)]);
        let found = compare_samples(&all, (1, 1), 1.0, &Options::default());
        let order: Vec<usize> = found.iter().map(|of| of.index).collect();
        assert_eq!(order, [1, 4, 3]);
        assert_eq!((found[0].before, found[0].after), (400.0, 800.0));
        assert!(found.iter().all(|of| of.probability < 0.001));
    }

    #[test]
    fn runs_and_pace_are_taken_off() {
        // Two runs against one of half their length: 200 of 400 is the same rate.
        let same = counts(&[(1600, 400), (800, 200)]);
        assert!(compare_samples(&same, (2, 1), 0.5, &Options::default()).is_empty());
        let one_more = counts(&[(1600, 400), (800, 400)]);
        let found = compare_samples(&one_more, (2, 1), 0.5, &Options::default());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].index, found[0].before, found[0].after), (1, 200.0, 400.0));
    }

    #[test]
    fn of_equal_programs_hardly_any_is_called_different() {
        // Poisson-like numbers with this mean from a simple generator: sums of many small chances.
        let mut seed = 7_u64;
        let mut poisson = |mean: u64| {
            (0..mean * 100)
                .filter(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 33).is_multiple_of(100)
                })
                .count() as u64
        };
        let mut wrong = 0;
        for _ in 0..40 {
            let all: Vec<(u64, u64)> =
                (0..20).map(|nth| (poisson(5 + 10 * nth), poisson(5 + 10 * nth))).collect();
            wrong += compare_samples(&counts(&all), (1, 1), 1.0, &Options::default()).len();
        }
        assert!(wrong <= 8, "{wrong} of 800");
    }
}
