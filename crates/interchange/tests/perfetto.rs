// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Perfetto in both directions, and beside Perfetto's own protocol descriptions in
//! Python where those are installed.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

use lateralis_interchange::{chrome, jsonl, perfetto};
use lateralis_model::{Event, MemoryTrace, Source};

fn real(name: &str) -> Option<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let path = folder.join("perfetto-MIT").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        println!("SKIPPED: {} is absent", path.display());
    }
    bytes
}

fn read(bytes: &[u8]) -> MemoryTrace {
    assert!(perfetto::sniff(&bytes[..bytes.len().min(4096)]));
    perfetto::read("t", bytes, 1 << 30).unwrap()
}

fn counts(trace: &MemoryTrace, key: impl Fn(&Event<'_>) -> String) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        *counts.entry(key(&event)).or_default() += 1;
    }
    counts
}

/// Counts by Google's descriptions of the protocol (`pip install perfetto`), for the
/// real traces.
#[test]
fn kernel_events_are_those_that_perfetto_counts() {
    let Some(bytes) = real("test_trace.perfetto-trace") else { return };
    let trace = read(&bytes);
    let counts = counts(&trace, |event| event.class.name.clone());
    for (name, count) in [
        ("sched_switch", 15_267),
        ("cpu_idle", 11_687),
        ("sched_wakeup", 8_743),
        ("cpu_frequency", 168),
        ("task_newtask", 4),
        ("task_rename", 4),
        ("sched_process_exit", 4),
    ] {
        assert_eq!(counts.get(name), Some(&count), "{name}: {counts:?}");
    }
    assert!(trace.damage().is_empty());
    assert!(trace.trace().clocks[0].unix_epoch);
}

#[test]
fn counters_of_a_graphics_processor_are_read() {
    let Some(bytes) = real("androidGpu.pftrace") else { return };
    let trace = read(&bytes);
    assert!(trace.damage().is_empty());
    assert!(trace.len() >= 5783, "{} events in 5783 packets", trace.len());
    let mut events = trace.events();
    let event = events.next_event().unwrap();
    assert!(!event.class.name.starts_with("gpu_counter_"), "{}", event.class.name);
}

#[test]
fn a_trace_of_a_browser_is_read() {
    let Some(bytes) = real("chrome.pftrace") else { return };
    // Packed as a whole, which who opens the file undoes.
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).unwrap();
    let trace = read(&unpacked);
    assert!(trace.damage().is_empty());
    // As many as the file has packets with a track event.
    assert_eq!(trace.len(), 292_326);
    let phases = counts(&trace, |event| {
        let roles = lateralis_model::role::Role::of(event.class).map(|role| role.to_string());
        roles.map(|role| role.split(' ').next().unwrap_or("").to_owned()).next().unwrap_or_default()
    });
    // Slices that begin, and the legacy phases b and S; slices that end, and e and F.
    assert_eq!(phases["begin"], 116_873 + 25_291 + 496 + 374);
    assert_eq!(phases["end"], 142_091 + 428 + 377);
}

const CHROME: &str = r#"[
 {"ph":"M","name":"process_name","pid":1,"args":{"name":"ui"}},
 {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"main"}},
 {"ph":"B","name":"outer","cat":"a","ts":1,"pid":1,"tid":2,"args":{"n":1,"s":"x","d":{"k":[1,2]}}},
 {"ph":"X","name":"draw","cat":"a","ts":2,"dur":1.5,"pid":1,"tid":2,"args":{"r":0.5,"m":-3}},
 {"ph":"E","name":"outer","cat":"a","ts":4,"pid":1,"tid":2},
 {"ph":"b","name":"load","cat":"net","id":"0x1f","ts":6,"pid":1,"tid":2},
 {"ph":"b","name":"load","cat":"net","id":"0x20","ts":7,"pid":1,"tid":2},
 {"ph":"e","name":"load","cat":"net","id":"0x1f","ts":8,"pid":1,"tid":3},
 {"ph":"e","name":"load","cat":"net","id":"0x20","ts":9,"pid":1,"tid":2},
 {"ph":"s","name":"msg","cat":"ipc","id":1,"ts":11,"pid":1,"tid":2},
 {"ph":"f","name":"msg","cat":"ipc","id":1,"ts":13,"pid":2,"tid":4},
 {"ph":"C","name":"mem","ts":21,"pid":1,"tid":2,"args":{"used":7}},
 {"ph":"i","name":"tick","ts":22,"pid":1,"tid":2}]"#;

fn written() -> Vec<u8> {
    let trace = chrome::read("t", CHROME.as_bytes(), 1 << 20).unwrap();
    let mut out = Vec::new();
    perfetto::write(&trace, &mut out).unwrap();
    out
}

#[test]
fn what_is_written_reads_back() {
    let trace = read(&written());
    assert!(trace.damage().is_empty() && trace.remarks().is_empty(), "{:?}", trace.remarks());
    let mut lines = Vec::new();
    jsonl::write(&trace, &mut lines).unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| (line["time_ns"].as_i64().unwrap(), line["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        seen,
        [
            (1000, "outer"),
            (2000, "draw"),
            (3500, "draw"),
            (4000, "outer"),
            (6000, "load"),
            (7000, "load"),
            (8000, "load"),
            (9000, "load"),
            (11_000, "msg"),
            (13_000, "msg"),
            (21_000, "mem"),
            (22_000, "tick"),
        ]
    );
    assert_eq!(lines[0]["fields"], serde_json::json!({"n":1,"s":"x","d":{"k":[1,2]}}));
    assert_eq!(lines[0]["thread"], "main");
    assert_eq!(lines[0]["process"], "ui");
    assert_eq!(lines[10]["fields"]["value"], 7);
    // The flow leaves with the same number with which it arrives.
    assert_eq!(lines[8]["context"]["flow_out"], lines[9]["context"]["flow_in"]);
    assert!(lines[8]["context"]["flow_out"].is_u64());
}

#[test]
fn perfettos_own_descriptions_read_what_is_written() {
    let script = r#"
import sys, collections
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace()
trace.ParseFromString(sys.stdin.buffer.read())
names, tracks, kinds = {}, {}, collections.Counter()
for p in trace.packet:
    for n in p.interned_data.event_names: names[n.iid] = n.name
    if p.HasField('track_descriptor'): tracks[p.track_descriptor.uuid] = p.track_descriptor
    if p.HasField('track_event'):
        e = p.track_event
        assert e.track_uuid in tracks
        kinds[e.type] += 1
print(kinds[1], kinds[2], kinds[3], kinds[4], sorted(names.values()),
      sorted(t.thread.thread_name for t in tracks.values() if t.HasField('thread')))
"#;
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("python3".to_owned());
    let found = Command::new(&python).args(["-c", "import perfetto.protos"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: python3 has no package perfetto");
        return;
    }
    let output = run(&python, script, &written());
    assert_eq!(
        output.trim(),
        "4 4 3 1 ['draw', 'load', 'msg', 'outer', 'tick'] ['', 'main']",
        "slices begun, ended, instants, counters, names, threads"
    );
}

/// Samples made by the classes that Perfetto's descriptions give.
const SAMPLES: &str = r#"
import sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace()
def packet():
    made = trace.packet.add()
    made.trusted_packet_sequence_id = 7
    return made
first = packet()
first.sequence_flags = 1
first.thread_descriptor.pid, first.thread_descriptor.tid = 50, 51
first.thread_descriptor.reference_timestamp_us = 1000
data = first.interned_data
for iid, name in [(1, b'main'), (2, b'work'), (3, b'leaf')]:
    of = data.function_names.add(); of.iid, of.str = iid, name
for iid, name in [(1, b'usr'), (2, b'bin'), (3, b'prog')]:
    of = data.mapping_paths.add(); of.iid, of.str = iid, name
mapping = data.mappings.add(); mapping.iid = 9
mapping.path_string_ids.extend([1, 2, 3])
for iid, function in [(1, 1), (2, 2), (3, 3), (4, 0)]:
    of = data.frames.add()
    of.iid, of.mapping_id, of.rel_pc = iid, 9, 0x1230 + iid
    if function: of.function_name_id = function
for iid, frames in [(1, [1, 2]), (2, [1, 2, 3]), (3, [1, 4])]:
    of = data.callstacks.add(); of.iid = iid
    of.frame_ids.extend(frames)
for number, callstack in enumerate([1, 2, 2, 3, 77]):
    one = packet()
    one.timestamp = 5000 + 100 * number
    sample = one.perf_sample
    sample.cpu, sample.pid, sample.tid, sample.cpu_mode = 1, 50, 52, 2
    if callstack == 77: sample.sample_skipped_reason = 2
    else: sample.callstack_iid = callstack
lost = packet()
lost.timestamp = 5600
lost.perf_sample.cpu, lost.perf_sample.kernel_records_lost = 1, 3
stream = packet().streaming_profile_packet
stream.callstack_iid.extend([2, 1])
stream.timestamp_delta_us.extend([5, 7])
sys.stdout.buffer.write(trace.SerializeToString())
"#;

#[test]
fn samples_of_stacks_are_read() {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("python3".to_owned());
    let found = Command::new(&python).args(["-c", SAMPLES]).output().unwrap();
    if !found.status.success() {
        println!("SKIPPED: python3 has no package perfetto");
        return;
    }
    let trace = read(&found.stdout);
    assert!(trace.damage().is_empty());
    let mut lines = Vec::new();
    jsonl::write(&trace, &mut lines).unwrap();
    let samples: Vec<serde_json::Value> = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["fields"].get("stack_functions").is_some())
        .collect();
    let seen: Vec<String> = samples
        .iter()
        .map(|line| {
            format!("{} {} {}", line["time_ns"], line["name"], line["fields"]["stack_functions"])
        })
        .collect();
    let perf = |time: u64, stack: &str| format!("{time} \"perf_sample\" {stack}");
    let own = |time: u64, stack: &str| format!("{time} \"stack_sample\" {stack}");
    assert_eq!(
        seen,
        [
            perf(5000, r#"["work","main"]"#),
            perf(5100, r#"["leaf","work","main"]"#),
            perf(5200, r#"["leaf","work","main"]"#),
            perf(5300, r#"["0x1234","main"]"#),
            perf(5400, "[]"),
            own(1_005_000, r#"["leaf","work","main"]"#),
            own(1_012_000, r#"["work","main"]"#),
        ]
    );
    let images = &samples[3]["fields"]["stack_images"];
    assert_eq!(images, &serde_json::json!(["/usr/bin/prog", "/usr/bin/prog"]));
    assert_eq!(trace.losses().len(), 1);
}

fn run(python: &str, script: &str, input: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new(python)
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let good = written();
    let whole = read(&good).len();
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        let Ok(trace) = perfetto::read("t", &bytes, 1 << 20) else { continue };
        assert!(trace.len() <= whole + 8, "byte {at}");
        // A changed length costs its packet and, at most, a few more before the
        // chain is found again.
        assert!(trace.len() + 4 >= whole, "byte {at}: {} of {whole}", trace.len());
    }
    for cut in 0..good.len() {
        if let Ok(trace) = perfetto::read("t", &good[..cut], 1 << 20) {
            assert!(trace.len() <= whole);
        }
    }
}

#[test]
fn noise_is_no_trace() {
    assert!(!perfetto::sniff(b""));
    assert!(!perfetto::sniff(b"hello, world, this is text"));
    assert!(!perfetto::sniff(&[0; 100]));
    assert!(perfetto::read("t", b"hello", 1 << 20).is_err());
}
