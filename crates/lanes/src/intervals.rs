// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A row of intervals: spans of one depth, states, who ran.

use std::collections::BTreeMap;

use crate::column::{Column, Grid};
use crate::pixels::{BLOCK, EACH, MAIN, Pixels, Scale, share};
use crate::{PointRef, UNFINISHED};

/// Intervals of which no two overlap, in the order of time; one of no length takes its
/// nanosecond.
#[derive(Clone)]
pub struct Intervals {
    pub(crate) begins: Column<u64>,
    pub(crate) ends: Column<u64>,
    pub(crate) names: Column<u32>,
    pub(crate) threads: Column<u32>,
    /// Lane and index of the event that began each, and that ended it.
    pub(crate) from: [Column<u32>; 2],
    pub(crate) to: [Column<u32>; 2],
    pub(crate) flags: Column<u8>,
    pub(crate) grid: Grid,
    /// The names with the most time.
    pub(crate) main: Vec<u32>,
    pub(crate) sums: Sums,
}

/// Time up to each block: all, and of each main name.
#[derive(Clone)]
pub(crate) enum Sums {
    Kept(Column<u64>),
    Made(Vec<u64>),
}

impl Sums {
    fn get(&self, index: usize) -> u64 {
        match self {
            Self::Kept(column) => column.get(index),
            Self::Made(sums) => sums.get(index).copied().unwrap_or(0),
        }
    }

    /// Of intervals, as names and lengths in their order.
    pub(crate) fn of(items: impl Iterator<Item = (u32, u64)>, main: &[u32]) -> Vec<u64> {
        let wide = main.len() + 1;
        let mut sums = vec![0u64; wide];
        let mut sum = vec![0u64; wide];
        for (index, (name, length)) in items.enumerate() {
            sum[0] = sum[0].saturating_add(length);
            if let Some(place) = main.iter().position(|main| *main == name) {
                sum[place + 1] = sum[place + 1].saturating_add(length);
            }
            if (index + 1) % BLOCK == 0 {
                sums.extend_from_slice(&sum);
            }
        }
        sums
    }
}

/// The names that take the most time; of equal ones the smaller.
pub(crate) fn main_names(items: impl Iterator<Item = (u32, u64)>) -> Vec<u32> {
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    for (name, length) in items {
        let time = times.entry(name).or_default();
        *time = time.saturating_add(length);
    }
    let mut names: Vec<(u32, u64)> = times.into_iter().collect();
    names.sort_by_key(|(name, time)| (std::cmp::Reverse(*time), *name));
    names.into_iter().take(MAIN).map(|(name, _)| name).collect()
}

/// Those of a row that a filter leaves.
#[derive(Clone)]
pub struct Left {
    items: Vec<u32>,
    sums: Sums,
}

impl Intervals {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.begins.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When one begins and ends, since the origin.
    #[must_use]
    pub fn ends(&self, index: usize) -> (u64, u64) {
        let begin = self.begins.get(index);
        (begin, self.ends.get(index).max(begin))
    }

    /// Its name, or the application that runs.
    #[must_use]
    pub fn name(&self, index: usize) -> u32 {
        self.names.get(index)
    }

    /// Its thread.
    #[must_use]
    pub fn thread(&self, index: usize) -> u32 {
        self.threads.get(index)
    }

    /// The events that began and ended it.
    #[must_use]
    pub fn events(&self, index: usize) -> [Option<PointRef>; 2] {
        [&self.from, &self.to].map(|[lanes, indices]| {
            let point = PointRef { lane: lanes.get(index), index: indices.get(index) };
            (point.lane != crate::NONE).then_some(point)
        })
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_unfinished(&self, index: usize) -> bool {
        self.flags.get(index) & UNFINISHED != 0
    }

    /// How far its length is to be trusted, as [`crate::quality_name`] has it.
    #[must_use]
    pub fn quality(&self, index: usize) -> u8 {
        self.flags.get(index) >> 1
    }

    /// How many begin before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        self.grid.before(&self.begins, time)
    }

    /// From which to which one they touch a stretch of time.
    #[must_use]
    pub fn touching(&self, begin: i64, end: i64) -> (usize, usize) {
        let mut from = self.before(begin);
        if from > 0 && self.reach(from - 1) > begin {
            from -= 1;
        }
        (from, self.before(end).max(from))
    }

    /// The nanosecond behind one.
    fn reach(&self, index: usize) -> i64 {
        let (begin, end) = self.ends(index);
        i64::try_from(end.max(begin.saturating_add(1))).unwrap_or(i64::MAX)
    }

    /// Those that a filter leaves, so that they can be drawn.
    ///
    /// Cost: a look at each.
    #[must_use]
    pub fn left(&self, keeps: impl Fn(usize) -> bool) -> Left {
        let items: Vec<u32> = (0..self.len()).filter(|i| keeps(*i)).map(|i| i as u32).collect();
        let lengths = items.iter().map(|item| {
            let (begin, end) = self.ends(*item as usize);
            (self.name(*item as usize), end - begin)
        });
        let sums = Sums::Made(Sums::of(lengths, &self.main));
        Left { items, sums }
    }

    /// Which of those that are left touch a stretch: ranks among them.
    fn ranks(&self, left: Option<&Left>, begin: i64, end: i64) -> (usize, usize) {
        let (from, to) = self.touching(begin, end);
        match left {
            None => (from, to),
            Some(Left { items, .. }) => {
                let low = items.partition_point(|item| (*item as usize) < from);
                (low, low + items[low..].partition_point(|item| (*item as usize) < to))
            }
        }
    }

    /// Draws all, or those that are left, as [`crate::pixels`] says: how many at most touch a
    /// pixel.
    pub fn draw(&self, left: Option<&Left>, scale: &Scale, out: &mut Pixels) -> usize {
        let mut most = 0;
        for pixel in 0..scale.px {
            let (begin, end) = scale.pixel(pixel);
            let (from, to) = self.ranks(left, begin, end);
            let count = to - from;
            most = most.max(count);
            if count == 0 {
                out.nothing();
                continue;
            }
            let (name, covered) = self.most_of(left, (from, to), (begin, end));
            // Only the last one can be open beyond those behind it.
            let is_unended = self.is_unfinished(item(left, to - 1));
            let cover = share(covered, (end - begin) as u64);
            out.push(name, cover, count, is_unended);
        }
        most
    }

    /// The items that touch a picture.
    #[must_use]
    pub fn items(&self, left: Option<&Left>, scale: &Scale) -> Vec<usize> {
        let (from, to) = self.ranks(left, scale.t0, scale.t1);
        (from..to).map(|rank| item(left, rank)).collect()
    }

    /// How much of a stretch an interval covers.
    fn covered(&self, index: usize, (begin, end): (i64, i64)) -> u64 {
        let (since, until) = self.ends(index);
        let since = i64::try_from(since).unwrap_or(i64::MAX).max(begin);
        let until = i64::try_from(until).unwrap_or(i64::MAX).min(end);
        u64::try_from(until.saturating_sub(since)).unwrap_or(0)
    }

    /// The name that covers most of a stretch that some touch, and how much all do.
    fn most_of(
        &self,
        left: Option<&Left>,
        (from, to): (usize, usize),
        stretch: (i64, i64),
    ) -> (u32, u64) {
        if to - from == 1 {
            let only = item(left, from);
            return (self.name(only), self.covered(only, stretch));
        }
        if to - from <= EACH {
            return self.most_of_few(left, (from, to), stretch);
        }
        let wide = self.main.len() + 1;
        let sums = left.map_or(&self.sums, |left| &left.sums);
        let mut found = [0u64; MAIN + 1];
        let mut add = |rank: usize| {
            let index = item(left, rank);
            let (covered, name) = (self.covered(index, stretch), self.name(index));
            found[0] = found[0].saturating_add(covered);
            if let Some(place) = self.main.iter().take(MAIN).position(|main| *main == name) {
                found[place + 1] = found[place + 1].saturating_add(covered);
            }
        };
        let (first, last) = ((from + 1).div_ceil(BLOCK), (to - 1) / BLOCK);
        (from..first * BLOCK).for_each(&mut add);
        (last * BLOCK..to).for_each(&mut add);
        for (place, sum) in found.iter_mut().enumerate().take(wide) {
            let more = sums.get(last * wide + place);
            *sum = sum.saturating_add(more.saturating_sub(sums.get(first * wide + place)));
        }
        let mut best: Option<(u64, u32)> = None;
        for (place, name) in self.main.iter().enumerate().take(MAIN) {
            let sum = found[place + 1];
            let is_better = best.is_none_or(|(most, of)| sum > most || (sum == most && *name < of));
            if sum > 0 && is_better {
                best = Some((sum, *name));
            }
        }
        let name = best.map_or_else(|| self.name(item(left, from)), |(_, name)| name);
        (name, found[0])
    }

    fn most_of_few(
        &self,
        left: Option<&Left>,
        (from, to): (usize, usize),
        stretch: (i64, i64),
    ) -> (u32, u64) {
        let mut parts = [(0u32, 0u64); EACH];
        let parts = &mut parts[..to - from];
        let mut all = 0;
        for (rank, part) in (from..).zip(parts.iter_mut()) {
            let index = item(left, rank);
            *part = (self.name(index), self.covered(index, stretch));
            all = u64::saturating_add(all, part.1);
        }
        parts.sort_unstable_by_key(|(name, _)| *name);
        let mut best = (parts[0].0, 0);
        for same in parts.chunk_by(|a, b| a.0 == b.0) {
            let sum = same.iter().fold(0, |sum: u64, (_, covered)| sum.saturating_add(*covered));
            if sum > best.1 {
                best = (same[0].0, sum);
            }
        }
        (best.0, all)
    }
}

impl Left {
    /// Which are left.
    #[must_use]
    pub fn items(&self) -> &[u32] {
        &self.items
    }
}

#[inline]
fn item(left: Option<&Left>, rank: usize) -> usize {
    left.map_or(rank, |left| left.items.get(rank).copied().unwrap_or(0) as usize)
}
