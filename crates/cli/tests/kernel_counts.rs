// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Number of kernel events of `lat record --system`, compared with the counts of perf and trace-cmd for the
//! same interval: they are equal. Needs root.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::kernel::{babeltrace, number, switches, usable};
use crate::place::Place;

/// A program that makes many system calls and sleeps in between.
const WORKLOAD: &str = "n=0; while [ $n -lt 30 ]; do n=$((n + 1)); sleep 0.005; done; \
                        exec dd if=/dev/zero of=/dev/null bs=512 count=1000 status=none";
const EVENTS: &str = "sched:sched_switch,raw_syscalls:sys_enter";

/// Records the whole machine while `command` counts; returns the kernel events in order.
fn record(place: &Place, command: &[&str]) -> Vec<Value> {
    let kernel = "sched:sched_switch,raw_syscalls:sys_enter,raw_syscalls:sys_exit";
    let words = ["record", "--system", "--kernel", kernel, "--buffer", "16M", "-o", "out"];
    let output = place.lat(&[&words[..], &["--quiet", "--"], command].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    assert_eq!(report["totals"]["lost"]["total"], 0);
    let lines = place.lat(&["print", "out", "--format", "json"]);
    let text = String::from_utf8_lossy(&lines.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Parses the counts of `perf stat -x,`: CPU, event, count.
fn counted(place: &Place) -> Vec<(String, String, u64)> {
    let text = fs::read_to_string(place.0.join("perf.csv")).expect("counts of perf");
    let lines = text.lines().filter(|line| line.contains(':') && !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let at = fields.iter().position(|field| field.contains(':')).expect("an event");
            let count = fields[at - 2].parse().unwrap_or_else(|_| panic!("{line}"));
            (fields[0].to_owned(), fields[at].to_owned(), count)
        })
        .collect()
}

#[test]
fn a_process_has_as_many_calls_and_switches_as_perf_counts() {
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    let script = format!("echo $$ >pid; {WORKLOAD}");
    let perf = ["perf", "stat", "-x,", "-o", "perf.csv", "--no-inherit", "-e", EVENTS, "--"];
    let events = record(&place, &[&perf[..], &["/bin/sh", "-c", &script]].concat());
    let pid = number(&fs::read_to_string(place.0.join("pid")).expect("a number"), "");
    let own = events.iter().filter(|event| event["tid"].as_i64() == pid);
    // perf counts from a time inside the call that executes the program until a time inside the call that
    // ends it. Neither contains another call.
    let (execve, exit_group) = (59, 231);
    let own: Vec<&Value> = own.collect();
    let place_of = |name: &str, id: u64| {
        let is_it = |event: &&Value| event["name"] == name && event["fields"]["id"] == id;
        own.iter().position(is_it).expect("the call")
    };
    let begin = place_of("raw_syscalls:sys_enter", execve);
    let begun = place_of("raw_syscalls:sys_exit", execve);
    let end = place_of("raw_syscalls:sys_enter", exit_group);
    let count = |events: &[&Value], name: &str| {
        events.iter().filter(|event| event["name"] == name).count() as u64
    };
    for (_, event, theirs) in counted(&place) {
        let least = count(&own[begun + 1..=end], &event);
        // The last switch, away from the dead process, happens after perf has detached.
        let most = count(&own[begin + 1..own.len() - 1], &event);
        println!("{event}: perf {theirs}, ours {least} to {most}");
        assert!((least..=most).contains(&theirs), "{event}: {theirs}, ours {least} to {most}");
        assert!(event == "sched:sched_switch" || least == most, "{event}: {least} to {most}");
        assert!(theirs > 20, "{event}: {theirs}");
    }
}

/// Returns when perf switches its counters on a CPU on or off: the times at which the call begins and ends.
fn switched(events: &[Value], cpu: u64, request: u64) -> Vec<(u64, u64)> {
    let time = |event: &Value| event["time_ns"].as_u64().expect("a time");
    let ioctl = 16;
    let is_it = |event: &Value| {
        event["cpu"] == cpu
            && event["name"] == "raw_syscalls:sys_enter"
            && event["fields"]["id"] == ioctl
            && event["fields"]["args"][1] == request
    };
    let mut all = Vec::new();
    for (index, event) in events.iter().enumerate().filter(|(_, event)| is_it(event)) {
        let is_end = |later: &&Value| {
            later["name"] == "raw_syscalls:sys_exit" && later["tid"] == event["tid"]
        };
        let end = events[index..].iter().find(is_end).expect("the call ends");
        all.push((time(event), time(end)));
    }
    all
}

#[test]
fn each_cpu_has_as_many_calls_and_switches_as_perf_counts() {
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    let perf = ["perf", "stat", "-x,", "-o", "perf.csv", "-a", "-A", "-e", EVENTS, "--"];
    let events = record(&place, &[&perf[..], &["/bin/sh", "-c", WORKLOAD]].concat());
    let counts = counted(&place);
    assert!(counts.len() >= 2, "{counts:?}");
    let (enable, disable) = (0x2400, 0x2401);
    let mut by_cpu: BTreeMap<u64, usize> = BTreeMap::new();
    for (cpu, event, theirs) in counts {
        let cpu = number(&cpu, "CPU").and_then(|n| u64::try_from(n).ok()).expect("a CPU");
        // perf switches its counters on each CPU in turn, in the order of its events.
        let place_in_list = by_cpu.entry(cpu).or_default();
        let of = |request| switched(&events, cpu, request)[*place_in_list];
        let (on, off) = (of(enable), of(disable));
        *place_in_list += 1;
        let between = |from: u64, to: u64| {
            let is_in = |e: &&Value| {
                let time = e["time_ns"].as_u64().expect("a time");
                e["cpu"] == cpu && e["name"] == event.as_str() && from < time && time <= to
            };
            events.iter().filter(is_in).count() as u64
        };
        // The numbers are equal if perf was not preempted inside these calls.
        let (least, most) = (between(on.1, off.0), between(on.0, off.1));
        println!("cpu {cpu}: {event}: perf {theirs}, ours {least} to {most}");
        assert!((least..=most).contains(&theirs), "cpu {cpu}: {event}: {theirs}");
        assert!(most - least <= 20, "cpu {cpu}: {event}: {least} to {most}");
    }
}

/// If the function tracer must not be used, trace-cmd records nothing and does not remove its instance.
fn trace_cmd_works(place: &Place, instance: &str) -> Result<(), String> {
    let mut command = Command::new("trace-cmd");
    command.args(["record", "-q", "-B", instance, "-e", "sched:sched_switch", "-o", "try.dat"]);
    let output = command.arg("true").current_dir(&place.0).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    if let Ok(tracefs) = lateralis_recorder::linux::kernel::tracefs() {
        let _ = fs::remove_dir(tracefs.join("instances").join(instance));
    }
    Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned())
}

#[test]
fn every_switch_that_trace_cmd_records_is_there_and_in_its_order() {
    if !usable(&["babeltrace2"]) {
        return;
    }
    if Command::new("trace-cmd").output().is_err() {
        println!("SKIPPED: no trace-cmd here");
        return;
    }
    let place = Place::new();
    let instance = format!("lateralis-test-{}", std::process::id());
    if let Err(reason) = trace_cmd_works(&place, &instance) {
        return println!("SKIPPED: trace-cmd cannot record here: {reason}");
    }
    let peer = ["trace-cmd", "record", "-q", "-B", &instance, "-e", "sched:sched_switch"];
    let workload = ["-o", "peer.dat", "/bin/sh", "-c", WORKLOAD];
    let _ = record(&place, &[&peer[..], &workload].concat());
    let mut reader = Command::new("trace-cmd");
    reader.args(["report", "-N", "-i", "peer.dat"]).current_dir(&place.0);
    let said = reader.output().expect("trace-cmd is there");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let in_brackets = |line: &str| number(&line[line.find('[')?..], "[");
    let theirs = switches(said.lines(), in_brackets, ("prev_pid=", "next_pid="));
    let text = babeltrace(&place.0.join("out/ctf"));
    let lines = text.lines().filter(|line| line.contains(" sched:sched_switch:"));
    let ours = switches(lines, |line| number(line, "cpu_id = "), ("prev_pid = ", "next_pid = "));
    assert!(!theirs.is_empty(), "{said}");
    for (cpu, list) in &theirs {
        let is_there = ours[cpu].windows(list.len()).any(|window| window == list);
        assert!(is_there, "cpu {cpu}: {} of trace-cmd, {} of ours", list.len(), ours[cpu].len());
    }
}
