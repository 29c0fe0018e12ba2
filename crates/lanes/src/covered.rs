// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time covered by intervals of a row within a time range, from prefix sums.

use crate::intervals::Intervals;
use crate::left::{Left, item};
use crate::pixels::{BLOCK, EACH};

impl Intervals {
    /// Returns the nanoseconds of a time range (end exclusive) covered by intervals of a name, or by all
    /// if `name` is `None`; only those that a filter keeps.
    ///
    /// Cost: two searches and at most [`EACH`] intervals, if the name is one of the row's main ones or
    /// `None`; otherwise a step for each interval that overlaps the range.
    #[must_use]
    pub fn covered(&self, left: Option<&Left>, name: Option<u32>, (begin, end): (i64, i64)) -> u64 {
        let (from, to) = self.ranks(left, self.touching(begin, end));
        let each = |ranks: std::ops::Range<usize>| {
            let covered = |rank| self.covered_by(item(left, rank), name, (begin, end));
            ranks.map(covered).fold(0, u64::saturating_add)
        };
        let place = match name {
            None => Some(0),
            Some(name) => self.main.iter().position(|main| *main == name).map(|place| place + 1),
        };
        let Some(place) = place.filter(|_| to - from > EACH) else { return each(from..to) };
        let sums = left.map_or(&self.sums, |left| &left.sums);
        let wide = self.main.len() + 1;
        let (first, last) = ((from + 1).div_ceil(BLOCK), (to - 1) / BLOCK);
        let sum = |block: usize| sums.get(block * wide + place);
        let blocks = sum(last).saturating_sub(sum(first));
        each(from..first * BLOCK).saturating_add(each(last * BLOCK..to)).saturating_add(blocks)
    }

    /// Time of the range that one interval covers, if it has the name.
    fn covered_by(&self, index: usize, name: Option<u32>, (begin, end): (i64, i64)) -> u64 {
        if name.is_some_and(|name| name != self.name(index)) {
            return 0;
        }
        let (since, until) = self.ends(index);
        let since = i64::try_from(since).unwrap_or(i64::MAX).max(begin);
        let until = i64::try_from(until).unwrap_or(i64::MAX).min(end);
        u64::try_from(until.saturating_sub(since)).unwrap_or(0)
    }

    /// Returns the number of intervals in a time range that a filter keeps.
    #[must_use]
    pub fn count_touching(&self, left: Option<&Left>, (begin, end): (i64, i64)) -> usize {
        let (from, to) = self.ranks(left, self.touching(begin, end));
        to - from
    }

    /// Returns the begin of the first interval that a filter keeps, overlaps the time range and satisfies
    /// `is_meant`, but not before the begin of the range; `None` if there is none. Examines at most
    /// `examined_max` intervals: if there are more, returns the first of them.
    pub fn first_touching(
        &self,
        left: Option<&Left>,
        (begin, end): (i64, i64),
        examined_max: usize,
        is_meant: impl Fn(usize) -> bool,
    ) -> Option<i64> {
        let (from, to) = self.ranks(left, self.touching(begin, end));
        let examined = to.min(from.saturating_add(examined_max));
        let found = (from..examined).map(|rank| item(left, rank)).find(|index| is_meant(*index));
        let more = (examined < to).then(|| item(left, from));
        let since = self.ends(found.or(more)?).0;
        Some(i64::try_from(since).unwrap_or(i64::MAX).max(begin))
    }
}
