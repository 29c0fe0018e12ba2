// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings of `perf record` on this machine, read here and by `perf script`: the same events with the
//! same threads, CPUs, times and values.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{Scratch, damage, get, number, output, printed, read, text};
use lateralis_model::{Event, Source};
use lateralis_perfdata::perf::{self, Bytes};

/// The line of `perf script` for a sample, without the fields that are not compared.
fn line(event: &Event<'_>) -> String {
    let payload_comm = event.common_context().and_then(|fields| fields.get("comm"));
    let comm = payload_comm.and_then(|field| field.as_text()).unwrap_or_default().into_owned();
    let common = event.common_context().expect("all streams have one");
    let value = |name| common.get(name).and_then(|field| field.as_u64()).unwrap() as i32;
    let (pid, tid) = (value("pid"), value("tid"));
    if pid >= 0 && tid >= 0 {
        let writer = event.writer.expect("perf record notes threads");
        assert_eq!((writer.pid as i32, writer.tid as i32), (pid, tid));
    }
    let comm = if comm.is_empty() { format!(":{tid}") } else { comm };
    let cpu = event.packet.cpu.map_or(String::new(), |cpu| format!(" [{:03}]", cpu.0));
    let ticks = event.ticks.unwrap().0;
    let (seconds, nanos) = (ticks / 1_000_000_000, ticks % 1_000_000_000);
    let mut line = format!("{comm} {pid}/{tid}{cpu} {seconds}.{nanos:09}: {}:", event.class.name);
    if let Some(trace) = printed(event) {
        line += &format!(" {trace}");
    }
    line
}

/// A line of perf script in the same format.
fn normal(line: &str) -> Option<String> {
    let line = line.trim();
    // The name of the thread is followed by `pid/tid`, optionally a CPU, and the time.
    let words: Vec<&str> = line.split_whitespace().collect();
    let thread = words.iter().position(|word| {
        word.split_once('/')
            .is_some_and(|(pid, tid)| pid.parse::<i32>().is_ok() && tid.parse::<i32>().is_ok())
    })?;
    let begin = line.find(words[thread])?;
    let comm = line[..begin].trim_end();
    let rest = line[begin..].split_whitespace().collect::<Vec<_>>();
    let name = rest
        .iter()
        .position(|word| word.ends_with(':') && !word.starts_with(|c: char| c.is_ascii_digit()))?;
    let head = rest[..=name].join(" ");
    let retold = [
        "sched_switch:",
        "sched_waking:",
        "sched_wakeup:",
        "sched_wakeup_new:",
        "sched_stat_runtime:",
        "sys_enter:",
        "sys_exit:",
    ];
    let event = rest[name];
    if !retold.iter().any(|end| event.ends_with(end)) {
        return Some(format!("{comm} {head}"));
    }
    let trace = &line[line.find(event)? + event.len()..];
    Some(format!("{comm} {head} {}", trace.trim()))
}

fn samples(trace: &dyn Source) -> Vec<String> {
    let mut events = trace.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next_event() {
        let sample = get(&event, "cpu_mode").or_else(|| get(&event, "perf_cpu_mode"));
        if sample.is_some() {
            lines.push(line(&event));
        }
    }
    lines.sort();
    lines
}

/// A file, or a folder of `perf record --threads`.
fn open(path: &Path) -> Box<dyn Source> {
    if !path.is_dir() {
        return read(path);
    }
    let bytes = |name: &str| -> Bytes { Arc::new(std::fs::read(path.join(name)).unwrap()) };
    assert!(perf::is_of_folder((*bytes("data")).as_ref()));
    let entries = std::fs::read_dir(path).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let beside: Vec<_> =
        names.filter(|name| name != "data").map(|name| (name.clone(), bytes(&name))).collect();
    assert!(!beside.is_empty());
    let trace = perf::open_folder("data", bytes("data"), beside, 4 << 30).unwrap();
    assert_eq!(damage(&trace), []);
    Box::new(trace)
}

fn compare(path: &Path, fields: &str) -> Option<usize> {
    let name = path.to_string_lossy().into_owned();
    let script = text("perf", &["script", "-i", &name, "--ns", "-F", fields])?;
    let mut theirs: Vec<_> = script.lines().filter_map(normal).collect();
    theirs.sort();
    let ours = samples(&*open(path));
    let first = ours.iter().zip(&theirs).position(|(our, their)| our != their);
    if let Some(at) = first {
        panic!("{name}: ours {:?}, theirs {:?}", ours[at], theirs[at]);
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    Some(ours.len())
}

/// A program to trace that ends by itself.
const WORK: [&str; 4] = [
    "--",
    "sh",
    "-c",
    "for i in 1 2 3 4 5; do ls -R /usr/include/linux >/dev/null; sleep 0.01; done",
];

fn record(path: &Path, options: &[&str]) -> bool {
    let name = path.to_string_lossy().into_owned();
    let arguments: Vec<&str> =
        ["record", "-q", "-o", &name].iter().chain(options).chain(&WORK).copied().collect();
    output("perf", &arguments).is_some()
}

const TRACEPOINTS: [&str; 4] = [
    "-e",
    "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_stat_runtime",
    "-e",
    "raw_syscalls:*",
];

#[test]
fn software_events_agree() {
    let scratch = Scratch::new("software");
    let path = scratch.file("perf.data");
    if !record(&path, &["-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches", "-a"]) {
        return;
    }
    if let Some(count) = compare(&path, "comm,pid,tid,cpu,time,event") {
        assert!(count > 20, "{count} events");
    }
}

#[test]
fn folders_of_several_threads_agree() {
    let scratch = Scratch::new("folders");
    let threads: [&[&str]; 2] = [&["--threads"], &["--threads=core", "-z"]];
    for (number, threads) in threads.iter().enumerate() {
        let path = scratch.file(&format!("folder-{number}"));
        let options = [*threads, &["-a"], &TRACEPOINTS].concat();
        if !record(&path, &options) {
            continue;
        }
        if let Some(count) = compare(&path, "comm,pid,tid,cpu,time,event,trace") {
            println!("{count} events agree");
            assert!(count > 500, "{count} events");
        }
    }
}

#[test]
fn tracepoints_agree_value_by_value() {
    let scratch = Scratch::new("tracepoints");
    let path = scratch.file("perf.data");
    if !record(&path, &TRACEPOINTS) {
        return;
    }
    if let Some(count) = compare(&path, "comm,pid,tid,cpu,time,event,trace") {
        println!("{count} events agree");
        assert!(count > 500, "{count} events");
    }
}

#[test]
fn compressed_records_agree() {
    let scratch = Scratch::new("compressed");
    let path = scratch.file("perf.data");
    let options: Vec<&str> = ["-z", "-a"].iter().chain(&TRACEPOINTS).copied().collect();
    if record(&path, &options) {
        compare(&path, "comm,pid,tid,cpu,time,event,trace");
    }
}

#[test]
fn pipes_agree() {
    let scratch = Scratch::new("pipe");
    let path = scratch.file("perf.pipe");
    let arguments: Vec<&str> =
        ["record", "-q", "-o", "-"].iter().chain(&TRACEPOINTS).chain(&WORK).copied().collect();
    let Some(bytes) = output("perf", &arguments) else { return };
    std::fs::write(&path, &bytes).unwrap();
    let name = path.to_string_lossy().into_owned();
    // `perf script -F` does not know the fields of a pipe before it reads it.
    let Some(script) = text("perf", &["script", "-i", &name, "--ns"]) else { return };
    let ours = samples(&*read(&path));
    assert_eq!(ours.len(), script.lines().filter(|line| !line.trim().is_empty()).count());
}

#[test]
fn lost_events_are_losses() {
    let scratch = Scratch::new("lost");
    let path = scratch.file("perf.data");
    let options: Vec<&str> = ["-m", "1", "-a"].iter().chain(&TRACEPOINTS).copied().collect();
    if !record(&path, &options) {
        return;
    }
    let name = path.to_string_lossy().into_owned();
    let Some(dump) = text("perf", &["script", "-i", &name, "--show-lost-events"]) else { return };
    let theirs = dump.lines().filter_map(|line| {
        let (_, count) = line.split_once("PERF_RECORD_LOST lost ")?;
        count.trim().parse::<u64>().ok()
    });
    let theirs: u64 = theirs.sum();
    let trace = read(&path);
    let full = trace.losses().iter().filter(|loss| loss.cause == lateralis_model::LossCause::Full);
    assert_eq!(full.filter_map(|loss| loss.count).sum::<u64>(), theirs);
    println!("{theirs} events lost");
}

#[test]
fn sideband_agrees() {
    let scratch = Scratch::new("sideband");
    let path = scratch.file("perf.data");
    if !record(&path, &["-e", "cpu-clock", "-a", "--namespaces", "--switch-events"]) {
        return;
    }
    let name = path.to_string_lossy().into_owned();
    let Some(statistics) = text("perf", &["report", "-i", &name, "--stats"]) else { return };
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    let trace = read(&path);
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        *ours.entry(event.class.name.clone()).or_insert(0) += 1;
    }
    let mut seen = 0;
    for line in statistics.lines() {
        let Some((kind, rest)) = line.split_once(" events:") else { continue };
        let count: u64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        let kind = kind.trim().to_lowercase();
        if ["mmap", "mmap2", "comm", "exit", "fork", "switch_cpu_wide", "namespaces"]
            .contains(&kind.as_str())
        {
            assert_eq!(ours.get(&kind).copied().unwrap_or(0), count, "{kind}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{statistics}");
}

#[test]
fn callchains_and_registers_agree() {
    let scratch = Scratch::new("chains");
    let path = scratch.file("perf.data");
    let options = ["-e", "cpu-clock", "-g", "--user-regs=ip,sp", "-d", "-k", "CLOCK_MONOTONIC"];
    if !record(&path, &options) {
        return;
    }
    let name = path.to_string_lossy().into_owned();
    let fields = "time,ip,sym";
    let Some(script) = text("perf", &["script", "-i", &name, "--ns", "-F", fields]) else { return };
    let mut theirs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut time = String::new();
    for line in script.lines() {
        let mut words = line.split_whitespace().peekable();
        if let Some(first) = words.next_if(|word| word.ends_with(':')) {
            first.trim_end_matches(':').clone_into(&mut time);
            theirs.entry(time.clone()).or_default();
        }
        // An address follows the time, or begins a line of its own.
        if let Some(address) = words.next() {
            let address = u64::from_str_radix(address, 16).unwrap_or_else(|_| panic!("{line}"));
            theirs.get_mut(&time).expect("a time comes first").push(address);
        }
    }
    let trace = read(&path);
    assert_eq!(trace.trace().clocks[0].name, "monotonic");
    let mut events = trace.events();
    let (mut compared, mut addresses, mut unsaid) = (0, 0, 0);
    while let Some(event) = events.next_event().filter(|event| event.ticks.is_some()) {
        if event.class.name != "cpu-clock" {
            continue;
        }
        let ticks = event.ticks.unwrap().0;
        let time = format!("{}.{:09}", ticks / 1_000_000_000, ticks % 1_000_000_000);
        let payload = event.payload().unwrap();
        let lateralis_model::Value::Array(chain) = payload.get("callchain").unwrap().value() else {
            panic!("no array")
        };
        // Context marks in a chain are not addresses.
        let whole: Vec<_> = chain.filter_map(|f| f.as_u64()).collect();
        let ours: Vec<_> = whole.iter().copied().filter(|&a| a < u64::MAX - 4095).collect();
        let Some(theirs) = theirs.get(&time) else {
            let values = common::show_all(payload);
            panic!("perf script has no sample at {time}: {values}")
        };
        compared += 1;
        // For a process that has just started or ended, perf script can print a sample without its chain.
        if theirs.is_empty() && !ours.is_empty() {
            unsaid += 1;
            continue;
        }
        assert_eq!(ours.len(), theirs.len(), "{whole:x?} is not {theirs:x?} at {time}");
        // For code in user space, perf script prints positions in files.
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!(ours == theirs || *ours < 1 << 47, "{ours:x} is not {theirs:x} at {time}");
        }
        addresses += ours.len();
        assert!(number(&event, "period") > 0);
    }
    assert_eq!(compared, theirs.len(), "samples, and those of perf script");
    assert!(unsaid * 20 <= compared, "of {unsaid} of {compared} perf script says no chain");
    println!("{} chains of {addresses} addresses agree", compared - unsaid);
    assert!(compared > 0 && addresses > compared);
}
