// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--when` and `--then`: what is done when a condition fires, and what the report says of it.

use crate::place::Place;
use serde_json::Value;
use std::fs;

/// How far the time of an event may be from what was said of it before the clock was measured again.
const CLOCKS_NS: i64 = 100_000;

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Firings about slow requests: on a busy machine quick ones may be slow, too.
fn slow(report: &Value) -> Vec<Value> {
    let all = report["triggers"]["firings"].as_array().expect("firings").clone();
    let is_slow = |one: &Value| one["key"].as_str().is_some_and(|key| key.len() == 7);
    all.into_iter().filter(is_slow).collect()
}

fn done<'a>(firing: &'a Value, action: &str) -> &'a Value {
    let all = firing["done"].as_array().expect("what was done");
    let is_it = |one: &&Value| one["action"].as_str().is_some_and(|text| text.starts_with(action));
    all.iter().find(is_it).unwrap_or_else(|| panic!("{action}: {firing}"))
}

/// UTC nanoseconds of each event of a name.
fn times(place: &Place, recording: &str, event: &str) -> Vec<i64> {
    let printed = place.lat(&["print", recording, "--event", event, "--format", "json"]);
    let lines = String::from_utf8_lossy(&printed.stdout).into_owned();
    let time = |line: &str| -> i64 {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let time = &line["time_ns"];
        time.as_i64().or_else(|| time.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    lines.lines().map(time).collect()
}

#[test]
fn each_firing_is_acted_on_and_listed() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let ran = "run sh -c 'echo $LATERALIS_FIRED_NUMBER >> ran; exit 3'";
    let then = format!("mark slow; snapshot 100ms 50ms; flush; {ran}");
    let options = ["--when", "span(request) > 30ms", "--then", &then];
    place.record("all", &options, &program, &["3", "300", "40"]);
    let report = place.report("all");
    let triggers = &report["triggers"];
    assert_eq!(triggers["rules"][0]["conditions"][0], "span(request) > 30ms");
    assert_eq!(report["problems"], serde_json::json!([]));
    let fired = slow(&report);
    assert_eq!(fired.len(), 3, "{triggers}");
    let marks = times(&place, "all", "lat:MARK");
    assert_eq!(marks.len() as i64, number(&triggers["fired"]));
    let numbers = fs::read_to_string(place.0.join("ran")).expect("the command ran");
    for firing in &fired {
        assert!(number(&firing["duration_ns"]) >= 40_000_000 && firing["is_over"] == true);
        let at = number(&firing["at_ns"]);
        assert!(marks.iter().any(|mark| (mark - at).abs() <= CLOCKS_NS), "{at}: {marks:?}");
        for action in ["mark slow", "flush", "snapshot"] {
            assert_eq!(done(firing, action)["outcome"], "done");
            assert!(number(&done(firing, action)["begun_ns"]) >= at);
        }
        let command = done(firing, "run");
        let own = firing["number"].to_string();
        let was_run = numbers.lines().any(|line| line == own);
        match command["outcome"].as_str() {
            Some("done") => assert!(was_run && command["exit_status"] == 3, "{command}"),
            // On a busy machine the shell may need longer than the program to the next one.
            other => assert!(other == Some("skipped") && !was_run, "{command}"),
        }
    }
    // Windows are beside the recording, with marks in them, and are not part of it.
    let kept = fs::read(place.0.join("all/kept/kept.json")).expect("a list");
    let kept: Value = serde_json::from_slice(&kept).expect("the list is JSON");
    assert_eq!(kept["fired"], triggers["fired"]);
    for window in kept["windows"].as_array().expect("windows") {
        let name = format!("all/kept/{}", window["name"].as_str().expect("a name"));
        assert!(place.report(&name)["events"]["lat:MARK"].as_u64() >= Some(1), "{window}");
    }
    let ticks = times(&place, "all", "spikes:TICK").len();
    assert_eq!(report["events"]["spikes:TICK"], ticks);
}

#[test]
fn a_condition_starts_and_another_stops() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let when = |id: u32| format!("event(spikes:ANSWERED, id == {id})");
    let (first, second) = (when(1_000_000), when(1_000_001));
    let options = ["--when", &first, "--then", "start; mark on", "--when", &second];
    let options = [&options[..], &["--then", "stop; mark off"]].concat();
    place.record("part", &options, &program, &["4", "300", "40", "ticks"]);
    let report = place.report("part");
    let firings = report["triggers"]["firings"].as_array().expect("firings");
    assert_eq!(firings.len(), 2, "{firings:?}");
    let started = number(&done(&firings[0], "start")["begun_ns"]);
    let ticks = times(&place, "part", "spikes:TICK");
    let made = fs::metadata(place.0.join("ticks")).expect("the program's own times").len() / 16;
    assert!(!ticks.is_empty() && (ticks.len() as u64) < made, "{} of {made}", ticks.len());
    assert!(ticks[0] >= started - CLOCKS_NS, "{} {started}", ticks[0]);
    // What conditions look at is recorded from the beginning.
    let answers = times(&place, "part", "spikes:ANSWERED");
    assert!(answers[0] < number(&firings[0]["at_ns"]));
    assert_eq!(times(&place, "part", "lat:MARK").len(), 2);
    assert_eq!(report["totals"]["lost"]["total"], 0);
}

#[test]
fn windows_of_lat_keep_have_actions_too() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let program = program.to_str().expect("a path of letters");
    let options = ["--when", "span(request) > 30ms", "--then", "run true", "--before", "20ms"];
    let all = [&["keep", "-o", "kept", "--after", "0ms"], &options[..], &["--"]].concat();
    let output = place.lat(&[&all[..], &[program, "2", "300", "40"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("fired  ") && text.contains("kept  "), "{text}");
    let report = place.report("kept");
    for firing in slow(&report) {
        assert!(["done", "skipped"].contains(&done(&firing, "run")["outcome"].as_str().unwrap()));
        assert_eq!(done(&firing, "snapshot")["outcome"], "done");
    }
    assert_eq!(slow(&report).len(), 2);
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_told() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let when = "event(spikes:ANSWERED, id == 1000000)";
    let options = ["--when", when, "--then", "run sleep 600", "--run-time", "50ms"];
    place.record("late", &options, &program, &["1", "100", "5"]);
    let report = place.report("late");
    let firings = report["triggers"]["firings"].as_array().expect("firings");
    let command = done(&firings[0], "run");
    assert_eq!((&command["outcome"], &command["exit_status"]), (&"timed-out".into(), &137.into()));
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let place = Place::new();
    let when = "span(request) > 5ms";
    for (options, told) in [
        (&["--when", when][..], "say what to do"),
        (&["--then", "stop"], "say when"),
        (&["--when", when, "--then", "snapshoot"], "did you mean snapshot?"),
        (&["--when", when, "--then", "stop", "--then", "start"], "one --then for all"),
        (&["--when", "spam(x) > 1s", "--then", "stop"], "did you mean span?"),
        (&["--when", when, "--then", "stop", "--mode", "overwrite"], "--mode overwrite"),
        (&["--when", when, "--then", "stop", "--program", "x"], "cannot start and stop"),
        (&["--when", when, "--then", "snapshot", "--chunk-size", "1M"], "leave one of both"),
        (
            &["--when", when, "--then", "snapshot 1s 1s", "--when", when, "--then", "snapshot"],
            "different length",
        ),
    ] {
        let command = if options.contains(&"--program") { &[][..] } else { &["--", "true"] };
        let output = place.lat(&[&["record", "-o", "no"], options, command].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(told), "{options:?}: {text}");
        assert!(!place.0.join("no").exists());
    }
    let output = place.lat(&["keep", "-o", "no", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
}
