// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of different streams in the same nanosecond have no defined order: whichever stream a reader visits
//! first, each consumer gives the same result, and exact results are true.
//!
//! The oracle knows the order in which everything happened. The trace has it only within each stream, and
//! most events share their time with others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use serde_json::json;

use crate::ctf2::{self, table};
use crate::place::Place;
use crate::view::client::Viewer;
use crate::view::threads;

/// Event classes: name, meaning, fields.
const CLASSES: [(&str, &str, &[&str]); 11] = [
    ("sched_switch", "", &["prev_tid", "prev_state", "next_tid"]),
    ("sched_waking", "", &["tid", "target_cpu", "common_flags"]),
    ("sched_wakeup", "", &["tid", "target_cpu", "common_flags"]),
    ("ask", "begin request key key", &["key"]),
    ("answer", "end request key key", &["key"]),
    ("put", "send queue key key", &["key"]),
    ("take", "recv queue key key", &["key"]),
    ("push", "send fifo", &["key"]),
    ("pull", "recv fifo", &["key"]),
    ("lock", "begin held", &["key"]),
    ("unlock", "end held", &["key"]),
];
const SWITCH: usize = 0;
const WAKING: usize = 1;
const WAKEUP: usize = 2;
const ASK: usize = 3;
const ANSWER: usize = 4;
const PUT: usize = 5;
const TAKE: usize = 6;
const PUSH: usize = 7;
const PULL: usize = 8;
const LOCK: usize = 9;
const UNLOCK: usize = 10;

const CPUS: usize = 3;
const THREADS: u32 = 5;
/// File of the events of each CPU.
const ORDERS: [[usize; CPUS]; 6] =
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[derive(Debug, Clone, Copy)]
struct Event {
    class: usize,
    time: u64,
    cpu: usize,
    /// The running thread.
    tid: u32,
    fields: [u64; 3],
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one_of(&mut self, all: &[u32]) -> Option<u32> {
        (!all.is_empty()).then(|| all[self.below(all.len())])
    }
}

/// True state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Sleeping,
    Ready,
    Running,
}

/// Generates the events in their true order.
fn happened(random: &mut Random) -> Vec<Event> {
    let mut all = Vec::new();
    let mut time = 1000;
    let mut on = [0_u32; CPUS];
    let mut doing = [Doing::Ready; THREADS as usize + 1];
    // Wakeups whose second event is still to come: thread and CPU.
    let mut pending: Vec<(u32, usize)> = Vec::new();
    let mut open: Vec<u64> = Vec::new();
    let mut locks = [0_u32; THREADS as usize + 1];
    let mut sent: Vec<u64> = Vec::new();
    let mut next_key = 0;
    let mut in_fifo = 0_u32;
    for step in 0..400 {
        if step < 2 * CPUS || random.below(5) == 0 {
            time += 1 + random.below(30) as u64;
        }
        let cpu = if step < CPUS { step } else { random.below(CPUS) };
        let tid = on[cpu];
        let of = |class: usize, fields: [u64; 3]| Event { class, time, cpu, tid, fields };
        let is_pending = |tid: u32| pending.iter().any(|of| of.0 == tid);
        let ready: Vec<u32> = (1..=THREADS)
            .filter(|tid| doing[*tid as usize] == Doing::Ready && !is_pending(*tid))
            .collect();
        if let Some(at) = pending.iter().position(|of| of.1 == cpu)
            && random.below(2) == 0
        {
            let (woken, _) = pending.remove(at);
            all.push(of(WAKEUP, [woken.into(), cpu as u64, 0]));
            continue;
        }
        if tid == 0 || random.below(5) == 0 {
            let sleeps = random.below(2) == 0;
            let Some(next) = random.one_of(&ready).or(Some(0).filter(|_| tid != 0 && sleeps))
            else {
                continue;
            };
            if tid != 0 {
                doing[tid as usize] = if sleeps { Doing::Sleeping } else { Doing::Ready };
            }
            doing[next as usize] = Doing::Running;
            on[cpu] = next;
            all.push(of(SWITCH, [tid.into(), u64::from(sleeps && tid != 0), next.into()]));
            continue;
        }
        let asleep: Vec<u32> =
            (1..=THREADS).filter(|tid| doing[*tid as usize] == Doing::Sleeping).collect();
        match random.below(10) {
            0..=2 => {
                let Some(wakes) = random.one_of(&asleep) else { continue };
                let target = random.below(CPUS);
                doing[wakes as usize] = Doing::Ready;
                pending.push((wakes, target));
                all.push(of(WAKING, [wakes.into(), target as u64, 0]));
            }
            3 => {
                let key = random.below(4) as u64;
                open.push(key);
                all.push(of(ASK, [key, 0, 0]));
            }
            4 if !open.is_empty() => {
                let key = open.remove(random.below(open.len()));
                all.push(of(ANSWER, [key, 0, 0]));
            }
            5 => {
                sent.push(next_key);
                all.push(of(PUT, [next_key, 0, 0]));
                next_key += 1;
            }
            6 if !sent.is_empty() => {
                let key = sent.remove(random.below(sent.len()));
                all.push(of(TAKE, [key, 0, 0]));
            }
            7 => {
                in_fifo += 1;
                all.push(of(PUSH, [0; 3]));
            }
            8 if in_fifo > 0 => {
                in_fifo -= 1;
                all.push(of(PULL, [0; 3]));
            }
            9 => {
                let of_thread = &mut locks[tid as usize];
                let class = if *of_thread > 0 && random.below(2) == 0 { UNLOCK } else { LOCK };
                *of_thread = if class == LOCK { *of_thread + 1 } else { *of_thread - 1 };
                all.push(of(class, [0; 3]));
            }
            _ => {}
        }
    }
    all
}

/// Writes the trace, with the events of each CPU in the file given by `order`.
fn write(place: &Place, name: &str, all: &[Event], order: [usize; CPUS]) {
    let folder = place.0.join(name);
    fs::create_dir(&folder).expect("a new folder");
    let mut fragments = ctf2::beginning(&[ctf2::stream_id()]);
    let context = [
        ("bits", ctf2::number(64, Some("packet-content-length"))),
        ("all", ctf2::number(64, Some("packet-total-length"))),
        ("begin", ctf2::number(64, ctf2::TIME)),
        ("end", ctf2::number(64, Some("packet-end-default-clock-timestamp"))),
        ("cpu_id", ctf2::number(32, None)),
    ];
    fragments.push(ctf2::stream(0, &context, &[]));
    let classes = CLASSES.iter().enumerate();
    fragments.extend(classes.map(|(id, (name, clause, of))| ctf2::event(0, id, name, clause, of)));
    fs::write(folder.join("metadata"), ctf2::text(&fragments)).expect("its metadata");
    for (cpu, file) in order.iter().enumerate() {
        let of_cpu: Vec<&Event> = all.iter().filter(|event| event.cpu == cpu).collect();
        let mut events = Vec::new();
        for event in &of_cpu {
            events.extend((event.class as u32).to_le_bytes());
            events.extend(event.time.to_le_bytes());
            for field in &event.fields[..CLASSES[event.class].2.len()] {
                events.extend(field.to_le_bytes());
            }
        }
        let bits = 8 * (4 + 4 * 8 + 4 + events.len() as u64);
        let [first, last] = [of_cpu.first(), of_cpu.last()].map(|of| of.map_or(0, |of| of.time));
        let mut bytes = 0_u32.to_le_bytes().to_vec();
        [bits, bits, first, last].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend((cpu as u32).to_le_bytes());
        bytes.extend(events);
        fs::write(folder.join(format!("s{file}")), bytes).expect("a stream");
    }
}

/// Name, key, begin and end of a result.
type Row = (String, u64, u64, u64);

/// The true results.
#[derive(Debug, Default)]
struct Truth {
    /// States of threads with a length greater than zero, by thread.
    states: Vec<Row>,
    /// Wakeups: woken thread, time, waker.
    wakes: BTreeSet<(u64, u64, u64)>,
    /// Spans by key, or by thread.
    spans: Vec<Row>,
    /// Messages with a key.
    messages: Vec<Row>,
    /// Latencies of the messages without a key.
    fifo: Vec<u64>,
}

/// Computes the true results by visiting all events in their true order.
fn truth(all: &[Event]) -> Truth {
    let mut truth = Truth::default();
    let mut now: BTreeMap<u32, (&str, u64)> = BTreeMap::new();
    let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
    let mut fifo: VecDeque<u64> = VecDeque::new();
    for event in all {
        let Event { class, time, tid, fields, .. } = *event;
        let mut turns = |tid: u32, state: &'static str| {
            if let Some((before, since)) = now.insert(tid, (state, time))
                && time > since
            {
                truth.states.push((before.to_owned(), tid.into(), since, time));
            }
        };
        match class {
            SWITCH => {
                if fields[0] != 0 {
                    turns(tid, if fields[1] == 0 { "preempted" } else { "sleeping" });
                }
                if fields[2] != 0 {
                    turns(fields[2] as u32, "running");
                }
            }
            WAKING => {
                turns(fields[0] as u32, "runnable");
                truth.wakes.insert((fields[0], time, tid.into()));
            }
            PUT => drop(sent.insert(fields[0], time)),
            TAKE => {
                let begin = sent.remove(&fields[0]).expect("it was sent");
                truth.messages.push(("queue".to_owned(), fields[0], begin, time));
            }
            PUSH => fifo.push_back(time),
            PULL => truth.fifo.push(time - fifo.pop_front().expect("it was sent")),
            _ => {}
        }
    }
    truth.fifo.sort_unstable();
    truth.spans = spans(all);
    truth.spans.sort();
    truth.messages.sort();
    truth
}

/// Finds spans by examining everything that is open at each end. An end prefers spans that began at an
/// earlier time, or earlier on its CPU; of these, those of its own thread; and of these, the last one. An end
/// without such a begin waits for a begin of the same time on another CPU. Events of equal time have the
/// order of their CPUs.
fn spans(all: &[Event]) -> Vec<Row> {
    let mut all = all.to_vec();
    all.sort_by_key(|event| (event.time, event.cpu));
    let mut found = Vec::new();
    let (mut open, mut waiting): (Vec<Event>, Vec<Event>) = (Vec::new(), Vec::new());
    for event in all {
        let Event { class, time, cpu, .. } = event;
        waiting.retain(|end| end.time == time);
        let other_cpu = |of: &Event| of.cpu != cpu;
        match class {
            ASK | LOCK => {
                let is_it = |end: &Event| other_cpu(end) && are_one(&event, end);
                let own = waiting.iter().position(|end| is_it(end) && end.tid == event.tid);
                match own.or_else(|| waiting.iter().position(is_it)) {
                    Some(index) => found.push(row(&event, &waiting.remove(index))),
                    None => open.push(event),
                }
            }
            ANSWER | UNLOCK => {
                let is_before = |of: &Event| of.time < time || of.cpu == cpu;
                let index =
                    end_of(&open, &event, is_before).or_else(|| end_of(&open, &event, |_| true));
                match index {
                    Some(index) => found.push(row(&open.remove(index), &event)),
                    None => waiting.push(event),
                }
            }
            _ => {}
        }
    }
    found
}

fn are_one(begin: &Event, end: &Event) -> bool {
    match end.class {
        ANSWER => begin.class == ASK && begin.fields == end.fields,
        _ => begin.class == LOCK && begin.tid == end.tid,
    }
}

fn end_of(open: &[Event], end: &Event, can_be: impl Fn(&Event) -> bool) -> Option<usize> {
    let is_it = |of: &Event| are_one(of, end) && can_be(of);
    let own = open.iter().rposition(|of| is_it(of) && of.tid == end.tid);
    own.or_else(|| open.iter().rposition(is_it))
}

fn row(begin: &Event, end: &Event) -> Row {
    let (name, key) = match end.class {
        ANSWER => ("request", end.fields[0]),
        _ => ("held", u64::from(end.tid)),
    };
    (name.to_owned(), key, begin.time, end.time)
}

fn number(row: &ctf2::Row, name: &str) -> u64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} of {row:?}"))
}

/// Checks that all exact rows are true. Returns the number of exact rows as a percentage of the true ones.
fn check_exact(exact: &[Row], truth: &[Row], what: &str) -> usize {
    let mut left: BTreeMap<&Row, usize> = BTreeMap::new();
    truth.iter().for_each(|row| *left.entry(row).or_default() += 1);
    for row in exact {
        let count = left.get_mut(row).filter(|count| **count > 0);
        let count = count.unwrap_or_else(|| panic!("{what}: {row:?} is exact and did not happen"));
        *count -= 1;
    }
    exact.len() * 100 / truth.len().max(1)
}

/// Results for one order of files; they must be equal for all orders.
#[derive(Debug, Default, PartialEq)]
struct Said {
    states: Vec<Row>,
    spans: Vec<Row>,
    messages: Vec<Row>,
    fifo: Vec<u64>,
    /// Statistics of threads, messages, spans.
    stats: Vec<String>,
    script: Vec<Row>,
    view: Vec<u64>,
    /// All cells of the tables, and of the activities of the script.
    cells: Vec<String>,
}

fn asked(place: &Place, trace: &str, truth: &Truth, what: &str) -> Said {
    let mut said = Said::default();
    let is_exact = |row: &ctf2::Row| row["quality"] == "exact";
    for row in table(place, &[trace], "thread_states").iter().filter(|row| is_exact(row)) {
        let (begin, end) = (number(row, "ts"), number(row, "end_ts"));
        let tid = number(row, "tid");
        if row["state"] == "runnable" && row["woken_by"] == "thread" {
            let waker = number(row, "waker_tid");
            let is_true = truth.wakes.contains(&(tid, begin, waker));
            assert!(is_true, "{what}: {waker} did not wake {tid} at {begin}");
        }
        if end > begin && row["status"] == "complete" {
            said.states.push((row["state"].clone(), tid, begin, end));
        }
    }
    for row in table(place, &[trace], "spans").iter().filter(|row| row["status"] == "complete") {
        let key = if row["span"] == "held" { number(row, "tid") } else { number(row, "key") };
        if is_exact(row) {
            let (begin, end) = (number(row, "ts"), number(row, "end_ts"));
            said.spans.push((row["span"].clone(), key, begin, end));
        }
    }
    for name in ["spans", "messages", "thread_states"] {
        let rows = table(place, &[trace], name).into_iter().map(|row| format!("{row:?}"));
        said.cells.extend(rows);
    }
    for row in table(place, &[trace], "messages") {
        assert_eq!(row["quality"] == "exact", row["status"] == "complete", "{what}: {row:?}");
        if row["status"] != "complete" {
            continue;
        }
        let (begin, end) = (number(&row, "ts"), number(&row, "end_ts"));
        match row["channel"].as_str() {
            "fifo" => said.fifo.push(end - begin),
            _ => said.messages.push(("queue".to_owned(), number(&row, "key"), begin, end)),
        }
    }
    said.states.sort();
    said.spans.sort();
    said.messages.sort();
    said.fifo.sort_unstable();
    let stats = place.json(&["stats", trace, "--json"]);
    for of in stats["messages"].as_array().expect("messages") {
        let numbers = ["channel", "matched", "never_received", "never_sent", "total_ns", "max_ns"];
        said.stats.push(numbers.map(|name| of[name].to_string()).join(" "));
    }
    for of in stats["spans"].as_array().expect("spans") {
        let numbers = ["name", "count", "unfinished", "orphans", "touched_by_losses", "total_ns"];
        said.stats.push(numbers.map(|name| of[name].to_string()).join(" "));
    }
    for of in stats["thread_states"].as_array().expect("threads") {
        let numbers = ["tid", "running_ns", "runnable_ns", "sleeping_ns", "preempted_ns"];
        said.stats.push(numbers.map(|name| of[name].to_string()).join(" "));
    }
    said.stats.sort();
    let script = "activity('request').begin('ask').end('answer').key('key');\n\
                  activity('held').begin('lock').end('unlock');";
    fs::write(place.0.join("spans.js"), script).expect("a script");
    let output = place.lat(&["run-script", trace, "spans.js", "--csv"]);
    let text = String::from_utf8(output.stdout).expect("CSV");
    said.cells.push(text.clone());
    for row in ctf2::csv(&text) {
        let cell = |name: &str| row[name].parse::<u64>().unwrap_or(0);
        if row["quality"] == "exact" && !row["end_ns"].is_empty() {
            let key = if row["activity"] == "held" { cell("begin_tid") } else { cell("key") };
            let (begin, end) = (cell("begin_ns"), cell("end_ns"));
            said.script.push((row["activity"].clone(), key, begin, end));
        }
    }
    said.script.sort();
    let viewer = Viewer::start(place, &[trace]);
    let open = viewer.page().ask("open", json!({}));
    for list in ["channels", "span_kinds"] {
        let counts = open[list].as_array().expect("a list").iter();
        said.view.extend(counts.map(|of| of["count"].as_u64().expect("a count")));
    }
    threads::check(place, &mut viewer.page(), trace, what);
    said
}

fn check(seed: u64) {
    let all = happened(&mut Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * seed + 1)));
    let truth = truth(&all);
    let mut first: Option<Said> = None;
    for order in [ORDERS[0], ORDERS[1 + seed as usize % (ORDERS.len() - 1)]] {
        let place = Place::new();
        write(&place, "trace", &all, order);
        let what = format!("seed {seed}, files {order:?}");
        let said = asked(&place, "trace", &truth, &what);
        assert_eq!(said.messages, truth.messages, "{what}");
        assert_eq!(said.fifo, truth.fifo, "{what}");
        assert_eq!(said.spans, truth.spans, "{what}");
        assert_eq!(said.script, said.spans, "{what}");
        let share = check_exact(&said.states, &truth.states, &what);
        assert!(share >= 60, "{what}: {share} % of the states are exact");
        match &first {
            None => first = Some(said),
            Some(first) => assert_eq!(&said, first, "{what}"),
        }
    }
}

/// LATERALIS_TEST_SEEDS sets the number of traces.
#[test]
fn simultaneous_events_are_one_answer_whichever_stream_comes_first() {
    let seeds = std::env::var("LATERALIS_TEST_SEEDS").map_or(8, |n| n.parse().expect("a number"));
    (0..seeds).for_each(check);
}

/// More ends of the same time precede their begins than can be kept: these spans are not open until the end.
#[test]
fn more_ends_of_one_time_than_are_kept_make_no_span_longer_than_it_was() {
    const KEYS: u64 = 70_000;
    let place = Place::new();
    let event = |class: usize, time: u64, cpu: usize, fields: [u64; 3]| Event {
        class,
        time,
        cpu,
        tid: 1 + cpu as u32,
        fields,
    };
    let mut all: Vec<Event> =
        (0..CPUS).map(|cpu| event(SWITCH, 900, cpu, [0, 0, 1 + cpu as u64])).collect();
    for (class, cpu) in [(ANSWER, 0), (ASK, 1)] {
        all.extend((0..KEYS).map(|key| event(class, 1000, cpu, [key, 0, 0])));
    }
    all.push(event(ASK, 5000, 1, [KEYS, 0, 0]));
    all.push(event(ANSWER, 6000, 1, [KEYS, 0, 0]));
    write(&place, "trace", &all, ORDERS[0]);
    let stats = place.json(&["stats", "trace", "--json"]);
    let request = &stats["spans"][0];
    let truth = [
        ("count", KEYS + 1),
        ("unfinished", 0),
        ("orphans", 0),
        ("total_ns", 1000),
        ("min_ns", 0),
        ("max_ns", 1000),
        ("p99_ns", 0),
    ];
    for (name, truth) in truth {
        let said = request[name].as_u64().unwrap_or_else(|| panic!("{name}: {request}"));
        let is_true = match request["not_exact"][name].as_str() {
            None => said == truth,
            Some("lower_bound") => said <= truth,
            _ => true,
        };
        assert!(is_true, "{name}: {said} is not {truth}: {}", request["not_exact"]);
    }
    let path = place.json(&["path", "trace", "--span", "request", "--json"]);
    assert_eq!(path["spans"][0]["duration_ns"], 1000, "{path}");
    let rows = table(&place, &["trace"], "spans");
    let open: Vec<_> = rows.iter().filter(|row| row["status"] == "unfinished").collect();
    assert!(!open.is_empty() && open.iter().all(|row| row["quality"] == "unknown"));
}
