// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header and the JSON of the original tool (seed 000 §2.3; the tool's later
//! JSON differs from the tech note's, so there are two).
//!
//! Names and two-level ids only: what the superset adds does not appear. In
//! names, `'` is mangled as everywhere (the original put it into macros, which no
//! preprocessor accepts).

use crate::json::{Json, write_string};
use crate::names::upper;
use crate::schema::{Event, Schema};
use std::fmt::Write;

/// Pseudo subsystems that the original tool adds for its viewer: message passing,
/// as 16-bit signed numbers of 0xEA00 and 0xEB00.
const PSEUDO_SUBSYSTEMS: [(&str, &str); 2] = [("-5632", "ump send"), ("-5376", "ump receive")];

/// The header of the original tool. `stem` is the stem of the header's file name,
/// from which the include guard is made.
pub fn legacy_header(schema: &Schema, stem: &str) -> String {
    let guard = format!("{}_BARRELFISH__", upper(&stem.replace(['.', '-', ' '], "_")));
    let macros = macros(schema);
    format!("#ifndef {guard}\n#define {guard}\n\n{macros}\n#endif // {guard}\n")
}

/// The macros for subsystems and events, a blank line after each subsystem.
pub(super) fn macros(schema: &Schema) -> String {
    let mut out = String::new();
    for subsystem in &schema.subsystems {
        let name = upper(&subsystem.name);
        let _ = writeln!(out, "#define TRACE_SUBSYS_{name} {}", subsystem.id);
        for event in &schema.events[subsystem.events.clone()] {
            let _ = writeln!(out, "#define TRACE_EVENT_{name}_{} {}", upper(&event.name), event.id);
        }
        out.push('\n');
    }
    let count = schema.subsystems.iter().map(|subsystem| u32::from(subsystem.id) + 1).max();
    let _ = writeln!(out, "#define TRACE_NUM_SUBSYSTEMS {}", count.unwrap_or(0));
    out
}

/// The description, or the name where there is none.
fn label(event: &Event) -> &str {
    if event.description.is_empty() { &event.name } else { &event.description }
}

/// The JSON of the tool as it was last: ids as strings, name and label of each
/// event, and two pseudo subsystems without events.
pub fn legacy_json(schema: &Schema) -> String {
    let mut members: Vec<(String, Json)> = Vec::new();
    for subsystem in &schema.subsystems {
        let events = schema.events[subsystem.events.clone()].iter().map(|event| {
            let texts = vec![Json::string(&event.name), Json::string(label(event))];
            (event.id.to_string(), Json::Array(texts))
        });
        let value = Json::object([
            ("name", Json::string(&subsystem.name)),
            ("events", Json::Object(events.collect())),
        ]);
        members.push((subsystem.id.to_string(), value));
    }
    for (id, name) in PSEUDO_SUBSYSTEMS {
        let value =
            Json::object([("name", Json::string(name)), ("events", Json::Object(Vec::new()))]);
        members.push((id.to_owned(), value));
    }
    Json::Object(members).pretty()
}

/// The form of the tech note's listing 2.3: ids without quotes (so it is not JSON
/// in the strict sense), only the label of each event.
pub fn legacy_note_json(schema: &Schema) -> String {
    let mut out = String::from("{\n");
    for (i, subsystem) in schema.subsystems.iter().enumerate() {
        let _ = write!(out, "{} : {{\n  \"name\" : ", subsystem.id);
        write_string(&mut out, &subsystem.name);
        out.push_str(",\n  \"events\" : {\n");
        let events = &schema.events[subsystem.events.clone()];
        for (j, event) in events.iter().enumerate() {
            let _ = write!(out, "    {} : ", event.id);
            write_string(&mut out, label(event));
            out.push_str(if j + 1 < events.len() { ",\n" } else { "\n" });
        }
        let is_last = i + 1 == schema.subsystems.len();
        out.push_str(if is_last { "  }\n}\n" } else { "  }\n},\n" });
    }
    out.push_str("}\n");
    out
}
