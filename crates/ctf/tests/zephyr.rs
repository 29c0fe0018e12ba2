// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Zephyr: its tracer writes one record after the other, with no packets, no padding and
//! no clock class. Its short clock wraps, its long one may jump back to 0, a dump of
//! its memory ends in zeros or inside a record. Streams are made here record by record
//! by the rules of `subsys/tracing/ctf/ctf_top.h`; the metadata has the shapes of
//! `subsys/tracing/ctf/tsdl/metadata`, which itself is read where `ZEPHYR_BASE` names it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::text::Babeltrace;
use lateralis_model::{Damage, DamageReason, Source as _};

/// Types and events as Zephyr describes them; `TIME` and `ID` are the types of the
/// event header, which were 32 and 8 bits until 2026, and are 64 and 16 since.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = true; } := int8_t;
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; encoding = ASCII; } := name_t;
struct event_header { TIME timestamp; ID id; };
trace { major = 1; minor = 8; byte_order = le; };
stream { event.header := struct event_header; };
event { name = switched_in; id = 0x11; fields := struct { uint32_t thread_id; name_t name[20]; }; };
event {
    name = priority_set; id = 0x12;
    fields := struct { uint32_t thread_id; name_t name[20]; int8_t prio; };
};
event { name = isr_enter; id = 0x1B; };
event {
    name = take_exit; id = 0x26;
    fields := struct { uint32_t id; uint32_t timeout; int32_t ret; };
};
event {
    name = bind_enter; id = 0x3B;
    fields := struct { uint32_t id; name_t address[46]; uint32_t address_length; uint16_t port; };
};
"#;

/// The widths of time stamp and id.
#[derive(Clone, Copy)]
struct Shape {
    time: usize,
    id: usize,
}

const OLD: Shape = Shape { time: 4, id: 1 };
const NEW: Shape = Shape { time: 8, id: 2 };

impl Shape {
    fn metadata(self) -> String {
        let header = format!("uint{}_t timestamp; uint{}_t id;", self.time * 8, self.id * 8);
        METADATA.replace("TIME timestamp; ID id;", &header)
    }

    fn record(self, time: u64, id: u16, fields: &[&[u8]]) -> Vec<u8> {
        let (time, id) = (time.to_le_bytes(), id.to_le_bytes());
        [&time[..self.time], &id[..self.id], &fields.concat()].concat()
    }

    /// A record of one of the five kinds, chosen by its number.
    fn any(self, time: u64, number: u32) -> Vec<u8> {
        let word = number.wrapping_mul(2_654_435_761).to_le_bytes();
        let name = |text: &str, bytes: usize| {
            let mut field = text.as_bytes().to_vec();
            field.resize(bytes, 0);
            field
        };
        match number % 5 {
            0 => self.record(time, 0x11, &[&word, &name("idle 00", 20)]),
            // A name that fills its field ends without a zero.
            1 => {
                let name = name("twenty characters ..", 20);
                self.record(time, 0x12, &[&word, &name, &[(number / 5) as u8]])
            }
            2 => self.record(time, 0x1b, &[]),
            3 => {
                self.record(time, 0x26, &[&word, &u32::MAX.to_le_bytes(), &(-11i32).to_le_bytes()])
            }
            _ => {
                let address = name("2001:db8::1", 46);
                self.record(time, 0x3b, &[&word, &address, &28u32.to_le_bytes(), &[0x16, 0x33]])
            }
        }
    }

    /// Records at these times, and where each ends.
    fn stream(self, times: impl IntoIterator<Item = u64>) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (number, time) in (0..).zip(times) {
            bytes.extend(self.any(time, number));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }
}

struct Reading {
    lines: Vec<String>,
    times: Vec<i64>,
    damage: Vec<Damage>,
}

fn read(metadata: &str, bytes: &[u8]) -> Reading {
    let file = StreamFile { name: "channel0_0".into(), bytes: Box::new(bytes.to_vec()) };
    let reader = Reader::new(metadata.as_bytes(), vec![file]);
    assert_eq!(reader.diagnostics(), []);
    let printer = Babeltrace::new(reader.trace());
    let (mut lines, mut times, mut events) = (Vec::new(), Vec::new(), reader.events());
    while let Some(event) = events.next_event() {
        let mut line = Vec::new();
        printer.line(&mut line, &event);
        lines.push(String::from_utf8(line).unwrap().trim_end_matches('\n').to_owned());
        times.push(event.time.0);
    }
    let damage = reader.damage().iter().chain(events.damage()).cloned().collect();
    Reading { lines, times, damage }
}

/// A directory that goes when the test ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What babeltrace2 prints for a trace; `None` where there is no babeltrace2.
fn babeltrace(name: &str, metadata: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let directory = format!("zephyr-{name}-{}", std::process::id());
    let scratch = Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory));
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join("metadata"), metadata).unwrap();
    fs::write(scratch.0.join("channel0_0"), bytes).unwrap();
    let out = Command::new("babeltrace2")
        .args(["--names=all", "--clock-seconds", "--clock-gmt", "--no-delta"])
        .arg(&scratch.0)
        .output();
    let Ok(out) = out else {
        println!("SKIPPED: no babeltrace2 here");
        return None;
    };
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

fn same(name: &str, ours: &[String], theirs: &[String]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs, "{name}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
}

#[test]
fn records_read_as_babeltrace_reads_them_and_a_short_clock_goes_on() {
    // Nine milliseconds a record: 32 bits of nanoseconds wrap twice.
    let times: Vec<u64> = (0..1200).map(|n| 4_290_000_000 + n * 9_000_000).collect();
    assert_eq!(times.last().unwrap() >> 32, 3);
    for (name, shape) in [("old", OLD), ("new", NEW)] {
        let (bytes, _) = shape.stream(times.iter().copied());
        let reading = read(&shape.metadata(), &bytes);
        assert_eq!(reading.damage, [], "{name}");
        let ours: Vec<u64> = reading.times.iter().map(|time| *time as u64).collect();
        assert_eq!(ours, times, "{name}");
        assert!(reading.lines[4].contains(r#"address = "2001:db8::1""#), "{}", reading.lines[4]);
        assert!(reading.lines[1].contains(r#"name = "twenty characters ..""#));
        if let Some(theirs) = babeltrace(name, &shape.metadata(), &bytes) {
            same(name, &reading.lines, &theirs);
        }
    }
}

/// An interrupt takes its time, and another record comes between (zephyr PR#93210): in 32 bits
/// that is an overflow, as babeltrace2 has it, but hardly one.
#[test]
fn a_record_one_tick_early_is_an_overflow_with_a_remark() {
    let remarks = |times: &[u64]| {
        let (bytes, _) = OLD.stream(times.iter().copied());
        let file = StreamFile { name: "channel0_0".into(), bytes: Box::new(bytes.clone()) };
        let remarks = Reader::new(OLD.metadata().as_bytes(), vec![file]).remarks();
        let ours = read(&OLD.metadata(), &bytes).lines;
        if let Some(theirs) = babeltrace("early", &OLD.metadata(), &bytes) {
            same("early", &ours, &theirs);
        }
        remarks
    };
    let found = remarks(&[1000, 2000, 1999, 3000, 2998]);
    let [remark] = &found[..] else { panic!("{found:?}") };
    let begin = "channel0_0: the clock of 32 bits steps back by 1 before event 3, at 4.294969295 s";
    assert!(remark.starts_with(begin) && remark.ends_with("(2 such steps)"), "{remark}");
    // One that has overflowed, and one after a long time without events.
    assert_eq!(remarks(&[u64::from(u32::MAX) - 5, 1 << 32, (1 << 32) + 4_200_000_000]), [""; 0]);
}

/// A long clock made of a short counter jumps back to 0 (zephyr#111651), where other
/// readers end.
#[test]
fn a_long_clock_that_jumps_back_to_zero_costs_no_event() {
    let before = (0..50u64).map(|n| 171_798_000_000 + n * 1_000);
    let after = (0..50u64).map(|n| n * 1_000);
    let (bytes, ends) = NEW.stream(before.chain(after));
    let reading = read(&NEW.metadata(), &bytes);
    assert_eq!(reading.lines.len(), 100);
    assert_eq!((reading.times[49], reading.times[50]), (171_798_049_000, 0));
    let [damage] = &reading.damage[..] else { panic!("{:?}", reading.damage) };
    assert_eq!(damage.reason, DamageReason::BadTime);
    assert_eq!(damage.begin_bytes, ends[49] as u64);
}

#[test]
fn an_unfinished_record_costs_itself_and_is_told() {
    for shape in [OLD, NEW] {
        let (bytes, ends) = shape.stream((0..20).map(|n| 1_000 + n * 7));
        let whole = read(&shape.metadata(), &bytes);
        assert_eq!((whole.lines.len(), whole.damage.len()), (20, 0));
        for cut in 0..bytes.len() {
            let reading = read(&shape.metadata(), &bytes[..cut]);
            let complete = ends.partition_point(|end| *end <= cut);
            assert!(reading.lines == whole.lines[..complete], "cut at {cut}");
            if cut == 0 || ends.contains(&cut) {
                assert_eq!(reading.damage, [], "cut at {cut}");
                continue;
            }
            let [damage] = &reading.damage[..] else { panic!("{cut}: {:?}", reading.damage) };
            let begin = complete.checked_sub(1).map_or(0, |last| ends[last]);
            assert_eq!(damage.begin_bytes..damage.end_bytes, begin as u64..cut as u64);
        }
    }
}

/// A buffer in memory is dumped completely: zeros follow the last record. An id that the metadata
/// lacks, as Zephyr's own lacked some, hides the following content, and only that.
#[test]
fn zeros_behind_the_last_record_and_unknown_records_are_told_with_their_place() {
    for shape in [OLD, NEW] {
        let (bytes, ends) = shape.stream((0..20).map(|n| 1_000 + n * 7));
        let zeros = [&bytes[..], &[0; 300]].concat();
        let reading = read(&shape.metadata(), &zeros);
        assert_eq!(reading.lines.len(), 20);
        let [damage] = &reading.damage[..] else { panic!("{:?}", reading.damage) };
        assert_eq!(damage.reason, DamageReason::UnknownEventClass { id: 0 });
        assert_eq!(damage.begin_bytes..damage.end_bytes, bytes.len() as u64..zeros.len() as u64);

        let unknown = shape.record(5_000, 0x20, &[&[0; 4]]);
        let later = [&bytes[..ends[9]], &unknown, &bytes[ends[9]..]].concat();
        let reading = read(&shape.metadata(), &later);
        assert_eq!(reading.lines.len(), 10);
        let [damage] = &reading.damage[..] else { panic!("{:?}", reading.damage) };
        assert_eq!(damage.reason, DamageReason::UnknownEventClass { id: 0x20 });
        assert_eq!(damage.begin_bytes..damage.end_bytes, ends[9] as u64..later.len() as u64);
    }
}

/// The number of an event and the bytes of its fields, from its text in the metadata.
fn described(event: &str) -> (u16, usize) {
    let id = event.split("id = 0x").nth(1).unwrap();
    let id = id.split(';').next().unwrap();
    let fields = event.split("struct {").nth(1).unwrap_or("").split('}').next().unwrap();
    let size = |field: &str| {
        let (class, name) = field.trim().split_once(char::is_whitespace)?;
        let bytes = match class.trim_start_matches('u') {
            "int8_t" | "ctf_bounded_string_t" => 1,
            "int16_t" => 2,
            "int32_t" => 4,
            "int64_t" => 8,
            _ => panic!("{field}: another type"),
        };
        let count = name.split_once('[').map_or("1", |(_, count)| count.trim_end_matches(']'));
        Some(bytes * count.parse::<usize>().unwrap())
    };
    (u16::from_str_radix(id, 16).unwrap(), fields.split(';').filter_map(size).sum())
}

#[test]
fn each_event_of_zephyrs_own_metadata_is_read() {
    let Some(base) = std::env::var_os("ZEPHYR_BASE") else {
        println!("SKIPPED: ZEPHYR_BASE names no Zephyr");
        return;
    };
    let directory = PathBuf::from(base).join("subsys/tracing/ctf/tsdl");
    let metadata = fs::read_to_string(directory.join("metadata")).unwrap();
    let shape = if metadata.contains("uint64_t timestamp;") { NEW } else { OLD };
    let mut bytes = Vec::new();
    let events: Vec<_> = metadata.split("\nevent {").skip(1).map(described).collect();
    for (time, (id, size)) in (1..).zip(&events) {
        // Letters are good text and good numbers.
        let payload: Vec<u8> = (0..*size).map(|at| b'a' + (at % 26) as u8).collect();
        bytes.extend(shape.record(time, *id, &[&payload]));
    }
    let reading = read(&metadata, &bytes);
    println!("{} events", events.len());
    assert!(events.len() >= 10, "{} events", events.len());
    assert_eq!((reading.lines.len(), reading.damage.len()), (events.len(), 0));
    if let Some(theirs) = babeltrace("own", &metadata, &bytes) {
        same("own", &reading.lines, &theirs);
    }
}
