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

use super::layout::{Layout, digits_mask};
use super::number;
use crate::{
    Base, Clock, Encoding, EnvValue, Event, EventClass, Field, FieldKind, Fields, IntegerClass,
    Label, Slot, StreamClass, Text, Trace, Value,
};

/// Writes the events of one trace.
pub struct Babeltrace<'t> {
    trace: &'t Trace,
    known: RefCell<Known<'t>>,
}

/// What need not be made again for every event.
#[derive(Default)]
struct Known<'t> {
    /// By stream class and event class.
    classes: Vec<Vec<Option<ClassText<'t>>>>,
    /// The last packet context of each stream: many events of a packet follow each
    /// other.
    packets: Vec<PacketText>,
    /// The last second, and the text of a time up to its point.
    second: Option<(i64, Vec<u8>)>,
}

/// A class as text.
struct ClassText<'t> {
    /// From the time to the name.
    head: Vec<u8>,
    fields: Layout<'t>,
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
        Self { trace, known: RefCell::default() }
    }

    /// Appends one event of the trace and a line feed.
    ///
    /// Cost: what the text of its values costs; the rest is copied. No allocation
    /// but the growth of `out`, once for every class, and for text that is not
    /// UTF-8.
    pub fn line(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let known = &mut *self.known.borrow_mut();
        let (stream, class) = (event.stream_class_index as usize, event.class_index as usize);
        let packet_at = event.stream.0 as usize;
        if known.packets.len() <= packet_at {
            known.packets.resize_with(packet_at + 1, PacketText::default);
        }
        let packet = &mut known.packets[packet_at];
        packet.show(event);
        let has_time = match event.stream_class.clock.and_then(|index| self.trace.clocks.get(index))
        {
            Some(clock) if event.ticks.is_some() => {
                time(out, &mut known.second, clock, event.ticks.unwrap_or_default());
                true
            }
            _ => false,
        };
        let of_trace = self.trace.stream_classes.get(stream).and_then(|stream| {
            let class = stream.event_classes.get(class)?;
            std::ptr::eq(class, event.class).then_some((stream, class))
        });
        let Some((stream_class, event_class)) = of_trace else {
            // Not of this trace: made for this once.
            let text = self.class_text(stream, event.stream_class, event.class);
            return text.line(out, packet, event, has_time);
        };
        if known.classes.len() <= stream {
            known.classes.resize_with(stream + 1, Vec::new);
        }
        let classes = &mut known.classes[stream];
        if classes.len() <= class {
            classes.resize_with(class + 1, || None);
        }
        let text = classes[class]
            .get_or_insert_with(|| self.class_text(stream, stream_class, event_class));
        text.line(out, packet, event, has_time);
    }

    fn class_text<'c>(
        &self,
        index: usize,
        stream: &'c StreamClass,
        event: &'c EventClass,
    ) -> ClassText<'c> {
        let name = if event.name.is_empty() { "<unknown>" } else { event.name.as_str() };
        let mut head = origin(self.trace.environment_of(index as u32));
        head.extend_from_slice(b", name = ");
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b", ");
        ClassText { head, fields: Layout::of(stream, event) }
    }
}

impl ClassText<'_> {
    /// The line behind the time.
    fn line(&self, out: &mut Vec<u8>, packet: &PacketText, event: &Event<'_>, has_time: bool) {
        if has_time {
            out.extend_from_slice(&self.head);
        } else {
            without_commas(out, &self.head);
        }
        out.extend_from_slice(&packet.text);
        self.fields.print(out, event.slots, event.bytes, packet.text.is_empty());
    }
}

/// The head of a line that begins with it: that program then writes no commas
/// before its parts.
fn without_commas(out: &mut Vec<u8>, head: &[u8]) {
    let mut parts = head;
    while let Some(rest) = parts.strip_prefix(b", ") {
        let end = rest.windows(2).position(|pair| pair == b", ").unwrap_or(rest.len());
        out.extend_from_slice(&rest[..end]);
        parts = &rest[end..];
        if rest[..end].starts_with(b"name = ") {
            break;
        }
    }
    out.extend_from_slice(parts);
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

/// What stands between time and name.
fn origin(environment: &[(String, EnvValue)]) -> Vec<u8> {
    let find = |name| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mut out = Vec::new();
    for name in ["hostname", "procname"] {
        if let Some(value) = find(name).and_then(EnvValue::as_text) {
            out.extend_from_slice(format!(", trace:{name} = {value}").as_bytes());
        }
    }
    if let Some(EnvValue::Integer(vpid)) = find("vpid") {
        out.extend_from_slice(format!(", trace:vpid = ({vpid})").as_bytes());
    }
    out
}

fn time(out: &mut Vec<u8>, last: &mut Option<(i64, Vec<u8>)>, clock: &Clock, ticks: Ticks) {
    let Some(nanos) = nanos(clock, ticks) else {
        return out.extend_from_slice(b"timestamp = Error");
    };
    let magnitude = nanos.0.unsigned_abs();
    let second = (magnitude / 1_000_000_000) as i64 * nanos.0.signum();
    match last {
        // Of second 0 there are two, one of them negative.
        Some((known, text)) if *known == second && second != 0 => out.extend_from_slice(text),
        _ => {
            let mut text = b"timestamp = ".to_vec();
            if nanos.0 < 0 {
                text.push(b'-');
            }
            number::decimal(&mut text, magnitude / 1_000_000_000);
            text.push(b'.');
            out.extend_from_slice(&text);
            *last = Some((second, text));
        }
    }
    number::nine(out, magnitude % 1_000_000_000);
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

pub(super) fn value(out: &mut Vec<u8>, field: Field<'_>) {
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
    let masked = |digit: u32| value & digits_mask(class.bits, digit);
    match class.base {
        Base::Decimal if signed => number::decimal_signed(out, value as i64),
        Base::Decimal => number::decimal(out, value),
        Base::Hexadecimal => number::hexadecimal(out, masked(4)),
        Base::Octal if signed => number::octal(out, masked(3)),
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

/// Where the first byte lies that is escaped. Eight at a time, by the test of a
/// word for a zero byte (Warren, Hacker's Delight, §6-1).
fn first_special(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    for (index, bytes) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let mut special = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        for byte in [b'\\', b'\'', b'"', b'?', 0x7f] {
            special |= has_zero(word ^ (ONES * u64::from(byte)));
        }
        if special != 0 {
            let place = bytes.iter().position(|&byte| !PLAIN[usize::from(byte)]);
            return place.map(|place| index * 8 + place);
        }
    }
    let place = rest.iter().position(|&byte| !PLAIN[usize::from(byte)])?;
    Some(words.len() * 8 + place)
}

pub(super) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    // Most characters stand for themselves: those are copied in one piece.
    let mut rest = text;
    while let Some(place) = first_special(rest) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_found_if_it_is_special() {
        for byte in 0..=255u8 {
            for place in 0..20 {
                let mut text = [b'a'; 20];
                text[place] = byte;
                let expected = (!PLAIN[usize::from(byte)]).then_some(place);
                assert_eq!(first_special(&text), expected, "{byte:#x} at {place}");
            }
        }
        let of = |text: &[u8]| {
            let mut out = Vec::new();
            quoted(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of(b"plain and long enough"), "\"plain and long enough\"");
        assert_eq!(of(b"12345678\n9\"\x01?\0x"), r#""12345678\n9\"\x01\?""#);
    }
}
