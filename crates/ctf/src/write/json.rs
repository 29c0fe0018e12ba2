// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata of CTF 2: JSON texts, each preceded by a record separator [CTF2-SPEC-2.0 §5, RFC 7464].

use std::fmt::Write as _;
use std::io;

use lateralis_model::{Base, Encoding, EnvValue, Label, Range, Uuid};

use super::described::{Described, Own, WRITER_FIELDS, WrittenEvent, WrittenStream};
use super::layout::{Length, Node, Tag, WRAPPED, Written, tag_bytes};
use super::names;
use super::roles::attributes;
use super::sink::{Sink, pass_on};

/// Gives the metadata text to a sink, but for the last piece, which it returns.
pub(super) fn metadata(of: &Described<'_>, sink: &mut dyn Sink) -> io::Result<String> {
    let mut out = String::new();
    let uuid = of.trace.uuid.map_or(String::new(), |uuid| format!(",\"uuid\":{}", numbers(uuid)));
    fragment(&mut out, &format!("\"type\":\"preamble\",\"version\":2{uuid}"));
    for (name, clock) in of.clocks.iter().zip(&of.trace.clocks) {
        let (seconds, ticks) = clock.offset();
        let mut text = format!(
            "\"type\":\"clock-class\",\"id\":{},\"name\":{},\"frequency\":{},\"precision\":{},\
             \"offset-from-origin\":{{\"seconds\":{},\"cycles\":{}}}",
            quote(name),
            quote(&clock.name),
            clock.frequency(),
            clock.precision,
            seconds,
            ticks,
        );
        if !clock.description.is_empty() {
            let _ = write!(text, ",\"description\":{}", quote(&clock.description));
        }
        if let Some(namespace) = &clock.namespace {
            let _ = write!(text, ",\"namespace\":{}", quote(namespace));
        }
        if let Some(uuid) = clock.uuid {
            let _ = write!(text, ",\"uid\":\"{uuid}\"");
        } else if let Some(uid) = &clock.uid {
            let _ = write!(text, ",\"uid\":{}", quote(uid));
        }
        if clock.unix_epoch {
            text.push_str(",\"origin\":\"unix-epoch\"");
        } else if let Some(origin) = &clock.origin {
            text.push_str(",\"origin\":{");
            if let Some(namespace) = &origin.namespace {
                let _ = write!(text, "\"namespace\":{},", quote(namespace));
            }
            let _ =
                write!(text, "\"name\":{},\"uid\":{}}}", quote(&origin.name), quote(&origin.uid));
        }
        fragment(&mut out, &text);
    }
    trace_class(&mut out, of);
    for (index, stream) in of.streams.iter().enumerate() {
        stream_class(&mut out, of, stream);
        for event in &stream.events {
            event_class(&mut out, of, index, stream.id, event);
            pass_on(&mut out, sink)?;
        }
    }
    Ok(out)
}

/// One JSON text.
fn fragment(out: &mut String, content: &str) {
    let _ = writeln!(out, "\u{1e}{{{content}}}");
}

fn trace_class(out: &mut String, of: &Described<'_>) {
    let mut text = String::from("\"type\":\"trace-class\"");
    if let Some(name) = &of.trace.name {
        let _ = write!(text, ",\"name\":{}", quote(name));
    }
    if let Some(uuid) = of.trace.uuid {
        let _ = write!(text, ",\"uid\":\"{uuid}\"");
    }
    if !of.environment.is_empty() {
        let entry = |(name, value): &(String, EnvValue)| match value {
            EnvValue::Integer(value) => format!("{}:{value}", quote(name)),
            EnvValue::Text(value) => format!("{}:{}", quote(name), quote(value)),
        };
        let entries: Vec<String> = of.environment.iter().map(entry).collect();
        let _ = write!(text, ",\"environment\":{{{}}}", entries.join(","));
    }
    let header = structure(of.header.iter().map(added));
    let _ = write!(text, ",\"packet-header-field-class\":{header}");
    fragment(out, &text);
}

fn stream_class(out: &mut String, of: &Described<'_>, stream: &WrittenStream) {
    let mut text = format!("\"type\":\"data-stream-class\",\"id\":{}", stream.id);
    if let Some(name) = &stream.name {
        let _ = write!(text, ",\"name\":{}", quote(name));
    }
    if let Some(clock) = stream.clock {
        let _ = write!(text, ",\"default-clock-class-id\":{}", quote(&of.clocks[clock]));
    }
    let of_source = stream.packet_context.as_ref().map_or(&[][..], members_of);
    let context = stream.own.iter().map(added).chain(members(of_source));
    let _ = write!(text, ",\"packet-context-field-class\":{}", structure(context));
    let mut header = vec![Own::new("id", stream.id_bits, Some("event-record-class-id"))];
    if stream.time_bits > 0 {
        header.push(Own::time("timestamp", stream.time_bits, "default-clock-timestamp"));
    }
    let header = structure(header.iter().map(added));
    let _ = write!(text, ",\"event-record-header-field-class\":{header}");
    if stream.common_context.is_some() || stream.writers {
        let of_source = stream.common_context.as_ref().map_or(&[][..], members_of);
        let ids = WRITER_FIELDS.iter().filter(|_| stream.writers);
        let ids = ids.map(|name| member(name, &integer(32, true, Base::Decimal, "")));
        let context = structure(members(of_source).chain(ids));
        let _ = write!(text, ",\"event-record-common-context-field-class\":{context}");
    }
    fragment(out, &text);
}

fn event_class(
    out: &mut String,
    of: &Described<'_>,
    stream: usize,
    stream_id: u64,
    event: &WrittenEvent,
) {
    let class = of.class(stream, event);
    let mut text = format!(
        "\"type\":\"event-record-class\",\"id\":{},\"data-stream-class-id\":{stream_id}",
        event.id
    );
    if !class.name.is_empty() {
        let _ = write!(text, ",\"name\":{}", quote(&class.name));
    }
    let said = attributes(class);
    let mut common: Vec<String> = Vec::new();
    if let Some(level) = said.level {
        common.push(format!("\"log-level\":{}", quote(level)));
    }
    if let Some(uri) = said.uri {
        common.push(format!("\"emf-uri\":{}", quote(uri)));
    }
    let other = said.others.iter();
    common.extend(other.map(|other| format!("{}:{}", quote(&other.name), quote(&other.value))));
    let mut spaces = Vec::new();
    if !common.is_empty() {
        spaces.push(format!("\"babeltrace.org,2020\":{{{}}}", common.join(",")));
    }
    if !said.clauses.is_empty() {
        let clauses: Vec<String> = said.clauses.iter().map(|clause| quote(clause)).collect();
        spaces.push(format!("\"lateralis\":{{\"clauses\":[{}]}}", clauses.join(",")));
    }
    if !spaces.is_empty() {
        let _ = write!(text, ",\"attributes\":{{{}}}", spaces.join(","));
    }
    for (key, node) in
        [("specific-context-field-class", &event.context), ("payload-field-class", &event.payload)]
    {
        if let Some(node) = node {
            let _ = write!(text, ",\"{key}\":{}", structure(members(members_of(node))));
        }
    }
    fragment(out, &text);
}

fn members_of(node: &Node) -> &[Written] {
    if let Node::Struct { members, .. } = node { members } else { &[] }
}

fn structure(members: impl Iterator<Item = String>) -> String {
    let members: Vec<String> = members.filter(|member| !member.is_empty()).collect();
    format!("{{\"type\":\"structure\",\"member-classes\":[{}]}}", members.join(","))
}

fn member(name: &str, class: &str) -> String {
    format!("{{\"name\":{},\"field-class\":{class}}}", quote(name))
}

fn added(own: &Own) -> String {
    let role = own.role.map_or(String::new(), |role| format!(",\"roles\":[\"{role}\"]"));
    if own.bits == 128 {
        let class = format!("{{\"type\":\"static-length-blob\",\"length\":16{role}}}");
        return member(own.name, &class);
    }
    let base = if own.name == "magic" { Base::Hexadecimal } else { Base::Decimal };
    member(own.name, &integer(own.bits, false, base, &role))
}

/// The members of a structure, each with the one added before it.
fn members(around: &[Written]) -> impl Iterator<Item = String> + '_ {
    around.iter().map(move |written| declared(&written.name, &written.node, around))
}

fn declared(name: &str, node: &Node, around: &[Written]) -> String {
    if matches!(node, Node::Skip(_)) {
        return String::new();
    }
    let plain = member(name, &class(name, node, around));
    let Some(end) = node.added() else { return plain };
    let added = match node {
        Node::Variant { options, .. } => tag_bytes(options.len()) as u32 * 8,
        Node::Optional(_) => 8,
        _ => 32,
    };
    let added = match node {
        Node::Optional(_) => fixed("boolean", added, ""),
        _ => integer(added, false, Base::Decimal, ""),
    };
    format!("{},{plain}", member(&format!("{name}{end}"), &added))
}

fn class(name: &str, node: &Node, around: &[Written]) -> String {
    match node {
        Node::Integer { class, signed, .. } => {
            let mappings = labels("mappings", &class.labels);
            integer(class.bits, *signed, class.base, &mappings)
        }
        Node::Bool => fixed("boolean", 8, ""),
        Node::Bits { bits, flags } if flags.is_empty() => fixed("bit-array", *bits, ""),
        Node::Bits { bits, flags } => fixed("bit-map", *bits, &labels("flags", flags)),
        Node::Real(bits) => fixed("floating-point-number", *bits, ""),
        Node::Text { encoding, .. } => {
            let encoding = match encoding {
                Encoding::Utf8 => "utf-8",
                Encoding::Utf16Be => "utf-16be",
                Encoding::Utf16Le => "utf-16le",
                Encoding::Utf32Be => "utf-32be",
                Encoding::Utf32Le => "utf-32le",
            };
            format!("{{\"type\":\"null-terminated-string\",\"encoding\":\"{encoding}\"}}")
        }
        Node::Bytes { media, length } => {
            let media = match media.as_str() {
                "" => String::new(),
                media => format!(",\"media-type\":{}", quote(media)),
            };
            let (kind, length) = sized(name, length, around);
            format!("{{\"type\":\"{kind}-length-blob\"{length}{media}}}")
        }
        Node::Struct { members: inner, .. } => structure(members(inner)),
        Node::Wrapped(inner) => structure([declared(WRAPPED, inner, &[])].into_iter()),
        Node::Array { element, length, .. } => {
            let (kind, length) = sized(name, length, around);
            let element = class(name, element, around);
            format!(
                "{{\"type\":\"{kind}-length-array\"{length},\"element-field-class\":{element}}}"
            )
        }
        Node::Variant { options, tag } => variant(name, options, tag, around),
        Node::Optional(inner) => format!(
            "{{\"type\":\"optional\",\"selector-field-location\":{},\"field-class\":{}}}",
            location(&format!("{name}{}", names::PRESENT)),
            class(name, inner, &[]),
        ),
        Node::Skip(_) => String::new(),
    }
}

fn variant(name: &str, options: &[Written], tag: &Tag, around: &[Written]) -> String {
    let selector = match tag {
        Tag::Own => format!("{name}{}", names::TAG),
        Tag::Reused { member, .. } => around[*member].name.clone(),
    };
    let mut texts = Vec::with_capacity(options.len());
    for (index, option) in options.iter().enumerate() {
        let index_only = [Range { low: index as i128, high: index as i128 }];
        let chosen = match tag {
            Tag::Own => &index_only[..],
            Tag::Reused { values, .. } => &values[index],
        };
        let given = match option.name.as_str() {
            "" => String::new(),
            name => format!("\"name\":{},", quote(name)),
        };
        texts.push(format!(
            "{{{given}\"selector-field-ranges\":{},\"field-class\":{}}}",
            ranges(chosen),
            class(&option.name, &option.node, &[]),
        ));
    }
    format!(
        "{{\"type\":\"variant\",\"selector-field-location\":{},\"options\":[{}]}}",
        location(&selector),
        texts.join(",")
    )
}

/// `static` or `dynamic`, and the location of the length.
fn sized(name: &str, length: &Length, around: &[Written]) -> (&'static str, String) {
    let field = match length {
        Length::Fixed(length) => return ("static", format!(",\"length\":{length}")),
        Length::Own => format!("{name}{}", names::LENGTH),
        Length::Reused { member, .. } => around[*member].name.clone(),
    };
    ("dynamic", format!(",\"length-field-location\":{}", location(&field)))
}

/// A field of the structure around.
fn location(name: &str) -> String {
    format!("{{\"path\":[{}]}}", quote(name))
}

fn labels(key: &str, labels: &[Label]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let label = |label: &Label| format!("{}:{}", quote(&label.name), ranges(&label.ranges));
    let all: Vec<String> = labels.iter().map(label).collect();
    format!(",\"{key}\":{{{}}}", all.join(","))
}

fn ranges(ranges: &[Range]) -> String {
    let all: Vec<String> = ranges.iter().map(|r| format!("[{},{}]", r.low, r.high)).collect();
    format!("[{}]", all.join(","))
}

fn integer(bits: u32, signed: bool, base: Base, more: &str) -> String {
    let base = match base {
        Base::Binary => ",\"preferred-display-base\":2",
        Base::Octal => ",\"preferred-display-base\":8",
        Base::Decimal => "",
        Base::Hexadecimal => ",\"preferred-display-base\":16",
    };
    let kind = if signed { "signed-integer" } else { "unsigned-integer" };
    fixed(kind, bits, &format!("{base}{more}"))
}

fn fixed(kind: &str, bits: u32, more: &str) -> String {
    format!(
        "{{\"type\":\"fixed-length-{kind}\",\"length\":{bits},\"byte-order\":\"little-endian\",\
         \"alignment\":8{more}}}"
    )
}

fn numbers(uuid: Uuid) -> String {
    let all: Vec<String> = uuid.0.iter().map(ToString::to_string).collect();
    format!("[{}]", all.join(","))
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
