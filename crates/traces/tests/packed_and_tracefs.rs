// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compressed files open like the plain ones, and a directory copied out of the
//! kernel's tracefs opens like the recording it is.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lateralis_model::{Event, Source, Value};
use lateralis_traces::{Joined, OpenOptions, open};

/// A directory that vanishes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = format!("lateralis-traces-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(directory);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn opened(path: &Path, memory_bytes: u64) -> Result<Joined, String> {
    let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
    open(&[path.to_owned()], &options).map_err(|error| error.to_string())
}

fn show(event: &Event<'_>) -> String {
    let parts = [event.common_context(), event.context(), event.payload()];
    let fields = parts.into_iter().flatten().flatten();
    let values = fields.map(|(member, field)| match field.value() {
        Value::Text(text) => format!("{}={}", member.name, text.to_str()),
        _ => format!("{}={:?}", member.name, field.as_u64()),
    });
    let values: Vec<_> = values.collect();
    format!("{} {} {}", event.time.0, event.class.name, values.join(" "))
}

fn lines(trace: &Joined) -> Vec<String> {
    let mut lines = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        lines.push(show(&event));
    }
    lines
}

/// Many spans of Chrome JSON.
fn chrome() -> Vec<u8> {
    let event = |n: u32| {
        format!(
            r#"{{"name":"work","ph":"X","ts":{n},"dur":1,"pid":1,"tid":{},"args":{{}}}}"#,
            n % 7
        )
    };
    let events: Vec<String> = (0..5000).map(event).collect();
    format!("[{}]", events.join(",\n")).into_bytes()
}

#[test]
fn compressed_files_open_like_the_plain_one() {
    let scratch = Scratch::new("packed");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let mut files = vec![("trace.json".to_owned(), chrome())];
    let pcapng = fs::read_dir(shared.join("traces/pcapng-MIT")).into_iter().flatten().flatten();
    let real = pcapng
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pcapng"))
        .take(1)
        .chain([shared.join("pt/made/fibs/perf.data")]);
    for path in real {
        match fs::read(&path) {
            Ok(bytes) => {
                files.push((path.file_name().unwrap().to_string_lossy().into_owned(), bytes));
            }
            Err(error) => println!("SKIPPED: {}: {error}", path.display()),
        }
    }
    for (name, plain) in files {
        let expected = opened(&scratch.write(&name, &plain), 1 << 30).unwrap();
        let expected = (expected.format().to_owned(), lines(&expected));
        assert!(!expected.1.is_empty(), "{name}");
        // The name says nothing: the content decides.
        let zstd = zstd::bulk::compress(&plain, 3).unwrap();
        for (name, packed) in [("a", gzip(&plain)), ("b", zstd), ("c", gzip(&gzip(b"no trace")))] {
            let path = scratch.write(name, &packed);
            if name == "c" {
                let error = opened(&path, 1 << 30).err().unwrap();
                assert!(error.contains("what gzip packed in it begins with 1f 8b 08"), "{error}");
                continue;
            }
            let trace = opened(&path, 1 << 30).unwrap();
            assert_eq!((trace.format().to_owned(), lines(&trace)), expected, "{name}");
            assert!(trace.damage().is_empty());
        }
    }
}

#[test]
fn a_cut_compressed_file_gives_what_is_before_the_cut_and_says_so() {
    let scratch = Scratch::new("cut");
    let plain = chrome();
    for (name, packed) in [("gz", gzip(&plain)), ("zst", zstd::bulk::compress(&plain, 1).unwrap())]
    {
        let whole = lines(&opened(&scratch.write(name, &packed), 1 << 30).unwrap());
        let trace = opened(&scratch.write(name, &packed[..packed.len() - 9]), 1 << 30).unwrap();
        let left = lines(&trace);
        assert!(whole.starts_with(&left), "{name}");
        let told = trace.damage().iter().any(|damage| damage.to_string().contains("compressed"));
        assert!(told, "{name}: {:?}", trace.damage());
    }
}

#[test]
fn a_bomb_takes_no_more_memory_than_it_may() {
    let scratch = Scratch::new("bomb");
    // 64 MiB of blanks in some 300 KB behind a good beginning.
    let mut plain = chrome();
    plain.pop();
    let good = plain.len();
    plain.resize(good + (64 << 20), b' ');
    plain.extend(b"]");
    for packed in [gzip(&plain), zstd::bulk::compress(&plain, 1).unwrap()] {
        assert!(packed.len() < 1 << 20);
        let trace = opened(&scratch.write("bomb", &packed), 4 << 20).unwrap();
        assert!(trace.remarks().iter().any(|remark| remark.contains("memory")));
        assert_eq!(lines(&trace).len(), 5000);
    }
}

/// An instance of the kernel's tracing; removed with the test.
struct Instance(PathBuf);

impl Instance {
    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Copies what a user would: pages, descriptions, names, clock.
fn save(instance: &Path, scratch: &Scratch) {
    for (from, to) in [
        (instance.join("saved_cmdlines"), "saved_cmdlines"),
        (instance.join("trace_clock"), "trace_clock"),
        ("/sys/kernel/tracing/saved_cmdlines".into(), "saved_cmdlines"),
        ("/sys/kernel/tracing/events/header_page".into(), "events/header_page"),
    ] {
        if let Ok(bytes) = fs::read(&from) {
            scratch.write(to, &bytes);
        }
    }
    for system in ["sched", "raw_syscalls", "ftrace"] {
        let directory = Path::new("/sys/kernel/tracing/events").join(system);
        for event in fs::read_dir(directory).into_iter().flatten().flatten() {
            if let Ok(bytes) = fs::read(event.path().join("format")) {
                let name = event.file_name().to_string_lossy().into_owned();
                scratch.write(&format!("events/{system}/{name}/format"), &bytes);
            }
        }
    }
    for cpu in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let input = format!("if={}", instance.join(&name).display());
        // dd fails at the end of the buffer, where it would have to wait.
        let arguments = [&input, "iflag=nonblock", "bs=4096", "status=none"];
        let output = Command::new("dd").args(arguments).stderr(Stdio::null()).output().unwrap();
        scratch.write(&name, &output.stdout);
    }
}

#[test]
fn a_copy_of_tracefs_gives_the_events_of_the_kernels_own_text() {
    let path = format!("/sys/kernel/tracing/instances/lateralis-traces-{}", std::process::id());
    if let Err(error) = fs::create_dir(&path) {
        println!("SKIPPED: {path}: {error}");
        return;
    }
    let instance = Instance(path.into());
    instance.set("trace_clock", "mono");
    instance.set("events/sched/sched_switch/enable", "1");
    instance.set("events/raw_syscalls/enable", "1");
    instance.set("tracing_on", "1");
    let _ = Command::new("ls").args(["-R", "/usr/include/linux"]).stdout(Stdio::null()).status();
    instance.set("trace_marker", "a mark");
    instance.set("tracing_on", "0");
    instance.set("events/sched/sched_switch/enable", "0");
    instance.set("events/raw_syscalls/enable", "0");
    let text = fs::read_to_string(instance.0.join("trace")).unwrap();
    let scratch = Scratch::new("tracefs");
    save(&instance.0, &scratch);

    let trace = opened(&scratch.0, 1 << 30).unwrap();
    assert_eq!(trace.format(), "tracefs pages");
    assert_eq!(trace.trace().clocks[0].name, "mono");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    // `task-pid [cpu] flags seconds.micros: event: values`
    let mut theirs: Vec<String> = text.lines().filter_map(kernel_line).collect();
    let mut ours = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        ours.extend(our_line(&event));
    }
    theirs.sort();
    ours.sort();
    assert!(ours.len() > 200, "{} events", ours.len());
    let different = ours.iter().zip(&theirs).find(|(our, their)| our != their);
    assert_eq!(different, None);
    assert_eq!(ours.len(), theirs.len());
    println!("{} events agree with the text of the kernel", ours.len());

    // The live file system is left alone.
    let error = opened(&instance.0, 1 << 30).err().unwrap();
    assert!(error.contains("copy their pages to files first"), "{error}");
}

/// Thread, CPU, time, name, and the numbers of system calls.
fn kernel_line(line: &str) -> Option<String> {
    let (thread, rest) = line.split_once(" [")?;
    let tid = thread.rsplit_once('-')?.1.trim_end();
    let (cpu, rest) = rest.split_once(']')?;
    let mut words = rest.split_whitespace().skip(1);
    let (time, name) = (words.next()?, words.next()?);
    let cpu: u32 = cpu.parse().ok()?;
    let value = match name {
        "sys_enter:" => words.nth(1)?,
        "sys_exit:" => rest.rsplit_once("= ")?.1,
        "sched_switch:" => rest.split_once("next_pid=")?.1.split(' ').next()?,
        _ => "",
    };
    Some(format!("{tid} {cpu} {time} {name} {value}"))
}

fn our_line(event: &Event<'_>) -> Option<String> {
    let name = event.class.name.rsplit(':').next()?;
    let number = |field: &str| {
        let value = event.payload().and_then(|fields| fields.get(field)?.as_u64());
        value.map(|value| (value as i64).to_string())
    };
    let value = match name {
        "sys_enter" => number("id")?,
        "sys_exit" => number("ret")?,
        "sched_switch" => number("next_pid")?,
        _ => String::new(),
    };
    // Marks stand in the text as `tracing_mark_write`.
    let name = if name == "print" { "tracing_mark_write" } else { name };
    let micros = (event.ticks?.0 + 500) / 1000;
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (tid, cpu) = (event.writer?.tid, event.packet.cpu?.0);
    Some(format!("{tid} {cpu} {seconds}.{micros:06}: {name}: {value}"))
}
