// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `section`: each number and each mark is that of `lat stats --from --until --json`.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::demo;
use crate::place::Place;
use crate::producers::hosts::move_elsewhere;

/// Sections by where `lat stats --json` has their rows: a member, and a list in each of its rows.
const LISTS: [(&str, &str, &str); 26] = [
    ("threads", "threads", ""),
    ("wakeups", "wakeups/latencies", ""),
    ("wakers", "wakeups/pairs", ""),
    ("cpus", "cpus", ""),
    ("processes", "applications", ""),
    ("spans", "spans", ""),
    ("spans_by_thread", "spans", "by_thread"),
    ("keys", "spans", "by_key"),
    ("slowest", "spans", "slowest"),
    ("locks", "spans", "by_key"),
    ("interrupts", "spans", "by_key"),
    ("messages", "messages", ""),
    ("messages_by_cpus", "messages", "by_cpus"),
    ("calls", "calls", ""),
    ("calls_by_thread", "calls", "by_thread"),
    ("counters", "counters", ""),
    ("states", "states", "states"),
    ("budgets", "budgets", ""),
    ("block", "block", ""),
    ("page_faults", "page_faults", ""),
    ("network", "network", ""),
    ("cpu_idle", "cpu_idle", ""),
    ("memory", "memory", ""),
    ("events", "events", ""),
    ("events_by_cpu", "events_by_cpu", ""),
    ("losses", "losses", ""),
];

fn list(of: Option<&Value>) -> Vec<Value> {
    of.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn has_word(row: &Value, member: &str, word: &str) -> bool {
    list(row.get(member)).iter().any(|one| one == word)
}

/// Rows of a section, each with the row around it.
fn expected(stats: &Value, (name, member, inner): (&str, &str, &str)) -> Vec<(Value, Value)> {
    let rows = list(stats.pointer(&format!("/{member}")));
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let is_lock = |row: &Value| {
        let name = row["name"].as_str().unwrap();
        ["cond_wait", "sem_wait", "thread_join", "barrier_wait"].contains(&name)
            || name.strip_suffix("_wait").is_some_and(|s| names.contains(&&*format!("{s}_held")))
            || name.strip_suffix("_held").is_some_and(|s| names.contains(&&*format!("{s}_wait")))
    };
    let is_in = |row: &&Value| match name {
        "locks" => is_lock(row),
        "interrupts" => has_word(row, "key_fields", "$cpu"),
        _ => true,
    };
    let rows = rows.iter().filter(is_in);
    let with = |row: &Value| match inner {
        "" => vec![(row.clone(), Value::Null)],
        inner => list(row.get(inner)).into_iter().map(|one| (one, row.clone())).collect(),
    };
    let mut rows: Vec<(Value, Value)> = rows.flat_map(with).collect();
    if name == "threads" {
        // Their states are another list.
        for states in list(stats.get("thread_states")) {
            match rows.iter_mut().find(|(row, _)| row["tid"] == states["tid"]) {
                Some((_, outer)) => *outer = states,
                None => rows.push((json!({ "tid": states["tid"] }), states)),
            }
        }
    }
    rows
}

/// Numbers that only the list of threads has, and names of the row around a list.
const OF_THREADS: [&str; 3] = ["running_ns", "kernel_ns", "utilisation"];
const AROUND: [&str; 7] = ["name", "channel", "call", "layer", "machine", "key", "of"];

/// The number of a row and its mark.
fn number((row, outer): &(Value, Value), name: &str, section: &str) -> (Value, String) {
    let of = |row: &Value| {
        let mark = match (name, &row["not_exact"][name]) {
            ("count", _) if row["is_lower_bound"] == true => &json!("lower_bound"),
            ("measured_ns", _) => &row["measured_quality"],
            ("kept", _) => &row["quality"],
            (_, Value::Null) => &json!("exact"),
            (_, mark) => mark,
        };
        (row[name].clone(), mark.as_str().unwrap().to_owned())
    };
    let is_around = match section {
        "threads" => !OF_THREADS.contains(&name),
        _ => AROUND.contains(&name),
    };
    if is_around && row.get(name).is_none() { of(outer) } else { of(row) }
}

/// Whether a text is a name with a number of which only the number is known.
fn is_name_of(text: &Value, number: &Value) -> bool {
    let (Some(text), Some(number)) = (text.as_str(), number.as_str()) else { return false };
    number.parse::<u32>().is_ok() && text.ends_with(&format!(" ({number})"))
}

/// How many numbers of one range were compared.
fn compare(page: &mut Page, stats: &Value, asked: &Value, origin: i64) -> usize {
    let mut compared = 0;
    for of in LISTS {
        let mut asked = asked.clone();
        asked["name"] = of.0.into();
        asked["most"] = 10_000.into();
        let told = page.ask("section", asked.clone());
        assert_eq!(told["events"]["count"], stats["events_total"], "{asked}");
        assert_eq!(told["quality"], stats["quality"], "{asked}");
        assert_eq!(told["over_ns"], stats["duration_ns"], "{asked}");
        let rows = expected(stats, of);
        assert_eq!(told["total"], rows.len(), "{asked}");
        let listed = list(told.get("sections"));
        let listed = listed.iter().find(|one| one["name"] == of.0).expect("it is listed");
        assert_eq!(listed["count"], rows.len());
        for column in told["columns"].as_array().unwrap() {
            let name = column["name"].as_str().unwrap();
            let (values, marks) = (list(column.get("values")), list(column.get("quality")));
            assert_eq!(values.len(), rows.len());
            for (at, row) in rows.iter().enumerate() {
                let (value, mark) = number(row, name, of.0);
                let value = match (column["unit"].as_str().unwrap(), value.as_i64()) {
                    ("time", Some(time)) => json!(time - origin),
                    _ => value,
                };
                // Without --from `lat stats` does not look for names before it needs them.
                let is_named = column["unit"] == "text" && asked["t0"] == 0;
                if !(is_named && is_name_of(&values[at], &value)) {
                    assert_eq!(values[at], value, "{name} of row {at}: {asked}");
                }
                let told = if marks.len() == 1 { &marks[0] } else { &marks[at] };
                assert_eq!(*told, mark, "mark of {name} of row {at}: {asked}");
                compared += 1;
            }
        }
    }
    compared
}

/// A time as `--from` reads it.
fn at(nanos: i64) -> String {
    format!("@{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Compares all sections of some ranges: of all, of a part, of a moment, and of nothing.
fn ranges(place: &Place, traces: &[&str]) -> usize {
    let viewer = Viewer::start(place, traces);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let end = open["end"].as_i64().unwrap();
    let stats = |more: &[&str]| place.json(&[&["stats", "--json"], traces, more].concat());
    let mut compared = compare(&mut page, &stats(&[]), &json!({ "t0": 0, "t1": end + 1 }), origin);
    for (t0, t1) in [
        (end / 3, end / 2),
        (0, end / 10),
        (end - end / 4, end + 1),
        (end / 2, end / 2 + 1),
        (end + 1000, end + 2000),
    ] {
        let stats = stats(&["--from", &at(origin + t0), "--until", &at(origin + t1 - 1)]);
        compared += compare(&mut page, &stats, &json!({ "t0": t0, "t1": t1 }), origin);
    }
    compared
}

#[test]
fn sections_of_a_recording_are_those_of_lat_stats() {
    let place = Place::new();
    demo(&place);
    assert!(ranges(&place, &["demo"]) > 1000);
}

#[test]
fn sections_of_two_machines_are_those_of_lat_stats() {
    let place = Place::new();
    demo(&place);
    let output = place.lat(&["demo", "--orders", "40", "-o", "other"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    move_elsewhere(&place, "other");
    assert!(ranges(&place, &["demo", "other"]) > 1000);
}

#[test]
fn sections_of_traces_of_others_are_those_of_lat_stats() {
    let place = Place::new();
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    for (name, least) in [
        ("traces/ctf1/lttng-ref/basic-kernel-analysis/kernel", 10_000),
        ("traces/generated/perf-sched-1s", 1000),
        ("pt/quipper/perf.data.intel_pt-4.14", 1),
        ("pt/made/rp/perf.data", 1),
    ] {
        let path = shared.join(name);
        if !path.exists() {
            println!("SKIPPED: no {}", path.display());
            continue;
        }
        let compared = ranges(&place, &[path.to_str().expect("UTF-8")]);
        assert!(compared >= least, "{name}: {compared}");
    }
}

#[test]
fn a_filter_selects_the_events_of_a_section() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let end = open["end"].as_i64().unwrap();
    let of = |kind: &str| {
        let lanes = open["lanes"].as_array().unwrap().iter();
        lanes.filter(|lane| lane["kind"] == kind).cloned().collect::<Vec<Value>>()
    };
    let (cpus, classes) = (of("cpu"), open["classes"].as_array().unwrap());
    let name = |class: &Value| {
        [&class["subsystem"], &class["name"]].map(|part| part.as_str().unwrap()).join(":")
    };
    let begins = classes.iter().find(|class| name(class) == "client:REQUEST_BEGIN");
    let class = begins.or(classes.first()).unwrap();
    let apps = open["applications"].as_array().unwrap();
    let app = apps.iter().find(|app| app["pid"].is_u64() && app["events"] != 0).unwrap();
    let others: Vec<String> =
        apps.iter().filter(|of| of["id"] != app["id"]).map(|of| of["pid"].to_string()).collect();
    let cpu = cpus[0]["cpu"].to_string();
    // Records about writers are no events of the page.
    let not_writers = "*,!lateralis:WRITER";
    let not_class = format!("{not_writers},!{}", name(class));
    for (filter, options) in [
        (json!({ "classes_off": [class["id"]] }), vec!["--event", &not_class]),
        (
            json!({ "lanes_off": cpus[1..].iter().map(|of| &of["id"]).collect::<Vec<_>>() }),
            vec!["--event", not_writers, "--cpu", &cpu],
        ),
        (
            json!({ "applications_off": [app["id"]] }),
            vec!["--event", not_writers, "--app", &others.join(",")],
        ),
    ] {
        let filter = page.ask("filter", filter.clone())["filter"].take();
        if filter == 0 {
            println!("SKIPPED: the demonstration ran on one CPU");
            continue;
        }
        for (t0, t1) in [(0, end + 1), (end / 3, end / 2)] {
            let mut words = vec!["stats", "--json", "demo"];
            let (from, until) = (at(origin + t0), at(origin + t1 - 1));
            if t1 <= end {
                words.extend(["--from", &from, "--until", &until]);
            }
            words.extend(&options);
            let stats = place.json(&words);
            assert!(stats["events_total"].as_u64() > Some(10), "{stats}");
            let asked = json!({ "filter": filter, "t0": t0, "t1": t1 });
            let compared = compare(&mut page, &stats, &asked, origin);
            assert!(compared > 100, "{compared} of {asked}");
        }
    }
}

#[test]
fn rows_are_sorted_by_any_column_and_cut() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let all = page.ask("section", json!({ "name": "keys", "most": 10_000 }));
    let values = |told: &Value, name: &str| {
        let columns = told["columns"].as_array().unwrap();
        let column = columns.iter().find(|column| column["name"] == name).unwrap();
        list(column.get("values"))
    };
    let mut totals: Vec<i64> =
        values(&all, "total_ns").iter().map(|of| of.as_i64().unwrap()).collect();
    assert!(totals.len() > 100);
    for is_descending in [false, true] {
        totals.sort_unstable();
        if is_descending {
            totals.reverse();
        }
        let asked =
            json!({ "name": "keys", "order": "total_ns", "descending": is_descending, "most": 25 });
        let told = page.ask("section", asked);
        assert_eq!(values(&told, "total_ns"), totals[..25]);
        assert_eq!((&told["count"], &told["total"]), (&json!(25), &json!(totals.len())));
    }
    for wrong in [
        json!({ "name": "nothing" }),
        json!({ "name": "keys", "order": "nothing" }),
        json!({ "name": "keys", "order": 5 }),
        json!({}),
    ] {
        assert!(page.try_ask("section", wrong.clone()).is_err(), "{wrong}");
    }
}

/// A newer question takes the place of the one that is being answered, and others go on beside.
#[test]
fn only_the_newest_question_is_answered() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let end = page.ask("open", json!({}))["end"].as_i64().unwrap();
    let mut last = 0;
    for round in 0..50 {
        let asked = json!({ "name": "spans", "t0": round, "t1": end - round });
        last = page.send("section", asked);
    }
    let stats = page.send("stats", json!({ "filter": 0 }));
    let mut answered = Vec::new();
    while !answered.contains(&last) || !answered.contains(&stats) {
        let tungstenite::Message::Text(text) = page.answer() else { panic!("not a text") };
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        answered.push(answer["id"].as_u64().unwrap() as u32);
    }
    // Requests come faster than they are answered.
    assert!(answered.len() < 40, "{answered:?}");
}
