// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats an event as a line for people.
//!
//! ```text
//! 00:47:22.047685452 cpu  1  21854/21855  threads:MUTEX_LOCK mutex=0x7ffd0010
//! 00:47:22.047694226 cpu  1  21854/21855  app:LOG "took 12 of 20 slots"
//! ```

use lateralis_model::role::PHASE;
use lateralis_model::text as write;
use lateralis_model::{Base, Event, Field, FieldKind, Fields, IntegerClass, Label, Text, Value};

use super::message::Messages;
use super::time::{TimeForm, Times};
use lateralis_store::{Recording, is_length};

/// Writes events as lines.
pub struct Printer<'r> {
    messages: Messages<'r>,
    has_writers: bool,
    times: Times,
}

impl<'r> Printer<'r> {
    /// Returns a printer for the events of a recording.
    pub fn new(recording: &'r Recording, time: TimeForm) -> Self {
        let has_writers = recording.has_writers();
        let times = Times::new(recording, time);
        Self { messages: Messages::new(recording), has_writers, times }
    }

    /// Appends one event and a line feed.
    pub fn line(&mut self, out: &mut Vec<u8>, event: &Event<'_>) {
        if event.ticks.is_some() {
            self.times.push(out, event.time);
            out.push(b' ');
        }
        let lanes = Lanes::of(event);
        if let Some(cpu) = lanes.cpu {
            out.extend_from_slice(if cpu < 10 { b"cpu  " } else { b"cpu " });
            write::decimal(out, cpu);
            out.push(b' ');
        }
        if self.has_writers || lanes.thread.is_some() {
            writer(out, lanes.thread);
        }
        let name = event.class.name.as_str();
        out.extend_from_slice(if name.is_empty() { b"(no name)" } else { name.as_bytes() });
        if let Some(phase) = event.class.attribute(PHASE) {
            // The begin and end of a span have the same name.
            out.extend_from_slice(b" (");
            out.extend_from_slice(phase.as_bytes());
            out.push(b')');
        }
        if let Some(message) = self.messages.get(event) {
            out.extend_from_slice(b" \"");
            let start = out.len();
            message.write(out, event);
            escape_from(out, start);
            out.push(b'"');
        } else if let Some(fields) = event.payload() {
            members(out, fields, b" ", b" ", &|_, _| true);
        }
        let keep_all = |_: &str, _: Field<'_>| true;
        let keep_rest = |name: &str, field: Field<'_>| !lanes.show(name, field);
        let kept: [(_, &Keep); 2] =
            [(event.context(), &keep_all), (event.common_context(), &keep_rest)];
        for (fields, keep) in kept {
            let Some(fields) = fields else { continue };
            let start = out.len();
            out.extend_from_slice(b" [");
            members(out, fields, b"", b" ", keep);
            if out.len() == start + 2 {
                out.truncate(start);
            } else {
                out.push(b']');
            }
        }
        out.push(b'\n');
    }
}

/// Selects the fields to show.
type Keep<'k> = dyn Fn(&str, Field<'_>) -> bool + 'k;

/// CPU, process and thread of an event, printed in their own columns. They come from the format if it has
/// them, else from the fields that many tracers add to each event.
struct Lanes {
    cpu: Option<u64>,
    /// Process and thread.
    thread: Option<(u64, u64)>,
}

impl Lanes {
    fn of(event: &Event<'_>) -> Self {
        let common = event.common_context();
        let number = |names: [&str; 2]| {
            let common = common.as_ref()?;
            names.into_iter().find_map(|name| natural(common.get(name)?))
        };
        let writer = event.writer.map(|writer| (u64::from(writer.pid), u64::from(writer.tid)));
        let host = event.stream_class.host;
        let thread = |names| {
            let number = number(names)?;
            Some(u32::try_from(number).map_or(number, |number| host.thread(number).into()))
        };
        let cpu = || u32::try_from(number(["cpu_id"; 2])?).ok().map(|cpu| host.cpu(cpu).into());
        Self {
            cpu: event.packet.cpu.map(|cpu| u64::from(cpu.0)).or_else(cpu),
            thread: writer.or_else(|| Some((thread(["pid", "vpid"])?, thread(["tid", "vtid"])?))),
        }
    }

    /// Whether the columns already show the value of this field of the common context.
    fn show(&self, name: &str, field: Field<'_>) -> bool {
        let shown = match name {
            "cpu_id" => self.cpu,
            "pid" | "vpid" => self.thread.map(|(pid, _)| pid),
            "tid" | "vtid" => self.thread.map(|(_, tid)| tid),
            _ => None,
        };
        shown.is_some() && shown == natural(field)
    }
}

/// An integer ≥ 0.
fn natural(field: Field<'_>) -> Option<u64> {
    match field.value() {
        Value::Unsigned(value) => Some(value),
        Value::Signed(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

/// Appends process and thread in columns of the usual width of ids.
fn writer(out: &mut Vec<u8>, thread: Option<(u64, u64)>) {
    let start = out.len();
    match thread {
        Some((pid, tid)) => {
            write::decimal(out, pid);
            out.push(b'/');
            write::decimal(out, tid);
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

fn members(
    out: &mut Vec<u8>,
    fields: Fields<'_>,
    before_first: &[u8],
    between: &[u8],
    keep: &Keep<'_>,
) {
    let mut separator = before_first;
    for (member, field) in fields {
        if member.class.structural || is_length(&member.name) || !keep(&member.name, field) {
            continue;
        }
        out.extend_from_slice(separator);
        separator = between;
        out.extend_from_slice(member.name.as_bytes());
        out.push(b'=');
        value(out, field);
    }
}

/// Largest number of bytes of a blob that are shown as text; network packets are shorter.
const BYTES_SHOWN: usize = 64 << 10;

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
        (Value::Bytes(bytes), _) if bytes.len() > BYTES_SHOWN => {
            hex_bytes(out, &bytes[..BYTES_SHOWN]);
            out.extend_from_slice(format!("... ({} bytes)", bytes.len()).as_bytes());
        }
        (Value::Bytes(bytes), _) => hex_bytes(out, bytes),
        (Value::Struct(fields), _) => {
            out.push(b'{');
            members(out, fields, b"", b", ", &|_, _| true);
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
        // An absent optional field; class and value always agree.
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

/// Returns the first label of a value.
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

/// Escapes quotes, backslashes and control characters from `start` on, so that any event fits on one line.
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
    use lateralis_model::{FieldClass, MemoryTrace, Source, StreamClass};
    use lateralis_units::CpuId;

    #[test]
    fn what_has_a_column_of_its_own_is_not_shown_again() {
        let mut builder = MemoryTrace::builder("test", 1 << 20);
        let names = ["cpu_id", "pid", "tid", "vtid", "prio"];
        let common = FieldClass::structure(names.map(|name| (name, FieldClass::u64())));
        let class = StreamClass { common_context: Some(common), ..StreamClass::default() };
        let class = builder.stream_class(class);
        let event = lateralis_model::EventClass { name: "e".into(), ..Default::default() };
        let event = builder.event_class(class, event);
        let stream = builder.stream(class, "s", Some(CpuId(3)));
        let mut add = |values: [u64; 5]| {
            let pending = builder.event(stream, event, 0, None);
            values.into_iter().fold(pending, |pending, value| pending.u64(value)).end().unwrap();
        };
        add([3, 7, 8, 8, 20]);
        // In a container the ids differ, and a field may contradict the format.
        add([4, 7, 8, 2, 20]);
        let trace = builder.finish();
        let mut events = trace.events();
        for expected in ["prio=20", "cpu_id=4 vtid=2 prio=20"] {
            let event = events.next_event().unwrap();
            let lanes = Lanes::of(&event);
            assert_eq!((lanes.cpu, lanes.thread), (Some(3), Some((7, 8))));
            let mut out = Vec::new();
            let keep = |name: &str, field: Field<'_>| !lanes.show(name, field);
            members(&mut out, event.common_context().unwrap(), b"", b" ", &keep);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn an_event_stays_on_one_line() {
        let mut out = b"kept\"".to_vec();
        let start = out.len();
        out.extend_from_slice("a\"b\\c\n\x1b[31mü".as_bytes());
        escape_from(&mut out, start);
        assert_eq!(String::from_utf8(out).unwrap(), "kept\"a\\\"b\\\\c\\n\\x1b[31mü");
    }
}
