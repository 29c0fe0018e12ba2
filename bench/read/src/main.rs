// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures how fast a trace is read, in rows that take turns.
//!
//!     bench-read TRACE ROUNDS MILLISECONDS
//!
//! Each line: row, round, repetitions, events, bytes, CPU nanoseconds of this thread, wall
//! nanoseconds. A row is repeated for the given number of milliseconds. If rows that count events
//! disagree, the program fails. The line `largest` is no measurement: its bytes are those of
//! the largest packet.

#![forbid(unsafe_code)]

mod by_hand;

use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use lateralis_ctf::{Reader, open};
use lateralis_model::Wanted;
use lateralis_model::text::Babeltrace;

/// CPU time of the calling thread, as accounted by the scheduler.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

struct Input {
    path: String,
    reader: Reader,
    cores: NonZeroUsize,
    bytes: u64,
    events: u64,
    copy: Vec<u8>,
    records: Vec<u8>,
}

/// As many records as the trace has events, of the same mean length: each a length followed by zeros.
fn records(bytes: u64, events: u64) -> Vec<u8> {
    let mean = (bytes / events.max(1)).clamp(8, 1 << 20) / 4;
    let mut seed = 1u32;
    let mut out = Vec::new();
    for _ in 0..events {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let words = mean / 2 + u64::from(seed >> 8) % mean.max(1) + 1;
        let start = out.len();
        out.resize(start + words as usize * 4, 0);
        out[start..start + 4].copy_from_slice(&(words as u32 * 4).to_le_bytes());
    }
    out
}

fn walk(input: &mut Input) -> u64 {
    let (mut at, mut events) = (0, 0);
    while let Some(length) = input.records.get(at..).and_then(|tail| tail.first_chunk::<4>()) {
        at += u32::from_le_bytes(*length) as usize;
        events += 1;
    }
    events
}

/// The walk over all records, once for each thread, on the given number of threads at a time: the
/// total work is the same for any number.
fn walk_on(input: &mut Input, threads: usize) -> u64 {
    let (cores, records) = (input.cores.get(), input.records.as_slice());
    let walk = || {
        let mut at = 0;
        while let Some(length) = records.get(at..).and_then(|tail| tail.first_chunk::<4>()) {
            at += u32::from_le_bytes(*length) as usize;
        }
        black_box(at);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..cores / threads).for_each(|_| walk()));
        }
    });
    input.events
}

fn walk_one(input: &mut Input) -> u64 {
    walk_on(input, 1)
}

fn walk_all(input: &mut Input) -> u64 {
    let threads = input.cores.get();
    walk_on(input, threads)
}

/// Bytes copied at a time: the size of a second-level cache.
const COPY_BYTES: usize = 1 << 18;
const PAGE_BYTES: usize = 4096;

fn memcpy(input: &mut Input) -> u64 {
    // Files begin at pages; if the copy begins a few bytes further in its page, some AMD processors
    // take four times as long (glibc bug 30994), which does not limit any reader.
    let far = input.copy.as_ptr().align_offset(PAGE_BYTES) + PAGE_BYTES / 2;
    let copy = &mut input.copy[far..][..COPY_BYTES];
    for file in input.reader.files() {
        let bytes = (*file.bytes).as_ref();
        for part in bytes.chunks(copy.len()) {
            copy[..part.len()].copy_from_slice(part);
            black_box(&mut *copy);
        }
    }
    input.events
}

fn open_it(input: &mut Input) -> u64 {
    let reader = open::open(Path::new(&input.path)).expect("opened before");
    black_box(reader.streams().len());
    input.events
}

fn columns(input: &mut Input, wanted: &Wanted) -> u64 {
    let mut events = 0;
    let mut batches = input.reader.batches(wanted);
    while let Some(batch) = batches.next_batch() {
        events += black_box(batch).len() as u64;
    }
    events
}

fn count(input: &mut Input) -> u64 {
    let wanted = Wanted::counts(input.reader.trace());
    columns(input, &wanted)
}

fn decode(input: &mut Input) -> u64 {
    let wanted = Wanted::everything(input.reader.trace());
    columns(input, &wanted)
}

/// As [`decode`], by the program that can read only this one trace.
fn decode_by_hand(input: &mut Input) -> u64 {
    let (mut columns, mut events) = (by_hand::Columns::default(), 0);
    for file in input.reader.files() {
        let whole = by_hand::decode((*file.bytes).as_ref(), &mut columns, |columns| {
            events += black_box(columns).order.len() as u64;
        });
        whole.expect("the trace is whole");
    }
    events
}

fn on_threads(input: &mut Input, threads: NonZeroUsize) -> u64 {
    let wanted = Wanted::everything(input.reader.trace());
    let mut events = 0;
    let fold = |sum: &mut u64, batch: &lateralis_ctf::Batch<'_>| {
        *sum += black_box(batch).len() as u64;
    };
    input.reader.parallel(&wanted, threads).fold(fold, |_, sum| events += sum);
    events
}

fn decode_one(input: &mut Input) -> u64 {
    on_threads(input, NonZeroUsize::MIN)
}

fn decode_all(input: &mut Input) -> u64 {
    on_threads(input, input.cores)
}

fn rows(input: &mut Input) -> u64 {
    let mut events = 0;
    for stream in 0..input.reader.streams().len() as u32 {
        let mut cursor = input.reader.cursor(lateralis_model::StreamIndex(stream));
        while cursor.advance() {
            black_box(cursor.event().slots.len());
            events += 1;
        }
    }
    events
}

fn merge(input: &mut Input) -> u64 {
    let mut merge = input.reader.events();
    let mut events = 0;
    while let Some(event) = merge.next_event() {
        black_box((event.time, event.slots.len()));
        events += 1;
    }
    events
}

fn text(input: &mut Input) -> u64 {
    let mut null = std::fs::File::create("/dev/null").expect("there is /dev/null");
    let printer = Babeltrace::new(input.reader.trace());
    let mut merge = input.reader.events();
    let (mut events, mut out) = (0, Vec::with_capacity(1 << 17));
    while let Some(event) = merge.next_event() {
        printer.line(&mut out, &event);
        events += 1;
        if out.len() >= 1 << 16 {
            null.write_all(&out).expect("/dev/null takes everything");
            out.clear();
        }
    }
    null.write_all(&out).expect("/dev/null takes everything");
    events
}

type Row = (&'static str, fn(&mut Input) -> u64);

const ROWS: [Row; 13] = [
    ("memcpy", memcpy),
    ("walk", walk),
    ("open", open_it),
    ("count", count),
    ("decode", decode),
    ("by-hand", decode_by_hand),
    ("rows", rows),
    ("merge", merge),
    ("text", text),
    ("walk-one", walk_one),
    ("walk-all", walk_all),
    ("decode-one", decode_one),
    ("decode-all", decode_all),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, rounds, milliseconds, only @ ..] = arguments.as_slice() else {
        eprintln!("usage: bench-read TRACE ROUNDS MILLISECONDS [ROW...]");
        std::process::exit(2);
    };
    let rounds: u64 = rounds.parse().expect("a number of rounds");
    let least: u128 = milliseconds.parse::<u128>().expect("milliseconds") * 1_000_000;
    let reader = open::open(Path::new(path)).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let bytes = reader.files().iter().map(|file| (*file.bytes).as_ref().len() as u64).sum();
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // It cannot read other traces.
    let is_known = path.ends_with("barectf-200k");
    let (copy, path) = (vec![0; COPY_BYTES + 2 * PAGE_BYTES], path.clone());
    let mut input = Input { path, reader, cores, bytes, events: 0, copy, records: Vec::new() };
    input.events = rows(&mut input);
    input.records = records(bytes, input.events);
    // A packet is decoded by one thread, so the time on several cores is at least that of the largest packet.
    let packets = input.reader.streams().iter().flat_map(|stream| &stream.packets);
    let largest = packets.map(|found| found.packet.size_bytes).max().unwrap_or(0);
    println!("largest,0,1,{},{largest},0,0", input.events);
    let wanted = |(name, _): &&Row| {
        (only.is_empty() || only.iter().any(|row| row == name)) && (*name != "by-hand" || is_known)
    };
    for round in 0..rounds {
        for (name, body) in ROWS.iter().filter(wanted) {
            let (cpu, wall, mut repetitions) = (cpu_ns(), Instant::now(), 0u64);
            while repetitions == 0 || wall.elapsed().as_nanos() < least {
                let events = body(&mut input);
                assert_eq!(events, input.events, "{name}: another number of events");
                repetitions += 1;
            }
            let (cpu, wall) = (cpu_ns() - cpu, wall.elapsed().as_nanos());
            let (events, bytes) = (input.events, input.bytes);
            println!("{name},{round},{repetitions},{events},{bytes},{cpu},{wall}");
        }
    }
}
