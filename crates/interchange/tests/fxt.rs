// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FXT in both directions, and beside the package `fxt` of Python where it is installed.

use std::io::Write;
use std::process::{Command, Stdio};

use lateralis_interchange::{chrome, fxt, jsonl};
use lateralis_model::{LossCause, MemoryTrace, Source};
use serde_json::{Value, json};

fn lines(trace: &MemoryTrace) -> Vec<Value> {
    let mut out = Vec::new();
    jsonl::write(trace, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text(word: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..word.len()].copy_from_slice(word);
    u64::from_le_bytes(bytes)
}

/// One record of every type, word by word as the specification draws them.
fn every_record() -> Vec<u8> {
    words(&[
        fxt_magic(),
        // Provider info: id 7, name "prov".
        2 << 4 | 1 << 16 | 7 << 20 | 4 << 52,
        text(b"prov"),
        // Initialization: 2 ticks a nanosecond.
        1 | 2 << 4,
        2_000_000_000,
        // Strings 1 "cat", 2 "name", 3 "arg".
        2 | 2 << 4 | 1 << 16 | 3 << 32,
        text(b"cat"),
        2 | 2 << 4 | 2 << 16 | 4 << 32,
        text(b"name"),
        2 | 2 << 4 | 3 << 16 | 3 << 32,
        text(b"arg"),
        // Thread 1: process 10, thread 11.
        3 | 3 << 4 | 1 << 16,
        10,
        11,
        // Kernel objects: process 10 "proc", thread 11 "thr" of process 10.
        7 | 3 << 4 | 1 << 16 | 0x8004 << 24,
        10,
        text(b"proc"),
        7 | 3 << 4 | 2 << 16 | 0x8003 << 24,
        11,
        text(b"thr"),
        // Instant at 200 ticks with seven arguments.
        4 | 19 << 4 | 7 << 20 | 1 << 24 | 1 << 32 | 2 << 48,
        200,
        1 << 4 | 3 << 16,
        1 | 2 << 4 | 0x8001 << 16 | (u64::from(-5i32 as u32)) << 32,
        text(b"i"),
        2 | 2 << 4 | 0x8001 << 16 | 6 << 32,
        text(b"u"),
        3 | 3 << 4 | 0x8001 << 16,
        text(b"l"),
        -7i64 as u64,
        4 | 3 << 4 | 0x8001 << 16,
        text(b"m"),
        u64::MAX,
        5 | 3 << 4 | 0x8001 << 16,
        text(b"d"),
        0.25f64.to_bits(),
        6 | 3 << 4 | 0x8001 << 16 | 2 << 32,
        text(b"s"),
        // A word that nothing uses: sizes count.
        0,
    ])
}

fn fxt_magic() -> u64 {
    0x0016_5478_4604_0010
}

/// The other types of records; their references are those of [`every_record`].
fn more_records() -> Vec<u8> {
    let event = |kind: u64, size: u64| 4 | size << 4 | kind << 16 | 1 << 24 | 1 << 32 | 2 << 48;
    words(&[
        event(2, 2),
        300,
        event(3, 2),
        320,
        event(4, 3),
        400,
        440,
        event(5, 3),
        500,
        0x99,
        event(7, 3),
        520,
        0x99,
        event(8, 3),
        600,
        0x77,
        event(10, 3),
        620,
        0x77,
        // A log record with an inline thread.
        9 | 5 << 4 | 5 << 16,
        700,
        20,
        21,
        text(b"hello"),
        // Context switch on processor 3, wake-up of thread 11 on it.
        8 | 4 << 4 | 3 << 20 | 2 << 36 | 1 << 60,
        800,
        11,
        12,
        8 | 3 << 4 | 3 << 20 | 2 << 60,
        900,
        11,
        // A blob of three bytes, a userspace object, a large blob without metadata.
        5 | 2 << 4 | 2 << 16 | 3 << 32 | 1 << 48,
        text(b"xyz"),
        6 | 2 << 4 | 1 << 16 | 2 << 24,
        0xabc,
        15 | 4 << 4 | 1 << 40,
        1 | 2 << 16,
        3,
        text(b"big"),
        // The provider's buffer was full.
        1 << 4 | 3 << 16 | 7 << 20,
    ])
}

#[test]
fn every_type_of_record_is_read() {
    let mut bytes = every_record();
    bytes.extend(more_records());
    assert!(fxt::sniff(&bytes));
    let trace = fxt::read("t", &bytes, 1 << 20).unwrap();
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let lines = lines(&trace);
    assert_eq!(
        lines[0]["fields"],
        json!({"arg": null, "i": -5, "u": 6, "l": -7, "m": u64::MAX, "d": 0.25, "s": "name"})
    );
    assert_eq!((&lines[0]["time_ns"], &lines[0]["category"]), (&json!(100), &json!("cat")));
    assert_eq!((&lines[0]["process"], &lines[0]["thread"]), (&json!("proc"), &json!("thr")));
    let seen: Vec<_> = lines[1..]
        .iter()
        .filter(|line| line.get("name").is_some())
        .map(|line| (line["time_ns"].as_i64().unwrap(), line["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        seen,
        [
            (150, "name"),
            (160, "name"),
            (200, "name"),
            (250, "name"),
            (260, "name"),
            (300, "name"),
            (310, "name"),
            (350, "log"),
            (400, "context_switch"),
            (450, "thread_wakeup"),
            (450, "name"),
            (450, "name"),
            (450, "name"),
        ]
    );
    assert_eq!(lines[3]["context"]["dur"], 20);
    assert_eq!(lines[4]["context"]["id"], 0x99);
    assert_eq!((&lines[8]["pid"], &lines[8]["tid"]), (&json!(20), &json!(21)));
    assert_eq!(lines[8]["fields"]["message"], "hello");
    assert_eq!(lines[9]["cpu"], 3);
    assert_eq!(
        lines[9]["fields"],
        json!({"outgoing_thread": 11, "outgoing_state": 2, "incoming_thread": 12})
    );
    assert_eq!(trace.losses().len(), 1);
    assert_eq!(trace.losses()[0].cause, LossCause::Full);
    assert_eq!(trace.trace().env("provider.7").unwrap().as_text(), Some("prov"));
}

const CHROME: &str = r#"[
 {"ph":"M","name":"process_name","pid":1,"args":{"name":"ui"}},
 {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"main"}},
 {"ph":"B","name":"outer","cat":"a","ts":1,"pid":1,"tid":2,"args":{"n":1,"s":"x","b":true}},
 {"ph":"X","name":"draw","cat":"a","ts":2,"dur":1.5,"pid":1,"tid":2,"args":{"r":0.5,"m":-3}},
 {"ph":"E","name":"outer","cat":"a","ts":4,"pid":1,"tid":2},
 {"ph":"b","name":"load","cat":"net","id":"0x1f","ts":6,"pid":1,"tid":2},
 {"ph":"e","name":"load","cat":"net","id":"0x1f","ts":8,"pid":1,"tid":3},
 {"ph":"C","name":"mem","ts":21,"pid":1,"tid":2,"args":{"used":7}},
 {"ph":"i","name":"tick","ts":22,"pid":1,"tid":2}]"#;

fn written() -> Vec<u8> {
    let trace = chrome::read("t", CHROME.as_bytes(), 1 << 20).unwrap();
    let mut out = Vec::new();
    fxt::write(&trace, &mut out).unwrap();
    out
}

#[test]
fn what_is_written_reads_back() {
    let trace = fxt::read("t", &written(), 1 << 20).unwrap();
    assert!(trace.damage().is_empty() && trace.remarks().is_empty(), "{:?}", trace.damage());
    let lines = lines(&trace);
    let seen: Vec<_> = lines
        .iter()
        .map(|line| (line["time_ns"].as_i64().unwrap(), line["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        seen,
        [
            (1000, "outer"),
            (2000, "draw"),
            (4000, "outer"),
            (6000, "load"),
            (8000, "load"),
            (21_000, "mem"),
            (22_000, "tick"),
        ]
    );
    assert_eq!(lines[0]["fields"], json!({"n": 1, "s": "x", "b": true}));
    assert_eq!((&lines[0]["process"], &lines[0]["thread"]), (&json!("ui"), &json!("main")));
    assert_eq!(lines[1]["context"]["dur"], 1500);
    assert_eq!(lines[3]["context"]["id"], lines[4]["context"]["id"]);
    assert_eq!(lines[5]["fields"]["used"], 7);
}

#[test]
fn the_python_package_reads_what_is_written() {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("python3".to_owned());
    let found = Command::new(&python).args(["-c", "import fxt.reader"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: python3 has no package fxt");
        return;
    }
    let script = r#"
import sys, io
from fxt.reader import parse_records
result = parse_records(io.BytesIO(sys.stdin.buffer.read()))
assert not result.had_unexpected_eof
for r in result.records_by_provider[1].records:
    kind = type(r).__name__.removesuffix('Record')
    if kind == 'KernelObject': print(kind, r.id, r.name, r.args)
    else:
        args = {k: v for k, v in r.args.items() if k not in ('dur', 'id')}
        who = (r.thread.process_id, r.thread.thread_id)
        print(kind, r.timestamp_ns, r.name, r.category, *who, args, getattr(r, 'duration_ns', ''))
"#;
    let mut child = Command::new(&python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&written()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(
        output,
        "KernelObject 1 ui {}\n\
         KernelObject 2 main {'process': 1}\n\
         DurationBeginEvent 1000 outer a 1 2 {'n': 1, 's': 'x', 'b': True} \n\
         DurationCompleteEvent 2000 draw a 1 2 {'r': 0.5, 'm': -3} 3500\n\
         DurationEndEvent 4000 outer a 1 2 {} \n\
         AsyncBeginEvent 6000 load net 1 2 {} \n\
         AsyncEndEvent 8000 load net 1 3 {} \n\
         CounterEvent 21000 mem  1 2 {'used': 7} \n\
         InstantEvent 22000 tick  1 2 {} \n",
        "the package takes the end of a complete event for its duration"
    );
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let good = written();
    let whole = fxt::read("t", &good, 1 << 20).unwrap().len();
    for at in 8..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x41;
        let trace = fxt::read("t", &bytes, 1 << 20).unwrap();
        assert!(trace.len() <= whole + 2 && trace.len() + 4 >= whole, "byte {at}: {}", trace.len());
    }
    for cut in 8..good.len() {
        let trace = fxt::read("t", &good[..cut], 1 << 20).unwrap();
        assert!(trace.len() <= whole);
        assert!(cut % 8 == 0 || !trace.damage().is_empty());
    }
    assert!(fxt::read("t", b"no trace", 1 << 20).is_err());
}
