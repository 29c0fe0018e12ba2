// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time that intervals of a row take of a stretch of time, by prefix sums.

use crate::intervals::Intervals;
use crate::left::{Left, item};
use crate::pixels::{BLOCK, EACH};

impl Intervals {
    /// Returns how many nanoseconds of a stretch (its end not included) are covered by intervals of a name,
    /// or by all if `name` is `None`; of those that a filter leaves.
    ///
    /// Cost: two searches and at most [`EACH`] intervals, if the name is one of the row's main ones or
    /// `None`; else a look at each that touches the stretch.
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

    /// How much one interval covers of a stretch, if it has the name.
    fn covered_by(&self, index: usize, name: Option<u32>, (begin, end): (i64, i64)) -> u64 {
        if name.is_some_and(|name| name != self.name(index)) {
            return 0;
        }
        let (since, until) = self.ends(index);
        let since = i64::try_from(since).unwrap_or(i64::MAX).max(begin);
        let until = i64::try_from(until).unwrap_or(i64::MAX).min(end);
        u64::try_from(until.saturating_sub(since)).unwrap_or(0)
    }

    /// Returns how many intervals that a filter leaves touch a stretch.
    #[must_use]
    pub fn count_touching(&self, left: Option<&Left>, (begin, end): (i64, i64)) -> usize {
        let (from, to) = self.ranks(left, self.touching(begin, end));
        to - from
    }

    /// Returns when the first interval begins that a filter leaves, touches a stretch and satisfies
    /// `is_meant`, the begin of the stretch at the earliest; `None` if there is none. At most `examined_max`
    /// are examined: of more the answer is the first of them.
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
