// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts and rates of events.

use lateralis_units::{NANOS_PER_SECOND, Nanos};

/// Counts events and remembers the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of events.
    pub count: u64,
    /// Earliest time.
    pub first: Option<Nanos>,
    /// Latest time.
    pub last: Option<Nanos>,
}

impl Tally {
    /// Counts one event at `time`.
    #[inline]
    pub fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }

    /// Counts one event at each of these times.
    pub fn add_all(&mut self, times: &[Nanos]) {
        self.merge(&Self::of(times));
    }

    /// Tally with one event at each of these times.
    #[must_use]
    pub fn of(times: &[Nanos]) -> Self {
        // Both in one pass, with vectorised comparisons.
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for time in times {
            first = first.min(time.0);
            last = last.max(time.0);
        }
        let ends = |time| (!times.is_empty()).then_some(Nanos(time));
        Self { count: times.len() as u64, first: ends(first), last: ends(last) }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }

    /// Events per second over this number of nanoseconds; `None` if it is 0, as there is no rate then.
    #[must_use]
    pub fn rate(&self, over_nanos: i64) -> Option<f64> {
        let seconds = over_nanos as f64 / NANOS_PER_SECOND as f64;
        (over_nanos > 0).then(|| self.count as f64 / seconds)
    }

    /// Nanoseconds from the first to the last event, 0 if there are none.
    #[must_use]
    pub fn span_nanos(&self) -> i64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.since(first),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_are_by_time_not_by_order() {
        let mut tally = Tally::default();
        [30, 10, 20].into_iter().for_each(|time| tally.add(Nanos(time)));
        assert_eq!((tally.count, tally.first, tally.last), (3, Some(Nanos(10)), Some(Nanos(30))));
        assert_eq!(tally.span_nanos(), 20);
        let mut at_once = Tally::default();
        at_once.add_all(&[]);
        assert_eq!(at_once, Tally::default());
        at_once.add_all(&[30, 10].map(Nanos));
        at_once.add_all(&[Nanos(20)]);
        assert_eq!(at_once, tally);
    }

    #[test]
    fn there_is_no_rate_where_no_time_passes() {
        let mut tally = Tally::default();
        tally.add(Nanos(5));
        assert_eq!(tally.rate(0), None);
        assert_eq!(tally.rate(500_000_000), Some(2.0));
        assert_eq!(Tally::default().span_nanos(), 0);
    }
}
