// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One event object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dynamic::{Dyn, Named};

/// An event as its object says it.
#[derive(Debug, Default)]
pub struct Raw<'a> {
    /// `ph`.
    pub phase: Option<Cow<'a, str>>,
    /// `name`.
    pub name: Option<Cow<'a, str>>,
    /// `cat`.
    pub category: Option<Cow<'a, str>>,
    /// `ts` as it is written.
    pub time: Option<&'a str>,
    /// `dur` as it is written.
    pub duration: Option<&'a str>,
    /// `pid`.
    pub pid: Option<Dyn<'a>>,
    /// `tid`.
    pub tid: Option<Dyn<'a>>,
    /// `args`.
    pub args: Option<Dyn<'a>>,
    /// All other members.
    pub rest: Named<'a>,
    /// Whether it is no strict JSON.
    pub is_repaired: bool,
}

impl<'a> Raw<'a> {
    /// Takes a member of an event that is no strict JSON; `source` is what is written for
    /// its value.
    pub fn member(&mut self, key: Cow<'a, str>, value: Dyn<'a>, source: &'a [u8]) {
        self.is_repaired = true;
        let as_written = || std::str::from_utf8(source).ok();
        match key.as_ref() {
            "ph" => self.phase = text(value),
            "name" => self.name = text(value),
            "cat" => self.category = text(value),
            "ts" => self.time = as_written(),
            "dur" => self.duration = as_written(),
            "pid" => self.pid = Some(value),
            "tid" => self.tid = Some(value),
            "args" => self.args = Some(value),
            _ => put(&mut self.rest, key, value),
        }
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw<'de>, A::Error> {
        let mut raw = Raw::default();
        while let Some(Name(key)) = map.next_key()? {
            match key.as_ref() {
                "ph" => raw.phase = text(map.next_value()?),
                "name" => raw.name = text(map.next_value()?),
                "cat" => raw.category = text(map.next_value()?),
                "ts" => raw.time = Some(map.next_value::<&RawValue>()?.get()),
                "dur" => raw.duration = Some(map.next_value::<&RawValue>()?.get()),
                "pid" => raw.pid = Some(map.next_value()?),
                "tid" => raw.tid = Some(map.next_value()?),
                "args" => raw.args = Some(map.next_value()?),
                _ => put(&mut raw.rest, key, map.next_value()?),
            }
        }
        Ok(raw)
    }
}

/// A text; other values as the text that they are written with.
fn text(value: Dyn<'_>) -> Option<Cow<'_, str>> {
    match value {
        Dyn::Text(text) => Some(text),
        Dyn::Null => None,
        other => {
            let mut out = Vec::new();
            crate::dynamic::to_json(&other, &mut out);
            Some(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
        }
    }
}

/// Adds a member; of equal names the last counts, as in JavaScript.
pub fn put<'a>(members: &mut Named<'a>, name: Cow<'a, str>, value: Dyn<'a>) {
    // Few members are usual; many are looked through from the end.
    match members.iter_mut().rev().take(64).find(|(other, _)| *other == name) {
        Some(member) => member.1 = value,
        None => members.push((name, value)),
    }
}

/// Ends what [`put`] began: that looks back only so far; beyond, all but the first go.
pub fn unique(members: &mut Named<'_>) {
    if members.len() > 64 {
        let mut seen = std::collections::HashSet::new();
        members.retain(|(name, _)| seen.insert(name.clone()));
    }
}

/// A member's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for Dyn<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DynVisitor)
    }
}

struct DynVisitor;

impl<'de> Visitor<'de> for DynVisitor {
    type Value = Dyn<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Real(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Dyn<'de>, E> {
        Ok(Dyn::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dyn<'de>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Dyn::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dyn<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(key)) = map.next_key()? {
            put(&mut members, key, map.next_value()?);
        }
        unique(&mut members);
        Ok(Dyn::Dict(members))
    }
}

/// Whether a text is one whole JSON value.
pub fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Nanoseconds of a number of microseconds as it is written, exact to the
/// nanosecond, which a floating point number would not be; and whether finer
/// digits were cut. Numbers in quotes are taken too.
///
/// Errors: `None` if it is no number, or beyond 292 years.
pub fn nanos(text: &str) -> Option<(i64, bool)> {
    let text = text.trim_matches('"').trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        // Exponents of more digits are those of 0, or of what is too large or too small.
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let decimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !decimal(whole) || !decimal(fraction) {
        return None;
    }
    // The decimal point of nanoseconds is after this number of digits, including those before the
    // point.
    let point = whole.len() as i64 + i64::from(exponent) + 3;
    let mut value: i128 = 0;
    let mut cut = false;
    for (place, byte) in (0i64..).zip(whole.bytes().chain(fraction.bytes())) {
        let digit = i128::from(byte - b'0');
        if place >= point {
            cut |= digit != 0;
        } else if value > i128::from(i64::MAX) {
            return None;
        } else {
            value = value * 10 + digit;
        }
    }
    let count = (whole.len() + fraction.len()) as i64;
    for _ in count..point {
        if value == 0 {
            break;
        }
        if value > i128::from(i64::MAX) {
            return None;
        }
        value *= 10;
    }
    // Down, also below zero, as everywhere.
    let value = if negative { -value - i128::from(cut) } else { value };
    Some((i64::try_from(value).ok()?, cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(nanos("1700000000123456.789"), Some((1_700_000_000_123_456_789, false)));
        assert_eq!(nanos("1.5"), Some((1500, false)));
        assert_eq!(nanos("\"12\""), Some((12_000, false)));
        assert_eq!(nanos("-0.001"), Some((-1, false)));
        assert_eq!(nanos("0.0019"), Some((1, true)));
        assert_eq!(nanos("-0.0019"), Some((-2, true)));
        assert_eq!(nanos("1e3"), Some((1_000_000, false)));
        assert_eq!(nanos("1.669329643132550e15"), Some((1_669_329_643_132_550_000, false)));
        assert_eq!(nanos("1669329643132550.123E+0"), Some((1_669_329_643_132_550_123, false)));
        assert_eq!(nanos("15e-4"), Some((1, true)));
        assert_eq!(nanos("-1e-9"), Some((-1, true)));
        assert_eq!(nanos("0e999"), Some((0, false)));
        assert_eq!(nanos(&format!("1{}e-40", "0".repeat(40))), Some((1000, false)));
        for bad in [
            "",
            "-",
            "abc",
            "1.x",
            "99999999999999999999",
            "1e300",
            ".",
            "1e",
            "NaN",
            "1e30",
            "null",
        ] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let Ok(Dyn::Dict(members)) = serde_json::from_str(r#"{"a":1,"b":2,"a":3}"#) else {
            panic!()
        };
        assert_eq!(members, [("a".into(), Dyn::Unsigned(3)), ("b".into(), Dyn::Unsigned(2))]);
    }
}
