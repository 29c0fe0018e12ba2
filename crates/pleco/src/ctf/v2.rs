// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF 2 metadata: a JSON text sequence [CTF2-SPEC-2.0 §5, RFC 7464] of fragments.
//! Describes the same bytes as [`ctf1`](super::ctf1), and in attributes under the
//! namespace `lateralis` what CTF cannot say.

use super::{
    ByteOrder, EnvValue, PACKET_CONTEXT, StreamClass, TraceDescription, base, context_member,
    events, field_name, length_name, uuid_text,
};
use crate::canonical::clause_text;
use crate::json::Json;
use crate::names;
use crate::schema::{Event, Field, FieldType, Integer, Scalar, Schema};

/// Namespace of our attributes.
const NAMESPACE: &str = "lateralis";

/// The metadata file of a trace in CTF 2. Cost: O(size of the schemas), allocates.
pub fn ctf2(trace: &TraceDescription) -> String {
    let order = match trace.byte_order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
    };
    let mut fragments = vec![preamble(trace), trace_class(trace, order), clock_class(trace)];
    for stream in &trace.streams {
        fragments.push(stream_class(stream, trace, order));
        for (id, schema, event) in events(stream) {
            fragments.push(event_class(id, stream.id, schema, event, order));
        }
    }
    // A record separator before each text, a line feed after it [RFC 7464 §2.2].
    fragments.iter().map(|fragment| format!("\u{1e}{}\n", fragment.compact())).collect()
}

fn uuid_json(uuid: &[u8; 16]) -> Json {
    Json::Array(uuid.iter().map(|byte| Json::Integer((*byte).into())).collect())
}

/// `"attributes": {"lateralis": value}`
fn attributes(value: Json) -> Json {
    Json::object([(NAMESPACE, value)])
}

fn preamble(trace: &TraceDescription) -> Json {
    Json::object([
        ("type", Json::string("preamble")),
        ("version", Json::Integer(2)),
        ("uuid", uuid_json(&trace.uuid)),
    ])
}

fn trace_class(trace: &TraceDescription, order: &str) -> Json {
    let environment = trace.environment.iter().map(|(name, value)| {
        let value = match value {
            EnvValue::Integer(value) => Json::Integer((*value).into()),
            EnvValue::String(text) => Json::string(text),
        };
        (names::mangle(name), value)
    });
    let texts = trace.schema_texts().into_iter();
    let environment =
        environment.chain(texts.map(|(name, text)| (name, Json::String(text)))).collect();
    let uuid = Json::object([
        ("type", Json::string("static-length-blob")),
        ("length", Json::Integer(16)),
        ("roles", roles("metadata-stream-uuid")),
    ]);
    let header = structure(
        vec![
            (
                "magic".to_owned(),
                unsigned(32, 32, 16, order).with("roles", roles("packet-magic-number")),
            ),
            ("uuid".to_owned(), uuid),
            (
                "stream_id".to_owned(),
                unsigned(32, 32, 10, order).with("roles", roles("data-stream-class-id")),
            ),
        ],
        None,
    );
    Json::object([
        ("type", Json::string("trace-class")),
        ("uid", Json::String(uuid_text(&trace.uuid))),
        ("environment", Json::Object(environment)),
        ("packet-header-field-class", header),
    ])
}

fn clock_class(trace: &TraceDescription) -> Json {
    let clock = &trace.clock;
    let mut out = Json::object([
        ("type", Json::string("clock-class")),
        ("id", Json::String(names::mangle(&clock.name))),
        ("name", Json::string(&clock.name)),
        ("description", Json::string(&clock.description)),
        ("frequency", Json::Integer(clock.frequency_hz.max(1).into())),
        ("precision", Json::Integer(clock.precision_cycles.into())),
        (
            "offset-from-origin",
            Json::object([
                ("seconds", Json::Integer(clock.offset_seconds.into())),
                ("cycles", Json::Integer(clock.offset_cycles.into())),
            ]),
        ),
    ]);
    if let Some(uuid) = &clock.uuid {
        out = out.with("uid", Json::String(uuid_text(uuid)));
    }
    if clock.absolute {
        out = out.with("origin", Json::string("unix-epoch"));
    }
    out
}

fn stream_class(stream: &StreamClass, trace: &TraceDescription, order: &str) -> Json {
    let header = structure(
        vec![
            (
                "id".to_owned(),
                unsigned(16, 64, 10, order).with("roles", roles("event-record-class-id")),
            ),
            (
                "timestamp".to_owned(),
                unsigned(48, 8, 10, order).with("roles", roles("default-clock-timestamp")),
            ),
        ],
        Some(64),
    );
    let mut context = Vec::new();
    for (name, bits) in PACKET_CONTEXT {
        let base = if matches!(name, "area_id" | "checksum") { 16 } else { 10 };
        let mut class = unsigned(bits, bits, base, order);
        let role = match name {
            "timestamp_begin" => Some("default-clock-timestamp"),
            "timestamp_end" => Some("packet-end-default-clock-timestamp"),
            "content_size" => Some("packet-content-length"),
            "packet_size" => Some("packet-total-length"),
            "packet_seq_num" => Some("packet-sequence-number"),
            "events_discarded" => Some("discarded-event-record-counter-snapshot"),
            _ => None,
        };
        if let Some(role) = role {
            class = class.with("roles", roles(role));
        }
        context.push((context_member(name, stream.ring_kind).to_owned(), class));
    }
    Json::object([
        ("type", Json::string("data-stream-class")),
        ("id", Json::Integer(stream.id.into())),
        ("default-clock-class-id", Json::String(names::mangle(&trace.clock.name))),
        ("event-record-header-field-class", header),
        ("packet-context-field-class", structure(context, None)),
    ])
}

fn event_class(id: u32, stream_id: u32, schema: &Schema, event: &Event, order: &str) -> Json {
    let mut members = Vec::new();
    for field in &event.fields {
        let is_sequence = matches!(field.ty, FieldType::Sequence(_) | FieldType::Bytes);
        if is_sequence {
            members.push((length_name(field), unsigned(32, 32, 10, order)));
        }
        let mut class = field_class(schema, field, order);
        if !field.annotations.is_empty() {
            let words = field.annotations.iter().map(|annotation| Json::string(annotation.word()));
            let says = Json::object([("annotations", Json::Array(words.collect()))]);
            class = class.with("attributes", attributes(says));
        }
        members.push((field_name(field), class));
    }
    let clauses = event.clauses.iter().map(|clause| Json::String(clause_text(clause, event)));
    let says = Json::object([
        ("schema", Json::String(format!("{:016x}", schema.hash()))),
        ("subsystem", Json::string(&schema.subsystems[event.subsystem].name)),
        ("event", Json::string(&event.name)),
        ("description", Json::string(&event.description)),
        ("is-format", Json::Bool(event.is_format)),
        ("clauses", Json::Array(clauses.collect())),
    ]);
    Json::object([
        ("type", Json::string("event-record-class")),
        ("id", Json::Integer(id.into())),
        ("data-stream-class-id", Json::Integer(stream_id.into())),
        ("name", Json::String(schema.full_name(event))),
        ("payload-field-class", structure(members, None)),
        ("attributes", attributes(says)),
    ])
}

fn field_class(schema: &Schema, field: &Field, order: &str) -> Json {
    let base = base(field);
    let location = || {
        Json::object([
            ("origin", Json::string("event-record-payload")),
            ("path", Json::Array(vec![Json::String(length_name(field))])),
        ])
    };
    match field.ty {
        FieldType::Scalar(ty) => scalar(schema, ty, base, order),
        FieldType::Array { element, length } => Json::object([
            ("type", Json::string("static-length-array")),
            ("length", Json::Integer(length.into())),
            ("element-field-class", scalar(schema, element, base, order)),
        ]),
        FieldType::Sequence(element) => Json::object([
            ("type", Json::string("dynamic-length-array")),
            ("length-field-location", location()),
            ("element-field-class", scalar(schema, element, base, order)),
        ]),
        FieldType::String => Json::object([("type", Json::string("null-terminated-string"))]),
        FieldType::Bytes => Json::object([
            ("type", Json::string("dynamic-length-blob")),
            ("length-field-location", location()),
        ]),
    }
}

fn scalar(schema: &Schema, ty: Scalar, base: u32, order: &str) -> Json {
    match ty {
        Scalar::Integer(ty) => integer(ty, base, order),
        Scalar::Bool => bits("fixed-length-boolean", 8, 8, order),
        Scalar::F32 => bits("fixed-length-floating-point-number", 32, 32, order),
        Scalar::F64 => bits("fixed-length-floating-point-number", 64, 64, order),
        Scalar::Enum { index, container } => {
            let mappings = schema.enums[index].labels.iter().map(|(label, value)| {
                let value = Json::Integer(*value);
                (label.clone(), Json::Array(vec![Json::Array(vec![value.clone(), value])]))
            });
            integer(container, 10, order).with("mappings", Json::Object(mappings.collect()))
        }
    }
}

fn integer(ty: Integer, base: u32, order: &str) -> Json {
    let length = ty.size_bytes() * 8;
    if ty.is_signed() {
        let class = bits("fixed-length-signed-integer", length, length, order);
        return with_base(class, base);
    }
    unsigned(length, length, base, order)
}

fn unsigned(length: u32, alignment: u32, base: u32, order: &str) -> Json {
    with_base(bits("fixed-length-unsigned-integer", length, alignment, order), base)
}

/// Base 10 is what a reader assumes.
fn with_base(class: Json, base: u32) -> Json {
    if base == 10 {
        return class;
    }
    class.with("preferred-display-base", Json::Integer(base.into()))
}

fn bits(ty: &str, length: u32, alignment: u32, order: &str) -> Json {
    Json::object([
        ("type", Json::string(ty)),
        ("length", Json::Integer(length.into())),
        ("byte-order", Json::string(order)),
        ("alignment", Json::Integer(alignment.into())),
    ])
}

fn roles(role: &str) -> Json {
    Json::Array(vec![Json::string(role)])
}

fn structure(members: Vec<(String, Json)>, minimum_alignment: Option<i128>) -> Json {
    let members = members
        .into_iter()
        .map(|(name, class)| Json::object([("name", Json::String(name)), ("field-class", class)]))
        .collect();
    let mut class = Json::object([
        ("type", Json::string("structure")),
        ("member-classes", Json::Array(members)),
    ]);
    if let Some(alignment) = minimum_alignment {
        class = class.with("minimum-alignment", Json::Integer(alignment));
    }
    class
}
