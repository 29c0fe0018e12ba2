// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF 1.8 metadata: the Trace Stream Description Language [CTF 1.8.3 §7].
//!
//! Payload fields have a leading `_` in their names, which readers remove [CTF 1.8.3 §7.3.1], so
//! that a field can be called `event` or `string`.

use super::{
    ByteOrder, EnvValue, PACKET_CONTEXT, TraceDescription, base, context_member, events,
    field_name, length_name, uuid_text,
};
use crate::names;
use crate::schema::{Event, Field, FieldType, Integer, Scalar, Schema};
use std::fmt::Write;

/// The metadata file of a trace in CTF 1.8. Cost: O(size of the schemas), allocates.
pub fn ctf1(trace: &TraceDescription) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    let byte_order = match trace.byte_order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    };
    let _ = write!(
        out,
        "trace {{\n    major = 1;\n    minor = 8;\n    uuid = \"{}\";\n    \
         byte_order = {byte_order};\n    packet.header := struct {{\n        {} magic;\n        \
         {} uuid[16];\n        {} stream_id;\n    }};\n}};\n\n",
        uuid_text(&trace.uuid),
        unsigned(32, 32, 16),
        unsigned(8, 8, 10),
        unsigned(32, 32, 10),
    );
    environment(&mut out, trace);
    clock(&mut out, trace);
    let clock_name = names::mangle(&trace.clock.name);
    for stream in &trace.streams {
        let _ = writeln!(out, "stream {{\n    id = {};", stream.id);
        let _ = write!(
            out,
            "    event.header := struct {{\n        {} id;\n        {} timestamp;\n    }} \
             align(64);\n    packet.context := struct {{\n",
            unsigned(16, 64, 10),
            mapped(48, 8, &clock_name),
        );
        for (name, bits) in PACKET_CONTEXT {
            let ty = match name {
                "timestamp_begin" | "timestamp_end" => mapped(bits, bits, &clock_name),
                "area_id" | "checksum" => unsigned(bits, bits, 16),
                _ => unsigned(bits, bits, 10),
            };
            let _ = writeln!(out, "        {ty} {};", context_member(name, stream.ring_kind));
        }
        out.push_str("    };\n};\n\n");
        for (id, schema, event) in events(stream) {
            event_class(&mut out, id, stream.id, schema, event);
        }
    }
    out
}

fn environment(out: &mut String, trace: &TraceDescription) {
    out.push_str("env {\n");
    for (name, value) in &trace.environment {
        let name = names::mangle(name);
        let _ = match value {
            EnvValue::Integer(value) => writeln!(out, "    {name} = {value};"),
            EnvValue::String(text) => writeln!(out, "    {name} = {};", quote(text)),
        };
    }
    for (name, text) in trace.schema_texts() {
        let _ = writeln!(out, "    {name} = {};", quote(&text));
    }
    out.push_str("};\n\n");
}

fn clock(out: &mut String, trace: &TraceDescription) {
    let clock = &trace.clock;
    let _ = writeln!(out, "clock {{\n    name = {};", names::mangle(&clock.name));
    if let Some(uuid) = &clock.uuid {
        let _ = writeln!(out, "    uuid = \"{}\";", uuid_text(uuid));
    }
    let _ = write!(
        out,
        "    description = {};\n    freq = {};\n    precision = {};\n    offset_s = {};\n    \
         offset = {};\n    absolute = {};\n}};\n\n",
        quote(&clock.description),
        clock.frequency_hz.max(1),
        clock.precision_cycles,
        clock.offset_seconds,
        clock.offset_cycles,
        if clock.absolute { "TRUE" } else { "FALSE" },
    );
}

fn event_class(out: &mut String, id: u32, stream_id: u32, schema: &Schema, event: &Event) {
    let _ = write!(
        out,
        "event {{\n    name = {};\n    id = {id};\n    stream_id = {stream_id};\n    \
         fields := struct {{\n",
        quote(&schema.full_name(event)),
    );
    for field in &event.fields {
        let name = format!("_{}", field_name(field));
        let base = base(field);
        let _ = match field.ty {
            FieldType::Scalar(ty) => writeln!(out, "        {} {name};", scalar(schema, ty, base)),
            FieldType::Array { element, length } => {
                writeln!(out, "        {} {name}[{length}];", scalar(schema, element, base))
            }
            FieldType::Sequence(element) => {
                sequence(out, field, &name, &scalar(schema, element, base))
            }
            FieldType::String => writeln!(out, "        string {{ encoding = UTF8; }} {name};"),
            FieldType::Bytes => sequence(out, field, &name, &unsigned(8, 8, 16)),
        };
    }
    out.push_str("    };\n};\n\n");
}

fn sequence(out: &mut String, field: &Field, name: &str, element: &str) -> std::fmt::Result {
    let length = format!("_{}", length_name(field));
    writeln!(out, "        {} {length};", unsigned(32, 32, 10))?;
    writeln!(out, "        {element} {name}[{length}];")
}

fn unsigned(bits: u32, align: u32, base: u32) -> String {
    format!("integer {{ size = {bits}; align = {align}; signed = false; base = {base}; }}")
}

fn mapped(bits: u32, align: u32, clock: &str) -> String {
    format!(
        "integer {{ size = {bits}; align = {align}; signed = false; map = clock.{clock}.value; }}"
    )
}

fn integer(integer: Integer, base: u32) -> String {
    let bits = integer.size_bytes() * 8;
    let signed = integer.is_signed();
    format!("integer {{ size = {bits}; align = {bits}; signed = {signed}; base = {base}; }}")
}

fn scalar(schema: &Schema, ty: Scalar, base: u32) -> String {
    match ty {
        Scalar::Integer(ty) => integer(ty, base),
        Scalar::Bool => unsigned(8, 8, 10),
        // Significand with its implied bit, exponent [CTF 1.8.3 §4.1.7].
        Scalar::F32 => "floating_point { exp_dig = 8; mant_dig = 24; align = 32; }".to_owned(),
        Scalar::F64 => "floating_point { exp_dig = 11; mant_dig = 53; align = 64; }".to_owned(),
        Scalar::Enum { index, container } => {
            let labels: Vec<String> = schema.enums[index]
                .labels
                .iter()
                .map(|(label, value)| format!("{} = {value}", quote(label)))
                .collect();
            format!("enum : {} {{ {} }}", integer(container, 10), labels.join(", "))
        }
    }
}

/// A string literal [CTF 1.8.3 appendix C]. What is not printable ASCII becomes
/// an octal escape of its UTF-8 bytes; NUL, which would end the string in
/// readers, becomes U+FFFD.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            '\0' => out.push('\u{fffd}'),
            c if c.is_ascii() => {
                let _ = write!(out, "\\{:03o}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
