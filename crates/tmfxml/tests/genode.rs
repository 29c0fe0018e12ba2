// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Genode's own analyses for Trace Compass, as they are, against what the roles of its events
//! say: the same states, calls, activities and checkpoints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lateralis_analysis::{Edge, Pairer, Side};
use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::role::Role;
use lateralis_model::{MemoryTrace, Source};
use lateralis_seedformats::genode::gather;
use lateralis_tmfxml::{Analysis, File, Found, Kind, Severity, parse};

const METADATA: &str = include_str!("../../seedformats/tests/formats/genode-metadata.txt");

fn shared(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/genode").join(name);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("SKIPPED: no {}", path.display());
    }
    text
}

/// A generator of numbers; the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn event(id: u8, time: u64, payload: &[u8]) -> (u64, Vec<u8>) {
    (time, [&[id][..], &time.to_le_bytes(), payload].concat())
}

fn checkpoint(time: u64, kind: u8, name: &str) -> (u64, Vec<u8>) {
    let name = format!("{name}\0");
    let payload = [&7u32.to_le_bytes()[..], &[0; 8], &[kind], name.as_bytes()].concat();
    event(7, time, &payload)
}

/// What a thread does: it is woken by a call or a signal, works, calls others, works, and
/// waits again. Times are its own: those of no other thread.
fn thread(random: &mut Random, lane: u64, lanes: u64) -> Vec<(u64, Vec<u8>)> {
    let mut now = 1000 + random.below(500);
    let mut events = Vec::new();
    for _ in 0..40 {
        let mut next = |random: &mut Random| {
            now += 1 + random.below(300);
            now * lanes + lane
        };
        let name = format!("rpc_{}\0", random.below(4));
        // A server is called; a client gets a signal, and its next call is what ends its work.
        let is_server = lane.is_multiple_of(2);
        if is_server {
            events.push(event(3, next(random), name.as_bytes()));
        } else {
            let payload = [&1u32.to_le_bytes()[..], &lane.to_le_bytes()].concat();
            events.push(event(6, next(random), &payload));
        }
        for depth in 0..random.below(4) {
            events.push(checkpoint(next(random), 1, &format!("part_{lane}_{depth}")));
            events.push(checkpoint(next(random), 2, &format!("part_{lane}_{depth}")));
        }
        let calls = if is_server { random.below(3) } else { 1 };
        for _ in 0..calls {
            let name = format!("out_{}\0", random.below(4));
            events.push(event(1, next(random), name.as_bytes()));
            events.push(event(2, next(random), name.as_bytes()));
        }
        if is_server {
            events.push(event(4, next(random), name.as_bytes()));
        } else {
            // So that the following signal reaches a waiting thread.
            events.push(event(1, next(random), b"wait_for_signal\0"));
        }
    }
    events
}

fn packet(label: &str, thread: &str, events: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let names = format!("{label}\0{thread}\0");
    let header_bytes = 33 + names.len();
    let bytes: Vec<u8> = events.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let times = (events.first().map_or(0, |e| e.0), events.last().map_or(0, |e| e.0));
    let mut packet = 0xc1fc_1fc1u32.to_le_bytes().to_vec();
    packet.extend_from_slice(&0u32.to_le_bytes());
    packet.extend_from_slice(&times.0.to_le_bytes());
    packet.extend_from_slice(&times.1.to_le_bytes());
    packet.extend_from_slice(&(((header_bytes + bytes.len()) * 8) as u32).to_le_bytes());
    packet.extend_from_slice(&((header_bytes * 8) as u16).to_le_bytes());
    packet.extend_from_slice(&[0x00, 0x11, 128]);
    packet.extend_from_slice(names.as_bytes());
    packet.extend_from_slice(&bytes);
    packet
}

/// A run of some components as one trace.
fn run_of(seed: u64) -> MemoryTrace {
    let mut random = Random(seed);
    let places = [
        ("init -> rom", "ep"),
        ("init -> nic_router", "ep"),
        ("init -> nic_router", "worker"),
        ("init -> timer", "ep"),
    ];
    let lanes = places.len() as u64;
    let readers: Vec<Reader> = places
        .iter()
        .enumerate()
        .map(|(lane, (label, name))| {
            let events = thread(&mut random, lane as u64, lanes);
            // Two packets, as the recorder writes one each period.
            let (first, second) = events.split_at(events.len() / 2);
            let bytes = [packet(label, name, first), packet(label, name, second)].concat();
            let file = StreamFile { name: (*name).into(), bytes: Box::new(bytes) };
            Reader::new(METADATA.as_bytes(), vec![file])
        })
        .collect();
    let sources: Vec<(&str, &dyn Source)> =
        readers.iter().map(|reader| ("run", reader as &dyn Source)).collect();
    let trace = gather(&sources, u64::MAX);
    assert!(trace.damage().is_empty() && trace.len() > 500, "{:?}", trace.damage());
    trace
}

fn found(analysis: &Analysis, trace: &MemoryTrace) -> Vec<Found> {
    let (mut run, mut found) = (analysis.start(), Vec::new());
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        run.event(&event, trace.names(), &mut found);
    }
    assert_eq!(run.finish(&mut found), Vec::<String>::new());
    found
}

/// Name, component, thread, begin and end of segments, sorted.
type Row = (String, String, String, i64, i64);

fn segments(analysis: &Analysis, trace: &MemoryTrace) -> Vec<Row> {
    let row = |found: Found| match found {
        Found::Segment(segment) => {
            let field = |name: &str| {
                let field = segment.fields.iter().find(|(known, _)| &**known == name);
                field.unwrap_or_else(|| panic!("no field {name}")).1.to_string()
            };
            let (begin, end) = (segment.begin.0, segment.end.0);
            (segment.name.clone(), field("component"), field("thread"), begin, end)
        }
        Found::State(state) => panic!("a state of a pattern: {state:?}"),
    };
    let mut rows: Vec<Row> = found(analysis, trace).into_iter().map(row).collect();
    rows.sort();
    rows
}

/// What the roles of events say.
#[derive(Default)]
struct Native {
    /// Spans by name: the event's text, component, thread, begin and end.
    spans: BTreeMap<String, Vec<Row>>,
    /// Component, thread, state, begin, end; without those of no length.
    states: Vec<Row>,
}

fn native(trace: &MemoryTrace) -> Native {
    let mut native = Native::default();
    let mut pairers: BTreeMap<String, (Pairer, BTreeMap<u64, String>)> = BTreeMap::new();
    let mut current: BTreeMap<u32, (String, i64)> = BTreeMap::new();
    let names = trace.names();
    let who = |tid: u32, pid: u32| (names.processes[&pid].clone(), names.threads[&tid].clone());
    let mut owners = BTreeMap::new();
    let mut last = 0;
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let writer = event.writer.expect("a thread");
        let (component, thread) = who(writer.tid, writer.pid);
        owners.insert(writer.tid, (component.clone(), thread.clone()));
        let text = |field: &str| {
            let field = event.payload().unwrap().get(field).unwrap();
            field.as_text().unwrap().into_owned()
        };
        last = event.time.0;
        for role in Role::of(event.class) {
            let (of, side) = match role {
                Role::Begin(of) => (of, Side::Begin),
                Role::End(of) => (of, Side::End),
                Role::State { field, .. } => {
                    let state = text(&field);
                    let before = current.get(&writer.tid);
                    if before.is_some_and(|(known, _)| *known == state) {
                        continue;
                    }
                    let before = current.insert(writer.tid, (state, event.time.0));
                    if let Some((state, begin)) = before {
                        native.states.push((component.clone(), thread.clone(), state, begin, last));
                    }
                    continue;
                }
                _ => continue,
            };
            let (pairer, keys) = pairers.entry(of.name.clone()).or_default();
            let key = (!of.keys.is_empty()).then(|| {
                let key = text(&of.keys[0]);
                let known = keys.iter().find(|(_, known)| **known == key).map(|(n, _)| *n);
                known.unwrap_or_else(|| {
                    keys.insert(keys.len() as u64, key);
                    keys.len() as u64 - 1
                })
            });
            let edge = Edge { time: event.time, side, key, writer: Some(writer) };
            if let Some(span) = pairer.push(edge) {
                let row = (text("name"), component.clone(), thread.clone());
                let (begin, end) = (span.begin.time.0, span.end.time.0);
                let rows = native.spans.entry(of.name.clone()).or_default();
                rows.push((row.0, row.1, row.2, begin, end));
            }
        }
    }
    for (tid, (state, begin)) in current {
        let (component, thread) = owners[&tid].clone();
        native.states.push((component, thread, state, begin, last));
    }
    native.spans.values_mut().for_each(|rows| rows.sort());
    native.states.sort();
    native
}

fn analysis<'f>(file: &'f File, id: &str) -> &'f Analysis {
    file.analyses.iter().find(|analysis| analysis.id == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn the_component_analysis_of_genode_runs_as_it_is() {
    let Some(text) = shared("componentanalysis.xml") else { return };
    let file = parse(&text);
    assert!(!file.has_errors(), "{:?}", file.problems);
    let notes: Vec<_> = file.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(notes, [Severity::Note], "the view is told: {:?}", file.problems);
    for seed in 1..20 {
        let trace = run_of(seed);
        let native = native(&trace);
        // States.
        let states = analysis(&file, "genode.componentstate");
        assert_eq!(states.kind, Kind::StateProvider);
        let mut rows: Vec<Row> = Vec::new();
        for found in found(states, &trace) {
            let Found::State(state) = found else { panic!("{found:?}") };
            let path: Vec<&str> = state.path.iter().map(|name| &**name).collect();
            let ["Genode", "Component", component, "Thread", thread, "state"] = path[..] else {
                panic!("{path:?}")
            };
            let (begin, end) = (state.begin.0, state.end.0);
            let value = state.value.to_string();
            rows.push((component.to_owned(), thread.to_owned(), value, begin, end));
        }
        rows.sort();
        assert_eq!(rows, native.states);
        assert!(rows.len() > 200, "{}", rows.len());
        // Calls.
        let calls = segments(analysis(&file, "genode.roundtrippattern"), &trace);
        assert_eq!(calls, native.spans["rpc"]);
        assert!(!calls.is_empty());
        // Activities are the times in which a thread is ready, but for one at the end.
        let activities = segments(analysis(&file, "genode.componentpattern"), &trace);
        let end = trace.interval().end.unwrap().0;
        let ready = native.states.iter().filter(|row| row.2 == "ready");
        let ready: Vec<Row> = ready
            .filter(|row| row.4 < end)
            .map(|row| (row.0.clone(), row.0.clone(), row.1.clone(), row.3, row.4))
            .collect();
        let of = |rows: &[Row]| rows.iter().filter(|row| row.4 < end).cloned().collect::<Vec<_>>();
        assert_eq!(of(&activities), ready);
        assert!(ready.len() > 100);
    }
}

#[test]
fn the_checkpoint_analysis_of_genode_runs_as_it_is() {
    let Some(text) = shared("checkpointanalysis.xml") else { return };
    let file = parse(&text);
    assert!(file.problems.is_empty(), "{:?}", file.problems);
    for seed in 1..20 {
        let trace = run_of(seed);
        let durations = segments(analysis(&file, "genode.checkpointpattern"), &trace);
        assert_eq!(durations, native(&trace).spans["checkpoint"]);
        assert!(durations.len() > 50, "{}", durations.len());
    }
}
