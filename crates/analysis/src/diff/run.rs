// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One run's durations of one kind, and how well its quantiles and its mean are known.

/// Durations of one kind in one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Nanoseconds, in the order in which they happened.
    in_time: Vec<u64>,
    /// The same, shortest first.
    sorted: Vec<u64>,
    /// How many more there may have been, because events were lost or could not be read.
    missing: u64,
}

/// The most between the quartiles, and from the quickest to the median, of durations that are alike.
const STEADY: f64 = 2.0;

/// A number and the standard error of its logarithm within the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// In the unit of the values.
    pub value: f64,
    /// Standard error of ln(value).
    pub error: f64,
}

impl Run {
    /// Durations in the order of time; up to `missing` more were not seen (`u64::MAX`: nobody
    /// knows how many).
    ///
    /// Cost: a sorted copy, O(n log n).
    #[must_use]
    pub fn new(in_time: Vec<u64>, missing: u64) -> Self {
        let mut sorted = in_time.clone();
        sorted.sort_unstable();
        Self { in_time, sorted, missing }
    }

    /// How many were seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether none was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// How many more there may have been.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// In the order in which they happened.
    #[must_use]
    pub fn in_time(&self) -> &[u64] {
        &self.in_time
    }

    /// Shortest first.
    #[must_use]
    pub fn sorted(&self) -> &[u64] {
        &self.sorted
    }

    /// All together, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u128 {
        self.sorted.iter().map(|&nanos| u128::from(nanos)).sum()
    }

    /// The level among what was seen that is at least (`up`), or at most, the level `q` of all
    /// there was, wherever the missing ones would lie; `None` if that is outside.
    pub(super) fn worst_level(&self, q: f64, up: bool) -> Option<f64> {
        let all = self.len() as f64 + self.missing as f64;
        let share = self.missing as f64 / all;
        let level = if up { q / (1.0 - share) } else { (q - share) / (1.0 - share) };
        (self.missing == 0 || (level > 0.0 && level < 1.0)).then_some(level)
    }

    /// The quantile at a level from 0 to 1. `None` of nothing.
    ///
    /// What follows each other in time is alike: a slow phase is a slow phase of many. So the
    /// error is not that of so many independent values. The share of values below the quantile
    /// is taken of each of some stretches of the run; how it varies between stretches says how
    /// well the share is known, and the quantiles at the ends of that uncertainty say how well
    /// the quantile is (batch means of the indicator, then order statistics).
    ///
    /// Cost: O(n).
    pub(super) fn quantile(&self, level: f64) -> Option<Estimate> {
        let value = self.at(level)?;
        let below = |values: &[u64]| {
            // Ties count half, else a value that occurs often would be no quantile of itself.
            let count: f64 = values.iter().map(|&v| half_order(v, value)).sum();
            count / values.len() as f64
        };
        let spread = self.error_of_mean(below).unwrap_or(1.0).max(0.25 / self.len() as f64);
        let ln = |level: f64| self.at(level).map_or(0.0, |value| (value.max(1) as f64).ln());
        let width = ln((level + 2.0 * spread).min(1.0)) - ln((level - 2.0 * spread).max(0.0));
        Some(Estimate { value: value.max(1) as f64, error: (width / 4.0).max(self.least_error()) })
    }

    /// The mean, with the error that its stretches show. `None` of nothing.
    pub(super) fn mean(&self) -> Option<Estimate> {
        if self.is_empty() {
            return None;
        }
        let mean = |values: &[u64]| crate::mean(crate::durations::sum(values), values.len() as u64);
        let value = mean(&self.in_time).max(1.0);
        let error = self.error_of_mean(mean).map_or(0.0, |error| error / value);
        Some(Estimate { value, error: error.max(self.least_error()) })
    }

    /// Distance of two quantiles, as the logarithm of their ratio; 0 of nothing.
    pub(super) fn distance(&self, low: f64, high: f64) -> f64 {
        let ln = |level| self.at(level).map_or(0.0, |value| (value.max(1) as f64).ln());
        ln(high) - ln(low)
    }

    /// Whether most of them take the same time, give or take: what waits for others does not.
    pub(super) fn is_steady(&self) -> bool {
        let of = |low: f64, high: f64| self.distance(low, high) <= STEADY.ln();
        let from_quickest = self.quickest().is_none_or(|quickest| {
            self.at(0.5).is_some_and(|median| median.max(1) as f64 <= STEADY * quickest)
        });
        of(0.25, 0.75) && from_quickest
    }

    /// Whether the longest are like the others, and nearly no time is in those that are not.
    pub(super) fn has_short_tail(&self) -> bool {
        let longest = STEADY * self.at(0.5).unwrap_or(0).max(1) as f64;
        let from = self.sorted.partition_point(|&nanos| nanos as f64 <= longest);
        let beyond: u128 = self.sorted[from..].iter().map(|&nanos| u128::from(nanos)).sum();
        self.distance(0.5, 0.99) <= STEADY.ln() && beyond as f64 <= 0.05 * self.total_ns() as f64
    }

    /// What the quickest take: the third, since one or two may be accidents. `None` of nothing.
    pub(super) fn quickest(&self) -> Option<f64> {
        let nanos = self.sorted.get(2).or(self.sorted.last())?;
        Some((*nanos).max(1) as f64)
    }

    /// Nearest rank.
    fn at(&self, level: f64) -> Option<u64> {
        let rank = (level * self.len() as f64).ceil().max(1.0) as usize;
        self.sorted.get(rank.min(self.len()).checked_sub(1)?).copied()
    }

    /// A few values that happen to be equal do not make their quantiles known: what happens
    /// once in a run varies by a third (one standard error) for all that the run says.
    fn least_error(&self) -> f64 {
        if self.shows_its_spread() { 0.0 } else { 0.33 }
    }

    /// Whether there are enough values to see how much they vary. What happens once in a run may meet a
    /// cold cache in one run and not in the next, and then takes several times as long.
    pub(super) fn shows_its_spread(&self) -> bool {
        stretches(self.len()) >= 2
    }

    /// Standard error of a mean over the run, from how it varies between stretches of it; `None`
    /// where there are too few values to tell.
    fn error_of_mean(&self, of: impl Fn(&[u64]) -> f64) -> Option<f64> {
        let stretches = stretches(self.len());
        if stretches < 2 {
            return None;
        }
        let each: Vec<f64> = (0..stretches)
            .map(|index| {
                let cut = |index: usize| index * self.len() / stretches;
                of(&self.in_time[cut(index)..cut(index + 1)])
            })
            .collect();
        Some((variance(&each) / stretches as f64).sqrt())
    }
}

/// Into how many stretches so many values are cut: long ones, so that what follows each other
/// in one is alike and two are not.
fn stretches(count: usize) -> usize {
    match count {
        0..8 => 0,
        _ => ((count as f64).sqrt() as usize).clamp(2, 24),
    }
}

fn half_order(value: u64, pivot: u64) -> f64 {
    match value.cmp(&pivot) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    }
}

/// Sample variance; 0 of fewer than two.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)
}

/// Cliff's delta of two sorted samples: how much more often one of `after` exceeds one of
/// `before` than the other way round, from -1 to 1. It is Mann and Whitney's U, scaled.
///
/// Cost: O(n + m).
#[must_use]
pub fn cliffs_delta(before: &[u64], after: &[u64]) -> f64 {
    if before.is_empty() || after.is_empty() {
        return 0.0;
    }
    let (mut below, mut not_above) = (0, 0);
    let mut balance = 0_i128;
    for value in after {
        below += before[below..].iter().take_while(|other| *other < value).count();
        not_above = not_above.max(below);
        not_above += before[not_above..].iter().take_while(|other| *other <= value).count();
        balance += below as i128 - (before.len() - not_above) as i128;
    }
    balance as f64 / (before.len() as f64 * after.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_is_what_counting_all_pairs_gives() {
        let before = [1, 2, 2, 3, 9];
        let after = [2, 2, 4, 10];
        let mut balance = 0;
        for b in before {
            for a in after {
                balance += i32::from(a > b) - i32::from(a < b);
            }
        }
        assert_eq!(cliffs_delta(&before, &after), f64::from(balance) / 20.0);
        assert_eq!(cliffs_delta(&[1, 2], &[3, 4]), 1.0);
        assert_eq!(cliffs_delta(&[3, 4], &[1, 2]), -1.0);
        assert_eq!(cliffs_delta(&[5, 5], &[5]), 0.0);
        assert_eq!(cliffs_delta(&[], &[5]), 0.0);
    }

    #[test]
    fn what_follows_each_other_alike_is_known_less_well() {
        // The same values: shuffled, and in one slow phase.
        let count = 4000_u64;
        let mixed: Vec<u64> = (0..count).map(|i| 1000 + (i * 2_654_435_761) % count).collect();
        let mut phase = mixed.clone();
        phase.sort_unstable();
        let error = |values| Run::new(values, 0).quantile(0.5).unwrap().error;
        let (mixed, phase) = (error(mixed), error(phase));
        assert!(phase > 5.0 * mixed, "{phase} {mixed}");
        // Independent values from 1000 to 5000: 4000 / sqrt(4 n) around the median 3000.
        let theory = (4000.0 / (4.0 * count as f64).sqrt()) / 3000.0;
        assert!(mixed < 3.0 * theory, "{mixed} {theory}");
    }

    #[test]
    fn missing_ones_widen_the_levels() {
        let run = Run::new(vec![1; 90], 10);
        assert!((run.worst_level(0.5, true).unwrap() - 0.5 / 0.9).abs() < 1e-9);
        assert!((run.worst_level(0.5, false).unwrap() - 0.4 / 0.9).abs() < 1e-9);
        assert_eq!(run.worst_level(0.95, true), None);
        assert_eq!(Run::new(vec![1; 9], u64::MAX).worst_level(0.5, true), None);
        assert_eq!(Run::new(vec![1; 9], 0).worst_level(0.5, true), Some(0.5));
    }

    #[test]
    fn few_values_tell_nothing_of_their_error() {
        let run = Run::new(vec![10, 1000, 10], 0);
        assert!(run.quantile(0.5).unwrap().error > 1.0);
        assert!(Run::default().quantile(0.5).is_none() && Run::default().mean().is_none());
    }
}
