// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat top`: live numbers, compared with the counts of the program itself.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::Place;

/// Writes 300 single bytes, and prints their number at the end.
const WRITER: &str = "import os, time\n\
    null = os.open('/dev/null', os.O_WRONLY)\n\
    for number in range(300):\n\
    \x20   os.write(null, b'x')\n\
    \x20   time.sleep(0.005)\n\
    os.write(1, b'written 300\\n')\n";

/// Returns the path of Python itself: the command on the PATH may be a script that starts it, and writes as
/// well.
fn python() -> Option<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = output.ok().filter(|output| output.status.success());
    if path.is_none() {
        println!("SKIPPED: no python3 here");
    }
    path.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn looks(stdout: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(stdout);
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn writes(look: &Value) -> u64 {
    let calls = look["calls"].as_array().into_iter().flatten();
    let counts = calls.filter(|call| call["call"] == "write").map(|call| &call["returned"]);
    counts.map(|count| count.as_u64().expect("a count")).sum()
}

fn left_over(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.0.join("tmp")).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn command(place: &Place, words: &[&str]) -> Command {
    let _ = fs::create_dir(place.0.join("tmp"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
    command
        .args(words)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .env("TMPDIR", place.0.join("tmp"))
        .stdin(Stdio::null());
    command
}

#[test]
fn numbers_grow_to_those_of_the_whole_program() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let words = ["top", "--json", "--every", "200ms", "--over", "60s", "--with", "io", "--"];
    let all = [&words[..], &[python.as_str(), "-c", WRITER]].concat();
    let output = command(&place, &all).output().expect("lat can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("written 300\n"));
    let looks = looks(&output.stdout);
    let counts: Vec<u64> = looks.iter().map(writes).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    // The program runs for at least 1.5 s; one more write is that of its output.
    assert!(counts.len() >= 4 && counts[counts.len() / 2] < 300, "{counts:?}");
    assert_eq!(counts.last(), Some(&301), "{counts:?}");
    let last = looks.last().expect("a look");
    assert_eq!(last["version"], 1);
    assert_eq!(last["losses"].as_array().map(Vec::len), Some(0), "{last}");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

#[test]
fn what_is_longer_ago_is_not_counted_and_the_disk_is_bounded() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let words = ["top", "--json", "--every", "100ms", "--over", "300ms", "--with", "io", "--"];
    let all = [&words[..], &[python.as_str(), "-c", WRITER]].concat();
    let mut child = command(&place, &all).stdout(Stdio::piped()).spawn().expect("lat");
    let (mut most_chunks, mut counts) = (0, Vec::new());
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        counts.extend(looks(line.as_bytes()).iter().map(writes));
        let folders = left_over(&place);
        let chunks = folders
            .iter()
            .flat_map(|name| fs::read_dir(place.0.join("tmp").join(name).join("now")));
        let chunks = chunks.flatten().flatten();
        let is_chunk = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("chunk-");
        most_chunks = most_chunks.max(chunks.filter(|entry| is_chunk(&entry.file_name())).count());
    }
    assert!(child.wait().expect("an end").success());
    // 3 are counted, 2 are kept after them, one is being written and one removed.
    assert!((1..=7).contains(&most_chunks), "{most_chunks}");
    let most = counts.iter().max().copied().unwrap_or(0);
    assert!((1..300).contains(&most), "{counts:?}");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

#[test]
fn the_page_stands_beside_the_output_of_the_program() {
    let place = Place::new();
    let words = ["top", "--with", "io", "sh", "-c", "echo to nobody >/dev/null; echo out; exit 3"];
    let output = command(&place, &words).output().expect("lat can be started");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"out\n");
    let page = String::from_utf8_lossy(&output.stderr);
    assert!(page.contains(" UTC, the last 5.00 s\n") && page.contains("io_write"), "{page}");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

#[test]
fn options_that_keep_something_are_refused() {
    let place = Place::new();
    for (words, what) in [
        (&["--output", "x"][..], "--output"),
        (&["--chunk-size", "1M"], "--chunk-size"),
        (&["--mode", "overwrite"], "--mode overwrite"),
        (&["--every", "1ms"], "at least 100 ms"),
        (&["--over", "0s"], "--over"),
        (&["--over", "9h"], "at most 1000"),
    ] {
        let all = [&["top"][..], words, &["--", "true"]].concat();
        let output = command(&place, &all).output().expect("lat can be started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(what), "{words:?}: {said}");
        assert_eq!(left_over(&place), Vec::<String>::new());
    }
}
