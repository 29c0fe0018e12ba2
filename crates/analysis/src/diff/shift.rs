// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Factor by which a number moved, and whether that is significant.

use super::pace::Pace;
use super::run::{Estimate, variance};
use super::student::{self, Student};

/// Weight of the assumed noise between runs, in runs.
pub const PRIOR_FREEDOM: f64 = 16.0;

/// Criteria for a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Smaller shifts than this fraction are ignored: 0.05 is 5 %.
    pub threshold: f64,
    /// Assumed variation between runs of the same program, even for something that always takes the same
    /// time: one standard deviation, as a fraction. Variation within a run is assumed to occur between
    /// runs, too.
    pub noise: f64,
    /// Tolerated fraction of wrong claims among all claims.
    pub error: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 0.05, noise: 0.02, error: 0.05 }
    }
}

/// Shift of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Value in GOOD: the geometric mean over its runs.
    pub before: f64,
    /// Value in BAD.
    pub after: f64,
    /// Factor by which everything else moved, which is attributed to the machine.
    pub pace: f64,
    /// Least and largest factor from `before` to `after`, relative to the pace, at 95 % confidence.
    pub factor: (f64, f64),
    /// Probability of a shift at least this large, either way, if there were no difference; 1 if the
    /// shift is within the threshold.
    pub probability: f64,
    /// The same probability if runs of one program did not differ from each other: if this is small and
    /// `probability` is large, more runs would decide.
    pub probability_within: f64,
}

impl Shift {
    /// Factor from `before` to `after`, relative to the pace; 1.2 is 20 % more.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.after / (self.before * self.pace)
    }

    /// Whether the number increased.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.after >= self.before * self.pace
    }
}

/// Difference of the means of two sides, with its error; all as logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Difference {
    /// Mean of GOOD.
    pub before: f64,
    /// Mean of BAD minus mean of GOOD.
    pub difference: f64,
    /// Standard error of the difference.
    pub error: f64,
    /// Standard error if runs of one program did not differ from each other.
    pub error_within: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

/// Difference between estimates of several runs per side; `None` if a side has none. `noise` is the
/// assumed standard deviation between runs.
pub(super) fn difference(
    before: &[Estimate],
    after: &[Estimate],
    noise: f64,
) -> Option<Difference> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let logs = |side: &[Estimate]| side.iter().map(|e| e.value.ln()).collect::<Vec<f64>>();
    let (x, y) = (logs(before), logs(after));
    let (n, m) = (x.len() as f64, y.len() as f64);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let all = || before.iter().chain(after);
    // Variance of one run: within itself, and between runs.
    let within = all().map(|estimate| estimate.error.powi(2)).sum::<f64>() / (n + m);
    let freedom = n + m - 2.0;
    let seen = if freedom > 0.0 {
        ((n - 1.0) * variance(&x) + (m - 1.0) * variance(&y)) / freedom
    } else {
        0.0
    };
    let prior = noise * noise + within;
    let one = (PRIOR_FREEDOM * prior + freedom * seen) / (PRIOR_FREEDOM + freedom);
    let of = |variance: f64| (variance * (1.0 / n + 1.0 / m)).sqrt();
    Some(Difference {
        before: mean(&x),
        difference: mean(&y) - mean(&x),
        error: of(one),
        error_within: of(within),
        freedom: PRIOR_FREEDOM + freedom,
    })
}

/// Shift between estimates of several runs per side, relative to the pace; `None` if a side has none.
pub(super) fn shift(
    before: &[Estimate],
    after: &[Estimate],
    noise: f64,
    pace: &Pace,
    options: &Options,
) -> Option<Shift> {
    let found = difference(before, after, noise)?;
    let tail = |away: f64, error: f64, student: &Student| {
        if away.abs() < options.threshold.ln_1p() {
            return 1.0;
        }
        2.0 * student.upper_tail(away.abs() / error.max(1e-9))
    };
    let Difference { difference, error, error_within, freedom, .. } = found;
    let of_runs = Student::new(freedom);
    let beside = difference - pace.centre();
    let half = error.hypot(pace.error()) * student::quantile(0.025, freedom);
    let is_far = beside.abs() >= options.threshold.ln_1p();
    let probability = pace.mean(|at| tail(difference - at, error, &of_runs));
    Some(Shift {
        before: found.before.exp(),
        after: (found.before + difference).exp(),
        pace: pace.factor(),
        factor: ((beside - half).exp(), (beside + half).exp()),
        probability: if is_far { probability.min(1.0) } else { 1.0 },
        probability_within: tail(beside, error_within, &Student::new(f64::INFINITY)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &[f64], after: &[f64]) -> Shift {
        let estimates = |values: &[f64]| {
            values.iter().map(|&value| Estimate { value, error: 0.005 }).collect::<Vec<_>>()
        };
        let options = Options::default();
        let (before, after) = (estimates(before), estimates(after));
        shift(&before, &after, options.noise, &Pace::steady(), &options).unwrap()
    }

    #[test]
    fn a_fifth_is_found_in_one_run_each_and_a_twentieth_is_not() {
        let fifth = of(&[100.0], &[120.0]);
        assert!(fifth.probability < 0.01, "{fifth:?}");
        assert!(fifth.factor.0 > 1.05 && fifth.factor.1 < 1.4, "{fifth:?}");
        let tenth = of(&[100.0], &[106.0]);
        assert!(tenth.probability > 0.05 && tenth.probability_within < 1e-6, "{tenth:?}");
    }

    #[test]
    fn quiet_runs_make_small_shifts_sure_and_noisy_ones_large_shifts_unsure() {
        let before = [100.0, 100.4, 99.8, 100.1, 99.9, 100.2, 100.0, 99.7];
        let after = before.map(|value| value * 1.1);
        assert!(of(&before, &after).probability < 0.001);
        assert_eq!(of(&before, &before.map(|value| value * 1.04)).probability, 1.0);
        let noisy = [100.0, 130.0, 80.0, 115.0, 70.0, 125.0, 100.0, 60.0];
        assert!(of(&noisy, &noisy.map(|value| value * 1.2)).probability > 0.05);
    }

    #[test]
    fn faster_is_as_sure_as_slower() {
        let (slower, faster) = (of(&[100.0], &[120.0]), of(&[120.0], &[100.0]));
        assert!((slower.probability - faster.probability).abs() < 1e-12);
        assert!(slower.is_up() && !faster.is_up());
        assert!((slower.ratio() * faster.ratio() - 1.0).abs() < 1e-12);
        assert_eq!(shift(&[], &[], 0.1, &Pace::steady(), &Options::default()), None);
    }
}
