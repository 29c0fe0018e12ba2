// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rasterises a row of intervals.

use crate::Interval;
use crate::column::Reading;
use crate::intervals::{Intervals, reach};
use crate::left::{Left, item};
use crate::pixels::{BLOCK, EACH, MAIN, Pixels, Scale, share};

/// A row being drawn: the locations of its columns are resolved once.
struct Drawing<'a> {
    row: &'a Intervals,
    left: Option<&'a Left>,
    begins: Reading<'a, u64>,
    ends: Reading<'a, u64>,
    names: Reading<'a, u32>,
    open: Option<&'a (u64, u64, Interval, u8)>,
}

impl Intervals {
    /// Draws all intervals, or the kept ones, as specified in [`crate::pixels`]; returns the largest
    /// number that touch a pixel.
    pub fn draw(&self, left: Option<&Left>, scale: &Scale, out: &mut Pixels) -> usize {
        let drawing = Drawing {
            row: self,
            left,
            begins: self.begins.reading(),
            ends: self.ends.reading(),
            names: self.names.reading(),
            open: self.open.as_ref(),
        };
        let before = self.grid.pixels(&self.begins, scale);
        let begun = |time: i64| {
            let begins = |open: &&(u64, u64, Interval, u8)| {
                u64::try_from(time).is_ok_and(|time| open.0 < time)
            };
            usize::from(self.open.as_ref().filter(begins).is_some())
        };
        let mut most = 0;
        for pixel in 0..scale.px {
            let (begin, end) = scale.pixel(pixel);
            let (from, to) = before.of(pixel);
            let mut from = from + begun(begin);
            if from > 0 && reach(drawing.ends(from - 1)) > begin {
                from -= 1;
            }
            let to = (to + begun(end)).max(from);
            let (from, to) = self.ranks(left, (from, to));
            let count = to - from;
            most = most.max(count);
            if count == 0 {
                out.nothing();
                continue;
            }
            let (name, covered) = drawing.most_of((from, to), (begin, end));
            // Only the last one can be unfinished beyond those after it.
            let is_unended = self.is_unfinished(item(left, to - 1));
            let cover = share(covered, (end - begin) as u64);
            out.push(name, cover, count, is_unended);
        }
        most
    }
}

impl Drawing<'_> {
    #[inline]
    fn open(&self, index: usize) -> Option<&(u64, u64, Interval, u8)> {
        self.open.filter(|_| index == self.begins.len())
    }

    #[inline]
    fn ends(&self, index: usize) -> (u64, u64) {
        if let Some((begin, end, ..)) = self.open(index) {
            return (*begin, *end);
        }
        let begin = self.begins.get(index);
        (begin, self.ends.get(index).max(begin))
    }

    #[inline]
    fn name(&self, index: usize) -> u32 {
        self.open(index).map_or_else(|| self.names.get(index), |(_, _, open, _)| open.name)
    }

    /// Part of a time range that an interval covers.
    #[inline]
    fn covered(&self, index: usize, (begin, end): (i64, i64)) -> u64 {
        let (since, until) = self.ends(index);
        let since = i64::try_from(since).unwrap_or(i64::MAX).max(begin);
        let until = i64::try_from(until).unwrap_or(i64::MAX).min(end);
        u64::try_from(until.saturating_sub(since)).unwrap_or(0)
    }

    /// The name that covers most of a time range touched by some intervals, and the total coverage.
    fn most_of(&self, (from, to): (usize, usize), stretch: (i64, i64)) -> (u32, u64) {
        if to - from == 1 {
            let only = item(self.left, from);
            return (self.name(only), self.covered(only, stretch));
        }
        if to - from <= EACH {
            return self.most_of_few((from, to), stretch);
        }
        let main = &self.row.main;
        let wide = main.len() + 1;
        let sums = self.left.map_or(&self.row.sums, |left| &left.sums);
        let mut found = [0u64; MAIN + 1];
        let mut add = |rank: usize| {
            let index = item(self.left, rank);
            let (covered, name) = (self.covered(index, stretch), self.name(index));
            found[0] = found[0].saturating_add(covered);
            if let Some(place) = main.iter().take(MAIN).position(|main| *main == name) {
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
        for (place, name) in main.iter().enumerate().take(MAIN) {
            let sum = found[place + 1];
            let is_better = best.is_none_or(|(most, of)| sum > most || (sum == most && *name < of));
            if sum > 0 && is_better {
                best = Some((sum, *name));
            }
        }
        let name = best.map_or_else(|| self.name(item(self.left, from)), |(_, name)| name);
        (name, found[0])
    }

    fn most_of_few(&self, (from, to): (usize, usize), stretch: (i64, i64)) -> (u32, u64) {
        // Each name once: most pixels have a few, for which a linear search is faster than sorting.
        let mut sums = [(0u32, 0u64); EACH];
        let mut names = 0;
        let mut all = 0;
        for rank in from..to {
            let index = item(self.left, rank);
            let (name, covered) = (self.name(index), self.covered(index, stretch));
            all = u64::saturating_add(all, covered);
            match sums[..names].iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = sum.saturating_add(covered),
                None => {
                    sums[names] = (name, covered);
                    names += 1;
                }
            }
        }
        let most = sums[..names].iter().max_by_key(|(name, sum)| (*sum, std::cmp::Reverse(*name)));
        (most.map_or(0, |(name, _)| *name), all)
    }
}
