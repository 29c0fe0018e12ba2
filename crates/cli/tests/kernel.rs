// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --kernel`, compared with independent programs: perf records the same events, babeltrace2 reads
//! the recording. Needs root.

use crate::place::Place;

use lateralis_recorder::linux::kernel::tracefs;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Option that copies marks of programs into all instances.
const COPY_MARKS: &str = "options/copy_trace_marker";

/// Whether kernel events can be recorded here, and the programs are installed.
pub fn usable(programs: &[&str]) -> bool {
    if let Err(reason) = tracefs() {
        println!("SKIPPED: {reason}");
        return false;
    }
    let missing = programs.iter().find(|program| {
        let found = Command::new(program).arg("--version").output();
        !found.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        println!("SKIPPED: no {program} here");
    }
    missing.is_none()
}

/// Returns the output of babeltrace2, which must not print a warning.
pub fn babeltrace(trace: &Path) -> String {
    let output = Command::new("babeltrace2").arg(trace).output().expect("babeltrace2 is there");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the number after `key` in a line.
pub fn number(line: &str, key: &str) -> Option<i64> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

pub type Switches = BTreeMap<i64, Vec<(i64, i64)>>;

/// Returns the switches of each CPU as pairs of threads. `cpu` parses the CPU, and the strings precede the
/// two thread ids.
pub fn switches<'a>(
    lines: impl Iterator<Item = &'a str>,
    cpu: impl Fn(&str) -> Option<i64>,
    (prev, next): (&str, &str),
) -> Switches {
    let mut found = Switches::new();
    for line in lines {
        let all = (cpu(line), number(line, prev), number(line, next));
        if let (Some(cpu), Some(prev), Some(next)) = all {
            found.entry(cpu).or_default().push((prev, next));
        }
    }
    found
}

#[test]
fn every_switch_that_perf_records_is_there_and_in_its_order() {
    if !usable(&["perf", "babeltrace2"]) {
        return;
    }
    let place = Place::new();
    let perf = ["perf", "record", "-q", "-a", "-m", "1024", "-e", "sched:sched_switch", "-o", "p"];
    let workload = ["sh", "-c", "for n in 1 2 3 4 5 6 7 8 9; do sleep 0.02; done"];
    let words = ["record", "--system", "--kernel", "sched", "-o", "out", "--quiet", "--"];
    let output = place.lat(&[&words[..], &perf, &["--"], &workload].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    assert_eq!(report["totals"]["lost"]["total"], 0);
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    let script = Command::new("perf")
        .args(["script", "-i", "p", "-F", "cpu,event,trace"])
        .current_dir(&place.0)
        .output()
        .expect("perf is there");
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    let in_brackets = |line: &str| number(&line[line.find('[')?..], "[");
    let theirs = switches(script.lines(), in_brackets, ("prev_pid=", "next_pid="));
    let text = babeltrace(&place.0.join("out/ctf"));
    let lines = text.lines().filter(|line| line.contains(" sched:sched_switch:"));
    let ours = switches(lines, |line| number(line, "cpu_id = "), ("prev_pid = ", "next_pid = "));
    let count: usize = ours.values().map(Vec::len).sum();
    assert_eq!(report["events"]["sched:sched_switch"], count as u64);
    assert!(!theirs.is_empty(), "{script}");
    for (cpu, list) in &theirs {
        // perf started later and ended earlier; between, the events are identical.
        let is_there = ours[cpu].windows(list.len()).any(|window| window == list);
        assert!(is_there, "cpu {cpu}: {} of perf, {} of ours", list.len(), ours[cpu].len());
    }
}

#[test]
fn system_calls_stand_inside_the_program_s_own_events() {
    if !usable(&["babeltrace2"]) {
        return;
    }
    let place = Place::new();
    let workload = ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=100", "status=none"];
    let kernel = "syscalls:sys_enter_write,syscalls:sys_exit_write";
    let words = ["record", "--with", "io", "--kernel", kernel, "-o", "out", "--quiet", "--"];
    let output = place.lat(&[&words[..], &workload].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = babeltrace(&place.0.join("out/ctf"));
    let names =
        ["io:WRITE:", "syscalls:sys_enter_write:", "syscalls:sys_exit_write:", "io:WRITE_DONE:"];
    let kind = |line: &str| names.iter().position(|name| line.contains(&format!(" {name} ")));
    let order: Vec<usize> = text.lines().filter_map(kind).collect();
    let rounds = order.windows(4).filter(|window| *window == [0, 1, 2, 3]).count();
    assert_eq!(rounds, 100, "{order:?}");
    // System calls are spans without a declaration.
    let stats = place.lat(&["stats", "out"]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(stats.contains("syscall write") && stats.contains("io_write"), "{stats}");
}

#[test]
fn a_daemon_is_followed_by_events_of_the_kernel_alone() {
    if !usable(&["babeltrace2"]) {
        return;
    }
    let place = Place::new();
    // The process writes after the command has ended.
    let command = "first=$$; (setsid sh -c \"while kill -0 $first 2>/dev/null; do sleep 0.05; done; \
        exec dd if=/dev/zero of=/dev/null bs=1 count=2000 status=none\" >/dev/null 2>&1 &); exit 3";
    let kernel = "syscalls:sys_enter_write";
    let words =
        ["record", "--kernel", kernel, "--follow", "-o", "out", "--quiet", "--", "sh", "-c"];
    let output = place.lat(&[&words[..], &[command]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    assert_eq!(report["totals"]["lost"]["total"], 0, "{report:#}");
    let text = babeltrace(&place.0.join("out/ctf"));
    let is_of_dd = |line: &&str| {
        line.contains("sys_enter_write") && line.contains("fd = 1,") && line.contains("count = 1 ")
    };
    assert_eq!(text.lines().filter(is_of_dd).count(), 2000);
}

#[test]
fn marks_of_a_recorded_program_are_spans_and_those_of_others_are_not_there() {
    if !usable(&["babeltrace2"]) {
        return;
    }
    let Some(tracefs) = tracefs().ok().filter(|path| path.join(COPY_MARKS).exists()) else {
        println!("SKIPPED: this kernel copies no marks");
        return;
    };
    let marker = tracefs.join("trace_marker");
    let others =
        format!("while :; do echo \"B|$$|foreign\" > {}; sleep 0.01; done", marker.display());
    let mut others = Command::new("sh").args(["-c", &others]).spawn().expect("sh is there");
    let place = Place::new();
    // Marks by a child of the recorded process count, too.
    let script = "mark() { echo \"$1\" > $0; sleep 0.005; }; mark \"B|$$|outer\"; mark \"C|$$|queue|3\"; \
        (mark \"S|$$|load|7\"; mark \"F|$$|load|7\"); mark \"B|$$|inner\"; mark \"E|$$\"; mark \"E|$$\"";
    let marker = marker.display().to_string();
    let words = ["record", "--kernel", "sched:sched_switch", "-o", "out", "--quiet", "--"];
    let output = place.lat(&[&words[..], &["sh", "-c", script, &marker]].concat());
    let _ = others.kill();
    let _ = others.wait();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    assert_eq!(report["events"]["ftrace:print"], 7, "{report:#}");
    let text = babeltrace(&place.0.join("out/ctf"));
    let marks: Vec<&str> = text.lines().filter(|line| line.contains(" ftrace:print:")).collect();
    let is_foreign = |mark: &&str| mark.contains("foreign");
    assert!(marks.len() == 7 && !marks.iter().any(is_foreign), "{marks:?}");
    let mut spans: Vec<(String, u64)> = crate::foreign::table(&place, "out", "spans")
        .into_iter()
        .map(|row| (row["span"].clone(), row["duration"].parse::<u64>().unwrap_or(0) / 5_000_000))
        .filter(|(name, _)| ["outer", "load", "inner"].contains(&name.as_str()))
        .collect();
    spans.sort();
    // Each sleep lasts at least 5 ms.
    let names: Vec<&str> = spans.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["inner", "load", "outer"]);
    assert!(spans[0].1 >= 1 && spans[1].1 >= 1 && spans[2].1 >= 6, "{spans:?}");
}

#[test]
fn threads_of_a_program_are_one_application() {
    if !usable(&["python3"]) {
        return;
    }
    let place = Place::new();
    // On one CPU, so that threads follow each other: some kernels in virtual machines omit the switch from an
    // idle thread, and then the begin of a thread's run is unknown.
    let program = "import os, threading, time
print(os.getpid())
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
work = lambda: [time.sleep(0.001) for _ in range(9)]
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]";
    // Without kernel events of new threads, but with those of the program.
    let words = ["record", "--with", "mutex,thread", "--kernel", "sched:sched_switch"];
    let words = [&words[..], &["-o", "out", "--quiet", "--", "python3", "-c", program]].concat();
    let output = place.lat(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stats = place.json(&["stats", "out", "--json"]);
    let rows = |name: &str| stats[name].as_array().expect("rows").clone();
    let pid: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    let threads: Vec<_> = rows("threads").into_iter().filter(|row| row["pid"] == pid).collect();
    assert_eq!(threads.len(), 4, "{stats:#}");
    let sum: u64 = threads.iter().filter_map(|row| row["running_ns"].as_u64()).sum();
    let application = rows("applications").into_iter().find(|row| row["pid"] == pid);
    let application = application.expect("it");
    assert_eq!(application["threads"], 4);
    assert_eq!(application["running_ns"], sum);
}

#[test]
fn what_the_recorder_does_itself_keeps_it_busy_only_for_a_moment() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    // The recorder's own reads are recorded, and cause further reads.
    let recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--system", "--kernel", "syscalls:sys_enter_read", "--quiet", "-o", "out"])
        .args(["--duration", "1s"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .spawn();
    let mut recorder = recorder.expect("lat can be started");
    let pid = recorder.id();
    assert!(recorder.wait().expect("it ends").success());
    let event = "syscalls:sys_enter_read";
    let output = place.lat(&["print", "out", "--event", event, "--where", "count == 4096"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reads = text.lines().filter(|line| line.contains(&format!(" {pid}/{pid} "))).count();
    // Ten drains read at least one page of each CPU, and other programs read little. Reading until no event
    // is left made 30,000 reads.
    assert!(reads > 5, "{text}");
    assert!(reads < 5000, "{reads} reads");
}

#[test]
fn unknown_events_are_refused_before_anything_starts() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    let output = place.lat(&["record", "--kernel", "sced", "-o", "out", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("did you mean sched"), "{said}");
    assert!(!place.0.join("out").exists());
}
