// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracepoints, event fields and table names, each compared with another command.

use serde_json::{Value, json};

use super::client::Viewer;
use super::{demo, printed};
use crate::place::Place;
use crate::place::genode::{Thread, checkpoint};

#[test]
fn tracepoints_are_those_of_lat_tracepoints() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let told = page.ask("tracepoints", json!({ "filter": 0 }));
    let expected = place.json(&["tracepoints", "--json", "demo"]);
    let rows = expected["tracepoints"].as_array().expect("tracepoints");
    assert!(!rows.is_empty());
    let told_rows = told["rows"].as_array().unwrap();
    let counted = told_rows.iter().filter(|row| !row["cycles"].is_null()).count();
    assert_eq!(counted, rows.len());
    for row in rows {
        let is_it = |told: &&Value| told["name"] == row["name"] && told["key"] == row["key"];
        let told = told_rows.iter().find(is_it).unwrap_or_else(|| panic!("no {row}"));
        assert_eq!(told["quality"], row["quality"]);
        assert_eq!(told["cycles"]["count"], row["count"]);
        for part in ["min", "max", "mean", "median", "stddev"] {
            let expected = row[format!("{part}_cycles")].as_f64();
            assert_eq!(told["cycles"][part].as_f64(), expected, "{part} of {row}");
        }
    }
    // A script filter gives the same result as the equivalent selection on the command line, also in a time
    // range.
    let text = r#"filter("most orders", event => event.fields.id >= 9);"#;
    let script = page.ask("script", json!({ "name": "most", "text": text }))["script"].take();
    let most = page.ask("filter", json!({ "scripts": [script] }))["filter"].take();
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let half = lines[lines.len() / 2]["time_ns"].as_i64().unwrap() - origin;
    let at =
        |t: i64| format!("@{}.{:09}", (origin + t) / 1_000_000_000, (origin + t) % 1_000_000_000);
    let chosen = ["--where", "id >= 9"];
    for (asked, more) in [
        (json!({ "filter": most }), &[][..]),
        (json!({ "filter": most, "t0": 0, "t1": half + 1 }), &["--until", &at(half)]),
        (json!({ "filter": most, "t0": half + 1 }), &["--from", &at(half + 1)]),
    ] {
        let told = page.ask("tracepoints", asked);
        let expected =
            place.json(&[&["tracepoints", "--json", "demo"], &chosen[..], more].concat());
        let counts = |rows: &Value, name: &str, count: &dyn Fn(&Value) -> Value| {
            let rows = rows.as_array().unwrap().iter();
            let all = rows.map(|row| [&row[name], &row["key"], &count(row)].map(Value::to_string));
            let mut all: Vec<_> = all.filter(|[_, _, count]| count != "null").collect();
            all.sort();
            all
        };
        let (rows, other) = (&told["rows"], &expected["tracepoints"]);
        let told = counts(rows, "name", &|row| row["cycles"]["count"].clone());
        assert_eq!(told, counts(other, "name", &|row| row["count"].clone()));
        assert!(!told.is_empty());
    }
    // A missing tracepoint, and two that do not nest.
    let label = &told["rows"][0]["label"];
    let nothing = json!({ "filter": 0, "outer": "nothing", "inner": label });
    assert!(page.try_ask("tracepoints", nothing).is_err());
    assert!(page.try_ask("tracepoints", json!({ "outer": label, "inner": label })).is_err());
    // Without events there is no tracepoint.
    let open = page.ask("open", json!({}));
    let off: Vec<&Value> = open["classes"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    let filter = page.ask("filter", json!({ "classes_off": off }));
    let none = page.ask("tracepoints", json!({ "filter": filter["filter"] }));
    assert_eq!(none["count"], 0);
}

#[test]
fn what_looking_costs_is_taken_off() {
    let place = Place::new();
    // `outer` around an empty `inner`: 30 and 10; `work` takes 200.
    let mut events = Vec::new();
    for round in 0..20u64 {
        let at = 10_000 + round * 1000;
        for (offset, kind, name) in [
            (0, 1, "outer"),
            (10, 1, "inner"),
            (20, 2, "inner"),
            (30, 2, "outer"),
            (100, 1, "work"),
            (300, 2, "work"),
        ] {
            events.push(checkpoint(at + offset, 0, kind, name));
        }
    }
    let threads: [Thread<'_>; 1] = [("init -> app", "ep", (1000, 99_000), &events)];
    place.genode("run", &threads);
    let viewer = Viewer::start(&place, &["run"]);
    let mut page = viewer.page();
    let plain = page.ask("tracepoints", json!({ "filter": 0 }));
    let label = |word: &str| {
        let rows = plain["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["label"].as_str().unwrap().contains(word));
        row.unwrap_or_else(|| panic!("{word} in {plain}"))["label"].clone()
    };
    let (outer, inner, work) = (label("outer"), label("inner"), label("work"));
    let asked = json!({ "filter": 0, "outer": outer, "inner": inner });
    let told = page.ask("tracepoints", asked);
    let cost = |part: &str| told["cost"][part]["median"].as_f64().unwrap();
    let median = |label: &Value, part: &str| {
        let rows = told["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["label"] == *label).unwrap();
        row[part]["median"].as_f64().unwrap()
    };
    assert_eq!(cost("effective"), median(&inner, "cycles"));
    assert_eq!(cost("total"), median(&outer, "cycles") - median(&inner, "cycles"));
    assert_eq!(median(&work, "less"), median(&work, "cycles") - cost("effective"));
}

#[test]
fn values_of_fields_are_those_of_the_printed_events() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let mut seen = 0;
    for class in open["classes"].as_array().unwrap() {
        let fields = page.ask("fields", json!({ "class": class["id"] }))["fields"].clone();
        let name =
            [&class["subsystem"], &class["name"]].map(|part| part.as_str().unwrap()).join(":");
        let names: Vec<String> = serde_json::from_value(fields.clone()).unwrap();
        let names = &names[..names.len().min(8)];
        let asked = json!({ "class": class["id"], "fields": names, "filter": 0, "most": 20000 });
        let (result, columns) = page.ask_columns("values", asked);
        let events: Vec<&Value> = lines.iter().filter(|l| l["name"] == name.as_str()).collect();
        assert_eq!(result["count"], events.len(), "{name}");
        let mut expected: Vec<f64> =
            events.iter().map(|line| (line["time_ns"].as_i64().unwrap() - origin) as f64).collect();
        expected.sort_by(f64::total_cmp);
        assert_eq!(columns["time"], expected, "{name}");
        for (place, field) in names.iter().enumerate() {
            let mut told = columns[&format!("field{place}")].clone();
            let printed = events.iter().map(|line| {
                let value = &line["fields"][field];
                let value = if value.is_null() { &line["context"][field] } else { value };
                value.as_f64().unwrap_or(f64::NAN)
            });
            let mut printed: Vec<f64> = printed.collect();
            told.sort_by(f64::total_cmp);
            printed.sort_by(f64::total_cmp);
            assert!(
                told.iter().zip(&printed).all(|(a, b)| a.to_bits() == b.to_bits()),
                "{name} {field}"
            );
            seen += told.len();
        }
        // A limit returns a part of many values, beginning with the first.
        if events.len() > 10 {
            let asked = json!({ "class": class["id"], "fields": [], "filter": 0, "most": 5 });
            let (result, columns) = page.ask_columns("values", asked);
            assert_eq!((&result["count"], columns["time"].len()), (&json!(events.len()), 5));
            assert_eq!(columns["time"][0], expected[0]);
        }
    }
    assert!(seen > 100, "{seen}");
    let wrong = json!({ "class": 0, "fields": vec!["x"; 9], "filter": 0 });
    assert!(page.try_ask("values", wrong).is_err());
    assert!(page.try_ask("fields", json!({ "class": 60000 })).is_err());
}

#[test]
fn tables_to_complete_are_those_of_lat_table() {
    let place = Place::new();
    demo(&place);
    assert!(!printed(&place, "demo").is_empty());
    let viewer = Viewer::start(&place, &["demo"]);
    let told = viewer.page().ask("tables", json!({}));
    let listed = place.json(&["table", "--json", "demo"]);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|table| table["name"].to_string()).collect()
    };
    assert_eq!(names(&told["tables"]), names(&listed["tables"]));
    let events = told["tables"].as_array().unwrap().iter().find(|t| t["name"] == "events").unwrap();
    assert!(events["columns"].as_array().unwrap().contains(&json!("ts")));
}
