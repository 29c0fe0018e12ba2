// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Durations of one kind in one run, and the precision of their quantiles and mean.

/// Durations of one kind in one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Nanoseconds, in time order.
    in_time: Vec<u64>,
    /// Nanoseconds, in ascending order.
    sorted: Vec<u64>,
    /// Upper bound of durations that are missing because events were lost or unreadable.
    missing: u64,
}

/// Largest ratio between the quartiles, and between the fastest and the median, of steady durations.
const STEADY: f64 = 2.0;

/// A number, and the standard error of its logarithm within the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// In the unit of the values.
    pub value: f64,
    /// Standard error of ln(value).
    pub error: f64,
}

impl Run {
    /// From durations in time order; at most `missing` more were not recorded (`u64::MAX` if unknown).
    ///
    /// Cost: a sorted copy, O(n log n).
    #[must_use]
    pub fn new(in_time: Vec<u64>, missing: u64) -> Self {
        let mut sorted = in_time.clone();
        sorted.sort_unstable();
        Self { in_time, sorted, missing }
    }

    /// Number of recorded durations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no recorded durations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Upper bound of missing durations.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Durations in time order.
    #[must_use]
    pub fn in_time(&self) -> &[u64] {
        &self.in_time
    }

    /// Durations in ascending order.
    #[must_use]
    pub fn sorted(&self) -> &[u64] {
        &self.sorted
    }

    /// Sum, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u128 {
        self.sorted.iter().map(|&nanos| u128::from(nanos)).sum()
    }

    /// Level among the recorded durations that is at least (`up`), or at most, the level `q` of all
    /// durations, wherever the missing ones would be; `None` if there is no such level.
    pub(super) fn worst_level(&self, q: f64, up: bool) -> Option<f64> {
        let all = self.len() as f64 + self.missing as f64;
        let share = self.missing as f64 / all;
        let level = if up { q / (1.0 - share) } else { (q - share) / (1.0 - share) };
        (self.missing == 0 || (level > 0.0 && level < 1.0)).then_some(level)
    }

    /// Quantile at a level from 0 to 1. `None` if there are no durations.
    ///
    /// Consecutive durations are similar: a slow phase affects many of them. So the error is larger than
    /// that of independent values. The fraction of values below the quantile is taken in each of several
    /// parts of the run; its variance between the parts gives the precision of the fraction, and the
    /// quantiles at the ends of that uncertainty give the precision of the quantile (batch means of the
    /// indicator, then order statistics).
    ///
    /// Cost: O(n).
    pub(super) fn quantile(&self, level: f64) -> Option<Estimate> {
        let value = self.at(level)?;
        let below = |values: &[u64]| {
            // Ties count half; otherwise a frequent value would not be a quantile of itself.
            let count: f64 = values.iter().map(|&v| half_order(v, value)).sum();
            count / values.len() as f64
        };
        let spread = self.error_of_mean(below).unwrap_or(1.0).max(0.25 / self.len() as f64);
        let ln = |level: f64| self.at(level).map_or(0.0, |value| (value.max(1) as f64).ln());
        let width = ln((level + 2.0 * spread).min(1.0)) - ln((level - 2.0 * spread).max(0.0));
        Some(Estimate { value: value.max(1) as f64, error: (width / 4.0).max(self.least_error()) })
    }

    /// Mean, with the error estimated from parts of the run. `None` if there are no durations.
    pub(super) fn mean(&self) -> Option<Estimate> {
        if self.is_empty() {
            return None;
        }
        let mean = |values: &[u64]| crate::mean(crate::durations::sum(values), values.len() as u64);
        let value = mean(&self.in_time).max(1.0);
        let error = self.error_of_mean(mean).map_or(0.0, |error| error / value);
        Some(Estimate { value, error: error.max(self.least_error()) })
    }

    /// Distance of two quantiles as the logarithm of their ratio; 0 if there are no durations.
    pub(super) fn distance(&self, low: f64, high: f64) -> f64 {
        let ln = |level| self.at(level).map_or(0.0, |value| (value.max(1) as f64).ln());
        ln(high) - ln(low)
    }

    /// Whether most durations are about the same, which is not so for waits.
    pub(super) fn is_steady(&self) -> bool {
        let of = |low: f64, high: f64| self.distance(low, high) <= STEADY.ln();
        let from_quickest = self.quickest().is_none_or(|quickest| {
            self.at(0.5).is_some_and(|median| median.max(1) as f64 <= STEADY * quickest)
        });
        of(0.25, 0.75) && from_quickest
    }

    /// Whether the longest durations are like the others, and outliers take nearly no time.
    pub(super) fn has_short_tail(&self) -> bool {
        let longest = STEADY * self.at(0.5).unwrap_or(0).max(1) as f64;
        let from = self.sorted.partition_point(|&nanos| nanos as f64 <= longest);
        let beyond: u128 = self.sorted[from..].iter().map(|&nanos| u128::from(nanos)).sum();
        self.distance(0.5, 0.99) <= STEADY.ln() && beyond as f64 <= 0.05 * self.total_ns() as f64
    }

    /// The third shortest duration: the shortest one or two may be accidents. `None` if there are no
    /// durations.
    pub(super) fn quickest(&self) -> Option<f64> {
        let nanos = self.sorted.get(2).or(self.sorted.last())?;
        Some((*nanos).max(1) as f64)
    }

    /// Nearest-rank quantile.
    fn at(&self, level: f64) -> Option<u64> {
        let rank = (level * self.len() as f64).ceil().max(1.0) as usize;
        self.sorted.get(rank.min(self.len()).checked_sub(1)?).copied()
    }

    /// A few values that happen to be equal do not make their quantile precise: a duration that occurs
    /// once in a run is assumed to vary by a third (one standard error).
    fn least_error(&self) -> f64 {
        if self.shows_its_spread() { 0.0 } else { 0.33 }
    }

    /// Whether there are enough values to estimate their variation. Something that happens once in a run
    /// may have a cold cache in one run and a warm one in the next, and then takes several times as long.
    pub(super) fn shows_its_spread(&self) -> bool {
        stretches(self.len()) >= 2
    }

    /// Standard error of a mean over the run, from its variation between parts of the run; `None` if
    /// there are too few values.
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

/// Number of parts for this number of values: long ones, so that values within one are similar and
/// different parts are independent.
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

/// Sample variance; 0 for fewer than two values.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)
}

/// Cliff's delta of two sorted samples, from -1 to 1: how much more often a value of `after` exceeds one
/// of `before` than the reverse. It is a scaled Mann–Whitney U.
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
