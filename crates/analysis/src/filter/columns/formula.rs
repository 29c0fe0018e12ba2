// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers computed from the columns of an event, as doubles.
//!
//! The operators are those of ECMAScript on Numbers. An integer that is not exactly representable as a
//! double is not a Number there: expressions that use one are evaluated on the event.

use lateralis_model::Column;

use super::Part;
use super::numbers::{Numbers, Reals, Relation, compare};
use super::words::{NONE, Words, change, change_both, copy, test};

/// Largest integer up to which all integers are distinct doubles.
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
    /// `%`, with the sign of the left operand.
    Remainder,
    /// `&` on 32 bits.
    And,
    /// `|` on 32 bits.
    Or,
    /// `^` on 32 bits.
    Xor,
    /// `<<` on 32 bits.
    ShiftLeft,
    /// `>>` on 32 bits, signed.
    ShiftRight,
    /// `>>>` on 32 bits.
    ShiftRightUnsigned,
}

impl Arithmetic {
    /// Applies the operator.
    #[must_use]
    pub fn apply(self, left: f64, right: f64) -> f64 {
        let mut values = [left];
        self.each(&mut values, Right::Same(right));
        values[0]
    }

    /// Replaces each left operand by the result.
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

    /// Whether the operands can be exchanged.
    fn is_symmetric(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::And | Self::Or | Self::Xor)
    }
}

/// Right operand.
#[derive(Clone, Copy)]
enum Right<'a> {
    /// The same number for all events.
    Same(f64),
    /// A number for each event.
    Each(&'a [f64]),
}

/// The double nearest to an integer. Uses only 64-bit words, so that it is vectorised: before AVX-512, no
/// CPU converts more than one 64-bit integer at a time.
#[inline(always)]
fn unsigned(value: u64) -> f64 {
    // Placed in the low bits of 2^84 and of 2^52, both halves form doubles directly.
    const HIGH: u64 = 0x4530_0000_0000_0000;
    halves(value >> 32 | HIGH, value, f64::from_bits(HIGH | 1 << 20))
}

/// The double nearest to a signed integer: its upper half is placed in the low bits of 2^84 + 2^63.
#[inline(always)]
fn signed(value: i64) -> f64 {
    const HIGH: u64 = 0x4530_0000_8000_0000;
    halves((value as u64) >> 32 ^ HIGH, value as u64, f64::from_bits(HIGH | 1 << 20))
}

/// Removes `over` from the upper half, and 2^52 from the lower one. Only the last step rounds.
#[inline(always)]
fn halves(high: u64, value: u64, over: f64) -> f64 {
    let low = f64::from_bits((value & 0xffff_ffff) | 0x4330_0000_0000_0000);
    (f64::from_bits(high) - over) + low
}

/// ECMAScript ToInt32: modulo 2^32.
#[inline]
#[must_use]
pub fn to_int32(value: f64) -> i32 {
    // Up to this size the integer is exact, and the result is its lower half.
    if value.abs() < 9.0e18 {
        return value as i64 as i32;
    }
    match value.is_finite() {
        true => (value.trunc() % 4_294_967_296.0) as i64 as i32,
        false => 0,
    }
}

/// A number computed for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// The same for all events.
    Constant(f64),
    /// Value of a numeric column.
    Column(usize),
    /// 1 if a column of integers is not 0.
    Truth(usize),
    /// Negation.
    Negated(Box<Formula>),
    /// Bitwise complement of 32 bits.
    Inverted(Box<Formula>),
    /// A binary operation.
    Of(Arithmetic, Box<Formula>, Box<Formula>),
}

/// A comparison of two computed numbers of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// Left operand.
    pub left: Formula,
    /// Relation.
    pub relation: Relation,
    /// Right operand.
    pub right: Formula,
}

/// Pool of buffers for the numbers of a block.
#[derive(Debug, Default)]
pub(super) struct Room(Vec<Vec<f64>>);

impl Computed {
    /// Replaces `yes` by those events of `care` whose numbers satisfy the relation. Returns the events
    /// that cannot be decided here; they are in neither. `None` if a column is missing.
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
    /// The same for all events.
    Same(f64),
    /// One for each event.
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
    /// Events with an integer that is not exactly representable.
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
        // The previous content is overwritten.
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
                    // Different NaNs are not distinguished.
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
