// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF metadata for traces with the packets and records of
//! `spec/trace-layout.md`: CTF 1.8 text and CTF 2 JSON, which describe the same
//! bytes.
//!
//! Both carry the canonical text of every schema, because CTF can say what the
//! fields are, but not what the events mean.

mod v1;
mod v2;

use crate::names;
use crate::schema::{Event, Field, Schema};
use crate::{INTERNAL_EVENT_COUNT, internal_schema};

pub use v1::ctf1;
pub use v2::ctf2;

/// Everything that the metadata of one trace says.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceDescription {
    /// UUID of the trace; also in every packet.
    pub uuid: [u8; 16],
    /// Byte order of the traced machine.
    pub byte_order: ByteOrder,
    /// The clock of all time stamps.
    pub clock: ClockDescription,
    /// Facts about the recording. Names should be identifiers; others are mangled.
    pub environment: Vec<(String, EnvValue)>,
    /// Stream classes. In each, the internal schema is at base id 0; it is added
    /// where the list does not hold it.
    pub streams: Vec<StreamClass>,
}

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// A clock: ticks, and how to make UTC of them [CTF 1.8.3 §8].
/// UTC in seconds = `offset_seconds` + (`offset_cycles` + ticks) / `frequency_hz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockDescription {
    /// Identifier, for instance `tsc`.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Ticks per second; not 0.
    pub frequency_hz: u64,
    /// Whole seconds since 1970 at tick 0.
    pub offset_seconds: i64,
    /// Further ticks; less than `frequency_hz`.
    pub offset_cycles: u64,
    /// Uncertainty of a reading in ticks.
    pub precision_cycles: u64,
    /// Identity of the clock over several traces.
    pub uuid: Option<[u8; 16]>,
    /// True if comparable with other absolute clocks.
    pub absolute: bool,
}

/// A value of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    /// A number.
    Integer(i64),
    /// A text.
    String(String),
}

/// The writer of a ring, which determines the word after `area_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// `cpu_id`
    PerCpu,
    /// `ring_id`
    PerThread,
}

/// Streams with the same events.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamClass {
    /// `stream_id` in the packet header.
    pub id: u32,
    /// Kind of the rings whose packets these are.
    pub ring_kind: RingKind,
    /// Schemas with the id of their first event. The ranges must not overlap.
    pub schemas: Vec<(u32, Schema)>,
}

impl StreamClass {
    /// The schemas by base id, the internal one among them.
    fn all_schemas(&self) -> Vec<(u32, &Schema)> {
        let mut all: Vec<(u32, &Schema)> =
            self.schemas.iter().map(|(base, schema)| (*base, schema)).collect();
        if !all.iter().any(|(base, _)| *base < INTERNAL_EVENT_COUNT) {
            all.push((0, internal_schema()));
        }
        all.sort_by_key(|(base, _)| *base);
        all
    }
}

impl TraceDescription {
    /// A description of one schema at base id 16, with a clock in nanoseconds since 1970 and a UUID
    /// made from the schema's hash: to be read, and as a template.
    pub fn of_schema(schema: &Schema, byte_order: ByteOrder) -> TraceDescription {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&schema.hash().to_be_bytes());
        uuid[8..].copy_from_slice(&schema.hash().rotate_left(32).to_be_bytes());
        // Version 8 (own making), variant 1 [RFC 9562 §5.8].
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        TraceDescription {
            uuid,
            byte_order,
            clock: ClockDescription {
                name: "monotonic".to_owned(),
                description: "nanoseconds".to_owned(),
                frequency_hz: 1_000_000_000,
                offset_seconds: 0,
                offset_cycles: 0,
                precision_cycles: 0,
                uuid: None,
                absolute: true,
            },
            environment: Vec::new(),
            streams: vec![StreamClass {
                id: 0,
                ring_kind: RingKind::PerCpu,
                schemas: vec![(INTERNAL_EVENT_COUNT, schema.clone())],
            }],
        }
    }

    /// The distinct schemas of all streams, in order of appearance, with the
    /// names under which the environment carries them.
    fn schema_texts(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for stream in &self.streams {
            for (_, schema) in stream.all_schemas() {
                let name = format!("lateralis_schema_{:016x}", schema.hash());
                if !found.iter().any(|(other, _)| *other == name) {
                    found.push((name, schema.canonical_text().to_owned()));
                }
            }
        }
        found
    }
}

/// The members of the packet context in order, with their widths in bits
/// (spec/trace-layout.md, Packet). `cpu_id` is `ring_id` in rings of threads.
const PACKET_CONTEXT: [(&str, u32); 15] = [
    ("timestamp_begin", 64),
    ("timestamp_end", 64),
    ("content_size", 64),
    ("packet_size", 64),
    ("packet_seq_num", 64),
    ("events_discarded", 64),
    ("lost_full", 64),
    ("lost_too_big", 64),
    ("lost_contended", 64),
    ("lost_no_ring", 64),
    ("area_id", 64),
    ("cpu_id", 32),
    ("checksum", 32),
    ("ring_flags", 32),
    ("ring_sequence", 32),
];

fn context_member(name: &'static str, kind: RingKind) -> &'static str {
    if name == "cpu_id" && kind == RingKind::PerThread { "ring_id" } else { name }
}

/// The names of an event's fields in CTF: letters, digits, `_`.
fn field_name(field: &Field) -> String {
    names::mangle(&field.name)
}

/// The name of the length of a sequence.
fn length_name(field: &Field) -> String {
    format!("_{}_length", field_name(field))
}

/// Event classes of a stream class: id, schema, event.
fn events(stream: &StreamClass) -> Vec<(u32, &Schema, &Event)> {
    let mut found = Vec::new();
    for (base, schema) in stream.all_schemas() {
        found.extend(schema.events.iter().map(|event| (base + event.index, schema, event)));
    }
    found
}

/// `f81d4fae-7dec-11d0-a765-00a0c91e6bf6` [RFC 9562 §4].
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut out = String::new();
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// A number's base for display, from its annotations.
fn base(field: &Field) -> u32 {
    use crate::schema::Annotation;
    if field.has(Annotation::Hex) || field.has(Annotation::Symbol) {
        16
    } else if field.has(Annotation::Oct) {
        8
    } else if field.has(Annotation::Bin) {
        2
    } else {
        10
    }
}
