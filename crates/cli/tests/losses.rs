// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings with forced losses: every affected number is marked, in text and in JSON.

use crate::place;

use std::path::PathBuf;
use std::process::Command;

use place::Place;
use serde_json::{Value, json};

/// More lock operations than the smallest ring holds between two drains.
const LOCKS: &str = "
import threading
lock = threading.Lock()
def work():
    for turn in range(20000):
        with lock: pass
threads = [threading.Thread(target=work) for number in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";

/// Numbers that identify or locate something and measure nothing, and numbers from the command line.
const PLAIN: [&str; 25] = [
    "version",
    "pid",
    "tid",
    "waker_tid",
    "cpu",
    "from_cpu",
    "to_cpu",
    "stream",
    "open_least",
    "open_most",
    "longest_silence_begin_ns",
    "shortest_silence_told_ns",
    "begin_ns",
    "end_ns",
    "bucket_ns",
    // Duration of a certain span, whatever is missing around it.
    "duration_ns",
    // A property of the clocks, not of the events.
    "clock_error_ns",
    // Certain if nothing is missing around it.
    "longest_silence_ns",
    // The losses themselves state what is missing.
    "good_is_lossy",
    "bad_is_lossy",
    "threshold",
    "noise",
    "error",
    "time_ns",
    "kept",
];

/// Collects members that contain a number without a quality.
fn unmarked(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| unmarked(item, path, found)),
        Value::Object(members) => {
            let marks = members.get("not_exact").and_then(Value::as_object);
            for (name, member) in members {
                let is_number = |value: &Value| value.is_number();
                let in_list = member.as_array().and_then(|list| list.first());
                let has_number = is_number(member)
                    || in_list.is_some_and(|first| first.is_number() || first.is_array());
                let is_marked = marks.is_some_and(|marks| marks.contains_key(name));
                if has_number && !is_marked && marks.is_some() && !PLAIN.contains(&name.as_str()) {
                    found.push(format!("{path}.{name}"));
                }
                if name != "not_exact" && !is_marked {
                    unmarked(member, &format!("{path}.{name}"), found);
                }
            }
        }
        _ => {}
    }
}

/// Counts the cells of a row that are a number without a mark of its quality.
fn bare(line: &str) -> usize {
    let is_number = |cell: &str| {
        let mut words = cell.split(' ').filter(|word| !word.is_empty()).peekable();
        let mut digits = 0;
        while words.next_if(|word| word.chars().all(|c| c.is_ascii_digit() || c == '.')).is_some() {
            digits += 1;
        }
        let units = ["ns", "µs", "ms", "s", "%"];
        let unit = words.next().is_none_or(|unit| units.contains(&unit) || unit.ends_with("/s"));
        digits > 0 && unit && words.next().is_none()
    };
    line.split("  ").map(str::trim).filter(|cell| is_number(cell)).count()
}

/// Returns the sections of a page: title, and rows without the head of the table.
fn sections(page: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            let title = lines.next().unwrap_or_default().to_owned();
            lines.next_if(|line| line.starts_with("  "));
            all.push((title, Vec::new()));
        } else if let Some(last) = all.last_mut().filter(|_| line.starts_with("  ")) {
            last.1.push(line.to_owned());
        }
    }
    all
}

/// Number of cells in a row of a section that identify something and measure nothing.
fn plain_cells(title: &str) -> usize {
    match title {
        "events" => 1,
        "events by processor" | "messages by processors" => 2,
        title if title.ends_with("how many of which duration") => 2,
        title if title.ends_with("by how many were open") => 1,
        _ => 0,
    }
}

/// Returns the rows of a table.
fn rows(place: &Place, recording: &str, table: &str) -> Vec<Value> {
    let name = format!("{recording}-{table}.jsonl");
    place.json(&["table", recording, "--name", table, "-o", &name, "--json"]);
    let text = std::fs::read_to_string(place.0.join(&name)).expect("rows");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Checks all output about one lossy recording.
fn check(place: &Place, recording: &str) {
    let stats = place.json(&["stats", recording, "--json"]);
    let losses = stats["losses"].as_array().expect("losses");
    assert!(losses.iter().any(|loss| loss["count"].as_u64() > Some(0)), "nothing was lost");
    assert_eq!(stats["quality"], json!({ "sums": "lower_bound", "values": "unknown" }));
    let mut found = Vec::new();
    unmarked(&stats, "stats", &mut found);
    assert_eq!(found, [""; 0], "{recording}");

    for section in [
        "spans",
        "keys",
        "slowest",
        "latency",
        "messages",
        "states",
        "counters",
        "events",
        "cpus",
        "threads",
        "wakeups",
        "applications",
    ] {
        let output = place.lat(&["stats", recording, "--section", section, "--top", "1000"]);
        let page = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(page.starts_with("≥ ") && page.contains("it could only be more"), "{page}");
        for (title, rows) in sections(&page) {
            let most = plain_cells(&title);
            for row in rows.iter().filter(|row| !row.contains("… ")) {
                assert!(bare(row) <= most, "{section}: {title}: {row}");
            }
        }
    }

    // An exact row has no loss inside, and for messages also none before its end.
    let losses = rows(place, recording, "losses");
    assert!(!losses.is_empty(), "nothing was lost");
    let since = |loss: &Value| loss["begin_ts"].as_i64().unwrap_or(i64::MIN);
    let until = |loss: &Value| loss["end_ts"].as_i64().unwrap_or(i64::MAX);
    for table in ["spans", "messages", "states"] {
        for row in rows(place, recording, table) {
            let ends = (row["ts"].as_i64(), row["end_ts"].as_i64());
            let (Some(begin), Some(end)) = ends else {
                assert_ne!(row["quality"], "exact", "{row}");
                continue;
            };
            let inside = losses.iter().any(|loss| since(loss) < end && until(loss) > begin);
            let before = losses.iter().any(|loss| since(loss) < end);
            let matters = if table == "messages" { before } else { inside };
            assert!(!matters || row["quality"] != "exact", "{table}: {row}");
        }
    }
}

/// Checks `lat diff` of a lossy recording and another one.
fn check_diff(place: &Place, recordings: [&str; 2], is_lossy: [bool; 2]) {
    let output = place.lat(&["diff", recordings[0], recordings[1], "--json", "--threshold", "0"]);
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        [&diff["good_is_lossy"], &diff["bad_is_lossy"]],
        is_lossy.map(Value::from).each_ref()
    );
    let mut found = Vec::new();
    unmarked(&diff, "diff", &mut found);
    // The numbers of a complete side are known.
    let known = ["diff.good_events_per_run", "diff.good_seconds_per_run"];
    found.retain(|name| is_lossy[0] || !known.contains(&name.as_str()));
    assert_eq!(found, [""; 0], "{diff}");
    for row in diff["differences"].as_array().into_iter().flatten() {
        assert_ne!(row["quality"], "exact", "{row}");
    }
    let page = place.lat(&["diff", recordings[0], recordings[1], "--threshold", "0"]).stdout;
    let page = String::from_utf8(page).expect("UTF-8");
    assert!(
        page.contains("recordings are missing") && page.contains("could be anything"),
        "{page}"
    );
}

#[test]
fn numbers_of_a_ring_that_was_full_are_marked() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        println!("SKIPPED: no python3 here");
        return;
    }
    let place = Place::new();
    let python = PathBuf::from("python3");
    let with = ["--with", "mutex,thread"];
    let small = [&with[..], &["--buffer", "16K", "--packet", "4K"]].concat();
    let large = [&with[..], &["--buffer", "64M"]].concat();
    place.record("small", &small, &python, &["-c", LOCKS]);
    place.record("large", &large, &python, &["-c", LOCKS]);
    check(&place, "small");
    check_diff(&place, ["large", "small"], [false, true]);
    check_diff(&place, ["small", "small"], [true, true]);

    let path = place.lat(&["path", "small", "--span", "mutex_held", "--slowest", "1000", "--json"]);
    assert_eq!(path.status.code(), Some(1));
    let path: Value = serde_json::from_slice(&path.stdout).expect("JSON");
    assert_eq!(path["quality"], "unknown");
    let stats = place.json(&["stats", "small", "--json", "--section", "losses"]);
    let first = stats["losses"].as_array().unwrap().iter().map(|loss| loss["from_ns"].as_i64());
    let first = first.map(|time| time.unwrap_or(i64::MIN)).min().expect("a loss");
    for span in path["spans"].as_array().expect("spans") {
        let is_exact = span["quality"] == "exact";
        assert_eq!(is_exact, span["end_ns"].as_i64() <= Some(first), "{span}");
    }
    let page = place.lat(&["path", "small", "--span", "mutex_held", "--slowest", "1000"]).stdout;
    let page = String::from_utf8(page).expect("UTF-8");
    assert!(page.contains(" ?  ") && page.contains("events are missing"), "{page}");
}

#[test]
fn numbers_of_a_ring_that_was_overwritten_are_marked() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else {
        return;
    };
    let small = ["--mode", "overwrite", "--buffer", "16K", "--packet", "4K"];
    place.record("newest", &small, &program, &["--requests", "1000"]);
    place.record("all", &[], &program, &["--requests", "1000"]);
    check(&place, "newest");
    check_diff(&place, ["all", "newest"], [false, true]);
    let stats = place.json(&["stats", "newest", "--json", "--section", "spans,messages"]);
    assert!(stats["spans"].as_array().is_some_and(|spans| spans.len() > 2), "{stats}");
    assert!(stats["messages"].as_array().is_some_and(|channels| !channels.is_empty()), "{stats}");
}

/// For a job that must not continue with half of the events.
#[test]
fn losses_are_an_exit_status_where_that_is_asked_for() {
    let place = Place::new();
    let program =
        ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000", "status=none"];
    let code = |words: &[&str]| place.lat(words).status.code();
    let record = |words: &[&str]| {
        let all = [&["record", "-q", "--with", "io"], words, &program].concat();
        place.lat(&all).status.code()
    };
    assert_eq!(record(&["--buffer", "8K", "--packet", "4K", "-o", "lossy"]), Some(0));
    let lossy = place.report("lossy")["totals"]["lost"]["total"].as_u64();
    assert!(lossy > Some(0), "nothing was lost");
    assert_eq!(
        record(&["--buffer", "8K", "--packet", "4K", "-o", "told", "--fail-on-loss"]),
        Some(1)
    );
    // Only the events of closing files.
    let few = ["--enable", "io:CLOSE,io:CLOSED", "-o", "whole", "--fail-on-loss"];
    assert_eq!(record(&few), Some(0));
    for words in [&["stats"][..], &["info"], &["print", "-n", "1"], &["table", "--name", "spans"]] {
        let of = |trace: &str, more: &[&str]| code(&[words, &[trace], more].concat());
        assert_eq!(of("lossy", &[]), Some(0), "{words:?}");
        assert_eq!(of("lossy", &["--fail-on-loss"]), Some(1), "{words:?}");
        assert_eq!(of("whole", &["--fail-on-loss"]), Some(0), "{words:?}");
    }
    assert_eq!(code(&["print", "lossy", "--follow", "--fail-on-loss"]), Some(2));
}
