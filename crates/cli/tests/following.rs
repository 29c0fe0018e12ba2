// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table --follow`, `lat print --follow`: rows and lines printed during a recording are those of the
//! finished recording.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::place::Place;
use serde_json::Value;

/// Processes started by a test; those still running are killed when it ends.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(place: &Place, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(arguments)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started")
}

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill").success(), "{signal} {pid}");
}

fn row(line: &str) -> Value {
    serde_json::from_str(line).expect("a row")
}

/// Starts a long-running program that answers requests, its recorder, and a follower; reads rows of both
/// threads and both desks while all three run.
fn follow(
    place: &Place,
    program: &Path,
    how: &[&str],
) -> (Running, BufReader<impl std::io::Read>, Vec<Value>) {
    let program = program.to_str().expect("a path of letters");
    let record = ["record", "--quiet", "-o", "live", "--", program, "--requests", "100000000"];
    let recorder = start(place, &record);
    let mut running = Running(vec![recorder]);
    while !place.0.join("live/report.json").exists() {
        assert!(running.0[0].try_wait().expect("its status").is_none(), "the recorder ended");
        sleep(Duration::from_millis(5));
    }
    let (lines, rows) = begin(place, &mut running, how);
    (running, lines, rows)
}

/// Starts a follower, and reads rows while the other processes run.
fn begin(
    place: &Place,
    running: &mut Running,
    how: &[&str],
) -> (BufReader<impl std::io::Read + use<>>, Vec<Value>) {
    let mut follower = start(place, &[how, &["-f"]].concat());
    let mut lines = BufReader::new(follower.stdout.take().expect("its output"));
    running.0.push(follower);
    let mut rows: Vec<Value> = Vec::new();
    // Several rounds, so that their boundaries are tested.
    while rows.len() < 2000 {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "it ended after {}", rows.len());
        rows.push(row(&line));
    }
    for child in &mut running.0 {
        assert!(child.try_wait().expect("its status").is_none(), "rows came only at the end");
    }
    (lines, rows)
}

const TABLE: [&str; 5] = ["table", "live", "--name", "events", "--json"];
const LINES: [&str; 4] = ["print", "live", "--format", "json"];

/// Returns the cells of rows, except those that are more accurate at the end: clock, names, stream numbers.
fn by_processor(rows: &[Value]) -> BTreeMap<u64, Vec<String>> {
    let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for row in rows {
        let words =
            ["class", "name", "fields", "pid", "tid", "packet"].map(|name| row[name].to_string());
        all.entry(row["cpu"].as_u64().expect("a processor")).or_default().push(words.join(" "));
    }
    all
}

fn finished(place: &Place, how: &[&str], code: i32) -> Vec<Value> {
    let output = place.lat(how);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    String::from_utf8_lossy(&output.stdout).lines().map(row).collect()
}

/// Returns the remaining rows of a follower, its error output and its exit code.
fn rest(
    running: &mut Running,
    (nth, lines): (usize, impl std::io::BufRead),
) -> (Vec<Value>, String, Option<i32>) {
    let rows = lines.lines().map(|line| row(&line.expect("a line"))).collect();
    let follower = &mut running.0[nth];
    let mut error = String::new();
    let stderr = follower.stderr.take();
    stderr.expect("its errors").read_to_string(&mut error).expect("text");
    (rows, error, follower.wait().expect("its status").code())
}

fn assert_same(live: &[Value], whole: &[Value]) {
    let (of_live, of_whole) = (by_processor(live), by_processor(whole));
    for (cpu, expected) in &of_whole {
        let found = &of_live[cpu];
        let first = found.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!((found.len(), first), (expected.len(), None), "processor {cpu}");
    }
    assert_eq!(live.len(), whole.len());
}

#[test]
fn rows_that_are_followed_are_those_of_the_finished_recording() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    let (mut running, lines, mut rows) = follow(&place, &program, &TABLE);
    let pid = rows.iter().find(|row| row["class"] == "shop:REQUEST").expect("a request")["pid"]
        .as_u64()
        .expect("a number");
    kill(pid as u32, "-TERM");
    running.0[0].wait().expect("the recorder ends");
    let (more, error, code) = rest(&mut running, (1, lines));
    rows.extend(more);
    assert_eq!((error.as_str(), code), ("", Some(0)));
    assert_same(&rows, &finished(&place, &TABLE, 0));
}

#[test]
fn lines_that_are_followed_are_those_of_the_finished_recording() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    let (mut running, lines, mut rows) = follow(&place, &program, &LINES);
    let pid = rows.iter().find(|row| row["name"] == "shop:REQUEST").expect("a request")["pid"]
        .as_u64()
        .expect("a number");
    kill(pid as u32, "-TERM");
    running.0[0].wait().expect("the recorder ends");
    let (more, error, code) = rest(&mut running, (1, lines));
    rows.extend(more);
    assert_eq!((error.as_str(), code), ("", Some(0)));
    let whole = finished(&place, &LINES, 0);
    assert_same(&rows, &whole);
    // Times given in options count from the start of the whole recording.
    let begin = whole[0]["time_ns"].as_i64().expect("a time");
    for (option, is_chosen) in [("--from", false), ("--until", true)] {
        let how = [&LINES[..], &[option, "10ms"]].concat();
        let chosen = finished(&place, &how, 0);
        assert_eq!(chosen[0]["time_ns"].as_i64().expect("a time") == begin, is_chosen);
        assert_eq!(finished(&place, &[&how[..], &["-f"]].concat(), 0), chosen);
    }
    let some = [&LINES[..], &["-f", "--limit", "3"]].concat();
    assert_eq!(finished(&place, &some, 0).len(), 3);
}

#[test]
fn a_recorder_that_is_killed_ends_what_follows_it() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    let (mut running, lines, mut rows) = follow(&place, &program, &TABLE);
    running.0[0].kill().expect("the recorder is killed");
    running.0[0].wait().expect("its status");
    let pid = rows.iter().find(|row| row["class"] == "shop:REQUEST").expect("a request")["pid"]
        .as_u64()
        .expect("a number");
    kill(pid as u32, "-KILL");
    let (more, error, code) = rest(&mut running, (1, lines));
    rows.extend(more);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("interrupted: its recorder is gone"), "{error}");
    // The recorder may have been killed within a packet, which is damage.
    let damaged = place.lat(&TABLE).status.code();
    assert_same(&rows, &finished(&place, &TABLE, damaged.expect("a code")));
}

/// Before a recorder has written a report, the lock of the folder is the only sign of it.
#[test]
fn a_recording_without_a_report_is_followed_as_long_as_its_recorder_is_there() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    let (mut running, _first, rows) = follow(&place, &program, &TABLE);
    let pid = rows.iter().find(|row| row["class"] == "shop:REQUEST").expect("a request")["pid"]
        .as_u64()
        .expect("a number");
    // The recording as in its first moment. The recorder already knows its only program, and writes no
    // further report.
    let report = place.0.join("live/report.json");
    std::fs::remove_file(&report).expect("it was there");
    let [table, print] = [&TABLE[..], &LINES].map(|how| begin(&place, &mut running, how));
    assert!(!report.exists(), "nothing else has told that it goes on");
    kill(pid as u32, "-TERM");
    running.0[0].wait().expect("the recorder ends");
    assert!(report.exists(), "and when it has ended");
    for (nth, how, (lines, mut rows)) in [(2, &TABLE[..], table), (3, &LINES, print)] {
        let (more, error, code) = rest(&mut running, (nth, lines));
        rows.extend(more);
        assert_eq!((error.as_str(), code), ("", Some(0)), "{how:?}");
        assert_same(&rows, &finished(&place, how, 0));
    }
}

#[test]
fn what_cannot_be_followed_is_said() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    place.record("done", &[], &program, &["--requests", "2"]);
    for (arguments, expected) in [
        (&["done", "--name", "spans"][..], "cannot follow the table: spans: only events"),
        (&["done", "--name", "event"], "no such table: event: did you mean events"),
        (&["done", "done", "--name", "events"], "cannot follow: several recordings"),
        (&["done", "--name", "events", "--to", "parquet"], "cannot follow into a file"),
        (&["areas", "--name", "events"], "cannot follow: areas: only a recording"),
    ] {
        let output = place.lat(&[&["table", "--follow"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with(&format!("error: {expected}")), "{error}");
    }
    let whole = place.lat(&["table", "done", "--name", "shop:REQUEST", "--column", "cpu,id"]);
    let followed =
        place.lat(&["table", "-f", "done", "--name", "shop:REQUEST", "--column", "cpu,id"]);
    let lines = |bytes: &[u8]| {
        let mut lines: Vec<String> =
            String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(lines(&followed.stdout), lines(&whole.stdout));
    assert_eq!(lines(&followed.stdout).len(), 1 + 4, "two requests of each of two threads");
    let some =
        place.lat(&["table", "-f", "done", "--name", "events", "--limit", "3", "--to", "csv"]);
    assert_eq!(String::from_utf8_lossy(&some.stdout).lines().count(), 4);
}
