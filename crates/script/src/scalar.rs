// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys and attributes of activities.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::expression::{SAFE_MAX, Value};

/// A value that an activity carries.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// Nothing: the event has no such field.
    Nothing,
    /// Yes or no.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A number that is no integer.
    Real(f64),
    /// A text.
    Text(String),
}

impl Scalar {
    /// A Number of a script: equal numbers are equal scalars.
    #[must_use]
    pub fn number(value: f64) -> Self {
        let is_whole = value.fract() == 0.0 && value.abs() <= SAFE_MAX as f64;
        if is_whole { Self::Integer(value as i128) } else { Self::Real(value) }
    }

    /// A value of an expression; `None` if it is no scalar.
    #[must_use]
    pub fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Undefined | Value::Null => Self::Nothing,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(value) => Self::number(value),
            Value::Big(value) => Self::Integer(value),
            Value::Text(text) => Self::Text(text.into_owned()),
            Value::Object => return None,
        })
    }

    fn bits(&self) -> u64 {
        match self {
            Self::Real(value) if value.is_nan() => f64::NAN.to_bits(),
            Self::Real(value) => value.to_bits(),
            _ => 0,
        }
    }
}

/// As keys: NaN is itself.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Real(_), Self::Real(_)) => self.bits() == other.bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Nothing => {}
            Self::Bool(value) => value.hash(state),
            Self::Integer(value) => value.hash(state),
            Self::Real(_) => self.bits().hash(state),
            Self::Text(text) => text.hash(state),
        }
    }
}

impl fmt::Display for Scalar {
    /// Strings are without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}
