// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes recorded apart and read together: what one sends and the other receives is one
//! message, if their clocks are one, and is not, if nothing relates them.

use crate::place;

use place::Place;
use serde_json::Value;
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

/// Writes what a recorder on another machine would have written of its clock.
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

/// The same of the clock's description, behind what else has such a line.
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

    // Another counter of the same machine; both say how well they know the date.
    let uuid = "    uuid = \"01234567-89ab-4def-8123-456789abcdef\";";
    change_clock(&place, "desk", "uuid = ", uuid);
    for (recording, ticks) in [("shop", 1), ("desk", 1)] {
        change_clock(&place, recording, "precision = ", &format!("    precision = {ticks};"));
    }
    let near = order(&place, &["shop", "desk"]);
    let error = near["clock_error_ns"].as_u64().expect("a bound");
    assert!((1..=4).contains(&error), "{near}");
    // What is longer than the error is as it is recorded, with the error beside it.
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
    // Another counter, on a machine of another name: the date is all they share.
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

    // No date: they are apart, each with what it has.
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
