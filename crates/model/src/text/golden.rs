// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines of random events, beside those that the obvious way gives: field by
//! field, nothing remembered, all by the formatter of the standard library.

use lateralis_units::{Nanos, Ticks};

use super::Babeltrace;
use crate::{
    Base, ByteOrder, Clock, Encoding, EnvValue, Event, EventClass, FieldClass, FieldKind,
    IntegerClass, Label, Packet, Range, Scalar, ScalarKind, Slot, StreamClass, StreamIndex, Trace,
};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Numbers of all lengths.
    fn number(&mut self) -> u64 {
        let high = self.below(1 << 32) << 32;
        let all = high | self.below(1 << 32);
        all >> self.below(64)
    }

    fn integer(&mut self) -> IntegerClass {
        let base = [Base::Decimal, Base::Hexadecimal, Base::Octal, Base::Binary];
        let label = |low: i128, high: i128, name: &str| Label {
            name: name.to_owned(),
            ranges: vec![Range { low, high }],
        };
        let labels = match self.below(3) {
            0 => vec![label(0, 3, "few"), label(3, 3, "th\"ree"), label(-2, -2, "minus two")],
            _ => Vec::new(),
        };
        let base = base[[0, 0, 0, 1, 1, 2, 3][self.below(7) as usize]];
        IntegerClass { bits: [3, 8, 16, 31, 32, 64][self.below(6) as usize], base, labels }
    }

    fn class(&mut self, depth: u32) -> FieldClass {
        let kind = match self.below(if depth > 2 { 7 } else { 13 }) {
            0 | 1 => FieldKind::Unsigned(self.integer()),
            2 | 3 => FieldKind::Signed(self.integer()),
            4 => FieldKind::Text(Encoding::Utf8),
            5 => FieldKind::Bool,
            6 => FieldKind::Bytes(String::new()),
            7 => self.structure(depth + 1).kind,
            8 => FieldKind::Variant(
                (0..2).map(|index| member(index, self.class(depth + 1))).collect(),
            ),
            9 => FieldKind::Optional(Box::new(self.class(depth + 1))),
            10 => {
                let element = Box::new(self.class(depth + 1));
                FieldKind::Array { element, length: None, packed: None }
            }
            _ => self.packed(),
        };
        FieldClass { kind, structural: self.below(12) == 0 }
    }

    /// An array of numbers that lie in the packet.
    fn packed(&mut self) -> FieldKind {
        let (bits, signed) = ([8, 16, 32, 64, 5][self.below(5) as usize], self.below(2) == 0);
        let integer = IntegerClass { bits, ..self.integer() };
        let scalar = Scalar {
            bits,
            align_bits: if bits == 5 { 1 } else { bits },
            order: if self.below(2) == 0 { ByteOrder::Little } else { ByteOrder::Big },
            reversed: self.below(4) == 0,
            kind: if signed { ScalarKind::Signed } else { ScalarKind::Unsigned },
        };
        let kind = if signed { FieldKind::Signed(integer) } else { FieldKind::Unsigned(integer) };
        let element = Box::new(FieldClass::new(kind));
        FieldKind::Array { element, length: None, packed: Some(scalar) }
    }

    fn structure(&mut self, depth: u32) -> FieldClass {
        let members = 0..self.below(5);
        let members = members.map(|index| member(index, self.class(depth))).collect();
        FieldClass::new(FieldKind::Struct(members))
    }

    /// A value of a class: its slots, and bytes that they point into.
    fn value(&mut self, class: &FieldClass, slots: &mut Vec<Slot>, bytes: &mut Vec<u8>) {
        match &class.kind {
            FieldKind::Bool => slots.push(Slot::Unsigned(self.below(2))),
            FieldKind::Unsigned(integer) => {
                slots.push(Slot::Unsigned(self.number() & (u64::MAX >> (64 - integer.bits))));
            }
            FieldKind::Signed(integer) => {
                let unused = 64 - integer.bits;
                let negative = if self.below(2) == 0 { u64::MAX } else { 0 };
                let value = self.number() ^ negative;
                slots.push(Slot::Signed((value << unused) as i64 >> unused));
            }
            FieldKind::Text(_) | FieldKind::Bytes(_) => {
                let (start, len) = (bytes.len() as u64, self.below(70) as u32);
                for _ in 0..len {
                    let rare = self.below(30) == 0;
                    bytes.push(if rare { self.below(256) } else { 97 + self.below(26) } as u8);
                }
                slots.push(Slot::Span { len, start });
            }
            FieldKind::Struct(members) => {
                members.iter().for_each(|member| self.value(&member.class, slots, bytes));
            }
            FieldKind::Variant(options) => {
                let option = self.below(options.len() as u64) as u32;
                slots.push(Slot::Selected { option });
                self.value(&options[option as usize].class, slots, bytes);
            }
            FieldKind::Optional(inner) => {
                let option = self.below(2) as u32;
                slots.push(Slot::Selected { option });
                if option == 1 {
                    self.value(inner, slots, bytes);
                }
            }
            FieldKind::Array { packed: Some(scalar), .. } => {
                let most = if self.below(8) == 0 { 130 } else { 12 };
                let (count, start_bits) = (self.below(most) as u32, bytes.len() as u64 * 8);
                let size = u64::from(count) * scalar.stride_bits();
                (0..size.div_ceil(8)).for_each(|_| bytes.push(self.below(256) as u8));
                slots.push(Slot::Packed { count, start_bits });
            }
            FieldKind::Array { element, .. } => {
                let (count, at) = (self.below(4) as u32, slots.len());
                slots.push(Slot::Unsigned(0));
                (0..count).for_each(|_| self.value(element, slots, bytes));
                slots[at] = Slot::Elements { count, slots: (slots.len() - at - 1) as u32 };
            }
            _ => unreachable!(),
        }
    }
}

fn member(index: u64, class: FieldClass) -> crate::Member {
    let long = ["", "_and_a_name_so_long_that_it_does_not_fit_into_one_piece_of_a_literal_at_all"];
    crate::Member { name: format!("m{index}{}", long[usize::from(index == 3)]), class }
}

/// The obvious way: slots are taken off the front.
struct Slow<'a> {
    slots: &'a [Slot],
    bytes: &'a [u8],
}

impl Slow<'_> {
    fn next(&mut self) -> Slot {
        let (first, rest) = self.slots.split_first().unwrap();
        self.slots = rest;
        *first
    }

    fn integer(value: u64, signed: bool, class: &IntegerClass) -> String {
        let wide = if signed { i128::from(value as i64) } else { i128::from(value) };
        let masked = |digit: u32| {
            let bits = class.bits.next_multiple_of(digit).min(64);
            value & (u64::MAX >> (64 - bits))
        };
        let plain = match class.base {
            Base::Decimal => wide.to_string(),
            Base::Hexadecimal => format!("0x{:X}", masked(4)),
            Base::Octal if signed => format!("0{:o}", masked(3)),
            Base::Octal => format!("0{value:o}"),
            Base::Binary => {
                let low = value & (u64::MAX >> (64 - class.bits));
                format!("0b{low:0width$b}", width = class.bits as usize)
            }
        };
        if class.labels.is_empty() {
            return plain;
        }
        let has = |label: &&Label| label.ranges.iter().any(|r| r.low <= wide && wide <= r.high);
        let names: Vec<_> = class.labels.iter().filter(has).collect();
        let quoted = |label: &&Label| Self::text(label.name.as_bytes());
        let names: Vec<_> = names.iter().map(quoted).collect();
        match names.as_slice() {
            [] => format!("( <unknown> : container = {plain} )"),
            [one] => format!("( {one} : container = {plain} )"),
            _ => format!("( {{ {} }} : container = {plain} )", names.join(", ")),
        }
    }

    fn text(bytes: &[u8]) -> String {
        let mut out = String::from("\"");
        for &byte in bytes.iter().take_while(|&&byte| byte != 0) {
            match byte {
                b'\n' => out.push_str("\\n"),
                b'\t' => out.push_str("\\t"),
                b'\r' => out.push_str("\\r"),
                7 => out.push_str("\\a"),
                8 => out.push_str("\\b"),
                11 => out.push_str("\\v"),
                12 => out.push_str("\\f"),
                27 => out.push_str("\\e"),
                b'\\' | b'\'' | b'"' | b'?' => out.extend(['\\', char::from(byte)]),
                0..32 | 127 => out.push_str(&format!("\\x{byte:02x}")),
                // One character a byte: compared as such below.
                _ => out.push(char::from(byte)),
            }
        }
        out + "\""
    }

    fn value(&mut self, class: &FieldClass) -> String {
        match &class.kind {
            FieldKind::Bool => (self.next() == Slot::Unsigned(1)).to_string(),
            FieldKind::Unsigned(integer) => match self.next() {
                Slot::Unsigned(value) => Self::integer(value, false, integer),
                _ => unreachable!(),
            },
            FieldKind::Signed(integer) => match self.next() {
                Slot::Signed(value) => Self::integer(value as u64, true, integer),
                _ => unreachable!(),
            },
            FieldKind::Text(_) | FieldKind::Bytes(_) => {
                let Slot::Span { len, start } = self.next() else { unreachable!() };
                let bytes = &self.bytes[start as usize..][..len as usize];
                if let FieldKind::Text(_) = class.kind {
                    return Self::text(bytes);
                }
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
                format!("{{ {hex}}}")
            }
            FieldKind::Struct(_) => self.structure(class),
            FieldKind::Variant(options) => {
                let Slot::Selected { option } = self.next() else { unreachable!() };
                format!("{{ {} }}", self.value(&options[option as usize].class))
            }
            FieldKind::Optional(inner) => match self.next() {
                Slot::Selected { option: 0 } => "<none>".to_owned(),
                _ => format!("{{ {} }}", self.value(inner)),
            },
            FieldKind::Array { element, packed: Some(scalar), .. } => {
                let Slot::Packed { count, start_bits } = self.next() else { unreachable!() };
                let values = (0..count).map(|index| {
                    let at = start_bits + u64::from(index) * scalar.stride_bits();
                    Slot::from_raw(scalar.raw(self.bytes, at).unwrap(), scalar.bits, scalar.kind)
                });
                let slots: Vec<_> = values.collect();
                let mut inner = Slow { slots: &slots, bytes: self.bytes };
                Self::array((0..count).map(|_| inner.value(element)))
            }
            FieldKind::Array { element, .. } => {
                let Slot::Elements { count, .. } = self.next() else { unreachable!() };
                Self::array((0..count).map(|_| self.value(element)))
            }
            _ => unreachable!(),
        }
    }

    fn array(elements: impl Iterator<Item = String>) -> String {
        let element = |(index, text): (usize, String)| format!(" [{index}] = {text}");
        format!("[{} ]", elements.enumerate().map(element).collect::<Vec<_>>().join(","))
    }

    fn structure(&mut self, class: &FieldClass) -> String {
        let mut shown = Vec::new();
        for member in class.members() {
            let text = self.value(&member.class);
            if !member.class.structural {
                shown.push(format!(" {} = {text}", member.name));
            }
        }
        format!("{{{} }}", shown.join(","))
    }
}

fn slow_line(trace: &Trace, event: &Event<'_>) -> String {
    let mut parts = Vec::new();
    if let (Some(clock), Some(ticks)) = (event.stream_class.clock, event.ticks) {
        let nanos = trace.clocks[clock].nanos(ticks).0;
        parts.push(format!("timestamp = {}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000));
    }
    let no_time = parts.is_empty();
    // Without time the parts up to the name are not separated.
    let mut head = vec!["trace:hostname = here".to_owned()];
    head.push(format!("name = {}", event.class.name));
    parts.extend(if no_time { vec![head.concat()] } else { head });
    let packet = event.stream_class.packet_context.as_ref();
    if let Some(class) = packet.filter(|c| c.members().iter().any(|m| !m.class.structural)) {
        let mut slow = Slow { slots: event.packet_slots, bytes: event.bytes };
        parts.push(format!("stream.packet.context = {}", slow.structure(class)));
    }
    let mut slow = Slow { slots: event.slots, bytes: event.bytes };
    for (name, class) in [
        ("stream.event.context", &event.stream_class.common_context),
        ("event.context", &event.class.context),
        ("event.fields", &event.class.payload),
    ] {
        if let Some(class) = class {
            parts.push(format!("{name} = {}", slow.structure(class)));
        }
    }
    // A name that nothing follows keeps its comma.
    let bare = parts.last().is_some_and(|last| last.contains("name = event"));
    parts.join(", ") + if bare { ", \n" } else { "\n" }
}

fn random_trace(random: &mut Random) -> Trace {
    let mut trace = Trace::default();
    trace.clocks.push(Clock::new("clock", 1_000_000_000, 1_600_000_000, 0));
    trace.environment.push(("hostname".into(), EnvValue::Text("here".into())));
    for _ in 0..2 {
        let clock = (random.below(3) > 0).then_some(0);
        let mut stream = StreamClass { clock, ..Default::default() };
        let maybe = |random: &mut Random| (random.below(3) > 0).then(|| random.structure(0));
        stream.packet_context = maybe(random);
        stream.common_context = maybe(random);
        for index in 0..3 {
            let (context, payload) = (maybe(random), maybe(random));
            let name = format!("event{index}");
            stream.event_classes.push(EventClass { name, context, payload, ..Default::default() });
        }
        trace.stream_classes.push(stream);
    }
    trace
}

#[test]
fn lines_of_random_events_are_those_of_the_obvious_way() {
    let mut random = Random(11);
    let (mut out, mut lines) = (Vec::new(), 0);
    for _ in 0..600 {
        let trace = random_trace(&mut random);
        let printer = Babeltrace::new(&trace);
        // Packet contexts that last for some events, and change in few places.
        let (mut packet_slots, mut packet_of, mut head) = (Vec::new(), usize::MAX, Vec::new());
        for turn in 0..40u64 {
            let index = if turn % 10 < 7 { 0 } else { 1 };
            let stream_class = &trace.stream_classes[index];
            if packet_of != index || random.below(4) == 0 {
                (packet_slots, head) = (Vec::new(), Vec::new());
                if let Some(class) = &stream_class.packet_context {
                    random.value(class, &mut packet_slots, &mut head);
                }
                packet_of = index;
            }
            let class_index = random.below(3) as u32;
            let class = &stream_class.event_classes[class_index as usize];
            let (mut bytes, mut slots) = (head.clone(), Vec::new());
            for class in [&stream_class.common_context, &class.context, &class.payload] {
                class.iter().for_each(|class| random.value(class, &mut slots, &mut bytes));
            }
            let event = Event {
                stream: StreamIndex((turn % 3) as u32),
                stream_class_index: index as u32,
                stream_class,
                class_index,
                class,
                ticks: Some(Ticks(random.number() >> 8)),
                time: Nanos(0),
                writer: None,
                packet: &Packet::default(),
                bytes: &bytes,
                packet_slots: &packet_slots,
                slots: &slots,
            };
            out.clear();
            out.shrink_to(random.below(300) as usize);
            printer.line(&mut out, &event);
            let fast: String = out.iter().map(|&byte| char::from(byte)).collect();
            assert_eq!(fast, slow_line(&trace, &event));
            lines += 1;
        }
    }
    assert_eq!(lines, 24_000);
}
