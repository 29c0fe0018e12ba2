// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection by columns gives the same events as selection event by event.

use crate::place;

use std::collections::BTreeMap;
use std::path::Path;

use place::Place;
use serde_json::Value;

/// Counts the events of each name that `lat print` shows.
fn printed(place: &Place, trace: &str, options: &[&str]) -> BTreeMap<String, u64> {
    let mut arguments = vec!["print", trace, "--format", "json"];
    arguments.extend(options);
    let output = place.lat(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {errors}");
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let event: Value = serde_json::from_str(line).expect("a line of JSON");
        *counts.entry(event["name"].as_str().expect("a name").to_owned()).or_default() += 1;
    }
    counts
}

/// Returns the same counts from `lat info` or `lat stats`.
fn counted(place: &Place, command: &str, trace: &str, options: &[&str]) -> BTreeMap<String, u64> {
    let mut arguments = vec![command, trace, "--json"];
    arguments.extend(options);
    let said = place.json(&arguments);
    let mut counts = BTreeMap::new();
    for class in said["events"].as_array().expect("events") {
        let name = class["name"].as_str().expect("a name").to_owned();
        *counts.entry(name).or_default() += class["count"].as_u64().expect("a count");
    }
    let total: u64 = counts.values().sum();
    assert_eq!(said["events_total"].as_u64(), Some(total), "{arguments:?}");
    counts
}

fn compare(place: &Place, trace: &str, options: &[&str]) -> u64 {
    let all = [&["--event", "*"], options].concat();
    let expected = printed(place, trace, &all);
    assert_eq!(counted(place, "info", trace, &all), expected, "info {trace} {options:?}");
    assert_eq!(counted(place, "stats", trace, &all), expected, "stats {trace} {options:?}");
    expected.values().sum()
}

/// Selections that match some events of any trace.
const ANY: [&[&str]; 8] = [
    &["--where", "$cpu == 0 || !$cpu"],
    &["--where", "$time > 0 && !($event == nothing)"],
    &["--where", "$tid > 100 || $stream =~ '*1' || $process =~ 'l*'"],
    &["--filter", "event.name.includes('s') && event.cpu !== 1"],
    &["--filter", "event.fields.none === undefined"],
    &["--filter", "filter(event => /s/.test(event.name))"],
    &["--from", "0.01s", "--until", "0.2s"],
    &["--from", "0.001s", "--where", "$cpu != 1", "--filter", "event.time > 0n"],
];

#[test]
fn real_traces_are_counted_as_they_are_printed() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/ctf1");
    let kernel: [&[&str]; 6] = [
        &["--where", "next_comm == 'swapper/0' || ret < 0"],
        &["--where", "prev_comm =~ 'lttng*' && next_prio == 20"],
        &["--where", "prev_tid > 0 && prev_state > 0"],
        &["--where", "$event =~ 'sched_*' && (prev_comm !~ '*swap*' || $cpu == 1)"],
        &["--filter", "event.fields.next_prio - event.fields.prev_prio >= 1"],
        &["--filter", "event.fields.next_comm?.startsWith('swap') || event.fields.ret === -2"],
    ];
    let of = |name: &str, own: &'static [&'static [&'static str]]| (traces.join(name), own);
    let list = [
        (traces.join("lttng-ref/basic-kernel-analysis/kernel"), &kernel[..]),
        of("lttng-ref/picotrace", &[]),
        of("tracecompass-EPL2/double_counters", &[]),
        of("tracecompass-EPL2/funky_trace", &[]),
    ];
    for (path, own) in list {
        if !path.exists() {
            println!("SKIPPED: {} is not there", path.display());
            continue;
        }
        let (place, trace) = (Place::new(), path.display().to_string());
        let chosen: Vec<u64> =
            ANY.iter().chain(own).map(|options| compare(&place, &trace, options)).collect();
        assert!(chosen.iter().sum::<u64>() > 0, "{trace}: {chosen:?}");
        assert!(own.is_empty() || chosen[ANY.len()..].iter().all(|n| *n > 0), "{chosen:?}");
    }
}

#[test]
fn a_recording_is_counted_as_it_is_printed() {
    let place = Place::new();
    let output = place.lat(&["demo", "-o", "demo", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let own: [&[&str]; 4] = [
        &["--thread", "worker-*"],
        &["--where", "id >= 100 && id < 200 && $subsystem == client"],
        &["--filter", "event.fields.id % 2 === 1 || event.thread === undefined"],
        &["--event", "client:*", "--cpu", "0"],
    ];
    for options in ANY.iter().chain(&own) {
        compare(&place, "demo", options);
    }
    // Threads of the selected events.
    let json = place.json(&["info", "demo", "--json", "--event", "client:*"]);
    let threads = json["processes"].as_array().expect("processes").iter();
    let threads = threads.flat_map(|process| process["threads"].as_array().expect("threads"));
    let written: u64 = threads.filter_map(|thread| thread["events"].as_u64()).sum();
    assert_eq!(Some(written), json["events_total"].as_u64());
    assert!(written > 0);
}

#[test]
fn kernel_events_of_lttng_have_the_subsystems_of_ftrace() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis/kernel");
    if !path.exists() {
        println!("SKIPPED: {} is not there", path.display());
        return;
    }
    let (place, trace) = (Place::new(), path.display().to_string());
    let all = printed(&place, &trace, &[]);
    for (subsystem, prefixes) in [
        ("sched", &["sched_"][..]),
        ("irq", &["irq_", "softirq_"]),
        ("syscalls", &["syscall_entry_", "syscall_exit_", "compat_syscall_"]),
    ] {
        let is_it = |name: &String| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let expected: BTreeMap<String, u64> = all
            .iter()
            .filter(|(name, _)| is_it(name))
            .map(|(name, n)| (name.clone(), *n))
            .collect();
        assert!(!expected.is_empty());
        let script = format!("event.subsystem === '{subsystem}'");
        for options in [["--subsystem", subsystem], ["--filter", &script]] {
            assert_eq!(printed(&place, &trace, &options), expected, "{options:?}");
            assert_eq!(counted(&place, "stats", &trace, &options), expected, "{options:?}");
        }
    }
}
