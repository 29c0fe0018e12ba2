// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every number that a consumer reports for a trace, with its quality.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::place::Place;

/// A number and its quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub value: f64,
    pub quality: String,
}

/// Numbers by their path in the output.
pub type Numbers = BTreeMap<String, Number>;

/// Members that identify the subject of a row.
const NAMES: [&str; 26] = [
    "name",
    "call",
    "layer",
    "event",
    "span",
    "channel",
    "machine",
    "state",
    "counter",
    "key",
    "pid",
    "tid",
    "cpu",
    "from_cpu",
    "to_cpu",
    "woken_by",
    "waker_tid",
    "begin_ns",
    "stream",
    "cause",
    "from_ns",
    "open_least",
    "unit",
    "subsystem",
    "text",
    "open_most",
];

/// Numbers that identify or locate something and measure nothing.
const PLAIN: [&str; 14] = [
    "end_ns",
    "bucket_ns",
    "longest_wait_begin_ns",
    "longest_wait_cpu",
    "ran_instead_tid",
    "longest_silence_begin_ns",
    "shortest_silence_told_ns",
    "first_ns",
    "last_ns",
    "to_ns",
    "clock_error_ns",
    // Missing and contradictory events are reported for the recording as a whole.
    "missing_switches",
    "missing_returns",
    "touched_by_losses",
];

/// Sections that concern the recording as a whole.
const OF_THE_RECORDING: [&str; 4] = ["losses", "damage", "problems", "contradictions"];

fn name_of(row: &Map<String, Value>) -> String {
    let named = NAMES.iter().filter_map(|name| {
        let value = row.get(*name).filter(|value| !value.is_null())?;
        (value.is_string() || value.is_number()).then(|| format!("{name}={value}"))
    });
    named.collect::<Vec<_>>().join(",")
}

fn collect(value: &Value, path: &str, found: &mut Numbers) {
    match value {
        Value::Array(rows) => {
            for (index, row) in rows.iter().enumerate() {
                let name = match row {
                    Value::Object(members) => name_of(members),
                    _ => String::new(),
                };
                let name = if name.is_empty() { index.to_string() } else { name };
                collect(row, &format!("{path}[{name}]"), found);
            }
        }
        Value::Object(members) => {
            let marks = members.get("not_exact").and_then(Value::as_object);
            for (name, member) in members {
                let is_plain = NAMES.contains(&name.as_str()) || PLAIN.contains(&name.as_str());
                if is_plain || name == "not_exact" || OF_THE_RECORDING.contains(&name.as_str()) {
                    continue;
                }
                let quality = marks.and_then(|marks| marks.get(name)?.as_str());
                let path = format!("{path}.{name}");
                match (member.as_f64(), marks) {
                    (Some(value), Some(_)) => {
                        let quality = quality.unwrap_or("exact").to_owned();
                        found.insert(path, Number { value, quality });
                    }
                    // If a whole is not exact, neither are its parts.
                    _ if quality.is_none() => collect(member, &path, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Returns the numbers of `lat stats`.
pub fn of_stats(place: &Place, trace: &str) -> Numbers {
    let mut found = Numbers::new();
    collect(&place.json(&["stats", trace, "--json"]), "stats", &mut found);
    found
}

/// Tables with the column that is measured and the columns that identify a row.
const TABLES: [(&str, &str, &[&str]); 9] = [
    ("spans", "duration", &["span", "key", "tid", "ts"]),
    ("messages", "latency", &["channel", "key", "tid", "ts"]),
    ("states", "duration", &["machine", "state", "owner", "tid", "ts"]),
    ("thread_states", "duration", &["state", "tid", "ts"]),
    ("calls", "duration", &["call", "tid", "ts"]),
    ("classes", "count", &["class"]),
    ("threads", "events", &["tid"]),
    ("cpus", "events", &["cpu"]),
    ("applications", "events", &["pid"]),
];

/// Returns the numbers of `lat table`.
pub fn of_tables(place: &Place, trace: &str) -> Numbers {
    let mut found = Numbers::new();
    for (table, measure, names) in TABLES {
        let file = format!("{trace}-{table}.jsonl");
        place.json(&["table", trace, "--name", table, "-o", &file, "--json"]);
        let text = std::fs::read_to_string(place.0.join(&file)).expect("rows");
        for line in text.lines() {
            let row: Map<String, Value> = serde_json::from_str(line).expect("a row");
            let Some(value) = row.get(measure).and_then(Value::as_f64) else { continue };
            let quality = row["quality"].as_str().expect("a quality").to_owned();
            let named: Vec<String> = names
                .iter()
                .filter_map(|name| Some(format!("{name}={}", row.get(*name)?)))
                .collect();
            let path = format!("{table}[{}]", named.join(","));
            // Several can begin in one nanosecond: one of them has this length.
            if quality == "exact" {
                let quality = quality.clone();
                found.insert(format!("{path} {value}"), Number { value, quality });
            }
            if quality != "unknown" {
                let quality = "lower_bound".to_owned();
                let least = found.entry(format!("{path} ≥")).or_insert(Number { value, quality });
                least.value = least.value.max(value);
            }
        }
    }
    found
}
