// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Error messages of `lat` for invalid options, and destinations of output.

use crate::place;

use place::Place;
use std::fs::{self, File, OpenOptions};
use std::process::{Command, Output, Stdio};

/// Two events `work` with a field `bytes`.
const EVENTS: &str = r#"[{"name":"work","ph":"i","ts":1,"pid":1,"tid":1,"args":{"bytes":5}},
{"name":"work","ph":"i","ts":2,"pid":1,"tid":1,"args":{"bytes":6}}]"#;

fn traced() -> Place {
    let place = Place::new();
    fs::write(place.0.join("two.json"), EVENTS).unwrap();
    place
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_dash_is_standard_output_for_formats_of_one_file() {
    let place = traced();
    for (format, ending) in [("csv", "csv"), ("jsonl", "jsonl"), ("perfetto", "pftrace")] {
        let file = format!("copy.{ending}");
        assert!(place.lat(&["convert", "two.json", "-o", &file]).status.success());
        let output = place.lat(&["convert", "two.json", "--to", format, "-o", "-"]);
        assert!(output.status.success(), "{format}: {}", error(&output));
        assert!(output.stdout == fs::read(place.0.join(file)).unwrap(), "{format}");
        assert!(error(&output).contains("written   -"), "{format}: {}", error(&output));
    }
    // The output is appended to the contents of the file.
    fs::write(place.0.join("kept"), "before\n").unwrap();
    let kept = OpenOptions::new().append(true).open(place.0.join("kept")).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["convert", "two.json", "--to", "csv", "-o", "-", "--json"])
        .current_dir(&place.0)
        .stdout(kept)
        .stderr(File::create(place.0.join("said")).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let csv = fs::read_to_string(place.0.join("copy.csv")).unwrap();
    assert_eq!(fs::read_to_string(place.0.join("kept")).unwrap(), format!("before\n{csv}"));
    let said = fs::read_to_string(place.0.join("said")).unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["output"], "-");

    for arguments in [&["--to", "ctf"][..], &["--to", "ctf2"], &[]] {
        let output = place.lat(&[&["convert", "two.json", "-o", "-"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let error = error(&output);
        assert!(error.contains("standard output takes one file: use --to with"), "{error}");
        assert!(error.contains("perfetto") && !error.contains("ctf"), "{error}");
    }
    assert!(!place.0.join("-").exists());
}

#[test]
fn a_closed_pipe_behind_a_dash_is_success() {
    let place = traced();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["convert", "two.json", "--to", "csv", "-o", "-"])
        .current_dir(&place.0)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", output.status, error(&output));
}

#[test]
fn a_field_that_no_event_has_is_told_with_the_nearest_name() {
    let place = traced();
    for command in [&["print", "two.json"][..], &["convert", "two.json", "--to", "csv", "-o", "-"]]
    {
        let output = place.lat(&[command, &["--where", "byts > 5"]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        assert!(output.stdout.is_empty(), "{command:?}");
        let text = error(&output);
        let expected = "warning: no event of the trace has a field `byts`: did you mean `bytes`?\n";
        assert!(text.starts_with(expected), "{command:?}: {text}");
    }
    let known = place.lat(&["print", "two.json", "--where", "bytes > 5 && $pid == 1"]);
    assert_eq!(String::from_utf8_lossy(&known.stdout).lines().count(), 1);
    assert_eq!(error(&known), "");
}

#[test]
fn a_count_that_is_none_is_answered_by_what_one_looks_like() {
    let output = traced().lat(&["print", "two.json", "-n", "x"]);
    assert_eq!(output.status.code(), Some(2));
    let error = error(&output);
    assert!(error.contains("'x'") && error.contains("expected a whole number"), "{error}");
}

#[test]
fn files_are_named_once_and_advice_names_the_format_that_was_asked_for() {
    let place = traced();
    for format in ["perf", "trace-cmd", "fxt", "pcap", "composite", "perfetto"] {
        let output = place.lat(&["info", "two.json", "--as", format]);
        assert_eq!(output.status.code(), Some(2), "{format}");
        assert_eq!(error(&output).matches("two.json").count(), 1, "{}", error(&output));
    }
    for format in ["sel4-tracepoints", "sel4-entries"] {
        let output = place.lat(&["info", "two.json", "--as", format]);
        let advice = format!("use {format}:ABI with aarch32");
        assert!(error(&output).contains(&advice), "{}", error(&output));
    }
}
