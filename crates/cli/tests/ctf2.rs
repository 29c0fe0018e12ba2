// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata fragments for CTF 2 traces written by tests, and rows of tables printed by `lat`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::place::Place;

/// Role of a field that contains the time of its event or packet.
pub const TIME: Option<&str> = Some("default-clock-timestamp");

/// Returns the class of an unsigned integer, with an optional role.
pub fn number(bits: u32, role: Option<&str>) -> Value {
    let mut class = json!({
        "type": "fixed-length-unsigned-integer", "length": bits,
        "byte-order": "little-endian", "alignment": 8,
    });
    if let Some(role) = role {
        class["roles"] = json!([role]);
    }
    class
}

/// Returns the class of a structure.
pub fn structure(members: &[(&str, Value)]) -> Value {
    let member = |(name, class): &(&str, Value)| json!({ "name": name, "field-class": class });
    json!({ "type": "structure", "member-classes": members.iter().map(member).collect::<Vec<_>>() })
}

/// Returns the fragments that precede the streams: a clock in nanoseconds from the origin, and a trace class
/// with these packet header fields.
pub fn beginning(header: &[(&str, Value)]) -> Vec<Value> {
    vec![
        json!({ "type": "preamble", "version": 2 }),
        json!({
            "type": "clock-class", "id": "c", "name": "c", "frequency": 1_000_000_000,
            "offset-from-origin": { "seconds": 0, "cycles": 0 },
        }),
        json!({ "type": "trace-class", "packet-header-field-class": structure(header) }),
    ]
}

/// Returns the header field that contains the number of the stream class.
pub fn stream_id() -> (&'static str, Value) {
    ("stream_id", number(32, Some("data-stream-class-id")))
}

/// Returns a stream class whose events have an id and a time, with optional packet context and event context.
pub fn stream(id: u32, packet: &[(&str, Value)], event: &[(&str, Value)]) -> Value {
    let mut class = json!({
        "type": "data-stream-class", "id": id, "default-clock-class-id": "c",
        "event-record-header-field-class":
            structure(&[("id", number(32, Some("event-record-class-id"))), ("t", number(64, TIME))]),
    });
    if !packet.is_empty() {
        class["packet-context-field-class"] = structure(packet);
    }
    if !event.is_empty() {
        class["event-record-common-context-field-class"] = structure(event);
    }
    class
}

/// Returns an event class with 64-bit fields, and with its clause unless that is empty.
pub fn event(stream: u32, id: usize, name: &str, clause: &str, fields: &[&str]) -> Value {
    let fields: Vec<(&str, Value)> = fields.iter().map(|name| (*name, number(64, None))).collect();
    let mut class = json!({
        "type": "event-record-class", "id": id, "data-stream-class-id": stream, "name": name,
        "payload-field-class": structure(&fields),
    });
    if !clause.is_empty() {
        class["attributes"] = json!({ "lateralis": { "clauses": [clause] } });
    }
    class
}

/// Returns the text of a metadata file.
pub fn text(fragments: &[Value]) -> String {
    fragments.iter().map(|fragment| format!("\u{1e}{fragment}\n")).collect()
}

/// A row of a table, by column.
pub type Row = BTreeMap<String, String>;

/// Returns the rows of a table of traces.
pub fn table(place: &Place, traces: &[&str], name: &str) -> Vec<Row> {
    let output = place.lat(&[&["table"], traces, &["--name", name]].concat());
    csv(&String::from_utf8(output.stdout).expect("CSV"))
}

/// Parses the rows of CSV without quoted cells.
pub fn csv(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        let cells = names.iter().zip(line.split(','));
        cells.map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}
