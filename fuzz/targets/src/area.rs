// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shared memory of a traced program.
//!
//! Arbitrary megabytes would hardly ever look like an area, so the input is a
//! list of changes to a good one: 4 bytes of place, 8 bytes of value each.

use lateralis_ring::reference_writer::Writer;
use lateralis_ring::{
    AreaHeader, AreaView, Geometry, MakeRings, PacketHeader, Poll, ReadPolicy, RingMode,
    RingReader, abi, begin_rings, finish_rings, plan_rings, processes, schema_text, schemas,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const RING_BYTES: u64 = 16 << 10;
const PACKET_BYTES: u64 = 4 << 10;
const RINGS: u32 = 2;
const AREA_BYTES: u64 = abi::RINGS_OFFSET + RINGS as u64 * (abi::RING_CONTROL_BYTES + RING_BYTES);

/// Reads a changed area as a recorder does. Besides not panicking: no reader
/// delivers more bytes than a packet has, and reading comes to an end.
pub fn check(changes: &[u8]) {
    let words: Vec<AtomicU64> = good().iter().map(|&word| AtomicU64::new(word)).collect();
    for change in changes.chunks_exact(12) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], change[3]]);
        let mut value = [0; 8];
        value.copy_from_slice(&change[4..]);
        let word = &words[interesting(place) % words.len()];
        word.store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
    let view = AreaView::from_words(&words);
    let Ok(header) = AreaHeader::read(&view) else {
        return;
    };
    let _ = processes(&view);
    for entry in schemas(&view).unwrap_or_default() {
        let _ = schema_text(&view, &entry);
    }
    let Ok(geometry) = Geometry::of(&header, view.bytes()) else {
        return;
    };
    let mut buffer = vec![0; geometry.packet_bytes() as usize];
    for mode in [RingMode::Discard, RingMode::Overwrite] {
        for policy in [ReadPolicy::Observe, ReadPolicy::Consume] {
            for ring in 0..geometry.ring_count().min(4) {
                read_ring(&view, geometry, ring, policy, mode, &mut buffer);
            }
        }
    }
}

fn read_ring(
    view: &AreaView<'_>,
    geometry: Geometry,
    ring: u32,
    policy: ReadPolicy,
    mode: RingMode,
    buffer: &mut [u8],
) {
    let Ok(mut reader) = RingReader::new(view, geometry, ring, policy, mode) else {
        return;
    };
    let _ = reader.losses(view);
    let _ = reader.backlog_bytes(view);
    // Nothing is written, so at most every packet once, its part, and one gap.
    let polls_max = 2 * geometry.packets_per_ring() + 4;
    for _ in 0..polls_max {
        match reader.poll(view, mode, true, buffer) {
            Poll::Idle | Poll::Damaged(_) => return,
            Poll::Chunk(chunk) => {
                assert!(
                    chunk.from + chunk.bytes <= geometry.packet_bytes(),
                    "longer than a packet"
                );
                assert!(chunk.slack < 8, "slack of {}", chunk.slack);
            }
            Poll::LostPackets { count, .. } => assert!(count > 0, "a loss of nothing"),
        }
    }
    panic!("ring {ring}: still not read to the end after {polls_max} polls");
}

/// Most places of an area are payload. Three of four changes go where it matters:
/// the header, the tables, and the control pages.
fn interesting(place: u32) -> usize {
    let place = place as usize;
    let within = |from: u64, bytes: u64| (from as usize + place / 4 % bytes as usize) / 8;
    match place % 4 {
        0 => within(0, 512),
        1 => within(abi::RINGS_OFFSET, 256),
        2 => within(abi::SCHEMAS_OFFSET, 256),
        _ => place / 4,
    }
}

/// An area with two rings, one of them with some packets of records.
fn good() -> &'static [u64] {
    static AREA: OnceLock<Vec<u64>> = OnceLock::new();
    AREA.get_or_init(|| {
        let words: Vec<AtomicU64> = (0..AREA_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        let view = AreaView::from_words(&words);
        build(&view).expect("all places are inside");
        words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    })
}

fn build(view: &AreaView<'_>) -> Result<(), lateralis_ring::OutOfArea> {
    use abi::header as at;
    view.store_u64(at::MAGIC, abi::AREA_MAGIC)?;
    view.store_u64(at::MAGIC_COMPLEMENT, !abi::AREA_MAGIC)?;
    view.store_u32(at::ABI_VERSION, abi::ABI_VERSION)?;
    view.store_u32(at::HEADER_BYTES, abi::header::BYTES as u32)?;
    view.store_u32(at::BYTE_ORDER, abi::BYTE_ORDER_MARK)?;
    view.store_u32(at::PAGE_BYTES, 4096)?;
    view.store_u64(at::AREA_BYTES, AREA_BYTES)?;
    view.store_u64(at::AREA_ID, 1)?;
    view.store_u32(at::RING_KIND, 1)?;
    view.store_u32(at::RING_COUNT, RINGS)?;
    view.store_u64(at::RINGS_OFFSET, abi::RINGS_OFFSET)?;
    let header = AreaHeader::read(view).expect("a good header");
    let plan = plan_rings(&header, RING_BYTES, PACKET_BYTES).expect("it fits");
    assert_eq!(begin_rings(view)?, MakeRings::Mine);
    finish_rings(view, &plan)?;
    let mut writer = Writer::new(&plan.geometry(), 0, 100, 101, RingMode::Discard);
    let mut time = 0;
    for number in 0_u32..900 {
        let payload = number.to_ne_bytes();
        let mut clock = || {
            time += 1;
            time
        };
        writer.write(view, &mut clock, 16, &payload)?;
    }
    Ok(())
}

/// No change, few, and many.
pub fn good_changes() -> Vec<Vec<u8>> {
    vec![vec![0; 12], vec![1; 120], (0..=255).collect()]
}

/// The full packets of the valid area, as in memory.
pub fn closed_packets() -> Vec<Vec<u8>> {
    let words: Vec<AtomicU64> = good().iter().map(|&word| AtomicU64::new(word)).collect();
    let view = AreaView::from_words(&words);
    let header = AreaHeader::read(&view).expect("a good header");
    let geometry = Geometry::of(&header, view.bytes()).expect("good rings");
    let mut packets = Vec::new();
    for sequence in 0..geometry.packets_per_ring() {
        let mut bytes = vec![0; geometry.packet_bytes() as usize];
        view.copy_out(geometry.packet_offset(0, sequence), &mut bytes).expect("inside");
        let mut head = [0; abi::PACKET_HEADER_BYTES as usize];
        head.copy_from_slice(&bytes[..abi::PACKET_HEADER_BYTES as usize]);
        let header = PacketHeader::decode(&head, false);
        if header.content_bits > 0 {
            bytes.truncate(header.packet_bits as usize / 8);
            packets.push(bytes);
        }
    }
    packets
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_unchanged_area_is_readable_and_has_records() {
        super::check(&[]);
        let words = super::good();
        assert!(words[super::abi::RINGS_OFFSET as usize / 8] > 0, "cursor of ring 0");
    }
}
