// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A growing row of intervals: those that have ended, and the open one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::grid::GrowingGrid;
use super::pieces::Pieces;
use crate::building::{Interval, numbers};
use crate::intervals::{Sums, main_names};
use crate::pixels::BLOCK;
use crate::slots::Slots;
use crate::{Intervals, UNFINISHED};

/// Number of intervals at which the main names of a row are first determined: fewer are examined
/// individually.
const FIRST_LOOK: usize = 2 * BLOCK;

/// The open interval: always the last of its row.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    pub begin: u64,
    pub interval: Interval,
}

/// See the module documentation.
#[derive(Default)]
pub struct GrowingRow {
    begins: Pieces<u64>,
    ends: Pieces<u64>,
    names: Pieces<u32>,
    threads: Pieces<u32>,
    from: [Pieces<u32>; 2],
    to: [Pieces<u32>; 2],
    flags: Pieces<u8>,
    grid: GrowingGrid,
    main: Vec<u32>,
    sums: Pieces<u64>,
    /// Sums up to the end: of all, and of each main name.
    sum: Vec<u64>,
    weights: Weights,
    /// Number of intervals when the main names were chosen, including evicted ones.
    looked: usize,
    pub open: Option<Open>,
    /// First free nanosecond, disregarding the open interval.
    pub reach: u64,
}

impl GrowingRow {
    /// Time from which an interval can begin here.
    pub fn free(&self) -> u64 {
        if self.open.is_some() { NEVER } else { self.reach }
    }

    /// Adds an ended interval, which begins where the row is free.
    pub fn push(&mut self, begin: u64, end: u64, interval: &Interval) {
        let end = end.max(begin);
        let count = self.begins.len();
        self.grid.push(begin, self.begins.forgotten(), count);
        self.begins.push(begin);
        self.ends.push(end);
        self.names.push(interval.name);
        self.threads.push(interval.thread);
        let (from, to) = (numbers(interval.from), numbers(interval.to));
        for place in 0..2 {
            self.from[place].push(from[place]);
            self.to[place].push(to[place]);
        }
        self.flags.push(interval.quality << 1);
        self.reach = end.max(begin.saturating_add(1));
        self.add(interval.name, end - begin);
        let all = self.begins.forgotten() + self.begins.len();
        // Whenever the row has doubled: if other names have become main ones, all sums are computed
        // again.
        if all.is_multiple_of(BLOCK) && all - self.looked >= self.begins.len().max(FIRST_LOOK) {
            self.look();
        }
    }

    fn add(&mut self, name: u32, length: u64) {
        if self.sums.len() == 0 {
            self.start_sums();
        }
        self.sum[0] = self.sum[0].saturating_add(length);
        let place = self.main.iter().position(|main| *main == name);
        if let Some(place) = place {
            self.sum[place + 1] = self.sum[place + 1].saturating_add(length);
        }
        let weight = self.weights.of(name, place);
        *weight = weight.saturating_add(length);
        if (self.begins.forgotten() + self.begins.len()).is_multiple_of(BLOCK) {
            self.sum.iter().for_each(|sum| self.sums.push(*sum));
        }
    }

    fn start_sums(&mut self) {
        self.sum = vec![0; self.main.len() + 1];
        self.sum.iter().for_each(|sum| self.sums.push(*sum));
    }

    /// Chooses the main names anew, and computes the sums again if they changed. For millions of
    /// intervals that takes a noticeable time.
    fn look(&mut self) {
        self.looked = self.begins.forgotten() + self.begins.len();
        let names = main_names(self.weights.all(&self.main));
        if names.len() == self.main.len() && names.iter().all(|name| self.main.contains(name)) {
            return;
        }
        self.weights.divide(&self.main, &names);
        self.main = names;
        let mut sums = Pieces::default();
        let items = (0..self.begins.len()).map(|index| self.item(index));
        Sums::of(items, &self.main).into_iter().for_each(|sum| sums.push(sum));
        let wide = self.main.len() + 1;
        self.sum = (sums.len() - wide..sums.len()).map(|place| sums.get(place)).collect();
        self.sums = sums;
    }

    /// Name and length of an interval.
    fn item(&self, index: usize) -> (u32, u64) {
        (self.names.get(index), self.ends.get(index) - self.begins.get(index))
    }

    /// Evicts intervals that ended by a time, in whole blocks.
    pub fn forget(&mut self, time: u64) {
        let (mut low, mut high) = (0, self.begins.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.ends.get(middle) <= time { low = middle + 1 } else { high = middle }
        }
        // Evicted so far are whole blocks, so block boundaries stay in place.
        let count = low / BLOCK * BLOCK;
        if count == 0 {
            return;
        }
        for index in 0..count {
            let (name, length) = self.item(index);
            let place = self.main.iter().position(|main| *main == name);
            let weight = self.weights.of(name, place);
            *weight = weight.saturating_sub(length);
        }
        self.begins.forget(count);
        self.ends.forget(count);
        self.names.forget(count);
        self.threads.forget(count);
        for place in 0..2 {
            self.from[place].forget(count);
            self.to[place].forget(count);
        }
        self.flags.forget(count);
        self.sums.forget(count / BLOCK * self.sum.len());
        self.grid.forget(self.begins.get(0));
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = [&self.names, &self.threads, &self.from[0], &self.from[1]];
        let numbers = numbers.into_iter().chain(&self.to).map(Pieces::bytes).sum::<usize>();
        let times = [&self.begins, &self.ends, &self.sums].map(Pieces::bytes);
        numbers + times.iter().sum::<usize>() + self.flags.bytes() + self.grid.bytes()
    }

    /// Snapshot of the row: the open interval lasts until `now`.
    pub fn intervals(&self, now: u64, forgotten: &Arc<[u64]>) -> Intervals {
        let sums = if self.sums.len() == 0 {
            Sums::Made(vec![0; self.main.len() + 1])
        } else {
            Sums::Kept(self.sums.column())
        };
        let open = self.open.map(|open| {
            let unfinished = if open.interval.end.is_none() { UNFINISHED } else { 0 };
            let end = open.interval.end.map_or(now, |end| u64::try_from(end).unwrap_or(0));
            let flags = unfinished | open.interval.quality << 1;
            (open.begin, end.max(open.begin), open.interval, flags)
        });
        Intervals {
            begins: self.begins.column(),
            ends: self.ends.column(),
            names: self.names.column(),
            threads: self.threads.column(),
            from: [self.from[0].column(), self.from[1].column()],
            to: [self.to[0].column(), self.to[1].column()],
            flags: self.flags.column(),
            grid: self.grid.grid(self.begins.forgotten()),
            main: self.main.clone(),
            sums,
            open,
            forgotten: self.begins.forgotten() as u64,
            points_forgotten: Some(Arc::clone(forgotten)),
        }
    }

    /// The names with the most time when they were last chosen.
    pub fn main(&self) -> &[u32] {
        &self.main
    }
}

/// Time of each name on a row, updated incrementally, so that finding the names with the most time does
/// not require a pass over the row.
#[derive(Default)]
struct Weights {
    /// Of the main names, in order.
    main: Vec<u64>,
    others: BTreeMap<u32, u64>,
}

impl Weights {
    /// Time of a name, with its index among the main ones if it is one of them.
    fn of(&mut self, name: u32, place: Option<usize>) -> &mut u64 {
        match place.and_then(|place| self.main.get_mut(place)) {
            Some(weight) => weight,
            None => self.others.entry(name).or_default(),
        }
    }

    fn all(&self, main: &[u32]) -> impl Iterator<Item = (u32, u64)> {
        let main = main.iter().copied().zip(self.main.iter().copied());
        main.chain(self.others.iter().map(|(name, weight)| (*name, *weight)))
    }

    /// Replaces the main names.
    fn divide(&mut self, before: &[u32], names: &[u32]) {
        let mut all: BTreeMap<u32, u64> = self.all(before).collect();
        self.main = names.iter().map(|name| all.remove(name).unwrap_or(0)).collect();
        // Nothing is kept for evicted ones.
        all.retain(|_, weight| *weight > 0);
        self.others = all;
    }
}

/// The time at which no row is free.
const NEVER: u64 = u64::MAX;

/// Rows for the intervals of one lane, kind and name, by depth.
struct Group {
    rows: Vec<u32>,
    slots: Slots<u64>,
}

/// A group, by name.
type Named = (Option<String>, usize);

/// Rows of lanes: their groups, and the free rows of each group.
#[derive(Default)]
pub struct Groups {
    named: BTreeMap<(u32, crate::RowKind), Vec<Named>>,
    all: Vec<Group>,
    /// Group and depth of each row.
    places: Vec<(usize, usize)>,
}

impl Groups {
    /// Number of a group.
    pub fn of(&mut self, lane: u32, kind: crate::RowKind, name: Option<&str>) -> usize {
        let named = self.named.entry((lane, kind)).or_default();
        if let Some((_, group)) = named.iter().find(|(of, _)| of.as_deref() == name) {
            return *group;
        }
        let group = self.all.len();
        named.push((name.map(str::to_owned), group));
        self.all.push(Group { rows: Vec::new(), slots: Slots::new(NEVER) });
        group
    }

    /// The deepest row of a group.
    pub fn last(&self, group: usize) -> Option<u32> {
        self.all[group].rows.last().copied()
    }

    /// Number of rows of a group.
    pub fn depth(&self, group: usize) -> usize {
        self.all[group].slots.len()
    }

    /// The first row of a group that is free at a time.
    pub fn first(&self, group: usize, time: u64) -> Option<u32> {
        let Group { rows, slots } = &self.all[group];
        slots.first(time).map(|depth| rows[depth])
    }

    /// Adds the next row to a group.
    pub fn push(&mut self, group: usize) {
        let row = self.places.len() as u32;
        self.places.push((group, self.depth(group)));
        self.all[group].rows.push(row);
        self.all[group].slots.push(0);
    }

    /// Sets the time from which a row is free.
    pub fn set(&mut self, row: u32, free: u64) {
        let (group, depth) = self.places[row as usize];
        self.all[group].slots.set(depth, free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(name: u32) -> Interval {
        Interval { begin: 0, end: None, name, thread: 0, from: None, to: None, quality: 0 }
    }

    proptest! {
        #[test]
        fn main_names_and_sums_are_those_of_a_look_at_each(
            steps in prop::collection::vec((0u32..25, 1usize..6, 0u64..50, 0u64..20_000), 1..40),
        ) {
            let (mut row, mut time) = (GrowingRow::default(), 0);
            for (name, blocks, length, old) in steps {
                // Evaluated at the end of a block.
                for index in 0..blocks * BLOCK {
                    row.push(time, time + length, &interval(name + (index % 3) as u32));
                    time += length + 1;
                }
                row.forget(time.saturating_sub(old));
                row.look();
                let all: Vec<(u32, u64)> = (0..row.begins.len()).map(|index| row.item(index)).collect();
                let mut weights: BTreeMap<u32, u64> = row.weights.all(&row.main).collect();
                let mut expected = BTreeMap::<u32, u64>::new();
                for (name, length) in &all {
                    *expected.entry(*name).or_default() += length;
                }
                expected.retain(|_, weight| *weight > 0);
                weights.retain(|_, weight| *weight > 0);
                prop_assert_eq!(&weights, &expected);
                // Names without any time are never drawn: whether they are main ones does not matter.
                let counted = |names: &[u32]| -> Vec<u32> {
                    let mut names = names.to_vec();
                    names.retain(|name| expected.contains_key(name));
                    names.sort_unstable();
                    names
                };
                prop_assert_eq!(counted(row.main()), counted(&main_names(all.iter().copied())));
                let wide = row.main.len() + 1;
                let again = Sums::of(all.into_iter(), &row.main);
                prop_assert_eq!(row.sums.len(), again.len());
                // Evicted intervals are in all sums alike.
                for (place, sum) in again.into_iter().enumerate() {
                    let since = row.sums.get(place) - row.sums.get(place % wide);
                    prop_assert_eq!(since, sum);
                }
            }
        }
    }
}
