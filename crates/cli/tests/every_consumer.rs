// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random traces, with ties, several streams, threads and processes, of one machine or two, with or without
//! lost events. Statistics, tables, SQL and the viewer give the same results, which are those of a
//! brute-force search through all events. A result marked exact is true whatever was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::process::Command;

use lateralis_model::Host;
use serde_json::{Value, json};

use crate::ctf2::{self, csv, table};
use crate::place::Place;
use crate::view::client::{Viewer, get};
use crate::view::threads;

/// Event classes and their meaning. All have the fields `key` and `value`.
const CLASSES: [(&str, &str); 10] = [
    ("ask", "begin request key key"),
    ("answer", "end request key key"),
    ("call", "begin work"),
    ("return", "end work"),
    ("put", "send queue key key"),
    ("take", "recv queue key key"),
    ("step", "state value"),
    ("mode", "state value as gear key key"),
    ("count", "counter value as load key key"),
    // Recognised by its name, with fields of its own: `key` is the previous thread, `value` the next.
    ("sched_switch", ""),
];
const ASK: usize = 0;
const ANSWER: usize = 1;
const CALL: usize = 2;
const RETURN: usize = 3;
const PUT: usize = 4;
const TAKE: usize = 5;
const SWITCH: usize = 9;

/// Offset of the second machine's thread ids (docs/guides/several-recordings.md).
const MACHINE: u32 = 100_000_000;
/// The stream recorded on the second machine, if there are two.
const OTHER_MACHINE: usize = 2;

/// Number of events in a packet of a stream.
const IN_PACKET: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    class: usize,
    time: u64,
    pid: u32,
    tid: u32,
    key: u64,
    value: u64,
}

/// Streams of packets of events; each event has a flag that says whether it is lost.
type Streams = Vec<Vec<Vec<(Event, bool)>>>;

/// Source of an event's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The event itself.
    Told,
    /// The event itself; the last stream is a recording of another machine.
    TwoMachines,
    /// The previous switch on its CPU; a process has one thread.
    BySwitches,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Generates some hundred events in three streams. If a packet loses events, these are its last ones.
fn streams(random: &mut Random, is_lossy: bool, who: Who) -> Streams {
    let mut all: Vec<Vec<Event>> = vec![Vec::new(); 3];
    let mut time = 1000;
    let mut next_flow = 0;
    let mut sent: Vec<u64> = Vec::new();
    // Before the first switch of a CPU, its running thread is unknown.
    let mut on = [6, 7, 8_u32];
    for _ in 0..300 {
        // Every third event has the same time as the previous one.
        time += random.below(3) * (1 + random.below(40));
        let stream = random.below(3) as usize;
        let class = random.below(CLASSES.len() as u64) as usize;
        let (tid, pid) = match who {
            Who::Told => {
                let tid = 1 + random.below(5) as u32;
                (tid, 1 + tid / 3)
            }
            Who::TwoMachines => {
                let tid = 1 + random.below(5) as u32;
                let host = Host::new(u32::from(stream == OTHER_MACHINE));
                (host.thread(tid), host.thread(1 + tid / 3))
            }
            Who::BySwitches => (on[stream], on[stream]),
        };
        // The idle thread does nothing.
        if tid == 0 && class != SWITCH {
            continue;
        }
        let mut key = random.below(3);
        if class == SWITCH {
            let next = random.below(6) as u32;
            if who != Who::BySwitches || (next != 0 && on.contains(&next)) || next == on[stream] {
                continue;
            }
            let of = Event { class, time, pid, tid, key: tid.into(), value: next.into() };
            on[stream] = next;
            all[stream].push(of);
            continue;
        }
        if class == PUT {
            (key, next_flow) = (next_flow, next_flow + 1);
            sent.push(key);
        } else if class == TAKE {
            if sent.is_empty() {
                continue;
            }
            key = sent.remove(random.below(sent.len() as u64) as usize);
        }
        let value = random.below(4);
        all[stream].push(Event { class, time, pid, tid, key, value });
    }
    let packets = |events: Vec<Event>| -> Vec<Vec<(Event, bool)>> {
        let mut packets = Vec::new();
        for packet in events.chunks(IN_PACKET) {
            let from = if is_lossy && random.below(5) == 0 {
                1 + random.below(IN_PACKET as u64 - 1) as usize
            } else {
                IN_PACKET
            };
            packets.push(packet.iter().enumerate().map(|(at, e)| (*e, at >= from)).collect());
        }
        packets
    };
    all.into_iter().map(packets).collect()
}

/// Writes the recordings of all machines, and returns their names.
fn write(place: &Place, streams: &Streams, who: Who) -> Vec<&'static str> {
    if who != Who::TwoMachines {
        write_machine(place, "trace", streams, 0..streams.len(), who);
        return vec!["trace"];
    }
    write_machine(place, "here", streams, 0..OTHER_MACHINE, who);
    write_machine(place, "there", streams, OTHER_MACHINE..streams.len(), who);
    vec!["here", "there"]
}

fn write_machine(place: &Place, name: &str, streams: &Streams, which: Range<usize>, who: Who) {
    let folder = place.0.join(name);
    fs::create_dir(&folder).expect("a new folder");
    let mut fragments = ctf2::beginning(&[ctf2::stream_id()]);
    fragments[2]["environment"] = json!({ "hostname": name });
    let context = [
        ("bits", ctf2::number(64, Some("packet-content-length"))),
        ("all", ctf2::number(64, Some("packet-total-length"))),
        ("begin", ctf2::number(64, ctf2::TIME)),
        ("end", ctf2::number(64, Some("packet-end-default-clock-timestamp"))),
        ("lost", ctf2::number(64, Some("discarded-event-record-counter-snapshot"))),
        ("cpu_id", ctf2::number(32, None)),
    ];
    let thread = [("vpid", ctf2::number(32, None)), ("vtid", ctf2::number(32, None))];
    let is_told = who != Who::BySwitches;
    fragments.push(ctf2::stream(0, &context, if is_told { &thread } else { &[] }));
    for (id, (name, clause)) in CLASSES.iter().enumerate() {
        let fields = if id == SWITCH { ["prev_tid", "next_tid"] } else { ["key", "value"] };
        fragments.push(ctf2::event(0, id, name, clause, &fields));
    }
    fs::write(folder.join("metadata"), ctf2::text(&fragments)).expect("its metadata");
    for cpu in which {
        let packets = &streams[cpu];
        let (mut bytes, mut lost) = (Vec::new(), 0_u64);
        for packet in packets {
            let mut events = Vec::new();
            for (event, is_lost) in packet {
                lost += u64::from(*is_lost);
                if *is_lost {
                    continue;
                }
                events.extend((event.class as u32).to_le_bytes());
                events.extend(event.time.to_le_bytes());
                if who != Who::BySwitches {
                    // In the trace, ids of processes and threads have no machine offset.
                    let step =
                        Host::new(u32::from(who == Who::TwoMachines && cpu == OTHER_MACHINE))
                            .steps()
                            .1;
                    events.extend((event.pid - step).to_le_bytes());
                    events.extend((event.tid - step).to_le_bytes());
                }
                events.extend(event.key.to_le_bytes());
                events.extend(event.value.to_le_bytes());
            }
            let (first, last) = (packet[0].0.time, packet[packet.len() - 1].0.time);
            let bits = 8 * (4 + 5 * 8 + 4 + events.len() as u64);
            bytes.extend(0_u32.to_le_bytes());
            for number in [bits, bits, first, last, lost] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend((cpu as u32).to_le_bytes());
            bytes.extend(events);
        }
        fs::write(folder.join(format!("s{cpu}")), bytes).expect("a stream");
    }
}

/// Returns the events in time order, those of equal time by stream; with or without the lost ones.
fn in_order(streams: &Streams, with_lost: bool) -> Vec<(usize, Event)> {
    let mut all: Vec<(usize, Event)> = Vec::new();
    for (number, packets) in streams.iter().enumerate() {
        let events = packets.iter().flatten().filter(|(_, is_lost)| with_lost || !is_lost);
        all.extend(events.map(|(event, _)| (number, *event)));
    }
    all.sort_by_key(|(stream, event)| (event.time, *stream));
    all
}

/// A span: name, key, begin, end, and the thread of the begin. For a span without length the thread is 0: it
/// is unknown which of several begins of its time belongs to it.
type Span = (String, String, Option<u64>, Option<u64>, u32);

/// Results of the brute-force search.
struct Found {
    /// Spans with both ends.
    spans: Vec<Span>,
    /// Spans with an end on each machine, whose clocks have an unknown offset.
    across: BTreeSet<Span>,
    /// Number of spans with only a begin, or only an end.
    halves: BTreeMap<&'static str, [u64; 2]>,
}

/// Finds spans by examining everything that is open at each end: spans that began at an earlier time, or
/// earlier in the same stream; only if there is none, spans that began at the same time in another stream.
fn spans(events: &[(usize, Event)]) -> Found {
    let mut open: Vec<(usize, Event)> = Vec::new();
    let (mut found, mut across, mut halves) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut at = 0;
    while at < events.len() {
        let time = events[at].1.time;
        let group = events[at..].iter().take_while(|(_, event)| event.time == time).count();
        let mut later = Vec::new();
        for (stream, event) in &events[at..at + group] {
            match event.class {
                ASK | CALL => {
                    open.push((*stream, *event));
                    continue;
                }
                ANSWER | RETURN => {}
                _ => continue,
            }
            // Within a stream, a begin after an end does not belong to that end.
            let can_be = |of: &(usize, Event)| of.1.time < time || of.0 == *stream;
            match begin_of(&open, event, can_be) {
                Some(index) => pair(open.remove(index).1, *event, &mut found, &mut across),
                None => later.push((*stream, *event)),
            }
        }
        for (stream, end) in later {
            let can_be = |of: &(usize, Event)| of.0 != stream;
            match begin_of(&open, &end, can_be) {
                Some(index) => pair(open.remove(index).1, end, &mut found, &mut across),
                None => {
                    let name = if end.class == ANSWER { "request" } else { "work" };
                    let halves: &mut [u64; 2] = halves.entry(name).or_default();
                    halves[1] += 1;
                }
            }
        }
        at += group;
    }
    for (_, of) in open {
        let name = if of.class == ASK { "request" } else { "work" };
        halves.entry(name).or_default()[0] += 1;
    }
    found.sort();
    Found { spans: found, across, halves }
}

/// Returns the position of an end's begin: the last one of its own thread, else of its process, else of any.
fn begin_of(
    open: &[(usize, Event)],
    end: &Event,
    can_be: impl Fn(&(usize, Event)) -> bool,
) -> Option<usize> {
    let begin = if end.class == ANSWER { ASK } else { CALL };
    let last = |is_it: &dyn Fn(&Event) -> bool| {
        open.iter().rposition(|of| {
            let Event { class, key, .. } = of.1;
            class == begin && (begin == CALL || key == end.key) && can_be(of) && is_it(&of.1)
        })
    };
    let own = last(&|of| of.tid == end.tid);
    let any = || last(&|of| of.pid == end.pid).or_else(|| last(&|_| true));
    own.or_else(|| any().filter(|_| begin == ASK))
}

fn pair(of: Event, end: Event, found: &mut Vec<Span>, across: &mut BTreeSet<Span>) {
    let (name, key) = match of.class {
        ASK => ("request", of.key.to_string()),
        _ => ("work", String::new()),
    };
    // The thread before the first switch is unknown.
    let is_unknown = (6..9).contains(&of.tid) || of.time == end.time;
    let tid = if is_unknown { 0 } else { of.tid };
    let span = (name.to_owned(), key, Some(of.time), Some(end.time), tid);
    if of.tid / MACHINE != end.tid / MACHINE {
        across.insert(span.clone());
    }
    found.push(span);
}

/// Flows by key: send and receive times. Keys are unique.
fn flows(events: &[(usize, Event)]) -> Vec<(u64, u64, u64)> {
    let of = |class: usize| -> BTreeMap<u64, (usize, u64)> {
        let all = events.iter().filter(|(_, event)| event.class == class);
        all.map(|(stream, event)| (event.key, (*stream, event.time))).collect()
    };
    let (sent, received) = (of(PUT), of(TAKE));
    let joined = sent.iter().filter_map(|(key, (_, sent))| {
        let (_, at) = received.get(key)?;
        (at >= sent).then_some((*key, *sent, *at))
    });
    joined.collect()
}

/// Returns the keys of flows between machines.
fn flows_across(events: &[(usize, Event)]) -> BTreeSet<u64> {
    let of = |class: usize| -> BTreeMap<u64, u32> {
        let all = events.iter().filter(|(_, event)| event.class == class);
        all.map(|(_, event)| (event.key, event.tid / MACHINE)).collect()
    };
    let (sent, received) = (of(PUT), of(TAKE));
    let is_across = |(key, on): &(u64, u32)| received.get(key).is_some_and(|other| other != on);
    sent.into_iter().filter(is_across).map(|(key, _)| key).collect()
}

fn span_of(row: &ctf2::Row, names: [&str; 5]) -> (Span, String) {
    let number = |name: &str| row[name].parse::<u64>().ok();
    let [name, key, begin, end, tid] = names;
    let tid = number(tid).filter(|_| row[begin] != row[end]);
    let span =
        (row[name].clone(), row[key].clone(), number(begin), number(end), tid.unwrap_or(0) as u32);
    (span, row["quality"].clone())
}

/// Compares the results of every consumer for the trace of a seed.
fn check(seed: u64, is_lossy: bool, who: Who) {
    let place = Place::new();
    let streams = streams(&mut Random(seed), is_lossy, who);
    let traces = write(&place, &streams, who);
    let (seen, truth) = (in_order(&streams, false), in_order(&streams, true));
    let Found { spans: expected, across, halves } = spans(&seen);
    let true_spans = spans(&truth).spans;
    let stats = place.json(&[&["stats"], &traces[..], &["--json"]].concat());
    let viewer = Viewer::start(&place, &traces);
    let what = format!("seed {seed:#x}, lossy: {is_lossy}, {who:?}");
    // If switches are lost, a search would have to guess the thread of an event.
    let is_sure = who != Who::BySwitches || !is_lossy;

    // Spans of the table are those of the search and of the view, each with the same quality.
    let rows = table(&place, &traces, "spans");
    check_sql(&place, &traces, "spans");
    let of_table = |status: &str| -> Vec<(Span, String)> {
        let of = rows.iter().filter(|row| row["status"] == status);
        let mut all: Vec<_> =
            of.map(|row| span_of(row, ["span", "key", "ts", "end_ts", "tid"])).collect();
        all.sort();
        all
    };
    let complete = of_table("complete");
    let without_quality: Vec<Span> = complete.iter().map(|(span, _)| span.clone()).collect();
    assert!(!is_sure || without_quality == expected, "{what}: {without_quality:?} {expected:?}");
    let path = format!("/export?table=activities&filter=0&format=csv&token={}", viewer.token);
    let text = String::from_utf8(get(&viewer.address, &path)).expect("CSV");
    let mut of_view: Vec<(Span, String)> = csv(&text)
        .iter()
        .map(|row| span_of(row, ["name", "key", "begin_ns", "end_ns", "tid"]))
        .filter(|((.., end, _), _)| end.is_some())
        .collect();
    of_view.sort();
    assert_eq!(of_view, complete, "{what}");
    for (span, quality) in &complete {
        assert!(quality != "exact" || true_spans.contains(span), "{what}: {span:?} was not");
        match across.contains(span) {
            false => assert!(is_lossy || quality == "exact", "{what}: {span:?} is {quality}"),
            true => assert_eq!(quality, "unknown", "{what}: {span:?}"),
        }
    }
    if who == Who::Told || (who == Who::BySwitches && !is_lossy) {
        assert_eq!(by_script(&place), complete, "{what}");
    }
    // Statistics count these, and measure the certain ones.
    for name in ["request", "work"] {
        let of = stats["spans"].as_array().expect("spans").iter().find(|of| of["name"] == name);
        let Some(of) = of else {
            // All of them are on unknown threads.
            assert!(!is_sure && complete.iter().all(|(span, _)| span.0 != name), "{what}: {name}");
            continue;
        };
        let own: Vec<&(Span, String)> =
            complete.iter().filter(|(span, _)| span.0 == name).collect();
        let certain: Vec<u64> = own
            .iter()
            .filter(|(_, quality)| quality == "exact")
            .filter_map(|((_, _, begin, end, _), _)| Some((*end)? - (*begin)?))
            .collect();
        assert_eq!(of["count"], own.len(), "{what}: {name}");
        if own.iter().any(|(span, _)| across.contains(span)) {
            // Their times count, and no derived number is exact.
            for number in
                ["total_ns", "min_ns", "max_ns"].iter().filter(|of_it| !of[*of_it].is_null())
            {
                assert_eq!(of["not_exact"][number], "unknown", "{what}: {name} {number}");
            }
        } else {
            assert_eq!(of["touched_by_losses"], own.len() - certain.len(), "{what}: {name}");
            assert_eq!(of["total_ns"].as_u64().unwrap_or(0), certain.iter().sum::<u64>(), "{what}");
            assert_eq!(of["min_ns"].as_u64(), certain.iter().min().copied(), "{what}: {name}");
        }
        let [unfinished, orphans] = halves.get(name).copied().unwrap_or_default();
        let told = [&of["unfinished"], &of["orphans"]];
        let status =
            |status: &str| of_table(status).iter().filter(|(of, _)| of.0 == name).count() as u64;
        if is_sure {
            assert_eq!(told, [&json!(unfinished), &json!(orphans)], "{what}: {name}");
            assert_eq!([status("unfinished"), status("orphan")], [unfinished, orphans], "{what}");
        }
    }

    // Flows.
    let rows = table(&place, &traces, "messages");
    let mut of_table: Vec<(u64, u64, u64)> = Vec::new();
    for row in rows.iter().filter(|row| row["status"] == "complete") {
        let number = |name: &str| row[name].parse::<u64>().expect("a number");
        let flow = (number("key"), number("ts"), number("end_ts"));
        let is_true = row["quality"] != "exact" || flows(&truth).contains(&flow);
        assert!(is_true, "{what}: {flow:?} was not");
        if flows_across(&seen).contains(&flow.0) {
            assert_eq!(row["quality"], "unknown", "{what}: {flow:?}");
        } else {
            assert!(
                is_lossy || row["quality"] == "exact",
                "{what}: {flow:?} is {}",
                row["quality"]
            );
        }
        of_table.push(flow);
    }
    of_table.sort_unstable();
    assert_eq!(of_table, flows(&seen), "{what}");
    let queue = &stats["messages"][0];
    assert_eq!(queue["matched"], of_table.len(), "{what}");
    let status = |status: &str| rows.iter().filter(|row| row["status"] == status).count();
    assert_eq!(queue["never_received"], status("not_received"), "{what}");
    assert_eq!(queue["never_sent"], status("not_sent"), "{what}");
    let open = viewer.page().ask("open", json!({}));
    assert_eq!(open["channels"][0]["count"], of_table.len(), "{what}");

    // States: those marked exact are true. Their sum is the time of the statistics, which also include
    // partially known states.
    let mut by_state: BTreeMap<(String, String, String), (u64, bool, usize)> = BTreeMap::new();
    let mut machines = BTreeSet::new();
    for row in table(&place, &traces, "states") {
        let owner = if row["owner"] == "thread" { row["tid"].clone() } else { row["pid"].clone() };
        machines.insert((row["machine"].clone(), owner.clone()));
        let place = (row["machine"].clone(), owner, row["state"].clone());
        let of = by_state.entry(place).or_insert((0, true, 0));
        let is_known = row["quality"] != "unknown";
        let nanos = row["duration"].parse::<u64>().expect("nanoseconds");
        let is_exact = row["quality"] == "exact";
        *of = (
            of.0 + if is_known { nanos } else { 0 },
            of.1 && is_known,
            of.2 + usize::from(is_exact),
        );
    }
    for machine in stats["states"].as_array().expect("machines") {
        let key = machine["key"].as_str().map_or(String::new(), |key| format!("[{key}]"));
        let name = format!("{}{key}", machine["machine"].as_str().expect("a name"));
        let owner = if key.is_empty() { &machine["tid"] } else { &machine["pid"] };
        assert!(machines.remove(&(name.clone(), owner.to_string())), "{what}: {name} {owner}");
        for state in machine["states"].as_array().expect("states") {
            let state_name = state["state"].as_str().expect("a name").to_owned();
            let place = (name.clone(), owner.to_string(), state_name);
            let (nanos, are_all_known, exact_count) =
                by_state.get(&place).copied().unwrap_or((0, true, 0));
            // States are timed if their begin and end are known.
            assert_eq!(state["stays"], exact_count, "{what}: {place:?}");
            let told = state["total_ns"].as_u64().expect("nanoseconds");
            if are_all_known {
                assert_eq!(told, nanos, "{what}: {place:?}");
            } else {
                assert!(told >= nanos, "{what}: {place:?} {told} < {nanos}");
            }
        }
    }
    assert!(machines.is_empty(), "{what}: {machines:?}");
    if who == Who::BySwitches {
        check_running(&stats, &ran(&truth), &what);
        check_threads(&place, &stats, &what);
        threads::check(&place, &mut viewer.page(), "trace", &what);
    }
}

/// Returns the same spans as activities of a script.
fn by_script(place: &Place) -> Vec<(Span, String)> {
    let script = "activity('request').begin('ask').end('answer').key('key');\n\
                  activity('work').begin('call').end('return');";
    fs::write(place.0.join("spans.js"), script).expect("a script");
    let output = place.lat(&["run-script", "trace", "spans.js", "--csv"]);
    let text = String::from_utf8(output.stdout).expect("CSV");
    let names = ["activity", "key", "begin_ns", "end_ns", "begin_tid"];
    let mut all: Vec<_> = csv(&text).iter().map(|row| span_of(row, names)).collect();
    all.sort();
    all
}

/// Runs `lat-sql` with this `lat`, if `LATERALIS_TEST_SQL` names a build of it.
fn check_sql(place: &Place, traces: &[&str], name: &str) {
    let Some(program) = std::env::var_os("LATERALIS_TEST_SQL") else { return };
    let query = format!("SELECT * FROM {name}");
    let arguments = [traces, &["-c", &query, "--format", "csv"]].concat();
    let output = Command::new(program).args(arguments).current_dir(&place.0).output();
    let output = output.expect("lat-sql");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut rows = csv(&String::from_utf8(output.stdout).expect("CSV"));
    let mut expected = table(place, traces, name);
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected, "{name}");
}

/// Nanoseconds for which each thread ran, from one switch of a CPU to the next.
fn ran(events: &[(usize, Event)]) -> BTreeMap<u64, u64> {
    let mut on: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let mut ran = BTreeMap::new();
    for (cpu, event) in events.iter().filter(|(_, event)| event.class == SWITCH) {
        if let Some((tid, since)) = on.insert(*cpu, (event.value, event.time)) {
            *ran.entry(tid).or_insert(0) += event.time - since;
        }
    }
    ran.remove(&0);
    ran.retain(|_, nanos| *nanos > 0);
    ran
}

/// Running times in the statistics are the true ones, or are marked as not exact and do not exceed them.
fn check_running(stats: &Value, truth: &BTreeMap<u64, u64>, what: &str) {
    let mut told = BTreeMap::new();
    for thread in stats["threads"].as_array().expect("threads") {
        let tid = thread["tid"].as_u64().expect("a number");
        let nanos = thread["running_ns"].as_u64().expect("nanoseconds");
        let is_exact = thread["not_exact"]["running_ns"].is_null();
        let real = truth.get(&tid).copied().unwrap_or(0);
        assert!(!is_exact || nanos == real, "{what}: thread {tid} ran {real}, not {nanos}");
        let is_least = thread["not_exact"]["running_ns"] == "lower_bound";
        assert!(!is_least || nanos <= real, "{what}: thread {tid} ran {real} < {nanos}");
        told.insert(tid, nanos);
    }
    if !what.contains("lossy: true") {
        told.retain(|_, nanos| *nanos > 0);
        assert_eq!(&told, truth, "{what}");
    }
}

/// Statistics of threads and of their states, the table of states, and the path of a thread agree on its
/// running time.
fn check_threads(place: &Place, stats: &Value, what: &str) {
    let rows = table(place, &["trace"], "thread_states");
    for thread in stats["threads"].as_array().expect("threads") {
        let tid = thread["tid"].as_u64().expect("a number");
        let of_state = |state: &str| -> (u64, u64) {
            let is_it = |row: &&BTreeMap<String, String>| {
                row["tid"] == tid.to_string() && row["state"] == state && row["quality"] == "exact"
            };
            let nanos = rows.iter().filter(is_it).map(|row| row["duration"].parse::<u64>());
            let nanos: Vec<u64> = nanos.map(|nanos| nanos.expect("nanoseconds")).collect();
            (nanos.iter().sum(), nanos.len() as u64)
        };
        let (running, _) = of_state("running");
        assert_eq!(thread["running_ns"], running, "{what}: thread {tid}");
        let all = stats["thread_states"].as_array().expect("threads");
        if let Some(of) = all.iter().find(|of| of["tid"] == tid) {
            for state in ["running", "runnable", "preempted", "sleeping", "blocked", "stopped"] {
                let told = [&of[format!("{state}_ns")], &of[format!("{state}_count")]];
                let (nanos, count) = of_state(state);
                assert_eq!(told, [&json!(nanos), &json!(count)], "{what}: {state} {tid}");
            }
        } else {
            assert_eq!(running, 0, "{what}: thread {tid}");
        }
        let path = place.json(&["path", "trace", "--thread", &tid.to_string(), "--json"]);
        // The path continues on other threads only while this thread did not run.
        let segments = path["spans"][0]["segments"].as_array().expect("segments");
        let nanos = |one: &Value| Some(one["end_ns"].as_u64()? - one["begin_ns"].as_u64()?);
        let own = segments.iter().filter(|one| one["tid"] == tid && one["does"] == "running");
        let ran: u64 = own.map(|one| nanos(one).expect("nanoseconds")).sum();
        // A thread that runs at the end runs until the end of the requested path.
        let is_open = |row: &&BTreeMap<String, String>| {
            row["tid"] == tid.to_string()
                && row["state"] == "running"
                && row["status"] != "complete"
        };
        let open = rows.iter().filter(is_open).map(|row| row["duration"].parse::<u64>());
        let open: u64 = open.map(|nanos| nanos.expect("nanoseconds")).sum();
        assert!(ran >= running && ran <= running + open, "{what}: thread {tid} {ran} of {running}");
    }
}

#[test]
fn random_traces_are_one_answer_in_every_consumer() {
    // LATERALIS_TEST_SEEDS sets the number of seeds.
    if std::env::var_os("LATERALIS_TEST_SQL").is_none() {
        println!("SKIPPED: of SQL, for lat-sql is not built (LATERALIS_TEST_SQL names it)");
    }
    let seeds: u64 =
        std::env::var("LATERALIS_TEST_SEEDS").map_or(10, |n| n.parse().expect("a number"));
    for seed in 0..seeds {
        for is_lossy in [false, true] {
            for who in [Who::Told, Who::BySwitches, Who::TwoMachines] {
                check(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * seed + 1), is_lossy, who);
            }
        }
    }
}
