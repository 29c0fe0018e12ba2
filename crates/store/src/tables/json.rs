// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values as JSON text (RFC 8259): enumerations by name, bytes in hexadecimal.

use std::fmt::Write as _;

use lateralis_model::{Event, Field, FieldKind, Fields, IntegerClass, Value};

use crate::is_length;

/// Adds a quoted text.
pub fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Adds a number; JSON has no infinities, so they become text.
pub fn real(out: &mut String, value: f64) {
    // Writing to a string cannot fail.
    let _ = if value.is_finite() {
        write!(out, "{value:?}")
    } else if value.is_nan() {
        write!(out, "\"NaN\"")
    } else {
        write!(out, "\"{}Infinity\"", if value < 0.0 { "-" } else { "" })
    };
}

/// Label of a value: that of the first range that contains it.
pub fn label(class: &IntegerClass, value: i128) -> Option<&str> {
    let named =
        |label: &&lateralis_model::Label| label.ranges.iter().any(|range| range.contains(value));
    class.labels.iter().find(named).map(|label| label.name.as_str())
}

/// Adds a value.
pub fn value(out: &mut String, field: Field<'_>) {
    let number = match field.value() {
        Value::Unsigned(value) => Some(i128::from(value)),
        Value::Signed(value) => Some(i128::from(value)),
        _ => None,
    };
    if let (Some(number), FieldKind::Unsigned(class) | FieldKind::Signed(class)) =
        (number, &field.class().kind)
        && let Some(name) = label(class, number)
    {
        return string(out, name);
    }
    let _ = match field.value() {
        Value::Bool(value) => write!(out, "{value}"),
        Value::Unsigned(value) | Value::Bits(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::Real(value) => return real(out, value),
        Value::Text(text) => return string(out, &text.to_str()),
        Value::Bytes(bytes) => {
            out.push('"');
            bytes.iter().for_each(|byte| {
                let _ = write!(out, "{byte:02x}");
            });
            out.push('"');
            return;
        }
        Value::Struct(fields) => {
            out.push('{');
            members(out, fields, &mut true);
            out.push('}');
            return;
        }
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.push(',');
                }
                value(out, element);
            }
            out.push(']');
            return;
        }
        Value::Variant(option, chosen) if !option.name.is_empty() => {
            out.push('{');
            string(out, &option.name);
            out.push(':');
            value(out, chosen);
            out.push('}');
            return;
        }
        Value::Variant(_, chosen) => return value(out, chosen),
        Value::Optional(Some(inner)) => return value(out, inner),
        Value::Optional(None) => write!(out, "null"),
    };
}

/// Adds `"name":value` for each field that is not bookkeeping of its format, separated by commas.
pub fn members(out: &mut String, fields: Fields<'_>, first: &mut bool) {
    for (member, field) in fields {
        if member.class.structural || is_length(&member.name) {
            continue;
        }
        if !std::mem::take(first) {
            out.push(',');
        }
        string(out, &member.name);
        out.push(':');
        value(out, field);
    }
}

/// Adds an object with the fields of an event; those of its contexts are in its member `context`.
pub fn event(out: &mut String, event: &Event<'_>) {
    out.push('{');
    let mut first = true;
    if let Some(fields) = event.payload() {
        members(out, fields, &mut first);
    }
    let contexts = [event.common_context(), event.context()];
    if contexts.iter().any(Option::is_some) {
        if !first {
            out.push(',');
        }
        out.push_str("\"context\":{");
        let mut first = true;
        for fields in contexts.into_iter().flatten() {
            members(out, fields, &mut first);
        }
        out.push('}');
    }
    out.push('}');
}
