// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that were never closed, of a producer that was killed before it wrote their sizes. Each
//! way in which producers leave them, alone, after a closed packet and before one, in CTF 1.8 and
//! CTF 2, with any content after the last event.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_ctf::write::{Options, directory::write_directory};
use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::{DamageReason, Source};
use lateralis_units::{Nanos, Ticks};

const V1: &str = r#"/* CTF 1.8 */
typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
stream { id = 0;
    packet.context := struct { time timestamp_begin; time timestamp_end; SIZE content_size;
        SIZE packet_size; SIZE events_discarded; };
    event.header := struct { u16 id; time timestamp; }; };
event { id = 0; stream_id = 0; name = e; fields := struct { u32 number; string text; }; };
"#;

const V2: &str = r#"{"type":"preamble","version":2}
{"type":"trace-class","packet-header-field-class":{"type":"structure","member-classes":[
 {"name":"magic",
  "field-class":{"type":"fixed-length-unsigned-integer","length":32,
   "byte-order":"little-endian","alignment":8,"roles":["packet-magic-number"]}},
 {"name":"stream_id",
  "field-class":{"type":"fixed-length-unsigned-integer","length":32,
   "byte-order":"little-endian","alignment":8,"roles":["data-stream-class-id"]}}]}}
{"type":"clock-class","id":"c","name":"c","frequency":1000000000}
{"type":"data-stream-class","id":0,"default-clock-class-id":"c",
 "packet-context-field-class":{"type":"structure","member-classes":[
 {"name":"begin",
  "field-class":{"type":"fixed-length-unsigned-integer","length":64,
   "byte-order":"little-endian","alignment":8,"roles":["default-clock-timestamp"]}},
 {"name":"end",
  "field-class":{"type":"fixed-length-unsigned-integer","length":64,
   "byte-order":"little-endian","alignment":8,"roles":["packet-end-default-clock-timestamp"]}},
 {"name":"content",
  "field-class":{"type":"fixed-length-unsigned-integer","length":SIZE,
   "byte-order":"little-endian","alignment":8,"roles":["packet-content-length"]}},
 {"name":"total",
  "field-class":{"type":"fixed-length-unsigned-integer","length":SIZE,
   "byte-order":"little-endian","alignment":8,"roles":["packet-total-length"]}},
 {"name":"discarded",
  "field-class":{"type":"fixed-length-unsigned-integer","length":SIZE,
   "byte-order":"little-endian","alignment":8,"roles":["discarded-event-record-counter-snapshot"]}}]},
 "event-record-header-field-class":{"type":"structure","member-classes":[
 {"name":"id",
  "field-class":{"type":"fixed-length-unsigned-integer","length":16,
   "byte-order":"little-endian","alignment":8,"roles":["event-record-class-id"]}},
 {"name":"time",
  "field-class":{"type":"fixed-length-unsigned-integer","length":64,
   "byte-order":"little-endian","alignment":8,"roles":["default-clock-timestamp"]}}]}}
{"type":"event-record-class","id":0,"data-stream-class-id":0,"name":"e",
 "payload-field-class":{"type":"structure","member-classes":[
 {"name":"number",
  "field-class":{"type":"fixed-length-unsigned-integer","length":32,
   "byte-order":"little-endian","alignment":8}},
 {"name":"text","field-class":{"type":"null-terminated-string"}}]}}
"#;

/// What a producer leaves in the sizes of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sizes {
    Right,
    Ones,
    Zeros,
    ContentZero,
    ContentOnes,
}

/// Content after the last event.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tail {
    Nothing,
    Zeros,
    Ones,
    HalfAnEvent,
    EarlierEvents,
}

fn event(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(0u16.to_le_bytes());
    bytes.extend((u64::from(number) * 10).to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(b"text\0");
}

/// A packet of ten events; sizes have this number of bits.
fn packet(first: u32, bits: usize, sizes: Sizes, tail: Tail) -> Vec<u8> {
    let mut events = Vec::new();
    (first..first + 10).for_each(|number| event(&mut events, number));
    let header = 24 + 3 * bits / 8;
    let content = (header + events.len()) as u64 * 8;
    match tail {
        Tail::Nothing => (),
        Tail::Zeros => events.extend([0; 300]),
        Tail::Ones => events.extend([0xff; 300]),
        Tail::HalfAnEvent => {
            event(&mut events, first + 10);
            events.truncate(events.len() - 3);
        }
        Tail::EarlierEvents => (1..5).for_each(|number| event(&mut events, number)),
    }
    let size = (header + events.len()) as u64 * 8;
    let (content, size) = match sizes {
        Sizes::Right => (content, size),
        Sizes::Ones => (u64::MAX, u64::MAX),
        Sizes::Zeros => (0, 0),
        Sizes::ContentZero => (0, size),
        Sizes::ContentOnes => (u64::MAX, size),
    };
    let mut bytes = vec![0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0];
    bytes.extend((u64::from(first) * 10).to_le_bytes());
    let end = u64::from(first + 9) * 10;
    // The end of what was never closed is all ones with some producers, with others nothing.
    let end = match sizes {
        Sizes::Right => end,
        Sizes::Ones => u64::MAX,
        _ => 0,
    };
    bytes.extend(end.to_le_bytes());
    for number in [content, size, 0] {
        bytes.extend(&number.to_le_bytes()[..bits / 8]);
    }
    bytes.extend(events);
    bytes
}

fn reader(metadata: &str, bits: usize, bytes: &[u8]) -> Reader {
    let size = if metadata == V1 { format!("u{bits}") } else { bits.to_string() };
    let metadata = metadata.replace("SIZE", &size);
    let file = StreamFile { name: "s".into(), bytes: Box::new(bytes.to_vec()) };
    Reader::new(metadata.as_bytes(), vec![file])
}

/// The numbers in the events, one by one and in columns.
fn numbers(reader: &Reader) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut events = reader.events();
    while let Some(event) = events.next_event() {
        numbers.push(event.payload().unwrap().get("number").unwrap().as_u64().unwrap());
    }
    assert_eq!(events.damage().next(), None, "one damage for each open packet, and no other");
    let mut counted = 0;
    let rest = (reader as &dyn Source).visit(&mut |_| counted += 1);
    assert_eq!((counted, rest.len()), (numbers.len(), 0));
    numbers
}

/// Every way to leave a packet open, with all contents after its events.
fn each_way(mut see: impl FnMut(&str, usize, Sizes, Tail)) {
    for metadata in [V1, V2] {
        for bits in [32, 64] {
            for sizes in [Sizes::Ones, Sizes::Zeros, Sizes::ContentZero, Sizes::ContentOnes] {
                for tail in
                    [Tail::Nothing, Tail::Zeros, Tail::Ones, Tail::HalfAnEvent, Tail::EarlierEvents]
                {
                    see(metadata, bits, sizes, tail);
                }
            }
        }
    }
}

#[test]
fn the_events_of_a_packet_that_was_never_closed_are_read() {
    each_way(|metadata, bits, sizes, tail| {
        let bytes = packet(11, bits, sizes, tail);
        let reader = reader(metadata, bits, &bytes);
        let wanted: Vec<u64> = (11..21).collect();
        assert_eq!(numbers(&reader), wanted, "{bits} {sizes:?} {tail:?}");
        let [damage] = reader.damage() else { panic!("{:?}", reader.damage()) };
        assert_eq!(damage.reason, DamageReason::NeverClosed);
        assert_eq!((damage.begin_bytes, damage.end_bytes), (0, bytes.len() as u64));
        // What may be missing comes after the last event.
        assert_eq!((damage.interval.begin, damage.interval.end), (Some(Nanos(200)), None));
        let packet = &reader.streams()[0].packets[0].packet;
        assert_eq!((packet.begin, packet.end), (Some(Ticks(110)), None));
    });
}

#[test]
fn packets_around_one_that_was_never_closed_are_read() {
    each_way(|metadata, bits, sizes, tail| {
        let mut bytes = packet(1, bits, Sizes::Right, Tail::Nothing);
        bytes.extend(packet(11, bits, sizes, tail));
        let begin_of_last = bytes.len() as u64;
        bytes.extend(packet(31, bits, Sizes::Right, Tail::Nothing));
        let reader = reader(metadata, bits, &bytes);
        let wanted: Vec<u64> = (1..21).chain(31..41).collect();
        assert_eq!(numbers(&reader), wanted, "{bits} {sizes:?} {tail:?}");
        let [damage] = reader.damage() else { panic!("{:?}", reader.damage()) };
        assert_eq!((&damage.reason, damage.end_bytes), (&DamageReason::NeverClosed, begin_of_last));
        assert_eq!(
            (damage.interval.begin, damage.interval.end),
            (Some(Nanos(200)), Some(Nanos(310)))
        );
    });
}

#[test]
fn a_file_cut_inside_a_packet_that_was_never_closed_gives_its_events() {
    let whole = packet(11, 64, Sizes::ContentZero, Tail::Zeros);
    for length in 48..whole.len() {
        let reader = reader(V1, 64, &whole[..length]);
        let whole_events = ((length - 48) / 19).min(10) as u64;
        let wanted: Vec<u64> = (11..11 + whole_events).collect();
        assert_eq!(numbers(&reader), wanted, "{length}");
        assert_eq!(reader.damage().len(), 1, "{length}");
    }
}

#[test]
fn a_copy_of_what_was_never_closed_is_a_whole_trace_for_babeltrace2() {
    let bytes = [
        packet(1, 64, Sizes::Right, Tail::Nothing),
        packet(11, 64, Sizes::Ones, Tail::HalfAnEvent),
    ];
    let reader = reader(V1, 64, &bytes.concat());
    let scratch = scratch("copy");
    let copy = scratch.0.join("copy");
    let report = write_directory(&reader, &copy, &Options::default()).unwrap();
    assert_eq!(report.damage.len(), 1);
    if let Some(lines) = babeltrace2(&copy) {
        assert_eq!(lines.unwrap(), 20);
    }
}

#[test]
fn as_many_events_as_babeltrace2_reads() {
    // It reads packets whose sizes are all ones, refuses the other kinds, and takes what follows
    // for events.
    for before in [false, true] {
        let mut bytes = Vec::new();
        if before {
            bytes.extend(packet(1, 64, Sizes::Right, Tail::Nothing));
        }
        let begin = bytes.len();
        bytes.extend(packet(11, 64, Sizes::Ones, Tail::Nothing));
        // It refuses a packet that ends in the year 2554, too.
        bytes[begin + 16..begin + 24].copy_from_slice(&200u64.to_le_bytes());
        let scratch = scratch("same");
        fs::write(scratch.0.join("metadata"), V1.replace("SIZE", "u64")).unwrap();
        fs::write(scratch.0.join("s"), &bytes).unwrap();
        match babeltrace2(&scratch.0) {
            Some(Some(lines)) => assert_eq!(numbers(&reader(V1, 64, &bytes)).len(), lines),
            // Version 2.0 takes the size of the file for that of the packet, so nothing may be
            // before it.
            Some(None) => assert!(before),
            None => return,
        }
    }
}

/// A directory that goes when the test ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scratch(name: &str) -> Scratch {
    let name = format!("open-packets-{name}-{}", std::process::id());
    let scratch = Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    let _ = fs::remove_dir_all(&scratch.0);
    fs::create_dir_all(&scratch.0).unwrap();
    scratch
}

/// How many events babeltrace2 prints, `None` inside if it gives up; `None` where it is not.
fn babeltrace2(trace: &Path) -> Option<Option<usize>> {
    let Ok(out) = Command::new("babeltrace2").arg(trace).output() else {
        println!("SKIPPED: no babeltrace2 here");
        return None;
    };
    let lines = out.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
    Some(out.status.success().then_some(lines))
}
