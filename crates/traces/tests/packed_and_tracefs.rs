// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compressed files open like plain ones, and a directory copied from the kernel's tracefs opens as a
//! recording.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lateralis_model::{Event, Source, Value};
use lateralis_traces::{Joined, OpenOptions, open};

/// A directory that is removed with the test.
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

/// Many Chrome JSON spans.
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
        // The content decides, not the name.
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
fn zeros_behind_gzip_are_nothing_and_other_bytes_are_told_without_damage() {
    let scratch = Scratch::new("behind");
    let plain = opened(&scratch.write("plain", &chrome()), 1 << 30).unwrap();
    let chrome = chrome();
    let (first, second) = chrome.split_at(40);
    let members = [gzip(first), gzip(second)].concat();
    for (name, behind, remarks) in [
        ("zeros", &[0u8; 512][..], 0),
        ("one", &[0], 0),
        ("text", b"\0\0more", 1),
        ("more", b"x", 1),
    ] {
        let path = scratch.write(name, &[&members, behind].concat());
        let trace = opened(&path, 1 << 30).unwrap();
        assert_eq!(lines(&trace), lines(&plain), "{name}");
        assert_eq!(trace.damage(), [], "{name}");
        let about = |remark: &&String| remark.contains("behind the compressed data");
        assert_eq!(trace.remarks().iter().filter(about).count(), remarks, "{name}");
    }
}

#[test]
fn a_bomb_takes_no_more_memory_than_it_may() {
    let scratch = Scratch::new("bomb");
    // 64 MiB of blanks in some 300 KB after a valid beginning.
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

/// Copies the files that a user would: pages, descriptions, names, clock.
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

    // The live file system is not read.
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
    // Marks appear in the text as `tracing_mark_write`.
    let name = if name == "print" { "tracing_mark_write" } else { name };
    let micros = (event.ticks?.0 + 500) / 1000;
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (tid, cpu) = (event.writer?.tid, event.packet.cpu?.0);
    Some(format!("{tid} {cpu} {seconds}.{micros:06}: {name}: {value}"))
}

/// Samples of a folder of `perf record --threads`, as counted by `perf script`.
fn perf_folder(path: &Path) -> Option<usize> {
    let name = path.to_string_lossy();
    let record = ["record", "-q", "--threads", "-F", "5000", "-e", "cpu-clock", "-o", &name, "--"];
    let work = ["sh", "-c", "for i in 1 2 3; do ls -lR /usr/include >/dev/null; done"];
    let run = |arguments: &[&str]| match Command::new("perf").args(arguments).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        Ok(output) => {
            println!("SKIPPED: perf: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            println!("SKIPPED: perf: {error}");
            None
        }
    };
    run(&[&record[..], &work].concat())?;
    let script = run(&["script", "-i", &name, "-F", "time"])?;
    Some(script.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
}

#[test]
fn a_folder_of_perf_opens_as_one_trace_and_names_what_is_missing() {
    let scratch = Scratch::new("perf-folder");
    let folder = scratch.0.join("inner/folder");
    fs::create_dir_all(scratch.0.join("inner")).unwrap();
    let Some(count) = perf_folder(&folder) else { return };
    assert!(count > 20, "{count} samples");
    let samples = |path: &Path| {
        let trace = opened(path, 1 << 30).unwrap();
        let samples = lines(&trace).iter().filter(|line| line.contains(" cpu-clock ")).count();
        (samples, trace.remarks(), trace.damage().to_vec())
    };
    // The folder, its parent, and one of its files.
    for path in [&folder, &scratch.0, &folder.join("data")] {
        assert_eq!(samples(path), (count, vec![], vec![]), "{}", path.display());
    }
    fs::write(folder.join("data.x"), "?").unwrap();
    let (same, remarks, _) = samples(&folder);
    assert_eq!((same, remarks.len()), (count, 1));
    assert!(remarks[0].ends_with("a file beside it is not read: data.x"), "{remarks:?}");
    // A file of one of its threads alone, and all others without it.
    let alone = scratch.0.join("alone");
    fs::create_dir_all(&alone).unwrap();
    fs::copy(folder.join("data"), alone.join("data")).unwrap();
    let (fewer, _, damage) = samples(&alone);
    assert!(fewer < count);
    assert_eq!((damage.len(), &*damage[0].file), (1, "data.0"));
    fs::write(alone.join("data.3"), "").unwrap();
    let (_, _, damage) = samples(&alone);
    assert_eq!((damage.len(), &*damage[0].file), (1, "data.0 and 2 more"));
}

#[test]
fn files_in_a_recording_that_are_not_read_are_named() {
    let scratch = Scratch::new("recorded");
    let metadata = br#"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream {};
        event { name = "e"; fields := struct { integer { size = 8; } a; }; };"#;
    scratch.write("one/ctf/metadata", metadata);
    scratch.write("one/ctf/stream", b"123");
    scratch.write("one/report.json", b"{}");
    scratch.write("one/view.index", b"1");
    scratch.write("one/.hidden", b"1");
    let remarks = |path: &str| opened(&scratch.0.join(path), 1 << 30).unwrap().remarks();
    assert_eq!(remarks("one"), Vec::<String>::new());
    scratch.write("one/notes.txt", b"1");
    scratch.write("one/more/deep", b"1");
    let unread = |remarks: Vec<String>| -> Vec<String> {
        remarks.into_iter().filter(|remark| remark.contains("not read")).collect()
    };
    let named = unread(remarks("one"));
    assert_eq!(named, ["files beside it are not read: more/, notes.txt"]);
    // A folder of recordings.
    scratch.write("report.json", b"{}");
    scratch.write("other", b"1");
    let named = unread(remarks(""));
    assert!(named[0].ends_with("one/more/deep, one/notes.txt, other"), "{named:?}");
    // A file below a trace that is not a stream; empty files are not reported.
    scratch.write("one/ctf/below/text", b"text");
    scratch.write("one/ctf/below/empty", b"");
    let named = unread(remarks("one"));
    assert_eq!(named.len(), 1);
    assert!(named[0].contains("below/text") && !named[0].contains("empty"), "{named:?}");
}

#[test]
fn files_of_a_directory_that_are_not_read_are_named() {
    let scratch = Scratch::new("unread");
    scratch.write("a.json", br#"[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]"#);
    scratch.write("data.0", b"PERFILE2 no more");
    scratch.write("notes.txt", b"hello");
    let joined = open(std::slice::from_ref(&scratch.0), &OpenOptions::default()).unwrap();
    let remarks = joined.remarks().join("\n");
    assert!(remarks.contains("files beside it are not read"), "{remarks}");
    assert!(remarks.contains("data.0") && remarks.contains("notes.txt"), "{remarks}");
}
