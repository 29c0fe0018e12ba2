// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event rates over time, and the longest silences.

use lateralis_units::Nanos;

use crate::series::Grid;

/// Event times in any order, counted in equal buckets of time, with the first and the last event of each
/// bucket. A silence at least as long as a bucket crosses a bucket boundary, so all of these are known to
/// the nanosecond without keeping the times.
///
/// Events before the begin are counted, but do not end silences. Memory: 24 bytes per bucket.
#[derive(Debug, Clone)]
pub struct Rhythm {
    grid: Grid,
    buckets: Vec<Beat>,
    early_count: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Beat {
    count: u64,
    first: u64,
    last: u64,
}

/// An interval without events between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Time of the event before.
    pub begin: Nanos,
    /// Time of the event after.
    pub end: Nanos,
}

impl Silence {
    /// Length in nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.0.wrapping_sub(self.begin.0) as u64
    }
}

impl Rhythm {
    /// Starts at `begin`, with at most `buckets` buckets (at least 2).
    #[must_use]
    pub fn new(begin: Nanos, buckets: usize) -> Self {
        Self { grid: Grid::new(begin, buckets), buckets: Vec::new(), early_count: 0 }
    }

    /// Counts an event. Cost: constant.
    #[inline]
    pub fn add(&mut self, time: Nanos) {
        if time < self.grid.begin {
            self.early_count += 1;
            return;
        }
        let offset = self.grid.offset(time);
        let index = self.grid.index(offset);
        if index >= self.buckets.len() {
            self.reach(offset);
        }
        let index = self.grid.index(offset);
        let beat = &mut self.buckets[index];
        *beat = join(*beat, Beat { count: 1, first: offset, last: offset });
    }

    #[cold]
    fn reach(&mut self, offset: u64) {
        let buckets = &mut self.buckets;
        self.grid.reach(offset, || {
            let two = |two: &[Beat]| join(two[0], two.get(1).copied().unwrap_or_default());
            *buckets = buckets.chunks(2).map(two).collect();
        });
        let index = self.grid.index(offset);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Beat::default());
        }
    }

    /// Counts events. Cost: for ascending times, a search in each bucket.
    pub fn add_all(&mut self, times: &[Nanos]) {
        if !times.is_sorted() {
            return times.iter().for_each(|&time| self.add(time));
        }
        let early = times.partition_point(|time| *time < self.grid.begin);
        self.early_count += early as u64;
        let mut rest = &times[early..];
        let Some(&last) = rest.last() else { return };
        // Reaches to the last time, so that the width does not change below.
        let last = self.grid.offset(last);
        if self.grid.index(last) >= self.buckets.len() {
            self.reach(last);
        }
        while let Some(&first) = rest.first() {
            let first = self.grid.offset(first);
            let index = self.grid.index(first);
            let is_inside = |time: &Nanos| self.grid.index(self.grid.offset(*time)) == index;
            let (inside, behind) = rest.split_at(rest.partition_point(is_inside));
            let last = inside.last().map_or(first, |last| self.grid.offset(*last));
            let beat = Beat { count: inside.len() as u64, first, last };
            self.buckets[index] = join(self.buckets[index], beat);
            rest = behind;
        }
    }

    /// Width of a bucket in nanoseconds.
    #[must_use]
    pub fn width_nanos(&self) -> u64 {
        self.grid.width()
    }

    /// Number of events before the begin.
    #[must_use]
    pub fn early_count(&self) -> u64 {
        self.early_count
    }

    /// Events in each bucket, up to the last that has any.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.buckets.iter().map(|beat| beat.count)
    }

    /// Silences at least as long as a bucket, longest first, equal ones in time order; at most `limit`.
    #[must_use]
    pub fn silences(&self, limit: usize) -> Vec<Silence> {
        let at = |offset: u64| Nanos(self.grid.begin.0.wrapping_add(offset as i64));
        let full: Vec<&Beat> = self.buckets.iter().filter(|beat| beat.count > 0).collect();
        let mut all: Vec<Silence> = full
            .windows(2)
            .map(|two| Silence { begin: at(two[0].last), end: at(two[1].first) })
            .filter(|silence| silence.nanos() >= self.width_nanos())
            .collect();
        all.sort_by_key(|silence| (std::cmp::Reverse(silence.nanos()), silence.begin));
        all.truncate(limit);
        all
    }
}

fn join(a: Beat, b: Beat) -> Beat {
    match (a.count, b.count) {
        (0, _) => b,
        (_, 0) => a,
        _ => {
            Beat { count: a.count + b.count, first: a.first.min(b.first), last: a.last.max(b.last) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_silence_is_found_to_the_nanosecond() {
        let mut rhythm = Rhythm::new(Nanos(1000), 4);
        assert_eq!(rhythm.silences(9), []);
        rhythm.add_all(&[1000, 1090, 1003, 1100, 1091].map(Nanos));
        let longest = rhythm.silences(1)[0];
        assert_eq!(longest, Silence { begin: Nanos(1003), end: Nanos(1090) });
        assert_eq!(rhythm.counts().sum::<u64>(), 5);
        rhythm.add(Nanos(7));
        assert_eq!((rhythm.early_count(), rhythm.silences(1)[0]), (1, longest));
    }

    proptest! {
        #[test]
        fn all_silences_as_long_as_a_bucket_are_found(
            mut times in prop::collection::vec(0i64..5000, 1..60),
        ) {
            let mut rhythm = Rhythm::new(Nanos(0), 16);
            times.iter().for_each(|&time| rhythm.add(Nanos(time)));
            times.sort_unstable();
            let width = rhythm.width_nanos();
            let mut expected: Vec<u64> = times.windows(2).map(|w| (w[1] - w[0]) as u64).collect();
            expected.retain(|&nanos| nanos >= width);
            expected.sort_unstable_by(|a, b| b.cmp(a));
            let found: Vec<u64> = rhythm.silences(1000).iter().map(Silence::nanos).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(rhythm.counts().sum::<u64>(), times.len() as u64);
            prop_assert!(rhythm.counts().len() <= 16);
        }
    }
}
