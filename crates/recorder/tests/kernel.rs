// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the running kernel: needs root and tracefs.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lateralis_recorder::RecordOptions;
use lateralis_recorder::linux::kernel::{
    KernelBy, KernelError, KernelOptions, KernelSource, open, tracefs,
};
use lateralis_recorder::linux::{Session, Summary};

/// One test at a time, because each checks the kernel for leftovers.
static TURN: Mutex<()> = Mutex::new(());

/// Path of tracefs; `None`, with a message, without privileges.
fn usable() -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match tracefs() {
        Ok(place) => Some((place, turn)),
        Err(reason) => {
            println!("SKIPPED: {reason}");
            None
        }
    }
}

fn options(events: &[&str], whole_machine: bool) -> KernelOptions {
    KernelOptions {
        probes: Vec::new(),
        events: events.iter().map(ToString::to_string).collect(),
        whole_machine,
        buffer_bytes: 4 << 20,
        tracefs: None,
        by: KernelBy::Tracefs,
        relate_clocks: false,
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("lateralis-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        Place(root)
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn record(place: &Place, kernel: &KernelOptions, command: &[&str]) -> Summary {
    let mut options = RecordOptions::new(place.out());
    options.area_dir = Some(place.0.join("areas"));
    let mut session = Session::new(options).unwrap();
    session.add_source(open(kernel).unwrap()).unwrap();
    let command: Vec<_> = command.iter().map(Into::into).collect();
    session.launch(&command, &[]).unwrap();
    session.run(&mut |_| {}).unwrap()
}

fn instances(tracefs: &Path) -> Vec<String> {
    let own = format!("lateralis-{}", std::process::id());
    let entries = std::fs::read_dir(tracefs.join("instances")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&own)).collect()
}

/// A workload of known system calls: `times` times 512 bytes.
fn copy(times: u32) -> Vec<String> {
    let count = format!("count={times}");
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", &count, "status=none"]
        .map(String::from)
        .to_vec()
}

#[test]
fn system_calls_of_a_program_are_all_there() {
    let Some((tracefs, _turn)) = usable() else { return };
    let place = Place::new("kernel-calls");
    let workload = copy(1000);
    let words: Vec<&str> = workload.iter().map(String::as_str).collect();
    let summary = record(&place, &options(&["syscalls", "sched"], false), &words);
    let report = summary.report;
    assert_eq!(summary.exit_status, Some(0));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!(report.totals.lost.total, 0);
    // Other calls of dd are a small constant number.
    for name in ["syscalls:sys_enter_write", "syscalls:sys_exit_write"] {
        let count = report.events[name];
        assert!((1000..1010).contains(&count), "{name}: {count}");
    }
    assert!(report.events["sched:sched_process_exit"] >= 1);
    let [source] = &report.sources[..] else { panic!("{:?}", report.sources) };
    assert_eq!(source.details["scope"], "recorded programs");
    assert_eq!(source.details["threads_of_unknown_process"], "0");
    assert_eq!(source.details["events_read"], report.totals.events.to_string());
    assert_eq!(instances(&tracefs), [""; 0]);
}

#[test]
fn a_forced_overrun_is_counted_exactly() {
    let Some((_, _turn)) = usable() else { return };
    let place = Place::new("kernel-overrun");
    let small = KernelOptions { buffer_bytes: 8192, ..options(&["syscalls"], false) };
    let workload = copy(300_000);
    let words: Vec<&str> = workload.iter().map(String::as_str).collect();
    let report = record(&place, &small, &words).report;
    let lost = report.totals.lost;
    assert!(lost.full > 0, "{lost:?}");
    let source = &report.sources[0];
    assert_eq!(source.lost.values().sum::<u64>(), lost.total);
    // Two of each call, and the few hundred of a program's start and end.
    let all = report.totals.events + lost.total;
    assert!((1_200_000..1_201_000).contains(&all), "{all}");
    let intervals = report.streams.iter().flat_map(|stream| &stream.intervals);
    assert_eq!(intervals.map(|interval| interval.lost.total).sum::<u64>(), lost.total);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn the_whole_machine_is_recorded_with_related_clocks_too() {
    let Some((tracefs, _turn)) = usable() else { return };
    for relate_clocks in [false, true] {
        let place = Place::new("kernel-clocks");
        let kernel = KernelOptions { relate_clocks, ..options(&["sched"], true) };
        let report = record(&place, &kernel, &["sleep", "0.3"]).report;
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert!(report.events["sched:sched_switch"] > 0);
        let source = &report.sources[0];
        assert_eq!(source.details["scope"], "machine");
        if relate_clocks {
            assert_eq!(source.details["trace_clock"], "mono");
        }
        for stream in &report.streams {
            assert_eq!((stream.damaged_packets, stream.backward_steps), (0, 0));
        }
        assert_eq!(instances(&tracefs), [""; 0]);
    }
}

#[test]
fn what_a_killed_recorder_left_is_removed_and_mistakes_are_told_first() {
    let Some((tracefs, _turn)) = usable() else { return };
    let mut dead = Command::new("true").spawn().unwrap();
    let left = tracefs.join(format!("instances/lateralis-{}", dead.id()));
    dead.wait().unwrap();
    std::fs::create_dir(&left).unwrap();
    let mistake = KernelSource::open(&options(&["sched:sched_swich"], true));
    assert!(
        matches!(mistake, Err(KernelError::Choice(error)) if error.near[0] == "sched:sched_switch")
    );
    drop(KernelSource::open(&options(&["sched"], true)).unwrap());
    assert!(!left.exists());
    assert_eq!(instances(&tracefs), [""; 0]);
}

#[test]
fn without_tracefs_it_says_what_to_do() {
    let place = Place::new("kernel-missing");
    let kernel = KernelOptions { tracefs: Some(place.0.clone()), ..options(&["sched"], true) };
    match KernelSource::open(&kernel) {
        Err(KernelError::Unavailable(sentence)) => assert!(sentence.contains("mount -t tracefs")),
        other => panic!("{other:?}"),
    }
}

/// The options for perf, if it is permitted.
fn by_perf(kernel: KernelOptions) -> Option<KernelOptions> {
    let kernel = KernelOptions { by: KernelBy::Perf, ..kernel };
    match open(&kernel) {
        Ok(_) => Some(kernel),
        Err(reason) => {
            println!("SKIPPED: {reason}");
            None
        }
    }
}

#[test]
fn perf_gives_what_an_instance_gives() {
    let Some((tracefs, _turn)) = usable() else { return };
    let workload = copy(1000);
    let words: Vec<&str> = workload.iter().map(String::as_str).collect();
    let asked = options(&["syscalls", "sched:sched_process_*"], false);
    let Some(perf) = by_perf(asked.clone()) else { return };
    let [instance, perf] = [("instance", asked), ("perf", perf)].map(|(name, kernel)| {
        let place = Place::new(&format!("kernel-by-{name}"));
        let report = record(&place, &kernel, &words).report;
        assert!(report.problems.is_empty(), "{name}: {:?}", report.problems);
        assert_eq!(report.totals.lost.total, 0, "{name}");
        for stream in &report.streams {
            assert_eq!((stream.damaged_packets, stream.backward_steps), (0, 0), "{name}");
        }
        report
    });
    // For a single program both are the same from its start on: its calls by name. Before that, one of them
    // selects the process by a call that the other does not see, and the other sees earlier calls.
    let calls = |report: &lateralis_recorder::Report| {
        let before = ["write", "execve", "rt_sig", "close", "prlimit", "clone", "vfork", "set_"];
        let mut all = report.events.clone();
        all.retain(|name, _| {
            name.starts_with("syscalls:") && !before.iter().any(|word| name.contains(word))
        });
        all
    };
    assert_eq!(calls(&instance), calls(&perf));
    assert!(calls(&perf)["syscalls:sys_enter_read"] >= 1000);
    for (of, most) in [("syscalls:sys_enter_write", 1010), ("syscalls:sys_exit_write", 1010)] {
        for report in [&instance, &perf] {
            assert!((1000..most).contains(&report.events[of]), "{of}: {}", report.events[of]);
        }
    }
    for report in [&instance, &perf] {
        assert_eq!(report.events["sched:sched_process_exec"], 1);
        assert_eq!(report.events["sched:sched_process_exit"], 1);
    }
    let [source] = &perf.sources[..] else { panic!("{:?}", perf.sources) };
    assert_eq!(source.details["by"], "perf");
    assert_eq!(source.details["scope"], "recorded programs");
    assert_eq!(source.details["events_unreadable"], "0");
    assert_eq!(instances(&tracefs), [""; 0]);
}

#[test]
fn what_finds_no_room_in_perf_s_buffers_is_counted_exactly() {
    let Some((_, _turn)) = usable() else { return };
    let small = KernelOptions { buffer_bytes: 8192, ..options(&["raw_syscalls:*"], true) };
    let Some(small) = by_perf(small) else { return };
    let place = Place::new("kernel-perf-overrun");
    let workload = copy(300_000);
    let words: Vec<&str> = workload.iter().map(String::as_str).collect();
    let report = record(&place, &small, &words).report;
    let lost = report.totals.lost;
    assert!(lost.full > 0, "{lost:?}");
    let source = &report.sources[0];
    assert_eq!(source.lost["no room"], lost.total);
    // The kernel's own counts are not larger, otherwise there would be a problem.
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    // Two calls and their ends for each piece; also all other activity of the machine.
    assert!(report.totals.events + lost.total > 1_200_000, "{} {lost:?}", report.totals.events);
    let intervals = report.streams.iter().flat_map(|stream| &stream.intervals);
    assert_eq!(intervals.map(|interval| interval.lost.total).sum::<u64>(), lost.total);
}

#[test]
fn where_no_instance_can_be_made_perf_is_asked_and_its_clock_is_bounded() {
    let Some((tracefs, _turn)) = usable() else { return };
    if by_perf(options(&["sched"], true)).is_none() {
        return;
    }
    // A tracefs in which no instance can be created.
    let place = Place::new("kernel-no-instances");
    for name in ["available_events", "events"] {
        std::os::unix::fs::symlink(tracefs.join(name), place.0.join(name)).unwrap();
    }
    let kernel = KernelOptions {
        tracefs: Some(place.0.clone()),
        by: KernelBy::Either,
        ..options(&["sched"], true)
    };
    assert!(matches!(KernelSource::open(&kernel), Err(KernelError::Unavailable(_))));
    let report = record(&place, &kernel, &["sleep", "0.5"]).report;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.events["sched:sched_switch"] > 0);
    let source = &report.sources[0];
    assert_eq!(
        (source.details["by"].as_str(), source.details["scope"].as_str()),
        ("perf", "machine")
    );
    // Two readings of clocks of constant rate; if the process is preempted between
    // them, the error bound is larger.
    let error_ns: u64 = source.details["trace_clock_error_ns"].parse().unwrap();
    assert!((1..100_000_000).contains(&error_ns), "{error_ns}");
    println!("clock of perf: off by {error_ns} ns at most");
}

#[test]
fn a_mistake_is_told_by_perf_too() {
    let Some((_, _turn)) = usable() else { return };
    let Some(_) = by_perf(options(&["sched"], true)) else { return };
    let kernel = KernelOptions { by: KernelBy::Perf, ..options(&["sched:sched_swich"], true) };
    let Err(KernelError::Choice(error)) = open(&kernel) else { panic!("it is a mistake") };
    assert_eq!(error.near[0], "sched:sched_switch");
}
