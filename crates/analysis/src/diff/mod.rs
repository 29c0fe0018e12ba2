// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Differences between two programs, or two versions of one.
//!
//! Two runs of the same program are never equal: other programs run, memory is laid out differently. So
//! the question is not whether they differ, but whether they differ by more than a threshold, and by more
//! than runs of the same program. Five sources of error are distinguished:
//!
//! * within a run: estimated from parts of the run ([`Run`]), since consecutive values are similar;
//! * between runs: a prior ([`Options::noise`]), and as many runs as there are: their variance is
//!   drawn towards the prior with the weight of [`PRIOR_FREEDOM`] runs (the moderated t of
//!   Smyth 2004), so that one run each already gives an answer and many give a better one;
//! * between machines, or one machine at two times: the common factor of everything in a recording
//!   ([`Pace`]) is removed;
//! * between states of queues: a queue that was full in one recording does not make another program
//!   ([`chance_of_two_states`]);
//! * between many comparisons: Benjamini and Hochberg's adjustment ([`adjust`]).
//!
//! All computation is on logarithms: a shift is a factor, noise is a fraction.
//!
//! ```text
//! GOOD runs ─┐                     ┌─ body   all three quartiles moved
//!            ├─ compare_durations ─┼─ mean   the time in all
//! BAD runs ──┘                     └─ tail   p99
//! counts ──── compare_counts ──────── per run, per second and per event alike
//! all p ───── adjust ──────────────── which of them to believe
//! ```
//!
//! If events are missing, a quantile is taken at the level that weakens the shift most, wherever the
//! missing values would be; nothing is claimed about values without a bound.

mod counts;
mod durations;
mod pace;
mod run;
mod samples;
mod shift;
mod student;

pub use counts::{Counted, compare_counts};
pub use durations::{DurationShift, chance_of_two_states, compare_durations, paced_by};
pub use pace::{Pace, Paces, Sides, paces};
pub use run::{Estimate, Run, cliffs_delta};
pub use samples::{SampledCount, SampledShift, compare_samples};
pub use shift::{Options, PRIOR_FREEDOM, Shift};

/// Adjusts p-values for the number of comparisons: of the results below a limit, that fraction is wrong
/// in the long run (Benjamini and Hochberg 1995).
///
/// Cost: O(n log n).
pub fn adjust(probabilities: &mut [f64]) {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    let count = probabilities.len() as f64;
    let mut least = 1.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        let rank = count - place as f64;
        least = least.min(probabilities[index] * count / rank);
        probabilities[index] = least;
    }
}

#[cfg(test)]
mod tests {
    use super::adjust;

    #[test]
    fn adjustment_is_that_of_benjamini_and_hochberg() {
        let mut p = [0.01, 0.04, 0.03, 0.005, 0.9];
        adjust(&mut p);
        let expected = [0.025, 0.05, 0.05, 0.025, 0.9];
        for (ours, expected) in p.iter().zip(expected) {
            assert!((ours - expected).abs() < 1e-12, "{p:?}");
        }
        let mut one = [0.03];
        adjust(&mut one);
        assert_eq!(one, [0.03]);
        adjust(&mut []);
    }
}
