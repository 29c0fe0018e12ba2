// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat info`, `lat print` and `lat stats` on a small recording made here, in the
//! layout of spec/trace-layout.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lateralis_pleco::ctf::{ByteOrder, EnvValue, TraceDescription, ctf1, ctf2};

const SCHEMA: &str = r#"
schema test;
subsystem t "A test" {
    event LOCK   "taken"     (mutex: u64 @hex)  begin held key mutex,
    event UNLOCK "released"  (mutex: u64 @hex)  end   held key mutex,
    event LOG "slot %2d of %s is %5.1f%% full" (slot: i32, name: string, load: f64) format,
    event MANY "a list" (colour: enum { RED, GREEN }, list: [u16]),
};
budget held max < 25 ns;
"#;

/// Ids in the stream: the schema begins at 16.
const LOCK: u16 = 16;
const UNLOCK: u16 = 17;
const LOG: u16 = 18;
const MANY: u16 = 19;

pub struct Recording {
    pub directory: PathBuf,
}

impl Drop for Recording {
    fn drop(&mut self) {
        // What cannot be removed is in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A recording of one stream of two packets, with three events lost between.
pub fn recording(name: &str, write: fn(&TraceDescription) -> String) -> Recording {
    let schema = lateralis_pleco::compile("test.pleco", SCHEMA.as_bytes());
    let schema = schema.schema.unwrap_or_else(|| panic!("the schema of the test"));
    let mut trace = TraceDescription::of_schema(&schema, ByteOrder::Little);
    let lateralis = EnvValue::String("lateralis".to_owned());
    trace.environment.push(("tracer_name".to_owned(), lateralis));
    let name = format!("lateralis-look-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(directory.join("ctf")).unwrap();
    fs::write(directory.join("ctf/metadata"), write(&trace)).unwrap();
    let stream = trace.streams[0].id;
    let mut first = Packet::new(0, 1_000_000);
    first.record(0, &[&7u32.to_le_bytes(), &8u32.to_le_bytes()]);
    first.record(LOCK, &[&0xbeefu64.to_le_bytes()]);
    first.record(LOG, &[&4i32.to_le_bytes(), b"ring\0\0\0\0\0\0\0\0", &12.34f64.to_le_bytes()]);
    first.record(UNLOCK, &[&0xbeefu64.to_le_bytes()]);
    let mut second = Packet::new(1, 2_000_000);
    second.lost = 3;
    second.record(
        MANY,
        &[&[1], &[0; 3], &2u32.to_le_bytes(), &5u16.to_le_bytes(), &6u16.to_le_bytes()],
    );
    second.record(LOCK, &[&0xcafeu64.to_le_bytes()]);
    second.record(UNLOCK, &[&0xd00du64.to_le_bytes()]);
    let bytes = [first.finish(&trace.uuid, stream), second.finish(&trace.uuid, stream)].concat();
    fs::write(directory.join("ctf/cpu2"), bytes).unwrap();
    Recording { directory }
}

struct Packet {
    bytes: Vec<u8>,
    sequence: u64,
    begin: u64,
    time: u64,
    lost: u64,
}

impl Packet {
    fn new(sequence: u64, begin: u64) -> Self {
        Self { bytes: vec![0; 128], sequence, begin, time: begin, lost: 0 }
    }

    fn record(&mut self, id: u16, fields: &[&[u8]]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.time += 10;
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(&self.time.to_le_bytes()[..6]);
        fields.iter().for_each(|field| self.bytes.extend(*field));
    }

    fn finish(mut self, uuid: &[u8; 16], stream: u32) -> Vec<u8> {
        let content = self.bytes.len() as u64 * 8;
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let size = self.bytes.len() as u64 * 8;
        self.bytes[..4].copy_from_slice(&0xc1fc_1fc1u32.to_le_bytes());
        self.bytes[4..20].copy_from_slice(uuid);
        self.bytes[20..24].copy_from_slice(&stream.to_le_bytes());
        let words = [self.begin, self.time, content, size, self.sequence, self.lost, self.lost];
        for (word, place) in words.iter().zip(self.bytes[24..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.bytes[112..116].copy_from_slice(&2u32.to_le_bytes());
        self.bytes
    }
}

fn lat(arguments: &[&str], path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
    let (first, rest) = arguments.split_first().unwrap();
    command.arg(first).arg(path).args(rest).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn print_shows_one_line_an_event() {
    let expected = r#"0.001000020 cpu  2           7/8  t:LOCK mutex=0xbeef
0.001000030 cpu  2           7/8  t:LOG "slot  4 of ring is  12.3% full"
0.001000040 cpu  2           7/8  t:UNLOCK mutex=0xbeef
0.002000010 cpu  2           7/8  t:MANY colour=GREEN list=[5, 6]
0.002000020 cpu  2           7/8  t:LOCK mutex=0xcafe
0.002000030 cpu  2           7/8  t:UNLOCK mutex=0xd00d
"#;
    for (name, write) in [("text1", ctf1 as fn(&TraceDescription) -> String), ("text2", ctf2)] {
        let recording = recording(name, write);
        let output = lat(&["print"], &recording.directory);
        assert_eq!(text(&output.stdout), expected, "{name}");
        assert_eq!(text(&output.stderr), "lost: 3 (full)\n");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn print_chooses_events_by_name_and_time() {
    let recording = recording("choice", ctf1);
    let lines = |arguments: &[&str]| {
        let output = lat(arguments, &recording.directory);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().count()
    };
    assert_eq!(lines(&["print", "--event", "t:*LOCK"]), 4);
    assert_eq!(lines(&["print", "--event", "t:*LOCK,!t:LOCK"]), 2);
    assert_eq!(lines(&["print", "--event", "lateralis:*"]), 1);
    assert_eq!(lines(&["print", "--from", "1ms"]), 3);
    assert_eq!(lines(&["print", "--until", "40ns"]), 3);
    assert_eq!(lines(&["print", "-n", "2"]), 2);
    assert_eq!(lines(&["print", "--format", "babeltrace"]), 7);
    let wrong = lat(&["print", "--event", "nothing"], &recording.directory);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("no event of the trace matches nothing"));
}

#[test]
fn print_writes_json_that_a_parser_reads() {
    let recording = recording("json", ctf1);
    let output = lat(&["print", "--format", "json"], &recording.directory);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["name"], "t:LOCK");
    assert_eq!((&lines[0]["pid"], &lines[0]["tid"]), (&7.into(), &8.into()));
    assert_eq!(lines[0]["time_ns"], 1_000_020);
    assert_eq!(lines[0]["fields"]["mutex"], 0xbeef);
    assert_eq!(lines[1]["message"], "slot  4 of ring is  12.3% full");
    assert_eq!(lines[3]["fields"]["colour.label"], "GREEN");
    assert_eq!(lines[3]["fields"]["list"], serde_json::json!([5, 6]));
}

#[test]
fn stats_pairs_spans_and_checks_budgets() {
    let recording = recording("stats", ctf1);
    let output = lat(&["stats", "--json"], &recording.directory);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let held = &stats["spans"][0];
    assert_eq!(held["name"], "held");
    assert_eq!((&held["count"], &held["max_ns"]), (&1.into(), &20.into()));
    assert_eq!((&held["unfinished"], &held["orphans"]), (&1.into(), &1.into()));
    assert_eq!(stats["budgets"][0]["kept"], true);
    assert_eq!(stats["losses"][0]["count"], 3);
    // Three events are lost, but not inside the one that has both ends.
    assert_eq!(held["touched_by_losses"], 0);
    let expected = [("count", "lower_bound"), ("max_ns", "lower_bound"), ("p99_ns", "unknown")];
    for (name, quality) in expected {
        assert_eq!(held["not_exact"][name], quality, "{name}");
    }
    assert_eq!(stats["budgets"][0]["quality"], "unknown");
    // Before the loss everything is certain.
    let arguments = ["stats", "--json", "--until", "25ns"];
    let before = lat(&arguments, &recording.directory).stdout;
    let before: serde_json::Value = serde_json::from_slice(&before).unwrap();
    // But for how long the one lasts that has not ended.
    let open = serde_json::json!({ "max_ns": "lower_bound" });
    assert_eq!(before["spans"][0]["not_exact"], open, "{before}");
    assert_eq!(before["spans"][0]["unfinished"], 1);
    assert_eq!(before["events"][0]["not_exact"]["count"], serde_json::Value::Null);
    let page = text(&lat(&["stats"], &recording.directory).stdout);
    assert!(page.contains("≥ 1  ≥ 20 ns"), "{page}");
    assert!(page.contains("20 ns ?") && page.contains("it could only be more"), "{page}");
    assert!(page.contains("held max < 25 ns"), "{page}");
    assert!(page.contains("their other halves may be among them"), "{page}");
}

#[test]
fn info_says_what_is_there_and_what_is_not() {
    let recording = recording("info", ctf1);
    let output = lat(&["info", "--json"], &recording.directory);
    assert_eq!(output.status.code(), Some(0));
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&info["events_total"], &info["events_internal"]), (&7.into(), &1.into()));
    assert_eq!(info["streams"][0]["packets"], 2);
    assert_eq!(info["processes"][0]["threads"][0]["events"], 6);
    assert_eq!(info["losses"][0]["cause"], "full");
    assert_eq!(info["damage"], serde_json::json!([]));
    let inner = lat(&["info"], &recording.directory.join("ctf"));
    assert!(text(&inner.stdout).contains("written by lateralis"));
}

#[test]
fn damage_is_reported_and_is_a_problem() {
    let recording = recording("damage", ctf1);
    let path = recording.directory.join("ctf/cpu2");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    for command in ["info", "print", "stats"] {
        let output = lat(&[command], &recording.directory);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains("the file ends 5 bytes before its packet"), "{command}: {all}");
    }
    let printed = text(&lat(&["print"], &recording.directory).stdout);
    assert_eq!(printed.lines().count(), 5, "all but the one that is cut");
}

#[test]
fn what_is_no_trace_is_said_in_a_sentence() {
    for command in ["info", "print", "stats"] {
        let output = lat(&[command], Path::new("/nonexistent/trace"));
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with("error: "));
        assert_eq!(output.stdout, b"");
    }
}
