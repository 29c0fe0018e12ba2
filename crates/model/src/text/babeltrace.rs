// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as babeltrace2 prints them with
//! `--clock-seconds --clock-gmt --no-delta --names=all`, byte for byte, so that
//! the two can be compared by `diff`.
//!
//! Reference: output of babeltrace 2.1.2. Two habits of it are kept on purpose:
//! clocks that do not tick in nanoseconds are converted in floating point, and
//! no comma stands before the name in traces without clock.

use std::cell::RefCell;

use lateralis_units::{Nanos, Ticks};

use super::number;
use crate::value::slots_of;
use crate::{
    Base, Clock, Encoding, EnvValue, Event, Field, FieldKind, Fields, IntegerClass, Label, Member,
    Slot, Text, Trace, Value,
};

/// Writes the events of one trace.
pub struct Babeltrace<'t> {
    trace: &'t Trace,
    /// What stands between time and name.
    origin: Vec<u8>,
    /// The last packet context: many events of a packet follow each other.
    packet: RefCell<PacketText>,
}

/// A packet context as text, and the values it was made of.
#[derive(Default)]
struct PacketText {
    stream_class: u32,
    slots: Vec<Slot>,
    /// Address and length of the packet's bytes, which texts point into.
    bytes: (usize, usize),
    text: Vec<u8>,
}

impl<'t> Babeltrace<'t> {
    /// A writer for events of `trace`.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, origin: origin(trace), packet: RefCell::default() }
    }

    /// Appends one event and a line feed.
    ///
    /// Cost: no allocation but the growth of `out`, and for text that is not
    /// UTF-8.
    pub fn line(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let clock = event.stream_class.clock.and_then(|index| self.trace.clocks.get(index));
        if let (Some(clock), Some(ticks)) = (clock, event.ticks) {
            out.extend_from_slice(b"timestamp = ");
            time(out, clock, ticks);
            // Every part of the origin begins with the comma before it.
            out.extend_from_slice(&self.origin);
            out.extend_from_slice(b", name = ");
        } else {
            let mut parts = self.origin.as_slice();
            while let Some(rest) = parts.strip_prefix(b", ") {
                let end = rest.windows(2).position(|pair| pair == b", ").unwrap_or(rest.len());
                out.extend_from_slice(&rest[..end]);
                parts = &rest[end..];
            }
            out.extend_from_slice(b"name = ");
        }
        let name = event.class.name.as_str();
        out.extend_from_slice(if name.is_empty() { b"<unknown>" } else { name.as_bytes() });
        out.extend_from_slice(b", ");
        let mut packet = self.packet.borrow_mut();
        packet.show(event);
        out.extend_from_slice(&packet.text);
        let mut first = packet.text.is_empty();
        drop(packet);
        let mut begin = |out: &mut Vec<u8>, name: &str| {
            if !first {
                out.extend_from_slice(b", ");
            }
            first = false;
            out.extend_from_slice(name.as_bytes());
        };
        // The scopes lie one behind the other, so that one walk does for all.
        let scopes = [
            ("stream.event.context = ", &event.stream_class.common_context),
            ("event.context = ", &event.class.context),
            ("event.fields = ", &event.class.payload),
        ];
        let mut slots = event.slots;
        for (name, class) in scopes {
            if let Some(class) = class {
                begin(out, name);
                let used = members(out, class.members(), slots, event.bytes);
                slots = slots.get(used..).unwrap_or(&[]);
            }
        }
        out.push(b'\n');
    }
}

impl PacketText {
    /// Makes the text that of the event's packet, unless it is already.
    fn show(&mut self, event: &Event<'_>) {
        let bytes = (event.bytes.as_ptr().addr(), event.bytes.len());
        let same = self.stream_class == event.stream_class_index
            && self.bytes == bytes
            && self.slots == event.packet_slots;
        if same {
            return;
        }
        self.stream_class = event.stream_class_index;
        self.bytes = bytes;
        self.slots.clear();
        self.slots.extend_from_slice(event.packet_slots);
        self.text.clear();
        let Some(fields) = event.packet_context() else {
            return;
        };
        // One without a field to show is not shown at all.
        if fields.into_iter().any(|(member, _)| !member.class.structural) {
            self.text.extend_from_slice(b"stream.packet.context = ");
            structure(&mut self.text, fields);
        }
    }
}

fn origin(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    for name in ["hostname", "procname"] {
        if let Some(value) = trace.env(name).and_then(EnvValue::as_text) {
            out.extend_from_slice(format!(", trace:{name} = {value}").as_bytes());
        }
    }
    if let Some(EnvValue::Integer(vpid)) = trace.env("vpid") {
        out.extend_from_slice(format!(", trace:vpid = ({vpid})").as_bytes());
    }
    out
}

fn time(out: &mut Vec<u8>, clock: &Clock, ticks: Ticks) {
    let Some(nanos) = nanos(clock, ticks) else {
        out.extend_from_slice(b"Error");
        return;
    };
    if nanos.0 < 0 {
        out.push(b'-');
    }
    let magnitude = nanos.0.unsigned_abs();
    number::decimal(out, magnitude / 1_000_000_000);
    out.push(b'.');
    number::padded(out, magnitude % 1_000_000_000, 9);
}

/// Nanoseconds as that program computes them: exact at 1 GHz, else in floating
/// point.
fn nanos(clock: &Clock, ticks: Ticks) -> Option<Nanos> {
    let frequency = clock.frequency();
    if frequency == 1_000_000_000 {
        let nanos = clock.nanos(ticks);
        return (nanos.0 != i64::MAX && nanos.0 != i64::MIN).then_some(nanos);
    }
    let scaled = |ticks: u64| ((1e9 * ticks as f64) / frequency as f64) as u64;
    let whole = i128::from(clock.offset_ticks());
    let seconds = i128::from(clock.offset_seconds()) + whole.div_euclid(i128::from(frequency));
    let rest = whole.rem_euclid(i128::from(frequency)) as u64;
    let base = seconds * 1_000_000_000 + i128::from(scaled(rest));
    i64::try_from(base + i128::from(scaled(ticks.0))).ok().map(Nanos)
}

/// Writes a structure whose values begin `slots`. Returns how many slots it has.
fn members(out: &mut Vec<u8>, members: &[Member], slots: &[Slot], bytes: &[u8]) -> usize {
    out.push(b'{');
    let mut separator: &[u8] = b" ";
    let mut used = 0;
    for member in members {
        let rest = slots.get(used..).unwrap_or(&[]);
        if member.class.structural {
            used += slots_of(&member.class, rest);
            continue;
        }
        out.extend_from_slice(separator);
        separator = b", ";
        out.extend_from_slice(member.name.as_bytes());
        out.extend_from_slice(b" = ");
        used += match &member.class.kind {
            FieldKind::Struct(inner) => self::members(out, inner, rest, bytes),
            _ => {
                value(out, Field::new(&member.class, rest, bytes));
                slots_of(&member.class, rest)
            }
        };
    }
    out.extend_from_slice(b" }");
    used
}

fn structure(out: &mut Vec<u8>, fields: Fields<'_>) {
    out.push(b'{');
    let mut separator: &[u8] = b" ";
    for (member, field) in fields {
        if member.class.structural {
            continue;
        }
        out.extend_from_slice(separator);
        separator = b", ";
        out.extend_from_slice(member.name.as_bytes());
        out.extend_from_slice(b" = ");
        value(out, field);
    }
    out.extend_from_slice(b" }");
}

fn value(out: &mut Vec<u8>, field: Field<'_>) {
    match (field.value(), &field.class().kind) {
        (Value::Bool(yes), _) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
        (Value::Unsigned(value), FieldKind::Unsigned(class)) => integer(out, value, false, class),
        (Value::Signed(value), FieldKind::Signed(class)) => integer(out, value as u64, true, class),
        (Value::Bits(value), FieldKind::Bits { flags, .. }) => bits(out, value, flags),
        (Value::Real(value), _) => number::real(out, value),
        (Value::Text(text), _) => quoted_text(out, text),
        (Value::Bytes(bytes), _) => {
            out.extend_from_slice(b"{ ");
            for byte in bytes {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)], b' ']);
            }
            out.push(b'}');
        }
        (Value::Struct(fields), _) => structure(out, fields),
        (Value::Array(elements), _) => {
            out.push(b'[');
            for (index, element) in elements.enumerate() {
                out.extend_from_slice(if index == 0 { b" [" } else { b", [" });
                number::decimal(out, index as u64);
                out.extend_from_slice(b"] = ");
                value(out, element);
            }
            out.extend_from_slice(b" ]");
        }
        (Value::Variant(_, field) | Value::Optional(Some(field)), _) => {
            out.extend_from_slice(b"{ ");
            value(out, field);
            out.extend_from_slice(b" }");
        }
        (Value::Optional(None), _) => out.extend_from_slice(b"<none>"),
        // Value and class are of the same shape.
        _ => {}
    }
}

fn integer(out: &mut Vec<u8>, value: u64, signed: bool, class: &IntegerClass) {
    if class.labels.is_empty() {
        return plain_integer(out, value, signed, class);
    }
    out.extend_from_slice(b"( ");
    let wide = if signed { i128::from(value as i64) } else { i128::from(value) };
    let of_value = |label: &&Label| label.ranges.iter().any(|range| range.contains(wide));
    let count = class.labels.iter().filter(of_value).count();
    if count == 0 {
        out.extend_from_slice(b"<unknown>");
    } else {
        names(out, class.labels.iter().filter(of_value).map(|label| label.name.as_str()), count);
    }
    out.extend_from_slice(b" : container = ");
    plain_integer(out, value, signed, class);
    out.extend_from_slice(b" )");
}

fn names<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str>, count: usize) {
    if count > 1 {
        out.extend_from_slice(b"{ ");
    }
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        quoted(out, name.as_bytes());
    }
    if count > 1 {
        out.extend_from_slice(b" }");
    }
}

fn plain_integer(out: &mut Vec<u8>, value: u64, signed: bool, class: &IntegerClass) {
    // Digits of a negative number are those of its width, rounded up to whole
    // digits.
    let masked = |bits: u32| {
        if bits < 64 { value & ((1 << bits) - 1) } else { value }
    };
    match class.base {
        Base::Decimal if signed => number::decimal_signed(out, value as i64),
        Base::Decimal => number::decimal(out, value),
        Base::Hexadecimal => number::hexadecimal(out, masked(class.bits.next_multiple_of(4))),
        Base::Octal if signed => number::octal(out, masked(class.bits.next_multiple_of(3))),
        Base::Octal => number::octal(out, value),
        Base::Binary => number::binary(out, value, class.bits),
    }
}

fn bits(out: &mut Vec<u8>, value: u64, flags: &[Label]) {
    number::hexadecimal(out, value);
    let active = |label: &&Label| {
        let set = |bit: i128| (0..64).contains(&bit) && value >> bit & 1 != 0;
        label.ranges.iter().any(|range| (range.low.max(0)..=range.high.min(63)).any(set))
    };
    let mut labels: Vec<&str> = flags.iter().filter(active).map(|l| l.name.as_str()).collect();
    if labels.is_empty() {
        return;
    }
    labels.sort_unstable();
    out.extend_from_slice(b" { ");
    for (index, label) in labels.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        quoted(out, label.as_bytes());
    }
    out.extend_from_slice(b" }");
}

fn quoted_text(out: &mut Vec<u8>, text: Text<'_>) {
    match text.encoding {
        Encoding::Utf8 => quoted(out, text.bytes),
        _ => quoted(out, text.to_str().as_bytes()),
    }
}

/// The bytes that are not escaped.
static PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 256 {
        let special = matches!(byte as u8, b'\\' | b'\'' | b'"' | b'?' | 0..=0x1f | 0x7f);
        plain[byte] = !special;
        byte += 1;
    }
    plain
};

fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    // Most characters stand for themselves: those are copied in one piece.
    let mut rest = text;
    while let Some(place) = rest.iter().position(|&byte| !PLAIN[usize::from(byte)]) {
        out.extend_from_slice(&rest[..place]);
        let byte = rest[place];
        rest = &rest[place + 1..];
        let escape = match byte {
            0 => {
                rest = &[];
                break;
            }
            7 => b'a',
            8 => b'b',
            0x1b => b'e',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            0x01..=0x1f | 0x7f => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&digits);
                continue;
            }
            _ => byte,
        };
        out.extend([b'\\', escape]);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
