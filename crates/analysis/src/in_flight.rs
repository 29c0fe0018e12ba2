// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Durations by concurrency: how they grow with the number of spans open at once.

use crate::{Distribution, Durations};

/// Durations of one level that are kept individually; above, percentiles are rough.
const KEPT: usize = 1 << 12;

/// Durations by the number of open spans of their kind when they ended, including themselves: each number
/// up to 4, then 5 to 8, 9 to 16 and so on.
///
/// Cost: constant. Memory: 32 KiB per level and at most 34 levels.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    levels: Vec<Durations>,
}

/// Durations at one level of concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Least number of open spans.
    pub low: u64,
    /// Largest number of open spans.
    pub high: u64,
    /// Distribution of the durations.
    pub durations: Distribution,
}

impl InFlight {
    /// Adds a span that ended while `count` were open.
    pub fn push(&mut self, count: u64, nanos: u64) {
        let index = index(count);
        if index >= self.levels.len() {
            self.levels.resize_with(index + 1, || Durations::with_limit(KEPT));
        }
        self.levels[index].push(nanos);
    }

    /// Levels with spans, in ascending order.
    ///
    /// Cost: copies and sorts the kept durations.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        let level = |(index, durations): (usize, &Durations)| {
            let (low, high) = bounds(index);
            Some(Level { low, high, durations: durations.clone().distribution()? })
        };
        self.levels.iter().enumerate().filter_map(level).collect()
    }
}

fn index(count: u64) -> usize {
    match count {
        0..=4 => count.saturating_sub(1) as usize,
        // Number of bits of the value below it: 3 for 5 to 8, 4 for 9 to 16.
        _ => ((u64::BITS - (count - 1).leading_zeros()) as usize + 1).min(33),
    }
}

fn bounds(index: usize) -> (u64, u64) {
    match index {
        0..=3 => (index as u64 + 1, index as u64 + 1),
        33 => ((1 << 31) + 1, u64::MAX),
        _ => ((1 << (index - 2)) + 1, 1 << (index - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_in_its_level() {
        for count in (1..200).chain([1 << 20, (1 << 31) + 1, u64::MAX]) {
            let (low, high) = bounds(index(count));
            assert!(low <= count && count <= high, "{count}: {low} to {high}");
        }
        assert_eq!([4, 5, 8, 9, 16].map(index), [3, 4, 4, 5, 5]);
    }

    #[test]
    fn durations_are_those_of_their_level() {
        let mut all = InFlight::default();
        [(1, 10), (1, 12), (3, 50), (6, 90), (7, 110)].iter().for_each(|&(n, d)| all.push(n, d));
        let told: Vec<_> = all
            .levels()
            .iter()
            .map(|level| (level.low, level.high, level.durations.count, level.durations.mean))
            .collect();
        assert_eq!(told, [(1, 1, 2, 11.0), (3, 3, 1, 50.0), (5, 8, 2, 100.0)]);
        assert!(InFlight::default().levels().is_empty());
    }
}
