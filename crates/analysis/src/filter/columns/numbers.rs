// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons of floating point numbers with a constant, and of two columns.

use std::cmp::Ordering;

use lateralis_model::Column;
use lateralis_units::Nanos;

use super::locate::Whole;
use super::words::{Words, test, test_pairs};

/// Relation of two numbers. NaN is unordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// Not equal, or unordered.
    NotEqual,
    /// Less or greater.
    Unlike,
}

impl Relation {
    /// Whether numbers with this ordering satisfy the relation.
    #[must_use]
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match (self, order) {
            (Self::NotEqual, None) => true,
            (_, None) => false,
            (Self::Less, Some(order)) => order.is_lt(),
            (Self::LessOrEqual, Some(order)) => order.is_le(),
            (Self::Greater, Some(order)) => order.is_gt(),
            (Self::GreaterOrEqual, Some(order)) => order.is_ge(),
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::NotEqual | Self::Unlike, Some(order)) => order.is_ne(),
        }
    }

    /// The relation with exchanged operands.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            other => other,
        }
    }
}

/// Test of a column of floating point numbers.
#[derive(Debug, Clone, Copy)]
pub struct Reals {
    /// Relation to the constant.
    pub relation: Relation,
    /// The constant.
    pub constant: f64,
}

impl Reals {
    /// Replaces `yes` by those events of `care` whose numbers satisfy the test.
    pub(super) fn test(&self, values: &[f64], care: &Words, yes: &mut Words) {
        let constant = self.constant;
        match self.relation {
            Relation::Less => test(values, care, yes, |value| value < constant),
            Relation::LessOrEqual => test(values, care, yes, |value| value <= constant),
            Relation::Greater => test(values, care, yes, |value| value > constant),
            Relation::GreaterOrEqual => test(values, care, yes, |value| value >= constant),
            Relation::Equal => test(values, care, yes, |value| value == constant),
            Relation::NotEqual => test(values, care, yes, |value| value != constant),
            Relation::Unlike => {
                test(values, care, yes, |value| (value < constant) | (value > constant));
            }
        }
    }
}

/// A number of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Time of the event.
    Time,
    /// A column.
    Column(usize),
}

impl From<Whole> for Number {
    fn from(whole: Whole) -> Self {
        match whole {
            Whole::Time => Self::Time,
            Whole::Column(column) => Self::Column(column),
        }
    }
}

/// Comparison of two numbers of an event. Integers are compared exactly, and as doubles if one of the two
/// is a floating point number.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// Left operand.
    pub left: Number,
    /// Relation.
    pub relation: Relation,
    /// Right operand.
    pub right: Number,
}

impl Pair {
    pub(super) fn each_column(&self, see: &mut dyn FnMut(usize)) {
        for number in [self.left, self.right] {
            if let Number::Column(column) = number {
                see(column);
            }
        }
    }
}

/// Numbers of some events.
#[derive(Clone, Copy)]
pub(super) enum Numbers<'b> {
    Unsigned(&'b [u64]),
    Signed(&'b [i64]),
    Real(&'b [f64]),
    Times(&'b [Nanos]),
}

impl<'b> Numbers<'b> {
    /// A range of a column; `None` if it is not numeric, or too short.
    pub fn of(column: &Column<'b>, range: std::ops::Range<usize>) -> Option<Self> {
        Some(match column {
            Column::Unsigned(values) => Self::Unsigned(values.get(range)?),
            Column::Signed(values) => Self::Signed(values.get(range)?),
            Column::Real(values) => Self::Real(values.get(range)?),
            Column::Spans(_) | Column::Lists(_) | Column::Skipped => return None,
        })
    }
}

/// Replaces `yes` by those events of `care` whose numbers satisfy the relation; both slices have the same
/// length.
///
/// Cost: a branch-free pass; for numbers of different types, a copy before it.
pub(super) fn compare(
    left: Numbers<'_>,
    relation: Relation,
    right: Numbers<'_>,
    care: &Words,
    yes: &mut Words,
) {
    use Numbers::{Real, Signed, Times, Unsigned};
    match (left, right) {
        (Unsigned(left), Unsigned(right)) => ordered(left, relation, right, care, yes),
        (Signed(left), Signed(right)) => ordered(left, relation, right, care, yes),
        (Real(left), Real(right)) => ordered(left, relation, right, care, yes),
        (Times(times), other) => {
            let left: Vec<i64> = times.iter().map(|time| time.0).collect();
            compare(Signed(&left), relation, other, care, yes);
        }
        (other, Times(_)) => compare(right, relation.turned(), other, care, yes),
        (Unsigned(left), Signed(right)) => unlike_signs(left, relation, right, care, yes),
        (Signed(_), Unsigned(_)) | (Real(_), Unsigned(_) | Signed(_)) => {
            compare(right, relation.turned(), left, care, yes);
        }
        (Unsigned(left), Real(_)) => {
            let left: Vec<f64> = left.iter().map(|value| *value as f64).collect();
            compare(Real(&left), relation, right, care, yes);
        }
        (Signed(left), Real(_)) => {
            let left: Vec<f64> = left.iter().map(|value| *value as f64).collect();
            compare(Real(&left), relation, right, care, yes);
        }
    }
}

fn ordered<T: Copy + PartialOrd>(
    left: &[T],
    relation: Relation,
    right: &[T],
    care: &Words,
    yes: &mut Words,
) {
    match relation {
        Relation::Less => test_pairs((left, right), care, yes, |a, b| a < b),
        Relation::LessOrEqual => test_pairs((left, right), care, yes, |a, b| a <= b),
        Relation::Equal => test_pairs((left, right), care, yes, |a, b| a == b),
        Relation::Unlike => test_pairs((left, right), care, yes, |a, b| (a < b) | (a > b)),
        Relation::NotEqual => {
            ordered(left, Relation::Equal, right, care, yes);
            others(care, yes);
        }
        Relation::Greater | Relation::GreaterOrEqual => {
            ordered(right, relation.turned(), left, care, yes);
        }
    }
}

/// Complements `yes` within `care`.
fn others(care: &Words, yes: &mut Words) {
    yes.iter_mut().zip(care).for_each(|(yes, care)| *yes ^= care);
}

/// Compares unsigned with signed integers. Negative ones are less; otherwise the bits have the same
/// order.
fn unlike_signs(left: &[u64], relation: Relation, right: &[i64], care: &Words, yes: &mut Words) {
    match relation {
        Relation::Less => {
            test_pairs((left, right), care, yes, |a, b| (b >= 0) & (a < b as u64));
        }
        Relation::LessOrEqual => {
            test_pairs((left, right), care, yes, |a, b| (b >= 0) & (a <= b as u64));
        }
        Relation::Equal => {
            test_pairs((left, right), care, yes, |a, b| (b >= 0) & (a == b as u64));
        }
        // Integers are never unordered.
        Relation::Greater | Relation::GreaterOrEqual | Relation::NotEqual | Relation::Unlike => {
            let opposite = match relation {
                Relation::Greater => Relation::LessOrEqual,
                Relation::GreaterOrEqual => Relation::Less,
                _ => Relation::Equal,
            };
            unlike_signs(left, opposite, right, care, yes);
            others(care, yes);
        }
    }
}
