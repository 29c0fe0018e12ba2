// SPDX-License-Identifier: Apache-2.0 OR MIT
//! List of available outputs.

use serde_json::{Value, json};

use super::{Asked, Refusal};

/// Id, name, type and description. Viewers find the output for their overview by the name of the
/// second one.
const OUTPUTS: [[&str; 4]; 7] = [
    [
        "timeline",
        "Timeline",
        "TIME_GRAPH",
        "Who ran, events, spans and states of each lane; messages",
    ],
    ["histogram", "Histogram", "TREE_TIME_XY", "How many events happened when"],
    ["cpu-usage", "CPU Usage", "TREE_TIME_XY", "Share of its time that each processor was busy"],
    ["counters", "Counters", "TREE_TIME_XY", "What each counter did"],
    ["events", "Events Table", "TABLE", "All events in the order of time"],
    ["span-statistics", "Span Statistics", "DATA_TREE", "How long spans of each kind took"],
    [
        "event-statistics",
        "Event Statistics",
        "DATA_TREE",
        "How many events of each class there are",
    ],
];

/// Whether the session has data for an output.
fn is_there(asked: &Asked<'_>, id: &str) -> bool {
    match id {
        "cpu-usage" => {
            let runs = |lane: &Value| {
                let mut rows = lane["rows"].as_array().into_iter().flatten();
                lane["kind"] == "cpu" && rows.any(|row| row["kind"] == "running")
            };
            asked.list("lanes").iter().any(runs)
        }
        "counters" => !asked.list("counters").is_empty(),
        "span-statistics" => !asked.list("span_kinds").is_empty(),
        _ => OUTPUTS.iter().any(|[known, ..]| *known == id),
    }
}

fn descriptor(asked: &Asked<'_>, [id, name, kind, description]: [&str; 4]) -> Value {
    json!({
        "id": id, "name": name, "type": kind, "description": description,
        "start": asked.begin(), "end": asked.end(), "final": asked.open["is_live"] != true,
    })
}

/// Describes all outputs.
pub fn all(asked: &Asked<'_>) -> Value {
    let there = OUTPUTS.into_iter().filter(|[id, ..]| is_there(asked, id));
    there.map(|output| descriptor(asked, output)).collect()
}

/// Describes one output.
pub fn one(asked: &Asked<'_>, id: &str) -> Result<Value, Refusal> {
    let found = OUTPUTS.into_iter().find(|[known, ..]| *known == id && is_there(asked, id));
    found.map(|output| descriptor(asked, output)).ok_or_else(|| missing(id))
}

/// Checks that an output exists.
pub fn is_known(asked: &Asked<'_>, id: &str) -> Result<(), Refusal> {
    one(asked, id).map(drop)
}

/// Error for an output that does not exist.
pub fn missing(id: &str) -> Refusal {
    Refusal::not_found("no such output", id)
}
