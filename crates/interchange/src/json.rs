// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values as JSON text ([RFC 8259]).

use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;

use lateralis_model::{Event, Field, FieldClass, FieldKind, Fields, IntegerClass, Value, text};

use crate::meaning::{Losing, Lost};

/// Adds a number.
pub fn number(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
}

/// Adds a floating point number in the shortest form that reads back the same.
/// JSON has no infinities; they become text.
pub fn real(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        let _ = write!(out, "{value:?}");
    } else {
        string(
            out,
            if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            },
        );
    }
}

/// Adds a text in quotes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

/// Adds bytes as a text of hexadecimal digits.
pub fn hex_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push(b'"');
}

/// The name of a value, if there is exactly one.
pub fn label(class: &IntegerClass, value: i128) -> Option<&str> {
    let mut names =
        class.labels.iter().filter(|label| label.ranges.iter().any(|range| range.contains(value)));
    let first = names.next()?;
    names.next().is_none().then_some(first.name.as_str())
}

/// How enumerations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enumerations {
    /// As their names, for people.
    Names,
    /// As numbers, with the name in a member `FIELD.label` beside it, and the option of a
    /// variant in `FIELD.choice`.
    Numbers,
}

/// Writes the fields of events of one class.
#[derive(Debug, Clone, Default)]
pub struct FieldWriter {
    /// Dotted names of fields whose text is JSON.
    json: HashSet<String>,
    path: String,
    /// What values lost.
    pub lost: Lost,
}

impl FieldWriter {
    /// For a class; see [`crate::JSON_FIELD`].
    pub fn new(class: &lateralis_model::EventClass) -> Self {
        let of_json = class.attributes.iter().filter(|a| a.name == crate::JSON_FIELD);
        Self { json: of_json.map(|a| a.value.clone()).collect(), ..Self::default() }
    }

    /// Adds `"name":value` for each field that is there, with commas before all but the
    /// first of the object; `first` says whether the next is. Fields that are
    /// bookkeeping of their format are left out.
    pub fn members(
        &mut self,
        out: &mut Vec<u8>,
        fields: Fields<'_>,
        first: &mut bool,
        enumerations: Enumerations,
    ) {
        for (member, field) in fields {
            if !member.class.structural {
                self.member(out, &member.name, field, first, enumerations);
            }
        }
    }

    /// Adds one field, if it is there.
    pub fn member(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        field: Field<'_>,
        first: &mut bool,
        enumerations: Enumerations,
    ) {
        if matches!(field.value(), Value::Optional(None)) {
            return;
        }
        comma(out, first);
        string(out, name);
        out.push(b':');
        let (field, choice) = match field.value() {
            Value::Variant(option, chosen)
                if enumerations == Enumerations::Numbers && !option.name.is_empty() =>
            {
                (chosen, Some(option.name.as_str()))
            }
            _ => (field, None),
        };
        let before = self.path.len();
        if !self.json.is_empty() {
            if before > 0 {
                self.path.push('.');
            }
            // A field that was renamed is listed under its new name.
            self.path.push_str(name);
        }
        self.value(out, field, enumerations);
        self.path.truncate(before);
        if enumerations == Enumerations::Numbers && has_labels(field) {
            comma(out, first);
            string(out, &format!("{name}.label"));
            out.push(b':');
            labels(out, field);
        }
        if let Some(option) = choice {
            comma(out, first);
            string(out, &format!("{name}.choice"));
            out.push(b':');
            string(out, option);
        }
    }

    /// Adds a value.
    pub fn value(&mut self, out: &mut Vec<u8>, field: Field<'_>, enumerations: Enumerations) {
        if enumerations == Enumerations::Names
            && let Some(text) = field_label(field)
        {
            self.lost.count(Losing::Number);
            return string(out, text);
        }
        match field.value() {
            Value::Bool(value) => number(out, value),
            Value::Unsigned(value) | Value::Bits(value) => text::decimal(out, value),
            Value::Signed(value) => text::decimal_signed(out, value),
            Value::Real(value) => {
                if !value.is_finite() {
                    self.lost.count(Losing::NotFinite);
                }
                real(out, value);
            }
            Value::Text(text) => {
                let text = self.lost.text(text);
                let is_json = self.json.contains(&self.path)
                    && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                if is_json { out.extend_from_slice(text.as_bytes()) } else { string(out, &text) }
            }
            Value::Bytes(bytes) => {
                self.lost.count(Losing::Blob);
                hex_string(out, bytes);
            }
            Value::Struct(fields) => {
                out.push(b'{');
                self.members(out, fields, &mut true, enumerations);
                out.push(b'}');
            }
            Value::Array(elements) => {
                out.push(b'[');
                let mut first = true;
                for element in elements {
                    comma(out, &mut first);
                    self.value(out, element, enumerations);
                }
                out.push(b']');
            }
            Value::Variant(_, field) => {
                self.lost.count(Losing::Choice);
                self.value(out, field, enumerations);
            }
            Value::Optional(Some(field)) => self.value(out, field, enumerations),
            Value::Optional(None) => out.extend_from_slice(b"null"),
        }
    }
}

/// Adds a comma unless the next member is the first.
pub fn comma(out: &mut Vec<u8>, first: &mut bool) {
    if !*first {
        out.push(b',');
    }
    *first = false;
}

/// The name of a field's value, for enumerations.
pub fn field_label<'a>(field: Field<'a>) -> Option<&'a str> {
    match (&field.class().kind, field.value()) {
        (FieldKind::Unsigned(class), Value::Unsigned(value)) if !class.labels.is_empty() => {
            label(class, i128::from(value))
        }
        (FieldKind::Signed(class), Value::Signed(value)) if !class.labels.is_empty() => {
            label(class, i128::from(value))
        }
        _ => None,
    }
}

/// Whether a value, or one in a list, has a name.
fn has_labels(field: Field<'_>) -> bool {
    match field.value() {
        Value::Array(mut elements) => is_labelled(field.class()) && elements.any(has_labels),
        Value::Optional(Some(inner)) | Value::Variant(_, inner) => has_labels(inner),
        _ => field_label(field).is_some(),
    }
}

/// Whether a list has elements that may have names: most need no second look.
fn is_labelled(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Array { element, .. } => is_labelled(element),
        FieldKind::Unsigned(class) | FieldKind::Signed(class) => !class.labels.is_empty(),
        FieldKind::Optional(inner) => is_labelled(inner),
        FieldKind::Variant(options) => options.iter().any(|option| is_labelled(&option.class)),
        _ => false,
    }
}

/// Adds the name of a value, those of a list as a list.
fn labels(out: &mut Vec<u8>, field: Field<'_>) {
    match field.value() {
        Value::Array(elements) => {
            out.push(b'[');
            let mut first = true;
            for element in elements {
                comma(out, &mut first);
                labels(out, element);
            }
            out.push(b']');
        }
        Value::Optional(Some(inner)) | Value::Variant(_, inner) => labels(out, inner),
        _ => match field_label(field) {
            Some(text) => string(out, text),
            None => out.extend_from_slice(b"null"),
        },
    }
}

/// Adds microseconds with three decimals, exactly.
pub fn micros(out: &mut Vec<u8>, nanos: i64) {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let _ = write!(out, "{sign}{}.{:03}", magnitude / 1000, magnitude % 1000);
}

/// The field of an event with this name: its own, then of its context, then of
/// the common one.
pub fn find<'a>(event: &Event<'a>, name: &str) -> Option<Field<'a>> {
    let own = event.payload().and_then(|fields| fields.get(name));
    let own = own.or_else(|| event.context().and_then(|fields| fields.get(name)));
    own.or_else(|| event.common_context().and_then(|fields| fields.get(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(text(|out| micros(out, 1_500)), "1.500");
        assert_eq!(text(|out| micros(out, -1)), "-0.001");
        assert_eq!(text(|out| micros(out, i64::MIN)), "-9223372036854775.808");
    }

    #[test]
    fn texts_read_back_the_same() {
        for sample in ["", "a\"b\\c", "\u{0}\u{1f}\n\r\t", "ü€😀"] {
            let written = text(|out| string(out, sample));
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), sample);
        }
    }

    #[test]
    fn numbers_read_back_the_same() {
        for sample in [0.0, -0.0, 1e300, 5e-324, 0.1] {
            let written = text(|out| real(out, sample));
            assert_eq!(written.parse::<f64>().unwrap().to_bits(), sample.to_bits());
        }
        assert_eq!(text(|out| real(out, f64::NEG_INFINITY)), "\"-Infinity\"");
    }
}
