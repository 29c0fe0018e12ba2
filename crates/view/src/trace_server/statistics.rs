// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics as tables, of a time range if requested.

use serde_json::{Value, json};

use super::query::Query;
use super::{Asked, Refusal, outputs, styles};

/// Columns of spans: heading, key of `stats`, data type.
const SPANS: [[&str; 3]; 10] = [
    ["Count", "count", "NUMBER"],
    ["Total", "total", "DURATION"],
    ["Mean", "mean", "DURATION"],
    ["Minimum", "min", "DURATION"],
    ["Median", "p50", "DURATION"],
    ["p90", "p90", "DURATION"],
    ["p99", "p99", "DURATION"],
    ["p99.9", "p999", "DURATION"],
    ["Maximum", "max", "DURATION"],
    ["Quality", "quality", "STRING"],
];

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => format!("{}", float.round()),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn header([name, _, kind]: [&str; 3]) -> Value {
    json!({ "name": name, "tooltip": "", "dataType": kind })
}

/// The table of an output.
pub fn tree(asked: &Asked<'_>, output: &str, query: &Query) -> Result<Value, Refusal> {
    outputs::is_known(asked, output)?;
    let end = query.end.saturating_add(1);
    let stats = asked.json("stats", json!({ "t0": query.begin, "t1": end }))?;
    let list = |name: &str| stats[name].as_array().cloned().unwrap_or_default();
    let (headers, rows): (Vec<Value>, Vec<Vec<String>>) = match output {
        "span-statistics" => {
            let rows = list("spans").into_iter().map(|span| {
                let cells = SPANS.iter().map(|[_, key, _]| text(&span[*key]));
                [text(&span["name"])].into_iter().chain(cells).collect()
            });
            (SPANS.into_iter().map(header).collect(), rows.collect())
        }
        "event-statistics" => {
            let rows = list("classes").into_iter().map(|class| {
                let id = class["id"].as_u64().unwrap_or(0) as usize;
                vec![
                    styles::name(asked, "classes", id),
                    text(&class["count"]),
                    text(&class["quality"]),
                ]
            });
            let headers = [["Count", "", "NUMBER"], ["Quality", "", "STRING"]];
            (headers.into_iter().map(header).collect(), rows.collect())
        }
        _ => return Err(outputs::missing(output)),
    };
    let entries = rows
        .into_iter()
        .enumerate()
        .map(|(id, labels)| json!({ "id": id, "parentId": -1, "labels": labels, "hasData": true }));
    let headers: Vec<Value> = [header(["Name", "", "STRING"])].into_iter().chain(headers).collect();
    Ok(json!({ "entries": entries.collect::<Vec<_>>(), "headers": headers, "autoExpandLevel": -1 }))
}
