// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats instruction counts for people.

use crate::output::Page;
use crate::values;

/// Approximate number of rows in a histogram.
const BINS: u64 = 20;
/// Length of the longest bar of a histogram, in columns.
const BAR: u64 = 50;

/// Returns the given quantile, in thousandths: the smallest length that at least this share of all lengths
/// does not exceed.
pub fn rank(sorted: &[u64], of_thousand: usize) -> u64 {
    let place = (sorted.len() * of_thousand).div_ceil(1000).max(1) - 1;
    sorted.get(place).copied().unwrap_or(0)
}

pub fn mean(sorted: &[u64]) -> f64 {
    let sum: u128 = sorted.iter().map(|of| u128::from(*of)).sum();
    if sorted.is_empty() { 0.0 } else { sum as f64 / sorted.len() as f64 }
}

/// Returns a round bin width: 1, 2 or 5 times a power of ten.
fn step(least: u64, most: u64, bins: u64) -> u64 {
    let wanted = (most - least) / bins + 1;
    let mut power = 1_u64;
    loop {
        for of in [1, 2, 5] {
            if power.saturating_mul(of) >= wanted {
                return power.saturating_mul(of);
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Counts lengths in about `most_bins` bins of equal width. Returns the number of the first bin (its lower
/// edge divided by the width), the width, and the count of each bin.
pub fn bins(sorted: &[u64], most_bins: u64) -> (u64, u64, Vec<u64>) {
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return (0, 1, Vec::new());
    };
    let step = step(*least, *most, most_bins);
    let first = least / step;
    let mut bins = vec![0_u64; (most / step - first + 1) as usize];
    sorted.iter().for_each(|of| bins[(of / step - first) as usize] += 1);
    (first, step, bins)
}

/// Prints the frequency of each length.
pub fn histogram(page: &mut Page, sorted: &[u64]) {
    let (first, step, bins) = bins(sorted, BINS);
    let highest = bins.iter().copied().max().unwrap_or(1).max(1);
    for (place, count) in (first..).zip(&bins) {
        let bar = "█".repeat((count * BAR).div_ceil(highest) as usize);
        line!(page, "{:>12}  {:>9}  {bar}", values::count(place * step), values::count(*count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbers_that_were_measured() {
        let all: Vec<u64> = (1..=10).collect();
        assert_eq!([1, 500, 900, 990, 1000].map(|of| rank(&all, of)), [1, 5, 9, 10, 10]);
        assert_eq!(mean(&[1, 2]), 1.5);
    }

    #[test]
    fn edges_are_round_and_no_more_than_there_is_room_for() {
        assert_eq!(step(0, 19, BINS), 1);
        assert_eq!(step(0, 329, BINS), 20);
        for most in [1, 7, 1000, u64::MAX] {
            assert!(most / step(0, most, BINS) <= BINS, "{most}");
        }
    }
}
