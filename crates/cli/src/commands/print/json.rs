// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An event as a JSON object.
//!
//! ```json
//! {"time_ns":1795224442047685452,"event":"threads:MUTEX_LOCK","cpu":1,"pid":4711,"tid":4712,
//!  "fields":{"mutex":140728898}}
//! ```
//!
//! Integers are written with all their digits, also beyond 2⁵³. An enumeration
//! is an object of value and label. What is not a number of JSON (infinity) is
//! `null`.

use lateralis_model::text as write;
use lateralis_model::{Event, Field, FieldKind, Fields, IntegerClass, Value};

use super::message::Messages;
use super::text::label;
use crate::recording::{Recording, is_length};

/// Writes events as JSON lines.
pub struct Printer<'r> {
    messages: Messages<'r>,
}

impl<'r> Printer<'r> {
    /// A printer for the events of a recording.
    pub fn new(recording: &'r Recording) -> Self {
        Self { messages: Messages::new(recording) }
    }

    /// Appends one event and a line feed.
    pub fn line(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        out.push(b'{');
        if event.ticks.is_some() {
            out.extend_from_slice(b"\"time_ns\":");
            write::decimal_signed(out, event.time.0);
            out.push(b',');
        }
        out.extend_from_slice(b"\"event\":");
        string(out, &event.class.name);
        let mut number = |name: &str, value: u64| {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            write::decimal(out, value);
        };
        number("stream", u64::from(event.stream.0));
        if let Some(cpu) = event.packet.cpu {
            number("cpu", u64::from(cpu.0));
        }
        if let Some(writer) = event.writer {
            number("pid", u64::from(writer.pid));
            number("tid", u64::from(writer.tid));
        }
        if let Some(message) = self.messages.get(event) {
            let mut text = Vec::new();
            message.write(&mut text, event);
            out.extend_from_slice(b",\"message\":");
            string(out, &String::from_utf8_lossy(&text));
        }
        let scopes = [
            ("common_context", event.common_context()),
            ("context", event.context()),
            ("fields", event.payload()),
        ];
        for (name, fields) in scopes {
            if let Some(fields) = fields {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":");
                object(out, fields);
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

fn object(out: &mut Vec<u8>, fields: Fields<'_>) {
    out.push(b'{');
    let mut first = true;
    for (member, field) in fields {
        if member.class.structural || is_length(&member.name) {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        string(out, &member.name);
        out.push(b':');
        value(out, field);
    }
    out.push(b'}');
}

fn value(out: &mut Vec<u8>, field: Field<'_>) {
    match (field.value(), &field.class().kind) {
        (Value::Bool(yes), _) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
        (Value::Unsigned(number), FieldKind::Unsigned(class)) => integer(out, number, false, class),
        (Value::Signed(number), FieldKind::Signed(class)) => {
            integer(out, number as u64, true, class);
        }
        (Value::Bits(bits), _) => write::decimal(out, bits),
        (Value::Real(number), _) if number.is_finite() => {
            // The shortest text that reads back as the same number.
            out.extend_from_slice(format!("{number:?}").as_bytes());
        }
        (Value::Text(text), _) => string(out, &text.to_str()),
        (Value::Bytes(bytes), _) => {
            out.push(b'[');
            for (index, &byte) in bytes.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write::decimal(out, u64::from(byte));
            }
            out.push(b']');
        }
        (Value::Struct(fields), _) => object(out, fields),
        (Value::Array(elements), _) => {
            out.push(b'[');
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                value(out, element);
            }
            out.push(b']');
        }
        (Value::Variant(option, field), _) => {
            out.push(b'{');
            string(out, &option.name);
            out.push(b':');
            value(out, field);
            out.push(b'}');
        }
        (Value::Optional(Some(field)), _) => value(out, field),
        _ => out.extend_from_slice(b"null"),
    }
}

fn integer(out: &mut Vec<u8>, value: u64, signed: bool, class: &IntegerClass) {
    let number = |out: &mut Vec<u8>| match signed {
        true => write::decimal_signed(out, value as i64),
        false => write::decimal(out, value),
    };
    if class.labels.is_empty() {
        return number(out);
    }
    out.extend_from_slice(b"{\"value\":");
    number(out);
    if let Some(label) = label(value, signed, &class.labels) {
        out.extend_from_slice(b",\"label\":");
        string(out, label);
    }
    out.push(b'}');
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_back_by_a_json_parser() {
        for text in ["", "plain", "q\"b\\n\n\t\x01\x7fü€", "\u{1f41f}"] {
            let mut out = Vec::new();
            string(&mut out, text);
            let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(value.as_str(), Some(text));
        }
    }
}
