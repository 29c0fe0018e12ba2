// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interpretation of Linux kernel events, from every recorder.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::printed::Event;
use super::table::Column;
use super::truth::{self, Doing, Times};
use crate::place::Place;
use crate::view::client::Viewer;
use crate::wakeups::{self, Printed};

/// A trace, and its events as printed by another program.
pub struct Kernel<'a> {
    pub place: &'a Place,
    /// Path of the trace.
    pub trace: &'a str,
    pub judge: &'a str,
    pub events: Vec<Event>,
    /// Largest difference of a duration, in nanoseconds, for clocks with another unit.
    pub off: u64,
    /// Whether the kernel is older than 4.14.
    pub is_old: bool,
}

fn rows(stats: &Value, list: &str) -> Vec<Value> {
    stats[list].as_array().cloned().unwrap_or_default()
}

pub fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))
}

fn tid(row: &Value) -> i64 {
    row["tid"].as_i64().unwrap_or(-1)
}

/// Returns count and nanoseconds of the complete spans of each name.
fn spans(stats: &Value) -> BTreeMap<String, Times> {
    let of = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, (count(row, "count"), row["total_ns"].as_u64().unwrap_or(0)))
    };
    rows(stats, "spans").iter().map(of).filter(|(_, times)| times.0 > 0).collect()
}

pub fn same_spans(stats: &Value, truth: &BTreeMap<String, Times>) -> bool {
    let here = spans(stats);
    for (name, times) in truth {
        let (count, nanos) = here.get(name).copied().unwrap_or_default();
        assert_eq!(count, times.0, "{name}: {nanos} {times:?}");
        // If the clock does not count nanoseconds, each program rounds in its own way.
        assert!(nanos.abs_diff(times.1) <= 2 * count, "{name}: {nanos} {times:?}");
    }
    !truth.is_empty()
}

/// Errors that are compared by name.
const ERRORS: [(i64, &str); 6] = [
    (-2, "ENOENT"),
    (-9, "EBADF"),
    (-10, "ECHILD"),
    (-11, "EAGAIN"),
    (-22, "EINVAL"),
    (-512, "ERESTARTSYS"),
];

/// Compares the number of returned calls of each name, their errors, and their bytes. Calls by number are
/// compared without names.
fn same_values(stats: &Value, events: &[Event]) -> bool {
    let there = truth::values(events);
    let is_by_number = |name: &str| name.starts_with('#');
    let (mut named, mut numbered) = (BTreeMap::new(), Vec::new());
    let calls = rows(stats, "calls");
    let calls = calls.iter().filter(|row| row["layer"] == "kernel" && count(row, "returned") > 0);
    for row in calls {
        let errors = rows(row, "errors_by_name");
        let of = |name: &str| {
            let error = errors.iter().find(|error| error["error"] == name);
            error.map_or(0, |error| count(error, "count"))
        };
        let some = ERRORS.map(|(_, name)| of(name));
        let all: u64 = errors.iter().map(|error| count(error, "count")).sum();
        assert_eq!(all, count(row, "errors"), "{row}");
        let by_thread: u64 = rows(row, "by_thread").iter().map(|of| count(of, "returned")).sum();
        assert_eq!(by_thread, count(row, "returned"), "{row}");
        let name = row["call"].as_str().expect("a name").to_owned();
        let here = (count(row, "returned"), all, some, row["bytes"].as_u64());
        numbered.push(here);
        named.insert(name, here);
    }
    let bytes_of = |here: &BTreeMap<String, _>, name: &str, bytes: u64| {
        let of: Option<&(u64, u64, [u64; 6], Option<u64>)> = here.get(name);
        of.and_then(|of| of.3).map(|_| bytes)
    };
    let of = |of: &truth::Values| {
        let some = ERRORS.map(|(number, _)| of.errors.get(&number).copied().unwrap_or(0));
        (of.returned, of.errors.values().sum::<u64>(), some)
    };
    if there.keys().any(|name| is_by_number(name)) {
        let without_bytes = |(returned, errors, some, _): (u64, u64, [u64; 6], Option<u64>)| {
            (returned, errors, some)
        };
        let mut here: Vec<_> = numbered.into_iter().map(without_bytes).collect();
        let mut others: Vec<_> = there.values().map(of).collect();
        here.sort();
        others.sort();
        assert_eq!(here, others);
        // Bytes of read and write, which are calls 0 and 1 of x86-64.
        for (number, name) in [("#0", "read"), ("#1", "write")] {
            let bytes = there.get(number).map_or(0, |of| of.bytes);
            assert_eq!(named.get(name).and_then(|of| of.3).unwrap_or(0), bytes, "{name}");
        }
    } else {
        let bytes = |name: &String, of: &truth::Values| bytes_of(&named, name, of.bytes);
        let full = |(name, values): (&String, &truth::Values)| {
            let (returned, errors, some) = of(values);
            (name.clone(), (returned, errors, some, bytes(name, values)))
        };
        assert_eq!(named, there.iter().map(full).collect());
        assert!(there.is_empty() || named.values().any(|of| of.3.is_some_and(|bytes| bytes > 0)));
    }
    !there.is_empty()
}

/// Compares the bytes of each device by operation; also times in queues and at the device, if all requests
/// can be distinguished.
fn same_requests(stats: &Value, events: &[Event]) -> bool {
    let (there, is_certain) = truth::requests(events);
    let mut here: BTreeMap<(String, bool), truth::Request> = BTreeMap::new();
    for row in rows(stats, "block") {
        let device = row["device"].as_str().expect("a name").to_owned();
        let of = here.entry((device, row["operation"] == "read")).or_default();
        let sum = |name: &str| row[name].as_u64().unwrap_or(0);
        of.bytes += count(&row, "bytes");
        of.queue = (of.queue.0 + sum("queue_count"), of.queue.1 + sum("queue_total_ns"));
        of.service = (of.service.0 + sum("service_count"), of.service.1 + sum("service_total_ns"));
    }
    here.retain(|_, of| of.bytes > 0 || of.service.0 > 0);
    for (key, there) in &there {
        let here = here.get(key).unwrap_or_else(|| panic!("{key:?}: {there:?}"));
        assert_eq!(here.bytes, there.bytes, "{key:?}");
        for (here, there) in [(here.queue, there.queue), (here.service, there.service)] {
            if is_certain {
                assert_eq!(here.0, there.0, "{key:?} {here:?} {there:?}");
                assert!(here.1.abs_diff(there.1) <= 2 * here.0, "{key:?} {here:?} {there:?}");
            }
        }
    }
    assert_eq!(here.len(), there.len(), "{here:?} {there:?}");
    !there.is_empty()
}

impl Kernel<'_> {
    /// Checks every meaning that the trace can have.
    pub fn check(&self, column: &mut Column) {
        let stats = self.place.json(&["stats", self.trace, "--json"]);
        let events = &self.events[..];
        let (torn, torn_cpus) = truth::torn(events);
        column.check("switch", self.judge, || {
            let here: BTreeMap<i64, u64> = rows(&stats, "cpus")
                .iter()
                .map(|row| (row["cpu"].as_i64().expect("a number"), count(row, "switches")))
                .filter(|(_, count)| *count > 0)
                .collect();
            assert_eq!(here, truth::switches(events));
            for row in rows(&stats, "cpus") {
                let is_torn = torn_cpus.contains(&row["cpu"].as_i64().expect("a number"));
                assert_eq!(is_torn, count(&row, "missing_switches") > 0, "{row}");
            }
            !here.is_empty()
        });
        let (states, ended) = truth::states(events, self.is_old);
        column.check("state of a thread that leaves", self.judge, || {
            let mut compared = 0;
            for row in rows(&stats, "thread_states").iter().filter(|row| !torn.contains(&tid(row)))
            {
                for (doing, name) in [
                    (Doing::Running, "running"),
                    (Doing::Runnable, "runnable"),
                    (Doing::Preempted, "preempted"),
                    (Doing::Sleeping, "sleeping"),
                    (Doing::Blocked, "blocked"),
                    (Doing::Stopped, "stopped"),
                ] {
                    let here =
                        (count(row, &format!("{name}_count")), count(row, &format!("{name}_ns")));
                    let there = states.get(&(tid(row), doing)).copied().unwrap_or_default();
                    assert_eq!(here.0, there.0, "{name}: {here:?} {there:?}: {row}");
                    let is_near = here.1.abs_diff(there.1) <= 2 * here.0;
                    assert!(is_near, "{name}: {here:?} {there:?}: {row}");
                    compared += 1;
                }
            }
            let known: BTreeSet<i64> = rows(&stats, "thread_states").iter().map(tid).collect();
            let missing = states.keys().find(|(tid, _)| !known.contains(tid));
            assert!(missing.is_none(), "{missing:?}");
            compared > 0
        });
        column.check("exit", self.judge, || {
            let has_ended = |row: &&Value| row["has_ended"] == true && !torn.contains(&tid(row));
            let here: BTreeSet<i64> =
                rows(&stats, "thread_states").iter().filter(has_ended).map(tid).collect();
            // A thread that only left a CPU has no row.
            let known: BTreeSet<i64> = states.keys().map(|(tid, _)| *tid).collect();
            let there: BTreeSet<i64> =
                ended.difference(&torn).filter(|tid| known.contains(tid)).copied().collect();
            assert_eq!(here, there);
            !there.is_empty()
        });
        self.wakes(column);
        column.check("migration", self.judge, || {
            let there = truth::migrations(events);
            for row in rows(&stats, "threads").iter().filter(|row| !torn.contains(&tid(row))) {
                assert_eq!(there.get(&tid(row)), Some(&count(row, "migrations")), "{row}");
            }
            there.values().any(|count| *count > 0)
        });
        let interrupts = truth::spans(events, truth::interrupt);
        for (meaning, name) in [("interrupt", "irq"), ("soft interrupt", "softirq")] {
            column.check(meaning, self.judge, || {
                let of = interrupts.iter().filter(|(kind, _)| *kind == name);
                same_spans(&stats, &of.map(|(name, times)| (name.clone(), *times)).collect())
            });
        }
        column.check("system call", self.judge, || {
            let mut calls = match truth::has(events, &["exit_syscall"]) {
                true => truth::old_calls(events),
                false => truth::spans(events, truth::named_call),
            };
            calls.extend(truth::numbered_calls(events));
            same_spans(&stats, &calls)
        });
        self.of_kernel(column, &stats, &torn);
        self.view(column, &stats);
        column.check("block request", self.judge, || {
            let (requests, is_ambiguous) = truth::pair(events, truth::block);
            if is_ambiguous {
                // Two requests to one place, like flushes, which have none.
                let [here, there] = [&spans(&stats), &requests].map(|of| of["block"].0);
                assert_eq!(here, there);
                return true;
            }
            same_spans(&stats, &requests)
        });
        column.check("block request", self.judge, || {
            self.same_rows(&stats, "block", "requests", "block_requests", "end_ts");
            same_requests(&stats, events)
        });
        self.who(column);
    }

    /// Checks that the table has as many rows with a value in a column as the statistics count.
    fn same_rows(&self, stats: &Value, list: &str, number: &str, table: &str, column: &str) {
        let all: u64 = rows(stats, list).iter().map(|row| count(row, number)).sum();
        let rows = crate::foreign::table(self.place, self.trace, table);
        let has_value = rows.iter().filter(|row| !row[column].is_empty()).count() as u64;
        assert_eq!(has_value, all, "{table}");
    }

    /// Checks the kernel's work for threads and with devices.
    fn of_kernel(&self, column: &mut Column, stats: &Value, torn: &BTreeSet<i64>) {
        let events = &self.events[..];
        column.check("soft interrupt raised", self.judge, || {
            let there = truth::raised(events);
            if there.is_empty() {
                return false;
            }
            let sum = |sums: Times, times: &Times| (sums.0 + times.0, sums.1 + times.1);
            let all = there.values().fold((0, 0), sum);
            same_spans(stats, &BTreeMap::from([("softirq_raised".to_owned(), all)]))
        });
        column.check("value of a call", self.judge, || {
            let has_any = same_values(stats, events);
            self.same_rows(stats, "calls", "returned", "calls", "end_ts");
            has_any
        });
        column.check("page fault", self.judge, || {
            let mut there = truth::faults(events);
            let row = |row: &Value| (tid(row), (count(row, "user"), count(row, "kernel")));
            let mut here: BTreeMap<i64, (u64, u64)> =
                rows(stats, "page_faults").iter().map(row).collect();
            let sum = |of: &BTreeMap<i64, (u64, u64)>| {
                of.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
            };
            assert_eq!(sum(&here), sum(&there));
            // After a missing switch, the running thread is unknown.
            for of in [&mut here, &mut there] {
                of.retain(|tid, _| !torn.contains(tid));
            }
            assert_eq!(here, there);
            let faults = crate::foreign::table(self.place, self.trace, "page_faults");
            let of_events = |row: &&BTreeMap<String, String>| row["kind"] != "sample";
            let rows = faults.iter().filter(of_events).count() as u64;
            let (user, kernel) = sum(&truth::faults(events));
            assert_eq!(rows, user + kernel);
            !there.is_empty()
        });
        column.check("network packet", self.judge, || {
            let there = truth::packets(events);
            let mut here = BTreeMap::new();
            for row in rows(stats, "network") {
                for step in ["queued", "sent", "refused", "backlogged", "received"] {
                    let device = row["device"].as_str().expect("a name").to_owned();
                    let of = (count(&row, step), count(&row, &format!("{step}_bytes")));
                    here.insert((device, step), of);
                }
            }
            here.retain(|_, of| of.0 > 0);
            assert_eq!(here, there);
            !there.is_empty()
        });
        column.check("priority", self.judge, || {
            let mut there = BTreeMap::new();
            for event in events {
                let Some((from, to)) = truth::switch(event) else { continue };
                for (tid, field) in [(from, "prev_prio"), (to, "next_prio")] {
                    there.extend(event.number(field).map(|priority| (tid, priority)));
                }
            }
            for row in rows(stats, "threads") {
                assert_eq!(row["priority"].as_i64(), there.get(&tid(&row)).copied(), "{row}");
            }
            !there.is_empty()
        });
    }

    /// Checks that the viewer's utilisation is that of the CPUs, with its quality.
    fn view(&self, column: &mut Column, stats: &Value) {
        column.check("switch", self.judge, || {
            let viewer = Viewer::start(self.place, &[self.trace]);
            let mut page = viewer.page();
            let open = page.ask("open", json!({}));
            let end = open["end"].as_u64().expect("a number");
            let asked = json!({ "by": "cpu", "t0": 0, "t1": end, "px": 1 });
            let (result, values) = page.ask_columns("utilisation", asked);
            let lanes = open["lanes"].as_array().expect("lanes");
            for (row, share) in
                result["rows"].as_array().expect("rows").iter().zip(&values["share"])
            {
                let lane = lanes.iter().find(|lane| lane["id"] == row["id"]).expect("a lane");
                let cpus = rows(stats, "cpus");
                let cpu = cpus.iter().find(|cpu| cpu["cpu"] == lane["cpu"]).expect("a processor");
                let busy = count(cpu, "busy_ns") as f64;
                let off = (share * end as f64 - busy).abs();
                assert!(off <= end as f64 * 1e-6 + 1000.0, "{row} {share} {end}: {cpu}");
                let quality = cpu["not_exact"]["busy_ns"].as_str().unwrap_or("exact");
                assert_eq!(row["quality"], quality, "{row}: {cpu}");
            }
            result["rows"].as_array().is_some_and(|rows| !rows.is_empty())
        });
    }

    fn wakes(&self, column: &mut Column) {
        let printed = |event: &Event| {
            let line = match event.name.as_str() {
                "sched_switch" => {
                    let (from, to) = truth::switch(event)?;
                    format!(" prev_pid={from} next_pid={to} ")
                }
                _ => format!(" pid={} ", event.either(&["tid", "pid"]).unwrap_or(-1)),
            };
            let (time, cpu, name) = (event.time, event.cpu, event.name.clone());
            let (tid, is_interrupt) = (event.tid.unwrap_or(-1).max(-1), event.is_interrupt);
            Some(Printed { time, tid, cpu, is_interrupt, name, line })
        };
        let events: Vec<Printed> = self.events.iter().filter_map(printed).collect();
        let counted = wakeups::count(&events);
        for (meaning, name) in [
            ("waking", "sched_waking"),
            ("wakeup", "sched_wakeup"),
            ("new task", "sched_wakeup_new"),
        ] {
            column.check(meaning, self.judge, || {
                if !truth::has(&self.events, &[name]) {
                    return false;
                }
                wakeups::compare(self.place, self.trace, &counted, self.off);
                true
            });
        }
    }

    fn who(&self, column: &mut Column) {
        let threads = crate::foreign::table(self.place, self.trace, "threads");
        let of = |tid: i64| {
            let mut rows = threads.iter().filter(|row| row["tid"] == tid.to_string());
            rows.next().unwrap_or_else(|| panic!("no thread {tid}"))
        };
        column.check("name of a thread", self.judge, || {
            let names = truth::names(&self.events);
            for (tid, name) in &names {
                assert_eq!(&of(*tid)["thread"], name, "{tid}");
            }
            !names.is_empty()
        });
        column.check("fork: process of the child", self.judge, || {
            let children = truth::children(&self.events);
            let mut seen = BTreeSet::new();
            // Thread 0 exists once per CPU; perf prints 4294967295 for a thread that is gone.
            let is_one = |tid: &str| !["0", "4294967295"].contains(&tid);
            let twice = threads.iter().find(|row| !seen.insert(&row["tid"]) && is_one(&row["tid"]));
            assert!(twice.is_none(), "a thread of two processes: {twice:?}");
            for (child, process) in &children {
                assert_eq!(of(*child)["pid"], process.to_string(), "{child}");
            }
            !children.is_empty()
        });
    }
}
