// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Thread states and the threads on each CPU: the viewer has the data of tables and statistics.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use crate::foreign::table;
use crate::place::Place;

/// Largest number of rows of a table that are requested one by one.
const ASKED_MAX: usize = 2000;

/// Returns the row of a kind on the lane of a thread.
fn row_of(open: &Value, tid: u64, kind: &str) -> Option<(Value, Value)> {
    let lanes = open["lanes"].as_array().expect("lanes").iter();
    let of_thread = |lane: &&Value| lane["kind"] == "thread" && lane["tid"] == tid;
    let row = |lane: &Value| {
        let rows = lane["rows"].as_array().expect("rows").iter();
        let mut rows = rows.filter(|row| row["kind"] == kind);
        let row = rows.next().map(|row| (lane["id"].clone(), row["row"].clone()));
        assert!(rows.next().is_none(), "states of a thread follow each other: {lane}");
        row
    };
    lanes.filter(of_thread).find_map(row)
}

/// Checks that each state of the table is in the viewer, with both ends and the same quality, and that each
/// CPU and thread ran as long as in the statistics. Returns the number of states requested.
pub fn check(place: &Place, page: &mut Page, trace: &str, what: &str) -> usize {
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().expect("a time").parse().expect("nanoseconds");
    let rows = table(place, trace, "thread_states");
    let step = rows.len() / ASKED_MAX + 1;
    let mut asked = 0;
    for row in rows.iter().step_by(step) {
        let number = |name: &str| row[name].parse::<i64>().expect("a number");
        let (begin, end) = (number("ts") - origin, number("end_ts") - origin);
        // A state without length is not the nearest one to a time.
        if begin == end {
            continue;
        }
        let tid = number("tid").cast_unsigned();
        let Some((lane, number)) = row_of(&open, tid, "thread_states") else {
            panic!("{what}: no states of {tid}: {row:?}")
        };
        let asks = json!({ "lane": lane, "row": number, "t": begin + (end - begin) / 2 });
        let thing = page.ask("at", asks)["thing"].take();
        let is_complete = row["status"] == "complete";
        assert_eq!(thing["kind"], "thread_state", "{what}: {row:?} {thing}");
        assert_eq!(thing["name"], row["state"].as_str(), "{what}: {row:?} {thing}");
        assert_eq!(thing["begin"], begin, "{what}: {row:?} {thing}");
        assert_eq!(thing["end"].as_i64(), is_complete.then_some(end), "{what}: {row:?} {thing}");
        assert_eq!(thing["tid"], tid, "{what}: {row:?} {thing}");
        let is_unknown = row["quality"] == "unknown";
        assert_eq!(thing["quality"] == "unknown", is_unknown, "{what}: {row:?} {thing}");
        let cpu = row["cpu"].parse::<u64>().ok();
        assert_eq!(thing["cpu"].as_u64(), cpu, "{what}: {row:?} {thing}");
        if row["state"] == "runnable" {
            let woken = &thing["woken_by"];
            let kind = Some(row["woken_by"].as_str()).filter(|kind| !kind.is_empty());
            assert_eq!(woken["kind"].as_str(), kind, "{what}: {row:?} {thing}");
            let waker = row["waker_tid"].parse::<u64>().ok();
            assert_eq!(woken["tid"].as_u64(), waker, "{what}: {row:?} {thing}");
            if let Some(waker) = waker {
                wakes(page, &open, (waker, tid), begin, what);
            }
        }
        asked += 1;
    }
    exits(place, page, &open, trace, what);
    activity(page, &open, &rows, what);
    ran_as_long(place, page, trace, what);
    asked
}

/// The state in which a thread woke another lists the wakeup.
fn wakes(page: &mut Page, open: &Value, (waker, woken): (u64, u64), at: i64, what: &str) {
    let Some((lane, number)) = row_of(open, waker, "thread_states") else { return };
    let thing = page.ask("at", json!({ "lane": lane, "row": number, "t": at }))["thing"].take();
    // If it is unknown whether the waker was running, its activity is unknown, too.
    if thing["name"] != "running" || thing["begin"].as_i64().is_none_or(|begin| begin > at) {
        return;
    }
    let wakes = &thing["wakes"];
    let listed = wakes["threads"].as_array().unwrap_or_else(|| panic!("{what}: {at} {thing}"));
    let is_here = listed.iter().any(|one| one["tid"] == woken && one["at"] == at);
    let are_all = wakes["count"] == listed.len();
    assert!(is_here || !are_all, "{what}: {waker} wakes {woken} at {at}: {thing}");
}

/// In some time ranges, threads ran for as long as the states of the table say, and rows are empty if the
/// states are only sleep, or if there are none.
fn activity(page: &mut Page, open: &Value, rows: &[BTreeMap<String, String>], what: &str) {
    let origin: i64 = open["origin"].as_str().expect("a time").parse().expect("nanoseconds");
    let end = open["end"].as_i64().expect("a time");
    // Without switches the running time of every thread is unknown.
    let has_switches = rows.iter().any(|row| row["state"] == "running");
    for (t0, t1) in [(0, end), (end / 3, end / 2), (end / 2, end / 2 + end / 1000 + 1)] {
        let columns = page.ask_columns("lane_activity", json!({ "t0": t0, "t1": t1 })).1;
        let mut ran: BTreeMap<u64, (i64, bool, bool)> = BTreeMap::new();
        for row in rows {
            let number = |name: &str| row[name].parse::<i64>().expect("a number");
            // An unfinished state is drawn up to the end of the session, which is after the last event.
            let is_complete = row["status"] == "complete";
            let stop = if is_complete { number("end_ts") - origin } else { end };
            let begin = number("ts") - origin;
            let is_here = begin < t1 && stop.max(begin + 1) > t0 && begin < stop;
            let of = ran.entry(number("tid").cast_unsigned()).or_default();
            if is_here && row["state"] == "running" {
                of.0 += stop.min(t1) - begin.max(t0);
            }
            of.1 |= is_here && row["state"] != "sleeping";
            of.2 |= is_here && row["state"] == "unknown";
        }
        for (tid, (nanos, is_awake, is_unknown)) in ran {
            let Some((lane, row)) = row_of(open, tid, "thread_states") else { continue };
            let at = usize::try_from(lane.as_u64().expect("a number")).expect("small");
            let busy = Some(columns["busy"][at]).filter(|busy| !busy.is_nan());
            let known = has_switches.then_some(nanos as f64);
            assert_eq!(busy, known, "{what}: {tid} from {t0} to {t1}");
            assert!(!is_unknown || columns["busy_open"][at] == 1.0, "{what}: {tid} {t0} {t1}");
            let place = (columns["row_lane"].iter().zip(&columns["row"]))
                .position(|of| Some(*of.0) == lane.as_f64() && Some(*of.1) == row.as_f64());
            let has = columns["has"][place.expect("each row has an answer")];
            assert_eq!(has == 1.0, is_awake, "{what}: {tid} from {t0} to {t1}");
        }
    }
}

/// A thread has exited in the viewer if it has in the statistics.
fn exits(place: &Place, page: &mut Page, open: &Value, trace: &str, what: &str) {
    let stats = place.json(&["stats", trace, "--json", "--section", "thread-states"]);
    let (mut exited, end) = (0, open["end"].as_i64().expect("a time"));
    for thread in stats["thread_states"].as_array().into_iter().flatten() {
        let tid = thread["tid"].as_u64().expect("a number");
        let Some((lane, row)) = row_of(open, tid, "thread_states") else { continue };
        let last = json!({ "lane": lane, "row": row, "t": end, "within": end + 1 });
        let thing = page.ask("at", last)["thing"].take();
        let has_ended = thing["has_ended"] == true;
        assert_eq!(thread["has_ended"], has_ended, "{what}: {thread} {thing}");
        exited += u64::from(has_ended);
    }
    println!("{what}: {exited} threads exited");
}

/// CPUs and threads ran as long as in the statistics.
fn ran_as_long(place: &Place, page: &mut Page, trace: &str, what: &str) {
    let stats = place.json(&["stats", trace, "--json"]);
    let open = page.ask("open", json!({}));
    let end = open["end"].as_u64().expect("a time");
    for (by, list, number, nanos) in
        [("cpu", "cpus", "cpu", "busy_ns"), ("thread", "threads", "tid", "running_ns")]
    {
        let asks = json!({ "by": by, "t0": 0, "t1": end, "px": 1 });
        let (told, columns) = page.ask_columns("utilisation", asks);
        let shares = &columns["share"];
        let mut of_page: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
        let rows = told["rows"].as_array().expect("rows");
        for (row, share) in rows.iter().zip(shares) {
            let key = row[number].as_u64().unwrap_or_else(|| panic!("{what}: {row}"));
            let is_exact = row["quality"] == "exact";
            of_page.insert(key, ((share * end as f64).round() as u64, is_exact));
        }
        // Only the threads that ran longest are listed.
        let are_all = told["of"] == rows.len();
        for row in stats[list].as_array().into_iter().flatten() {
            let key = row[number].as_u64().expect("a number");
            let ran = row[nanos].as_u64().expect("nanoseconds");
            let Some((of_page, is_exact)) = of_page.remove(&key) else {
                assert!(!are_all || ran == 0, "{what}: {by} {key} is not on the page: {row}");
                continue;
            };
            assert!(ran.abs_diff(of_page) <= 1, "{what}: {by} {key}: {of_page} on the page, {ran}");
            let says_exact = row["not_exact"][nanos].is_null();
            assert!(
                !is_exact || says_exact,
                "{what}: {by} {key} is exact on the page alone: {row}"
            );
        }
        assert!(of_page.is_empty(), "{what}: {by}: on the page alone: {of_page:?}");
    }
}

#[test]
fn states_of_threads_are_those_of_the_table() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    for trace in [
        "ctf1/lttng-ref/basic-kernel-analysis/kernel",
        "ctf1/tracecompass-EPL2/perf-taskset2",
        "generated/perf-sched-1s",
        "perfetto-MIT/test_trace.perfetto-trace",
    ] {
        let path = traces.join(trace);
        if !path.exists() {
            println!("SKIPPED: {} is not there", path.display());
            continue;
        }
        let (place, path) = (Place::new(), path.to_str().expect("UTF-8"));
        let viewer = Viewer::start(&place, &[path]);
        let asked = check(&place, &mut viewer.page(), path, trace);
        println!("{trace}: {asked} states");
    }
}
