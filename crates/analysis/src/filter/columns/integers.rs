// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of integers, and which integers of a slice are in them.
//!
//! Every test of one integer against constants is one of a set: of those below, of those
//! that a label names. A set is a few ranges, and whether an integer is in a range is one
//! subtraction and one comparison of its 64 bits, signed or not.

use std::cmp::Ordering;

use lateralis_model::Label;
use lateralis_units::Nanos;

/// Ranges of labels; with more of them events are asked.
const LABEL_RANGES_MAX: usize = 256;

/// Integers of a column's type, as ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    least: i128,
    most: i128,
    /// Both ends inside; ascending, with others between.
    ranges: Vec<(i128, i128)>,
}

impl Ranges {
    /// None of the integers that have this sign and 64 bits.
    #[must_use]
    pub fn none(is_signed: bool) -> Self {
        let (least, most) = match is_signed {
            true => (i64::MIN.into(), i64::MAX.into()),
            false => (0, u64::MAX.into()),
        };
        Self { least, most, ranges: Vec::new() }
    }

    /// All of them.
    #[must_use]
    pub fn all(is_signed: bool) -> Self {
        let mut all = Self::none(is_signed);
        all.ranges.push((all.least, all.most));
        all
    }

    /// Those of these ranges, in any order, as far as they are of the type.
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

    /// Those that are to something as `holds` wants it, where `order` tells how an integer is
    /// to it; it never falls when the integer rises. None where there is no order.
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

    /// The first integer for which a test holds that holds for all above as well.
    fn first(&self, holds: impl Fn(i128) -> bool) -> i128 {
        let (mut low, mut high) = (self.least, self.most + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Those of whose label this holds; of those without one it is asked with nothing. The
    /// first label that names an integer is its label. `None` if there are too many labels,
    /// or where `holds` does not know.
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

    /// All others.
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

    /// Those that are not in another set of the same type.
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

    /// The ranges, ascending, both ends inside.
    #[must_use]
    pub fn as_slice(&self) -> &[(i128, i128)] {
        &self.ranges
    }

    /// Whether all or none of the integers are in it.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        match self.ranges.as_slice() {
            [] => Some(false),
            [(low, high)] if (*low, *high) == (self.least, self.most) => Some(true),
            _ => None,
        }
    }
}

/// A set, made ready for slices.
#[derive(Debug, Clone)]
pub enum Integers {
    /// One range, or all but one.
    One {
        /// Its first integer.
        low: u64,
        /// How many follow.
        width: u64,
        /// Whether the others are meant.
        negated: bool,
    },
    /// Four at most: first integers, and how many follow.
    Few([(u64, u64); 4]),
    /// More: first integers in the order of `key ^ flip`, and how many follow.
    Many(Vec<(u64, u64)>, u64),
}

impl Integers {
    /// Ready.
    #[must_use]
    pub fn of(set: &Ranges) -> Self {
        let bits = |(low, high): &(i128, i128)| (*low as u64, (high - low) as u64);
        let (ranges, others) = (&set.ranges, set.complement());
        match (ranges.as_slice(), others.ranges.as_slice()) {
            ([range], _) => {
                let (low, width) = bits(range);
                Self::One { low, width, negated: false }
            }
            (_, [range]) => {
                let (low, width) = bits(range);
                Self::One { low, width, negated: true }
            }
            ([first, ..], _) if ranges.len() <= 4 => {
                // What is left over is the first again.
                Self::Few(std::array::from_fn(|place| bits(ranges.get(place).unwrap_or(first))))
            }
            _ => {
                let flip = if set.least < 0 { 1 << 63 } else { 0 };
                Self::Many(ranges.iter().map(bits).collect(), flip)
            }
        }
    }

    /// For each value 1 if it is in the set, else 0.
    ///
    /// Cost: a pass without branches for sets of four ranges, else a binary search each.
    pub(super) fn test<T: Bits>(&self, values: &[T], out: &mut [u8]) {
        match self {
            Self::One { low: 0, width, negated: false } => {
                let width = *width;
                each(values, out, |value| value.bits() <= width);
            }
            Self::One { low, width, negated } => {
                let (low, width, negated) = (*low, *width, *negated);
                each(values, out, |value| (value.bits().wrapping_sub(low) <= width) != negated);
            }
            Self::Few(ranges) => {
                let ranges = *ranges;
                each(values, out, |value| {
                    let bits = value.bits();
                    ranges
                        .iter()
                        .fold(false, |any, (low, width)| any | (bits.wrapping_sub(*low) <= *width))
                });
            }
            Self::Many(ranges, flip) => each(values, out, |value| {
                let bits = value.bits();
                let after = ranges.partition_point(|(low, _)| low ^ flip <= bits ^ flip);
                let range = after.checked_sub(1).and_then(|index| ranges.get(index));
                range.is_some_and(|(low, width)| bits.wrapping_sub(*low) <= *width)
            }),
        }
    }
}

/// An integer of 64 bits.
pub(super) trait Bits: Copy {
    fn bits(self) -> u64;
}

impl Bits for u64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for i64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Bits for Nanos {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.0 as u64
    }
}

#[inline(always)]
pub(super) fn each<T: Copy>(values: &[T], out: &mut [u8], holds: impl Fn(T) -> bool) {
    for (answer, value) in out.iter_mut().zip(values) {
        *answer = u8::from(holds(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        // As doubles, several integers are the same number.
        let large = |value: i128| (value as f64).partial_cmp(&9_007_199_254_740_992.0);
        let same = Ranges::ordered(false, large, Ordering::is_eq).ranges;
        assert_eq!(same, [((1 << 53), (1 << 53) + 1)]);
        assert_eq!(Ranges::ordered(true, |_| None, |_| true).constant(), Some(false));
    }

    proptest! {
        #[test]
        fn sets_hold_what_their_ranges_hold(
            ranges in prop::collection::vec((any::<i8>(), 0..30_i128), 0..9),
            signed in any::<bool>(),
            scale in prop::sample::select(vec![1_i128, 1 << 56]),
        ) {
            let given: Vec<(i128, i128)> = ranges.iter()
                .map(|(low, width)| (i128::from(*low) * scale, (i128::from(*low) + width) * scale))
                .collect();
            let set = Ranges::of(signed, given.iter().copied());
            let expected = |value: i128| given.iter().any(|(l, h)| (*l..=*h).contains(&value));
            for (set, is_in) in [(&set, true), (&set.complement(), false)] {
                let ready = Integers::of(set);
                let mut out = [7];
                for value in (-200..200).map(|n: i128| n * scale) {
                    if let (true, Ok(value)) = (signed, i64::try_from(value)) {
                        ready.test(&[value], &mut out);
                        prop_assert_eq!(out[0] == 1, expected(value.into()) == is_in);
                    }
                    if let (false, Ok(value)) = (signed, u64::try_from(value)) {
                        ready.test(&[value], &mut out);
                        prop_assert_eq!(out[0] == 1, expected(value.into()) == is_in);
                    }
                }
            }
        }
    }
}
