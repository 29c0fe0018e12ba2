// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--when` and `--then`: actions when a condition fires, and their entries in the report.

use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Largest difference between the reported time of an event and its time after the clock was measured again.
const CLOCKS_NS: i64 = 100_000;

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Returns the firings for slow requests: on a busy machine quick ones may be slow, too.
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

/// Returns the UTC time of each event of a name, in nanoseconds.
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
            // On a busy machine the shell may need longer than the program needs until the next firing.
            other => assert!(other == Some("skipped") && !was_run, "{command}"),
        }
    }
    // Windows are stored beside the recording, with marks, and are not part of it.
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
    for (firing, action) in firings.iter().zip(["start", "stop"]) {
        let behind = number(&done(firing, action)["begun_ns"]) - number(&firing["at_ns"]);
        eprintln!("{action}: done {} us behind the moment", behind / 1000);
    }
    let ticks = times(&place, "part", "spikes:TICK");
    let made = fs::metadata(place.0.join("ticks")).expect("the program's own times").len() / 16;
    assert!(!ticks.is_empty() && (ticks.len() as u64) < made, "{} of {made}", ticks.len());
    assert!(ticks[0] >= started - CLOCKS_NS, "{} {started}", ticks[0]);
    // Events used by conditions are recorded from the start.
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
fn an_action_that_fails_is_said_at_the_end() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let when = "event(spikes:ANSWERED, id >= 1000000)";
    let options = ["record", "-o", "out", "--when", when, "--then", "run ./none --now", "--"];
    let program = program.to_str().expect("a path of letters");
    let output = place.lat(&[&options[..], &[program, "2", "100", "5"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let told = "failed    run ./none --now: No such file or directory";
    assert!(text.contains(told) && text.contains(", 2 times"), "{text}");
}

#[test]
fn what_nobody_reads_of_what_is_said_ends_no_recording() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let mut lat = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "-o", "out", "--when", "event(spikes:ANSWERED, id >= 1000000)"])
        .args(["--then", "mark slow", "--", program.to_str().expect("a path of letters")])
        .args(["3", "100", "5"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    // The reading end of standard error is closed from the start.
    drop(lat.stderr.take());
    assert_eq!(lat.wait().expect("its status").code(), Some(0));
    let report = place.report("out");
    assert_eq!((&report["complete"], &report["triggers"]["fired"]), (&true.into(), &3.into()));
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

/// Records the program with options that wait for its first slow request. Each retry delays the request
/// further: the program does not wait for the recorder, so it may come before the recorder has attached.
fn record_from_the_first(
    place: &Place,
    name: &str,
    options: &[&str],
    program: &Path,
    (spikes, each_ms, ticks): (&str, &str, Option<&str>),
) -> Value {
    for between_ms in ["200", "1000", "5000", "20000"] {
        let arguments = [&[spikes, between_ms, each_ms][..], ticks.as_slice()].concat();
        place.record(name, options, program, &arguments);
        let report = place.report(name);
        if report["totals"]["events"] != 0 {
            return report;
        }
        eprintln!("not seen within {between_ms} ms: {report}");
        fs::remove_dir_all(place.0.join(name)).expect("a recording");
    }
    panic!("nothing was recorded: it was never started");
}

#[test]
fn an_event_starts_and_another_stops_exactly() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let start = ["--start-on", "spikes:ANSWERED:id==1000000"];
    let stop = ["--stop-on", "spikes:ANSWERED:id == 1000001"];
    // Only these two events of the subsystem are recorded.
    let options = [&["--enable", "spikes:TICK"], &start[..], &stop[..]].concat();
    let report =
        record_from_the_first(&place, "exact", &options, &program, ("3", "10", Some("ticks")));
    let answers = times(&place, "exact", "spikes:ANSWERED");
    let ticks = times(&place, "exact", "spikes:TICK");
    assert_eq!(answers.len(), 2);
    let own = fs::read(place.0.join("ticks")).expect("the program's own times");
    let word = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    let switched = &report["switched"][0];
    let (started, stopped) = (number(&switched["started_ns"]), number(&switched["stopped_ns"]));
    // The deciding thread reads the clock for this, then sets the enable bytes, then writes its event; other
    // threads may run for any time before each of these steps.
    let order = [word(&own[..8]), started, answers[0], stopped, answers[1]];
    assert!(order.windows(2).all(|pair| pair[0] <= pair[1] + CLOCKS_NS), "{order:?}");
    // After the last event, a tick may still be written that began before the bytes were reset.
    let is_between = |time: &&i64| (started - CLOCKS_NS..=answers[1]).contains(*time);
    let between = ticks.iter().filter(is_between).count();
    assert!(!ticks.is_empty() && ticks.len() - between <= 1, "{between} of {}", ticks.len());
    assert_eq!(report["problems"], serde_json::json!([]));
    // Events before and after were not recorded, and readers report this.
    let info = place.json(&["info", "exact", "--json"]);
    let gaps: Vec<&serde_json::Value> = info["losses"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|loss| loss["cause"] == "stopped" && loss["is_lower_bound"] == true)
        .collect();
    // On however few CPUs the program ran.
    let ends_at = |key: &str, ns: i64| gaps.iter().any(|gap| gap[key] == ns);
    assert!(ends_at("to_ns", started) && ends_at("from_ns", stopped), "{}", info["losses"]);
    for command in ["info", "stats", "print"] {
        let output = place.lat(&[command, "exact"]);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains("stopped"), "{command}: {text}");
    }
    // All ticks of that time: the program itself knows which ones are certainly inside.
    let inside = own.chunks_exact(16).filter(|pair| {
        let slack = 1_000_000;
        word(&pair[..8]) >= answers[0] + slack && word(&pair[8..]) <= stopped - slack
    });
    assert!(inside.count() <= between);
}

#[test]
fn from_an_event_on_so_many_or_so_long() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let start = ["--start-on", "spikes:ANSWERED:id==1000000", "--enable", "spikes:TICK"];
    let options = [&start[..], &["--count", "50"]].concat();
    let report = record_from_the_first(&place, "some", &options, &program, ("1", "10", None));
    assert_eq!(
        (&report["events"]["spikes:ANSWERED"], &report["totals"]["events"]),
        (&1.into(), &50.into())
    );
    let options = [&start[..], &["--for", "20ms"]].concat();
    record_from_the_first(&place, "short", &options, &program, ("1", "10", None));
    let first = times(&place, "short", "spikes:ANSWERED")[0];
    let ticks = times(&place, "short", "spikes:TICK");
    // The late event stops the recording and is recorded, as in Barrelfish.
    let late = ticks.iter().filter(|time| **time > first + 20_000_000 + CLOCKS_NS).count();
    assert!(!ticks.is_empty() && late <= 1, "{late} of {}", ticks.len());
}

#[test]
fn events_that_nobody_has_are_told_with_the_nearest() {
    let place = Place::new();
    for (option, told) in [
        ("spikes", "SUBSYSTEM:EVENT"),
        ("spikes:ANSWERED:id>3", "one exact value"),
        ("spikes:ANSWERED:id==", "a number or a label"),
    ] {
        let output = place.lat(&["record", "-o", "no", "--start-on", option, "--", "true"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: ") && text.contains(told), "{option}: {text}");
        assert!(!place.0.join("no").exists());
    }
    let Some(program) = place.example("spikes") else { return };
    let program = program.to_str().expect("a path of letters");
    for (option, told) in
        [("spikes:ANSWERD", "did you mean spikes:ANSWERED?"), ("spikes:ANSWERED:idd==3", "id")]
    {
        let all = ["record", "-o", option, "--start-on", option, "--", program, "0", "100"];
        let output = place.lat(&all);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains("problem") && text.contains(told), "{text}");
        assert_eq!(place.report(option)["totals"]["events"], 0);
    }
    // The events of a running program are known, so the option is refused.
    let mut running = std::process::Command::new(program)
        .args(["0", "600000"])
        .env("LATERALIS_DIR", place.0.join("areas"))
        .spawn()
        .expect("the program starts");
    let pid = running.id().to_string();
    let has_area = || {
        fs::read_dir(place.0.join("areas"))
            .expect("areas")
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{pid}-")))
    };
    while !has_area() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Its schema is registered a little later than its area appears.
    let listed = || String::from_utf8_lossy(&place.lat(&["list", &pid]).stdout).contains("TICK");
    while !listed() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let all = ["record", "-o", "no", "--attach", &pid, "--start-on", "spikes:TACK"];
    let output = place.lat(&all);
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("did you mean spikes:TICK?"), "{text}");
    assert!(!place.0.join("no").exists());
}
