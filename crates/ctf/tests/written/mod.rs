// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For tests of the writer: traces as text that can be compared.

use lateralis_ctf::write::{self, Files, Options, Report, Version};
use lateralis_model::{
    Base, EventClass, Field, FieldClass, FieldKind, Fields, Label, Source, Value,
};

/// Writes and opens the copy.
pub fn copy(source: &dyn Source, version: Version) -> (lateralis_ctf::Reader, Report) {
    let mut files = Files::default();
    let options = Options { version, ..Options::default() };
    let report = write::write(source, &mut files, &options).expect("memory takes everything");
    (files.into_reader(), report)
}

/// All classes, without bookkeeping.
pub fn classes(source: &dyn Source) -> String {
    let trace = source.trace();
    let mut out = format!("name {:?} uuid {:?}\n", trace.name, trace.uuid);
    for clock in &trace.clocks {
        out += &format!("{clock:?}\n");
    }
    let mut environment = trace.environment.clone();
    environment.sort_by(|a, b| a.0.cmp(&b.0));
    out += &format!("{environment:?}\n");
    for stream in &trace.stream_classes {
        out += &format!("stream {} clock {:?}\n", stream.id, stream.clock);
        out += &format!("  common {}\n", class_of(stream.common_context.as_ref()));
        // A class may have come out twice: with and without a guessed length.
        let mut seen = std::collections::BTreeSet::new();
        for event in &stream.event_classes {
            let text = event_class(event);
            if seen.insert(text.clone()) {
                out += &text;
            }
        }
    }
    out
}

fn event_class(event: &EventClass) -> String {
    let mut attributes: Vec<String> =
        event.attributes.iter().map(|a| format!("{}={}", a.name, a.value)).collect();
    attributes.sort();
    format!(
        "  event {:?} {attributes:?}\n    context {}\n    payload {}\n",
        event.name,
        class_of(event.context.as_ref()),
        class_of(event.payload.as_ref()),
    )
}

fn class_of(class: Option<&FieldClass>) -> String {
    class.map_or("none".to_owned(), self::class)
}

fn labels(labels: &[Label]) -> String {
    let mut all: Vec<String> =
        labels.iter().map(|label| format!("{:?}={:?}", label.name, label.ranges)).collect();
    all.sort();
    all.join(",")
}

fn base(base: Base) -> &'static str {
    match base {
        Base::Binary => "b",
        Base::Octal => "o",
        Base::Decimal => "d",
        Base::Hexadecimal => "x",
    }
}

/// A class as text.
pub fn class(class: &FieldClass) -> String {
    let members = |members: &[lateralis_model::Member]| {
        let shown = members.iter().filter(|member| !member.class.structural);
        let all: Vec<String> =
            shown.map(|m| format!("{}: {}", m.name, self::class(&m.class))).collect();
        all.join(", ")
    };
    match &class.kind {
        FieldKind::Bool => "bool".to_owned(),
        FieldKind::Unsigned(i) => format!("u{}{}<{}>", i.bits, base(i.base), labels(&i.labels)),
        FieldKind::Signed(i) => format!("i{}{}<{}>", i.bits, base(i.base), labels(&i.labels)),
        FieldKind::Real(bits) => format!("f{bits}"),
        FieldKind::Bits { bits, flags } => format!("bits{bits}<{}>", labels(flags)),
        FieldKind::Text(encoding) => format!("{encoding:?}"),
        FieldKind::Bytes(media) => format!("bytes {media:?}"),
        FieldKind::Struct(inner) => format!("{{{}}}", members(inner)),
        FieldKind::Array { element, length, .. } => {
            format!("[{}; {length:?}]", self::class(element))
        }
        FieldKind::Variant(options) => format!("({})", members(options)),
        FieldKind::Optional(inner) => format!("?{}", self::class(inner)),
    }
}

/// All events in their order.
pub fn events(source: &dyn Source) -> Vec<String> {
    let mut events = source.events();
    let mut out = Vec::new();
    while let Some(event) = events.next_event() {
        let mut line = format!("{:?} {} {}", event.ticks, event.time.0, event.class.name);
        line += &format!(" stream {}", event.stream.0);
        line += &format!(" cpu {:?}", event.packet.cpu);
        for scope in [event.common_context(), event.context(), event.payload()] {
            line += &scope.map_or(" none".to_owned(), fields);
        }
        out.push(line);
    }
    out
}

fn fields(fields: Fields<'_>) -> String {
    let shown = fields.into_iter().filter(|(member, _)| !member.class.structural);
    let all: Vec<String> = shown.map(|(m, field)| format!("{}={}", m.name, value(field))).collect();
    format!(" {{{}}}", all.join(","))
}

fn value(field: Field<'_>) -> String {
    match field.value() {
        Value::Bool(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => format!("{value:+}"),
        Value::Real(value) => format!("{:016x}", value.to_bits()),
        Value::Bits(value) => format!("{value:#x}"),
        Value::Text(text) => format!("{:?}{:?}", text.encoding, text.bytes),
        Value::Bytes(bytes) => format!("{bytes:?}"),
        Value::Struct(inner) => fields(inner),
        Value::Array(elements) => {
            let all: Vec<String> = elements.map(value).collect();
            format!("[{}]", all.join(","))
        }
        Value::Variant(option, field) => format!("({}: {})", option.name, value(field)),
        Value::Optional(None) => "nothing".to_owned(),
        Value::Optional(Some(field)) => format!("?{}", value(field)),
    }
}

/// Losses in an order of their own.
pub fn losses(source: &dyn Source) -> Vec<String> {
    let mut all: Vec<String> = source.losses().iter().map(|loss| format!("{loss:?}")).collect();
    all.sort();
    all
}
