// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chrome JSON, Perfetto and FXT, as read by Perfetto's own trace processor.

use std::collections::BTreeMap;

use lateralis_traces::Target;
use serde_json::{Value, json};

use crate::tools::TraceProcessor;
use crate::{rich, written};

/// Spans, instants and states: time after [`rich::BASE`], nanoseconds (-1: not ended), name, category,
/// thread.
fn slices() -> Value {
    json!([
        ["1000", "0", "app:KINDS", "app", "101"],
        ["2000", "3000", "outer", "app", "101"],
        ["2500", "200", "held", "app", null],
        ["2600", "200", "held", "app", null],
        ["3000", "1000", "inner", "app", "101"],
        ["5000", "0", "lost: 3 events (full)", "loss", null],
        ["6000", "400", "work", "app", "101"],
        ["7000", "0", "app:SEND", "app", "101"],
        ["7300", "0", "app:RECEIVE", "app", "201"],
        ["9000", "100", "RUN", "app", null],
        ["9100", "-1", "WAIT", "app", null],
        ["504000", "0", "dev:TICK", "dev", null],
        ["504000", "0", "lost: events (discarded)", "loss", null],
    ])
}

/// Maps `a.b[0]` to the text of a value.
fn flat(prefix: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let dot = if prefix.is_empty() { "" } else { "." };
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(key, value)| flat(&format!("{prefix}{dot}{key}"), value, out));
        }
        Value::Array(elements) => {
            elements
                .iter()
                .enumerate()
                .for_each(|(at, value)| flat(&format!("{prefix}[{at}]"), value, out));
        }
        Value::Null => (),
        Value::String(text) => drop(out.insert(prefix.to_owned(), text.clone())),
        other => drop(out.insert(prefix.to_owned(), other.to_string())),
    }
}

/// A target, with the expected differences of the file and its tool.
struct Case {
    target: Target,
    name: &'static str,
    /// Value of [`rich::BASE`] in the file.
    base: i64,
    /// Prefix of the names of arguments.
    prefix: &'static str,
    /// Fields that are shown differently, and the shown value.
    changed: &'static [(&'static str, Option<&'static str>)],
    /// Expected messages of the writer, with their counts.
    said: &'static [(&'static str, u64)],
    /// The tool reads names in JSON without resolving escapes.
    raw_names: bool,
    /// Value of a counter of 2⁶⁴-1 in the tool.
    huge_level: f64,
    counters: [&'static str; 2],
}

const CHARACTERS: (&str, u64) = ("bytes of texts that are no characters (replaced by U+FFFD)", 1);
const OPTIONS: (&str, u64) = ("names of the chosen options of variants", 1);

fn check(case: &Case) {
    let (path, dropped) = written(case.target, case.name);
    let mut said: Vec<_> =
        case.said.iter().map(|&(what, count)| (what.to_owned(), count)).collect();
    said.sort();
    assert_eq!(dropped, said, "{}", case.name);
    let Some(processor) = TraceProcessor::find() else { return };
    let base = case.base;
    let queries = [
        format!(
            "select s.ts - {base}, s.dur, s.name, s.category, \
             iif(t.tid in (101, 201), t.tid, null) from slice s \
             left join thread_track k on s.track_id = k.id left join thread t using (utid) \
             order by s.ts, s.name"
        ),
        "select a.key, a.value_type, a.int_value, a.real_value, a.string_value \
         from slice s join args a using (arg_set_id) where s.name = 'app:KINDS'"
            .to_owned(),
        format!(
            "select c.ts - {base}, t.name, c.value from counter c \
             join track t on c.track_id = t.id order by c.ts"
        ),
        "select o.name, i.name from flow f join slice o on f.slice_out = o.id \
         join slice i on f.slice_in = i.id"
            .to_owned(),
        "select pid, name from process where pid in (100, 200) order by pid".to_owned(),
        "select t.tid, t.name, p.pid from thread t join process p using (upid) \
         where tid in (101, 201) order by tid"
            .to_owned(),
        "select name, value from stats where value > 0 and severity != 'info'".to_owned(),
        "select s.name, s.depth from slice s where s.name in ('inner', 'outer') order by s.name"
            .to_owned(),
    ];
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let answers = processor.ask(&path, &queries);
    let [slices_seen, args, counters, flows, processes, threads, problems, depths] = &answers[..]
    else {
        panic!("{} answers", answers.len());
    };
    assert_eq!(*problems, json!([]), "{}: the tool complains", case.name);
    assert_eq!(*slices_seen, slices(), "{}", case.name);
    assert_eq!(*depths, json!([["inner", "1"], ["outer", "0"]]), "{}", case.name);
    assert_eq!(*flows, json!([["app:SEND", "app:RECEIVE"]]), "{}", case.name);
    assert_eq!(*processes, json!([["100", "ui \"one\""], ["200", "disk"]]), "{}", case.name);
    let line_feed = if case.raw_names { "main\\nline" } else { "main\nline" };
    let expected = json!([["101", line_feed, "100"], ["201", "helper ü", "200"]]);
    assert_eq!(*threads, expected, "{}", case.name);
    let [queue, heat] = case.counters;
    let expected = [("8000", queue, 5.0), ("8100", queue, case.huge_level), ("8200", heat, -1.5)];
    let counters: Vec<_> = counters
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row[0].as_str().unwrap(), row[1].as_str().unwrap(), row[2].as_f64().unwrap()))
        .collect();
    assert_eq!(counters, expected, "{}", case.name);
    check_fields(case, args);
}

fn check_fields(case: &Case, args: &Value) {
    let mut shown = BTreeMap::new();
    for row in args.as_array().unwrap() {
        let key = row[0].as_str().unwrap();
        let key = key.strip_prefix(case.prefix).unwrap_or(key);
        let value = match row[1].as_str().unwrap() {
            "bool" => json!(row[2] == "1"),
            "real" => row[3].clone(),
            "string" => row[4].clone(),
            _ => row[2].clone(),
        };
        match value.as_str().filter(|_| key == "more") {
            Some(more) => flat("", &serde_json::from_str(more).unwrap(), &mut shown),
            None if value.is_null() => drop(shown.insert(key.to_owned(), "null".to_owned())),
            None => flat(key, &value, &mut shown),
        }
    }
    let mut expected = BTreeMap::new();
    flat("", &rich::kinds(), &mut expected);
    expected.insert("cpu".to_owned(), "0".to_owned());
    expected.insert("prio".to_owned(), rich::PRIORITY.to_string());
    for (key, value) in case.changed {
        let before = match value {
            Some(value) => expected.insert((*key).to_owned(), (*value).to_owned()),
            None => expected.remove(*key),
        };
        // Every entry in the table of changes must be a change.
        assert_ne!(before.as_deref(), *value, "{}: {key}", case.name);
    }
    assert_eq!(shown, expected, "{}", case.name);
}

/// A blob as text, the option of a variant without its name.
const SHAPES: [(&str, Option<&str>); 6] = [
    ("blob", Some("00abff")),
    ("blob[0]", None),
    ("blob[1]", None),
    ("blob[2]", None),
    ("choice", Some("-5")),
    ("choice.right", None),
];
/// The tool's numbers are signed.
const HUGE: (&str, Option<&str>) = ("huge", Some("-1"));
/// Its texts end at the first NUL.
const ZERO: (&str, Option<&str>) = ("zero", Some("a"));
const NAN: (&str, Option<&str>) = ("nan", Some("null"));
const ESCAPED_ZERO: (&str, Option<&str>) = ("zero", Some("a\\u0000b"));

macro_rules! changed {
    ($($more:expr),*) => {
        &[SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[3], SHAPES[4], SHAPES[5], $($more),*]
    };
}

#[test]
fn perfetto_is_read_by_its_trace_processor() {
    check(&Case {
        target: Target::Perfetto,
        name: "rich.pftrace",
        base: rich::BASE,
        prefix: "debug.",
        changed: changed!(HUGE, ZERO, NAN),
        said: &[
            ("the type of blobs (Perfetto gets hexadecimal text)", 1),
            ("numbers that have names (Perfetto gets the name)", 3),
            ("the environment of the trace (Perfetto has no place for it)", 1),
            ("the name of the trace (Perfetto has no place for it)", 1),
            CHARACTERS,
            OPTIONS,
        ],
        raw_names: false,
        huge_level: u64::MAX as f64,
        counters: ["app:QUEUE", "app:HEAT"],
    });
}

#[test]
fn chrome_json_is_read_by_the_trace_processor_of_perfetto() {
    check(&Case {
        target: Target::Chrome,
        name: "rich.json",
        base: 0,
        prefix: "args.",
        changed: changed!(HUGE, ESCAPED_ZERO),
        said: &[
            ("the type of blobs (Chrome JSON gets hexadecimal text)", 1),
            ("the type of infinite numbers and of NaN (Chrome JSON gets text)", 2),
            ("numbers that have names (Chrome JSON gets the name)", 3),
            ("name and UUID of the trace (Chrome JSON has no place for them)", 1),
            ("in which other process a span ended (Chrome JSON gets that of its beginning)", 1),
            CHARACTERS,
            OPTIONS,
        ],
        raw_names: true,
        huge_level: -1.0,
        counters: ["app:QUEUE free", "app:HEAT celsius"],
    });
}

#[test]
fn fxt_is_read_by_the_trace_processor_of_perfetto() {
    check(&Case {
        target: Target::Fxt,
        name: "rich.fxt",
        base: rich::BASE,
        prefix: "",
        changed: changed!(HUGE, ZERO, NAN),
        said: &[
            ("the type of blobs (FXT gets hexadecimal text)", 1),
            ("numbers that have names (FXT gets the name)", 3),
            ("fields beyond 12 of an event (FXT gets JSON text)", 11),
            ("the environment of the trace (FXT has no place for it)", 1),
            ("name and UUID of the trace (FXT has no place for it)", 1),
            ("in which other process a span ended (FXT gets that of its beginning)", 1),
            CHARACTERS,
            OPTIONS,
        ],
        raw_names: false,
        huge_level: u64::MAX as f64,
        counters: ["app:QUEUE:free:0", "app:HEAT:celsius:0"],
    });
}

/// Values that the trace processor cannot show are in the files nevertheless.
#[test]
fn files_have_what_the_tool_cannot_show() {
    let (path, _) = written(Target::Chrome, "whole.json");
    let text = std::fs::read_to_string(path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let kinds = events.iter().find(|event| event["name"] == "app:KINDS").unwrap();
    assert_eq!(kinds["args"]["huge"], json!(u64::MAX));
    assert_eq!(kinds["args"]["zero"], "a\0b");
    assert_eq!(document["otherData"], json!({ "hostname": "the \"box\"", "answer": 42 }));
    for (target, name) in [
        (Target::Chrome, "again.json"),
        (Target::Perfetto, "again.pftrace"),
        (Target::Fxt, "again.fxt"),
    ] {
        let lines = crate::lines(&written(target, name).0);
        let kinds = lines.iter().find(|line| line["name"] == "app:KINDS").unwrap();
        assert_eq!(kinds["time_ns"], json!(rich::BASE + 1000), "{name}");
        assert_eq!(kinds["fields"]["huge"], json!(u64::MAX), "{name}");
        assert_eq!(kinds["fields"]["zero"], "a\0b", "{name}");
        assert_eq!((&kinds["pid"], &kinds["tid"]), (&json!(100), &json!(101)), "{name}");
        assert_eq!(
            (&kinds["process"], &kinds["thread"]),
            (&json!("ui \"one\""), &json!("main\nline"))
        );
        assert_eq!(kinds["fields"]["nan"], "NaN", "{name}");
    }
}
