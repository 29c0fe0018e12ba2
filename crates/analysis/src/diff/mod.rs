// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What changed between two programs, or two versions of one, if anything did.
//!
//! Two runs of the same program are never equal: other programs run, memory lies elsewhere.
//! So "different" is not asked, but "different by more than a threshold, and by more than runs
//! of the same program differ". Five sources of error are told apart:
//!
//! * within a run: from stretches of the run ([`Run`]), since what follows each other is alike;
//! * between runs: a prior ([`Options::noise`]), and as many runs as there are: their variance is
//!   drawn towards the prior with the weight of [`PRIOR_FREEDOM`] runs (the moderated t of
//!   Smyth 2004), so that one run each already gives an answer and many give a better one;
//! * between machines, or one machine at two times: what everything of a recording has in common
//!   ([`Pace`]) is taken off;
//! * between states of what waits: a queue that ran full in one recording is no other program
//!   ([`chance_of_two_states`]);
//! * between many comparisons: Benjamini and Hochberg's adjustment ([`adjust`]).
//!
//! All work is on logarithms: a shift is a factor, noise is a share.
//!
//! ```text
//! GOOD runs ─┐                     ┌─ body   all three quartiles moved
//!            ├─ compare_durations ─┼─ mean   the time in all
//! BAD runs ──┘                     └─ tail   p99
//! counts ──── compare_counts ──────── per run, per second and per event alike
//! all p ───── adjust ──────────────── which of them to believe
//! ```
//!
//! Where events are missing, a quantile is taken at the level that speaks most against the
//! shift, wherever the missing ones would lie; what cannot be bounded is not claimed.

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

/// Adjusts probabilities of error for having asked so many questions: of those reported below a
/// limit, so large a share is wrong in the long run (Benjamini and Hochberg 1995).
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
