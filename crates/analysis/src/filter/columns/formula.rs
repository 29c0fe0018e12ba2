// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers that are computed of the columns of an event, as doubles.
//!
//! The operators are those of ECMAScript on Numbers. An integer that no double is exactly is no
//! Number there: who computes with one is asked about the event.

use lateralis_model::Column;

use super::Part;
use super::numbers::{Numbers, Reals, Relation, compare};
use super::words::{NONE, Words, change, change_both, copy, test};

/// Largest integer up to which all are doubles, and no two the same.
pub const SAFE_MAX: u64 = (1 << 53) - 1;

/// An operator on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, with the sign of the left one.
    Remainder,
    /// `&` of 32 bits.
    And,
    /// `|` of 32 bits.
    Or,
    /// `^` of 32 bits.
    Xor,
    /// `<<` of 32 bits.
    ShiftLeft,
    /// `>>` of 32 bits, with the sign.
    ShiftRight,
    /// `>>>` of 32 bits.
    ShiftRightUnsigned,
}

impl Arithmetic {
    /// What it makes of two numbers.
    #[must_use]
    pub fn apply(self, left: f64, right: f64) -> f64 {
        let mut values = [left];
        self.each(&mut values, Right::Same(right));
        values[0]
    }

    /// Replaces each left number by the result.
    fn each(self, left: &mut [f64], right: Right<'_>) {
        macro_rules! pass {
            ($of:expr) => {
                match right {
                    Right::Each(right) => change_both(left, right, $of),
                    Right::Same(right) => change(left, |left| $of(left, right)),
                }
            };
        }
        let shift = |right: f64| to_int32(right) & 31;
        match self {
            Self::Add => pass!(|l: f64, r: f64| l + r),
            Self::Subtract => pass!(|l: f64, r: f64| l - r),
            Self::Multiply => pass!(|l: f64, r: f64| l * r),
            Self::Divide => pass!(|l: f64, r: f64| l / r),
            Self::Remainder => pass!(|l: f64, r: f64| l % r),
            Self::And => pass!(|l, r| f64::from(to_int32(l) & to_int32(r))),
            Self::Or => pass!(|l, r| f64::from(to_int32(l) | to_int32(r))),
            Self::Xor => pass!(|l, r| f64::from(to_int32(l) ^ to_int32(r))),
            Self::ShiftLeft => pass!(|l, r| f64::from(to_int32(l) << shift(r))),
            Self::ShiftRight => pass!(|l, r| f64::from(to_int32(l) >> shift(r))),
            Self::ShiftRightUnsigned => {
                pass!(|l, r| f64::from(to_int32(l) as u32 >> shift(r)));
            }
        }
    }

    /// Whether its sides may be exchanged.
    fn is_symmetric(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::And | Self::Or | Self::Xor)
    }
}

/// What stands on the right of an operator.
#[derive(Clone, Copy)]
enum Right<'a> {
    /// The same number for all.
    Same(f64),
    /// A number for each.
    Each(&'a [f64]),
}

/// The double next to an integer. Words only, so that it is done with vectors: no processor
/// before AVX-512 makes doubles of more than one integer of 64 bits at a time.
#[inline(always)]
fn unsigned(value: u64) -> f64 {
    // As the last bits of 2^84 and of 2^52, both halves of it are doubles already.
    const HIGH: u64 = 0x4530_0000_0000_0000;
    halves(value >> 32 | HIGH, value, f64::from_bits(HIGH | 1 << 20))
}

/// The same of one with a sign: its upper half is the last bits of 2^84 + 2^63.
#[inline(always)]
fn signed(value: i64) -> f64 {
    const HIGH: u64 = 0x4530_0000_8000_0000;
    halves((value as u64) >> 32 ^ HIGH, value as u64, f64::from_bits(HIGH | 1 << 20))
}

/// What is over `over` in the upper half, which has 2^52 too much for the lower one. Only the
/// last step rounds.
#[inline(always)]
fn halves(high: u64, value: u64, over: f64) -> f64 {
    let low = f64::from_bits((value & 0xffff_ffff) | 0x4330_0000_0000_0000);
    (f64::from_bits(high) - over) + low
}

/// ToInt32 of ECMAScript: modulo 2^32.
#[inline]
#[must_use]
pub fn to_int32(value: f64) -> i32 {
    // Up to there the integer is exact, and its lower half is it.
    if value.abs() < 9.0e18 {
        return value as i64 as i32;
    }
    match value.is_finite() {
        true => (value.trunc() % 4_294_967_296.0) as i64 as i32,
        false => 0,
    }
}

/// A number of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// The same of all.
    Constant(f64),
    /// What a column of numbers has.
    Column(usize),
    /// 1 where a column of integers is not 0.
    Truth(usize),
    /// The other sign.
    Negated(Box<Formula>),
    /// The other bits, of 32.
    Inverted(Box<Formula>),
    /// Computed of two.
    Of(Arithmetic, Box<Formula>, Box<Formula>),
}

/// How two computed numbers of an event shall be related.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// The left one.
    pub left: Formula,
    /// How.
    pub relation: Relation,
    /// The right one.
    pub right: Formula,
}

/// Room for the numbers of a block, taken and given back.
#[derive(Debug, Default)]
pub(super) struct Room(Vec<Vec<f64>>);

impl Computed {
    /// Replaces `yes` by those events of `care` whose numbers are related. Gives those of which
    /// it cannot tell; they are in neither. `None` where a column is not there.
    ///
    /// Cost: a pass for each operator.
    pub(super) fn test(
        &self,
        part: &Part<'_>,
        range: &std::ops::Range<usize>,
        care: &Words,
        room: &mut Room,
        yes: &mut Words,
    ) -> Option<Words> {
        let mut block = Block { part, range, care, room, unsafe_: NONE };
        let left = block.numbers(&self.left)?;
        let right = block.numbers(&self.right)?;
        let Block { unsafe_: rest, .. } = block;
        let known: Words = std::array::from_fn(|word| care[word] & !rest[word]);
        let relation = self.relation;
        match (&left, &right) {
            (Values::Each(left), Values::Each(right)) => {
                compare(Numbers::Real(left), relation, Numbers::Real(right), &known, yes);
            }
            (Values::Each(left), Values::Same(constant)) => {
                Reals { relation, constant: *constant }.test(left, &known, yes);
            }
            (Values::Same(constant), Values::Each(right)) => {
                let relation = relation.turned();
                Reals { relation, constant: *constant }.test(right, &known, yes);
            }
            (Values::Same(left), Values::Same(right)) => {
                *yes = if relation.holds(left.partial_cmp(right)) { known } else { NONE };
            }
        }
        room.give_back(left);
        room.give_back(right);
        Some(rest)
    }
}

impl Room {
    fn give_back(&mut self, values: Values) {
        if let Values::Each(values) = values {
            self.0.push(values);
        }
    }
}

/// Numbers of the events of a block.
enum Values {
    /// The same of all.
    Same(f64),
    /// One each.
    Each(Vec<f64>),
}

impl Values {
    fn change(&mut self, of: impl Fn(f64) -> f64) {
        match self {
            Self::Same(value) => *value = of(*value),
            Self::Each(values) => change(values, of),
        }
    }
}

struct Block<'a, 'b> {
    part: &'a Part<'b>,
    range: &'a std::ops::Range<usize>,
    care: &'a Words,
    room: &'a mut Room,
    /// Events with an integer that no double is.
    unsafe_: Words,
}

impl Block<'_, '_> {
    fn numbers(&mut self, formula: &Formula) -> Option<Values> {
        match formula {
            Formula::Constant(value) => Some(Values::Same(*value)),
            Formula::Column(column) => {
                let column = self.part.column(*column);
                let numbers = Numbers::of(&column, self.range.clone())?;
                let mut unsafe_ = NONE;
                let safe = SAFE_MAX as i64;
                let numbers = match numbers {
                    Numbers::Unsigned(values) => {
                        test(values, self.care, &mut unsafe_, |value| value > SAFE_MAX);
                        self.collect(values, unsigned)
                    }
                    Numbers::Signed(values) => {
                        test(values, self.care, &mut unsafe_, |v| (v > safe) | (v < -safe));
                        self.collect(values, signed)
                    }
                    Numbers::Real(values) => self.collect(values, |value| value),
                    Numbers::Times(_) => return None,
                };
                self.unsafe_.iter_mut().zip(unsafe_).for_each(|(all, more)| *all |= more);
                Some(numbers)
            }
            Formula::Truth(column) => match self.part.column(*column) {
                Column::Unsigned(values) => {
                    let values = values.get(self.range.clone())?;
                    Some(self.collect(values, |value| if value == 0 { 0.0 } else { 1.0 }))
                }
                _ => None,
            },
            Formula::Negated(inner) => {
                let mut numbers = self.numbers(inner)?;
                numbers.change(|number| -number);
                Some(numbers)
            }
            Formula::Inverted(inner) => {
                let mut numbers = self.numbers(inner)?;
                numbers.change(|number| f64::from(!to_int32(number)));
                Some(numbers)
            }
            Formula::Of(operator, left, right) => {
                let (left, right) = (self.numbers(left)?, self.numbers(right)?);
                Some(self.computed(*operator, left, right))
            }
        }
    }

    fn computed(&mut self, operator: Arithmetic, left: Values, right: Values) -> Values {
        match (left, right) {
            (Values::Same(left), Values::Same(right)) => Values::Same(operator.apply(left, right)),
            (Values::Each(mut left), Values::Same(right)) => {
                operator.each(&mut left, Right::Same(right));
                Values::Each(left)
            }
            (Values::Same(left), Values::Each(mut right)) if operator.is_symmetric() => {
                operator.each(&mut right, Right::Same(left));
                Values::Each(right)
            }
            (Values::Same(left), Values::Each(right)) => {
                let mut numbers = self.room.0.pop().unwrap_or_default();
                numbers.clear();
                numbers.resize(right.len(), left);
                self.computed(operator, Values::Each(numbers), Values::Each(right))
            }
            (Values::Each(mut left), Values::Each(right)) => {
                operator.each(&mut left, Right::Each(&right));
                self.room.0.push(right);
                Values::Each(left)
            }
        }
    }

    fn collect<T: Copy>(&mut self, values: &[T], of: impl Fn(T) -> f64) -> Values {
        let mut numbers = self.room.0.pop().unwrap_or_default();
        // What was in it before is written over.
        numbers.resize(values.len(), 0.0);
        copy(values, &mut numbers, of);
        Values::Each(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_become_the_doubles_next_to_them() {
        let near =
            (0..64).flat_map(|bit| (-3_i64..=3).map(move |n| (1_i64 << bit).wrapping_add(n)));
        for value in near.chain([0, i64::MIN, i64::MAX]) {
            for value in [value, value.wrapping_neg()] {
                assert_eq!(signed(value).to_bits(), (value as f64).to_bits(), "{value}");
                let value = value as u64;
                assert_eq!(unsigned(value).to_bits(), (value as f64).to_bits(), "{value}");
            }
        }
    }

    proptest! {
        #[test]
        fn so_does_any_integer(value in any::<i64>(), shift in 0..64) {
            let value = value >> shift;
            prop_assert_eq!(signed(value).to_bits(), (value as f64).to_bits());
            let value = value as u64;
            prop_assert_eq!(unsigned(value).to_bits(), (value as f64).to_bits());
        }

        #[test]
        fn an_operator_is_the_same_whichever_side_is_constant(
            left in prop::collection::vec(any::<f64>(), 1..9), right in any::<f64>(),
        ) {
            use Arithmetic::*;
            for operator in [
                Add, Subtract, Multiply, Divide, Remainder, And, Or, Xor, ShiftLeft, ShiftRight,
                ShiftRightUnsigned,
            ] {
                let of = |left: f64, right: f64| operator.apply(left, right);
                let bits = |values: &[f64]| -> Vec<u64> {
                    // Which NaN it is nobody can tell.
                    values.iter().map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() }).collect()
                };
                let expected: Vec<f64> = left.iter().map(|left| of(*left, right)).collect();
                let mut by_same = left.clone();
                operator.each(&mut by_same, Right::Same(right));
                prop_assert_eq!(bits(&by_same), bits(&expected));
                let mut by_each = left.clone();
                operator.each(&mut by_each, Right::Each(&vec![right; left.len()]));
                prop_assert_eq!(bits(&by_each), bits(&expected));
                if operator.is_symmetric() {
                    let turned: Vec<f64> = left.iter().map(|left| of(right, *left)).collect();
                    prop_assert_eq!(bits(&turned), bits(&expected));
                }
            }
        }
    }
}
