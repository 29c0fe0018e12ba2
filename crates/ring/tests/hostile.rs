// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever words are in an area, reading it ends, stays inside and does not panic.

use std::sync::atomic::{AtomicU64, Ordering};

use lateralis_ring::abi::{self, header, ring};
use lateralis_ring::reference_writer::{Outcome, Writer};
use lateralis_ring::{
    AreaHeader, AreaView, Geometry, MakeRings, Poll, ReadPolicy, RingMode, RingReader, begin_rings,
    finish_rings, plan_rings, processes, schema_text, schemas,
};

/// An area in memory with rings of `packets` packets of 4 KiB.
fn area(kind: u32, packets: u64) -> Vec<AtomicU64> {
    let area_bytes = abi::RINGS_OFFSET + 2 * (4096 + packets * 4096);
    let words: Vec<AtomicU64> = (0..area_bytes / 8).map(|_| AtomicU64::new(0)).collect();
    let view = AreaView::from_words(&words);
    view.store_u64(header::MAGIC, abi::AREA_MAGIC).unwrap();
    view.store_u64(header::MAGIC_COMPLEMENT, !abi::AREA_MAGIC).unwrap();
    view.store_u32(header::ABI_VERSION, abi::ABI_VERSION).unwrap();
    view.store_u32(header::HEADER_BYTES, header::BYTES as u32).unwrap();
    view.store_u32(header::BYTE_ORDER, abi::BYTE_ORDER_MARK).unwrap();
    view.store_u64(header::AREA_BYTES, area_bytes).unwrap();
    view.store_u64(header::AREA_ID, 77).unwrap();
    view.store_u32(header::RING_KIND, kind).unwrap();
    view.store_u32(header::RING_COUNT, 2).unwrap();
    view.store_u64(header::RINGS_OFFSET, abi::RINGS_OFFSET).unwrap();
    let found = AreaHeader::read(&view).unwrap();
    let plan = plan_rings(&found, packets * 4096, 4096).unwrap();
    assert_eq!(plan.geometry().packets_per_ring(), packets);
    assert_eq!(begin_rings(&view), Ok(MakeRings::Mine));
    assert_eq!(begin_rings(&view), Ok(MakeRings::Others));
    finish_rings(&view, &plan).unwrap();
    words
}

fn geometry(view: &AreaView<'_>) -> Geometry {
    Geometry::of(&AreaHeader::read(view).unwrap(), view.bytes()).unwrap()
}

/// A small generator with a fixed seed: the test is the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn everything_written_is_read_once_and_in_order() {
    for (kind, mode) in [(1, RingMode::Discard), (2, RingMode::Discard), (2, RingMode::Overwrite)] {
        let words = area(kind, 4);
        let view = AreaView::from_words(&words);
        let geometry = geometry(&view);
        let mut writer = Writer::new(&geometry, 1, 10, 11, mode);
        let policy = ReadPolicy::Consume;
        let mut reader = RingReader::new(&view, geometry, 1, policy, mode).unwrap();
        let mut buffer = vec![0; 4096];
        let (mut time, mut written, mut lost) = (0, Vec::new(), 0);
        let mut read = Vec::new();
        let mut lost_packets = 0;
        let mut random = Random(kind.into());
        for n in 0..20_000u32 {
            let payload = [&n.to_ne_bytes()[..], &vec![7; (n % 50) as usize]].concat();
            let mut clock = || {
                time += 1;
                time
            };
            match writer.write(&view, &mut clock, 20, &payload).unwrap() {
                Outcome::Written => written.push(n),
                Outcome::LostFull => lost += 1,
                other => panic!("{other:?}"),
            }
            // Long pauses of the reader, so that the ring runs full.
            while random.next().is_multiple_of(64) {
                match reader.poll(&view, mode, n % 2 == 0, &mut buffer) {
                    Poll::Idle => break,
                    Poll::Chunk(chunk) => take(&buffer[..chunk.bytes as usize], &mut read),
                    Poll::LostPackets { count, .. } => lost_packets += count,
                    Poll::Damaged(damage) => panic!("{damage}"),
                }
            }
        }
        loop {
            match reader.poll(&view, mode, true, &mut buffer) {
                Poll::Idle => break,
                Poll::Chunk(chunk) => take(&buffer[..chunk.bytes as usize], &mut read),
                Poll::LostPackets { count, .. } => lost_packets += count,
                Poll::Damaged(damage) => panic!("{damage}"),
            }
        }
        assert_eq!(reader.losses(&view).unwrap().full, lost);
        assert_eq!(written.len() as u64 + lost, 20_000);
        match mode {
            RingMode::Discard => {
                assert!(lost > 0 && lost_packets == 0);
                assert_eq!(read, written);
            }
            RingMode::Overwrite => {
                assert!(lost == 0 && lost_packets > 0);
                assert!(read.is_sorted() && read.len() > 100);
                assert_eq!(read.last(), Some(&19_999));
            }
        }
    }
}

/// Numbers of the records in a chunk.
fn take(records: &[u8], read: &mut Vec<u32>) {
    let mut at = 0;
    while at < records.len() {
        let word = u64::from_ne_bytes(records[at..at + 8].try_into().unwrap());
        let id = if cfg!(target_endian = "little") { word as u16 } else { (word >> 48) as u16 };
        if id == abi::ID_WRITER {
            at += 16;
            continue;
        }
        assert_eq!(id, 20);
        let n = u32::from_ne_bytes(records[at + 8..at + 12].try_into().unwrap());
        read.push(n);
        at += (8 + 4 + n as usize % 50).next_multiple_of(8);
    }
}

#[test]
fn any_words_are_survived() {
    let words = area(1, 2);
    let view = AreaView::from_words(&words);
    let geometry = geometry(&view);
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut buffer = vec![0; 4096];
    let interesting = |random: &mut Random| match random.next() % 8 {
        0 => 0,
        1 => u64::MAX,
        2 => random.next() % 20_000,
        3 => (1 << 63) | (random.next() % 20_000),
        4 => random.next() & !7,
        5 => ((random.next() % 8) << 12) | 144,
        _ => random.next(),
    };
    let (mut chunks, mut damages) = (0, 0);
    for _ in 0..20_000 {
        let control = geometry.control_offset(0);
        for offset in [ring::CURSOR, ring::CONSUMED, ring::LOST_FULL] {
            view.store_u64(control + offset, interesting(&mut random)).unwrap();
        }
        let mode =
            if random.next().is_multiple_of(2) { RingMode::Discard } else { RingMode::Overwrite };
        let policy =
            if random.next().is_multiple_of(2) { ReadPolicy::Consume } else { ReadPolicy::Observe };
        let mut reader = RingReader::new(&view, geometry, 0, policy, mode).unwrap();
        for _ in 0..6 {
            let packet = geometry.packet_offset(0, random.next() % 2);
            let field = random.next() % 16 * 8;
            view.store_u64(packet + field, interesting(&mut random)).unwrap();
            match reader.poll(&view, mode, random.next().is_multiple_of(2), &mut buffer) {
                Poll::Chunk(chunk) => {
                    assert!(chunk.bytes + chunk.from <= 4096 && chunk.slack < 8);
                    chunks += 1;
                }
                Poll::Damaged(_) => damages += 1,
                Poll::Idle | Poll::LostPackets { .. } => {}
            }
            if random.next().is_multiple_of(2) {
                let cursor = interesting(&mut random);
                view.store_u64(control + ring::CURSOR, cursor).unwrap();
            }
            reader.backlog_bytes(&view).unwrap();
        }
    }
    assert!(chunks > 100 && damages > 100, "the test tests something: {chunks}, {damages}");
}

#[test]
fn any_header_and_tables_are_survived() {
    let words = area(1, 2);
    let view = AreaView::from_words(&words);
    let mut random = Random(42);
    for _ in 0..300 {
        let at = random.next() % (abi::HEAP_OFFSET / 8);
        words[at as usize].store(random.next() >> (random.next() % 64), Ordering::Relaxed);
        if let Ok(found) = AreaHeader::read(&view) {
            if let Ok(geometry) = Geometry::of(&found, view.bytes()) {
                assert!(geometry.area_bytes() <= view.bytes());
            }
            let _ = plan_rings(&found, random.next(), random.next());
        }
        for slot in 0..abi::SCHEMA_COUNT {
            let at = abi::SCHEMAS_OFFSET + slot * abi::schema::BYTES;
            view.store_u32(at, abi::SLOT_READY).unwrap();
        }
        for entry in schemas(&view).unwrap() {
            entry.ids();
            schema_text(&view, &entry);
        }
        processes(&view).unwrap();
    }
    // A stretch that ends anywhere is refused or read, never overrun.
    for words in [0, 1, 511, 512, 131_071] {
        let short: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        assert!(AreaHeader::read(&AreaView::from_words(&short)).is_err());
    }
}
