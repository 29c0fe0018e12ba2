// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks that programs write into the kernel's trace, `B|10|onDraw`, recorded by this kernel and read
//! from a copy of its pages, from trace-cmd's file and from a copy in CTF: compared with the spans and
//! counters that Perfetto's trace processor finds in the kernel's own text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_model::role::{PHASE, Role};
use lateralis_model::{Event, Source};
use lateralis_traces::{Joined, OpenOptions, Options, Target, convert, open};
use serde_json::Value;

use crate::tools::TraceProcessor;

/// An instance of the kernel's tracing; removed with the test.
struct Instance(PathBuf);

impl Instance {
    fn new() -> Option<Self> {
        let name = format!("lateralis-marks-{}", std::process::id());
        let path = Path::new("/sys/kernel/tracing/instances").join(name);
        match fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                println!("SKIPPED: {}: {error}", path.display());
                None
            }
        }
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The marks to write, `P` being the process. Spans are nested and adjacent, ends have no name.
const MARKS: [&str; 18] = [
    "E|P",
    "B|P|outer",
    "B|P|in|ner",
    "C|P|queue|3",
    "E|P",
    "S|P|load|7",
    "B|P|inner",
    "I|P|now",
    "F|P|load|7",
    "E|P",
    "hello",
    "G|P|row|work|9",
    "N|P|row|there",
    "C|P|queue|-4",
    "H|P|row|9",
    "E|P",
    "S|P|again|7",
    "F|P|again|7",
];

/// Copies the files that the reader of tracefs needs.
fn save(instance: &Path, to: &Path) {
    let copy = |from: &Path, name: &str| {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, fs::read(from).unwrap_or_default()).unwrap();
    };
    for name in
        ["trace_clock", "events/header_page", "saved_cmdlines", "events/ftrace/print/format"]
    {
        let own = instance.join(name);
        let all = Path::new("/sys/kernel/tracing").join(name);
        copy(if own.exists() { &own } else { &all }, name);
    }
    for cpu in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let input = format!("if={}", instance.join(&name).display());
        let arguments = [&input, "iflag=nonblock", "bs=4096", "status=none"];
        let output = Command::new("dd").args(arguments).output().unwrap();
        let path = to.join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, output.stdout).unwrap();
    }
}

/// Spans by name and duration in microseconds, and values of counters.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    spans: Vec<(String, i64)>,
    values: Vec<(String, i64)>,
    instants: Vec<String>,
}

/// Spans and counters according to the roles of the event classes.
fn seen(trace: &Joined) -> Seen {
    let mut open: BTreeMap<(String, Vec<String>), Vec<i64>> = BTreeMap::new();
    let mut seen = Seen::default();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        if event.class.attribute(PHASE) == Some("instant") {
            seen.instants.push(event.class.name.clone());
        }
        for role in Role::of(event.class) {
            match role {
                Role::Begin(of) => {
                    let key = (of.name, values(&event, &of.keys));
                    open.entry(key).or_default().push(event.time.0);
                }
                Role::End(of) => {
                    let key = (of.name.clone(), values(&event, &of.keys));
                    let begin = open.get_mut(&key).and_then(Vec::pop);
                    let begin = begin.unwrap_or_else(|| panic!("{key:?} was not open"));
                    seen.spans.push((of.name, micros(event.time.0) - micros(begin)));
                }
                Role::Counter { field, .. } => {
                    let value = event.payload().unwrap().get(&field).unwrap().as_u64().unwrap();
                    seen.values.push((event.class.name.clone(), value as i64));
                }
                other => panic!("{other}"),
            }
        }
    }
    seen.spans.sort();
    seen
}

/// Rounded as in the kernel's text.
fn micros(nanos: i64) -> i64 {
    (nanos + 500) / 1000
}

fn values(event: &Event<'_>, keys: &[String]) -> Vec<String> {
    let value = |key: &String| {
        let field = event.payload().unwrap().get(key).unwrap();
        let number = || field.as_u64().map(|number| number.to_string());
        field.as_text().map(|text| text.into_owned()).or_else(number).unwrap()
    };
    keys.iter().map(value).collect()
}

/// Spans and counters found by the trace processor in the kernel's text.
fn of_text(processor: &TraceProcessor, text: &Path) -> Seen {
    let answers = processor.ask(
        text,
        &[
            "select name, dur from slice order by ts",
            "select t.name, c.value from counter c join track t on c.track_id = t.id \
             where t.name = 'queue' order by c.ts",
        ],
    );
    let rows = |answer: &Value| answer.as_array().unwrap().clone();
    let name = |row: &Value| row[0].as_str().unwrap().to_owned();
    let mut seen = Seen::default();
    for row in rows(&answers[0]) {
        match row[1].as_str().unwrap().parse().unwrap() {
            0 => seen.instants.push(name(&row)),
            // Its microseconds are doubles internally.
            nanos => seen.spans.push((name(&row), micros(nanos))),
        }
    }
    let value = |row: &Value| (name(row), row[1].as_f64().unwrap() as i64);
    seen.values = rows(&answers[1]).iter().map(value).collect();
    seen.spans.sort();
    seen
}

#[test]
fn marks_of_programs_are_what_the_trace_processor_makes_of_them() {
    let Some(instance) = Instance::new() else { return };
    instance.set("trace_clock", "mono");
    instance.set("tracing_on", "1");
    let pid = std::process::id().to_string();
    for mark in MARKS {
        instance.set("trace_marker", &mark.replace('P', &pid));
        // A span shorter than a microsecond is an instant in the kernel's text.
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
    instance.set("tracing_on", "0");
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("marks");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let text = directory.join("trace.txt");
    fs::write(&text, fs::read(instance.0.join("trace")).unwrap()).unwrap();
    let raw = directory.join("raw");
    save(&instance.0, &raw);

    let options = OpenOptions::default();
    let trace = open(std::slice::from_ref(&raw), &options).unwrap();
    let found = seen(&trace);
    let names: Vec<&str> = found.spans.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["again", "inner", "in|ner", "load", "outer", "work"]);
    assert_eq!(found.values, [("queue".to_owned(), 3), ("queue".to_owned(), -4)]);
    assert_eq!(found.instants, ["now", "there"]);
    // Plain text, and ends without a begin, are unchanged.
    let mut texts = 0;
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let writer = event.writer.unwrap();
        assert_eq!(writer.pid.to_string(), pid, "a mark has the process of its thread");
        texts += u32::from(event.class.name == "ftrace:print");
    }
    assert_eq!(texts, 2);
    // All of them could be parsed.
    let remarks = trace.remarks();
    assert!(!remarks.iter().any(|remark| remark.contains("marks")), "{remarks:?}");

    // A copy in CTF has the same events with the same roles.
    let copy = directory.join("ctf");
    convert(&trace, Target::Ctf, &copy, &Options::default()).unwrap();
    assert_eq!(seen(&open(std::slice::from_ref(&copy), &options).unwrap()), found);

    if let Some(processor) = TraceProcessor::find() {
        assert_eq!(of_text(&processor, &text), found);
    }
}
