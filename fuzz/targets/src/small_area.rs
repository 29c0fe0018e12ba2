// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of a machine without an operating system.
//!
//! Arbitrary bytes would hardly ever look like an area, so the input is a byte that says which good
//! one, then a list of changes to it: 2 bytes of place, 4 bytes of value each.

use lateralis_recorder::classes::RegisteredSchema;
use lateralis_recorder::core_clocks::{CoreClocks, shift_times};
use lateralis_recorder::small::{ProgramImage, memory_of, schemas_of, widen};
use lateralis_recorder::stream::{PREFIX_BYTES, RingStream, SealContext};
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::small::reference::{SmallBuilder, TEXT};
use lateralis_ring::small::{SmallArea, SmallPacket, abi, find};
use lateralis_ring::{Chunk, LossCounts, PacketHeader};
use std::sync::{Arc, OnceLock};

/// Reads a changed memory as `lat recover` does. Besides not panicking: packets lie within the ring and
/// apart, in the order of their numbers, their records within them, and no time goes back.
pub fn check(input: &[u8]) {
    let Some((which, changes)) = input.split_first() else { return };
    exchanges(*which, changes);
    let (swapped, made) = &good_areas()[usize::from(*which) % good_areas().len()];
    let mut memory = made.clone();
    for change in changes.chunks_exact(6) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % (memory.len() - 3);
        memory[place..place + 4].copy_from_slice(&change[2..]);
    }
    for found in find(&memory) {
        assert_eq!(found.offset % 8, 0);
    }
    let _ = ProgramImage::of_elf(&memory);
    let Ok(area) = SmallArea::read(&memory, *swapped) else { return };
    assert!(area.area_bytes() <= memory.len());
    let images = [memory_of(&area, &memory, 0)];
    let (schemas, _) = schemas_of(&area.schemas(), &images, &[], |text| {
        let schema = lateralis_pleco::compile("fuzzed.pleco", text).schema?;
        let hash = schema.hash();
        Some((Arc::new(schema), hash))
    });
    let mut plan = RecordPlan::new(*swapped);
    for entry in &schemas {
        plan.add(entry.base_id, &entry.schema);
    }
    for core in 0..area.header.core_count {
        let Some(ring) = area.ring(core) else { panic!("core {core} has no ring") };
        assert!(
            ring.packets.len() + ring.damages.len() <= area.header.packets_per_ring as usize + 1
        );
        assert!(ring.packets.is_sorted_by(|one, other| one.sequence < other.sequence));
        let mut stream = RingStream::new(u32::from(core), LossCounts::default(), 0);
        let mut last_time = 0;
        for packet in &ring.packets {
            let most = (area.header.packet_bytes - abi::PACKET_HEADER_BYTES) as usize;
            assert!(packet.records.len() <= most && packet.records.end <= area.area_bytes());
            let mut records = memory[packet.records.clone()].to_vec();
            let widened = widen(&mut records, packet.begin, 0, area.header.time_bits, &plan);
            assert!(widened.slack < 8 && widened.last_time >= packet.begin);
            // A second time there is nothing left to change.
            let mut again = records.clone();
            let second = widen(&mut again, packet.begin, 0, lateralis_ring::abi::TIME_BITS, &plan);
            assert_eq!((again, second.last_time), (records, widened.last_time));
            last_time = seal(&mut stream, &area, packet, last_time, &plan);
        }
    }
}

/// Reads records of which some are exchanges of clocks. Offsets are of other cores than the first, each
/// once; times that were shifted there and back are what they were.
fn exchanges(which: u8, records: &[u8]) {
    static SCHEMAS: OnceLock<Vec<RegisteredSchema>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let schema = lateralis_pleco::compile("clocks.pleco", EXCHANGES.as_bytes()).schema;
        let registered = schema.map(|schema| {
            let hash = schema.hash();
            RegisteredSchema { base_id: 0x1010, schema: Arc::new(schema), hash }
        });
        registered.into_iter().collect()
    });
    let mut plan = RecordPlan::new(which & 1 != 0);
    for entry in schemas {
        plan.add(entry.base_id, &entry.schema);
    }
    let core_count = u32::from(which >> 2 & 7) + 1;
    let mut clocks = CoreClocks::new(schemas, core_count);
    for (core, packet) in (0..core_count).cycle().zip(records.chunks(56 * 3)) {
        clocks.read(packet, core, &plan);
        let mut shifted = packet.to_vec();
        let offset = i64::from(which) << 40 | 12_345;
        shift_times(&mut shifted, offset, &plan);
        shift_times(&mut shifted, -offset, &plan);
        assert_eq!(shifted, packet);
    }
    let offsets = clocks.offsets();
    assert!(offsets.known.iter().all(|known| (1..core_count).contains(&known.cpu)));
    assert!(offsets.known.is_sorted_by_key(|known| known.cpu));
    assert_eq!(offsets.of(0), 0);
}

const EXCHANGES: &str = "schema s; subsystem clocks { event EXCHANGE (cpu: u32, asked: u64, received: u64, \
                         sent: u64, answered: u64), event OTHER () };";

/// Makes a packet of a file, as `lat recover` does; the time of its last record.
fn seal(
    stream: &mut RingStream,
    area: &SmallArea<'_>,
    packet: &SmallPacket,
    earliest: u64,
    plan: &RecordPlan,
) -> u64 {
    let mut buffer = vec![0; PREFIX_BYTES];
    buffer.extend_from_slice(&area.bytes()[packet.records.clone()]);
    let records = &mut buffer[PREFIX_BYTES..];
    let widened = widen(records, packet.begin, earliest, area.header.time_bits, plan);
    let chunk = Chunk {
        sequence: packet.sequence,
        from: lateralis_ring::abi::PACKET_HEADER_BYTES,
        bytes: packet.records.len() as u64,
        slack: widened.slack,
        closed: !packet.is_open,
        header: PacketHeader {
            timestamp_begin: packet.begin.max(earliest),
            timestamp_end: widened.last_time,
            lost: packet.lost,
            ..PacketHeader::default()
        },
    };
    let context = SealContext {
        uuid: [0; 16],
        stream_id: 0,
        area_id: 1,
        plan: Some(plan),
        overwrite: false,
        swapped: false,
        now: u64::MAX,
    };
    if let Some(sealed) = stream.seal(&context, &chunk, &mut buffer) {
        assert!(sealed.bytes.end <= buffer.len());
        assert!(sealed.index.timestamp_begin <= sealed.index.timestamp_end);
    }
    widened.last_time
}

/// Areas of both byte orders and clocks, and whether the words are turned.
fn good_areas() -> &'static [(bool, Vec<u8>)] {
    static AREAS: OnceLock<Vec<(bool, Vec<u8>)>> = OnceLock::new();
    AREAS.get_or_init(|| {
        let hash = lateralis_pleco::compile("s.pleco", TEXT.as_bytes()).schema.map(|s| s.hash());
        let mut areas = Vec::new();
        for (swapped, bits, mode) in [(false, 32, 0), (true, 32, 1), (false, 64, 1), (true, 64, 0)]
        {
            let mut made = SmallBuilder::new(swapped, bits, mode, hash.unwrap_or(0));
            for sequence in 0..6 {
                let time = 0xffff_fff0 + 7 * sequence;
                let records: &[(u16, u64, &[u8])] = &[
                    (0, time, &[1, 0, 0, 0, 2, 0, 0, 0]),
                    (16, time + 1, &[7, 0, 0, 0]),
                    (17, time + 2, b"text\0"),
                ];
                made.packet(0, sequence, time, [0, 1, 2], records, sequence == 5);
            }
            made.packet(1, 0, 5, [0; 3], &[(16, 6, &[1, 2, 3, 4])], false);
            areas.push((swapped, made.bytes));
        }
        areas
    })
}

/// No change, few, and many, to each.
pub fn good() -> Vec<Vec<u8>> {
    let areas = (0..4).flat_map(|which| [vec![which], vec![which; 7], (which..=255).collect()]);
    areas.chain([exchange_of_cores()]).collect()
}

/// Three exchanges of core 0 with cores 1, 2 and 3, and one record of another kind.
fn exchange_of_cores() -> Vec<u8> {
    let mut input = vec![3 << 2];
    for cpu in 1..4u64 {
        // Id in the low bits, where the machine has the little end first.
        input.extend((0x1010 | cpu << 16).to_le_bytes());
        input.extend(cpu.to_le_bytes());
        for tick in [1_000, 900, 910, 1_040] {
            input.extend((tick * cpu).to_le_bytes());
        }
    }
    input.extend(0x1011u64.to_le_bytes());
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unchanged_areas_are_readable_and_have_records() {
        for (swapped, memory) in good_areas() {
            let area = SmallArea::read(memory, *swapped).expect("a good area");
            let ring = area.ring(0).expect("a ring");
            assert_eq!(ring.packets.iter().map(|p| p.sequence).collect::<Vec<_>>(), [2, 3, 4, 5]);
            assert!(ring.damages.is_empty());
        }
    }
}
