// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An event as a line for people.
//!
//! ```text
//! 00:47:22.047685452 cpu  1  21854/21855  threads:MUTEX_LOCK mutex=0x7ffd0010
//! 00:47:22.047694226 cpu  1  21854/21855  app:LOG "took 12 of 20 slots"
//! ```

use lateralis_model::text as write;
use lateralis_model::{Base, Event, Field, FieldKind, Fields, IntegerClass, Label, Text, Value};

use super::message::Messages;
use crate::moment::clock_time;
use crate::recording::{Recording, is_length};

/// Writes events as lines.
pub struct Printer<'r> {
    messages: Messages<'r>,
    has_writers: bool,
}

impl<'r> Printer<'r> {
    /// A printer for the events of a recording.
    pub fn new(recording: &'r Recording) -> Self {
        let has_writers = recording.has_writers();
        Self { messages: Messages::new(recording), has_writers }
    }

    /// Appends one event and a line feed.
    pub fn line(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        if event.ticks.is_some() {
            clock_time(out, event.time);
            out.push(b' ');
        }
        if let Some(cpu) = event.packet.cpu {
            out.extend_from_slice(if cpu.0 < 10 { b"cpu  " } else { b"cpu " });
            write::decimal(out, u64::from(cpu.0));
            out.push(b' ');
        }
        if self.has_writers || event.writer.is_some() {
            writer(out, event);
        }
        let name = event.class.name.as_str();
        out.extend_from_slice(if name.is_empty() { b"(no name)" } else { name.as_bytes() });
        if let Some(message) = self.messages.get(event) {
            out.extend_from_slice(b" \"");
            let start = out.len();
            message.write(out, event);
            escape_from(out, start);
            out.push(b'"');
        } else if let Some(fields) = event.payload() {
            members(out, fields, b" ", b" ");
        }
        for fields in [event.context(), event.common_context()].into_iter().flatten() {
            out.extend_from_slice(b" [");
            members(out, fields, b"", b" ");
            out.push(b']');
        }
        out.push(b'\n');
    }
}

/// Process and thread in columns as wide as usual ids.
fn writer(out: &mut Vec<u8>, event: &Event<'_>) {
    let start = out.len();
    match event.writer {
        Some(writer) => {
            write::decimal(out, u64::from(writer.pid));
            out.push(b'/');
            write::decimal(out, u64::from(writer.tid));
        }
        None => out.push(b'?'),
    }
    const WIDTH: usize = 13;
    let width = out.len() - start;
    if width < WIDTH {
        out.resize(start + WIDTH, b' ');
        out[start..].rotate_right(WIDTH - width);
    }
    out.extend_from_slice(b"  ");
}

fn members(out: &mut Vec<u8>, fields: Fields<'_>, before_first: &[u8], between: &[u8]) {
    let mut separator = before_first;
    for (member, field) in fields {
        if member.class.structural || is_length(&member.name) {
            continue;
        }
        out.extend_from_slice(separator);
        separator = between;
        out.extend_from_slice(member.name.as_bytes());
        out.push(b'=');
        value(out, field);
    }
}

/// Appends a value as the text format shows it.
pub fn value(out: &mut Vec<u8>, field: Field<'_>) {
    match (field.value(), &field.class().kind) {
        (Value::Bool(yes), _) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
        (Value::Unsigned(number), FieldKind::Unsigned(class)) => integer(out, number, false, class),
        (Value::Signed(number), FieldKind::Signed(class)) => {
            integer(out, number as u64, true, class);
        }
        (Value::Bits(bits), _) => hexadecimal(out, bits),
        (Value::Real(number), _) => write::real(out, number),
        (Value::Text(text), _) => quoted(out, text),
        (Value::Bytes(bytes), _) => hex_bytes(out, bytes),
        (Value::Struct(fields), _) => {
            out.push(b'{');
            members(out, fields, b"", b", ");
            out.push(b'}');
        }
        (Value::Array(elements), _) => {
            out.push(b'[');
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                value(out, element);
            }
            out.push(b']');
        }
        (Value::Variant(option, field), _) => {
            if !option.name.is_empty() {
                out.extend_from_slice(option.name.as_bytes());
                out.push(b':');
            }
            value(out, field);
        }
        (Value::Optional(Some(field)), _) => value(out, field),
        // An optional field that is not there; class and value always agree.
        _ => out.extend_from_slice(b"none"),
    }
}

fn integer(out: &mut Vec<u8>, value: u64, signed: bool, class: &IntegerClass) {
    if let Some(label) = label(value, signed, &class.labels) {
        out.extend_from_slice(label.as_bytes());
        return;
    }
    match class.base {
        Base::Decimal if signed => write::decimal_signed(out, value as i64),
        Base::Decimal => write::decimal(out, value),
        Base::Hexadecimal if signed && class.bits < 64 => {
            hexadecimal(out, value & ((1 << class.bits) - 1));
        }
        Base::Hexadecimal => hexadecimal(out, value),
        Base::Octal => write::octal(out, value),
        Base::Binary => write::binary(out, value, class.bits),
    }
}

/// The first label of a value.
pub fn label(value: u64, signed: bool, labels: &[Label]) -> Option<&str> {
    let wide = if signed { i128::from(value as i64) } else { i128::from(value) };
    let found = labels.iter().find(|label| label.ranges.iter().any(|r| r.contains(wide)));
    found.map(|label| label.name.as_str())
}

fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    let start = out.len();
    write::hexadecimal(out, value);
    out[start..].make_ascii_lowercase();
}

fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

fn quoted(out: &mut Vec<u8>, text: Text<'_>) {
    out.push(b'"');
    let start = out.len();
    out.extend_from_slice(text.to_str().as_bytes());
    escape_from(out, start);
    out.push(b'"');
}

/// Escapes quotes, backslashes and control characters from `start` on, so that
/// an event is one line whatever its text holds.
fn escape_from(out: &mut Vec<u8>, start: usize) {
    let plain = |byte: u8| byte >= 0x20 && byte != 0x7f && byte != b'"' && byte != b'\\';
    if out[start..].iter().all(|&byte| plain(byte)) {
        return;
    }
    let raw = out.split_off(start);
    for byte in raw {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte if plain(byte) => out.push(byte),
            byte => {
                out.extend_from_slice(b"\\x");
                hex_bytes(out, &[byte]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stays_on_one_line() {
        let mut out = b"kept\"".to_vec();
        let start = out.len();
        out.extend_from_slice("a\"b\\c\n\x1b[31mü".as_bytes());
        escape_from(&mut out, start);
        assert_eq!(String::from_utf8(out).unwrap(), "kept\"a\\\"b\\\\c\\n\\x1b[31mü");
    }
}
