// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat path`: how the time of a span was spent.

use crate::place;

use place::Place;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Checks that segments cover the span, and that shares are the sums of segments.
fn check(span: &Value) {
    let number =
        |of: &Value, name: &str| of[name].as_i64().unwrap_or_else(|| panic!("{name}: {of}"));
    let segments = span["segments"].as_array().expect("segments");
    let mut at = number(span, "begin_ns");
    for segment in segments {
        assert_eq!(number(segment, "begin_ns"), at, "{segment}");
        at = number(segment, "end_ns");
    }
    assert_eq!(at, number(span, "end_ns"));
    let shares = span["shares"].as_array().expect("shares");
    let sum: i64 = shares.iter().map(|share| number(share, "time_ns")).sum();
    assert_eq!(sum, number(span, "duration_ns"));
    assert_eq!(sum, number(span, "end_ns") - number(span, "begin_ns"));
}

#[test]
fn a_lock_whose_holder_waits_for_a_pipe_is_named_and_so_is_the_reading() {
    let place = Place::new();
    let Some(program) = place.example("lockio") else {
        return;
    };
    place.record("r", &["--with", "mutex,io"], &program, &["30"]);
    let path = place.json(&["path", "r", "--span", "request", "--json"]);
    let span = &path["spans"][0];
    check(span);
    assert_eq!(span["thread"], "server");
    assert!(span["duration_ns"].as_u64() > Some(10_000_000), "{span}");
    let first = &span["shares"][0];
    assert_eq!(first["thread"], "logger", "{first}");
    assert_eq!(first["in"], "io_read", "{first}");
    assert_eq!(first["waited_for_by"], "mutex_wait", "{first}");
    // More than half of the time, whatever else the machine does.
    assert!(2 * first["time_ns"].as_u64().unwrap() > span["duration_ns"].as_u64().unwrap());
    let page = String::from_utf8(place.lat(&["path", "r", "--span", "request"]).stdout).unwrap();
    assert!(page.contains("io_read") && page.contains("mutex_wait"), "{page}");
    // The slowest span first; a time selects the span open at that time.
    let two = place.json(&["path", "r", "--span", "request", "--slowest", "5", "--json"]);
    let spans = two["spans"].as_array().unwrap();
    let times: Vec<u64> = spans.iter().map(|span| span["duration_ns"].as_u64().unwrap()).collect();
    assert_eq!(times.len(), 5);
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    spans.iter().for_each(check);
    let middle = span["begin_ns"].as_i64().unwrap() + 5_000_000;
    let at = format!("@{}.{:09}", middle / 1_000_000_000, middle % 1_000_000_000);
    let one = place.json(&["path", "r", "--span", "request", "--at", &at, "--json"]);
    assert_eq!(one["spans"][0]["begin_ns"], span["begin_ns"]);
    assert_eq!(one["spans"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_span_that_is_not_there_is_told_with_those_that_are() {
    let place = Place::new();
    place.lat(&["demo", "-o", "demo", "--orders", "20"]);
    let output = place.lat(&["path", "demo", "--span", "requets"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: no such span: requets: there are request"), "{error}");
    let never = ["path", "demo", "--span", "request", "--at", "1000000s"];
    assert_eq!(place.lat(&never).status.code(), Some(2));
    for span in
        place.json(&["path", "demo", "--span", "request", "--slowest", "3", "--json"])["spans"]
            .as_array()
            .unwrap()
    {
        check(span);
    }
}

/// Spans of two threads, as pairs of events and as complete spans.
#[test]
fn without_a_name_the_only_kind_of_span_is_explained() {
    let place = Place::new();
    let of = |names: [&str; 2]| {
        let span = |name: &str, from: u32, to: u32| {
            [("B", from), ("E", to)]
                .map(|(kind, at)| json!({ "name": name, "ph": kind, "ts": at, "pid": 1, "tid": 1 }))
        };
        json!([span(names[0], 10, 20), span(names[1], 30, 70)].concat()).to_string()
    };
    fs::write(place.0.join("one.json"), of(["load", "load"])).unwrap();
    fs::write(place.0.join("two.json"), of(["load", "save"])).unwrap();
    let path = place.json(&["path", "one.json", "--json"]);
    assert_eq!(path["spans"][0]["duration_ns"], 40_000, "the slowest: {path}");
    let output = place.lat(&["path", "two.json"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--span: load, save"), "{said}");
}

#[test]
fn only_chosen_spans_are_explained() {
    let place = Place::new();
    let edge = |phase: &str, ts: u64, tid: u64| -> Value {
        json!({ "name": "work", "ph": phase, "ts": ts, "pid": 7, "tid": tid })
    };
    let events = [
        edge("B", 1000, 8),
        edge("E", 1900, 8),
        json!({ "name": "whole", "ph": "X", "ts": 2000, "dur": 500, "pid": 7, "tid": 8 }),
        json!({ "name": "inner", "ph": "X", "ts": 2100, "dur": 200, "pid": 7, "tid": 8 }),
        edge("B", 3000, 9),
        edge("E", 3300, 9),
        edge("B", 4000, 8),
        edge("E", 4400, 8),
    ];
    fs::write(place.0.join("a.json"), json!({ "traceEvents": events }).to_string()).unwrap();
    let explained = |options: &[&str]| -> Vec<u64> {
        let arguments = ["path", "a.json", "--span", "work", "--slowest", "9", "--json"];
        let path = place.json(&[&arguments[..], options].concat());
        assert_eq!(path["quality"], "exact");
        let spans = path["spans"].as_array().expect("spans");
        spans.iter().for_each(check);
        spans.iter().filter_map(|span| span["duration_ns"].as_u64()).collect()
    };
    assert_eq!(explained(&[]), [900_000, 400_000, 300_000]);
    assert_eq!(explained(&["--thread", "8"]), [900_000, 400_000]);
    assert_eq!(explained(&["--where", "$tid == 9"]), [300_000]);
    assert_eq!(explained(&["--from", "0.5ms"]), [400_000, 300_000]);
    assert_eq!(explained(&["--until", "2.5ms", "--as", "chrome"]), [900_000, 300_000]);
    let none = ["path", "a.json", "--span", "work", "--thread", "8", "--from", "3.1ms"];
    assert_eq!(place.lat(&none).status.code(), Some(2));
    // A complete span with a nested one.
    let whole = place.json(&["path", "a.json", "--span", "whole", "--json"]);
    check(&whole["spans"][0]);
    assert_eq!(whole["spans"][0]["duration_ns"], 500_000);
    let times: Vec<(&str, u64)> = whole["spans"][0]["shares"]
        .as_array()
        .unwrap()
        .iter()
        .map(|share| (share["in"].as_str().unwrap(), share["time_ns"].as_u64().unwrap()))
        .collect();
    assert_eq!(times, [("whole", 300_000), ("inner", 200_000)]);
}

/// A real machine: `make` reads from a pipe the output of the compilers that it started.
#[test]
fn switches_and_wakes_of_a_kernel_lead_from_process_to_process() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis");
    if !trace.exists() {
        eprintln!("SKIPPED: {} is not there", trace.display());
        return;
    }
    let place = Place::new();
    let trace = trace.to_str().unwrap();
    let arguments = ["path", trace, "--span", "syscall read", "--slowest", "50", "--json"];
    let path = place.json(&arguments);
    // A shell that reads from its terminal has not returned at the end, and is listed first.
    let spans = path["spans"].as_array().expect("spans");
    assert_eq!((&spans[0]["thread"], &spans[0]["has_ended"]), (&"bash".into(), &false.into()));
    let span = spans.iter().find(|span| span["has_ended"] == true).expect("one that has ended");
    check(span);
    assert_eq!(span["thread"], "make");
    let first = &span["shares"][0];
    assert_eq!((&first["thread"], &first["does"]), (&"cc1".into(), &"running".into()), "{first}");
    for name in ["syscall newlstat", "syscall wait4", "syscall futex", "page_fault"] {
        let output = place.lat(&["path", trace, "--span", name, "--slowest", "20", "--json"]);
        if output.status.code() != Some(2) {
            let path: Value = serde_json::from_slice(&output.stdout).unwrap();
            path["spans"].as_array().unwrap().iter().for_each(check);
        }
    }
}

/// A switch as printed by babeltrace2: time, CPU, previous and next thread.
type Switch = (i64, u64, u64, u64);

fn switch(line: &str) -> Option<Switch> {
    let (head, fields) = line.split_once(" sched_switch: ")?;
    let (seconds, nanos) = head.trim_start_matches('[').split_once(']')?.0.split_once('.')?;
    let number = |name: &str| -> Option<u64> {
        let (_, rest) = fields.split_once(&format!("{name} = "))?;
        rest.split([',', ' ', '}']).next()?.parse().ok()
    };
    let time = seconds.parse::<i64>().ok()? * 1_000_000_000 + nanos.parse::<i64>().ok()?;
    Some((time, number("cpu_id")?, number("prev_tid")?, number("next_tid")?))
}

/// States of a thread around a time, without a span: they begin and end with the switches that babeltrace2
/// prints.
#[test]
fn a_thread_and_a_time_give_the_stretches_around_it() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis");
    let mut babeltrace = std::process::Command::new("babeltrace2");
    let Ok(theirs) = babeltrace.arg("--clock-seconds").arg(&trace).output() else {
        println!("SKIPPED: babeltrace2 is not here");
        return;
    };
    if !trace.exists() {
        println!("SKIPPED: {} is not there", trace.display());
        return;
    }
    let theirs = String::from_utf8_lossy(&theirs.stdout);
    let switches: Vec<Switch> = theirs.lines().filter_map(switch).collect();
    let mut counts = std::collections::BTreeMap::<u64, usize>::new();
    for (.., next) in switches.iter().filter(|(.., next)| *next != 0) {
        *counts.entry(*next).or_default() += 1;
    }
    let (&tid, &count) = counts.iter().max_by_key(|(_, count)| **count).expect("a switch");
    assert!(count > 20, "{count} switches to {tid}");
    let of: Vec<Switch> =
        switches.into_iter().filter(|(.., from, to)| [*from, *to].contains(&tid)).collect();
    let place = Place::new();
    let trace = trace.to_str().unwrap();
    let at = |time: i64| {
        let at = format!("@{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        place.json(&["path", trace, "--thread", &tid.to_string(), "--at", &at, "--json"])
    };
    for (index, two) in of.windows(2).enumerate().skip(2).step_by(of.len() / 8) {
        let [(begin, cpu, ..), (end, ..)] = [two[0], two[1]];
        let path = at(begin + (end - begin) / 2);
        let stretches = path["stretches"].as_array().expect("stretches");
        let number = |of: &Value, name: &str| of[name].as_i64().expect("nanoseconds");
        let ends = stretches.windows(2).all(|two| two[0]["end_ns"] == two[1]["begin_ns"]);
        assert!(ends && stretches.len() <= 7, "{path}");
        let time = number(&path, "at_ns");
        let is_then = |of: &&Value| number(of, "begin_ns") <= time && time < number(of, "end_ns");
        let then = stretches.iter().find(is_then).expect("the stretch of the time");
        let is_running = two[0].3 == tid;
        assert_eq!(then["state"] == "running", is_running, "{index}: {then}");
        if is_running {
            assert_eq!((number(then, "begin_ns"), number(then, "end_ns")), (begin, end), "{then}");
            assert_eq!((&then["cpu"], &then["quality"]), (&json!(cpu), &json!("exact")), "{then}");
        } else {
            // Off the CPU it has one or several waiting states, until the next switch.
            assert!(begin <= number(then, "begin_ns") && number(then, "end_ns") <= end, "{then}");
            let edges =
                |name: &str| stretches.iter().map(|of| number(of, name)).collect::<Vec<_>>();
            assert!(edges("begin_ns").contains(&begin) && edges("end_ns").contains(&end), "{path}");
        }
        let span = &path["spans"][0];
        check(span);
        assert_eq!(span["begin_ns"], stretches[0]["begin_ns"]);
        assert_eq!(span["end_ns"], stretches[stretches.len() - 1]["end_ns"]);
    }
    let page = place.lat(&["path", trace, "--thread", &tid.to_string(), "--at", "1s"]).stdout;
    assert!(String::from_utf8(page).unwrap().contains("then"), "the row of the time is marked");
    let never = ["path", trace, "--thread", &tid.to_string(), "--at", "100000s"];
    assert_eq!(place.lat(&never).status.code(), Some(2));
}
