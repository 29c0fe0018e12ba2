// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata of CTF 1.8 [CTF 1.8.3 §7, §C].
//!
//! Names of fields get an underscore in front, which readers take away
//! [CTF 1.8.3 §7.3.1]: so a field can be called `event` or `string`.

use std::fmt::Write as _;
use std::io;

use lateralis_model::{Base, EnvValue, Label};

use super::described::{Described, Own, WRITER_FIELDS, WrittenEvent};
use super::layout::{Length, Node, Tag, WRAPPED, Written, tag_bytes};
use super::names;
use super::roles::attributes;
use super::sink::{Sink, pass_on};

/// Gives the metadata text to a sink, but for the last piece, which it returns.
pub(super) fn metadata(of: &Described<'_>, sink: &mut dyn Sink) -> io::Result<String> {
    let mut out = String::from("/* CTF 1.8 */\n\ntrace {\n    major = 1;\n    minor = 8;\n");
    if let Some(uuid) = of.trace.uuid {
        let _ = writeln!(out, "    uuid = \"{uuid}\";");
    }
    out.push_str("    byte_order = le;\n    packet.header := struct {\n");
    for own in &of.header {
        added(&mut out, own, None);
    }
    out.push_str("    };\n};\n\n");
    environment(&mut out, of);
    clocks(&mut out, of);
    for (index, stream) in of.streams.iter().enumerate() {
        let clock = stream.clock.map(|clock| of.clocks[clock].as_str());
        let _ = writeln!(out, "stream {{\n    id = {};", stream.id);
        out.push_str("    packet.context := struct {\n");
        for own in &stream.own {
            added(&mut out, own, clock);
        }
        if let Some(Node::Struct { members, .. }) = &stream.packet_context {
            fields(&mut out, members, 2);
        }
        out.push_str("    };\n    event.header := struct {\n");
        added(&mut out, &Own::new("id", stream.id_bits, None), None);
        if stream.time_bits > 0 {
            added(&mut out, &Own::time("timestamp", stream.time_bits, ""), clock);
        }
        out.push_str("    };\n");
        if stream.common_context.is_some() || stream.writers {
            out.push_str("    event.context := struct {\n");
            if let Some(Node::Struct { members, .. }) = &stream.common_context {
                fields(&mut out, members, 2);
            }
            for name in WRITER_FIELDS.iter().filter(|_| stream.writers) {
                let _ = writeln!(out, "        {} _{name};", integer(32, true, Base::Decimal));
            }
            out.push_str("    };\n");
        }
        out.push_str("};\n\n");
        for event in &stream.events {
            event_class(&mut out, of, index, stream.id, event);
            pass_on(&mut out, sink)?;
        }
    }
    Ok(out)
}

fn added(out: &mut String, own: &Own, clock: Option<&str>) {
    let name = own.name;
    // The UUID is the only field that is more than a number.
    if own.bits == 128 {
        let _ = writeln!(out, "        {} {name}[16];", integer(8, false, Base::Hexadecimal));
        return;
    }
    let base = if name == "magic" { Base::Hexadecimal } else { Base::Decimal };
    let class = match clock.filter(|_| own.clock) {
        Some(clock) => format!(
            "integer {{ size = {}; align = 8; signed = false; map = clock.{clock}.value; }}",
            own.bits
        ),
        None => integer(own.bits, false, base),
    };
    let _ = writeln!(out, "        {class} {name};");
}

fn environment(out: &mut String, of: &Described<'_>) {
    if of.environment.is_empty() {
        return;
    }
    out.push_str("env {\n");
    for (name, value) in &of.environment {
        let _ = match value {
            EnvValue::Integer(value) => writeln!(out, "    {name} = {value};"),
            EnvValue::Text(text) => writeln!(out, "    {name} = {};", quote(text)),
        };
    }
    out.push_str("};\n\n");
}

fn clocks(out: &mut String, of: &Described<'_>) {
    for (name, clock) in of.clocks.iter().zip(&of.trace.clocks) {
        let _ = writeln!(out, "clock {{\n    name = {name};");
        if let Some(uuid) = clock.uuid {
            let _ = writeln!(out, "    uuid = \"{uuid}\";");
        }
        if !clock.description.is_empty() {
            let _ = writeln!(out, "    description = {};", quote(&clock.description));
        }
        let (seconds, ticks) = clock.offset();
        let _ = write!(
            out,
            "    freq = {};\n    precision = {};\n    offset_s = {};\n    offset = {};\n    \
             absolute = {};\n}};\n\n",
            clock.frequency(),
            clock.precision,
            seconds,
            ticks,
            if clock.unix_epoch { "TRUE" } else { "FALSE" },
        );
    }
}

fn event_class(
    out: &mut String,
    of: &Described<'_>,
    stream: usize,
    stream_id: u64,
    event: &WrittenEvent,
) {
    let class = of.class(stream, event);
    out.push_str("event {\n");
    let _ = writeln!(out, "    name = {};", quote(&class.name));
    let _ = writeln!(out, "    id = {};\n    stream_id = {stream_id};", event.id);
    let said = attributes(class);
    if let Some(level) = said.level_number {
        let _ = writeln!(out, "    loglevel = {level};");
    }
    if let Some(uri) = said.uri {
        let _ = writeln!(out, "    model.emf.uri = {};", quote(uri));
    }
    let (own, in_payload) = match event.is_context_in_payload {
        true => (None, event.context.as_ref()),
        false => (event.context.as_ref(), None),
    };
    scope(out, "context", own, None);
    scope(out, "fields", event.payload.as_ref(), in_payload);
    out.push_str("};\n\n");
}

/// One of the structures of an event; `context` comes first in it.
fn scope(out: &mut String, word: &str, node: Option<&Node>, context: Option<&Node>) {
    if node.is_none() && context.is_none() {
        return;
    }
    let _ = writeln!(out, "    {word} := struct {{");
    if let Some(context) = context {
        let name = if node.is_some() { names::CONTEXT } else { names::CONTEXT_ALONE };
        declare(out, &shown(name), context, &[], 2);
    }
    if let Some(Node::Struct { members, .. }) = node {
        fields(out, members, 2);
    }
    out.push_str("    };\n");
}

fn fields(out: &mut String, members: &[Written], depth: usize) {
    for member in members {
        declare(out, &shown(&member.name), &member.node, members, depth);
    }
}

/// The name of a field: `cpu_id` stays bare, for some readers look for that.
fn shown(name: &str) -> String {
    if name == "cpu_id" { name.to_owned() } else { format!("_{name}") }
}

fn indent(out: &mut String, depth: usize) {
    (0..depth).for_each(|_| out.push_str("    "));
}

/// A field with the one added before it.
fn declare(out: &mut String, name: &str, node: &Node, around: &[Written], depth: usize) {
    if matches!(node, Node::Skip(_)) {
        return;
    }
    if let Some(end) = node.added() {
        indent(out, depth);
        let class = match node {
            Node::Variant { options, .. } => {
                let names = options.iter().map(|option| format!("_{}", option.name));
                tags(names, tag_bytes(options.len()))
            }
            Node::Optional(_) => tags(["none", "some"].map(str::to_owned).into_iter(), 1),
            _ => integer(32, false, Base::Decimal),
        };
        let _ = writeln!(out, "{class} {name}{end};");
    }
    let mut brackets = String::new();
    let mut inner = node;
    loop {
        let (length, element) = match inner {
            Node::Array { element, length, .. } => (length, Some(&**element)),
            Node::Bytes { length, .. } => (length, None),
            _ => break,
        };
        let _ = match length {
            Length::Fixed(count) => write!(brackets, "[{count}]"),
            Length::Own => write!(brackets, "[{name}{}]", names::LENGTH),
            Length::Reused { member, .. } => {
                write!(brackets, "[{}]", shown(&around[*member].name))
            }
        };
        let Some(element) = element else { break };
        inner = element;
    }
    indent(out, depth);
    specifier(out, name, inner, around, depth);
    let _ = writeln!(out, " {name}{brackets};");
}

fn tags(names: impl Iterator<Item = String>, bytes: usize) -> String {
    let labels: Vec<String> =
        names.enumerate().map(|(index, name)| format!("{} = {index}", quote(&name))).collect();
    format!(
        "enum : {} {{ {} }}",
        integer(bytes as u32 * 8, false, Base::Decimal),
        labels.join(", ")
    )
}

/// The class of a field without its brackets.
fn specifier(out: &mut String, name: &str, node: &Node, around: &[Written], depth: usize) {
    match node {
        Node::Integer { class, signed, .. } => {
            let number = integer(class.bits, *signed, class.base);
            out.push_str(&labelled(&number, &class.labels));
        }
        Node::Bool => out.push_str(&integer(8, false, Base::Decimal)),
        Node::Bits { bits, .. } => out.push_str(&integer(*bits, false, Base::Hexadecimal)),
        Node::Real(32) => out.push_str("floating_point { exp_dig = 8; mant_dig = 24; align = 8; }"),
        Node::Real(_) => out.push_str("floating_point { exp_dig = 11; mant_dig = 53; align = 8; }"),
        Node::Text { .. } => out.push_str("string { encoding = UTF8; }"),
        Node::Bytes { .. } => out.push_str(&integer(8, false, Base::Hexadecimal)),
        Node::Struct { members, .. } => {
            out.push_str("struct {\n");
            fields(out, members, depth + 1);
            indent(out, depth);
            out.push('}');
        }
        Node::Wrapped(inner) => {
            out.push_str("struct {\n");
            declare(out, &shown(WRAPPED), inner, &[], depth + 1);
            indent(out, depth);
            out.push('}');
        }
        Node::Variant { options, tag } => {
            let own = matches!(tag, Tag::Own);
            let selector = match tag {
                Tag::Own => format!("{name}{}", names::TAG),
                Tag::Reused { member, .. } => shown(&around[*member].name),
            };
            let _ = writeln!(out, "variant <{selector}> {{");
            for option in options {
                let name = if own { format!("_{}", option.name) } else { option.name.clone() };
                declare(out, &name, &option.node, &[], depth + 1);
            }
            indent(out, depth);
            out.push('}');
        }
        Node::Optional(inner) => {
            let _ = writeln!(out, "variant <{name}{}> {{", names::PRESENT);
            indent(out, depth + 1);
            out.push_str("struct { } none;\n");
            declare(out, "some", inner, &[], depth + 1);
            indent(out, depth);
            out.push('}');
        }
        // Brackets are written after the name, and skipped fields not at all.
        Node::Array { .. } | Node::Skip(_) => {}
    }
}

fn labelled(number: &str, labels: &[Label]) -> String {
    if labels.is_empty() {
        return number.to_owned();
    }
    let mut out = format!("enum : {number} {{ ");
    let mut separator = "";
    for label in labels {
        for range in &label.ranges {
            let _ = write!(out, "{separator}{} = {}", quote(&label.name), range.low);
            if range.high != range.low {
                let _ = write!(out, " ... {}", range.high);
            }
            separator = ", ";
        }
    }
    out.push_str(" }");
    out
}

fn integer(bits: u32, signed: bool, base: Base) -> String {
    let base = match base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    };
    format!("integer {{ size = {bits}; align = 8; signed = {signed}; base = {base}; }}")
}

/// A string literal [CTF 1.8.3 §C.1.5]. Control characters are octal escapes; NUL,
/// which would end the string in readers, becomes U+FFFD.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push('\u{fffd}'),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\{:03o}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
