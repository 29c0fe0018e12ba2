// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two machines stay separate: CPUs, processes and threads of one are not those of the other, in every table,
//! lane and export.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::is_whole;
use super::kernel::count;
use crate::kernel::usable;
use crate::place::Place;
use crate::view::client::Viewer;

/// Offsets of CPU numbers, and of thread and process ids, of the second machine.
const CPUS: u64 = 10_000;
const THREADS: u64 = 100_000_000;

/// Records the scheduler activity of all processes.
fn record(place: &Place, to: &str) {
    let work = "for i in 1 2 3; do sleep 0.01; seq 20000 > /dev/null; done";
    let kernel = "sched,irq,softirq,syscalls,block";
    let words = ["record", "-q", "--system", "--kernel", kernel, "-o", to, "--", "sh", "-c", work];
    let output = place.lat(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Turns a recording into one of another machine: another host name, another boot, and therefore another
/// counter.
pub fn move_elsewhere(place: &Place, recording: &str) {
    let path = place.0.join(recording).join("ctf/metadata");
    let text = fs::read_to_string(&path).expect("metadata");
    let begin = text.find("hostname = \"").expect("a host") + "hostname = \"".len();
    let end = begin + text[begin..].find('"').expect("its end");
    let text = format!("{}elsewhere{}", &text[..begin], &text[end..]);
    let clock = text.find("\nclock {").expect("a clock");
    let begin = clock + text[clock..].find("uuid = \"").expect("its boot") + "uuid = \"".len();
    let boot = "11111111-2222-4333-8444-555555555555";
    fs::write(&path, format!("{}{boot}{}", &text[..begin], &text[begin + boot.len()..]))
        .expect("written");
}

/// Returns the rows of a list by their number, without members that depend on the whole trace.
fn by_number(stats: &Value, list: &str, key: &str) -> BTreeMap<u64, Value> {
    let row = |row: &Value| {
        let number = row[key].as_u64().expect("a number");
        let told = ["busy_ns", "switches", "running_ns", "schedules", "migrations", "kernel_ns"];
        let states = ["sleeping_ns", "preempted_count", "blocked_count", "wait_ns", "has_ended"];
        let all = told.iter().chain(&states).chain(&["thread"]);
        (number, all.map(|name| (*name, row[*name].clone())).collect::<Value>())
    };
    stats[list].as_array().expect("rows").iter().map(row).collect()
}

#[test]
fn two_machines_are_two_machines() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    record(&place, "here");
    record(&place, "there");
    move_elsewhere(&place, "there");
    if !["here", "there"].iter().all(|recording| is_whole(&place, recording)) {
        return;
    }
    let one = |recording: &str| place.json(&["stats", recording, "--json"]);
    let (here, there, both) =
        (one("here"), one("there"), place.json(&["stats", "here", "there", "--json"]));

    // Each machine has the rows that it has alone.
    for (list, key, step) in
        [("cpus", "cpu", CPUS), ("threads", "tid", THREADS), ("thread_states", "tid", THREADS)]
    {
        let mut apart = by_number(&here, list, key);
        let of_there = there[list].as_array().expect("rows").len();
        let moved: BTreeMap<u64, Value> = by_number(&there, list, key)
            .into_iter()
            .map(|(number, row)| (number + step, row))
            .collect();
        assert_eq!(moved.len(), of_there);
        apart.extend(moved);
        assert_eq!(by_number(&both, list, key), apart, "{list}");
    }
    let latencies = |stats: &Value| {
        let rows = stats["wakeups"]["latencies"].as_array().expect("rows").clone();
        rows.iter().map(|row| count(row, "count")).sum::<u64>()
    };
    assert_eq!(latencies(&both), latencies(&here) + latencies(&there));
    let spans = |stats: &Value| -> BTreeMap<String, (u64, u64)> {
        let rows = stats["spans"].as_array().expect("rows").iter();
        let row = |row: &Value| (count(row, "count"), row["total_ns"].as_u64().unwrap_or(0));
        rows.map(|of| (of["name"].as_str().expect("a name").to_owned(), row(of))).collect()
    };
    let (of_here, of_there, of_both) = (spans(&here), spans(&there), spans(&both));
    for (name, times) in &of_both {
        let [a, b] = [&of_here, &of_there].map(|of| of.get(name).copied().unwrap_or_default());
        assert_eq!(*times, (a.0 + b.0, a.1 + b.1), "{name}");
    }

    // Tables report for each recording what they report for it alone, with the numbers of its machine.
    for (name, columns, step) in
        [("cpus", ["cpu", "events"], CPUS), ("threads", ["tid", "events"], THREADS)]
    {
        let rows = |traces: &[&str]| -> BTreeSet<(String, u64, String)> {
            let columns = columns.map(|column| ["--column", column]);
            let words = [&["table"], traces, &["--name", name, "--column", "recording"]];
            let output = place.lat(&[&words.concat()[..], columns.as_flattened()].concat());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let row = |line: &str| {
                let mut cells = line.split(',');
                let recording = cells.next()?.to_owned();
                let row = (recording, cells.next()?.parse().ok()?, cells.next()?.to_owned());
                // Read alone, a recording also lists threads from its report that have no events.
                Some(row).filter(|row| row.2 != "0")
            };
            text.lines().skip(1).filter_map(row).collect()
        };
        let mut apart = rows(&["here"]);
        let moved = |(recording, number, events): (String, u64, String)| {
            let moved = if number == 0 && name == "threads" { 0 } else { step };
            (recording, number + moved, events)
        };
        apart.extend(rows(&["there"]).into_iter().map(moved));
        assert_eq!(rows(&["here", "there"]), apart, "{name}");
    }
    let calls = |traces: &[&str]| -> usize {
        let output =
            place.lat(&[&["table"], traces, &["--name", "spans", "--column", "tid"]].concat());
        String::from_utf8_lossy(&output.stdout).lines().count() - 1
    };
    assert_eq!(calls(&["here", "there"]), calls(&["here"]) + calls(&["there"]));

    // Lanes.
    let lanes = |traces: &[&str]| -> BTreeSet<u64> {
        let viewer = Viewer::start(&place, traces);
        let open = viewer.page().ask("open", json!({}));
        let lanes = open["lanes"].as_array().expect("lanes").clone();
        lanes
            .iter()
            .filter(|lane| lane["kind"] == "cpu")
            .filter_map(|l| l["cpu"].as_u64())
            .collect()
    };
    let mut apart = lanes(&["here"]);
    apart.extend(lanes(&["there"]).into_iter().map(|cpu| cpu + CPUS));
    assert_eq!(lanes(&["here", "there"]), apart);

    // Exports.
    let convert = |to: &str, file: &str| {
        let output = place.lat(&["convert", "here", "there", "--to", to, "-o", file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        place.0.join(file)
    };
    let stats_cpus: BTreeSet<u64> = by_number(&both, "cpus", "cpu").into_keys().collect();
    let text = fs::read_to_string(convert("jsonl", "both.jsonl")).expect("JSON lines");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
    let rows: Vec<Value> = rows.filter(|row| row["name"].is_string()).collect();
    let cpus: BTreeSet<u64> = rows.iter().filter_map(|row| row["cpu"].as_u64()).collect();
    assert_eq!(cpus, stats_cpus, "{}", rows[0]);
    let pids = |of: &mut dyn Iterator<Item = u64>| -> [usize; 2] {
        let all: BTreeSet<u64> = of.filter(|pid| *pid > 0).collect();
        let of_there = all.iter().filter(|pid| **pid > THREADS).count();
        [all.len() - of_there, of_there]
    };
    let of_jsonl = pids(&mut rows.iter().filter_map(|row| row["pid"].as_u64()));
    assert!(of_jsonl.iter().all(|count| *count > 0), "{of_jsonl:?}");
    let text = fs::read_to_string(convert("csv", "both.csv")).expect("CSV");
    let cpus: BTreeSet<u64> =
        text.lines().filter_map(|line| line.split(',').nth(1)?.trim().parse().ok()).collect();
    assert_eq!(cpus, stats_cpus, "{:?}", text.lines().next());
    let text = fs::read_to_string(convert("chrome", "both.json")).expect("JSON");
    let chrome: Value = serde_json::from_str(&text).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("events");
    let of_chrome = pids(&mut events.iter().filter_map(|event| event["pid"].as_u64()));
    assert!(of_chrome.iter().all(|count| *count > 0), "{of_chrome:?}");
}
