// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table` from the command line.

use crate::place;

use std::fs;
use std::path::Path;

use place::Place;

/// A text trace: 350 events of Barrelfish.
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
fn tables_are_listed_and_written_in_all_formats() {
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

    for name in ["events.csv", "events.jsonl", "events.parquet", "events.arrow", "events.arrows"] {
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

    let arrow = fs::read(place.0.join("events.arrow")).expect("Arrow");
    assert!(arrow.starts_with(b"ARROW1") && arrow.ends_with(b"ARROW1"));
    let stream = fs::read(place.0.join("events.arrows")).expect("Arrow");
    assert!(stream.starts_with(&[0xff; 4]), "a message of a stream");

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

/// Turns a recording into one of another machine: other host name, other boot, and a clock ahead by this
/// number of seconds.
fn made_elsewhere(place: &Place, from: &str, to: &str, ahead_s: i64) {
    let (from, to) = (place.0.join(from).join("ctf"), place.0.join(to).join("ctf"));
    fs::create_dir_all(&to).expect("a folder");
    for entry in fs::read_dir(&from).expect("the recording").flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
    let metadata = fs::read_to_string(from.join("metadata")).expect("metadata");
    let (before, clock) = metadata.split_once("\nclock {").expect("a clock");
    let before: String = before
        .lines()
        .map(|line| match line.trim_start().starts_with("hostname") {
            true => "    hostname = \"elsewhere\";\n".to_owned(),
            false => format!("{line}\n"),
        })
        .collect();
    let clock: String = clock
        .lines()
        .filter(|line| !line.trim_start().starts_with("uuid"))
        .map(|line| match line.trim().strip_prefix("offset_s = ") {
            Some(offset) => {
                let offset: i64 = offset.trim_end_matches(';').parse().expect("a number");
                format!("    offset_s = {};\n", offset + ahead_s)
            }
            None => format!("{line}\n"),
        })
        .collect();
    assert!(before.contains("elsewhere"));
    fs::write(to.join("metadata"), format!("{before}\nclock {{{clock}")).expect("metadata");
}

#[test]
fn recordings_made_at_once_are_on_one_time_line() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let (place, program) = (&place, &program);
            scope.spawn(move || place.record(name, &[], program, &["--requests", "40"]));
        }
    });
    made_elsewhere(&place, "b", "c", 3600);
    let facts = place.json(&["info", "a", "b", "c", "--json"]);
    let traces = facts["traces"].as_array().expect("traces");
    let told = |name: &str| traces.iter().map(|trace| trace[name].clone()).collect::<Vec<_>>();
    let null = serde_json::Value::Null;
    assert_eq!(told("clock_relation"), [null.clone(), "same".into(), "epoch".into()]);
    assert_eq!(told("clock_error_ns"), [null.clone(), 0.into(), null.clone()]);
    let page = place.lat(&["info", "a", "b", "c"]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(page.contains("(CTF 1.8, the clock of the first)"), "{page}");
    assert!(page.contains("related to the first by the date: nobody knows how far"), "{page}");

    let rows = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let all = [&["table", "--json", "--name"], arguments].concat();
        let output = place.lat(&all);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let recordings = rows(&["recordings", "a", "b", "c"]);
    let told = |name: &str| recordings.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(told("recording"), ["a", "b", "c"]);
    assert_eq!(told("clock"), ["tsc", "tsc", "tsc"]);
    assert_eq!(told("clock_relation"), ["reference", "same", "epoch"]);
    assert_eq!(told("clock_error"), [0.into(), 0.into(), null]);
    // Within one boot, the origin of the counter is the same point in time.
    let zero = told("clock_offset");
    assert_eq!(zero[0], zero[1]);

    // A recording alone in its session keeps the values measured by its recorder; c is b, one hour ahead.
    let times = |rows: &[serde_json::Value], of: &str| -> Vec<i64> {
        let of = rows.iter().filter(|row| row["recording"] == of);
        of.map(|row| row["ts"].as_i64().expect("a time")).collect()
    };
    let (alone, together) = (rows(&["events", "b"]), rows(&["events", "a", "b", "c"]));
    let (own, elsewhere) = (times(&alone, "b"), times(&together, "c"));
    assert!(
        !own.is_empty() && own.iter().zip(&elsewhere).all(|(b, c)| b + 3_600_000_000_000 == *c)
    );
    assert_eq!(times(&together, "b").len(), own.len());
}
