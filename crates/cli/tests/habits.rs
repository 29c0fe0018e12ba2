// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Habits from other tools: help as a command, `-` for standard input, the newest recording as default,
//! programs by name, times copied from one command into another.

use crate::place::Place;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Two events of one thread, a second apart, in a format that is easy to write.
const TRACE: &str = r#"{"traceEvents":[
    {"name":"first","ph":"X","ts":1000000,"dur":10,"pid":1,"tid":1},
    {"name":"second","ph":"X","ts":2000000,"dur":10,"pid":1,"tid":1}]}"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lat_with_input(place: &Place, arguments: &[&str], input: Stdio) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
    command
        .args(arguments)
        .current_dir(&place.0)
        .env("TMPDIR", place.0.join("temporary"))
        .stdin(input);
    command
}

fn events(output: &Output) -> usize {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).lines().count()
}

#[test]
fn help_and_version_are_commands_as_well() {
    let place = Place::new();
    for (words, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "stats"], &["stats", "--help"]),
        (&["help", "flow", "stacks"], &["flow", "stacks", "--help"]),
        (&["version"], &["--version"]),
    ] {
        let (by_word, by_option) = (place.lat(words), place.lat(option));
        assert_eq!(by_word.status.code(), Some(0), "{words:?}");
        assert_eq!(text(&by_word.stdout), text(&by_option.stdout), "{words:?}");
    }
}

#[test]
fn help_is_at_most_100_columns_wide_where_there_is_no_terminal() {
    let place = Place::new();
    for command in
        ["record", "stats", "view", "table", "convert", "print", "path", "diff", "keep", "live"]
    {
        for line in text(&place.lat(&[command, "--help"]).stdout).lines() {
            assert!(line.chars().count() <= 100, "lat {command} --help: {line}");
        }
    }
}

#[test]
fn without_a_name_the_newest_recording_of_the_folder_is_read() {
    let place = Place::new();
    let none = place.lat(&["stats"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).starts_with("error: no trace is named: no recording (lateralis-*)"));

    let Some(program) = place.example("slowdown") else { return };
    let program = program.to_str().expect("a path of letters");
    for _ in 0..2 {
        let recorded = place.lat(&["record", "--quiet", "--", program, "--requests", "3"]);
        assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    }
    for arguments in
        [&["info"][..], &["stats"], &["print", "--format", "json"], &["table", "--name", "events"]]
    {
        let output = place.lat(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        let first = text(&output.stderr).lines().next().unwrap_or_default().to_owned();
        assert_eq!(
            first,
            "reading lateralis-slowdown-program-2: the newest recording in this folder"
        );
        let named = place.lat(&[arguments, &["lateralis-slowdown-program-2"]].concat());
        assert_eq!(text(&output.stdout), text(&named.stdout), "{arguments:?}");
        assert!(!text(&named.stderr).contains("newest"), "{}", text(&named.stderr));
    }
}

#[test]
fn a_pattern_of_no_event_is_a_problem_with_the_nearest_name() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else { return };
    let program = program.to_str().expect("a path of letters");
    for (option, what) in [("--enable", "record"), ("--disable", "leave out")] {
        let folder = format!("out{option}");
        let words = ["record", "-o", &folder, option, "shop:REQEST", "--", program];
        let output = place.lat(&[&words[..], &["--requests", "3"]].concat());
        let errors = text(&output.stderr);
        let expected = format!(
            "Cannot {what} shop:REQEST: no program had such an event; did you mean shop:REQUEST?"
        );
        assert!(errors.contains(&expected), "{errors}");
    }
}

#[test]
fn a_dash_is_standard_input() {
    let place = Place::new();
    fs::create_dir(place.0.join("temporary")).expect("a folder");
    fs::write(place.0.join("trace.json"), TRACE).expect("a trace");

    let file = File::open(place.0.join("trace.json")).expect("the trace");
    let read = lat_with_input(&place, &["print", "-"], file.into()).output().expect("lat runs");
    assert_eq!(events(&read), 2);

    let mut child = lat_with_input(&place, &["print", "-"], Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(TRACE.as_bytes()).expect("lat reads");
    drop(pipe);
    let piped = child.wait_with_output().expect("lat ends");
    assert_eq!(text(&piped.stdout), text(&read.stdout));

    let nothing = lat_with_input(&place, &["info", "-"], Stdio::null()).output().expect("lat runs");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        text(&nothing.stderr).contains("standard-input: the file is empty"),
        "{}",
        text(&nothing.stderr)
    );
    let left: Vec<_> = fs::read_dir(place.0.join("temporary")).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn times_are_accepted_as_they_are_printed() {
    let place = Place::new();
    fs::write(place.0.join("trace.json"), TRACE).expect("a trace");
    let after =
        |time: &str| events(&place.lat(&["print", "trace.json", &format!("--from={time}")]));
    let printed = text(&place.lat(&["print", "trace.json"]).stdout);
    let second =
        printed.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a time");
    assert_eq!(second, "2.000000000");
    for time in [
        second,
        "2.000000000 s",
        "@2",
        "2000000000",
        "1s",
        "+1s",
        "1",
        "1970-01-01T00:00:02Z",
        "-0s",
    ] {
        assert_eq!(after(time), 1, "{time}");
    }
    for time in ["1.000000000", "0s", "-1s", "-10s", "1970-01-01 00:00:01"] {
        assert_eq!(after(time), 2, "{time}");
    }
    let wrong = place.lat(&["print", "trace.json", "--from", "yesterday"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("-1s (before the end)"), "{}", text(&wrong.stderr));
}

#[test]
fn the_form_of_times_can_be_chosen_and_is_read_back() {
    let place = Place::new();
    // 2026-11-21 01:27:22 UTC, and one second later.
    let dated = TRACE
        .replace(r#""ts":1000000,"#, r#""ts":1795224442000000,"#)
        .replace(r#""ts":2000000,"#, r#""ts":1795224443000000,"#);
    fs::write(place.0.join("trace.json"), dated).expect("a trace");
    for (form, expected) in [
        ("utc", "01:27:23.000000000"),
        ("local", "2026-11-21 06:57:23.000000000+05:30"),
        ("relative", "+1.000000000"),
        ("delta", "+1.000000000"),
        ("epoch", "1795224443.000000000"),
    ] {
        let mut print =
            lat_with_input(&place, &["print", "trace.json", "--time", form], Stdio::null());
        let printed = print.env("TZ", "IST-5:30").output().expect("lat runs");
        let lines = text(&printed.stdout);
        let last = lines.lines().last().unwrap_or_default().to_owned();
        assert!(last.starts_with(expected), "{form}: {last}: {}", text(&printed.stderr));
        let from = format!("--from={expected}");
        assert_eq!(events(&place.lat(&["print", "trace.json", &from])), 1, "{from}");
    }
    let wrong = place.lat(&["print", "trace.json", "--time", "local", "--format", "json"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn what_is_no_trace_among_several_is_left_out_with_a_warning() {
    let place = Place::new();
    fs::write(place.0.join("trace.json"), TRACE).expect("a trace");
    fs::write(place.0.join("notes.txt"), "bring milk\n").expect("a file");
    for command in ["info", "stats", "print"] {
        let both = place.lat(&[command, "trace.json", "notes.txt"]);
        assert_eq!(both.status.code(), Some(1), "{command}: {}", text(&both.stderr));
        let errors = text(&both.stderr);
        assert!(errors.contains("warning: not read: unknown format: notes.txt"), "{errors}");
        assert!(!both.stdout.is_empty(), "{command}");
    }
    let printed = place.lat(&["print", "notes.txt", "trace.json"]);
    assert_eq!(text(&printed.stdout).lines().count(), 2);
    let none = place.lat(&["info", "notes.txt", "notes.txt"]);
    assert_eq!(none.status.code(), Some(2));
    let missing = place.lat(&["info", "trace.json", "trace.jsom"]);
    assert_eq!(missing.status.code(), Some(2), "a name that was mistyped is an error");
}

#[test]
fn numbers_in_a_pipe_have_no_blanks() {
    let place = Place::new();
    let event = r#"{"name":"e","ph":"i","ts":1,"pid":1,"tid":1,"s":"t"}"#;
    let all = vec![event; 12_345].join(",");
    fs::write(place.0.join("trace.json"), format!("[{all}]")).expect("a trace");
    let stats = text(&place.lat(&["stats", "trace.json"]).stdout);
    assert!(stats.starts_with("12345 events"), "{stats}");
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let place = Place::new();
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut help = lat_with_input(&place, &["--help"], Stdio::null());
    let output = help.stdout(full).output().expect("lat runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_doctor_tries_each_source_and_leaves_nothing() {
    let place = Place::new();
    fs::create_dir(place.0.join("temporary")).expect("a folder");
    let mut doctor = lat_with_input(&place, &["doctor", "--json"], Stdio::null());
    let output = doctor.env("LATERALIS_DIR", place.0.join("areas")).output().expect("lat runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = told["checks"].as_array().expect("a list");
    let programs = checks.iter().find(|check| check["what"] == "programs").expect("programs");
    assert_ne!(programs["works"], "no", "{programs}");
    for check in checks {
        let needs_advice = check["works"] == "no";
        assert!(!needs_advice || check["advice"].is_string(), "{check}");
        assert!(check["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{check}");
    }
    let left: Vec<_> = fs::read_dir(place.0.join("temporary")).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_time_outside_of_the_recording_is_a_warning() {
    let place = Place::new();
    fs::write(place.0.join("trace.json"), TRACE).expect("a trace");
    for (arguments, warning) in [
        (
            &["print", "trace.json", "--from", "10s"][..],
            "warning: --from 11.000000000 s is after its end",
        ),
        (
            &["stats", "trace.json", "--until", "@0.5"],
            "warning: --until 0.500000000 s is before its beginning",
        ),
        (
            &["table", "trace.json", "--name", "events", "--from", "1s", "--until", "0s"],
            "is before --from",
        ),
    ] {
        let output = place.lat(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stderr).contains(warning), "{arguments:?}: {}", text(&output.stderr));
    }
    let inside = place.lat(&["print", "trace.json", "--from", "0s", "--until", "1s"]);
    assert!(inside.stderr.is_empty(), "{}", text(&inside.stderr));
}

#[test]
fn a_running_program_can_be_named() {
    let place = Place::new();
    let unknown = place.lat(&["record", "--attach", "no-such-program-runs"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no process is called no-such-program-runs"));

    let Some(program) = place.example("slowdown") else { return };
    let own = place.0.join(format!("named{}", std::process::id()));
    fs::rename(program, &own).expect("a name that no other process has");
    let mut child = Command::new(&own)
        .args(["--requests", "1000000"])
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    let name = own.file_name().and_then(|name| name.to_str()).expect("a name");
    let arguments =
        ["record", "--quiet", "--attach", name, "--duration", "200ms", "-o", "attached"];
    let output = place.lat(&arguments);
    child.kill().expect("it can be ended");
    child.wait().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let processes = &place.json(&["info", "--json", "attached"])["processes"];
    assert_eq!(processes[0]["pid"], child.id(), "{processes}");
}

#[test]
fn hidden_commands_are_not_offered_by_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&place.lat(&["completions", shell]).stdout);
        assert!(script.contains("tracepoints"), "{shell}");
        assert!(
            !script.contains("demo-warehouse") && !script.contains("demo__warehouse"),
            "{shell}"
        );
    }
}

#[test]
fn json_documents_have_a_version() {
    let place = Place::new();
    fs::write(place.0.join("trace.json"), TRACE).expect("a trace");
    for arguments in [
        &["info", "trace.json", "--json"][..],
        &["stats", "trace.json", "--json"],
        &["table", "trace.json", "--json"],
        &["diff", "trace.json", "trace.json", "--json"],
        &["path", "trace.json", "--span", "first", "--json"],
        &["list", "--json"],
        &["clean", "--json"],
    ] {
        assert_eq!(place.json(arguments)["version"], 1, "{arguments:?}");
    }
}
