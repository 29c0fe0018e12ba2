// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table` as people use it.

mod place;

use std::fs;
use std::path::Path;

use place::Place;

/// A trace that is text: 350 events of Barrelfish.
fn trace() -> Option<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/barrelfish/atrace.trc");
    if !path.is_file() {
        println!("SKIPPED: no trace at {}", path.display());
        return None;
    }
    Some(path.display().to_string())
}

#[test]
fn tables_are_listed_and_written_in_three_formats() {
    let Some(trace) = trace() else { return };
    let place = Place::new();
    let listed = place.json(&["table", &trace, "--json"]);
    let tables = listed["tables"].as_array().expect("tables");
    let events = tables.iter().find(|table| table["name"] == "events").expect("events");
    assert_eq!(events["columns"][0]["name"], "ts");
    assert_eq!(events["columns"][0]["unit"], "ns");
    let output = place.lat(&["table", &trace]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("events\n") && text.contains("ts (ns), recording"), "{text}");

    for name in ["events.csv", "events.jsonl", "events.parquet"] {
        let written = place.json(&["table", &trace, "--name", "events", "-o", name, "--json"]);
        assert_eq!(written["rows"], 350, "{name}");
        assert!(fs::metadata(place.0.join(name)).expect("a file").len() > 1000, "{name}");
        let again = place.lat(&["table", &trace, "--name", "events", "-o", name]);
        assert_eq!(again.status.code(), Some(2), "{name} is not replaced");
    }
    let csv = fs::read_to_string(place.0.join("events.csv")).expect("CSV");
    let jsonl = fs::read_to_string(place.0.join("events.jsonl")).expect("JSON lines");
    assert_eq!((csv.lines().count(), jsonl.lines().count()), (351, 350));
    let parquet = fs::read(place.0.join("events.parquet")).expect("Parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));

    let columns = ["table", &trace, "--name", "events", "--column", "class,cpu", "--limit", "3"];
    let output = place.lat(&columns);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("class,cpu\r\n"), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn what_is_wrong_is_said_with_what_there_is() {
    let Some(trace) = trace() else { return };
    let place = Place::new();
    for (arguments, expected) in [
        (&["--name", "event"][..], "no such table: event: did you mean events"),
        (&["--name", "events", "--column", "tss"], "no such column: events: tss: it has ts,"),
        (&["--name", "events", "-o", "x.foo"], "cannot write the table: x.foo: its ending"),
    ] {
        let all: Vec<&str> =
            ["table", &trace].into_iter().chain(arguments.iter().copied()).collect();
        let output = place.lat(&all);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with(&format!("error: {expected}")), "{error}");
    }
    assert!(!place.0.join("x.foo").exists());
}
