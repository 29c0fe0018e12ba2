// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Set membership of the integers of a slice.
//!
//! A range test is one subtraction and one comparison of 64 bits, signed or unsigned.

use lateralis_units::Nanos;

use super::Ranges;
use super::words::{Words, retain, test};

/// The sign bit: adding it maps the order of unsigned integers to that of signed ones. Vector
/// instructions can compare only the latter.
const SIGN: u64 = 1 << 63;

/// A set, prepared for slices.
#[derive(Debug, Clone)]
pub struct Integers {
    set: Ranges,
    way: Way,
}

/// First integer of a range, offset by [`SIGN`], and the number of following ones, likewise.
type Bounds = (u64, i64);

#[derive(Debug, Clone)]
enum Way {
    /// One range, or its complement.
    One {
        bounds: Bounds,
        negated: bool,
    },
    Two([Bounds; 2]),
    Four([Bounds; 4]),
    Sixteen(Box<[Bounds; 16]>),
    /// Integers less than 64 above the first one, as bits.
    Near {
        low: u64,
        bits: u64,
    },
    /// First integers in the order of `key ^ flip`, and numbers of following ones.
    Many {
        ranges: Vec<(u64, u64)>,
        flip: u64,
    },
}

impl Integers {
    /// Prepares a set.
    #[must_use]
    pub fn of(set: &Ranges) -> Self {
        Self { way: Way::of(set), set: set.clone() }
    }

    /// The set.
    #[must_use]
    pub fn set(&self) -> &Ranges {
        &self.set
    }

    /// Replaces `yes` by those events of `care` whose values are in the set.
    ///
    /// Cost: a branch-free pass for up to sixteen ranges and for sets of close neighbours, otherwise a
    /// binary search for each relevant value.
    pub(super) fn test<T: Bits>(&self, values: &[T], care: &Words, yes: &mut Words) {
        match &self.way {
            Way::One { bounds, negated } => {
                let bounds = *bounds;
                test(values, care, yes, |value| is_in(value.bits(), bounds));
                if *negated {
                    yes.iter_mut().zip(care).for_each(|(yes, care)| *yes ^= care);
                }
            }
            Way::Two(ranges) => few(*ranges, values, care, yes),
            Way::Four(ranges) => few(*ranges, values, care, yes),
            Way::Sixteen(ranges) => few(**ranges, values, care, yes),
            Way::Near { low, bits } => {
                let (low, bits) = (*low, *bits);
                test(values, care, yes, |value| {
                    let at = value.bits().wrapping_sub(low);
                    (bits >> (at & 63) & 1 == 1) & (at & !63 == 0)
                });
            }
            Way::Many { ranges, flip } => {
                *yes = *care;
                retain(yes, |at| {
                    let Some(value) = values.get(at).map(|value| value.bits()) else {
                        return false;
                    };
                    let after = ranges.partition_point(|(low, _)| low ^ flip <= value ^ flip);
                    let range = after.checked_sub(1).and_then(|index| ranges.get(index));
                    range.is_some_and(|(low, width)| value.wrapping_sub(*low) <= *width)
                });
            }
        }
    }
}

impl Way {
    fn of(set: &Ranges) -> Self {
        let bits = |(low, high): &(i128, i128)| (*low as u64, (high - low) as u64);
        let bounds = |range: &(i128, i128)| {
            let (low, width) = bits(range);
            (low ^ SIGN, (width ^ SIGN) as i64)
        };
        let (ranges, others) = (set.as_slice(), set.complement());
        match (ranges, others.as_slice()) {
            ([range], _) => Self::One { bounds: bounds(range), negated: false },
            (_, [range]) => Self::One { bounds: bounds(range), negated: true },
            ([first, second], _) => Self::Two([bounds(first), bounds(second)]),
            ([(low, _), .., (_, high)], _) if high - low < 64 => {
                let below = |end: i128| u64::MAX >> (63 - (end - low));
                let each = ranges.iter().map(|(from, to)| below(*to) & (u64::MAX << (from - low)));
                Self::Near { low: *low as u64, bits: each.fold(0, |all, bits| all | bits) }
            }
            (_, _) if ranges.len() <= 4 => Self::Four(padded(ranges, bounds)),
            (_, _) if ranges.len() <= 16 => Self::Sixteen(Box::new(padded(ranges, bounds))),
            _ => {
                let flip = if set.is_signed() { SIGN } else { 0 };
                Self::Many { ranges: ranges.iter().map(bits).collect(), flip }
            }
        }
    }
}

/// Pads the bounds to `N` by repeating the first.
fn padded<const N: usize>(
    ranges: &[(i128, i128)],
    bounds: impl Fn(&(i128, i128)) -> Bounds,
) -> [Bounds; N] {
    std::array::from_fn(|at| ranges.get(at).or(ranges.first()).map_or((0, i64::MIN), &bounds))
}

#[inline(always)]
fn is_in(bits: u64, (low, width): Bounds) -> bool {
    bits.wrapping_sub(low) as i64 <= width
}

#[inline(always)]
fn few<T: Bits, const N: usize>(ranges: [Bounds; N], values: &[T], care: &Words, yes: &mut Words) {
    test(values, care, yes, |value| {
        let bits = value.bits();
        ranges.iter().fold(false, |any, bounds| any | is_in(bits, *bounds))
    });
}

/// A 64-bit integer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::columns::words::{each, first};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_hold_what_their_ranges_hold(
            ranges in prop::collection::vec((any::<i8>(), 0..20_i128), 0..24),
            narrow in prop::sample::select(vec![1_i128, 4, 16]),
            signed in any::<bool>(),
            scale in prop::sample::select(vec![1_i128, 1 << 56]),
        ) {
            let given: Vec<(i128, i128)> = ranges.iter()
                .map(|(low, width)| (i128::from(*low) / narrow, width / narrow))
                .map(|(low, width)| (low * scale, (low + width) * scale))
                .collect();
            let set = Ranges::of(signed, given.iter().copied());
            let expected = |value: i128| given.iter().any(|(l, h)| (*l..=*h).contains(&value));
            for (set, is_in) in [(&set, true), (&set.complement(), false)] {
                let ready = Integers::of(set);
                let values = || (-200..200).map(|n: i128| n * scale);
                let mut yes = [7; 16];
                if signed {
                    let values: Vec<i64> = values().filter_map(|v| v.try_into().ok()).collect();
                    ready.test(&values, &first(values.len()), &mut yes);
                    let holds = |at: &usize| expected(values[*at].into()) == is_in;
                    let expected: Vec<usize> = (0..values.len()).filter(holds).collect();
                    prop_assert_eq!(each(&yes).collect::<Vec<_>>(), expected);
                } else {
                    let values: Vec<u64> = values().filter_map(|v| v.try_into().ok()).collect();
                    ready.test(&values, &first(values.len()), &mut yes);
                    let holds = |at: &usize| expected(values[*at].into()) == is_in;
                    let expected: Vec<usize> = (0..values.len()).filter(holds).collect();
                    prop_assert_eq!(each(&yes).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}
