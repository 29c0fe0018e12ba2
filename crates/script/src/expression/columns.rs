// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking an expression about many events at once: slices in, answers out.
//!
//! A comparison of a column of integers with a constant is a test whether the
//! integer lies in a range, whatever JavaScript's types say: Numbers and BigInts compare
//! as mathematical values. Such tests are one pass over a slice each; the rest goes
//! value by value.

use std::borrow::Cow;

use super::row::{Row, evaluate};
use super::value::{Binary, SAFE_MAX, Value};
use super::{Answer, Expression, Node, Path};

/// The values of one path, one per event.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Integers ≥ 0.
    Unsigned(&'a [u64]),
    /// Integers.
    Signed(&'a [i64]),
    /// Integers that are BigInts in a script, however small: times.
    Big(&'a [i64]),
    /// Floating point numbers.
    Real(&'a [f64]),
    /// Yes or no.
    Bool(&'a [bool]),
    /// Texts.
    Text(&'a [Cow<'a, str>]),
    /// The same for all events.
    Constant(&'a Value<'a>),
    /// Only the engine can tell.
    Unknown,
}

impl Column<'_> {
    fn value(&self, row: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Unsigned(values) => Value::integer((*values.get(row)?).into()),
            Self::Signed(values) => Value::integer((*values.get(row)?).into()),
            Self::Big(values) => Value::Big((*values.get(row)?).into()),
            Self::Real(values) => Value::Number(*values.get(row)?),
            Self::Bool(values) => Value::Bool(*values.get(row)?),
            Self::Text(values) => Value::Text(Cow::Borrowed(values.get(row)?)),
            Self::Constant(value) => value.borrowed(),
            Self::Unknown => return None,
        })
    }
}

/// Columns for the paths of an expression, in the order of [`Expression::paths`].
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// One per path.
    pub columns: &'a [Column<'a>],
    /// How many events; a column that is shorter leaves the rest to the engine.
    pub len: usize,
}

impl<'a> Columns<'a> {
    /// One event of them, for [`Expression::test`].
    #[must_use]
    pub fn row<'r>(&'r self, of: &'r Expression, row: usize) -> impl Row + use<'r, 'a> {
        At { columns: self, paths: &of.paths, row }
    }
}

/// One event of columns.
struct At<'r, 'a> {
    columns: &'r Columns<'a>,
    paths: &'r [Path],
    row: usize,
}

impl Row for At<'_, '_> {
    fn value(&self, path: &Path) -> Option<Value<'_>> {
        let index = self.paths.iter().position(|known| known == path)?;
        self.columns.columns.get(index)?.value(self.row)
    }
}

impl Expression {
    /// For which events of the columns it holds: replaces the content of `answers`.
    ///
    /// Cost: a pass over a slice for each comparison of integers or floating point numbers
    /// with a constant; other operators value by value. Keeps one buffer for each
    /// `&&` and `||` inside each other, of a byte an event.
    pub fn select(&self, columns: &Columns<'_>, answers: &mut Vec<Answer>) {
        answers.clear();
        answers.resize(columns.len, Answer::Ask);
        self.fill(&self.root, columns, answers);
    }

    fn fill(&self, node: &Node, columns: &Columns<'_>, out: &mut [Answer]) {
        match node {
            Node::Constant(value) => out.fill(Answer::of(Some(value.is_true()))),
            Node::Not(inner) => {
                self.fill(inner, columns, out);
                for answer in out {
                    *answer = match *answer {
                        Answer::No => Answer::Yes,
                        Answer::Yes => Answer::No,
                        Answer::Ask => Answer::Ask,
                    };
                }
            }
            Node::And(left, right) => self.both(left, right, Answer::Yes, columns, out),
            Node::Or(left, right) => self.both(left, right, Answer::No, columns, out),
            Node::Binary(operator, left, right) if operator.compares() => {
                let done = match (&**left, &**right) {
                    (Node::Path(path), Node::Constant(value)) => {
                        compare(*operator, columns.columns.get(*path), value, out)
                    }
                    (Node::Constant(value), Node::Path(path)) => {
                        compare(turned(*operator), columns.columns.get(*path), value, out)
                    }
                    _ => false,
                };
                if !done {
                    self.each(node, columns, out);
                }
            }
            _ => self.each(node, columns, out),
        }
    }

    /// `left && right` and `left || right`: where the left is `goes_on`, the right decides.
    fn both(
        &self,
        left: &Node,
        right: &Node,
        goes_on: Answer,
        columns: &Columns<'_>,
        out: &mut [Answer],
    ) {
        self.fill(left, columns, out);
        let mut other = vec![Answer::Ask; out.len()];
        self.fill(right, columns, &mut other);
        for (answer, other) in out.iter_mut().zip(other) {
            *answer = if *answer == goes_on { other } else { *answer };
        }
    }

    fn each(&self, node: &Node, columns: &Columns<'_>, out: &mut [Answer]) {
        for (row, answer) in out.iter_mut().enumerate() {
            let at = At { columns, paths: &self.paths, row };
            let value = evaluate(node, &self.paths, &at);
            *answer = Answer::of(value.map(|value| value.is_true()));
        }
    }
}

/// The operator with its sides exchanged.
fn turned(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        other => other,
    }
}

/// Compares a column with a constant; false if that must be done value by value.
fn compare(
    operator: Binary,
    column: Option<&Column<'_>>,
    constant: &Value<'_>,
    out: &mut [Answer],
) -> bool {
    match column {
        Some(Column::Unsigned(values)) if values.len() >= out.len() => {
            let Some(range) = Range::of(operator, constant, Kind::Integer) else { return false };
            let Some((low, width)) = range.within(0, u64::MAX.into()) else {
                out.fill(Answer::of(Some(range.negated)));
                return true;
            };
            let (low, width) = (low as u64, width as u64);
            test(values, out, |value| (value.wrapping_sub(low) <= width) != range.negated);
            true
        }
        Some(Column::Signed(values) | Column::Big(values)) if values.len() >= out.len() => {
            let is_big = matches!(column, Some(Column::Big(_)));
            let kind = if is_big { Kind::Big } else { Kind::Integer };
            let Some(range) = Range::of(operator, constant, kind) else { return false };
            let Some((low, width)) = range.within(i64::MIN.into(), i64::MAX.into()) else {
                out.fill(Answer::of(Some(range.negated)));
                return true;
            };
            let (low, width) = (low as i64, width as u64);
            let inside = |value: i64| value.wrapping_sub(low) as u64 <= width;
            test(values, out, |value| inside(value) != range.negated);
            true
        }
        Some(Column::Real(values)) if values.len() >= out.len() => {
            let Value::Number(constant) = *constant else { return false };
            match operator {
                Binary::Less => test(values, out, |value| value < constant),
                Binary::LessOrEqual => test(values, out, |value| value <= constant),
                Binary::Greater => test(values, out, |value| value > constant),
                Binary::GreaterOrEqual => test(values, out, |value| value >= constant),
                Binary::Equal | Binary::Same => test(values, out, |value| value == constant),
                Binary::NotEqual | Binary::NotSame => test(values, out, |value| value != constant),
                _ => return false,
            }
            true
        }
        _ => false,
    }
}

#[inline]
fn test<T: Copy>(values: &[T], out: &mut [Answer], holds: impl Fn(T) -> bool) {
    for (answer, value) in out.iter_mut().zip(values) {
        *answer = if holds(*value) { Answer::Yes } else { Answer::No };
    }
}

/// How the integers of a column are seen by a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Numbers, and BigInts where a Number is not exact.
    Integer,
    /// BigInts.
    Big,
}

/// Integers between two bounds, both included, or all others.
struct Range {
    low: i128,
    high: i128,
    negated: bool,
}

impl Range {
    const NOTHING: Self = Self { low: 1, high: 0, negated: false };

    /// The integers `value` for which `value operator constant` holds.
    fn of(operator: Binary, constant: &Value<'_>, kind: Kind) -> Option<Self> {
        let between = |low: i128, high: i128| Self { low, high, negated: false };
        let (least, most) = (i128::MIN, i128::MAX);
        // Largest integer ≤ and smallest ≥ the constant; NaN is neither.
        let (floor, ceiling) = match constant {
            Value::Number(value) if value.is_nan() => {
                let negated = matches!(operator, Binary::NotEqual | Binary::NotSame);
                return Some(Self { negated, ..Self::NOTHING });
            }
            // The conversion saturates, beyond any integer of a column.
            Value::Number(value) => (value.floor() as i128, value.ceil() as i128),
            Value::Big(value) => (*value, *value),
            _ => return None,
        };
        let equal = || if floor == ceiling { between(floor, floor) } else { Self::NOTHING };
        // Those of the constant's own type.
        let same = || {
            let safe = |value: i128| (-SAFE_MAX..=SAFE_MAX).contains(&value);
            let of_type = match (constant, kind) {
                (Value::Number(_), Kind::Integer) => safe(floor),
                (Value::Number(_), Kind::Big) => false,
                (_, Kind::Integer) => !safe(floor),
                (_, Kind::Big) => true,
            };
            if of_type { equal() } else { Self::NOTHING }
        };
        Some(match operator {
            Binary::Less => match ceiling.checked_sub(1) {
                Some(high) => between(least, high),
                None => Self::NOTHING,
            },
            Binary::LessOrEqual => between(least, floor),
            Binary::Greater => match floor.checked_add(1) {
                Some(low) => between(low, most),
                None => Self::NOTHING,
            },
            Binary::GreaterOrEqual => between(ceiling, most),
            Binary::Equal => equal(),
            Binary::NotEqual => Self { negated: true, ..equal() },
            Binary::Same => same(),
            Binary::NotSame => Self { negated: true, ..same() },
            _ => return None,
        })
    }

    /// Its part between two bounds as its first value and how many follow; `None` if it
    /// has none.
    fn within(&self, least: i128, most: i128) -> Option<(i128, i128)> {
        let (low, high) = (self.low.max(least), self.high.min(most));
        (low <= high).then(|| (low, high - low))
    }
}
