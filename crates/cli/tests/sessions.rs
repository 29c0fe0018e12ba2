// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes recorded separately and read together: a send of one and the receive of the other are a single
//! message if their clocks are the same, and are not if their clocks are unrelated.

use crate::place;

use place::Place;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const COUNT: u64 = 40;

/// Records the sender as `shop` and the receiver as `desk`, at the same time.
fn record(place: &Place) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/place/two_sides.c");
    let Some(program) = place.compile("two-sides", &source, "slowdown") else {
        return false;
    };
    let pipe = place.0.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let (pipe, count) = (pipe.to_str().expect("letters"), COUNT.to_string());
    std::thread::scope(|scope| {
        scope.spawn(|| place.record("desk", &[], &program, &["receive", pipe, &count]));
        place.record("shop", &[], &program, &["send", pipe, &count]);
    });
    true
}

fn order(place: &Place, traces: &[&str]) -> Value {
    let stats = place.json(&[&["stats", "--json"], traces].concat());
    let all = stats["messages"].as_array().expect("messages").clone();
    let orders: Vec<Value> = all.into_iter().filter(|one| one["matched"].is_u64()).collect();
    assert_eq!(orders.len(), 1, "{stats}");
    orders.into_iter().next().expect("one")
}

fn messages(place: &Place, traces: &[&str]) -> Vec<Value> {
    let output = place.lat(&[&["table", "--name", "messages", "--json"], traces].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Changes the clock in the metadata to that of a recorder on another machine.
fn change_metadata(place: &Place, recording: &str, changes: &[(&str, &str)]) {
    let path = place.0.join(recording).join("ctf/metadata");
    let mut text = fs::read_to_string(&path).expect("metadata as text");
    for (from, to) in changes {
        let line = text.lines().find(|line| line.trim_start().starts_with(from));
        let line = line.unwrap_or_else(|| panic!("no {from} in {text}")).to_owned();
        text = text.replacen(&line, to, 1);
    }
    fs::write(&path, text).expect("metadata");
}

/// Like [`change_metadata`], for the description of the clock, which follows other places with such a line.
fn change_clock(place: &Place, recording: &str, from: &str, to: &str) {
    let path = place.0.join(recording).join("ctf/metadata");
    let text = fs::read_to_string(&path).expect("metadata as text");
    let (before, clock) = text.split_once("clock {").expect("a clock");
    let line = clock.lines().find(|line| line.trim_start().starts_with(from)).expect("the line");
    let changed = format!("{before}clock {{{}", clock.replacen(line, to, 1));
    fs::write(&path, changed).expect("metadata");
}

#[test]
fn what_is_sent_in_one_recording_arrives_in_the_other() {
    let place = Place::new();
    if !record(&place) {
        return;
    }
    let alone = order(&place, &["shop"]);
    assert_eq!((&alone["matched"], &alone["never_received"]), (&0.into(), &COUNT.into()));
    for traces in [["shop", "desk"], ["desk", "shop"]] {
        let both = order(&place, &traces);
        assert_eq!(both["matched"], COUNT, "{both}");
        assert_eq!((&both["never_received"], &both["never_sent"]), (&0.into(), &0.into()));
        assert_eq!(both["received_before_sent"], 0);
        assert_eq!(both["not_exact"], serde_json::json!({}), "{both}");
        let rows = messages(&place, &traces);
        assert_eq!(rows.len() as u64, COUNT);
        for row in rows {
            assert_eq!((&row["status"], &row["quality"]), (&"complete".into(), &"exact".into()));
            assert_eq!((&row["clock_error"], &row["recording"]), (&0.into(), &"shop".into()));
            assert!(row["latency"].as_u64().is_some_and(|nanos| nanos > 0), "{row}");
        }
        let output = place.lat(&["stats", traces[0], traces[1]]);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_latency_between_two_clocks_has_their_error() {
    let place = Place::new();
    if !record(&place) {
        return;
    }
    let one = order(&place, &["shop", "desk"]);
    assert_eq!((&one["clock_error_ns"], &one["not_exact"]), (&0.into(), &serde_json::json!({})));
    let page = place.lat(&["stats", "shop", "desk", "--section", "messages"]);
    assert!(!String::from_utf8(page.stdout).expect("UTF-8").contains('±'));

    // Another counter of the same machine; both state their date error.
    let uuid = "    uuid = \"01234567-89ab-4def-8123-456789abcdef\";";
    change_clock(&place, "desk", "uuid = ", uuid);
    for (recording, ticks) in [("shop", 1), ("desk", 1)] {
        change_clock(&place, recording, "precision = ", &format!("    precision = {ticks};"));
    }
    let near = order(&place, &["shop", "desk"]);
    let error = near["clock_error_ns"].as_u64().expect("a bound");
    assert!((1..=4).contains(&error), "{near}");
    // A latency longer than the error is unchanged, with the error beside it.
    assert_eq!(near["not_exact"], serde_json::json!({}), "{near}");
    assert_eq!(near["slowest"]["clock_error_ns"], error);
    let page = place.lat(&["stats", "shop", "desk", "--section", "messages"]);
    let page = String::from_utf8(page.stdout).expect("UTF-8");
    assert!(page.contains(&format!("± {error} ns")), "{page}");

    change_clock(&place, "desk", "precision = ", "    precision = 1000000000000000;");
    let far = order(&place, &["shop", "desk"]);
    assert!(far["clock_error_ns"].as_u64().is_some_and(|error| error > 1 << 40), "{far}");
    for number in ["min_ns", "mean_ns", "median_ns", "p99_ns", "max_ns", "slowest"] {
        assert_eq!(far["not_exact"][number], "unknown", "{number}: {far}");
    }
    assert_eq!((&far["matched"], &far["not_exact"]["count"]), (&COUNT.into(), &Value::Null));
    for row in messages(&place, &["shop", "desk"]) {
        assert_eq!(
            (&row["clock_error"], &row["quality"]),
            (&far["clock_error_ns"], &"unknown".into())
        );
    }
}

#[test]
fn recordings_that_nothing_relates_are_kept_apart_and_that_is_said() {
    let place = Place::new();
    if !record(&place) {
        return;
    }
    let stderr = |traces: &[&str]| {
        let output = place.lat(&[&["stats"], traces].concat());
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    // Another counter, on a machine with another name: only the date relates them.
    let uuid = "    uuid = \"01234567-89ab-4def-8123-456789abcdef\";";
    let clock = [("hostname = ", "    hostname = \"there\";")];
    change_metadata(&place, "desk", &clock);
    change_clock(&place, "desk", "uuid = ", uuid);
    assert_eq!(order(&place, &["shop", "desk"])["matched"], COUNT);
    for row in messages(&place, &["shop", "desk"]) {
        assert_eq!((&row["quality"], &row["clock_error"]), (&"unknown".into(), &Value::Null));
    }
    let any = order(&place, &["shop", "desk"]);
    assert_eq!(
        (&any["clock_error_ns"], &any["not_exact"]["median_ns"]),
        (&Value::Null, &"unknown".into())
    );
    let page = place.lat(&["stats", "shop", "desk", "--section", "messages"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("± any"));
    let said = stderr(&["shop", "desk"]);
    assert!(said.starts_with("warning: desk: only the date relates"), "{said}");

    // Without a date they stay separate, each with its own events.
    change_clock(&place, "desk", "absolute = ", "    absolute = FALSE;");
    let said = stderr(&["shop", "desk"]);
    assert!(said.starts_with("warning: desk: its clock is not related to that of shop"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let stats = place.json(&["stats", "--json", "shop", "desk"]);
    let channels = stats["messages"].as_array().expect("messages");
    let of = |name: &str| {
        let found = channels.iter().find(|channel| channel["channel"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {stats}"))
    };
    let numbers = |name: &str, what: &str| of(name)[what].as_u64();
    assert_eq!(numbers("order", "matched"), Some(0));
    assert_eq!(numbers("order", "never_received"), Some(COUNT));
    assert_eq!(numbers("order (desk)", "matched"), Some(0));
    assert_eq!(numbers("order (desk)", "never_sent"), Some(COUNT));
    let rows = messages(&place, &["shop", "desk"]);
    assert_eq!(rows.len() as u64, 2 * COUNT);
    assert!(rows.iter().all(|row| row["status"] != "complete"));
}

/// Writes a trace of two streams, each with its own clock. Spans begin in one and end in the other 50 µs
/// later, and so do messages.
fn two_clocks(place: &Place, name: &str, uids: [&str; 2], more: &Value) {
    let number = |length: u32, role: Option<&str>| {
        let mut class = json!({
            "type": "fixed-length-unsigned-integer",
            "length": length,
            "byte-order": "little-endian",
            "alignment": 8,
        });
        if let Some(role) = role {
            class["roles"] = json!([role]);
        }
        class
    };
    let fields = |members: &[(&str, Value)]| {
        let member = |(name, class): &(&str, Value)| json!({ "name": name, "field-class": class });
        let members: Vec<Value> = members.iter().map(member).collect();
        json!({ "type": "structure", "member-classes": members })
    };
    let mut fragments = vec![json!({ "type": "preamble", "version": 2 })];
    for (id, uid) in ["a", "b"].into_iter().zip(uids) {
        let mut clock = json!({
            "type": "clock-class",
            "id": id,
            "name": "clock",
            "uid": uid,
            "frequency": 1_000_000_000,
            "origin": "unix-epoch",
            "offset-from-origin": { "seconds": 1_700_000_000, "cycles": 0 },
        });
        clock.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fragments.push(clock);
    }
    fragments.push(json!({
        "type": "trace-class",
        "packet-header-field-class": fields(&[
            ("stream_class", number(32, Some("data-stream-class-id"))),
            ("stream", number(64, Some("data-stream-id"))),
        ]),
        "environment": { "hostname": "here" },
    }));
    for (id, clock) in (0..).zip(["a", "b"]) {
        fragments.push(json!({
            "type": "data-stream-class",
            "id": id,
            "default-clock-class-id": clock,
            "event-record-header-field-class":
                fields(&[("time", number(64, Some("default-clock-timestamp")))]),
            "event-record-common-context-field-class":
                fields(&[("vpid", number(32, None)), ("vtid", number(32, None))]),
        }));
    }
    let clauses =
        [["begin hop key k", "send request key k"], ["end hop key k", "recv request key k"]];
    for (id, clauses) in (0..).zip(clauses) {
        fragments.push(json!({
            "type": "event-record-class",
            "id": 0,
            "data-stream-class-id": id,
            "name": format!("event{id}"),
            "attributes": { "lateralis": { "clauses": clauses } },
            "payload-field-class": fields(&[("k", number(64, None))]),
        }));
    }
    let folder = place.0.join(name);
    std::fs::create_dir(&folder).unwrap();
    let text: String = fragments.iter().map(|one| format!("\u{1e}{one}\n")).collect();
    std::fs::write(folder.join("metadata"), text).unwrap();
    for (id, late) in [(0_u32, 0), (1, 50_000)] {
        let mut bytes = [&id.to_le_bytes()[..], &u64::from(id).to_le_bytes()].concat();
        for k in 1..=20_u64 {
            bytes.extend((k * 1_000_000 + late).to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend((11 + id).to_le_bytes());
            bytes.extend(k.to_le_bytes());
        }
        std::fs::write(folder.join(format!("stream{id}")), bytes).unwrap();
    }
}

#[test]
fn clocks_of_one_trace_may_be_apart_as_those_of_two() {
    let place = Place::new();
    const ONE: &str = "11111111-2222-4333-8444-555555555555";
    const TWO: &str = "21111111-2222-4333-8444-555555555555";
    let (none, some) = (json!({}), json!({ "precision": 30_000 }));
    // Bound on the offset of the clocks, and quality of the 50 µs.
    for (name, uids, more, error, quality) in [
        ("same", [ONE, ONE], &none, json!(0), "exact"),
        ("unknown", [ONE, TWO], &none, Value::Null, "unknown"),
        ("near", [ONE, TWO], &json!({ "precision": 20_000 }), json!(40_000), "exact"),
        ("far", [ONE, TWO], &some, json!(60_000), "unknown"),
    ] {
        two_clocks(&place, name, uids, more);
        let stats = place.json(&["stats", name, "--json"]);
        let (span, messages) = (&stats["spans"][0], &stats["messages"][0]);
        assert_eq!((&span["count"], &messages["matched"]), (&json!(20), &json!(20)), "{name}");
        let mark = if quality == "exact" { Value::Null } else { json!(quality) };
        assert_eq!(span["not_exact"]["max_ns"], mark, "{name}: {span}");
        assert_eq!(messages["not_exact"]["max_ns"], mark, "{name}: {messages}");
        for table in ["spans", "messages"] {
            let words = ["table", name, "--name", table, "--column", "clock_error,quality"];
            let text = String::from_utf8_lossy(&place.lat(&words).stdout).into_owned();
            let cell = if error.is_null() { String::new() } else { error.to_string() };
            let row = format!("{cell},{quality}");
            assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), vec![row; 20], "{name}: {table}");
        }
        let output = place.lat(&["path", name, "--span", "hop"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.contains("by one clock and ends by another"), quality != "exact", "{text}");
    }
}
