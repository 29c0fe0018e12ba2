// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats` of a run of Genode: calls, activities of threads, queues, checkpoints. Each number is computed
//! again here from the lines of `lat print`, by brute force.

use crate::place;

use std::collections::BTreeMap;

use place::Place;
use place::genode::{Thread, checkpoint, event};
use serde_json::{Value, json};

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A thread that is called or signalled, works, calls others, and waits again; meanwhile a queue fills and
/// empties. No two threads share a time.
fn work(lane: u64, lanes: u64) -> Vec<Vec<u8>> {
    let mut random = Random(0x9e37_79b9 + lane);
    let mut now = 1000 + random.below(500);
    let mut events = Vec::new();
    for round in 0..60 {
        let mut next = |random: &mut Random| {
            now += 1 + random.below(300);
            now * lanes + lane
        };
        let is_server = lane.is_multiple_of(2);
        if is_server {
            events.push(event(3, next(&mut random), b"serve\0"));
        } else {
            let payload = [&1u32.to_le_bytes()[..], &lane.to_le_bytes()].concat();
            events.push(event(6, next(&mut random), &payload));
        }
        events.push(checkpoint(next(&mut random), random.below(32) as u32, 0, "slots free"));
        for depth in 0..random.below(3) {
            let name = format!("part_{depth}");
            events.push(checkpoint(next(&mut random), 0, 1, &name));
            events.push(checkpoint(next(&mut random), 0, 2, &name));
        }
        for _ in 0..random.below(4) {
            events.push(event(1, next(&mut random), b"call\0"));
            events.push(event(2, next(&mut random), b"call\0"));
        }
        if is_server && round < 59 {
            events.push(event(4, next(&mut random), b"serve\0"));
        }
    }
    events
}

fn times(events: &[Vec<u8>]) -> (u64, u64) {
    let time = |event: &Vec<u8>| u64::from_le_bytes(event[1..9].try_into().expect("8 bytes"));
    (time(&events[0]), time(&events[events.len() - 1]))
}

/// Returns the smallest value that at least this percentage of all values does not exceed.
fn percentile(sorted: &[i64], percent: usize) -> i64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn check(row: &Value, count: &str, mut nanos: Vec<i64>, what: &str) {
    nanos.sort_unstable();
    assert_eq!(row[count], nanos.len(), "{what}: {row}");
    if nanos.is_empty() {
        return;
    }
    let total: i64 = nanos.iter().sum();
    assert_eq!(row["mean_ns"], total as f64 / nanos.len() as f64, "{what}");
    assert_eq!(
        (&row["min_ns"], &row["max_ns"]),
        (&json!(nanos[0]), &json!(nanos.last())),
        "{what}"
    );
    // An unfinished span can be the longest, and counts in percentiles.
    let open = row["unfinished"].as_u64().unwrap_or(0) as usize;
    let mut not_exact = json!({});
    if open > 0 {
        not_exact["max_ns"] = json!("lower_bound");
    }
    for (name, percent) in [("median_ns", 50), ("p90_ns", 90), ("p99_ns", 99)] {
        // States have no p90.
        let Some(told) = row[name].as_i64() else {
            assert_eq!(name, "p90_ns", "{what}: {row}");
            continue;
        };
        let between = |open: &[i64]| {
            let mut all = [&nanos[..], open].concat();
            all.sort_unstable();
            percentile(&all, percent)
        };
        let (least, most) = (between(&vec![0; open]), between(&vec![i64::MAX; open]));
        assert!(least <= told && told <= most, "{what} {name}: {least} {told} {most}");
        assert!(open > 0 || told == percentile(&nanos, percent), "{what}: {name}");
        if row["not_exact"][name] == "lower_bound" {
            assert!(least < most, "{what}: {name}");
            not_exact[name] = json!("lower_bound");
        }
    }
    let ninety_nine = &row["not_exact"]["p99_9_ns"];
    if open > 0 && *ninety_nine == "lower_bound" {
        not_exact["p99_9_ns"] = json!("lower_bound");
    }
    assert_eq!(row["not_exact"], not_exact, "{what}");
}

fn named<'a>(rows: &'a Value, member: &str, name: &str) -> &'a Value {
    let mut rows = rows.as_array().into_iter().flatten();
    rows.find(|row| row[member] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn time(line: &Value) -> i64 {
    line["time_ns"].as_i64().expect("a time")
}

/// Returns begin and end of the pairs of a thread, innermost first; matched by name if `by_name`.
fn pairs(lines: &[Value], begin: &str, end: &str, by_name: bool) -> Vec<(i64, i64, String)> {
    let mut open: BTreeMap<(i64, String), Vec<i64>> = BTreeMap::new();
    let mut found = Vec::new();
    for line in lines {
        let name = line["fields"]["name"].as_str().unwrap_or("").to_owned();
        let told = if by_name { name.clone() } else { String::new() };
        let place = (line["tid"].as_i64().expect("a thread"), told);
        if line["name"] == begin {
            open.entry(place).or_default().push(time(line));
        } else if line["name"] == end
            && let Some(since) = open.get_mut(&place).and_then(Vec::pop)
        {
            found.push((since, time(line), name));
        }
    }
    found
}

fn run(place: &Place) -> Vec<Value> {
    let labels = ["init -> rom", "init -> app", "init -> timer", "init -> nic", "init -> fs"];
    let lanes = labels.len() as u64;
    let events: Vec<Vec<Vec<u8>>> = (0..lanes).map(|lane| work(lane, lanes)).collect();
    let threads: Vec<Thread<'_>> =
        labels.iter().zip(&events).map(|(label, of)| (*label, "ep", times(of), &of[..])).collect();
    place.genode("run", &threads);
    let output = place.lat(&["print", "run", "--format", "json"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn calls_and_checkpoints_are_as_counted_by_hand() {
    let place = Place::new();
    let lines = run(&place);
    let stats = place.json(&["stats", "run", "--json"]);
    let durations = |pairs: &[(i64, i64, String)]| -> Vec<i64> {
        pairs.iter().map(|(begin, end, _)| end - begin).collect()
    };
    let calls = pairs(&lines, "rpc:call", "rpc:returned", false);
    assert!(calls.len() > 100, "{} calls", calls.len());
    let rpc = named(&stats["spans"], "name", "rpc");
    check(rpc, "count", durations(&calls), "rpc");
    let dispatches = pairs(&lines, "rpc:dispatch", "rpc:reply", false);
    check(named(&stats["spans"], "name", "dispatch"), "count", durations(&dispatches), "dispatch");

    // Counts per duration bucket.
    let in_bucket = |low: i64, high: i64| {
        durations(&calls).iter().filter(|nanos| (low..=high).contains(nanos)).count()
    };
    let buckets = rpc["histogram_ns"].as_array().expect("a histogram");
    let mut all = 0;
    for bucket in buckets {
        let number = |at: usize| bucket[at].as_i64().expect("a number");
        assert_eq!(in_bucket(number(0), number(1)), number(2) as usize, "{bucket}");
        all += number(2);
    }
    assert_eq!(all as usize, calls.len());

    // Latency by the number of calls in progress at each return.
    let mut levels: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for (begin, end, _) in &calls {
        let open = calls.iter().filter(|(since, until, _)| since < end && until >= end).count();
        levels.entry(open as u64).or_default().push(end - begin);
    }
    assert!(levels.len() >= 3, "{levels:?}");
    let told = rpc["by_in_flight"].as_array().expect("levels");
    assert_eq!(
        told.len(),
        levels.keys().map(|open| open.min(&5)).collect::<std::collections::BTreeSet<_>>().len()
    );
    for (open, nanos) in levels.into_iter().filter(|(open, _)| *open <= 4) {
        let row = told.iter().find(|row| row["open_least"] == open).expect("a level");
        assert_eq!(row["open_most"], open);
        check(row, "count", nanos, &format!("{open} open"));
    }

    let checkpoints = pairs(&lines, "checkpoint:START", "checkpoint:END", true);
    let of_kind = named(&stats["spans"], "name", "checkpoint");
    check(of_kind, "count", durations(&checkpoints), "checkpoint");
    let mut by_name: BTreeMap<(i64, &str), Vec<i64>> = BTreeMap::new();
    for row in of_kind["by_key"].as_array().expect("keys") {
        by_name.insert((row["pid"].as_i64().unwrap(), row["key"].as_str().unwrap()), Vec::new());
    }
    for line in &lines {
        let key = (line["pid"].as_i64().unwrap(), line["fields"]["name"].as_str().unwrap_or(""));
        let ended = checkpoints.iter().find(|(_, end, _)| *end == time(line));
        if let (Some(of), Some((begin, end, _))) = (by_name.get_mut(&key), ended) {
            of.push(end - begin);
        }
    }
    assert!(by_name.len() >= 10, "two parts of five components: {by_name:?}");
    for ((pid, name), nanos) in by_name {
        let mut rows = of_kind["by_key"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["pid"] == pid && row["key"] == name).expect("a key");
        check(row, "count", nanos, name);
    }
}

#[test]
fn activities_of_threads_and_queues_are_as_counted_by_hand() {
    let place = Place::new();
    let lines = run(&place);
    let stats = place.json(&["stats", "run", "--json", "--section", "states,counters"]);
    assert!(stats.get("spans").is_none() && stats.get("events").is_none(), "only what was asked");
    let end = lines.iter().map(time).max().expect("events");
    let rows = stats["states"].as_array().expect("states");
    assert_eq!(rows.len(), 5);
    for row in rows {
        // The current state and its begin, from the thread's events.
        let mut stays: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        let mut now: Option<(&str, i64)> = None;
        let mut first = None;
        let of_thread = lines.iter().filter(|line| line["tid"] == row["tid"]);
        for line in of_thread {
            let state = match line["name"].as_str().expect("a name") {
                "rpc:call" => "await_reply",
                "rpc:returned" | "rpc:dispatch" | "signal:receive" => "ready",
                "rpc:reply" => "await_rpc",
                _ => continue,
            };
            match now {
                Some((before, _)) if before == state => continue,
                Some((before, since)) => stays.entry(before).or_default().push(time(line) - since),
                None => {}
            }
            first = first.or(Some(state));
            now = Some((state, time(line)));
        }
        let (last, since) = now.expect("a state");
        assert!(stays["ready"].len() > 10, "activities: {stays:?}");
        for (state, mut nanos) in stays {
            let of = named(&row["states"], "state", state);
            let open = if state == last { end - since } else { 0 };
            let longest = nanos.iter().copied().max().unwrap_or(0).max(open);
            assert_eq!(of["total_ns"], nanos.iter().sum::<i64>() + open, "{state}");
            assert_eq!(of["entries"], nanos.len() + usize::from(state == last), "{state}");
            assert_eq!(of["longest_ns"], longest, "{state}");
            // The first state may have been entered before its first event.
            if first == Some(state) {
                nanos.remove(0);
            }
            check(of, "stays", nanos, state);
        }
    }

    let mut levels: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["name"] == "checkpoint slots free") {
        let level = (time(line), line["fields"]["data"].as_i64().expect("a level"));
        levels.entry(line["pid"].as_i64().expect("a process")).or_default().push(level);
    }
    let counters = stats["counters"].as_array().expect("counters");
    assert_eq!((counters.len(), levels.len()), (5, 5));
    for row in counters {
        assert_eq!(row["counter"], "checkpoint slots free.data");
        let of = &levels[&row["pid"].as_i64().expect("a process")];
        let chart = row["chart"].as_array().expect("a chart");
        let points: Vec<(i64, i64)> = chart
            .iter()
            .map(|point| (point[0].as_i64().unwrap(), point[1].as_f64().unwrap() as i64))
            .collect();
        // There are few enough points to keep all; a repeated level is a point, too.
        assert_eq!(&points, of);
        assert_eq!(row["max"], of.iter().map(|level| level.1).max().unwrap() as f64);
    }
    let page = place.lat(&["stats", "run", "--section", "counters,states,latency"]);
    let page = String::from_utf8(page.stdout).expect("UTF-8");
    for expected in ["over time", "mean stay", "rpc: how many of which duration", "open at once"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(page.contains('█') && page.contains('▁'), "{page}");
}
