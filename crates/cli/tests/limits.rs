// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resource limits of reading: memory is independent of the size of a trace, and open files of the number of
//! its streams.

use crate::place;

use place::Place;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Packets without stream numbers: each file is a stream.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
stream { id = 0;
    packet.context := struct { time timestamp_begin; time timestamp_end; u64 content_size;
        u64 packet_size; u32 cpu_id; };
    event.header := struct { u32 id; time timestamp; }; };
event { id = 0; stream_id = 0; name = work; fields := struct { u64 number; string text; }; };
"#;

const PACKET_HEADER_BYTES: usize = 8 + 4 * 8 + 4;

/// A trace to generate.
struct Shape {
    streams: usize,
    packets: usize,
    events: usize,
    text_bytes: usize,
}

impl Shape {
    fn event_bytes(&self) -> usize {
        4 + 8 + 8 + self.text_bytes + 1
    }

    fn bytes(&self) -> usize {
        let packet = PACKET_HEADER_BYTES + self.events * self.event_bytes();
        self.streams * self.packets * packet
    }

    fn all_events(&self) -> usize {
        self.streams * self.packets * self.events
    }

    /// Writes it. The streams alternate, so that a merge changes stream with each event.
    fn write(&self, directory: &Path) {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("metadata"), METADATA).unwrap();
        let text = "x".repeat(self.text_bytes) + "\0";
        for stream in 0..self.streams {
            let file = File::create(directory.join(format!("stream-{stream:04}"))).unwrap();
            let mut out = BufWriter::with_capacity(1 << 20, file);
            // The order of the streams in time differs from that of their names.
            let turn = (stream * 7919) % self.streams;
            let time = |event: usize| ((event * self.streams + turn) * 100) as u64;
            for packet in 0..self.packets {
                let first = packet * self.events;
                let bits = (PACKET_HEADER_BYTES + self.events * self.event_bytes()) as u64 * 8;
                out.write_all(&[0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0]).unwrap();
                for word in [time(first), time(first + self.events - 1), bits, bits] {
                    out.write_all(&word.to_le_bytes()).unwrap();
                }
                out.write_all(&(stream as u32).to_le_bytes()).unwrap();
                for event in first..first + self.events {
                    out.write_all(&0u32.to_le_bytes()).unwrap();
                    out.write_all(&time(event).to_le_bytes()).unwrap();
                    out.write_all(&(event as u64).to_le_bytes()).unwrap();
                    out.write_all(text.as_bytes()).unwrap();
                }
            }
            out.flush().unwrap();
        }
    }
}

/// Runs `lat` with limits set by `ulimit`.
fn limited(place: &Place, limits: &str, arguments: &[&str]) -> Output {
    let script = format!("{limits} && exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_lat")])
        .args(arguments)
        .current_dir(&place.0)
        .stdin(Stdio::null())
        .output()
        .expect("a shell can be started")
}

/// Limit of anonymous memory: 64 MiB, plus 64 KiB for each stream.
fn memory_limit(streams: usize) -> String {
    format!("ulimit -d {}", (64 << 10) + 64 * streams)
}

fn error(output: &Output) -> String {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

/// Returns the number of `work` events that `lat info` counts.
fn events(info: &str) -> usize {
    let info: serde_json::Value = serde_json::from_str(info).expect("JSON");
    let classes = info["events"].as_array().expect("kinds of events");
    let work = classes.iter().find(|class| class["name"] == "work").expect("events");
    work["count"].as_u64().expect("a number") as usize
}

/// Reads a trace of this shape with each command that visits all events, within the promised memory.
fn iterate(shape: &Shape) {
    let place = Place::new();
    shape.write(&place.0.join("big"));
    let limit = memory_limit(shape.streams);
    let ways: [&[&str]; 6] = [
        &["print", "big", "--where", "number == 7"],
        &["print", "big", "--format", "json", "--where", "number == 7"],
        &["info", "big", "--json"],
        &["convert", "big", "-o", "copy.jsonl"],
        &["convert", "big", "-o", "copy"],
        &["convert", "big", "-o", "copy.csv"],
    ];
    let what = format!("{} streams, {} bytes", shape.streams, shape.bytes());
    for way in ways {
        let output = limited(&place, &limit, way);
        assert!(output.status.success(), "{what}: {way:?}: {limit}: {}", error(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        match way {
            ["print", ..] => assert_eq!(text.lines().count(), shape.streams, "{what}: {way:?}"),
            ["info", ..] => assert_eq!(events(&text), shape.all_events(), "{what}: {text}"),
            _ => {}
        }
        fs::remove_file(place.0.join("copy.jsonl")).ok();
        fs::remove_file(place.0.join("copy.csv")).ok();
    }
    let copy = limited(&place, &limit, &["info", "copy", "--json"]);
    let text = String::from_utf8_lossy(&copy.stdout);
    assert_eq!(events(&text), shape.all_events(), "{what}: {}", error(&copy));
    println!("{what}: within {limit}");
}

#[test]
fn memory_is_bounded_however_large_the_trace() {
    let large = std::env::var_os("LATERALIS_SLOW_TESTS").is_some();
    let times = if large { 10 } else { 1 };
    let shape = |streams, packets, events| Shape { streams, packets, events, text_bytes: 230 };
    // About 100 MB each: large packets, packets of four kilobytes, and many streams.
    iterate(&shape(1, 400 * times, 1000));
    iterate(&shape(16, 1600 * times, 16));
    iterate(&shape(500, 8 * times, 100));
}

#[test]
fn a_thousand_streams_are_merged_with_few_open_files() {
    let place = Place::new();
    let shape = Shape { streams: 1000, packets: 3, events: 10, text_bytes: 10 };
    shape.write(&place.0.join("many"));
    let arguments = ["print", "many", "--format", "babeltrace"];
    let begin = std::time::Instant::now();
    let output = limited(&place, "ulimit -n 256", &arguments);
    assert!(output.status.success(), "{}", error(&output));
    println!("{} events in {} ms", shape.all_events(), begin.elapsed().as_millis());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), shape.all_events());
    // Every stream has an event before any has its second.
    let numbers = text.lines().map(|line| {
        let number = line.split("number = ").nth(1).and_then(|rest| rest.split(',').next());
        number.unwrap().parse::<usize>().unwrap()
    });
    assert!(numbers.enumerate().all(|(line, number)| number == line / shape.streams));
    let converted = limited(&place, "ulimit -n 256", &["convert", "many", "-o", "copy"]);
    assert!(converted.status.success(), "{}", error(&converted));
    let again = limited(&place, "ulimit -n 256", &["print", "copy", "--format", "babeltrace"]);
    assert!(again.stdout == text.as_bytes(), "the copy reads otherwise: {}", error(&again));

    let options = ["--clock-seconds", "--clock-gmt", "--no-delta", "--names=all"];
    let babeltrace = Command::new("babeltrace2")
        .args(options)
        .arg(place.0.join("many"))
        .stderr(Stdio::null())
        .output();
    match babeltrace {
        Ok(theirs) if theirs.status.success() => {
            assert!(theirs.stdout == text.as_bytes(), "babeltrace2 has another order or text");
        }
        _ => println!("SKIPPED: babeltrace2 is not here"),
    }
}

/// Number of event classes in a trace with very many.
const MANY_CLASSES: usize = 30_000;

/// Fields of each class, which also differ in their names.
const FIELDS: [(&str, usize); 5] =
    [("number", 4), ("first_address", 8), ("text", 0), ("size", 4), ("flags", 2)];

fn class_name(class: usize) -> String {
    format!("subsystem:event_number_{class}")
}

/// Every seventh class has its own field names.
fn field_name(class: usize, name: &str) -> String {
    if class.is_multiple_of(7) { format!("{name}_{class}") } else { name.to_owned() }
}

/// Classes have two to five fields.
fn fields(class: usize) -> &'static [(&'static str, usize)] {
    &FIELDS[..2 + class % 4]
}

fn many_classes_1() -> String {
    let event = METADATA.find("event {").expect("an event");
    let mut text = METADATA[..event].to_owned();
    for class in 0..MANY_CLASSES {
        let fields: String = fields(class)
            .iter()
            .map(|&(name, bytes)| {
                let name = field_name(class, name);
                match bytes {
                    0 => format!("string {name}; "),
                    // As LTTng writes it: the complete type for each field.
                    _ => format!(
                        "integer {{ size = {}; align = 8; signed = 0; base = 10; }} _{name}; ",
                        bytes * 8
                    ),
                }
            })
            .collect();
        let name = class_name(class);
        text += &format!(
            "event {{ id = {class}; stream_id = 0; name = \"{name}\"; loglevel = 13;\n\
             fields := struct {{ {fields}}}; }};\n"
        );
    }
    text
}

fn many_classes_2() -> String {
    use serde_json::json;
    let number = |name: &str, bytes: usize, roles: &[&str]| {
        json!({ "name": name, "field-class": { "type": "fixed-length-unsigned-integer",
            "length": bytes * 8, "byte-order": "little-endian", "alignment": 8, "roles": roles } })
    };
    let structure =
        |members: Vec<serde_json::Value>| json!({ "type": "structure", "member-classes": members });
    let mut fragments = vec![
        json!({ "type": "preamble", "version": 2 }),
        json!({ "type": "trace-class", "packet-header-field-class": structure(vec![
            number("magic", 4, &["packet-magic-number"]),
            number("stream", 4, &["data-stream-class-id"]),
        ]) }),
        json!({ "type": "clock-class", "id": "c", "frequency": 1_000_000_000 }),
        json!({ "type": "data-stream-class", "id": 0, "default-clock-class-id": "c",
            "packet-context-field-class": structure(vec![
                number("begin", 8, &["default-clock-timestamp"]),
                number("end", 8, &["packet-end-default-clock-timestamp"]),
                number("content", 8, &["packet-content-length"]),
                number("size", 8, &["packet-total-length"]),
                number("cpu_id", 4, &[]),
            ]),
            "event-record-header-field-class": structure(vec![
                number("id", 4, &["event-record-class-id"]),
                number("time", 8, &["default-clock-timestamp"]),
            ]) }),
    ];
    for class in 0..MANY_CLASSES {
        let members = fields(class).iter().map(|&(name, bytes)| {
            let name = field_name(class, name);
            match bytes {
                0 => json!({ "name": name, "field-class": { "type": "null-terminated-string" } }),
                _ => number(&name, bytes, &[]),
            }
        });
        fragments.push(json!({ "type": "event-record-class", "id": class,
            "data-stream-class-id": 0, "name": class_name(class),
            "attributes": { "babeltrace.org,2020": { "log-level": "info" } },
            "payload-field-class": structure(members.collect()) }));
    }
    fragments.iter().map(|fragment| format!("\x1e{fragment}\n")).collect()
}

/// Returns one event of each class.
fn one_of_each() -> Vec<u8> {
    let mut body = Vec::new();
    for class in 0..MANY_CLASSES {
        body.extend((class as u32).to_le_bytes());
        body.extend((class as u64).to_le_bytes());
        for &(_, bytes) in fields(class) {
            match bytes {
                0 => body.extend(b"some text\0"),
                bytes => body.extend(&(class as u64 % 60_000).to_le_bytes()[..bytes]),
            }
        }
    }
    let bits = ((PACKET_HEADER_BYTES + body.len()) * 8) as u64;
    let mut packet = vec![0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0];
    for word in [0, MANY_CLASSES as u64, bits, bits] {
        packet.extend(word.to_le_bytes());
    }
    packet.extend(7u32.to_le_bytes());
    packet.extend(body);
    packet
}

#[test]
fn memory_is_bounded_with_very_many_kinds_of_events() {
    let place = Place::new();
    let limit = memory_limit(1);
    let mut texts = Vec::new();
    for (name, metadata) in [("one", many_classes_1()), ("two", many_classes_2())] {
        let directory = place.0.join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("metadata"), metadata).unwrap();
        fs::write(directory.join("stream"), one_of_each()).unwrap();
        let info = limited(&place, &limit, &["info", name, "--json"]);
        assert!(info.status.success(), "{name}: {limit}: {}", error(&info));
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
        let kinds = info["events"].as_array().expect("kinds of events");
        assert_eq!(kinds.len(), MANY_CLASSES, "{name}");
        assert!(kinds.iter().all(|kind| kind["count"] == 1), "{name}");
        let [copy, copy_1, copy_2] = ["jsonl", "1.ctf", "2.ctf"].map(|end| format!("{name}.{end}"));
        let ways = [
            &["info", name][..],
            &["print", name],
            &["convert", name, "-o", &copy],
            &["convert", name, "-o", &copy_1],
            &["convert", name, "-o", &copy_2, "--to", "ctf2"],
        ];
        for way in ways {
            let output = limited(&place, &limit, way);
            assert!(output.status.success(), "{name}: {way:?}: {limit}: {}", error(&output));
            if let ["print", ..] = way {
                texts.push(String::from_utf8(output.stdout).expect("text"));
            }
        }
    }
    assert_eq!(texts[0].lines().count(), MANY_CLASSES);
    assert!(texts[0] == texts[1], "the versions of the format read otherwise");
    for (class, line) in texts[0].lines().enumerate() {
        assert!(line.contains(&class_name(class)), "{line}");
        assert!(line.contains(&field_name(class, "first_address")), "{line}");
    }
}
