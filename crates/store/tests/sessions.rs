// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several recordings on one timeline: relations of their clocks, and their effect on times between
//! recordings.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lateralis_model::Source;
use lateralis_store::{Recording, Scan, Session, TableFormat};
use lateralis_traces::OpenOptions;
use lateralis_units::Ticks;
use proptest::prelude::*;
use serde_json::Value;

/// Differences between the traces of a test.
struct Clock {
    name: &'static str,
    uuid: Option<&'static str>,
    host: &'static str,
    hz: u64,
    offset_s: i64,
    offset: i64,
    precision: u64,
    absolute: bool,
}

const HERE: Clock = Clock {
    name: "tsc",
    uuid: Some("12345678-1234-4321-8765-123456789abc"),
    host: "here",
    hz: 2_000_000_000,
    offset_s: 1_700_000_000,
    offset: 7,
    precision: 100,
    absolute: true,
};

const SCHEMA: &str = "subsystem net \"Network\" {\\n\
    event SEND (id: u32) send wire key id,\\n\
    event RECV (id: u32) recv wire key id,\\n\
    event BEGIN (id: u32) begin work key id,\\n\
    event END (id: u32) end work key id,\\n\
    };";

const CLASSES: [&str; 4] = ["SEND", "RECV", "BEGIN", "END"];

/// A trace of CTF 1.8 with events `(class, ticks, id)`, as packets of 3 events.
fn write(directory: &Path, clock: &Clock, events: &[(usize, u64, u32)]) {
    fs::create_dir_all(directory).unwrap();
    let mut text = String::from("/* CTF 1.8 */\n");
    text += "typealias integer { size = 32; align = 8; } := u32;\n\
        typealias integer { size = 64; align = 8; } := u64;\n";
    text += "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };\n";
    text += &format!(
        "env {{ hostname = \"{}\"; lateralis_schema_net = \"{}\"; }};\n",
        clock.host,
        SCHEMA.replace('"', "\\\"")
    );
    text += &format!(
        "clock {{ name = {}; freq = {}; precision = {}; offset_s = {}; offset = {}; absolute = {}; {} }};\n",
        clock.name,
        clock.hz,
        clock.precision,
        clock.offset_s,
        clock.offset,
        if clock.absolute { "TRUE" } else { "FALSE" },
        clock.uuid.map_or(String::new(), |uuid| format!("uuid = \"{uuid}\";")),
    );
    text += &format!(
        "typealias integer {{ size = 64; align = 8; map = clock.{}.value; }} := ticks;\n",
        clock.name
    );
    text += "stream { packet.context := struct { ticks timestamp_begin; ticks timestamp_end; \
        u64 content_size; u64 packet_size; }; \
        event.header := struct { u32 id; ticks timestamp; }; };\n";
    for (id, name) in CLASSES.iter().enumerate() {
        text += &format!(
            "event {{ name = \"net:{name}\"; id = {id}; fields := struct {{ u32 id; }}; }};\n"
        );
    }
    fs::write(directory.join("metadata"), text).unwrap();
    let mut stream = Vec::new();
    for packet in events.chunks(3) {
        let bits = (36 + 16 * packet.len() as u64) * 8;
        stream.extend(0xc1fc_1fc1u32.to_le_bytes());
        for word in [packet[0].1, packet[packet.len() - 1].1, bits, bits] {
            stream.extend(word.to_le_bytes());
        }
        for (class, ticks, id) in packet {
            stream.extend((*class as u32).to_le_bytes());
            stream.extend(ticks.to_le_bytes());
            stream.extend(id.to_le_bytes());
        }
    }
    fs::write(directory.join("stream"), stream).unwrap();
}

fn rows(session: &Session, table: &str) -> Vec<Value> {
    let mut out = Vec::new();
    let table = session.table(table).unwrap();
    session.export(table, &Scan::default(), TableFormat::JsonLines, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct Pair {
    _directory: tempfile::TempDir,
    paths: [PathBuf; 2],
}

/// Two traces: the messages that the first sends at ticks 1000, 2000, … are received by the second 150
/// ticks later.
fn pair(second: &Clock) -> Pair {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["first", "second"].map(|name| directory.path().join(name));
    let sends: Vec<_> = (1..50).map(|n: u32| (0, u64::from(n) * 1000, n)).collect();
    let receives: Vec<_> = (1..50).map(|n: u32| (1, u64::from(n) * 1000 + 150, n)).collect();
    // One span from the first to the second, and one inside the first.
    let more = [(2, 60_000, 1), (2, 61_000, 2), (3, 61_010, 2)];
    write(&paths[0], &HERE, &[&sends[..], &more].concat());
    write(&paths[1], second, &[&receives[..], &[(3, 60_080, 1)]].concat());
    Pair { _directory: directory, paths }
}

impl Pair {
    fn as_one(&self) -> Session {
        let open = Recording::open_all(&self.paths, &OpenOptions::default());
        Session::new(vec![open.unwrap()])
    }

    fn as_two(&self) -> Session {
        Session::new(self.paths.iter().map(|path| Recording::open(path).unwrap()).collect())
    }
}

#[test]
fn one_counter_is_converted_alike_and_leaves_no_error() {
    // The other recorder measured a different frequency and offset.
    let pair = pair(&Clock { hz: 2_000_000_777, offset: 4_000_007, precision: 90, ..HERE });
    for session in [pair.as_one(), pair.as_two()] {
        let told = rows(&session, "recordings");
        assert_eq!(told.len(), 2);
        let of = |name: &str| told.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("clock_relation"), ["reference", "same"]);
        assert_eq!(of("clock_error"), [0, 0]);
        assert_eq!(of("clock"), ["tsc", "tsc"]);
        let names = pair.paths.each_ref().map(|path| path.display().to_string());
        assert_eq!(of("recording"), names);
        for path in &names {
            let of_path = |row: &&Value| row["recording"] == **path;
            let count = |table: &str| rows(&session, table).iter().filter(of_path).count();
            assert_eq!(count("events"), if *path == names[0] { 52 } else { 50 });
            assert_eq!((count("streams"), count("packets") > 16, count("classes")), (1, true, 4));
        }
        for row in rows(&session, "events") {
            let id: Value = serde_json::from_str(row["fields"].as_str().unwrap()).unwrap();
            let ticks = match row["class"].as_str().unwrap() {
                "net:SEND" => id["id"].as_u64().unwrap() * 1000,
                "net:RECV" => id["id"].as_u64().unwrap() * 1000 + 150,
                _ => continue,
            };
            let expected = lateralis_model::Clock::new("", HERE.hz, HERE.offset_s, HERE.offset);
            assert_eq!(row["ts"], expected.nanos(Ticks(ticks)).0, "{row}");
        }
    }
    let messages = rows(&pair.as_one(), "messages");
    assert_eq!(messages.len(), 49);
    for message in messages {
        assert_eq!((&message["latency"], &message["clock_error"]), (&75.into(), &0.into()));
        assert_eq!(message["quality"], "exact");
    }
}

#[test]
fn a_latency_within_the_error_of_two_clocks_says_nothing() {
    // Another counter of the same machine, 50 ns late; each has a precision of 50 ns.
    let epoch = |precision, host| Clock { name: "other", offset: 107, precision, host, ..HERE };
    for (precision, host, error, quality) in [
        (100, "here", Value::from(100), "exact"),
        (300, "here", Value::from(200), "unknown"),
        (0, "here", Value::Null, "unknown"),
        (100, "there", Value::Null, "unknown"),
    ] {
        let pair = pair(&epoch(precision, host));
        let session = pair.as_one();
        let told = rows(&session, "recordings");
        assert_eq!(
            (&told[1]["clock_relation"], &told[1]["clock_error"]),
            (&"epoch".into(), &error)
        );
        assert_eq!(told[1]["clock_offset"], 1_700_000_000_000_000_053i64);
        let messages = rows(&session, "messages");
        assert_eq!(messages.len(), 49);
        for message in &messages {
            assert_eq!((&message["latency"], &message["clock_error"]), (&125.into(), &error));
            assert_eq!(message["quality"], quality, "{message}");
        }
        let spans = rows(&session, "spans");
        assert_eq!(spans.len(), 2);
        for span in &spans {
            let crosses = span["key"] == "1";
            let expected = if crosses { (90, &error) } else { (5, &Value::from(0)) };
            let told = (span["duration"].as_i64().unwrap(), &span["clock_error"]);
            assert_eq!(told, expected, "{span}");
            // 90 ns between two clocks that may be 100 ns apart.
            assert_eq!(span["quality"], if crosses { "unknown" } else { "exact" }, "{span}");
            assert_eq!(span["recording"], pair.paths[0].display().to_string());
        }
    }
}

#[test]
fn clocks_without_a_date_are_unrelated() {
    let pair = pair(&Clock { name: "other", absolute: false, ..HERE });
    for session in [pair.as_one(), pair.as_two()] {
        let told = rows(&session, "recordings");
        assert_eq!(told[1]["clock_relation"], "unrelated");
        assert_eq!(
            (&told[1]["clock_error"], &told[1]["clock_offset"]),
            (&Value::Null, &Value::Null)
        );
    }
    assert!(rows(&pair.as_one(), "messages").iter().all(|row| row["quality"] == "unknown"));
}

#[test]
fn what_is_lost_and_damaged_moves_with_its_clock() {
    let pair = pair(&Clock { offset: 4_000_007, ..HERE });
    let stream = pair.paths[1].join("stream");
    let mut bytes = fs::read(&stream).unwrap();
    // The magic number of the third packet, and its size.
    let third = 2 * (36 + 3 * 16);
    bytes[third..third + 36].fill(0xff);
    fs::write(&stream, bytes).unwrap();
    let alone = Recording::open(&pair.paths[1]).unwrap();
    let both = Recording::open_all(&pair.paths, &OpenOptions::default()).unwrap();
    let (alone, both) = (alone.source.damage(), both.source.damage());
    assert!(!alone.is_empty() && alone.len() == both.len());
    for (alone, both) in alone.iter().zip(both) {
        // 4,000,000 ticks of 2 GHz.
        let moved = |time: Option<lateralis_units::Nanos>| time.map(|time| time.0 - 2_000_000);
        assert!(alone.interval.begin.is_some());
        assert_eq!(moved(alone.interval.begin), both.interval.begin.map(|time| time.0));
        assert_eq!(moved(alone.interval.end), both.interval.end.map(|time| time.0));
    }
    let session = pair.as_two();
    let rows = rows(&session, "recordings");
    assert_eq!((&rows[0]["is_damaged"], &rows[1]["is_damaged"]), (&false.into(), &true.into()));
    let table = session.table("damage").unwrap();
    let partitions = session.partitions(table, &Scan::default());
    let mut count = 0;
    for partition in partitions {
        let see = &mut |batch: arrow_array::RecordBatch| {
            count += batch.num_rows();
            ControlFlow::Continue(())
        };
        session.scan(table, &partition, &Scan::default(), see).unwrap();
    }
    assert!(count > 0);
}

#[test]
fn kinds_of_two_recordings_have_their_own_names() {
    let pair = pair(&HERE);
    let metadata = pair.paths[1].join("metadata");
    let text = fs::read_to_string(&metadata).unwrap().replace(" work ", " rest ");
    fs::write(&metadata, text).unwrap();
    let names: Vec<Value> =
        rows(&pair.as_two(), "spans").iter().map(|row| row["span"].clone()).collect();
    assert_eq!(names, ["work", "work", "rest"]);
}

/// Writes the report with the interval of a recorder, in ticks.
fn report(directory: &Path, start: u64, end: u64) {
    let text = format!(
        "{{\"complete\": true, \"clock\": {{\"start\": {{\"ticks\": {start}}}, \
         \"end\": {{\"ticks\": {end}}}}}}}"
    );
    fs::write(directory.join("report.json"), text).unwrap();
}

/// Number of rows of a table by status.
fn by_status(session: &Session, table: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for row in rows(session, table) {
        *found.entry(row["status"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    found
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let some = of.iter().filter(|(_, count)| *count > 0);
    some.map(|(status, count)| ((*status).to_owned(), *count)).collect()
}

#[test]
fn what_arrives_before_it_left_by_two_clocks_is_a_message() {
    // The second clock is 200 ns slow: messages arrive 125 ns before they were sent.
    let slow = |precision| Clock { name: "other", offset: -393, precision, ..HERE };
    for (precision, complete) in [(300, 49), (100, 0), (0, 0)] {
        let pair = pair(&slow(precision));
        let session = pair.as_one();
        let apart = 49 - complete;
        let expected =
            counts(&[("complete", complete), ("not_received", apart), ("not_sent", apart)]);
        assert_eq!(by_status(&session, "messages"), expected, "{precision}");
        for row in rows(&session, "messages").iter().filter(|row| row["status"] == "complete") {
            let begin = row["ts"].as_i64().unwrap();
            assert_eq!((&row["end_ts"], &row["latency"]), (&(begin - 125).into(), &0.into()));
            assert_eq!((&row["clock_error"], &row["quality"]), (&200.into(), &"unknown".into()));
        }
    }
}

#[test]
fn what_one_recording_leaves_open_does_not_end_in_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["first", "second"].map(|name| directory.path().join(name));
    let sends: Vec<_> = (1..=10).map(|id: u32| (0, 1000 + 10 * u64::from(id), id)).collect();
    write(&paths[0], &HERE, &[&sends[..], &[(2, 2000, 3)]].concat());
    let receives: Vec<_> = (1..=5).map(|id: u32| (1, 5000 + 10 * u64::from(id), id)).collect();
    let more = [(0, 6000, 6), (1, 6010, 6), (3, 6020, 3), (2, 6030, 3), (3, 6040, 3)];
    write(&paths[1], &HERE, &[&receives[..], &more].concat());
    report(&paths[0], 900, 2500);
    report(&paths[1], 4500, 6100);
    let session = Session::new(vec![Recording::open_all(&paths, &OpenOptions::default()).unwrap()]);
    let messages = counts(&[("complete", 1), ("not_received", 10), ("not_sent", 5)]);
    assert_eq!(by_status(&session, "messages"), messages);
    let spans = counts(&[("complete", 1), ("unfinished", 1), ("orphan", 1)]);
    assert_eq!(by_status(&session, "spans"), spans);
    let spans = rows(&session, "spans");
    assert_eq!(spans.iter().find(|row| row["status"] == "complete").unwrap()["duration"], 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // Compared with following each key through each interval covered by recordings.
    #[test]
    fn messages_and_spans_of_small_recordings_are_those_that_a_search_finds(
        raw in prop::collection::vec(
            (0u64..400, prop::collection::vec((0usize..4, 0u32..3, 1u64..40), 1..20), 0u64..300), 2..4),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        let mut all: Vec<(u64, usize, u32)> = Vec::new();
        let mut lengths: Vec<(u64, u64)> = Vec::new();
        for (number, (begin, events, longer)) in raw.iter().enumerate() {
            // All times are different: 2 ticks per nanosecond.
            let mut at = begin * 20 + 2 * number as u64;
            let mut own = Vec::new();
            for &(class, id, later) in events {
                at += later * 20;
                own.push((class, at, id));
            }
            // There need not be events while the recorder is at work.
            lengths.push((own[0].1, at + longer * 20));
            all.extend(own.iter().map(|&(class, at, id)| (at, class, id)));
            paths.push(directory.path().join(number.to_string()));
            write(&paths[number], &HERE, &own);
            report(&paths[number], own[0].1, at + longer * 20);
        }
        all.sort_unstable();
        let is_open = |at: u64| lengths.iter().any(|&(begin, end)| begin < at && at <= end);
        let mut open: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let (mut messages, mut spans) = ([0; 3], [0; 3]);
        for &(at, class, id) in &all {
            if !is_open(at) {
                open.clear();
            }
            let found = if class < 2 { &mut messages } else { &mut spans };
            let waiting = open.entry((class / 2, id)).or_default();
            if class % 2 == 0 {
                *waiting += 1;
                found[1] += 1;
            } else if *waiting > 0 {
                *waiting -= 1;
                found[1] -= 1;
                found[0] += 1;
            } else {
                found[2] += 1;
            }
        }
        let session =
            Session::new(vec![Recording::open_all(&paths, &OpenOptions::default()).unwrap()]);
        let names = ["complete", "not_received", "not_sent"];
        let expected: Vec<(&str, usize)> = names.into_iter().zip(messages).collect();
        prop_assert_eq!(by_status(&session, "messages"), counts(&expected));
        let names = ["complete", "unfinished", "orphan"];
        let expected: Vec<(&str, usize)> = names.into_iter().zip(spans).collect();
        prop_assert_eq!(by_status(&session, "spans"), counts(&expected));
    }
}
