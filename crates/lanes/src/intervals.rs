// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A row of intervals: spans of one depth, states, CPU occupancy.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::column::Column;
use crate::grid::Grid;
use crate::pixels::{BLOCK, MAIN};
use crate::{Interval, PointRef, UNFINISHED};

/// Disjoint intervals in time order; one of length 0 occupies its nanosecond.
#[derive(Clone)]
pub struct Intervals {
    pub(crate) begins: Column<u64>,
    pub(crate) ends: Column<u64>,
    pub(crate) names: Column<u32>,
    pub(crate) threads: Column<u32>,
    /// Lane and index of the events that began and ended each interval.
    pub(crate) from: [Column<u32>; 2],
    pub(crate) to: [Column<u32>; 2],
    pub(crate) flags: Column<u8>,
    pub(crate) grid: Grid,
    /// The names with the most time.
    pub(crate) main: Vec<u32>,
    pub(crate) sums: Sums,
    /// The open interval of a growing row, after all others: begin and end since the origin, interval,
    /// flags.
    pub(crate) open: Option<(u64, u64, Interval, u8)>,
    /// Number of evicted intervals of a growing row: whole blocks.
    pub(crate) forgotten: u64,
    /// Number of evicted points of each lane.
    pub(crate) points_forgotten: Option<Arc<[u64]>>,
}

/// Time up to each block: total, and of each main name.
#[derive(Clone)]
pub(crate) enum Sums {
    Kept(Column<u64>),
    Made(Vec<u64>),
}

impl Sums {
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self {
            Self::Kept(column) => column.get(index),
            Self::Made(sums) => sums.get(index).copied().unwrap_or(0),
        }
    }

    /// Sums of intervals given as names and lengths in order.
    pub(crate) fn of(items: impl Iterator<Item = (u32, u64)>, main: &[u32]) -> Vec<u64> {
        let wide = main.len() + 1;
        let mut sums = vec![0u64; wide];
        Self::more(items, 0, main, &mut sums);
        sums
    }

    /// Continues with further items, starting at a block.
    pub(crate) fn more(
        items: impl Iterator<Item = (u32, u64)>,
        from: usize,
        main: &[u32],
        sums: &mut Vec<u64>,
    ) {
        let wide = main.len() + 1;
        let mut sum = sums[sums.len() - wide..].to_vec();
        for (index, (name, length)) in (from..).zip(items) {
            sum[0] = sum[0].saturating_add(length);
            if let Some(place) = main.iter().position(|main| *main == name) {
                sum[place + 1] = sum[place + 1].saturating_add(length);
            }
            if (index + 1) % BLOCK == 0 {
                sums.extend_from_slice(&sum);
            }
        }
    }
}

/// The names with the most time; of equal ones the smaller.
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

impl Intervals {
    /// Number of intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.begins.len() + usize::from(self.open.is_some())
    }

    /// The open interval, if it has this index.
    fn open(&self, index: usize) -> Option<&(u64, u64, Interval, u8)> {
        self.open.as_ref().filter(|_| index == self.begins.len())
    }

    /// Whether there are no intervals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begin and end of an interval, since the origin.
    #[must_use]
    pub fn ends(&self, index: usize) -> (u64, u64) {
        if let Some((begin, end, ..)) = self.open(index) {
            return (*begin, *end);
        }
        let begin = self.begins.get(index);
        (begin, self.ends.get(index).max(begin))
    }

    /// Its name, or the running process.
    #[must_use]
    pub fn name(&self, index: usize) -> u32 {
        self.open(index).map_or_else(|| self.names.get(index), |(_, _, open, _)| open.name)
    }

    /// Its thread.
    #[must_use]
    pub fn thread(&self, index: usize) -> u32 {
        self.open(index).map_or_else(|| self.threads.get(index), |(_, _, open, _)| open.thread)
    }

    /// The events that began and ended it.
    #[must_use]
    pub fn events(&self, index: usize) -> [Option<PointRef>; 2] {
        let told = match self.open(index) {
            Some((_, _, open, _)) => [open.from, open.to],
            None => [&self.from, &self.to].map(|[lanes, indices]| {
                let point = PointRef { lane: lanes.get(index), index: indices.get(index) };
                (point.lane != crate::NONE).then_some(point)
            }),
        };
        let Some(forgotten) = &self.points_forgotten else { return told };
        told.map(|point| point.and_then(|point| point.behind(forgotten)))
    }

    /// Whether it is unfinished.
    #[must_use]
    pub fn is_unfinished(&self, index: usize) -> bool {
        self.flags(index) & UNFINISHED != 0
    }

    /// Quality of its length, as in [`crate::quality_name`].
    #[must_use]
    pub fn quality(&self, index: usize) -> u8 {
        self.flags(index) >> 1
    }

    fn flags(&self, index: usize) -> u8 {
        self.open(index).map_or_else(|| self.flags.get(index), |(.., flags)| *flags)
    }

    /// Number of intervals that begin before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        let begins = |(begin, ..): &(u64, u64, Interval, u8)| {
            u64::try_from(time).is_ok_and(|time| *begin < time)
        };
        let open = self.open.as_ref().is_some_and(begins);
        self.grid.before(&self.begins, time) + usize::from(open)
    }

    /// Range of intervals that overlap a time range.
    #[must_use]
    pub fn touching(&self, begin: i64, end: i64) -> (usize, usize) {
        let mut from = self.before(begin);
        if from > 0 && reach(self.ends(from - 1)) > begin {
            from -= 1;
        }
        (from, self.before(end).max(from))
    }
}

/// The nanosecond after an interval.
#[inline]
pub(crate) fn reach((begin, end): (u64, u64)) -> i64 {
    i64::try_from(end.max(begin.saturating_add(1))).unwrap_or(i64::MAX)
}
