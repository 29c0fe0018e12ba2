// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns hold what rows hold: every value of every event of every trace that
//! is here, and of damaged ones.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lateralis_ctf::{Batch, Reader, StreamFile, open};
use lateralis_model::{
    Column, ColumnBatch, ColumnRequest, CountBy, Damage, Interval, Look, Place, Slot, Source, Step,
    StreamIndex, Want, Wanted,
};
use lateralis_units::Nanos;

/// What is compared of an event: stream, class, time, slots. Numbers that are
/// none differ from themselves, so reals are compared by their bits.
type Seen = (u32, u32, i64, Vec<Slot>);

fn traces() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    if path.join("EXPECTED.tsv").is_file() {
        return Some(path);
    }
    println!("SKIPPED: no traces at {}", path.display());
    None
}

/// The directories at or under one that hold metadata.
fn find(directory: &Path, found: &mut Vec<PathBuf>) {
    if directory.join("metadata").is_file() {
        return found.push(directory.to_owned());
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    below.sort();
    below.iter().for_each(|path| find(path, found));
}

fn by_bits(slot: Slot) -> Slot {
    match slot {
        Slot::Real(real) => Slot::Unsigned(real.to_bits()),
        slot => slot,
    }
}

fn of_rows(reader: &Reader) -> (Vec<Seen>, Vec<Damage>) {
    let (mut seen, mut damage) = (Vec::new(), Vec::new());
    for stream in 0..reader.streams().len() as u32 {
        let mut cursor = reader.cursor(StreamIndex(stream));
        while cursor.advance() {
            let event = cursor.event();
            let slots = event.slots.iter().copied().map(by_bits).collect();
            seen.push((stream, event.class_index, event.time.0, slots));
        }
        damage.extend_from_slice(cursor.damage());
    }
    (seen, damage)
}

/// Puts the events of a batch together again. Returns how many are rows.
fn of_batch(batch: &Batch<'_>, out: &mut Vec<Seen>) -> usize {
    let stream = batch.stream().0;
    let classes: Vec<_> = batch.classes().collect();
    let mut next = vec![0; classes.len()];
    let mut rows = batch.rows();
    for place in batch.order().iter() {
        out.push(match place {
            Place::Columns(class) => {
                let index = classes.iter().position(|c| c.class_index() == class).unwrap();
                let (columns, event) = (&classes[index], next[index]);
                next[index] += 1;
                let slots = (0..columns.columns()).map(|column| {
                    by_bits(columns.column(column).slot(event).expect("as many as events"))
                });
                (stream, class, columns.times()[event].0, slots.collect())
            }
            Place::Row(class) => {
                let event = rows.next().expect("a row for every place of one");
                assert_eq!(event.class_index, class);
                let slots = event.slots.iter().copied().map(by_bits).collect();
                (stream, class, event.time.0, slots)
            }
        });
    }
    assert!(rows.next().is_none());
    for (columns, next) in classes.iter().zip(next) {
        assert_eq!((columns.len(), columns.ticks().len()), (next, next));
    }
    batch.row_count()
}

fn of_batches(reader: &Reader) -> (Vec<Seen>, Vec<Damage>, usize) {
    let wanted = Wanted::everything(reader.trace());
    let (mut seen, mut rows) = (Vec::new(), 0);
    let mut batches = reader.batches(&wanted);
    while let Some(batch) = batches.next_batch() {
        rows += of_batch(batch, &mut seen);
    }
    (seen, batches.damage().to_vec(), rows)
}

/// The same of some parts and an interval, as those see it who do not know the format.
fn of_parts(reader: &Reader, parts: &[usize], interval: Interval) -> (Vec<Seen>, Vec<Damage>) {
    let wanted = Wanted::everything(reader.trace());
    let request = ColumnRequest { parts, interval, wanted: &wanted };
    let mut seen = Vec::new();
    let damage = reader.columns(&request, &mut |batch: &dyn ColumnBatch| {
        let stream = batch.stream().0;
        let mut next = vec![0; batch.class_count()];
        let mut rows = 0;
        for place in batch.order().iter() {
            seen.push(match place {
                Place::Columns(class) => {
                    let mut classes = (0..next.len()).map(|index| batch.class(index));
                    let index = classes.position(|found| found.class == class).unwrap();
                    let (columns, event) = (batch.class(index), next[index]);
                    next[index] += 1;
                    let slots = (0..columns.columns)
                        .map(|column| by_bits(batch.column(index, column).slot(event).unwrap()));
                    (stream, class, columns.times[event].0, slots.collect())
                }
                Place::Row(class) => {
                    let event = batch.row(rows);
                    rows += 1;
                    assert_eq!(event.class_index, class);
                    let slots = event.slots.iter().copied().map(by_bits).collect();
                    (stream, class, event.time.0, slots)
                }
            });
        }
        assert_eq!(rows, batch.row_count());
        ControlFlow::Continue(())
    });
    (seen, damage)
}

/// Parts together are everything; an interval includes all events of packets inside it.
fn compare_parts(name: &str, reader: &Reader, expected: &[Seen], expected_damage: &[Damage]) {
    let summaries = reader.parts();
    let all: Vec<usize> = (0..summaries.len()).collect();
    let (seen, damage) = of_parts(reader, &all, Interval::default());
    assert!(seen == expected && damage == expected_damage, "{name}: by parts");
    let mut seen = Vec::new();
    for part in 0..summaries.len() + 1 {
        seen.extend(of_parts(reader, &[part], Interval::default()).0);
    }
    assert!(seen == expected, "{name}: part by part");
    let lies = |seen: &Seen| {
        let mut parts = summaries.iter().filter(|part| part.stream == Some(StreamIndex(seen.0)));
        !parts.any(|part| {
            part.interval.begin.is_none_or(|begin| begin.0 <= seen.2)
                && part.interval.end.is_none_or(|end| end.0 >= seen.2)
        })
    };
    if !damage.is_empty() || expected.iter().any(lies) {
        return;
    }
    let mut times: Vec<i64> = expected.iter().map(|seen| seen.2).collect();
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 3).copied().map(Nanos);
    let interval = Interval { begin: at(1), end: at(2) };
    let inside = |seen: &&Seen| {
        interval.begin.is_none_or(|begin| begin.0 <= seen.2)
            && interval.end.is_none_or(|end| end.0 >= seen.2)
    };
    let (seen, _) = of_parts(reader, &all, interval);
    let seen: Vec<&Seen> = seen.iter().filter(inside).collect();
    assert!(seen == expected.iter().filter(inside).collect::<Vec<_>>(), "{name}: an interval");
}

/// Rows and columns, on one thread and on three, agree. Returns the number of
/// events, and of those that are rows.
pub fn compare(name: &str, reader: &Reader) -> (usize, usize) {
    let (expected, expected_damage) = of_rows(reader);
    let (seen, damage, rows) = of_batches(reader);
    assert_eq!(seen.len(), expected.len(), "{name}");
    if let Some(index) = (0..seen.len()).find(|&index| seen[index] != expected[index]) {
        panic!("{name}: event {index}: {:?}, by rows {:?}", seen[index], expected[index]);
    }
    assert_eq!(damage, expected_damage, "{name}");
    let (mut again, wanted) = (Vec::new(), Wanted::everything(reader.trace()));
    let three = reader.parallel(&wanted, NonZeroUsize::new(3).unwrap());
    let damage = three.at_any_size().fold(
        |events: &mut Vec<Seen>, batch| {
            of_batch(batch, events);
        },
        |_, mut events| again.append(&mut events),
    );
    assert!(again == expected && damage == expected_damage, "{name}: on several threads");
    let wanted = Wanted::counts(reader.trace());
    let mut counted = 0;
    let mut batches = reader.batches(&wanted);
    while let Some(batch) = batches.next_batch() {
        assert_eq!((batch.order().len(), batch.classes().len()), (0, 0));
        counted += batch.len();
    }
    assert_eq!(counted, expected.len(), "{name}: counting only");
    compare_ends(name, reader, &expected, &expected_damage);
    compare_steps(name, reader, &expected, &expected_damage);
    compare_parts(name, reader, &expected, &expected_damage);
    (expected.len(), rows)
}

/// A survey for the ends counts the events of each class, and has the earliest and the latest.
fn compare_ends(name: &str, reader: &Reader, events: &[Seen], expected_damage: &[Damage]) {
    let mut expected: Ends = BTreeMap::new();
    let mut found: Ends = BTreeMap::new();
    for (stream, class, time, _) in events {
        add(&mut expected, (*stream, *class), (1, *time, *time));
    }
    let mut counted = 0;
    let damage = reader.survey(&|_, _| Look::Ends, &mut |seen| match seen {
        lateralis_model::Seen::Event(event) => {
            let time = event.time.0;
            add(&mut found, (event.stream.0, event.class_index), (1, time, time));
        }
        lateralis_model::Seen::Times { stream, class, times, .. } => {
            times.iter().for_each(|time| add(&mut found, (stream.0, class), (1, time.0, time.0)));
        }
        lateralis_model::Seen::Ends { stream, class, count, first, last, .. } => {
            counted += count;
            add(&mut found, (stream.0, class), (count, first.0, last.0));
        }
        lateralis_model::Seen::Written { .. } => {}
    });
    assert!(found == expected && damage == expected_damage, "{name}: ends");
    let names_writers =
        reader.trace().stream_classes.iter().any(|stream| {
            stream.event_classes.iter().any(|class| class.name == "lateralis:WRITER")
        });
    assert!(names_writers || counted as usize == events.len(), "{name}: times were decoded");
}

/// Counted by steps of time there are as many events in each step as there are, inside an interval
/// and outside, of all classes together and of each.
fn compare_steps(name: &str, reader: &Reader, events: &[Seen], expected_damage: &[Damage]) {
    let times = || events.iter().map(|event| event.2);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return };
    let third = (last - first) / 3;
    let interval = Interval { begin: Some(Nanos(first + third)), end: Some(Nanos(last - third)) };
    for (steps, class, interval) in [
        (5, false, Interval::default()),
        (300, false, interval),
        (9, true, interval),
        (100_000_000, true, Interval::default()),
    ] {
        let step = Step { length_ns: (last - first) / steps + 1, begin_ns: first + third / 2 };
        let by = CountBy { step, interval, class };
        let inside = |time: i64| {
            interval.begin.is_none_or(|begin| begin.0 <= time)
                && interval.end.is_none_or(|end| time <= end.0)
        };
        let key = |stream: u32, event_class: u32, time: i64| {
            let step = if inside(time) { Some(step.around(time).0) } else { None };
            (stream, step, class.then_some(event_class))
        };
        let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
        for (stream, event_class, time, _) in events {
            *expected.entry(key(*stream, *event_class, *time)).or_insert(0) += 1;
        }
        let wanted = Wanted::times(reader.trace()).or_counted(by);
        let parts: Vec<usize> = (0..reader.parts().len()).collect();
        let request =
            ColumnRequest { parts: &parts, interval: Interval::default(), wanted: &wanted };
        let damage = reader.columns(&request, &mut |batch: &dyn ColumnBatch| {
            let stream = batch.stream().0;
            if let Some(time) = batch.counted_at() {
                assert_eq!((batch.class_count(), batch.row_count()), (0, 0), "{name}");
                batch.counts(&mut |event_class, count| {
                    *found.entry(key(stream, event_class, time.0)).or_insert(0) += count;
                });
            }
            for found_class in (0..batch.class_count()).map(|index| batch.class(index)) {
                for time in found_class.times {
                    *found.entry(key(stream, found_class.class, time.0)).or_insert(0) += 1;
                }
            }
            for event in (0..batch.row_count()).map(|index| batch.row(index)) {
                *found.entry(key(stream, event.class_index, event.time.0)).or_insert(0) += 1;
            }
            ControlFlow::Continue(())
        });
        assert!(found == expected && damage == expected_damage, "{name}: {by:?}");
    }
}

/// By stream and class: how many, the earliest, the latest.
type Ends = BTreeMap<(u32, u32), (u64, i64, i64)>;

fn add(ends: &mut Ends, key: (u32, u32), (count, first, last): (u64, i64, i64)) {
    let of = ends.entry(key).or_insert((0, i64::MAX, i64::MIN));
    *of = (of.0 + count, of.1.min(first), of.2.max(last));
}

#[test]
fn every_value_of_every_real_trace_is_the_same_by_columns_and_by_rows() {
    let Some(directory) = traces() else { return };
    let mut found: Vec<PathBuf> = Vec::new();
    find(&directory, &mut found);
    let (mut traces, mut events, mut rows) = (0, 0, 0);
    for path in found {
        let Ok(reader) = open::open(&path) else { continue };
        let (of_trace, of_rows) = compare(&path.display().to_string(), &reader);
        traces += 1;
        events += of_trace;
        rows += of_rows;
    }
    println!("{traces} traces, {events} events, {rows} of them without columns");
    assert!(traces > 100 && events > 500_000, "{traces} traces, {events} events");
    assert!(rows * 4 < events, "{rows} of {events} events have no columns");
}

/// Real streams with random bytes, cuts and holes.
#[test]
fn damaged_traces_are_the_same_by_columns_and_by_rows() {
    let Some(directory) = traces() else { return };
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % below.max(1)
    };
    for name in ["generated/lttng-ust-20k", "generated/perf-sched-1s", "generated/barectf-200k"] {
        let mut found = Vec::new();
        find(&directory.join(name), &mut found);
        let Some(path) = found.first() else { continue };
        let reader = open::open(path).unwrap();
        let metadata = fs::read(path.join("metadata")).unwrap();
        for round in 0..12 {
            let files = reader.files().iter().map(|file| {
                let mut bytes = (*file.bytes).as_ref().to_vec();
                bytes.truncate(300_000);
                for _ in 0..1 + random(40) {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
                if round % 3 == 0 {
                    bytes.truncate(random(bytes.len()));
                }
                StreamFile { name: file.name.clone(), bytes: Box::new(bytes) }
            });
            let damaged = Reader::new(&metadata, files.collect());
            compare(&format!("{name} round {round}"), &damaged);
        }
    }
}

/// Headers that are aligned more than the content after them, with every end of a stream and other
/// bytes at every position.
#[test]
fn aligned_headers_are_the_same_by_columns_and_by_rows() {
    let metadata = b"/* CTF 1.8 */
        trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 8; align = 8; } := u8;
        typealias integer { size = 32; align = 32; } := u32;
        typealias integer { size = 64; align = 64; } := u64;
        clock { name = c; freq = 1000000; };
        stream { event.header := struct {
            integer { size = 16; align = 64; } id;
            integer { size = 48; align = 8; map = clock.c.value; } timestamp; } align(64); };
        event { id = 0; name = four; fields := struct { u64 a; u64 b; u64 c; u64 d; }; };
        event { id = 1; name = odd; fields := struct { u8 a; u8 b; u8 c; }; };
        event { id = 2; name = text; fields := struct { string t; u32 n; }; };
        event { id = 3; name = list; fields := struct { u8 n; u32 s[n]; }; };
        event { id = 4; name = none; };";
    let mut bytes = Vec::new();
    for index in 0..40u64 {
        bytes.resize(bytes.len().next_multiple_of(8), 0xee);
        let id = index * 7 % 5;
        bytes.extend((id | (1000 + index) << 16).to_le_bytes());
        match id {
            0 => (0..4).for_each(|n| bytes.extend((index * n).to_le_bytes())),
            1 => bytes.extend([index as u8, 2, 3]),
            2 => {
                bytes.extend(vec![b'x'; index as usize % 11]);
                bytes.push(0);
                bytes.resize(bytes.len().next_multiple_of(4), 0xee);
                bytes.extend(7u32.to_le_bytes());
            }
            3 => bytes.extend([2, 0xee, 0xee, 0xee, 1, 0, 0, 0, 2, 0, 0, 0]),
            _ => {}
        }
    }
    let reader = |bytes: Vec<u8>| {
        Reader::new(metadata, vec![StreamFile { name: "s".into(), bytes: Box::new(bytes) }])
    };
    let whole = reader(bytes.clone());
    assert_eq!(whole.diagnostics(), []);
    assert_eq!(compare("whole", &whole), (40, 0));
    for end in 0..bytes.len() {
        let mut cut = bytes[..end].to_vec();
        compare(&format!("cut at {end}"), &reader(cut.clone()));
        cut.extend([0; 40]);
        compare(&format!("zeros from {end}"), &reader(cut));
        let mut other = bytes.clone();
        other[end] ^= 0x41;
        compare(&format!("another byte at {end}"), &reader(other));
    }
}

#[test]
fn only_what_is_wanted_is_decoded() {
    let metadata = b"/* CTF 1.8 */
        trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 8; align = 8; } := u8;
        stream { event.header := struct { u8 id; }; };
        event { id = 0; name = a; fields := struct { u8 x; string t; u8 n; u8 s[n]; }; };
        event { id = 7; name = b; fields := struct { u8 x; u8 y; }; };";
    let bytes = b"\x00\x01hello\x00\x02\x0a\x0b\x07\x05\x06\x00\x02\x00\x00\x07\x08\x09".to_vec();
    let file = StreamFile { name: "s".into(), bytes: Box::new(bytes) };
    let reader = Reader::new(metadata, vec![file]);
    assert_eq!(reader.diagnostics(), []);
    let wanted = Wanted::counts(reader.trace()).with(0, 1, Want::Columns(vec![false, true]));
    let mut batches = reader.batches(&wanted);
    let batch = batches.next_batch().unwrap();
    assert_eq!(batch.counts().collect::<Vec<_>>(), [(0, 2), (1, 2)]);
    assert_eq!(batch.order().iter().collect::<Vec<_>>(), [Place::Columns(1); 2]);
    let class = batch.classes().next().unwrap();
    assert_eq!((class.class_index(), class.columns()), (1, 2));
    assert_eq!(class.column(0).slot(0), None);
    assert_eq!(class.column(1).slot(1), Some(Slot::Unsigned(9)));
    let wanted = Wanted::counts(reader.trace()).with(0, 0, Want::All);
    let mut batches = reader.batches(&wanted);
    let batch = batches.next_batch().unwrap();
    let class = batch.classes().next().unwrap();
    let Column::Spans(texts) = class.column(1) else { panic!("no text") };
    assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"hello"[..], b""]);
    let (mut offsets, mut data) = (Vec::new(), Vec::new());
    texts.append_to(&mut offsets, &mut data).unwrap();
    assert_eq!((offsets, data), (vec![0, 5, 5], b"hello".to_vec()));
    let Column::Lists(lists) = class.column(3) else { panic!("no list") };
    assert_eq!((lists.counts(), lists.starts_bits()), (&[2, 0][..], &[72, 144][..]));
}
