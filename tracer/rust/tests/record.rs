// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that record, and the content of their rings afterwards.
#![cfg(target_os = "linux")]

mod recorded;

use lateralis::{Record, Schema};
use recorded::{Area, Entry, Fields, recorded};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

const RECORD: &str = "session=a1;buffer=1048576;packet=65536";

const TEXT: &str = "schema words;\nsubsystem words {\n\
    event W0 (),\nevent W1 (a: u64),\nevent W2 (a: [u64; 2]),\nevent W3 (a: [u64; 3]),\n\
    event W4 (a: [u64; 4]),\nevent W5 (a: [u64; 5]),\nevent W6 (a: [u64; 6]),\n\
    event W7 (a: [u64; 7]),\nevent W8 (a: [u64; 8]),\nevent W9 (a: [u64; 9]),\n\
    event W10 (a: [u64; 10]),\nevent W11 (a: [u64; 11]),\nevent W12 (a: [u64; 12]),\n\
    event W13 (a: [u64; 13]),\nevent W14 (a: [u64; 14]),\nevent W15 (a: [u64; 15]),\n\
    event W16 (a: [u64; 16]),\nevent W17 (a: [u64; 17]),\n\
    event BYTES (count: u32, bytes: [u8]),\n};\n";
static WORDS: Schema = Schema::new("words", TEXT, lateralis::text_hash(TEXT), 19);
lateralis::register_at_start!(WORDS);
/// Index of the event BYTES.
const BYTES: u32 = 18;

/// Never registers at start.
static LATE: Schema =
    Schema::new("late", "schema late;\nsubsystem late {\nevent E (a: u64),\n};\n", 0x55aa, 1);

/// Word `i` of an event of `count` words, of which `missing` bytes are not recorded and 0. The
/// first byte contains `count`.
fn word(i: u64, count: u64, missing: u64) -> u64 {
    let mut bytes = (i + 0x0101_0101_0101_0101 * count).to_ne_bytes();
    if i + 1 == count {
        bytes[8 - missing as usize..].fill(0);
    }
    if i == 0 {
        bytes[0] = missing as u8;
    }
    u64::from_ne_bytes(bytes)
}

fn record_words<const N: usize>(missing: u32) {
    let words: [u64; N] = core::array::from_fn(|i| word(i as u64, N as u64, missing.into()));
    let on = WORDS.on(N as u32);
    assert_eq!(on, 1);
    WORDS.emit(on, N as u32, 8 * N as u32 - missing, words);
}

fn record_bytes(bytes: &[u8]) {
    let on = WORDS.on(BYTES);
    if on != 0 {
        let mut record = Record::new();
        record.u32(bytes.len() as u32);
        record.bytes(bytes);
        WORDS.emit_record(on, BYTES, &record);
    }
}

/// All records; those of `words` by the lengths in their first bytes.
fn records(area: &Area) -> Vec<Entry> {
    let base = area.schema("words").base_id;
    area.records(|id, fields| match id - base {
        0 => {}
        BYTES => {
            fields.u32();
            fields.sequence(Fields::u8);
        }
        count => {
            let missing = u32::from(fields.u8());
            fields.array(8 * count - missing - 1, Fields::u8);
        }
    })
}

fn check_words(entry: &Entry, count: u32, missing: u32) {
    assert_eq!(entry.payload.len() as u32, 8 * count - missing);
    let words = (0..count.into()).map(|i| word(i, count.into(), missing.into()));
    let expected: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    assert_eq!(entry.payload, expected[..entry.payload.len()]);
}

#[test]
fn every_number_of_words() {
    let Some(run) = recorded("every_number_of_words", &[("LATERALIS_RECORD", RECORD)]) else {
        record_words::<0>(0);
        record_words::<1>(0);
        record_words::<2>(0);
        record_words::<3>(0);
        record_words::<4>(0);
        record_words::<5>(0);
        record_words::<6>(0);
        record_words::<7>(0);
        record_words::<8>(0);
        record_words::<9>(0);
        record_words::<10>(0);
        record_words::<11>(0);
        record_words::<12>(0);
        record_words::<13>(0);
        record_words::<14>(0);
        record_words::<15>(0);
        record_words::<16>(0);
        record_words::<17>(0);
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    let base = area.schema("words").base_id;
    assert_eq!(area.lost(), 0);
    let mut entries = records(area);
    entries.retain(|entry| entry.id >= base);
    entries.sort_by_key(|entry| entry.id);
    assert_eq!(entries.len(), 18);
    for (count, entry) in (0..).zip(&entries) {
        check_words(entry, count, 0);
    }
}

/// Every remainder, first by the slow path, then mostly by the fast one.
#[test]
fn every_length_of_a_payload() {
    let Some(run) = recorded("every_length_of_a_payload", &[("LATERALIS_RECORD", RECORD)]) else {
        for missing in 0..8 {
            for _ in 0..100 {
                record_words::<1>(missing);
                record_words::<2>(missing);
                record_words::<4>(missing);
                record_words::<5>(missing);
                record_words::<16>(missing);
                record_words::<17>(missing);
            }
        }
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    let base = area.schema("words").base_id;
    assert_eq!(area.lost(), 0);
    let mut seen = [[0; 8]; 18];
    for entry in records(area).iter().filter(|entry| entry.id >= base) {
        let missing = u32::from(entry.payload[0]);
        check_words(entry, entry.id - base, missing);
        seen[(entry.id - base) as usize][missing as usize] += 1;
    }
    for (count, seen) in seen.iter().enumerate() {
        let expected = if [1, 2, 4, 5, 16, 17].contains(&count) { 100 } else { 0 };
        assert_eq!(*seen, [expected; 8], "{count} words");
    }
}

/// With per-thread rings every record takes the slow path. One thread after the other, so
/// that each reuses the ring of the previous one.
#[test]
fn rings_of_threads() {
    let environment = [("LATERALIS_RECORD", RECORD), ("LATERALIS_RING", "thread")];
    let Some(run) = recorded("rings_of_threads", &environment) else {
        for _ in 0..10 {
            let thread = std::thread::spawn(|| {
                record_words::<1>(0);
                record_words::<5>(3);
                record_bytes(b"some");
            });
            thread.join().expect("it has not panicked");
        }
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    assert_eq!(area.u32(64), 2, "the kind of ring");
    assert_eq!(area.lost(), 0);
    let base = area.schema("words").base_id;
    let entries = records(area);
    assert_eq!(entries.iter().filter(|entry| entry.id == base + 1).count(), 10);
    assert_eq!(entries.iter().filter(|entry| entry.id == base + 5).count(), 10);
    assert_eq!(entries.iter().filter(|entry| entry.id == base + BYTES).count(), 10);
}

#[test]
fn fields_of_any_length() {
    let lengths = [0, 1, 7, 8, 9, 4095, 30000];
    let Some(run) = recorded("fields_of_any_length", &[("LATERALIS_RECORD", RECORD)]) else {
        for length in lengths {
            record_bytes(&vec![b'x'; length]);
        }
        // Longer than a packet.
        record_bytes(&vec![b'x'; 65536]);
        // More fields than an event may have.
        let mut record = Record::new();
        for field in 0..40_u64 {
            record.str("a");
            record.u64(field);
        }
        WORDS.emit_record(WORDS.on(BYTES), BYTES, &record);
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    assert_eq!(area.lost(), 2);
    let base = area.schema("words").base_id;
    let mut entries = records(area);
    entries.retain(|entry| entry.id == base + BYTES);
    entries.sort_by_key(|entry| entry.payload.len());
    assert_eq!(entries.len(), lengths.len());
    for (entry, length) in entries.iter().zip(lengths) {
        let mut fields = Fields::of(&entry.payload);
        assert_eq!(fields.u32() as usize, length);
        assert_eq!(fields.sequence(Fields::u8), vec![b'x'; length]);
    }
}

/// A record may be moved while it is being built.
#[test]
fn records_move() {
    let Some(run) = recorded("records_move", &[("LATERALIS_RECORD", RECORD)]) else {
        let made = || {
            let mut record = Box::new(Record::new());
            record.u32(3);
            *record
        };
        let mut moved = made();
        moved.bytes(b"abc");
        let again = Box::new(moved);
        WORDS.emit_record(WORDS.on(BYTES), BYTES, &again);
        return;
    };
    let run = run.succeeded();
    let base = run.area().schema("words").base_id;
    let entries = records(run.area());
    let entry = entries.iter().find(|entry| entry.id == base + BYTES).expect("it was recorded");
    assert_eq!(
        entry.payload,
        [3_u32.to_ne_bytes(), 3_u32.to_ne_bytes()]
            .concat()
            .iter()
            .chain(b"abc")
            .copied()
            .collect::<Vec<u8>>()
    );
}

/// A schema that was not registered at start registers with its first event, which is recorded.
#[test]
fn first_event_registers() {
    let Some(run) = recorded("first_event_registers", &[("LATERALIS_RECORD", RECORD)]) else {
        let before = LATE.on(0);
        assert_ne!(before, 0);
        LATE.emit(before, 0, 8, [1]);
        assert_eq!(LATE.on(0), 1);
        assert!(LATE.is_enabled(0));
        LATE.emit(LATE.on(0), 0, 8, [2]);
        LATE.register();
        return;
    };
    let run = run.succeeded();
    let late = run.area().schema("late");
    assert_eq!((late.event_count, late.hash), (1, 0x55aa));
    let mut entries = run.area().records(|_, fields| {
        fields.u64();
    });
    entries.retain(|entry| entry.id == late.base_id);
    let values: Vec<u64> = entries.iter().map(|entry| Fields::of(&entry.payload).u64()).collect();
    assert_eq!(values, [1, 2]);
}

/// `is_enabled` registers too, and returns false without an area.
#[test]
fn nothing_is_enabled_without_an_area() {
    let environment = [("LATERALIS_RECORD", RECORD), ("LATERALIS_DISABLE", "1")];
    let Some(run) = recorded("nothing_is_enabled_without_an_area", &environment) else {
        assert!(!LATE.is_enabled(0));
        assert_eq!(LATE.on(0), 0);
        assert_eq!(WORDS.on(1), 0);
        LATE.emit(1, 0, 8, [1]);
        WORDS.emit(2, 1, 8, [1]);
        return;
    };
    assert!(run.succeeded().areas.is_empty());
}

#[test]
fn numbers_that_no_event_has() {
    let Some(run) = recorded("numbers_that_no_event_has", &[("LATERALIS_RECORD", RECORD)]) else {
        for index in [19, 32767, 32768, 65535, u32::MAX] {
            let on = WORDS.on(index);
            assert!(on == 0 || index % 32768 < 19, "{index}: {on}");
        }
        return;
    };
    run.succeeded();
}

#[test]
fn patterns_choose_events() {
    let wanted = format!("{RECORD};enable=words:W1*,!words:W1");
    let Some(run) = recorded("patterns_choose_events", &[("LATERALIS_RECORD", &wanted)]) else {
        let enabled: Vec<u32> = (0..19).filter(|index| WORDS.is_enabled(*index)).collect();
        assert_eq!(enabled, (10..18).collect::<Vec<u32>>());
        return;
    };
    run.succeeded();
}

/// The area of this process, opened like a recorder does.
fn own_area() -> File {
    let directory = std::env::var_os("LATERALIS_DIR").expect("set by the test");
    let mut entries = fs::read_dir(directory).expect("it can be read").flatten();
    let path = entries.next().expect("an area").path();
    OpenOptions::new().read(true).write(true).open(path).expect("it can be opened")
}

fn set_u32(area: &File, at: u64, value: u32) {
    area.write_all_at(&value.to_ne_bytes(), at).expect("written");
}

fn set_u64(area: &File, at: u64, value: u64) {
    area.write_all_at(&value.to_ne_bytes(), at).expect("written");
}

fn own_base_id(area: &File) -> u32 {
    let mut base = [0; 4];
    for slot in 0..256 {
        let mut name = [0; 6];
        area.read_exact_at(&mut name, 0x5000 + slot * 64 + 32).expect("read");
        if &name == b"words\0" {
            area.read_exact_at(&mut base, 0x5000 + slot * 64 + 4).expect("read");
        }
    }
    u32::from_ne_bytes(base)
}

#[test]
fn switched_from_outside() {
    let wanted = format!("{RECORD};enable=!*");
    let Some(run) = recorded("switched_from_outside", &[("LATERALIS_RECORD", &wanted)]) else {
        let area = own_area();
        let enable = 0x9000 + u64::from(own_base_id(&area)) + 1;
        for (round, byte) in [0, 1, 0, 1].into_iter().enumerate() {
            area.write_all_at(&[byte], enable).expect("written");
            let on = WORDS.on(1);
            assert_eq!(on, byte);
            if on != 0 {
                WORDS.emit(on, 1, 8, [(round as u64) << 8]);
            }
        }
        return;
    };
    let run = run.succeeded();
    let base = run.area().schema("words").base_id;
    let mut entries = records(run.area());
    entries.retain(|entry| entry.id >= base);
    let rounds: Vec<u8> = entries.iter().map(|entry| entry.payload[1]).collect();
    assert_eq!(rounds, [1, 3]);
}

/// A trigger that starts at W1 with the value 5 << 8 and stops at the record of 4 bytes. [ring-abi §7]
#[test]
fn triggers_see_events() {
    let wanted = format!("{RECORD};enable=!*");
    let Some(run) = recorded("triggers_see_events", &[("LATERALIS_RECORD", &wanted)]) else {
        let area = own_area();
        let base = own_base_id(&area);
        for index in 0..19 {
            area.write_all_at(&[1], 0x11000 + u64::from(base + index)).expect("written");
        }
        let trigger = 256;
        set_u32(&area, trigger + 4, 3);
        set_u32(&area, trigger + 8, base + 1);
        set_u32(&area, trigger + 12, 3);
        set_u32(&area, trigger + 16, base + BYTES);
        set_u64(&area, trigger + 24, 5 << 8);
        set_u64(&area, trigger + 32, u64::MAX);
        // The first word: 4, the count of bytes, then the count again.
        set_u64(&area, trigger + 40, u64::from_ne_bytes([4, 0, 0, 0, 4, 0, 0, 0]));
        set_u64(&area, trigger + 48, u64::MAX);
        set_u32(&area, trigger, 1);
        area.write_all_at(&[2], 0x9000 + u64::from(base + 1)).expect("written");
        for value in 0..10 {
            let on = WORDS.on(1);
            if on != 0 {
                WORDS.emit(on, 1, 8, [value << 8]);
            }
            record_bytes(&[b'x'; 8][..value as usize % 5]);
        }
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    let base = area.schema("words").base_id;
    let mut entries = records(area);
    entries.retain(|entry| entry.id >= base);
    entries.sort_by_key(|entry| entry.time);
    let read: Vec<(u32, u8)> = entries
        .iter()
        .map(|entry| (entry.id - base, entry.payload[usize::from(entry.id - base == 1)]))
        .collect();
    // 9 is the value with a record of 4 bytes.
    let mut expected = Vec::new();
    for value in 5..10 {
        expected.extend([(1, value), (BYTES, value % 5)]);
    }
    assert_eq!(read, expected);
    assert_eq!(area.u32(256), 3, "the trigger is done");
}
