// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparing what is in columns with constants, as JavaScript does.

use lateralis_analysis::filter::columns::{
    Answer, ElementTest, Integers, Node as Columns, Ranges, Reals, Relation, TextTest, Texts, Whole,
};

use super::classes::{Bound, Kind, Piece, integers};
use super::value::{Binary, SAFE_MAX, Value};

/// Compares what is in columns with a constant; `None` where events must be asked.
pub(super) fn with(
    operator: Binary,
    bound: &Bound<'_, '_>,
    constant: &Value<'_>,
) -> Option<Columns<Piece>> {
    match bound {
        Bound::Constant(_) | Bound::Asked => None,
        Bound::Label(column, is_signed, labels) => {
            let holds = |label: Option<&str>| {
                let own = label.map_or(Value::Undefined, |label| Value::Text(label.into()));
                Some(operator.apply(&own, constant)?.is_true())
            };
            Some(integers(Whole::Column(*column), &Ranges::by_label(*is_signed, labels, holds)?))
        }
        Bound::Whole(whole, Kind::Bool) => {
            let holds = |own| Some(operator.apply(&Value::Bool(own), constant)?.is_true());
            let zero = holds(false)?.then_some((0, 0));
            // Whatever is not 0 is yes.
            let others = holds(true)?.then_some((1, i128::from(u64::MAX)));
            Some(integers(*whole, &Ranges::of(false, zero.into_iter().chain(others))))
        }
        Bound::Text(column) => {
            let is_other = matches!(operator, Binary::NotEqual | Binary::NotSame);
            match (operator, constant) {
                (
                    Binary::Equal | Binary::Same | Binary::NotEqual | Binary::NotSame,
                    Value::Text(text),
                ) => {
                    let texts = Texts::of(TextTest::Is(text.clone().into_owned()))?;
                    let node = Columns::Text(*column, texts);
                    Some(if is_other { node.negated() } else { node })
                }
                _ => unlike(operator, &Value::Text("".into()), constant),
            }
        }
        Bound::Real(column) => {
            let Value::Number(constant) = comparable(operator, constant) else {
                return unlike(operator, &Value::Number(0.5), constant);
            };
            let reals = Reals { relation: relation(operator)?, constant };
            Some(Columns::Reals(*column, reals))
        }
        Bound::Element(element, kind) => {
            let number = &comparable(operator, constant);
            let is_number = matches!(number, Value::Number(_) | Value::Big(_));
            Some(Columns::Element(ElementTest {
                element: *element,
                set: Integers::of(&is_number.then(|| range(operator, number, *kind)).flatten()?),
                absent: Answer::of(Some(operator.apply(&Value::Undefined, constant)?.is_true())),
                // One without elements may be an empty text.
                empty: Answer::Ask,
            }))
        }
        Bound::Whole(whole, kind) => {
            let constant = &comparable(operator, constant);
            if !matches!(constant, Value::Number(_) | Value::Big(_)) {
                let own = if *kind == Kind::Big { Value::Big(1) } else { Value::Number(1.0) };
                return unlike(operator, &own, constant);
            }
            Some(integers(*whole, &range(operator, constant, *kind)?))
        }
    }
}

/// What counts as a number in a comparison, as that number.
fn comparable<'v>(operator: Binary, constant: &'v Value<'v>) -> Value<'v> {
    let is_order =
        !matches!(operator, Binary::Equal | Binary::NotEqual | Binary::Same | Binary::NotSame);
    let is_loose = matches!(operator, Binary::Equal | Binary::NotEqual);
    match constant {
        Value::Bool(value) if is_order || is_loose => Value::Number(f64::from(u8::from(*value))),
        Value::Null if is_order => Value::Number(0.0),
        Value::Undefined if is_order => Value::Number(f64::NAN),
        other => other.borrowed(),
    }
}

/// Whether a comparison of two types that are never equal holds: for all values of the type
/// of `own` alike. `None` where it depends on the value.
fn unlike(operator: Binary, own: &Value<'_>, constant: &Value<'_>) -> Option<Columns<Piece>> {
    let nothing = matches!(constant, Value::Undefined | Value::Null);
    let is_strict = matches!(operator, Binary::Same | Binary::NotSame);
    let is_loose = matches!(operator, Binary::Equal | Binary::NotEqual);
    let same_type = own.type_name() == constant.type_name();
    // Integers are Numbers or BigInts as large as they are.
    let both_numbers = |value: &Value<'_>| matches!(value, Value::Number(_) | Value::Big(_));
    let differ = !(same_type || both_numbers(own) && both_numbers(constant));
    match (is_strict && differ) || (is_loose && nothing) {
        true => Some(Columns::truth(operator.apply(own, constant)?.is_true())),
        false => None,
    }
}

/// The operator with its sides exchanged.
pub(super) fn turned(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        other => other,
    }
}

pub(super) fn relation(operator: Binary) -> Option<Relation> {
    Some(match operator {
        Binary::Less => Relation::Less,
        Binary::LessOrEqual => Relation::LessOrEqual,
        Binary::Greater => Relation::Greater,
        Binary::GreaterOrEqual => Relation::GreaterOrEqual,
        Binary::Equal | Binary::Same => Relation::Equal,
        Binary::NotEqual | Binary::NotSame => Relation::NotEqual,
        _ => return None,
    })
}

/// The integers for which `value operator constant` holds.
fn range(operator: Binary, constant: &Value<'_>, kind: Kind) -> Option<Ranges> {
    let between = |low: i128, high: i128| Ranges::of(kind.is_signed(), [(low, high)]);
    let none = || Ranges::none(kind.is_signed());
    let (least, most) = (i128::MIN, i128::MAX);
    // Largest integer ≤ and smallest ≥ the constant; NaN is neither.
    let (floor, ceiling) = match constant {
        Value::Number(value) if value.is_nan() => {
            let all = matches!(operator, Binary::NotEqual | Binary::NotSame);
            return Some(if all { none().complement() } else { none() });
        }
        // The conversion saturates, beyond any integer of a column.
        Value::Number(value) => (value.floor() as i128, value.ceil() as i128),
        Value::Big(value) => (*value, *value),
        _ => return None,
    };
    let equal = || if floor == ceiling { between(floor, floor) } else { none() };
    // Those of the constant's own type.
    let same = || {
        let safe = |value: i128| (-SAFE_MAX..=SAFE_MAX).contains(&value);
        let of_type = match (constant, kind) {
            (Value::Number(_), Kind::Big) => false,
            (Value::Number(_), _) => safe(floor),
            (_, Kind::Big) => true,
            (_, _) => !safe(floor),
        };
        if of_type { equal() } else { none() }
    };
    Some(match operator {
        Binary::Less => ceiling.checked_sub(1).map_or_else(none, |high| between(least, high)),
        Binary::LessOrEqual => between(least, floor),
        Binary::Greater => floor.checked_add(1).map_or_else(none, |low| between(low, most)),
        Binary::GreaterOrEqual => between(ceiling, most),
        Binary::Equal => equal(),
        Binary::NotEqual => equal().complement(),
        Binary::Same => same(),
        Binary::NotSame => same().complement(),
        _ => return None,
    })
}
