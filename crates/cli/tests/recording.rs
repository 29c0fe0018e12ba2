// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat demo` and `lat record` from end to end.

use crate::place;

use place::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the sorted output of babeltrace2, which must not print a warning.
fn babeltrace_lines(trace: &Path) -> Option<Vec<String>> {
    let options = ["--clock-seconds", "--clock-gmt", "--no-delta", "--names=all"];
    let output = Command::new("babeltrace2").args(options).arg(trace).output().ok()?;
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    Some(sorted_lines(&output.stdout))
}

/// Events of different CPUs may have the same time; their order has no meaning.
fn sorted_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<String> = text.lines().map(ToString::to_string).collect();
    lines.sort();
    lines
}

#[test]
fn demo_has_every_event_that_its_size_promises() {
    let place = Place::new();
    let output = place.lat(&[
        "demo",
        "-o",
        "demo",
        "--clients",
        "2",
        "--threads",
        "3",
        "--orders",
        "200",
        "--workers",
        "2",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = place.report("demo");
    assert_eq!(report["complete"], true);
    assert_eq!(report["totals"]["lost"]["total"], 0);
    let orders = 2 * 3 * 200;
    let expected = [
        ("client:ORDER", orders),
        ("client:SEND", orders),
        ("client:RECEIVE", orders),
        ("client:DONE", orders),
        ("client:STATE", 2 * orders),
        // One signal for every 64 orders of a thread.
        ("client:REMINDER", 2 * 3 * (200 / 64)),
        ("warehouse:RECEIVE", orders),
        ("warehouse:QUEUE", 2 * orders),
        ("warehouse:WORK", orders),
        ("warehouse:WORKED", orders),
        ("warehouse:WAIT", orders),
        ("warehouse:LOCKED", orders),
        ("warehouse:TAKE", orders),
        ("warehouse:RELEASE", orders),
        ("warehouse:SEND", orders),
        ("warehouse:STATE", 2 * orders),
    ];
    for (event, count) in expected {
        assert_eq!(report["events"][event], count, "{event}");
    }
    let refills = report["events"]["warehouse:REFILL"].as_u64().unwrap_or(0);
    let sum: u64 = expected.iter().map(|(_, count)| *count as u64).sum();
    assert_eq!(report["totals"]["events"], sum + refills);
}

#[test]
fn our_reader_and_babeltrace_find_the_same_events_as_the_recorder() {
    let place = Place::new();
    place.lat(&["demo", "-o", "demo", "--orders", "100"]);
    let totals = &place.report("demo")["totals"];
    let events =
        totals["events"].as_u64().unwrap_or(0) + totals["internal_events"].as_u64().unwrap_or(0);
    let ours = sorted_lines(&place.lat(&["print", "demo", "--format", "babeltrace"]).stdout);
    assert_eq!(ours.len() as u64, events);
    match babeltrace_lines(&place.0.join("demo/ctf")) {
        Some(theirs) => {
            let difference = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            assert_eq!(difference, None);
            assert_eq!(ours.len(), theirs.len());
        }
        None => eprintln!("SKIPPED: no babeltrace2 here"),
    }
}

#[test]
fn spans_and_budgets_of_the_demo_are_complete() {
    let place = Place::new();
    place.lat(&["demo", "-o", "demo", "--orders", "100"]);
    let stats = place.json(&["stats", "demo", "--json"]);
    let spans = stats["spans"].as_array().expect("spans");
    for name in ["request", "work", "shelf_wait", "shelf_held"] {
        let span = spans.iter().find(|span| span["name"] == name);
        let span = span.unwrap_or_else(|| panic!("no span {name} in {stats}"));
        assert_eq!(span["unfinished"], 0, "{span}");
        assert_eq!(span["orphans"], 0, "{span}");
    }
    assert_eq!(stats["budgets"].as_array().map(Vec::len), Some(2), "{stats}");
}

#[test]
fn output_and_exit_status_of_the_program_stay_as_they_are() {
    let place = Place::new();
    for (script, status) in [("echo out; echo err >&2; exit 7", 7), ("kill -TERM $$", 143)] {
        let direct = Command::new("sh").args(["-c", script]).output().expect("sh");
        for with in [&[][..], &["--with", "mutex,malloc,io,thread"]] {
            let name = format!("r{status}-{}", with.len());
            let mut arguments = vec!["record", "--quiet", "-o", &name];
            arguments.extend(with);
            arguments.extend(["--", "sh", "-c", script]);
            let recorded = place.lat(&arguments);
            assert_eq!(recorded.status.code(), Some(status), "{}", stderr(&recorded));
            assert_eq!(recorded.stdout, direct.stdout);
            assert_eq!(recorded.stderr, direct.stderr, "{}", stderr(&recorded));
            assert_eq!(place.report(&name)["command"]["exit_status"], status);
        }
    }
}

#[test]
fn json_summary_is_one_line_with_the_exit_status() {
    let place = Place::new();
    let output = place.lat(&["record", "--json", "-o", "r", "--", "sh", "-c", "echo hi; exit 3"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let (first, last) = text.trim_end().split_once('\n').expect("two lines");
    assert_eq!(first, "hi");
    let summary: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(summary["exit_status"], 3);
    assert_eq!(summary["recording"], "r");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn what_cannot_be_recorded_is_one_sentence_and_leaves_nothing() {
    let place = Place::new();
    fs::write(place.0.join("taken"), "").expect("a file");
    for arguments in [
        &["record", "-o", "r", "--", "./no-such-program"][..],
        &["record", "-o", "taken", "--", "true"],
        &["record", "-o", "no/such/folder/r", "--buffer", "5 apples", "--", "true"],
        &["record", "-o", "r", "--attach", "1"],
        &["record", "-o", "r", "--enable", "a:b:c", "--", "true"],
        &["record", "-o", "r"],
        &["recover", "taken", "-o", "r"],
        &["recover", "missing", "-o", "r"],
        &["snapshot", "1", "-o", "r"],
        &["info", "missing"],
        &["stats", "taken"],
    ] {
        let output = place.lat(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!place.0.join("r").exists(), "{arguments:?} left a recording");
    }
}

#[test]
fn nothing_is_left_where_areas_live() {
    let place = Place::new();
    place.lat(&["demo", "-o", "demo", "--orders", "10"]);
    let left: Vec<_> = fs::read_dir(place.0.join("areas"))
        .expect("the folder of areas")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(place.json(&["list", "--json"])["programs"].as_array().map(Vec::len), Some(0));
}

/// Writes, in itself and in a child, from a thread with another name.
const THREAD_WRITES: &str = r#"
    #define _GNU_SOURCE
    #include <lockio.h>
    #include <pthread.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void *work(void *unused) {
        pthread_setname_np(pthread_self(), "worker");
        lat_server_request(1);
        return unused;
    }
    int main(void) {
        const pid_t child = fork();
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        if (child > 0) waitpid(child, 0, 0);
        return 0;
    }
"#;

#[test]
fn a_process_has_its_own_name_whichever_thread_writes_first() {
    let place = Place::new();
    let source = place.0.join("own.c");
    fs::write(&source, THREAD_WRITES).expect("its source");
    let Some(program) = place.compile("own", &source, "lockio") else { return };
    let output = place.lat(&["record", "-o", "out", "--", program.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let names = |event: &str| -> Vec<String> {
        let output = place.lat(&["print", "out", "--event", event, "--format", "json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON");
        let name = |line: Value| line["fields"]["name"].as_str().expect("a name").to_owned();
        text.lines().map(line).map(name).collect()
    };
    assert_eq!(names("lateralis:PROCESS"), ["own-program", "own-program"]);
    assert_eq!(names("lateralis:THREAD_NAME"), ["worker", "worker"]);
}
