// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers that are computed of the columns of an event, as doubles.
//!
//! The operators are those of ECMAScript on Numbers. An integer that no double is exactly is no
//! Number there: who computes with one is asked about the event.

use lateralis_model::Column;

use super::Part;
use super::numbers::{Numbers, Relation, compare};
use super::words::{NONE, Words, test};

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
        self.each(&mut values, &[right]);
        values[0]
    }

    /// Replaces each left number by the result.
    fn each(self, left: &mut [f64], right: &[f64]) {
        macro_rules! pass {
            ($of:expr) => {
                left.iter_mut().zip(right).for_each(|(left, right)| *left = $of(*left, *right))
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
        compare(Numbers::Real(&left), self.relation, Numbers::Real(&right), &known, yes);
        room.0.extend([left, right]);
        Some(rest)
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
    fn numbers(&mut self, formula: &Formula) -> Option<Vec<f64>> {
        match formula {
            Formula::Constant(value) => {
                let mut numbers = self.room.0.pop().unwrap_or_default();
                numbers.clear();
                numbers.resize(self.range.len(), *value);
                Some(numbers)
            }
            Formula::Column(column) => {
                let column = self.part.column(*column);
                let numbers = Numbers::of(&column, self.range.clone())?;
                let mut unsafe_ = NONE;
                let safe = SAFE_MAX as i64;
                let numbers = match numbers {
                    Numbers::Unsigned(values) => {
                        test(values, self.care, &mut unsafe_, |value| value > SAFE_MAX);
                        self.collect(values, |value| value as f64)
                    }
                    Numbers::Signed(values) => {
                        test(values, self.care, &mut unsafe_, |v| (v > safe) | (v < -safe));
                        self.collect(values, |value| value as f64)
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
                numbers.iter_mut().for_each(|number| *number = -*number);
                Some(numbers)
            }
            Formula::Inverted(inner) => {
                let mut numbers = self.numbers(inner)?;
                numbers.iter_mut().for_each(|number| *number = f64::from(!to_int32(*number)));
                Some(numbers)
            }
            Formula::Of(operator, left, right) => {
                let mut numbers = self.numbers(left)?;
                let right = self.numbers(right)?;
                operator.each(&mut numbers, &right);
                self.room.0.push(right);
                Some(numbers)
            }
        }
    }

    fn collect<T: Copy>(&mut self, values: &[T], of: impl Fn(T) -> f64) -> Vec<f64> {
        let mut numbers = self.room.0.pop().unwrap_or_default();
        numbers.clear();
        numbers.extend(values.iter().map(|value| of(*value)));
        numbers
    }
}
