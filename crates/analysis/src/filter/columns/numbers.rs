// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparing floating point numbers with a constant, and two columns with each other.

use std::cmp::Ordering;

use lateralis_model::Column;
use lateralis_units::Nanos;

use super::integers::each;
use super::of_filter::Whole;

/// How two numbers are related. Where one of them is NaN there is no order.
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
    /// Not equal, also where there is no order.
    NotEqual,
    /// One of them is less.
    Unlike,
}

impl Relation {
    /// Whether two numbers of this order are related so.
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

    /// The same with its sides exchanged.
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

/// A test of a column of floating point numbers.
#[derive(Debug, Clone, Copy)]
pub struct Reals {
    /// How it shall be related.
    pub relation: Relation,
    /// To this.
    pub constant: f64,
}

impl Reals {
    pub(super) fn test(&self, values: &[f64], out: &mut [u8]) {
        let constant = self.constant;
        match self.relation {
            Relation::Less => each(values, out, |value| value < constant),
            Relation::LessOrEqual => each(values, out, |value| value <= constant),
            Relation::Greater => each(values, out, |value| value > constant),
            Relation::GreaterOrEqual => each(values, out, |value| value >= constant),
            Relation::Equal => each(values, out, |value| value == constant),
            Relation::NotEqual => each(values, out, |value| value != constant),
            Relation::Unlike => each(values, out, |value| (value < constant) | (value > constant)),
        }
    }
}

/// A number of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// When it happened.
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

/// How two numbers of an event shall be related. Integers are compared as they are, and
/// as doubles where one of the two is a floating point number.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// The left one.
    pub left: Number,
    /// How.
    pub relation: Relation,
    /// The right one.
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
    /// Some of a column; `None` if they are no numbers, or not so many.
    pub fn of(column: &Column<'b>, range: std::ops::Range<usize>) -> Option<Self> {
        Some(match column {
            Column::Unsigned(values) => Self::Unsigned(values.get(range)?),
            Column::Signed(values) => Self::Signed(values.get(range)?),
            Column::Real(values) => Self::Real(values.get(range)?),
            Column::Spans(_) | Column::Lists(_) | Column::Skipped => return None,
        })
    }
}

/// Whether the numbers are related, event by event; all of them are as many as `out`.
pub(super) fn compare(left: Numbers<'_>, relation: Relation, right: Numbers<'_>, out: &mut [u8]) {
    use Numbers::{Real, Signed, Times, Unsigned};
    match (left, right) {
        (Unsigned(left), Unsigned(right)) => ordered(left, right, relation, out, |v| v),
        (Signed(left), Signed(right)) => ordered(left, right, relation, out, |v| v),
        (Real(left), Real(right)) => ordered(left, right, relation, out, |v| v),
        (Times(left), Times(right)) => ordered(left, right, relation, out, |v| v.0),
        _ => {
            for (at, answer) in out.iter_mut().enumerate() {
                let order = match (value(left, at), value(right, at)) {
                    ((Some(left), _), (Some(right), _)) => Some(left.cmp(&right)),
                    ((_, left), (_, right)) => left.partial_cmp(&right),
                };
                *answer = u8::from(relation.holds(order));
            }
        }
    }
}

/// An integer as it is, and as a double.
fn value(of: Numbers<'_>, at: usize) -> (Option<i128>, f64) {
    let whole = |value: i128| (Some(value), value as f64);
    match of {
        Numbers::Unsigned(values) => whole(values[at].into()),
        Numbers::Signed(values) => whole(values[at].into()),
        Numbers::Times(values) => whole(values[at].0.into()),
        Numbers::Real(values) => (None, values[at]),
    }
}

#[inline(always)]
fn ordered<T: Copy, V: PartialOrd>(
    left: &[T],
    right: &[T],
    relation: Relation,
    out: &mut [u8],
    of: impl Fn(T) -> V + Copy,
) {
    let pass = |out: &mut [u8], holds: fn(&V, &V) -> bool| {
        for ((answer, left), right) in out.iter_mut().zip(left).zip(right) {
            *answer = u8::from(holds(&of(*left), &of(*right)));
        }
    };
    match relation {
        Relation::Less => pass(out, |a, b| a < b),
        Relation::LessOrEqual => pass(out, |a, b| a <= b),
        Relation::Greater => pass(out, |a, b| a > b),
        Relation::GreaterOrEqual => pass(out, |a, b| a >= b),
        Relation::Equal => pass(out, |a, b| a == b),
        Relation::NotEqual => pass(out, |a, b| a != b),
        Relation::Unlike => pass(out, |a, b| (a < b) | (a > b)),
    }
}
