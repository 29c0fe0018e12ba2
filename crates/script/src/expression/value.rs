// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values as JavaScript has them, and its operators on them.
//!
//! An operator returns `None` if its result depends on more than the two values, or if JavaScript
//! throws: the engine then evaluates the script. So nothing is guessed here.

use std::borrow::Cow;
use std::cmp::Ordering;

use lateralis_analysis::filter::columns::{Arithmetic, to_int32};

/// Largest integer that is a Number in a script; larger ones are BigInts.
pub const SAFE_MAX: i128 = lateralis_analysis::filter::columns::SAFE_MAX as i128;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `undefined`: what an event does not have.
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A Number.
    Number(f64),
    /// A BigInt.
    Big(i128),
    /// A text.
    Text(Cow<'a, str>),
    /// Fields inside of a field, an array.
    Object,
}

impl<'a> Value<'a> {
    /// An integer of a trace: a Number where that is exact, else a BigInt.
    #[inline]
    #[must_use]
    pub fn integer(value: i128) -> Self {
        if (-SAFE_MAX..=SAFE_MAX).contains(&value) {
            Self::Number(value as f64)
        } else {
            Self::Big(value)
        }
    }

    /// Whether it counts as true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(value) => *value != 0.0 && !value.is_nan(),
            Self::Big(value) => *value != 0,
            Self::Text(text) => !text.is_empty(),
            Self::Object => true,
        }
    }

    /// What `typeof` says.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null | Self::Object => "object",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Big(_) => "bigint",
            Self::Text(_) => "string",
        }
    }

    /// It as a Number, as operators see it; `None` for BigInts, and where a text would
    /// have to be read, or an object asked.
    #[must_use]
    pub fn as_double(&self) -> Option<f64> {
        match self.number()? {
            Number::Double(value) => Some(value),
            Number::Big(_) => None,
        }
    }

    /// The operand of arithmetic; `None` where a text would have to be read, or an
    /// object asked.
    fn number(&self) -> Option<Number> {
        Some(match self {
            Self::Undefined => Number::Double(f64::NAN),
            Self::Null => Number::Double(0.0),
            Self::Bool(value) => Number::Double(f64::from(u8::from(*value))),
            Self::Number(value) => Number::Double(*value),
            Self::Big(value) => Number::Big(*value),
            Self::Text(_) | Self::Object => return None,
        })
    }

    /// The same value with a life of its own.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Undefined => Value::Undefined,
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(value) => Value::Number(value),
            Self::Big(value) => Value::Big(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Object => Value::Object,
        }
    }

    /// A view of it.
    #[must_use]
    pub fn borrowed(&'a self) -> Value<'a> {
        match self {
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Number(value) => Value::Number(*value),
            Self::Big(value) => Value::Big(*value),
            Self::Bool(value) => Value::Bool(*value),
            Self::Undefined => Value::Undefined,
            Self::Null => Value::Null,
            Self::Object => Value::Object,
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Double(f64),
    Big(i128),
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Equal,
    NotEqual,
    Same,
    NotSame,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
}

impl Binary {
    /// Whether its result is `true` or `false`.
    #[must_use]
    pub fn compares(self) -> bool {
        (self as u8) <= (Self::GreaterOrEqual as u8)
    }

    /// What it makes of two values; `None` where the script must be asked.
    #[must_use]
    pub fn apply<'a>(self, left: &Value<'_>, right: &Value<'_>) -> Option<Value<'a>> {
        use Binary::*;
        let order = |is: fn(Ordering) -> bool| {
            let order = compare(left, right)?;
            Some(Value::Bool(order.is_some_and(is)))
        };
        match self {
            Equal => Some(Value::Bool(loosely_equal(left, right)?)),
            NotEqual => Some(Value::Bool(!loosely_equal(left, right)?)),
            Same => Some(Value::Bool(same(left, right)?)),
            NotSame => Some(Value::Bool(!same(left, right)?)),
            Less => order(Ordering::is_lt),
            LessOrEqual => order(Ordering::is_le),
            Greater => order(Ordering::is_gt),
            GreaterOrEqual => order(Ordering::is_ge),
            _ => match (left.number()?, right.number()?) {
                (Number::Double(left), Number::Double(right)) => {
                    Some(Value::Number(self.doubles(left, right)))
                }
                (Number::Big(left), Number::Big(right)) => {
                    Some(Value::Big(self.bigs(left, right)?))
                }
                // JavaScript throws a TypeError.
                _ => None,
            },
        }
    }

    fn doubles(self, left: f64, right: f64) -> f64 {
        self.arithmetic().map_or(f64::NAN, |operator| operator.apply(left, right))
    }

    /// What it does with two Numbers, if it does not compare them.
    #[must_use]
    pub fn arithmetic(self) -> Option<Arithmetic> {
        Some(match self {
            Self::Add => Arithmetic::Add,
            Self::Subtract => Arithmetic::Subtract,
            Self::Multiply => Arithmetic::Multiply,
            Self::Divide => Arithmetic::Divide,
            Self::Remainder => Arithmetic::Remainder,
            Self::And => Arithmetic::And,
            Self::Or => Arithmetic::Or,
            Self::Xor => Arithmetic::Xor,
            Self::ShiftLeft => Arithmetic::ShiftLeft,
            Self::ShiftRight => Arithmetic::ShiftRight,
            Self::ShiftRightUnsigned => Arithmetic::ShiftRightUnsigned,
            _ => return None,
        })
    }

    fn bigs(self, left: i128, right: i128) -> Option<i128> {
        use Binary::*;
        match self {
            Add => left.checked_add(right),
            Subtract => left.checked_sub(right),
            Multiply => left.checked_mul(right),
            Divide => left.checked_div(right),
            Remainder => left.checked_rem(right),
            And => Some(left & right),
            Or => Some(left | right),
            Xor => Some(left ^ right),
            _ => None,
        }
    }
}

/// `-value`; `None` where the script must be asked.
#[must_use]
pub fn negated(value: &Value<'_>) -> Option<Value<'static>> {
    Some(match value.number()? {
        Number::Double(value) => Value::Number(-value),
        Number::Big(value) => Value::Big(value.checked_neg()?),
    })
}

/// `+value`; `None` where the script must be asked.
#[must_use]
pub fn plus(value: &Value<'_>) -> Option<Value<'static>> {
    match value.number()? {
        Number::Double(value) => Some(Value::Number(value)),
        Number::Big(_) => None,
    }
}

/// `~value`; `None` where the script must be asked.
#[must_use]
pub fn inverted(value: &Value<'_>) -> Option<Value<'static>> {
    Some(match value.number()? {
        Number::Double(value) => Value::Number(f64::from(!to_int32(value))),
        Number::Big(value) => Value::Big(!value),
    })
}

/// `===`
fn same(left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    use Value::*;
    Some(match (left, right) {
        // Whether it is one and the same.
        (Object, Object) => return None,
        (Number(left), Number(right)) => left == right,
        (Big(left), Big(right)) => left == right,
        (Text(left), Text(right)) => left == right,
        (Bool(left), Bool(right)) => left == right,
        (Undefined, Undefined) | (Null, Null) => true,
        _ => false,
    })
}

/// `==`
fn loosely_equal(left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    use Value::*;
    match (left, right) {
        (Undefined | Null, Undefined | Null) => Some(true),
        (Undefined | Null, _) | (_, Undefined | Null) => Some(false),
        (Object, _) | (_, Object) => None,
        (Text(_), Text(_)) => same(left, right),
        _ => Some(order(left.number()?, right.number()?) == Some(Ordering::Equal)),
    }
}

/// The order that `<` and its like ask for; `Some(None)` where there is none, as of NaN.
fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(Some(text_order(left, right))),
        _ => Some(order(left.number()?, right.number()?)),
    }
}

fn order(left: Number, right: Number) -> Option<Ordering> {
    match (left, right) {
        (Number::Double(left), Number::Double(right)) => left.partial_cmp(&right),
        (Number::Big(left), Number::Big(right)) => Some(left.cmp(&right)),
        (Number::Big(left), Number::Double(right)) => mixed(left, right),
        (Number::Double(left), Number::Big(right)) => mixed(right, left).map(Ordering::reverse),
    }
}

/// Compares as the mathematical values that they are.
fn mixed(left: i128, right: f64) -> Option<Ordering> {
    if right.is_nan() {
        return None;
    }
    // 2^127 is a double; beyond it the conversion saturates.
    if right >= i128::MAX as f64 {
        return Some(Ordering::Less);
    }
    if right < i128::MIN as f64 {
        return Some(Ordering::Greater);
    }
    let floor = right.floor();
    let by_whole = left.cmp(&(floor as i128));
    Some(if by_whole == Ordering::Equal && right > floor { Ordering::Less } else { by_whole })
}

/// Texts compare by UTF-16 code units.
fn text_order(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        return left.cmp(right);
    }
    left.encode_utf16().cmp(right.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_compare_as_numbers() {
        let big = |value| Value::Big(value);
        let number = |value| Value::Number(value);
        let holds = |op: Binary, l: &Value<'_>, r: &Value<'_>| op.apply(l, r).unwrap().is_true();
        assert!(holds(Binary::Greater, &big(1 << 60), &number(1152921504606846975.0 - 1000.0)));
        assert!(holds(Binary::Less, &big(5), &number(5.5)));
        assert!(holds(Binary::Greater, &number(5.5), &big(5)));
        assert!(holds(Binary::Equal, &big(1 << 60), &number(1152921504606846976.0)));
        assert!(!holds(Binary::Same, &big(1 << 60), &number(1152921504606846976.0)));
        assert!(holds(Binary::Less, &big(i128::MAX), &number(f64::INFINITY)));
        assert!(!holds(Binary::Less, &big(1), &number(f64::NAN)));
        assert!(holds(Binary::Less, &big(-6), &number(-5.5)));
        assert!(holds(Binary::Greater, &big(-5), &number(-5.5)));
    }

    #[test]
    fn what_throws_or_reads_texts_is_left_to_the_script() {
        let text = Value::Text("5".into());
        assert_eq!(Binary::Less.apply(&text, &Value::Number(6.0)), None);
        assert_eq!(Binary::Add.apply(&Value::Big(1), &Value::Number(1.0)), None);
        assert_eq!(Binary::Divide.apply(&Value::Big(1), &Value::Big(0)), None);
        assert_eq!(Binary::Same.apply(&Value::Object, &Value::Object), None);
    }

    #[test]
    fn bits_are_those_of_32() {
        let of = |op: Binary, l: f64, r: f64| op.doubles(l, r);
        assert_eq!(of(Binary::And, 4294967295.0, 255.0), 255.0);
        assert_eq!(of(Binary::Or, 2147483648.0, 0.0), -2147483648.0);
        assert_eq!(of(Binary::ShiftRightUnsigned, -1.0, 28.0), 15.0);
        assert_eq!(of(Binary::ShiftLeft, 1.0, 33.0), 2.0);
    }
}
