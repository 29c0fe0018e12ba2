// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream written by the layout rules, with our CTF 1.8 metadata, is read by
//! babeltrace2 without a warning and with the right values: every field type, both byte
//! orders, packet context, times wider than the 48 bits of a record.

use crate::every_type;

use every_type::{event, payload, records, schema, shown};
use lateralis_pleco::ctf::{
    ByteOrder, ClockDescription, EnvValue, RingKind, StreamClass, TraceDescription, ctf1, ctf2,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const UUID: [u8; 16] = *b"0123456789abcdef";
/// Above 2^48, so that readers must take the upper bits from the packet.
const START: u64 = (1 << 50) + 1_000_000;

fn description(order: ByteOrder, kind: RingKind) -> TraceDescription {
    TraceDescription {
        uuid: UUID,
        byte_order: order,
        clock: ClockDescription {
            name: "tsc".to_owned(),
            description: "a \"counter\" with \\ and é".to_owned(),
            frequency_hz: 1_000_000_000,
            offset_seconds: 10,
            offset_cycles: 5,
            precision_cycles: 100,
            uuid: Some(*b"fedcba9876543210"),
            absolute: true,
        },
        environment: vec![
            ("tracer_name".to_owned(), EnvValue::String("lateralis".to_owned())),
            ("command".to_owned(), EnvValue::String("a\tb \\ \"c\"\u{1} é\n".to_owned())),
            ("pid".to_owned(), EnvValue::Integer(-5)),
        ],
        streams: vec![StreamClass { id: 3, ring_kind: kind, schemas: vec![(16, schema())] }],
    }
}

struct Writer {
    is_big: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn number(&mut self, value: u64, bytes: usize) {
        let little = value.to_le_bytes();
        let mut wanted = little[..bytes].to_vec();
        if self.is_big {
            wanted.reverse();
        }
        self.bytes.extend(wanted);
    }

    fn record(&mut self, id: u32, time: u64, payload: &[u8]) {
        while !self.bytes.len().is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.number(id.into(), 2);
        self.number(time & ((1 << 48) - 1), 6);
        self.bytes.extend_from_slice(payload);
    }

    fn set(&mut self, offset: usize, value: u64) {
        let rest = self.bytes.split_off(offset + 8);
        self.bytes.truncate(offset);
        self.number(value, 8);
        self.bytes.extend(rest);
    }
}

/// One packet [spec/trace-layout.md, Packet].
fn packet(
    is_big: bool,
    sequence: u64,
    times: (u64, u64),
    records: &[(u32, u64, Vec<u8>)],
) -> Vec<u8> {
    let mut out = Writer { is_big, bytes: Vec::new() };
    out.number(0xc1fc_1fc1, 4);
    out.bytes.extend_from_slice(&UUID);
    out.number(3, 4);
    for value in [times.0, times.1, 0, 0, sequence, 0, 0, 0, 0, 0, 0xabc] {
        out.number(value, 8);
    }
    for value in [1, 0, 0, 0] {
        out.number(value, 4);
    }
    assert_eq!(out.bytes.len(), 128);
    for (id, time, payload) in records {
        out.record(*id, *time, payload);
    }
    let content_bits = out.bytes.len() as u64 * 8;
    while !out.bytes.len().is_multiple_of(8) {
        out.bytes.push(0);
    }
    let packet_bits = out.bytes.len() as u64 * 8;
    out.set(40, content_bits);
    out.set(48, packet_bits);
    out.bytes
}

/// Where a test may write.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("babeltrace-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The program; another one than the installed can be named, for instance one
/// that reads CTF 2.
fn program() -> String {
    std::env::var("BABELTRACE2").unwrap_or_else(|_| "babeltrace2".to_owned())
}

/// True if babeltrace2 is there and reads CTF 2, which it does since version 2.1.
fn reads_ctf2() -> bool {
    let Ok(output) = Command::new(program()).arg("--version").output() else {
        eprintln!("SKIPPED: babeltrace2 is not installed");
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.trim_start_matches("Babeltrace ").split('.');
    let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    let is_new = (next(), next()) >= (2, 1);
    if !is_new {
        eprintln!("SKIPPED: this babeltrace2 is older than 2.1 and does not read CTF 2");
    }
    is_new
}

/// Standard output and standard error of babeltrace2, if it is there.
fn babeltrace(arguments: &[&str], trace: &Path) -> Option<(String, String)> {
    let outcome = Command::new(program()).args(arguments).arg(trace).output();
    let output = match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: babeltrace2 is not installed");
            return None;
        }
        other => other.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    Some((text, errors))
}

/// A stream of two packets with every record, what must be read from it, and the
/// time of the last but one.
fn stream(is_big: bool) -> (Vec<u8>, Vec<String>, u64) {
    let schema = schema();
    let mut time = START;
    let mut written = vec![(0, time, vec![0, 0, 0, 7, 0, 0, 0, 9])];
    if !is_big {
        written[0].2 = vec![7, 0, 0, 0, 9, 0, 0, 0];
    }
    let mut expected = vec!["lateralis:WRITER: { pid = 7, tid = 9 }".to_owned()];
    for (name, values) in records() {
        time += 10;
        let event = event(&schema, name);
        written.push((16 + event.index, time, payload(event, &values, is_big)));
        expected.push(format!("types:{name}: {}", shown(&schema, event, &values)));
    }
    let last = packet(is_big, 1, (time + 1, time + 10), &[(3, time + 5, b"mark\0".to_vec())]);
    expected.push("lateralis:MARK: { text = \"mark\" }".to_owned());
    let mut stream = packet(is_big, 0, (START, time), &written);
    stream.extend(last);
    (stream, expected, time)
}

fn check(name: &str, order: ByteOrder, kind: RingKind) {
    let directory = directory(name);
    fs::write(directory.join("metadata"), ctf1(&description(order, kind))).unwrap();
    let (stream, expected, time) = stream(order == ByteOrder::Big);
    fs::write(directory.join("stream"), stream).unwrap();
    let Some((text, errors)) = babeltrace(&["--no-delta", "--clock-cycles"], &directory) else {
        return;
    };
    assert_eq!(errors, "", "babeltrace2 warns");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{text}");
    let context = match kind {
        RingKind::PerCpu => "cpu_id = 1",
        RingKind::PerThread => "ring_id = 1",
    };
    for (i, (line, expected)) in lines.iter().zip(&expected).enumerate() {
        let cycles = match i {
            0 => START,
            i if i == lines.len() - 1 => time + 5,
            i => START + 10 * i as u64,
        };
        // Fields of the packet context stand between name and payload.
        let (name, fields) = expected.split_once(": ").unwrap();
        assert!(line.starts_with(&format!("[{cycles:020}] ")), "{line}");
        assert!(line.contains(&format!(" {name}: {{ ")), "{line}\n{name}");
        assert!(line.contains(context) && line.contains("area_id = 0xABC"), "{line}");
        assert!(line.ends_with(&format!("}}, {fields}")), "{line}\nexpected {fields}");
    }
}

#[test]
fn little_endian_per_cpu() {
    check("le-cpu", ByteOrder::Little, RingKind::PerCpu);
}

#[test]
fn little_endian_per_thread() {
    check("le-thread", ByteOrder::Little, RingKind::PerThread);
}

#[test]
fn big_endian_per_cpu() {
    check("be-cpu", ByteOrder::Big, RingKind::PerCpu);
}

/// What babeltrace2 prints with CTF 1.8 and CTF 2 metadata for the same stream
/// is the same, but for truth values and blobs, which only CTF 2 has.
fn check_twins(name: &str, order: ByteOrder) {
    if !reads_ctf2() {
        return;
    }
    let description = description(order, RingKind::PerCpu);
    let mut texts = Vec::new();
    for (version, metadata) in [("1", ctf1(&description)), ("2", ctf2(&description))] {
        let directory = directory(&format!("{name}-{version}"));
        fs::write(directory.join("metadata"), metadata).unwrap();
        fs::write(directory.join("stream"), stream(order == ByteOrder::Big).0).unwrap();
        let Some((text, errors)) = babeltrace(&["--no-delta", "--clock-cycles"], &directory) else {
            return;
        };
        assert_eq!(errors, "", "babeltrace2 warns");
        texts.push(text);
    }
    let old: Vec<&str> = texts[0].lines().collect();
    let new: Vec<&str> = texts[1].lines().collect();
    assert_eq!(old.len(), new.len());
    for (old, new) in old.iter().zip(&new) {
        let only_new = ["types:TRUTH", "types:BLOB", "types:ARRAYS", "types:ENUM_SEQUENCE"];
        if only_new.iter().any(|name| old.contains(name)) {
            eprintln!("CTF 1.8 {old}\nCTF 2   {new}");
            assert_eq!(old.split(" }, { ").next(), new.split(" }, { ").next());
        } else {
            assert_eq!(old, new);
        }
    }
}

#[test]
fn ctf2_little_endian() {
    check_twins("le-twin", ByteOrder::Little);
}

#[test]
fn ctf2_big_endian() {
    check_twins("be-twin", ByteOrder::Big);
}

#[test]
fn clock_and_environment_arrive() {
    let directory = directory("environment");
    fs::write(directory.join("metadata"), ctf1(&description(ByteOrder::Little, RingKind::PerCpu)))
        .unwrap();
    let record = vec![(3, START, b"x\0".to_vec())];
    fs::write(directory.join("stream"), packet(false, 0, (START, START), &record)).unwrap();
    let arguments = ["--component=sink.text.details", "--params=compact=no"];
    let Some((text, _)) = babeltrace(&arguments, &directory) else { return };
    // 10 s and 5 cycles are the offset of the clock.
    let text = text.replace(" from origin (", " (");
    let facts =
        ["Unix epoch", "(cycles): 5", "Offset (s): 10", "Frequency (Hz): 1,000,000,000", "pid: -5"];
    for fact in facts {
        assert!(text.contains(fact), "no {fact} in\n{text}");
    }
    // The text of the schema comes through exactly, quotes and line ends included.
    let hash = format!("lateralis_schema_{:016x}: ", schema().hash());
    let at = text.find(&hash).expect("the schema's text is in the environment");
    let schema = schema();
    let canonical = schema.canonical_text();
    assert!(text[at + hash.len()..].starts_with(canonical), "{}", &text[at..]);
    assert!(text.contains("command: a\tb \\ \"c\"\u{1} é\n"), "{text}");
}
