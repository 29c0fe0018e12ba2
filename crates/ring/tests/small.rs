// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small areas as programs leave them, and such as no program leaves.
#![cfg(feature = "reference-writer")]

use lateralis_ring::small::abi::{self, header, packet, ring};
use lateralis_ring::small::reference::{CORES, PACKET_BYTES, PACKETS, SmallBuilder};
use lateralis_ring::small::{SmallArea, SmallAreaError, find};

/// Event A of the schema, at a time.
fn a(time: u64) -> (u16, u64, &'static [u8]) {
    (16, time, &[1, 0, 0, 0])
}

fn whole(swapped: bool) -> SmallBuilder {
    let mut made = SmallBuilder::new(swapped, 32, abi::MODE_OVERWRITE, 7);
    for sequence in 3..6 {
        let time = sequence * 100;
        made.packet(1, sequence, time, [0; 3], &[a(time), a(time + 1)], false);
    }
    made.packet(1, 6, 600, [0; 3], &[a(600)], true);
    made
}

#[test]
fn packets_are_found_in_their_order_in_both_byte_orders() {
    for swapped in [false, true] {
        let mut memory = vec![0xa5; 40];
        memory.extend(whole(swapped).bytes);
        let found: Vec<_> = find(&memory).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].offset, found[0].swapped), (40, swapped));
        let area = SmallArea::read(&memory[40..], swapped).unwrap();
        assert_eq!(
            (area.header.core_count, area.header.clock_hz, area.header.time_bits),
            (2, 1_000_000, 32)
        );
        let schemas = area.schemas();
        assert_eq!((schemas.len(), schemas[0].hash, schemas[0].base_id), (1, 7, 16));
        let none = area.ring(0).unwrap();
        assert!(none.packets.is_empty() && none.damages.is_empty());
        let ring = area.ring(1).unwrap();
        let shape: Vec<_> = ring
            .packets
            .iter()
            .map(|p| (p.sequence, p.begin, p.records.len(), p.is_open))
            .collect();
        assert_eq!(
            shape,
            [(3, 300, 32, false), (4, 400, 32, false), (5, 500, 32, false), (6, 600, 16, true)]
        );
        for one in &ring.packets {
            assert_eq!(one.records.start, SmallBuilder::packet_at(1, one.sequence) + 32);
        }
        assert!(area.ring(2).is_none());
    }
}

#[test]
fn whatever_was_being_written_is_not_there() {
    // The packet was opened, and the cursor is still in the one before.
    let mut made = whole(false);
    let at = SmallBuilder::packet_at(1, 7);
    made.u32(at, packet::SEQUENCE, 7);
    made.u16(at, packet::CONTENT_BYTES, 0);
    let sequences = |made: &SmallBuilder| -> Vec<u64> {
        let area = SmallArea::read(&made.bytes, false).unwrap();
        let ring = area.ring(1).unwrap();
        assert!(ring.damages.is_empty(), "{:?}", ring.damages);
        ring.packets.iter().map(|packet| packet.sequence).collect()
    };
    assert_eq!(sequences(&made), [4, 5, 6]);
    // Its magic word is not there while the others are written.
    made.u32(at, packet::MAGIC, 0);
    assert_eq!(sequences(&made), [4, 5, 6]);
    // The open packet was closed, and the next one not begun: both words say the same.
    let mut made = whole(false);
    made.u16(SmallBuilder::packet_at(1, 6), packet::CONTENT_BYTES, 48);
    assert_eq!(sequences(&made), [3, 4, 5, 6]);
    // A record that was not committed is after the cursor.
    let area = SmallArea::read(&made.bytes, false).unwrap();
    assert_eq!(area.ring(1).unwrap().packets[3].records.len(), 16);
}

#[test]
fn the_low_bits_of_losses_become_whole_counts() {
    let mut made = SmallBuilder::new(false, 64, 0, 7);
    made.packet(0, 0, 10, [1, 0x1_fffe, 3], &[a(10)], false);
    made.packet(0, 1, 20, [2, 0x2_0001, 3], &[a(20)], false);
    made.packet(0, 2, 30, [2, 0x2_0001, 4], &[a(30)], true);
    made.control(0, ring::LOST_TOO_BIG, 0x2_0003);
    let area = SmallArea::read(&made.bytes, false).unwrap();
    let ring = area.ring(0).unwrap();
    let counts: Vec<_> =
        ring.packets.iter().map(|p| (p.lost.full, p.lost.too_big, p.lost.contended)).collect();
    assert_eq!(counts, [(1, 0x1_fffe, 3), (2, 0x2_0001, 3), (2, 0x2_0001, 4)]);
    assert_eq!(ring.lost.too_big, 0x2_0003);
}

#[test]
fn a_header_that_cannot_be_true_is_refused_by_name() {
    let good = whole(false);
    assert!(SmallArea::read(&good.bytes, false).is_ok());
    for (offset, values, name) in [
        (header::PACKET_BYTES, &[0u32, 128, 384, 65536][..], "packet_bytes"),
        (header::PACKETS_PER_RING, &[0, 1, 3, 131_072], "packets_per_ring"),
        (header::RING_STRIDE, &[0, 64, u32::MAX], "ring_stride"),
        (header::SCHEMA_OFFSET, &[0, 128, u32::MAX], "schema_offset"),
        (header::AREA_BYTES, &[0, u32::MAX], "area_bytes"),
        (header::MODE, &[2], "mode"),
        (header::CLOCK_BITS, &[0, 48], "clock_bits"),
        (header::STATE, &[0], "state"),
        (header::BYTE_ORDER, &[0x0403_0201], "byte_order"),
    ] {
        for value in values {
            let mut made = good.clone();
            made.u32(0, offset, *value);
            let error = SmallArea::read(&made.bytes, false).unwrap_err();
            assert_eq!(error, SmallAreaError::Word { name, value: u64::from(*value) });
        }
    }
    let mut made = good.clone();
    made.u32(0, header::ABI_VERSION, 2);
    let version = SmallArea::read(&made.bytes, false).unwrap_err();
    assert_eq!(version, SmallAreaError::Version { found: 2 });
    let area_bytes = SmallArea::read(&good.bytes, false).unwrap().area_bytes();
    let cut = SmallArea::read(&good.bytes[..area_bytes - 1], false).unwrap_err();
    assert!(matches!(cut, SmallAreaError::Cut { .. }), "{cut}");
    for bytes in 0..128 {
        let cut = SmallArea::read(&good.bytes[..bytes], false).unwrap_err();
        assert_eq!(cut, SmallAreaError::NotAnArea);
    }
}

#[test]
fn a_packet_that_cannot_be_true_is_named_and_the_others_stay() {
    for (offset, value, reason) in [
        (packet::SEQUENCE, 4, "its sequence belongs elsewhere"),
        (packet::CORE, 0, "it is of another core"),
    ] {
        let mut made = whole(false);
        made.u32(SmallBuilder::packet_at(1, 5), offset, value);
        let area = SmallArea::read(&made.bytes, false).unwrap();
        let ring = area.ring(1).unwrap();
        assert_eq!((ring.packets.len(), ring.damages.as_slice()), (3, &[(1, reason)][..]));
    }
    for content in [8u16, 33, 257, u16::MAX] {
        let mut made = whole(false);
        made.u16(SmallBuilder::packet_at(1, 5), packet::CONTENT_BYTES, content);
        let ring = SmallArea::read(&made.bytes, false).unwrap().ring(1).unwrap();
        assert_eq!((ring.packets.len(), ring.damages.len()), (3, 1), "{content}");
    }
    for cursor in [1, 7, 65, 64 + (PACKET_BYTES * PACKETS) as u32 + 8, u32::MAX] {
        let mut made = whole(false);
        made.control(1, ring::CURSOR, cursor);
        let ring = SmallArea::read(&made.bytes, false).unwrap().ring(1).unwrap();
        // The open packet is where no cursor is: its content is not known.
        assert_eq!(ring.packets.len(), 3, "{cursor}");
    }
    assert_eq!(CORES, 2);
}
