// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of attributes and fields.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Datum {
    /// None.
    #[default]
    Null,
    /// A whole number.
    Integer(i64),
    /// A whole number with a name: of an enumeration.
    Named(i64, Arc<str>),
    /// Another number.
    Real(f64),
    /// A text.
    Text(Arc<str>),
}

/// What a value is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Integer,
    Real,
    Text,
}

impl Datum {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// The whole number, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) | Self::Named(number, _) => Some(*number),
            _ => None,
        }
    }

    /// Whether there is a value.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// As a value of this type; null where it cannot be.
    pub(crate) fn forced(self, to: Type) -> Self {
        match (to, self) {
            (_, Self::Null) => Self::Null,
            (Type::Text, value) => Self::Text(value.to_string().into()),
            (Type::Integer, Self::Real(real)) => Self::Integer(real as i64),
            (Type::Integer, Self::Text(text)) => {
                text.trim().parse().map_or(Self::Null, Self::Integer)
            }
            (Type::Integer, value) => value.as_integer().map_or(Self::Null, Self::Integer),
            (Type::Real, Self::Real(real)) => Self::Real(real),
            (Type::Real, Self::Text(text)) => text.trim().parse().map_or(Self::Null, Self::Real),
            (Type::Real, value) => value.as_integer().map_or(Self::Null, |n| Self::Real(n as f64)),
        }
    }

    /// The sum of two numbers of one kind; the second where they are not.
    pub(crate) fn plus(&self, more: Self) -> Self {
        match (self, more) {
            (Self::Null, more) => more,
            (Self::Real(a), Self::Real(b)) => Self::Real(a + b),
            (a, more) => match (a.as_integer(), more.as_integer()) {
                (Some(a), Some(b)) => Self::Integer(a.wrapping_add(b)),
                _ => more,
            },
        }
    }

    /// Which comes first. Numbers compare as numbers where the first is one, all else as
    /// text; a name counts where the other is a text.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let number = |of: &Self| match of {
            Self::Real(real) => Some(*real),
            of => of.as_integer().map(|number| number as f64),
        };
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Named(_, a), Self::Text(b)) => a.cmp(b),
            (Self::Text(a), Self::Named(_, b)) => a.cmp(b),
            _ => match (self.as_integer(), other.as_integer(), number(self), number(other)) {
                (Some(a), Some(b), ..) => a.cmp(&b),
                // The first decides what is compared: 3 is 3.5 there.
                (Some(a), None, _, Some(b)) => a.cmp(&(b as i64)),
                (_, _, Some(a), Some(b)) => a.total_cmp(&b),
                _ => self.to_string().cmp(&other.to_string()),
            },
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Text(text) | Self::Named(_, text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decides_how_two_compare() {
        let named = Datum::Named(2, "END".into());
        for (a, b, order) in [
            (Datum::Integer(1), Datum::Integer(1), Ordering::Equal),
            (Datum::Integer(3), Datum::Real(3.5), Ordering::Equal),
            (Datum::Real(3.0), Datum::Integer(4), Ordering::Less),
            (Datum::text("10"), Datum::text("9"), Ordering::Less),
            (Datum::text("10"), Datum::Integer(10), Ordering::Equal),
            (Datum::Null, Datum::Null, Ordering::Equal),
            (Datum::Null, Datum::text("null"), Ordering::Less),
            (named.clone(), Datum::Integer(2), Ordering::Equal),
            (named.clone(), Datum::text("END"), Ordering::Equal),
            (Datum::text("START"), named, Ordering::Greater),
        ] {
            assert_eq!(a.order(&b), order, "{a:?} {b:?}");
        }
    }

    #[test]
    fn types_are_forced_where_they_can_be() {
        assert_eq!(Datum::text("12").forced(Type::Integer), Datum::Integer(12));
        assert_eq!(Datum::text("x").forced(Type::Integer), Datum::Null);
        assert_eq!(Datum::Real(2.9).forced(Type::Integer), Datum::Integer(2));
        assert_eq!(Datum::Integer(2).forced(Type::Real), Datum::Real(2.0));
        assert_eq!(Datum::Integer(2).forced(Type::Text), Datum::text("2"));
        assert_eq!(Datum::Null.forced(Type::Text), Datum::Null);
        assert_eq!(Datum::Integer(i64::MAX).plus(Datum::Integer(1)), Datum::Integer(i64::MIN));
        assert_eq!(Datum::Null.plus(Datum::Integer(1)), Datum::Integer(1));
        assert_eq!(Datum::text("a").plus(Datum::text("b")), Datum::text("b"));
    }
}
