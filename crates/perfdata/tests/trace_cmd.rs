// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces of this machine's kernel as written by trace-cmd, read here and by `trace-cmd report`; and the
//! same pages directly from tracefs.

mod common;

use std::path::{Path, PathBuf};

use common::{Scratch, number, output, printed, read, text};
use lateralis_model::{ByteOrder, Event, Interval, Source};
use lateralis_perfdata::ftrace::{PagesInfo, open_pages};
use lateralis_perfdata::perf::Bytes;

/// An instance of the kernel's tracing; removed with the test.
struct Instance(PathBuf, String);

impl Instance {
    fn new(name: &str) -> Option<Self> {
        let name = format!("lateralis-{name}-{}", std::process::id());
        let path = Path::new("/sys/kernel/tracing/instances").join(&name);
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Self(path, name)),
            Err(error) => {
                println!("SKIPPED: {}: {error}", path.display());
                None
            }
        }
    }

    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// Traces some work.
    fn trace(&self, clock: &str) {
        self.set("trace_clock", clock);
        for event in ["sched", "raw_syscalls", "kmem/mm_page_alloc", "irq"] {
            self.set(&format!("events/{event}/enable"), "1");
        }
        self.set("tracing_on", "1");
        let _ = output("ls", &["-R", "/usr/include/linux"]);
        self.set("trace_marker", "a mark");
        self.set("tracing_on", "0");
        for event in ["sched", "raw_syscalls", "kmem/mm_page_alloc", "irq"] {
            self.set(&format!("events/{event}/enable"), "0");
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The line of `trace-cmd report -t` for an event, without its padding.
fn line(event: &Event<'_>) -> String {
    let comm = common::get(event, "comm").unwrap();
    let comm = event.common_context().unwrap().get("comm").map_or(comm, common::show);
    let cpu = event.packet.cpu.unwrap().0;
    let ticks = event.ticks.unwrap().0;
    let (seconds, nanos) = (ticks / 1_000_000_000, ticks % 1_000_000_000);
    let name = event.class.name.split_once(':').unwrap().1;
    let tid = event.common_context().unwrap().get("tid").unwrap().as_u64().unwrap();
    let mut line = format!("{comm}-{tid} [{cpu:03}] {seconds}.{nanos:09}: {name}:");
    if matches!(name, "sys_enter" | "sys_exit") {
        line += &format!(" {}", printed(event).unwrap());
    } else if name == "print" {
        line += &format!(" {}", common::get(event, "buf").unwrap().trim());
    }
    line
}

fn normal(line: &str) -> Option<String> {
    let line = line
        .split_once(": ")
        .filter(|(buffer, _)| !buffer.contains(' '))
        .map_or(line, |(_, rest)| rest)
        .trim();
    let (thread, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once(']')?;
    let (time, rest) = rest.trim().split_once(": ")?;
    let (name, trace) = rest.trim().split_once(':')?;
    let mut normal = format!("{} [{cpu}] {time}: {name}:", thread.trim());
    if matches!(name, "sys_enter" | "sys_exit") {
        normal += &format!(" {}", trace.trim());
    } else if name == "print" {
        // The function that printed precedes the text.
        normal += &format!(" {}", trace.rsplit_once(": ").map_or(trace, |(_, text)| text).trim());
    }
    Some(normal)
}

fn lines(trace: &dyn Source) -> Vec<String> {
    let mut events = trace.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next_event() {
        lines.push(line(&event));
    }
    lines.sort();
    lines
}

fn compare(path: &Path) -> Option<usize> {
    let name = path.to_string_lossy().into_owned();
    let report = text("trace-cmd", &["report", "-t", &name])?;
    let mut theirs: Vec<_> = report.lines().filter_map(normal).collect();
    theirs.sort();
    let ours = lines(&*read(path));
    if let Some((ours, theirs)) = ours.iter().zip(&theirs).find(|(our, their)| our != their) {
        panic!("{name}: ours {ours:?}, theirs {theirs:?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    Some(ours.len())
}

#[test]
fn every_version_and_compression_agrees() {
    let Some(instance) = Instance::new("versions") else { return };
    let scratch = Scratch::new("tracecmd");
    instance.trace("mono");
    let path = scratch.file("seven.dat");
    let seven = path.to_string_lossy().into_owned();
    if output("trace-cmd", &["extract", "-B", &instance.1, "-o", &seven]).is_none() {
        return;
    }
    let Some(count) = compare(&path) else { return };
    println!("{count} events agree");
    assert!(count > 200, "{count} events");
    let seven_trace = read(&path);
    let ours = lines(&*seven_trace);
    // trace-cmd records the clock of the main buffer, whatever that of the instance is.
    let summary = text("trace-cmd", &["dump", "--summary", &seven]).unwrap_or_default();
    let clock = format!("\"{}\" clock", seven_trace.trace().clocks[0].name);
    assert!(summary.contains(&clock), "{clock} is not in {summary}");
    for (name, options) in [
        ("six.dat", ["--file-version", "6", "--compression", "none"]),
        ("plain.dat", ["--file-version", "7", "--compression", "none"]),
        ("zstd.dat", ["--file-version", "7", "--compression", "zstd"]),
        ("zlib.dat", ["--file-version", "7", "--compression", "zlib"]),
    ] {
        let path = scratch.file(name);
        let to = path.to_string_lossy().into_owned();
        let arguments: Vec<&str> =
            ["convert", "-i", &seven, "-o", &to].iter().chain(&options).copied().collect();
        if output("trace-cmd", &arguments).is_some() {
            let converted = read(&path);
            assert_eq!(lines(&*converted), ours, "{name}");
            parts_agree(&*converted, name);
            damaged_chunks(&path, &ours, name);
        }
    }
}

/// Parts of the time range give the same events as the whole.
fn parts_agree(trace: &dyn Source, name: &str) {
    let mut times = Vec::new();
    trace.visit(&mut |event| times.push(event.time));
    assert!(times.is_sorted(), "{name}");
    for part in 0..8 {
        let (begin, end) = (times[times.len() * part / 8], times[times.len() * (part + 1) / 8 - 1]);
        let mut events = trace.events_in(Interval { begin: Some(begin), end: Some(end) });
        let mut count = 0;
        while events.advance() {
            assert!((begin..=end).contains(&events.time()), "{name}");
            count += 1;
        }
        let expected = times.iter().filter(|time| (begin..=end).contains(time)).count();
        assert_eq!(count, expected, "{name}");
    }
}

/// Overwritten bytes in compressed pages: zlib has a checksum, so that the fault is found and costs its
/// chunk; with zstd it may pass as different values.
fn damaged_chunks(path: &Path, ours: &[String], name: &str) {
    let whole = std::fs::read(path).unwrap();
    let mut hits = 0;
    for back in [1000, 2000, 6000, 20_000, 30_000] {
        let mut bytes = whole.clone();
        let at = bytes.len() - back;
        bytes[at..at + 40].fill(0xee);
        let trace = common::open(name, &bytes, 1 << 30).unwrap();
        let left = lines(&*trace);
        if name == "zlib.dat" {
            let written = left.iter().all(|line| ours.binary_search(line).is_ok());
            assert!(written, "{name}: {back}");
            let is_whole = left.len() == ours.len();
            assert!(is_whole || !common::damage(&*trace).is_empty(), "{name}: {back}");
            hits += usize::from(!is_whole);
        }
    }
    assert!(hits > 0 || name != "zlib.dat", "{name}: nothing was hit");
}

#[test]
fn pages_from_tracefs_agree_with_the_text_of_the_kernel() {
    let Some(instance) = Instance::new("pages") else { return };
    instance.trace("local");
    let text = instance.read("trace");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let mut pages = Vec::new();
    for cpu in 0..cpus {
        let path = instance.0.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        // Reading blocks at the end of the buffer, unless nonblocking.
        let name = path.to_string_lossy().into_owned();
        // dd fails at the end of the buffer, where it would have to wait.
        let arguments = [&format!("if={name}"), "iflag=nonblock", "bs=4096", "status=none"];
        let result = std::process::Command::new("dd").args(arguments).output();
        let bytes = result.expect("dd is everywhere").stdout;
        pages.push((cpu, bytes));
    }
    let formats: Vec<(String, String)> = ["sched", "raw_syscalls", "kmem", "irq", "ftrace"]
        .into_iter()
        .flat_map(|system| {
            let directory = Path::new("/sys/kernel/tracing/events").join(system);
            let events = std::fs::read_dir(directory).into_iter().flatten().flatten();
            events.filter_map(move |event| {
                let text = std::fs::read_to_string(event.path().join("format")).ok()?;
                Some((system.to_owned(), text))
            })
        })
        .collect();
    let formats: Vec<_> = formats.iter().map(|(s, f)| (s.as_str(), f.as_str())).collect();
    let header_page = std::fs::read_to_string("/sys/kernel/tracing/events/header_page").unwrap();
    let info = PagesInfo {
        header_page: &header_page,
        formats: &formats,
        saved_cmdlines: &instance.read("saved_cmdlines"),
        trace_clock: &instance.read("trace_clock"),
        page_bytes: 0,
    };
    let cpus = pages.into_iter().map(|(cpu, bytes)| (cpu, std::sync::Arc::new(bytes) as Bytes));
    let trace = open_pages("pages", cpus.collect(), &info, ByteOrder::Little);
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let theirs = text.lines().filter(|line| !line.starts_with('#') && line.contains(": ")).count();
    assert_eq!(common::count(&trace), theirs);
    assert!(theirs > 100, "{theirs} lines");
    let mut events = trace.events();
    let mut calls = 0;
    while let Some(event) = events.next_event() {
        if event.class.name == "raw_syscalls:sys_enter" {
            assert!((0..1000).contains(&number(&event, "id")));
            calls += 1;
        }
    }
    assert_eq!(calls, text.lines().filter(|line| line.contains(": sys_enter: ")).count());
}

#[test]
fn overwritten_events_are_a_loss() {
    let Some(instance) = Instance::new("lost") else { return };
    let scratch = Scratch::new("overwritten");
    instance.set("buffer_size_kb", "8");
    instance.trace("local");
    let path = scratch.file("trace.dat");
    let name = path.to_string_lossy().into_owned();
    if output("trace-cmd", &["extract", "-B", &instance.1, "-o", &name]).is_none() {
        return;
    }
    let trace = read(&path);
    let said = trace.remarks().iter().any(|remark| remark.contains("overrun"));
    assert!(said || !trace.losses().is_empty(), "{:?}", trace.remarks());
}
