// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat tracepoints`: the table, its JSON, and the example that measures the cost of tracing.

use crate::place;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use place::Place;
use serde_json::{Value, json};

/// Output of sel4utils: tracepoint 1 directly inside tracepoint 0, and another one.
const LOG: &str = "booting\n\
    tracepoint id = 1 \tduration = 4\n\
    tracepoint id = 0 \tduration = 22\n\
    tracepoint id = 1 \tduration = 6\n\
    tracepoint id = 0 \tduration = 28\n\
    tracepoint id = 7 \tduration = 100\n\
    Dumped entire log, size 5\n";

#[test]
fn a_log_of_sel4_is_json_as_its_benchmarks_print_it() {
    let place = Place::new();
    fs::write(place.0.join("log"), LOG).unwrap();
    // Written by hand after the definitions of sel4bench.
    let golden = json!([
        {"Benchmark": "tracepoint 0", "Results": [{
            "Min": 22, "Max": 28, "Mean": 25.0, "Stddev": 4.243, "Variance": 9.0, "Mode": 22.0,
            "Median": 25.0, "1st quantile": 23.5, "3rd quantile": 26.5, "Samples": 2,
            "Raw results": [22, 28]}]},
        {"Benchmark": "tracepoint 1", "Results": [{
            "Min": 4, "Max": 6, "Mean": 5.0, "Stddev": 1.414, "Variance": 1.0, "Mode": 4.0,
            "Median": 5.0, "1st quantile": 4.5, "3rd quantile": 5.5, "Samples": 2,
            "Raw results": [4, 6]}]},
        {"Benchmark": "tracepoint 7", "Results": [{
            "Min": 100, "Max": 100, "Mean": 100.0, "Stddev": 0.0, "Variance": 0.0,
            "Mode": 100.0, "Median": 100.0, "1st quantile": 100.0, "3rd quantile": 100.0,
            "Samples": 1, "Raw results": [100]}]},
    ]);
    let printed = place.json(&["tracepoints", "log", "--format", "sel4bench"]);
    assert_eq!(printed, golden);
    // In nanoseconds, for a counter of 2 GHz.
    let arguments = [
        "tracepoints",
        "log",
        "--format",
        "sel4bench",
        "--unit",
        "ns",
        "--frequency",
        "2000000000",
    ];
    let printed = place.json(&arguments);
    assert_eq!(printed[0]["Benchmark"], "tracepoint 0 (ns)");
    assert_eq!(printed[0]["Results"][0]["Raw results"], json!([11, 14]));
    // The output is a trace that can be read again.
    fs::write(place.0.join("again.json"), golden.to_string()).unwrap();
    let info = place.json(&["info", "again.json", "--json"]);
    assert!(info.to_string().contains("sel4bench JSON"), "{info}");
}

#[test]
fn the_own_cost_is_told_and_taken_off() {
    let place = Place::new();
    fs::write(place.0.join("log"), LOG).unwrap();
    let cost = ["--cost", "tracepoint 0", "tracepoint 1"];
    let page = place.lat(&[&["tracepoints", "log"], &cost[..]].concat());
    let page = String::from_utf8(page.stdout).unwrap();
    let line = |begin: &str| {
        let line = page.lines().find(|line| line.trim_start().starts_with(begin));
        line.unwrap_or_default().split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
    };
    // Outer less inner: 18 and 22.
    assert_eq!(line("total overhead"), "2 18 22 20 4 2.83 14.1%", "{page}");
    assert_eq!(line("effective overhead"), "2 4 6 5 1 1.41 28.3%", "{page}");
    let json = place.json(&[&["tracepoints", "log", "--json"], &cost[..]].concat());
    assert_eq!(json["without_own_cost"][2]["min_cycles"], 95);
    assert_eq!(json["tracepoints"][2]["min_cycles"], 100);
    assert_eq!(json["tracepoints"][2]["min_ns"], Value::Null);
    // Lines of the console are missing: the count is a lower bound, all other numbers are unknown.
    fs::write(place.0.join("lossy"), LOG.replace("size 5", "size 9")).unwrap();
    let lossy = place.json(&[&["tracepoints", "lossy", "--json"], &cost[..]].concat());
    for (row, exact) in [(&json, "exact"), (&lossy, "unknown")] {
        for row in [&row["tracepoints"][0], &row["own_cost"]["total"]] {
            assert_eq!(row["quality"], exact);
            assert_eq!(row["count_quality"], exact.replace("unknown", "lower_bound"));
        }
    }
    let wrong = place.lat(&["tracepoints", "log", "--cost", "tracepoint 7", "tracepoint 1"]);
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error.starts_with("error: cannot tell the cost"), "{error}");
    let wrong = place.lat(&["tracepoints", "log", "--cost", "x", "tracepoint 1"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("the trace has tracepoint 0"));
}

/// Cycles of one START or STOP, parsed from the output of babeltrace2.
struct Mark {
    cycles: u64,
    is_start: bool,
    id: u64,
}

fn marks(trace: &Path) -> Option<Vec<Mark>> {
    let options = ["--clock-cycles", "--no-delta"];
    let output = Command::new("babeltrace2").args(options).arg(trace).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mark = |line: &str| {
        let is_start = line.contains(" cost:START: ");
        if !is_start && !line.contains(" cost:STOP: ") {
            return None;
        }
        let cycles = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
        let id = line.rsplit("id = ").next()?.split(' ').next()?.parse().ok()?;
        Some(Mark { cycles, is_start, id })
    };
    Some(text.lines().filter_map(mark).collect())
}

/// Whether numbers are equal up to rounding of sums in another order.
fn same(printed: &Value, computed: f64) -> bool {
    let printed = printed.as_f64().unwrap_or(f64::NAN);
    (printed - computed).abs() <= 1e-9 * computed.abs().max(1.0)
}

fn check(row: &Value, samples: &[f64], what: &str) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / n;
    let stddev = (variance * n / (n - 1.0)).sqrt();
    let extreme = |of: fn(f64, f64) -> f64| samples.iter().copied().reduce(of).unwrap();
    for (name, value) in [
        ("count", n),
        ("min_cycles", extreme(f64::min)),
        ("max_cycles", extreme(f64::max)),
        ("mean_cycles", mean),
        ("variance_cycles2", variance),
        ("stddev_cycles", stddev),
        ("stddev_percent", stddev / mean.abs() * 100.0),
    ] {
        assert!(same(&row[name], value), "{what}: {name}: {} is not {value}", row[name]);
    }
}

#[test]
fn the_example_measures_what_a_tracepoint_costs_here() {
    let place = Place::new();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tracepoint-cost/run");
    let output = Command::new("sh")
        .arg(run)
        .args(["300", "--json"])
        .env("LAT", env!("CARGO_BIN_EXE_lat"))
        .env("KEEP", place.0.join("kept"))
        .env("LATERALIS_DIR", place.0.join("areas"))
        .output()
        .expect("sh");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows: BTreeMap<&str, &Value> = printed["tracepoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["key"].as_str().unwrap(), row))
        .collect();
    let counts: Vec<_> = rows.iter().map(|(key, row)| (*key, row["count"].clone())).collect();
    let expected = [("0", 300), ("1", 300), ("2", 64), ("3", 64), ("4", 300), ("5", 600)];
    assert_eq!(counts, expected.map(|(key, count)| (key, json!(count))));
    let cost = &printed["own_cost"];
    assert_eq!((&cost["unpaired"], &cost["total"]["count"]), (&json!(0), &json!(300)));
    // The inner pair is nested in the outer one, and each takes time.
    assert!(cost["total"]["min_cycles"].as_i64() > Some(0), "{cost}");
    assert!(cost["effective"]["min_cycles"].as_i64() > Some(0), "{cost}");
    assert_eq!(cost["total"]["quality"], "exact");

    let Some(marks) = marks(&place.0.join("kept/recording/ctf")) else {
        println!("SKIPPED: no babeltrace2 here to compute the table a second time");
        return;
    };
    // With a single thread, a STOP belongs to the last START with its number.
    let (mut started, mut samples) = (BTreeMap::new(), BTreeMap::<u64, Vec<f64>>::new());
    for mark in &marks {
        if mark.is_start {
            started.insert(mark.id, mark.cycles);
        } else {
            let cycles = mark.cycles - started[&mark.id];
            samples.entry(mark.id).or_default().push(cycles as f64);
        }
    }
    for (id, samples) in &samples {
        check(rows[id.to_string().as_str()], samples, &format!("point {id}"));
    }
    let total: Vec<f64> = samples[&0].iter().zip(&samples[&1]).map(|(o, i)| o - i).collect();
    check(&cost["total"], &total, "total");
    check(&cost["effective"], &samples[&1], "effective");
    // Work with two pairs inside, less one effective and two total overheads.
    let median = |samples: &[f64]| {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        }
    };
    let own = (median(&samples[&1]) + 2.0 * median(&total)).round();
    let work: Vec<f64> = samples[&4].iter().map(|cycles| cycles - own).collect();
    let less = printed["without_own_cost"].as_array().unwrap();
    let row = less.iter().find(|row| row["key"] == "4").unwrap();
    check(row, &work, "work without own cost");
}

#[test]
fn spans_of_a_recording_are_tracepoints_of_their_thread() {
    let place = Place::new();
    let sizes = ["--clients", "1", "--threads", "2", "--orders", "50", "--workers", "1"];
    let output = place.lat(&[&["demo", "-o", "demo"], &sizes[..]].concat());
    assert!(output.status.success());
    let printed = place.json(&["tracepoints", "demo", "--json"]);
    let rows = printed["tracepoints"].as_array().unwrap();
    let of = |name: &str| {
        let rows = rows.iter().filter(|row| row["name"] == name);
        rows.map(|row| row["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((of("work"), of("shelf_held"), of("request")), (100, 100, 100));
    assert_eq!(printed["stops_without_start"], 0);
    let only = place.json(&["tracepoints", "demo", "--json", "--event", "warehouse:*"]);
    let names: Vec<_> =
        only["tracepoints"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert!(!names.contains(&json!("request")), "{names:?}");
}
