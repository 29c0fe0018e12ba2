// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of integers: every test of an integer against constants is membership in a set, for instance
//! those below a bound, or those with a label.

use std::cmp::Ordering;

use lateralis_model::Label;

/// Largest number of label ranges; with more, the test needs the event.
const LABEL_RANGES_MAX: usize = 256;

/// Integers of a column's type, as ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    least: i128,
    most: i128,
    /// Inclusive; ascending, not adjacent.
    ranges: Vec<(i128, i128)>,
}

impl Ranges {
    /// The empty set of 64-bit integers of this signedness.
    #[must_use]
    pub fn none(is_signed: bool) -> Self {
        let (least, most) = match is_signed {
            true => (i64::MIN.into(), i64::MAX.into()),
            false => (0, u64::MAX.into()),
        };
        Self { least, most, ranges: Vec::new() }
    }

    /// All integers of the type.
    #[must_use]
    pub fn all(is_signed: bool) -> Self {
        let mut all = Self::none(is_signed);
        all.ranges.push((all.least, all.most));
        all
    }

    /// Integers in these ranges, in any order, restricted to the type.
    #[must_use]
    pub fn of(is_signed: bool, ranges: impl IntoIterator<Item = (i128, i128)>) -> Self {
        let mut set = Self::none(is_signed);
        let inside = |(low, high): (i128, i128)| (low.max(set.least), high.min(set.most));
        let mut given: Vec<(i128, i128)> =
            ranges.into_iter().map(inside).filter(|(low, high)| low <= high).collect();
        given.sort_unstable();
        for (low, high) in given {
            match set.ranges.last_mut() {
                Some((_, end)) if low <= *end + 1 => *end = high.max(*end),
                _ => set.ranges.push((low, high)),
            }
        }
        set
    }

    /// Integers for which `holds` accepts the ordering given by `order`, which must be monotonic. Empty
    /// if there is no order.
    #[must_use]
    pub fn ordered(
        is_signed: bool,
        order: impl Fn(i128) -> Option<Ordering>,
        holds: impl Fn(Ordering) -> bool,
    ) -> Self {
        let mut set = Self::none(is_signed);
        if order(set.least).is_none() {
            return set;
        }
        // First integer that is not less, and first that is greater.
        let equal = set.first(|value| order(value) != Some(Ordering::Less));
        let above = set.first(|value| order(value) == Some(Ordering::Greater));
        let parts = [
            (Ordering::Less, set.least, equal - 1),
            (Ordering::Equal, equal, above - 1),
            (Ordering::Greater, above, set.most),
        ];
        let ranges = parts.into_iter().filter(|(order, ..)| holds(*order));
        set = Self::of(is_signed, ranges.map(|(_, low, high)| (low, high)));
        set
    }

    /// The first integer that satisfies a monotonic predicate.
    fn first(&self, holds: impl Fn(i128) -> bool) -> i128 {
        let (mut low, mut high) = (self.least, self.most + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Integers whose label satisfies `holds`; it gets `None` for those without a label. An integer's
    /// label is the first that contains it. `None` if there are too many labels, or `holds` cannot
    /// decide.
    #[must_use]
    pub fn by_label(
        is_signed: bool,
        labels: &[Label],
        holds: impl Fn(Option<&str>) -> Option<bool>,
    ) -> Option<Self> {
        if labels.iter().map(|label| label.ranges.len()).sum::<usize>() > LABEL_RANGES_MAX {
            return None;
        }
        let mut chosen = Vec::new();
        let mut named = Self::none(is_signed);
        for label in labels {
            let own = label.ranges.iter().map(|range| (range.low, range.high));
            let own = Self::of(is_signed, own);
            if holds(Some(&label.name))? {
                chosen.extend(own.without(&named).ranges);
            }
            let both = named.ranges.iter().chain(&own.ranges).copied();
            named = Self::of(is_signed, both);
        }
        if holds(None)? {
            chosen.extend(named.complement().ranges);
        }
        Some(Self::of(is_signed, chosen))
    }

    /// Complement.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut next = self.least;
        let mut others = Vec::new();
        for &(low, high) in &self.ranges {
            others.push((next, low - 1));
            next = high + 1;
        }
        others.push((next, self.most));
        others.retain(|(low, high)| low <= high);
        Self { ranges: others, ..*self }
    }

    /// Union of sets of the same type; `None` if there are no sets.
    #[must_use]
    pub fn any_of<'r>(sets: impl IntoIterator<Item = &'r Self>) -> Option<Self> {
        let mut sets = sets.into_iter().peekable();
        let is_signed = sets.peek()?.is_signed();
        Some(Self::of(is_signed, sets.flat_map(|set| set.ranges.iter().copied())))
    }

    /// Intersection of sets of the same type; `None` if there are no sets.
    #[must_use]
    pub fn all_of<'r>(sets: impl IntoIterator<Item = &'r Self>) -> Option<Self> {
        let others: Vec<Self> = sets.into_iter().map(Self::complement).collect();
        Some(Self::any_of(&others)?.complement())
    }

    /// Whether the integers are signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.least < 0
    }

    /// Difference of two sets of the same type.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let free = other.complement();
        let both = self.ranges.iter().flat_map(|(low, high)| {
            let inside = move |(l, h): &(i128, i128)| (*low.max(l), *high.min(h));
            free.ranges.iter().map(inside).filter(|(low, high)| low <= high)
        });
        let ranges = both.collect();
        Self { ranges, ..*self }
    }

    /// The ranges, ascending and inclusive.
    #[must_use]
    pub fn as_slice(&self) -> &[(i128, i128)] {
        &self.ranges
    }

    /// Whether it contains all or no integers.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        match self.ranges.as_slice() {
            [] => Some(false),
            [(low, high)] if (*low, *high) == (self.least, self.most) => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_makes_ranges() {
        let against = |constant: i128| move |value: i128| Some(value.cmp(&constant));
        let of = |signed, constant, holds: fn(Ordering) -> bool| {
            Ranges::ordered(signed, against(constant), holds).ranges
        };
        assert_eq!(of(false, 5, Ordering::is_lt), [(0, 4)]);
        assert_eq!(of(false, 0, Ordering::is_lt), []);
        assert_eq!(of(false, -1, Ordering::is_gt), [(0, u64::MAX.into())]);
        assert_eq!(of(false, 1 << 90, Ordering::is_ge), []);
        assert_eq!(of(true, 5, Ordering::is_ne).len(), 2);
        assert_eq!(
            of(true, i64::MIN.into(), Ordering::is_le),
            [(i64::MIN.into(), i64::MIN.into())]
        );
        // As doubles, several integers are equal.
        let large = |value: i128| (value as f64).partial_cmp(&9_007_199_254_740_992.0);
        let same = Ranges::ordered(false, large, Ordering::is_eq).ranges;
        assert_eq!(same, [((1 << 53), (1 << 53) + 1)]);
        assert_eq!(Ranges::ordered(true, |_| None, |_| true).constant(), Some(false));
    }

    #[test]
    fn sets_are_put_together() {
        let set = |ranges: &[(i128, i128)]| Ranges::of(false, ranges.iter().copied());
        let sets = [set(&[(0, 9), (20, 29)]), set(&[(5, 24)]), set(&[(7, 8), (22, 40)])];
        assert_eq!(Ranges::all_of(&sets).unwrap().ranges, [(7, 8), (22, 24)]);
        assert_eq!(Ranges::any_of(&sets).unwrap().ranges, [(0, 40)]);
        assert_eq!(Ranges::all_of(&sets[..1]).unwrap(), sets[0]);
        assert_eq!(Ranges::any_of(&[]), None);
    }
}
