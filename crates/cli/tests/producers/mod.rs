// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Producers and meanings: the interpretation of each producer's events, compared with another program's
//! interpretation of the same trace. `docs/reference/producers.md` has the table; `UPDATE_EXPECT=1` writes
//! it.

pub mod hosts;
mod kernel;
mod others;
mod printed;
mod table;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::foreign::TraceProcessor;
use crate::kernel::usable;
use crate::place::Place;
use kernel::Kernel;
use table::Column;

/// Path of a trace recorded by others; prints a message and returns `None` if it is missing.
fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if !path.exists() {
        println!("SKIPPED: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Returns the command line for perf to record the switches of the whole machine while a command runs.
fn beside_perf<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let perf = ["perf", "record", "-q", "-a", "-m", "2048", "-o", "switches.data"];
    [&perf[..], &["-e", "sched:sched_switch", "--"], command].concat()
}

/// Returns how often each thread was scheduled, and its running time in milliseconds, from `perf sched
/// timehist`.
fn timehist(place: &Place, file: &str) -> BTreeMap<i64, (u64, f64)> {
    let mut perf = Command::new("perf");
    let output = perf.args(["sched", "timehist", "-s", "-i", file]).current_dir(&place.0).output();
    let text = output.expect("perf").stdout;
    // COMM[TID]  PARENT  COUNT  MILLISECONDS …; COMM[TID/PID] of threads.
    let row = |line: &str| {
        let (name, rest) = line.rsplit_once(']')?;
        let tid = name.rsplit('[').next()?.split('/').next()?.parse().ok()?;
        let mut words = rest.split_whitespace().skip(1);
        Some((tid, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
    };
    String::from_utf8_lossy(&text).lines().filter_map(row).collect()
}

/// Running time is within 1 % or 1 ms of that recorded by perf at the same time, for threads that were
/// scheduled equally often in both. A lower bound does not exceed it.
fn same_times(place: &Place, trace: &str, file: &str) -> bool {
    let there = timehist(place, file);
    let stats = place.json(&["stats", trace, "--section", "threads", "--json"]);
    // perf assigns the last run of a thread that has exited to no thread.
    let of_nobody = there.get(&-1).map_or(0.0, |of| of.1);
    let mut compared = 0;
    for row in stats["threads"].as_array().expect("rows") {
        let Some((times, ran)) = row["tid"].as_i64().and_then(|tid| there.get(&tid).copied())
        else {
            continue;
        };
        let running = row["running_ns"].as_u64().expect("a number") as f64 / 1e6;
        if row["schedules"] != times {
            continue;
        }
        let near = (ran * 0.01).max(1.0);
        assert!(running <= ran + of_nobody + near, "{ran} {of_nobody}: {row}");
        if row["not_exact"]["running_ns"].is_null() {
            assert!((running - ran).abs() <= near + of_nobody, "{ran} {of_nobody}: {row}");
            compared += 1;
        }
    }
    // If the kernel omits switches, few running times are certain.
    compared >= 5
}

/// Returns how often each thread left each CPU, and its running time there in milliseconds, from `perf sched
/// timehist`.
fn timehist_by_cpu(place: &Place, file: &str) -> BTreeMap<(u64, u64), (u64, f64)> {
    let mut perf = Command::new("perf");
    let output = perf.args(["sched", "timehist", "-i", file]).current_dir(&place.0).output();
    let text = output.expect("perf").stdout;
    // TIME [CPU] COMM[TID] or COMM[TID/PID], then milliseconds: waiting, ready, running.
    let row = |line: &str| {
        let (cpu, rest) = line.split_once('[')?.1.split_once(']')?;
        let (name, numbers) = rest.rsplit_once(']')?;
        let tid = name.rsplit('[').next()?.split('/').next()?.parse().ok()?;
        let ran = numbers.split_whitespace().nth(2)?.parse::<f64>().ok()?;
        Some(((tid, cpu.parse().ok()?), ran))
    };
    let mut all: BTreeMap<(u64, u64), (u64, f64)> = BTreeMap::new();
    for (place, ran) in String::from_utf8_lossy(&text).lines().filter_map(row) {
        let of = all.entry(place).or_default();
        *of = (of.0 + 1, of.1 + ran);
    }
    all
}

/// The running time of each thread on each CPU is within 1 % or 1 ms of that recorded by perf at the same
/// time, if the thread left that CPU equally often in both. Threads with missing or unordered switches are
/// excluded.
fn same_times_by_cpu(place: &Place, trace: &str, file: &str, uncertain: &BTreeSet<i64>) -> bool {
    let there = timehist_by_cpu(place, file);
    let mut here: BTreeMap<(u64, u64), (u64, f64)> = BTreeMap::new();
    for row in crate::foreign::table(place, trace, "thread_states") {
        let number = |name: &str| row[name].parse::<u64>();
        let is_known = row["state"] == "running" && row["quality"] == "exact";
        if let (true, Ok(tid), Ok(cpu), Ok(nanos)) =
            (is_known, number("tid"), number("cpu"), number("duration"))
        {
            let of = here.entry((tid, cpu)).or_default();
            *of = (of.0 + 1, of.1 + nanos as f64 / 1e6);
        }
    }
    let mut compared = 0;
    let certain = here.iter().filter(|((tid, _), _)| !uncertain.contains(&(*tid as i64)));
    for (of, (count, ran)) in certain {
        if let Some((_, theirs)) = there.get(of).filter(|(times, _)| times == count) {
            let near = (theirs * 0.01).max(1.0);
            assert!((ran - theirs).abs() <= near, "{of:?}: {ran} ms, perf {theirs} ms");
            compared += 1;
        }
    }
    println!("{trace}: {compared} of {} threads on CPUs are compared with perf", here.len());
    compared >= 5
}

/// Returns the longest scheduling latency of each thread, and the number of latencies, from `perf sched
/// latency`.
fn same_latencies(place: &Place, file: &str) -> bool {
    let mut perf = Command::new("perf");
    let output = perf.args(["sched", "latency", "-p", "-i", file]).current_dir(&place.0).output();
    let text = String::from_utf8_lossy(&output.expect("perf").stdout).into_owned();
    let stats = place.json(&["stats", file, "--section", "thread-states", "--json"]);
    let rows = stats["thread_states"].as_array().expect("rows");
    let mut compared = 0;
    for line in text.lines() {
        // COMM:TID | MILLISECONDS ms | COUNT | avg: … ms | max: MILLISECONDS ms | …
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number =
            |cell: &str| cell.trim_start_matches("max:").trim_end_matches("ms").trim().parse();
        let (Some(tid), Some(Ok(count)), Some(Ok(most))) = (
            cells[0].rsplit(':').next().and_then(|tid| tid.parse::<u64>().ok()),
            cells.get(2).map(|cell| cell.parse::<u64>()),
            cells.get(4).map(|cell| number(cell) as Result<f64, _>),
        ) else {
            continue;
        };
        let row = rows.iter().find(|row| row["tid"] == tid && row["waits"] == count);
        let is_exact =
            |row: &&Value| row["not_exact"].as_object().is_some_and(serde_json::Map::is_empty);
        if let Some(row) = row.filter(is_exact) {
            let longest = row["longest_wait_ns"].as_u64().expect("a number") as f64 / 1e6;
            // perf prints microseconds.
            assert!((longest - most).abs() <= 0.001_001, "{line}: {row}");
            compared += 1;
        }
    }
    compared >= 10
}

/// Events of live recordings, by kernel groups.
const GROUPS: [&str; 7] = ["sched", "irq", "raw_syscalls", "exceptions", "block", "net", "task"];

/// Forks, threads with names, sleeps, sockets, files, page faults, work, failing calls.
const WORK: &str = r#"
cat > work.py <<'PYTHON'
import ctypes, mmap, os, socket, threading, time
def sleeps(): [time.sleep(0.002) for _ in range(20)]
threads = [threading.Thread(target=sleeps) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
for _ in range(3): udp.sendto(b"y", udp.getsockname()), udp.recv(1)
for _ in range(5):
    try: open("/nonexistent")
    except OSError: pass
file = open("data", "wb")
for _ in range(3): file.write(os.urandom(1 << 18)), file.flush(), os.fsync(file.fileno())
ctypes.CDLL(None).setpriority(0, 0, 5)
mmap.mmap(-1, 1 << 20).write(b"z" * (1 << 20))
end = time.monotonic() + 0.1
while time.monotonic() < end: pass
PYTHON
python3 work.py
for i in 1 2 3; do sleep 0.01 & done; wait
"#;

#[test]
fn lttng_kernel() {
    let place = Place::new();
    let mut column = Column::new("LTTng kernel");
    for (path, is_old) in [
        ("traces/ctf1/lttng-ref/basic-kernel-analysis", true),
        ("traces/ctf1/tracecompass-EPL2/bug446190", true),
        ("traces/ctf-babeltrace-CC0/1/succeed/lttng-tracefile-rotation/kernel", false),
    ] {
        let Some(path) = shared(path) else { return };
        let Some(events) = printed::babeltrace(&path) else { return };
        let trace = path.to_str().expect("UTF-8");
        Kernel { place: &place, trace, judge: "babeltrace2", events, off: 0, is_old }
            .check(&mut column);
    }
    column.finish();
}

/// A recording of the whole machine. Other tests run at the same time, and the kernel's events of a program
/// that starts or ends at the edge of the recording can be incomplete, so a recording that differs is
/// repeated up to twice.
#[test]
fn lat_record() {
    if !usable(&["babeltrace2", "perf", "python3"]) {
        return;
    }
    for attempt in 0..3 {
        let Some(column) = recorded() else { return };
        match column.difference() {
            Some(difference) if attempt < 2 => println!("made again: {difference}"),
            _ => return column.finish(),
        }
    }
}

/// Returns the column of a recording of `lat`; prints a message and returns `None` if the recording is
/// incomplete.
fn recorded() -> Option<Column> {
    let place = Place::new();
    let groups = GROUPS.join(",").replace("raw_syscalls", "syscalls,softirq");
    let words = ["record", "-q", "--system", "--kernel", &groups, "-o", "out", "--"];
    let output = place.lat(&[&words[..], &beside_perf(&["sh", "-c", WORK])].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if !is_whole(&place, "out") {
        return None;
    }
    let events = printed::babeltrace(&place.0.join("out/ctf"))?;
    let mut column = Column::new("`lat record`");
    let (uncertain, _) = truth::torn(&events);
    Kernel { place: &place, trace: "out", judge: "babeltrace2", events, off: 2, is_old: false }
        .check(&mut column);
    column.check("time on a processor", "perf sched timehist", || {
        same_times(&place, "out", "switches.data")
            && same_times_by_cpu(&place, "out", "switches.data", &uncertain)
    });
    Some(column)
}

#[test]
fn perf_data() {
    if !usable(&["perf", "python3"]) {
        return;
    }
    let place = Place::new();
    let named: Vec<String> = GROUPS.iter().map(|group| format!("{group}:*")).collect();
    let mut words = vec!["record", "-q", "-a", "-m", "2048", "-o", "perf.data"];
    named.iter().for_each(|name| words.extend(["-e", name.as_str()]));
    words.extend(["sh", "-c", WORK]);
    let recorded = Command::new("perf").args(&words).current_dir(&place.0).output();
    if !recorded.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: perf records nothing here");
        return;
    }
    if !is_whole(&place, "perf.data") {
        return;
    }
    let Some(events) = printed::perf(&place.0, "perf.data") else { return };
    let (uncertain, _) = truth::torn(&events);
    let mut column = Column::new("perf.data");
    Kernel {
        place: &place,
        trace: "perf.data",
        judge: "perf script",
        events,
        off: 0,
        is_old: false,
    }
    .check(&mut column);
    column.check("time on a processor", "perf sched timehist", || {
        same_times(&place, "perf.data", "perf.data")
            && same_times_by_cpu(&place, "perf.data", "perf.data", &uncertain)
    });
    let events = "sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new";
    let words =
        ["record", "-q", "-a", "-m", "2048", "-o", "w.data", "-e", events, "sh", "-c", WORK];
    let recorded = Command::new("perf").args(words).current_dir(&place.0).output();
    assert!(recorded.expect("perf").status.success());
    column.check("wakeup", "perf sched latency", || same_latencies(&place, "w.data"));
    column.finish();
}

/// An instance of tracefs, removed on drop.
struct Instance(PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        // trace-cmd extract already removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn trace_dat() {
    if !usable(&["perf", "python3"]) {
        return;
    }
    let place = Place::new();
    let name = format!("lat-producers-{}", std::process::id());
    let instance = Instance(Path::new("/sys/kernel/tracing/instances").join(&name));
    if let Err(error) = fs::create_dir(&instance.0) {
        println!("SKIPPED: {}: {error}", instance.0.display());
        return;
    }
    let set = |file: &str, value: &str| fs::write(instance.0.join(file), value).expect("tracefs");
    set("buffer_size_kb", "16384");
    for group in GROUPS {
        set(&format!("events/{group}/enable"), "1");
    }
    let words = beside_perf(&["sh", "-c", WORK]);
    let work = Command::new(words[0]).args(&words[1..]).current_dir(&place.0).status();
    assert!(work.expect("perf").success());
    set("tracing_on", "0");
    let extract = ["extract", "-B", &name, "-o", "t.dat"];
    let extracted = Command::new("trace-cmd").args(extract).current_dir(&place.0).output();
    if !extracted.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: trace-cmd extracts nothing here");
        return;
    }
    if !is_whole(&place, "t.dat") {
        return;
    }
    let Some(events) = printed::trace_cmd(&place.0, "t.dat") else { return };
    let (uncertain, _) = truth::torn(&events);
    let mut column = Column::new("trace.dat");
    Kernel {
        place: &place,
        trace: "t.dat",
        judge: "trace-cmd report",
        events,
        off: 0,
        is_old: false,
    }
    .check(&mut column);
    column.check("time on a processor", "perf sched timehist", || {
        same_times(&place, "t.dat", "switches.data")
            && same_times_by_cpu(&place, "t.dat", "switches.data", &uncertain)
    });
    column.finish();
}

/// Like [`trace_dat`], for a file written by `trace-cmd record`.
#[test]
fn trace_cmd_record() {
    if !usable(&["perf", "python3", "trace-cmd"]) {
        return;
    }
    let place = Place::new();
    let name = format!("lat-trace-cmd-{}", std::process::id());
    let _instance = Instance(Path::new("/sys/kernel/tracing/instances").join(&name));
    let words = ["record", "-q", "-B", &name, "-b", "8192", "-e", "sched:sched_switch"];
    let work = beside_perf(&["sh", "-c", WORK]);
    let mut record = Command::new("trace-cmd");
    record.args(words).args(["-o", "r.dat"]).args(work).current_dir(&place.0);
    let output = record.output().expect("trace-cmd");
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = text.lines().next().unwrap_or_default();
        return println!("SKIPPED: trace-cmd cannot record here: {first}");
    }
    if is_whole(&place, "r.dat") {
        let Some(events) = printed::trace_cmd(&place.0, "r.dat") else { return };
        let (uncertain, _) = truth::torn(&events);
        assert!(same_times(&place, "r.dat", "switches.data"));
        assert!(same_times_by_cpu(&place, "r.dat", "switches.data", &uncertain));
    }
}

/// Whether a recording has all its events. Prints a message if not, because then no two programs have the
/// same events.
fn is_whole(place: &Place, trace: &str) -> bool {
    let stats = place.json(&["stats", trace, "--section", "losses", "--json"]);
    let losses = stats["losses"].as_array().expect("losses");
    if !losses.is_empty() {
        println!("SKIPPED: events were lost, so busy is this machine: {losses:?}");
    }
    losses.is_empty()
}

/// Checks its kernel events; track events are in another trace.
fn kernel_of_perfetto(column: &mut Column, tool: &TraceProcessor) {
    let Some(path) = shared("traces/perfetto-MIT/test_trace.perfetto-trace") else { return };
    let place = Place::new();
    let events = printed::perfetto(tool, &path);
    let trace = path.to_str().expect("UTF-8");
    let kernel =
        Kernel { place: &place, trace, judge: "trace processor", events, off: 0, is_old: false };
    kernel.check(column);
    let stats = place.json(&["stats", trace, "--json"]);
    column.check("counter", "trace processor", || {
        // The frequency of a CPU may be reported on any CPU: the event contains the CPU that it applies to.
        let sql = "select t.cpu, count(*) from counter c join cpu_counter_track t on c.track_id = t.id \
                   where t.name = 'cpufreq' group by 1 order by 1";
        let there = tool.ask(&path, &[sql]);
        let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
        let row = |row: &Value| (number(&row[0]), number(&row[1]));
        let there: Vec<_> = there[0].as_array().expect("rows").iter().map(row).collect();
        let of = |row: &&Value| row["counter"].as_str().is_some_and(|c| c.starts_with("cpu_frequency"));
        let rows = stats["counters"].as_array().expect("rows").iter().filter(of);
        let mut here: Vec<_> = rows.map(|row| (row["cpu"].as_u64(), row["count"].as_u64())).collect();
        here.sort();
        assert_eq!(here, there);
        !here.is_empty()
    });
}
