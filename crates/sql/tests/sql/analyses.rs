// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that run commands return the results of the commands; our own functions do so too where both
//! can.

use std::path::Path;
use std::process::Command;

use lateralis_sql::answers::specs::specs;
use serde_json::Value;

use crate::place::{self, data, demo, lat, lat_json, outcome, rows, run};

/// Lists of `lat stats --json` that correspond to the rows of functions.
const LISTS: [(&str, &str, &str); 20] = [
    ("stats_spans", "/spans", ""),
    ("stats_keys", "/spans", "/by_key"),
    ("stats_span_threads", "/spans", "/by_thread"),
    ("stats_slowest", "/spans", "/slowest"),
    ("stats_histograms", "/spans", "/histogram_ns"),
    ("stats_budgets", "/budgets", ""),
    ("stats_cpus", "/cpus", ""),
    ("stats_cpu_series", "/cpus", "/series/busy_ns"),
    ("stats_threads", "/threads", ""),
    ("stats_applications", "/applications", ""),
    ("stats_counted", "/counted/threads", ""),
    ("stats_wakeups", "/wakeups/latencies", ""),
    ("stats_wakers", "/wakeups/pairs", ""),
    ("stats_messages", "/messages", ""),
    ("stats_message_cpus", "/messages", "/by_cpus"),
    ("stats_states", "/states", "/states"),
    ("stats_counters", "/counters", ""),
    ("stats_counter_points", "/counters", "/chart"),
    ("stats_events", "/events", ""),
    ("stats_event_cpus", "/events_by_cpu", ""),
];

/// Expected rows of a function, each with its enclosing object.
fn list<'a>(all: &'a Value, outer: &str, inner: &str) -> Vec<(&'a Value, &'a Value)> {
    let array = |of: &'a Value, at: &str| of.pointer(at).and_then(Value::as_array);
    let outer = array(all, outer).into_iter().flatten();
    if inner.is_empty() {
        return outer.map(|row| (row, row)).collect();
    }
    outer.flat_map(|o| array(o, inner).into_iter().flatten().map(move |row| (row, o))).collect()
}

/// Compares the rows of a function with those of the command; returns the number of compared cells.
fn compare(name: &str, found: &[Value], wanted: &[(&Value, &Value)]) -> usize {
    assert_eq!(found.len(), wanted.len(), "{name}");
    let mut compared = 0;
    for (found, (row, outer)) in found.iter().zip(wanted) {
        for (column, value) in found.as_object().unwrap() {
            // Members that are renamed or missing in the row are compared below.
            let renamed = match column.as_str() {
                "span" | "class" => outer.get("name").or_else(|| row.get("name")),
                "inside" => row.get("in"),
                "not_exact" | "recording" | "quality" | "is_sure" => None,
                other => row.get(other),
            };
            if let Some(wanted) = renamed {
                let same = match (value.as_f64(), wanted.as_f64()) {
                    (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-12,
                    _ => value == wanted,
                };
                assert!(same, "{name}.{column}: {value} is not {wanted}");
                compared += 1;
            }
        }
        if let Some(not_exact) = row.get("not_exact").and_then(Value::as_object) {
            let has = |word: &str| not_exact.values().any(|quality| quality == word);
            let worst = ["unknown", "lower_bound"].into_iter().find(|word| has(word));
            assert_eq!(found["quality"], worst.unwrap_or("exact"), "{name}");
        }
    }
    compared
}

fn stats_are_those_of_the_command(lat: &Path, trace: &Path) -> Vec<&'static str> {
    let path = trace.to_str().unwrap();
    let all = lat_json(lat, &["stats", path, "--json"]);
    let mut filled = Vec::new();
    for (name, outer, inner) in LISTS {
        let found = rows(trace, &format!("SELECT * FROM {name}()"));
        let wanted = list(&all, outer, inner);
        let compared = compare(name, &found, &wanted);
        // Lists of plain numbers have no members to compare by.
        let plain = ["stats_histograms", "stats_cpu_series", "stats_counter_points"];
        assert!(wanted.is_empty() || compared > 0 || plain.contains(&name), "{name}");
        if !wanted.is_empty() {
            filled.push(name);
        }
    }
    filled
}

#[test]
fn stats_of_a_recording_are_those_of_the_command() {
    let (Some(lat), Some(trace)) = (lat(), demo()) else { return };
    let filled = stats_are_those_of_the_command(&lat, trace);
    for name in ["stats_spans", "stats_keys", "stats_slowest", "stats_messages", "stats_budgets"] {
        assert!(filled.contains(&name), "{name} is empty: {filled:?}");
    }
    // Lists of numbers: by their sums.
    let all = lat_json(&lat, &["stats", trace.to_str().unwrap(), "--json"]);
    let buckets = list(&all, "/spans", "/histogram_ns");
    let sum: u64 = buckets.iter().map(|(bucket, _)| bucket[2].as_u64().unwrap()).sum();
    let sql = "SELECT sum(count) AS n, min(low_ns) AS low FROM stats_histograms()";
    let found = &rows(trace, sql)[0];
    assert_eq!(found["n"].as_u64(), Some(sum));
    let low = buckets.iter().map(|(bucket, _)| bucket[0].as_u64().unwrap()).min();
    assert_eq!(found["low"].as_u64(), low);
}

#[test]
fn utilisation_and_wakes_are_those_of_the_command() {
    let (Some(lat), Some(trace)) = (lat(), data("traces/generated/perf-sched-1s")) else { return };
    let filled = stats_are_those_of_the_command(&lat, &trace);
    for name in ["stats_cpus", "stats_cpu_series", "stats_threads", "stats_wakeups"] {
        assert!(filled.contains(&name), "{name} is empty: {filled:?}");
    }
    // The series of a CPU begins with its time, and adds up to its busy time.
    let sql = "SELECT c.cpu, c.busy_ns, s.sum FROM stats_cpus() c JOIN \
               (SELECT cpu, sum(busy_ns) AS sum FROM stats_cpu_series() GROUP BY cpu) s \
               ON c.cpu = s.cpu";
    let found = rows(&trace, sql);
    assert!(!found.is_empty());
    found.iter().for_each(|row| assert_eq!(row["busy_ns"], row["sum"], "{row}"));
}

#[test]
fn a_window_is_that_of_the_options() {
    let (Some(lat), Some(trace)) = (lat(), demo()) else { return };
    let path = trace.to_str().unwrap();
    let arguments = ["stats", path, "--json", "--from", "10ms", "--until", "60ms"];
    let all = lat_json(&lat, &arguments);
    let found = rows(trace, "SELECT * FROM stats_events('10ms', '60ms')");
    assert!(!found.is_empty());
    compare("stats_events", &found, &list(&all, "/events", ""));
    // The same range in nanoseconds on the timeline.
    let begin = rows(trace, "SELECT begin_ts FROM recordings")[0]["begin_ts"].as_i64().unwrap();
    let sql = format!("SELECT * FROM stats_events({}, {})", begin + 10_000_000, begin + 60_000_000);
    assert_eq!(rows(trace, &sql), found);
}

#[test]
fn percentiles_of_spans_are_those_of_the_command() {
    let (Some(_), Some(trace)) = (lat(), demo()) else { return };
    let sql = "SELECT s.span, s.count, t.n, s.p99_ns, t.p99, s.median_ns, t.median, s.max_ns, t.max, \
                      s.total_ns, t.total, s.mean_ns, t.mean, s.stddev_ns, t.stddev \
               FROM stats_spans() s JOIN (SELECT span, count(*) AS n, percentile(duration, 99) AS p99, \
                    percentile(duration, 50) AS median, max(duration) AS max, \
                    sum(duration) AS total, avg(duration) AS mean, \
                    coalesce(stddev(duration), 0.0) AS stddev \
                    FROM spans WHERE status = 'complete' GROUP BY span) t ON s.span = t.span \
               WHERE s.quality = 'exact'";
    let found = rows(trace, sql);
    assert!(!found.is_empty());
    for row in found {
        for (a, b) in [
            ("count", "n"),
            ("p99_ns", "p99"),
            ("median_ns", "median"),
            ("max_ns", "max"),
            ("total_ns", "total"),
            ("mean_ns", "mean"),
        ] {
            assert_eq!(row[a], row[b], "{a}: {row}");
        }
        let [a, b] = ["stddev_ns", "stddev"].map(|name| row[name].as_f64().expect("a number"));
        assert!((a - b).abs() <= 1e-6 * a.max(1.0), "{row}");
    }
    // Messages as well.
    let sql = "SELECT s.channel, s.count, t.n, s.p99_ns, t.p99 FROM stats_messages() s JOIN \
               (SELECT channel, count(*) AS n, percentile(latency, 99) AS p99 FROM messages \
                WHERE status = 'complete' GROUP BY channel) t ON s.channel = t.channel \
               WHERE s.quality = 'exact'";
    let found = rows(trace, sql);
    assert!(!found.is_empty());
    found.iter().for_each(|row| {
        assert_eq!((&row["count"], &row["p99_ns"]), (&row["n"], &row["p99"]), "{row}");
    });
}

#[test]
fn paths_are_those_of_the_command() {
    let (Some(lat), Some(trace)) = (lat(), demo()) else { return };
    let span = rows(trace, "SELECT span FROM stats_spans() WHERE count > 5 ORDER BY max_ns DESC");
    let span = span[0]["span"].as_str().unwrap();
    let path = trace.to_str().unwrap();
    let all = lat_json(&lat, &["path", path, "--span", span, "--slowest", "3", "--json"]);
    for (name, inner) in [("path_steps", "/segments"), ("path_shares", "/shares")] {
        let found = rows(trace, &format!("SELECT * FROM {name}('{span}', 3)"));
        assert!(compare(name, &found, &list(&all, "/spans", inner)) > 0);
        let paths = found.iter().filter_map(|row| row["path"].as_u64()).max();
        assert_eq!(paths, all["spans"].as_array().map(|all| all.len() as u64));
    }
    let (code, said) = outcome(&run(trace, &["-c", "SELECT * FROM path_steps('no such')"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("no such span") && said.contains(span), "{said}");
}

#[test]
fn differences_are_those_of_the_command() {
    let (Some(lat), Some(good)) = (lat(), demo()) else { return };
    let Some(bad) = place::record("other") else { return };
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let all = lat_json(&lat, &["diff", good, bad, "--json"]);
    let ask = |sql: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_lat-sql"))
            .args([good, bad, "--json", "-c", sql])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", outcome(&output).1);
        serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
    };
    let found = ask("SELECT * FROM diff_shifts()");
    let wanted: Vec<_> = [list(&all, "/differences", ""), list(&all, "/perhaps", "")]
        .into_iter()
        .flatten()
        .collect();
    compare("diff_shifts", &found, &wanted);
    let sure = found.iter().filter(|row| row["is_sure"] == true).count();
    assert_eq!(sure, all["differences"].as_array().unwrap().len());
    assert_eq!(ask(&format!("SELECT * FROM diff_shifts('{good}', '{bad}')")), found);
    // Both recordings are separate in every table.
    let each = ask("SELECT recording, count(*) AS n FROM events GROUP BY recording");
    assert_eq!(each.len(), 2);
}

#[test]
fn every_function_is_compared_and_documented() {
    let others = ["path_shares", "path_steps", "diff_shifts"];
    for spec in specs() {
        let is_compared = LISTS.iter().any(|(name, ..)| *name == spec.name);
        assert!(is_compared || others.contains(&spec.name), "{}", spec.name);
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql.md");
    let page = std::fs::read_to_string(page).unwrap();
    for spec in specs() {
        let columns: Vec<String> =
            spec.columns().map(|column| format!("`{}`", column.name)).collect();
        let line = format!(
            "| `{}({})` | {} | {} |\n",
            spec.name,
            spec.arguments,
            spec.gives,
            columns.join(", ")
        );
        assert!(page.contains(&line), "docs/reference/sql.md needs the line {line}");
    }
}

#[test]
fn wrong_arguments_are_told_what_is_right() {
    let Some(trace) = data("traces/generated/lttng-ust-20k") else { return };
    for (sql, wanted) in [
        ("SELECT * FROM stats_spans(1, 2, 3)", "FROM stats_spans([from [, until]])"),
        ("SELECT * FROM stats_spans('now')", "now"),
        ("SELECT * FROM path_steps()", "FROM path_steps('span' [, count])"),
        ("SELECT * FROM path_steps('a', 0)", "1 to 1000"),
        ("SELECT * FROM diff_shifts()", "open two recordings"),
        ("SELECT * FROM diff_shifts('a', 'b')", "no such recording: a"),
        ("SELECT * FROM stats_spams()", "did you mean stats_spans"),
        ("SELECT p9_ns FROM stats_spans()", "did you mean"),
    ] {
        let (code, said) = outcome(&run(&trace, &["-c", sql]));
        assert_eq!(code, Some(2), "{sql}: {said}");
        assert!(said.contains(wanted), "{sql}: {said}");
    }
}

/// Splits a line into words like a shell; the guide uses only simple quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match quote {
            Some(open) if open == character => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if character == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

#[test]
fn the_commands_of_the_guide_run() {
    let (Some(_), Some(trace)) = (lat(), demo()) else { return };
    let place = place::folder("sql-guide");
    std::fs::write(place.join("report.sql"), "SELECT * FROM cpus").unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/sql.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut ran = 0;
    for line in page.lines().filter(|line| line.starts_with("lat sql ") && line.contains(" -")) {
        let names = ["demo", "before", "after"];
        let of = |word: &String| match names.contains(&word.as_str()) {
            true => trace.to_str().unwrap().to_owned(),
            false => word.clone(),
        };
        let arguments: Vec<String> = words(line).iter().skip(2).map(of).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_lat-sql"))
            .args(&arguments)
            .current_dir(&place)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", outcome(&output).1);
        let wrote = std::fs::metadata(place.join("report.csv")).is_ok_and(|file| file.len() > 0);
        assert!(!output.stdout.is_empty() || (line.contains("-o report.csv") && wrote), "{line}");
        ran += 1;
    }
    assert!(ran >= 4, "{ran}");
}
