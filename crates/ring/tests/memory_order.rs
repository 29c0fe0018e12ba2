// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The pairs W1, W2 and W3 of spec/ring-abi.md §5.1 under the memory model of the language: loom
//! runs a writer and the real reader through every order that the atomics allow.
//!
//! A ring of two packets, a record per packet. The words that carry the protocol and the data are
//! loom's atomics; words that are not compared are plain, or there would be too many orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lateralis_ring::abi::{self, packet, ring};
use lateralis_ring::reference_writer::{Outcome, Writer, WriterMemory};
use lateralis_ring::{
    Chunk, Geometry, Load, OutOfArea, Poll, ReadPolicy, RingKind, RingMemory, RingMode, RingReader,
};
use loom::sync::atomic as modelled;

const PACKET_BYTES: u64 = 256;
/// Fills a packet after its WRITER record.
const PAYLOAD_BYTES: usize = 88;

enum Word {
    Modelled(modelled::AtomicU64),
    Plain(AtomicU64),
}

/// Which fences the memory makes; the real one makes both.
#[derive(Clone, Copy)]
struct Fences {
    reader: bool,
    writer: bool,
}

struct Words {
    words: Vec<Word>,
    fences: Fences,
}

impl Words {
    fn new(geometry: &Geometry, fences: Fences) -> Words {
        let count = (geometry.area_bytes() - abi::RINGS_OFFSET) / 8;
        let mut words: Vec<Word> = (0..count).map(|_| Word::Plain(AtomicU64::new(0))).collect();
        let mut model = |offset: u64, value: u64| {
            words[((offset - abi::RINGS_OFFSET) / 8) as usize] =
                Word::Modelled(modelled::AtomicU64::new(value));
        };
        let control = geometry.control_offset(0);
        model(control + ring::CURSOR, 0);
        model(control + ring::CONSUMED, 0);
        for sequence in 0..2 {
            let start = geometry.packet_offset(0, sequence);
            let record = start + abi::PACKET_HEADER_BYTES + abi::WRITER_RECORD_BYTES;
            model(start + packet::SEQUENCE, 0);
            model(start + packet::CONTENT_BITS, 0);
            model(record, 0);
            model(record + 8, 0);
        }
        let memory = Words { words, fences };
        for sequence in 0..2 {
            let start = geometry.packet_offset(0, sequence);
            memory.store_relaxed(start, u64::from(abi::PACKET_MAGIC));
        }
        memory
    }

    fn store_relaxed(&self, offset: u64, value: u64) {
        match self.word(offset) {
            Word::Modelled(word) => word.store(value, Ordering::Relaxed),
            Word::Plain(word) => word.store(value, Ordering::Relaxed),
        }
    }

    fn word(&self, offset: u64) -> &Word {
        &self.words[((offset - abi::RINGS_OFFSET) / 8) as usize]
    }
}

impl RingMemory for Words {
    fn load(&self, offset: u64, load: Load) -> Result<u64, OutOfArea> {
        Ok(match self.word(offset) {
            Word::Modelled(word) => word.load(load.into()),
            Word::Plain(word) => word.load(Ordering::Relaxed),
        })
    }

    fn store_release(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        match self.word(offset) {
            Word::Modelled(word) => word.store(value, Ordering::Release),
            Word::Plain(word) => word.store(value, Ordering::Relaxed),
        }
        Ok(())
    }

    fn copy(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea> {
        for (index, chunk) in to.chunks_mut(8).enumerate() {
            let word = self.load(offset + index as u64 * 8, Load::Relaxed)?;
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
        }
        Ok(())
    }

    fn fence_acquire(&self) {
        if self.fences.reader {
            modelled::fence(Ordering::Acquire);
        }
    }
}

/// The writer's side. It alone writes the cursor, so it reads its own copy: loom remembers one
/// access per atomic, and a load of the cursor by the writer would hide the reader's from it.
struct WriterSide<'a> {
    words: &'a Words,
    cursor_at: u64,
    cursor: AtomicU64,
}

impl RingMemory for WriterSide<'_> {
    fn load(&self, offset: u64, load: Load) -> Result<u64, OutOfArea> {
        if offset == self.cursor_at {
            return Ok(self.cursor.load(Ordering::Relaxed));
        }
        self.words.load(offset, load)
    }

    fn store_release(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        if offset == self.cursor_at {
            self.cursor.store(value, Ordering::Relaxed);
        }
        self.words.store_release(offset, value)
    }

    fn copy(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea> {
        self.words.copy(offset, to)
    }

    fn fence_acquire(&self) {
        self.words.fence_acquire();
    }
}

impl WriterMemory for WriterSide<'_> {
    fn store_relaxed(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        self.words.store_relaxed(offset, value);
        Ok(())
    }

    fn fence_release(&self) {
        if self.words.fences.writer {
            modelled::fence(Ordering::Release);
        }
    }
}

fn write(memory: &Words, geometry: &Geometry, mode: RingMode, events: u64) -> u64 {
    let cursor_at = geometry.control_offset(0) + ring::CURSOR;
    let memory = WriterSide { words: memory, cursor_at, cursor: AtomicU64::new(0) };
    let mut writer = Writer::new(geometry, 0, 1, 2, mode);
    let mut lost = 0;
    for n in 1..=events {
        let mut payload = vec![0; PAYLOAD_BYTES];
        payload[..8].copy_from_slice(&n.to_ne_bytes());
        // The time is the number: header and payload of a record must agree.
        let outcome = writer.write(&memory, &mut || n, 20, &payload).unwrap();
        lost += u64::from(outcome == Outcome::LostFull);
    }
    lost
}

/// Numbers of the records in what a poll delivered; panics on a torn one.
fn numbers(buffer: &[u8], chunk: &Chunk) -> Vec<u64> {
    let records = &buffer[..chunk.bytes as usize];
    let word = |at: usize| u64::from_ne_bytes(records[at..at + 8].try_into().unwrap());
    let mut found = Vec::new();
    // A packet begins with its WRITER record, a later part of it does not.
    let own_start = chunk.from == abi::PACKET_HEADER_BYTES;
    let mut at = if own_start { abi::WRITER_RECORD_BYTES as usize } else { 0 };
    while at < records.len() {
        assert_eq!(word(at) as u16, 20, "torn: no event stands here");
        assert_eq!(word(at) >> 16, word(at + 8), "torn: header and payload of different records");
        found.push(word(at + 8));
        at += 8 + PAYLOAD_BYTES;
    }
    found
}

fn read_some(
    reader: &mut RingReader,
    memory: &Words,
    mode: RingMode,
    polls: u32,
    seen: &mut Vec<u64>,
) -> u64 {
    let mut lost_packets = 0;
    let mut buffer = [0; PACKET_BYTES as usize];
    for _ in 0..polls {
        match reader.poll(memory, mode, true, &mut buffer) {
            Poll::Idle => {}
            Poll::Chunk(chunk) => seen.extend(numbers(&buffer, &chunk)),
            Poll::LostPackets { count, .. } => lost_packets += count,
            Poll::Damaged(damage) => panic!("{damage}"),
        }
    }
    lost_packets
}

/// Runs all orders; how many there were.
fn check(mode: RingMode, events: u64, polls: u32, fences: Fences) -> u64 {
    let runs = Arc::new(AtomicU64::new(0));
    let counter = runs.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 100_000;
    model.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let geometry = Geometry::for_model(RingKind::PerCpu, PACKET_BYTES, 2);
        let memory = Arc::new(Words::new(&geometry, fences));
        let writing = memory.clone();
        let writer = loom::thread::spawn(move || write(&writing, &geometry, mode, events));
        let policy = ReadPolicy::Consume;
        let mut reader = RingReader::new(&*memory, geometry, 0, policy, mode).unwrap();
        let mut seen = Vec::new();
        let mut lost_packets = reader.skipped_at_start();
        lost_packets += read_some(&mut reader, &memory, mode, polls, &mut seen);
        let lost = writer.join().unwrap();
        // All is quiet now: the rest.
        lost_packets += read_some(&mut reader, &memory, mode, 2 * events as u32, &mut seen);
        assert!(seen.is_sorted_by(|a, b| a < b), "order lost or twice: {seen:?}");
        let read = seen.len() as u64;
        // The record of a packet that was lost after a part was read may have been in that part.
        let accounted = read + lost..=read + lost + lost_packets;
        assert!(accounted.contains(&events), "{read} read, {lost} + {lost_packets} lost");
    });
    runs.load(Ordering::Relaxed)
}

const BOTH: Fences = Fences { reader: true, writer: true };

fn is_found(mode: RingMode, events: u64, polls: u32, fences: Fences) -> bool {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(|| check(mode, events, polls, fences));
    std::panic::set_hook(hook);
    result.is_err()
}

#[test]
fn discard_mode() {
    let runs = check(RingMode::Discard, 3, 2, BOTH);
    assert!(runs > 100, "{runs} runs");
}

#[test]
fn overwrite_mode_and_what_happens_without_its_fences() {
    let runs = check(RingMode::Overwrite, 3, 1, BOTH);
    assert!(runs > 100, "{runs} runs");
    // Without either fence a torn packet goes unnoticed: the model can see it.
    assert!(is_found(RingMode::Overwrite, 3, 1, Fences { reader: false, writer: true }));
    assert!(is_found(RingMode::Overwrite, 3, 1, Fences { reader: true, writer: false }));
}
