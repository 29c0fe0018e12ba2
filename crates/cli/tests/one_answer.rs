// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All consumers of a trace give the same results, which are those of a brute-force search through the
//! events.

use std::collections::BTreeMap;
use std::fs;

use crate::ctf2;
use crate::place::Place;
use crate::view::client::Viewer;
use serde_json::{Value, json};

/// Event classes and their meaning; all have a field `id`, and `unit`, which is `id % 4`.
const KINDS: [(&str, &str); 9] = [
    ("arrive", "recv msg key id"),
    ("leave", "send msg key id"),
    ("begins", "begin request key id"),
    ("ends", "end request key id"),
    ("level", "counter id as slots key unit"),
    ("mode", "state engine id key unit"),
    ("put", "send fifo"),
    ("take", "recv fifo"),
    ("job", "span job for id"),
];
const ARRIVE: u32 = 0;
const LEAVE: u32 = 1;
const BEGINS: u32 = 2;
const ENDS: u32 = 3;
const LEVEL: u32 = 4;
const MODE: u32 = 5;
const PUT: u32 = 6;
const TAKE: u32 = 7;
const JOB: u32 = 8;

/// A schema with a budget for the spans of these events.
const SCHEMA: &str = "schema g;\nsubsystem g \"t\" {\nevent B \"b\" (k: u32) begin request key k,\n\
    event E \"e\" (k: u32) end request key k,\n};\nbudget request mean < 500.5 ns;\n";

/// An event: class, nanoseconds, thread, id.
type Event = (u32, u64, u32, u64);

/// Writes a CTF 2 trace of these streams into a folder of this name.
fn write(place: &Place, name: &str, streams: &[Vec<Event>]) {
    let folder = place.0.join(name);
    fs::create_dir(&folder).expect("a new folder");
    let mut fragments = ctf2::beginning(&[ctf2::stream_id()]);
    fragments[2]["environment"] = json!({ "lateralis_schema_g": SCHEMA });
    let thread = [("vpid", ctf2::number(32, None)), ("vtid", ctf2::number(32, None))];
    fragments.push(ctf2::stream(0, &[], &thread));
    let kinds = KINDS.iter().enumerate();
    fragments.extend(
        kinds.map(|(id, (kind, clause))| ctf2::event(0, id, kind, clause, &["id", "unit"])),
    );
    fs::write(folder.join("metadata"), ctf2::text(&fragments)).expect("its metadata");
    for (number, events) in streams.iter().enumerate() {
        let mut bytes = 0_u32.to_le_bytes().to_vec();
        for (kind, time, thread, id) in events {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(time.to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(thread.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend((id % 4).to_le_bytes());
        }
        fs::write(folder.join(format!("s{number}")), bytes).expect("a stream");
    }
}

/// Returns the nanoseconds between events of two classes with the same id, by brute force; ids are unique per
/// class.
fn between(streams: &[Vec<Event>], from: u32, to: u32) -> Vec<u64> {
    let times = |kind: u32| -> BTreeMap<u64, u64> {
        let all = streams.iter().flatten();
        all.filter(|event| event.0 == kind).map(|event| (event.3, event.1)).collect()
    };
    let (begins, ends) = (times(from), times(to));
    let mut nanos: Vec<u64> =
        begins.iter().filter_map(|(id, begin)| Some(ends.get(id)? - begin)).collect();
    nanos.sort_unstable();
    nanos
}

/// Result of a consumer: count, and longest duration in nanoseconds.
type Said = (u64, u64);

fn said(nanos: &[u64]) -> Said {
    (nanos.len() as u64, nanos.last().copied().unwrap_or(0))
}

fn by_stats(place: &Place, name: &str) -> [Said; 2] {
    let stats = place.json(&["stats", name, "--json"]);
    let of = |list: &str, count: &str| {
        let first = &stats[list][0];
        (first[count].as_u64().unwrap_or(0), first["max_ns"].as_u64().unwrap_or(0))
    };
    [of("messages", "matched"), of("spans", "count")]
}

fn by_table(place: &Place, name: &str) -> [Said; 2] {
    [("messages", "status,latency"), ("spans", "status,duration")].map(|(table, columns)| {
        let output = place.lat(&["table", name, "--name", table, "--column", columns]);
        let text = String::from_utf8(output.stdout).expect("CSV");
        let whole = text.lines().filter_map(|line| line.strip_prefix("complete,"));
        let mut nanos: Vec<u64> = whole.map(|nanos| nanos.parse().expect("a number")).collect();
        nanos.sort_unstable();
        said(&nanos)
    })
}

/// Returns the number of messages and of spans in the index of the view.
fn by_view(place: &Place, name: &str) -> [u64; 2] {
    let viewer = Viewer::start(place, &[name]);
    let open = viewer.page().ask("open", json!({}));
    ["channels", "span_kinds"].map(|list| open[list][0]["count"].as_u64().unwrap_or(0))
}

/// Returns the number of durations that `lat diff` has of each.
fn by_diff(place: &Place, name: &str) -> usize {
    let output = place.lat(&["diff", name, name, "--json"]);
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    diff["compared"].as_u64().unwrap_or(0) as usize
}

fn check(place: &Place, name: &str, streams: &[Vec<Event>]) {
    write(place, name, streams);
    let messages = said(&between(streams, LEAVE, ARRIVE));
    let spans = said(&between(streams, BEGINS, ENDS));
    assert_eq!(by_stats(place, name), [messages, spans], "stats of {name}");
    assert_eq!(by_table(place, name), [messages, spans], "tables of {name}");
    assert_eq!(by_view(place, name), [messages.0, spans.0], "view of {name}");
}

/// Messages that are received in the same nanosecond in which they are sent, with the receiver's stream first
/// or last; two are sent in each nanosecond.
#[test]
fn ties_are_one_answer_whichever_stream_comes_first() {
    let place = Place::new();
    let mut compared = Vec::new();
    for (name, late) in [("ties", 0), ("same_ns", 300)] {
        let time = |id: u64| 1_000_000 + id / 2 * 1000;
        let leave: Vec<Event> = (0..100).map(|id| (LEAVE, time(id), 12, id)).collect();
        let arrive: Vec<Event> = (0..100).map(|id| (ARRIVE, time(id) + late, 11, id)).collect();
        for (order, streams) in
            [("a", [arrive.clone(), leave.clone()]), ("b", [leave.clone(), arrive.clone()])]
        {
            let name = format!("{name}_{order}");
            check(&place, &name, &streams);
            compared.push(by_diff(&place, &name));
        }
    }
    // Two counts of events and one latency, in each.
    assert_eq!(compared, [3; 4]);
}

/// A request waits 60 of 80 us for a message that is received when it is sent.
#[test]
fn a_wait_has_one_cause_whichever_stream_comes_first() {
    let place = Place::new();
    let (mut receiver, mut sender) = (Vec::new(), Vec::new());
    for id in 0..20 {
        let begin = 1_000_000 + id * 100_000;
        receiver.extend([
            (BEGINS, begin, 11, id),
            (ARRIVE, begin + 60_000, 11, id),
            (ENDS, begin + 80_000, 11, id),
        ]);
        sender.push((LEAVE, begin + 60_000, 12, id));
    }
    for (name, streams) in
        [("a", [receiver.clone(), sender.clone()]), ("b", [sender.clone(), receiver.clone()])]
    {
        check(&place, name, &streams);
        let path = place.json(&["path", name, "--span", "request", "--json"]);
        let shares = path["spans"][0]["shares"].as_array().expect("shares");
        let shares: Vec<(u64, u64)> = shares
            .iter()
            .map(|share| (share["tid"].as_u64().unwrap(), share["time_ns"].as_u64().unwrap()))
            .collect();
        assert_eq!(shares, [(12, 60_000), (11, 20_000)], "{name}");
    }
}

/// Messages without keys, matched in time order: a receive in the nanosecond of its send, in either order of
/// streams.
#[test]
fn a_queue_is_one_answer_whichever_stream_comes_first() {
    let place = Place::new();
    let put: Vec<Event> = (0..100).map(|id| (PUT, 1_000_000 + id * 1000, 12, id)).collect();
    let take: Vec<Event> = (0..100).map(|id| (TAKE, 1_000_000 + id * 1000, 11, id)).collect();
    for (name, streams) in [("a", [put.clone(), take.clone()]), ("b", [take, put])] {
        write(&place, name, &streams);
        let stats = place.json(&["stats", name, "--json"]);
        let queue = &stats["messages"][0];
        let numbers = ["matched", "never_sent", "never_received", "max_ns"];
        assert_eq!(numbers.map(|of| queue[of].as_u64()), [100, 0, 0, 0].map(Some), "{queue}");
        assert_eq!(by_table(&place, name)[0], (100, 0), "{name}");
        let viewer = Viewer::start(&place, &[name]);
        let open = viewer.page().ask("open", json!({}));
        let mut channels = open["channels"].as_array().expect("channels").iter();
        let fifo = channels.find(|of| of["name"] == "fifo").expect("the queue");
        assert_eq!(fifo["count"], 100, "{name}");
    }
}

/// If an object enters two states in the same nanosecond, its state is unknown.
#[test]
fn two_states_of_one_time_are_unknown_whichever_stream_comes_first() {
    let place = Place::new();
    let before = (MODE, 500, 11, 16);
    let (one, other) = ((MODE, 1000, 11, 4), (MODE, 1000, 12, 8));
    let last = (MODE, 2000, 11, 12);
    for (name, streams) in [
        ("a", [vec![before, one, last], vec![other]]),
        ("b", [vec![other], vec![before, one, last]]),
    ] {
        write(&place, name, &streams);
        let columns = "state,ts,status,quality";
        let output = place.lat(&["table", name, "--name", "states", "--column", columns]);
        let text = String::from_utf8(output.stdout).expect("CSV");
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows.len(), 4, "{name}: {text}");
        let begun = |time: &str| rows.iter().filter(|row| row.contains(time)).count();
        assert_eq!([begun(",500,"), begun(",1000,"), begun(",2000,")], [1, 2, 1], "{name}: {text}");
        let known: Vec<&&str> = rows.iter().filter(|row| !row.ends_with("unknown")).collect();
        assert_eq!(known, [&"16,500,complete,lower_bound"], "{name}: {text}");
        let stats = place.json(&["stats", name, "--json"]);
        let states = stats["states"][0]["states"].as_array().expect("states");
        let stays: u64 = states.iter().map(|of| of["stays"].as_u64().expect("a count")).sum();
        assert_eq!(stays, 0, "{name}: {}", stats["states"]);
    }
}

/// Random traces with many ties, in three streams, with messages that are never received or never sent.
#[test]
fn random_traces_are_one_answer() {
    let place = Place::new();
    for seed in 0..12_u64 {
        // The generator of Numerical Recipes; only repeatability matters.
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut streams = vec![Vec::new(); 3];
        for id in 0..60 {
            let begin = 1000 + below(40);
            let long = below(3);
            let mut add = |kind: u32, time: u64, stream: u64| {
                streams[stream as usize].push((kind, time, 10 + stream as u32, id));
            };
            // The ends are in two streams: in one stream, events of equal time have the order of the file.
            let (from, to) = [(0, 1), (1, 2), (2, 0)][below(3) as usize];
            match below(10) {
                0 => add(LEAVE, begin, from),
                1 => add(ARRIVE, begin, to),
                _ => {
                    add(LEAVE, begin, from);
                    add(ARRIVE, begin + long, to);
                }
            }
            add(BEGINS, begin, from);
            add(ENDS, begin + 1 + long, to);
        }
        streams.iter_mut().for_each(|stream| stream.sort_by_key(|event| event.1));
        check(&place, &format!("random_{seed}"), &streams);
    }
}

/// Durations of 10, 11 and 11 ns: of spans, of messages, and of states.
fn thirds() -> Vec<Event> {
    // The first state may have been entered before its first event.
    let mut events = vec![(MODE, 900, 1, 8)];
    for (id, begin, nanos) in [(1, 1000, 10), (2, 1100, 11), (3, 1200, 11)] {
        events.extend([
            (BEGINS, begin, 1, id),
            (LEAVE, begin, 1, id),
            (MODE, begin, 1, 4),
            (ENDS, begin + nanos, 1, id),
            (ARRIVE, begin + nanos, 1, id),
            (MODE, begin + nanos, 1, 8),
        ]);
    }
    events
}

/// Returns one number of these durations from each consumer, under its name in the statistics.
fn numbers_of_thirds(place: &Place, name: &str) -> Vec<(&'static str, Value)> {
    write(place, "thirds", &[thirds()]);
    let stats = place.json(&["stats", "thirds", "--json"]);
    let states = stats["states"][0]["states"].as_array().expect("states");
    let state = states.iter().find(|state| state["state"] == "4").expect("the state");
    let member = format!("{name}_ns");
    let viewer = Viewer::start(place, &["thirds"]);
    let of_view = viewer.page().ask("stats", json!({ "filter": 0 }));
    let mut all = vec![
        ("spans", stats["spans"][0][&member].clone()),
        ("messages", stats["messages"][0][&member].clone()),
        ("messages by processors", stats["messages"][0]["by_cpus"][0][&member].clone()),
        ("stays", state[&member].clone()),
        ("view", of_view["spans"][0][name].clone()),
    ];
    if name == "mean" {
        all.push(("in flight", stats["spans"][0]["by_in_flight"][0][&member].clone()));
        all.push(("budget", stats["budgets"][0]["measured_ns"].clone()));
        all.push(("budget of the view", of_view["spans"][0]["budgets"][0]["measured"].clone()));
    }
    all
}

#[test]
fn a_mean_is_one_number_with_its_fraction_in_every_consumer() {
    let place = Place::new();
    for (consumer, mean) in numbers_of_thirds(&place, "mean") {
        assert_eq!(mean, 32.0 / 3.0, "{consumer}");
    }
    let text = place.lat(&["stats", "thirds"]).stdout;
    let text = String::from_utf8(text).expect("UTF-8");
    // The spans, the budget, the messages, and the state.
    assert_eq!(text.matches(" 10.7 ns ").count(), 4, "{text}");
}

/// The standard deviation divides by the count less one, like SQL's `stddev`.
#[test]
fn a_standard_deviation_is_one_number_in_every_consumer() {
    let place = Place::new();
    let expected = (1.0_f64 / 3.0).sqrt();
    let all = numbers_of_thirds(&place, "stddev");
    for (consumer, stddev) in &all {
        let number = stddev.as_f64().unwrap_or_else(|| panic!("{consumer} has none"));
        assert!((number - expected).abs() < 1e-12, "{consumer}: {number}");
        assert_eq!(stddev, &all[0].1, "{consumer}");
    }
    let text = String::from_utf8(place.lat(&["stats", "thirds"]).stdout).expect("UTF-8");
    assert!(text.contains(" 0.58 ns "), "{text}");
}

#[test]
fn a_budget_on_the_mean_knows_half_nanoseconds() {
    let place = Place::new();
    let of = |id: u64, begin: u64, end: u64| [(BEGINS, begin, 1, id), (ENDS, end, 1, id)];
    for (name, last, is_kept) in [("half", 2501, false), ("less", 2500, true)] {
        write(&place, name, &[[of(1, 1000, 1500), of(2, 2000, last)].concat()]);
        let stats = place.json(&["stats", name, "--json"]);
        assert_eq!(stats["budgets"][0]["kept"], is_kept, "{}", stats["budgets"]);
        let viewer = Viewer::start(&place, &[name]);
        let of_view = viewer.page().ask("stats", json!({ "filter": 0 }));
        assert_eq!(of_view["spans"][0]["budgets"][0]["kept"], is_kept, "{name} in the view");
    }
}

/// The absence of measurements is certain only if there was nothing to measure.
#[test]
fn a_budget_on_spans_of_which_only_halves_are_known_is_unknown() {
    let place = Place::new();
    for (name, event, quality) in
        [("half", (ENDS, 1000, 1, 1), "unknown"), ("none", (LEVEL, 1000, 1, 1), "exact")]
    {
        write(&place, name, &[vec![event]]);
        let budgets = &place.json(&["stats", name, "--json"])["budgets"];
        assert_eq!(budgets[0]["kept"], Value::Null, "{budgets}");
        assert_eq!(budgets[0]["quality"], quality, "{name}: {budgets}");
    }
}

/// Keys distinguish states and counters, whichever thread writes them; names are those of the schema.
#[test]
fn keyed_states_and_counters_are_one_for_each_key() {
    let place = Place::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    // Two threads with a stream each; many events of equal time have different units.
    let mut streams = vec![Vec::new(), Vec::new()];
    for time in (10..4000_u64).step_by(10) {
        let thread = next(2);
        let (kind, unit, value) = ([LEVEL, MODE][next(2) as usize], next(4), next(5));
        streams[thread as usize].push((kind, time, thread as u32 + 1, 4 * value + unit));
    }
    write(&place, "keyed", &streams);
    let mut events: Vec<Event> = streams.concat();
    events.sort_by_key(|event| event.1);
    let end = events.last().expect("events").1;
    // By unit: values of the counter, and nanoseconds in each state until the next one is entered.
    let (mut values, mut stays) = (BTreeMap::new(), BTreeMap::new());
    let mut now: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (kind, time, _, id) in events {
        if kind == LEVEL {
            values.entry(id % 4).or_insert_with(Vec::new).push(id);
        } else if let Some((since, state)) = now.insert(id % 4, (time, id)) {
            *stays.entry((id % 4, state)).or_insert(0) += time - since;
        }
    }
    for (unit, (since, state)) in now {
        *stays.entry((unit, state)).or_insert(0) += end - since;
    }
    stays.retain(|_, nanos| *nanos > 0);

    let stats = place.json(&["stats", "keyed", "--json"]);
    let counters = stats["counters"].as_array().expect("counters");
    assert_eq!(counters.len(), 4);
    for (unit, values) in &values {
        let row = counters
            .iter()
            .find(|row| row["key"].as_str() == Some(unit.to_string().as_str()))
            .expect("a row");
        let number = |name: &str| row[name].as_f64().expect("a number") as u64;
        assert_eq!((&row["counter"], number("count")), (&json!("slots"), values.len() as u64));
        let least_and_most = (values.iter().min().copied(), values.iter().max().copied());
        assert_eq!((Some(number("min")), Some(number("max"))), least_and_most, "{row}");
        assert_eq!(Some(&number("last")), values.last());
    }
    let mut told = BTreeMap::new();
    for row in stats["states"].as_array().expect("machines") {
        assert_eq!(row["machine"], "engine");
        let unit: u64 = row["key"].as_str().expect("a key").parse().expect("a number");
        for state in row["states"].as_array().expect("states") {
            let name: u64 = state["state"].as_str().expect("a name").parse().expect("a number");
            told.insert((unit, name), state["total_ns"].as_u64().expect("a number"));
        }
    }
    told.retain(|_, nanos| *nanos > 0);
    assert_eq!(told, stays);

    let table = |name: &str, columns: &str| -> Vec<Vec<String>> {
        let output = place.lat(&["table", "keyed", "--name", name, "--column", columns]);
        let text = String::from_utf8(output.stdout).expect("CSV");
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let unit = |label: &str, name: &str| -> u64 {
        let key =
            label.strip_prefix(name).and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']'));
        key.unwrap_or_else(|| panic!("{label}")).parse().expect("a number")
    };
    let mut of_table = BTreeMap::new();
    for row in table("counters", "counter,value") {
        let value: f64 = row[1].parse().expect("a number");
        of_table.entry(unit(&row[0], "slots")).or_insert_with(Vec::new).push(value as u64);
    }
    assert_eq!(of_table, values);
    let mut of_table = BTreeMap::new();
    for row in table("states", "machine,state,duration") {
        let place = (unit(&row[0], "engine"), row[1].parse::<u64>().expect("a state"));
        *of_table.entry(place).or_insert(0) += row[2].parse::<u64>().expect("nanoseconds");
    }
    of_table.retain(|_, nanos| *nanos > 0);
    assert_eq!(of_table, stays);

    let viewer = Viewer::start(&place, &["keyed"]);
    let open = viewer.page().ask("open", json!({}));
    let names = |list: &Value, name: &str| {
        let all = list.as_array().expect("a list").iter();
        let mut all: Vec<String> =
            all.filter_map(|one| Some(one[name].as_str()?.to_owned())).collect();
        all.sort();
        all
    };
    let of_unit = |name: &str| (0..4).map(|unit| format!("{name}[{unit}]")).collect::<Vec<_>>();
    assert_eq!(names(&open["counters"], "name"), of_unit("slots"));
    let lanes = open["lanes"].as_array().expect("lanes").iter();
    let rows: Vec<Value> =
        lanes.flat_map(|lane| lane["rows"].as_array().cloned()).flatten().collect();
    let rows = names(&json!(rows), "name");
    assert!(of_unit("engine").iter().all(|name| rows.contains(name)), "{rows:?}");
}

/// A hang: a span without an end, while its process does other work for ten seconds.
#[test]
fn what_has_not_ended_is_at_least_as_long_as_it_was_seen() {
    let place = Place::new();
    let second = 1_000_000_000;
    let events = vec![
        (BEGINS, 1000, 1, 1),
        (ENDS, 2000, 1, 1),
        (BEGINS, 3000, 1, 2),
        (LEAVE, 10 * second + 3000, 1, 7),
    ];
    write(&place, "hang", &[events]);
    let stats = place.json(&["stats", "hang", "--json"]);
    let span = &stats["spans"][0];
    assert_eq!((&span["count"], &span["max_ns"]), (&1.into(), &(10 * second).into()));
    assert_eq!(span["not_exact"]["max_ns"], "lower_bound");
    let slowest = &span["slowest"][0];
    assert_eq!((&slowest["key"], &slowest["end_ns"]), (&"2".into(), &Value::Null));
    assert_eq!(slowest["not_exact"]["duration_ns"], "lower_bound");
    let path = place.json(&["path", "hang", "--span", "request", "--at", "5s", "--json"]);
    assert_eq!(path["spans"][0]["has_ended"], false);
    assert_eq!(path["spans"][0]["begin_ns"], 3000);
    // If ends are not selected, it is unknown which spans are unfinished.
    let some = place.json(&["stats", "hang", "--event", "begins", "--json"]);
    assert_eq!(some["spans"][0]["slowest"], json!([]));
}

/// Without keys, receives of messages that were in flight at the start of the selected time are not matched
/// with later sends. With keys, the other messages stay exact.
#[test]
fn what_was_on_its_way_at_a_cut_is_not_guessed() {
    let place = Place::new();
    let of = |kinds: [u32; 2]| {
        let sent = [100, 200, 300].map(|time| (kinds[0], time, 1, time));
        let received = [250, 350, 450].map(|time| (kinds[1], time, 2, time - 150));
        [sent.to_vec(), received.to_vec()]
    };
    write(&place, "trace", &[of([PUT, TAKE]), of([LEAVE, ARRIVE])].concat());
    let channel = |options: &[&str], name: &str| {
        let stats = place.json(&[&["stats", "trace", "--json"], options].concat());
        let all = stats["messages"].as_array().expect("channels").clone();
        all.into_iter().find(|of| of["channel"] == name).unwrap_or_else(|| panic!("{stats}"))
    };
    for name in ["fifo", "msg"] {
        let whole = channel(&[], name);
        assert_eq!((&whole["matched"], &whole["max_ns"]), (&json!(3), &json!(150)), "{whole}");
        assert_eq!(whole["not_exact"], json!({}), "{whole}");
    }
    // 50 ns after the first event: one message is in flight.
    let from = ["--from", "0.00000005s"];
    let fifo = channel(&from, "fifo");
    let is_exact = |of: &Value, name: &str| of["not_exact"][name].is_null();
    for name in ["matched", "count", "never_sent", "never_received"] {
        assert!(!is_exact(&fifo, name), "{name}: {fifo}");
    }
    assert!(fifo["max_ns"].is_null() || !is_exact(&fifo, "max_ns"), "{fifo}");
    let keyed = channel(&from, "msg");
    assert_eq!((&keyed["matched"], &keyed["max_ns"]), (&json!(2), &json!(150)), "{keyed}");
    assert!(is_exact(&keyed, "matched") && is_exact(&keyed, "max_ns"), "{keyed}");
    assert_eq!(keyed["never_sent"], 1, "{keyed}");
    assert!(!is_exact(&keyed, "never_sent") && is_exact(&keyed, "never_received"), "{keyed}");
    // The same at the end of the selected time.
    let keyed = channel(&["--until", "0.0000003s"], "msg");
    assert_eq!((&keyed["matched"], &keyed["never_received"]), (&json!(2), &json!(1)), "{keyed}");
    assert!(!is_exact(&keyed, "never_received") && is_exact(&keyed, "never_sent"), "{keyed}");
}

/// Returns begin and length of a recording in nanoseconds, as reported by each consumer.
fn lengths(place: &Place, name: &str) -> Vec<(&'static str, i64, i64)> {
    let mut all = Vec::new();
    let number = |value: &Value| value.as_i64().expect("a number");
    let info = place.json(&["info", name, "--json"]);
    let (first, last) = (number(&info["first_ns"]), number(&info["last_ns"]));
    all.push(("info", first, last - first));
    all.push(("info duration", first, number(&info["duration_ns"])));
    let stats = place.json(&["stats", name, "--json"]);
    all.push(("stats", number(&stats["first_ns"]), number(&stats["duration_ns"])));
    // Seconds, computed from count and rate of an event class.
    let class = &stats["events"][0];
    let seconds = class["count"].as_f64().unwrap() / class["rate_per_s"].as_f64().expect("a rate");
    all.push(("rates", first, (seconds * 1e9).round() as i64));
    let table = |table: &str, columns: &str| -> Vec<i64> {
        let output = place.lat(&["table", name, "--name", table, "--column", columns]);
        let text = String::from_utf8(output.stdout).expect("CSV");
        let row = text.lines().last().expect("a row");
        row.split(',').map(|cell| cell.parse().expect("a number")).collect()
    };
    let ends = table("recordings", "begin_ts,end_ts");
    all.push(("table", ends[0], ends[1] - ends[0]));
    if stats["states"].as_array().is_some_and(|states| !states.is_empty()) {
        let end = table("states", "end_ts")[0];
        all.push(("the state that is not left", first, end - first));
    }
    let open = Viewer::start(place, &[name]).page().ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().expect("a time").parse().expect("a number");
    // The viewer includes the last nanosecond.
    let length = number(&open["end"]) - number(&open["begin"]) - 1;
    all.push(("page", origin + number(&open["begin"]), length));
    let diff = place.json(&["diff", name, name, "--json"]);
    let seconds = diff["good_seconds_per_run"].as_f64().expect("seconds");
    all.push(("diff", first, (seconds * 1e9).round() as i64));
    let path = place.json(&["path", name, "--thread", "2", "--json"]);
    all.push(("path", first, number(&path["spans"][0]["end_ns"]) - first));
    all
}

/// A complete span begins before the last event and ends after it.
#[test]
fn a_recording_lasts_until_its_last_complete_span_ends() {
    let place = Place::new();
    let chrome = r#"[{"name":"task","cat":"a","ph":"X","ts":1000,"dur":500,"pid":1,"tid":1},
        {"name":"long","cat":"a","ph":"X","ts":1100,"dur":900.5,"pid":1,"tid":2},
        {"name":"mark","cat":"a","ph":"i","s":"t","ts":1300,"pid":1,"tid":1}]"#;
    fs::write(place.0.join("chrome.json"), chrome).expect("a trace");
    let of_thread_1 = vec![(MODE, 1_000_000, 1, 0), (LEVEL, 1_300_000, 1, 0)];
    write(&place, "ctf", &[of_thread_1, vec![(JOB, 1_100_000, 2, 900_500)]]);
    for name in ["chrome.json", "ctf"] {
        for (consumer, begin, nanos) in lengths(&place, name) {
            assert_eq!((begin, nanos), (1_000_000, 1_000_500), "{consumer} of {name}");
        }
        // The selected events end at the latest with the selected time.
        let chosen = ["--from", "@0.0011", "--until", "@0.0015", "--json"];
        let stats = place.json(&[&["stats", name], &chosen[..]].concat());
        let info = place.json(&[&["info", name], &chosen[..]].concat());
        assert_eq!([&stats["duration_ns"], &info["duration_ns"]], [400_000; 2], "{name}");
    }
}

/// More threads than the viewer has lanes for: the remaining ones share one lane, whose name states this.
#[test]
fn threads_without_a_lane_of_their_own_share_one() {
    const THREADS: u64 = 70_000;
    let place = Place::new();
    let jobs = (0..THREADS).map(|number| (JOB, 1_000 + number, 10 + number as u32, 1)).collect();
    write(&place, "many", &[jobs]);
    let open = Viewer::start(&place, &["many"]).page().ask("open", json!({}));
    let lanes = open["lanes"].as_array().expect("lanes");
    assert!(lanes.len() < 66_000, "{}", lanes.len());
    let named = |name: &str| lanes.iter().find(|lane| lane["name"] == name);
    let shared = named("CPUs, processes and threads beyond 65536 lanes").expect("the lane");
    let own = lanes.iter().filter(|lane| lane["kind"] == "thread").count() as u64;
    assert_eq!(shared["events"].as_u64(), Some(THREADS - own));
    assert_eq!(open["span_kinds"][0]["name"], "request");
    let count: u64 = open["span_kinds"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|kind| if kind["name"] == "job" { kind["count"].as_u64().unwrap_or(0) } else { 0 })
        .sum();
    assert_eq!(count, THREADS);
}
