// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 128-byte header of a packet [trace-layout, "Packet"].

use crate::abi::{self, packet};

/// Lost events by cause, cumulative since the ring was made [ring-abi §6].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LossCounts {
    /// No free packet, discard mode.
    pub full: u64,
    /// Record longer than a packet.
    pub too_big: u64,
    /// Gave up after 1000 restarts.
    pub contended: u64,
    /// Nested deeper than there are rings for.
    pub no_ring: u64,
}

impl LossCounts {
    /// Sum over the causes. Saturating: the counts come from hostile memory.
    pub fn total(&self) -> u64 {
        self.full
            .saturating_add(self.too_big)
            .saturating_add(self.contended)
            .saturating_add(self.no_ring)
    }

    /// What was lost since `earlier`, per cause; zero where a count went backwards.
    #[must_use]
    pub fn since(&self, earlier: &LossCounts) -> LossCounts {
        LossCounts {
            full: self.full.saturating_sub(earlier.full),
            too_big: self.too_big.saturating_sub(earlier.too_big),
            contended: self.contended.saturating_sub(earlier.contended),
            no_ring: self.no_ring.saturating_sub(earlier.no_ring),
        }
    }

    /// Sum per cause, saturating.
    #[must_use]
    pub fn plus(&self, other: &LossCounts) -> LossCounts {
        LossCounts {
            full: self.full.saturating_add(other.full),
            too_big: self.too_big.saturating_add(other.too_big),
            contended: self.contended.saturating_add(other.contended),
            no_ring: self.no_ring.saturating_add(other.no_ring),
        }
    }

    /// The greater of both, per cause.
    #[must_use]
    pub fn max(&self, other: &LossCounts) -> LossCounts {
        LossCounts {
            full: self.full.max(other.full),
            too_big: self.too_big.max(other.too_big),
            contended: self.contended.max(other.contended),
            no_ring: self.no_ring.max(other.no_ring),
        }
    }
}

/// Offset of `ring_sequence`; reserved in the ring itself, where it is 0.
const RING_SEQUENCE: u64 = 124;
/// Flag in `ring_flags` of a file: `ring_sequence` and the bits from [`PLACE_SHIFT`] on contain the
/// position of the records in the ring.
const FLAG_PLACE: u32 = 4;
/// Flag in `ring_flags` of a file: the first record is a WRITER that the recorder repeated.
const FLAG_REPEATED_WRITER: u32 = 8;
/// Flag in `ring_flags` of a file: losses count from when the ring was made.
const FLAG_ALL_LOSSES: u32 = 16;
/// First bit in `ring_flags` of the position of the first record in its ring packet, in units of 8
/// bytes.
const PLACE_SHIFT: u32 = 8;

/// Where the records of a packet in a file were in the ring [trace-layout, "Packet"].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketPlace {
    /// Number of the packet in the ring; the low 32 bits are kept.
    pub sequence: u64,
    /// Where in that packet the first record was, in bytes.
    pub from: u64,
    /// The first record is a WRITER that the recorder repeated.
    pub has_repeated_writer: bool,
    /// Losses count from when the ring was made.
    pub has_all_losses: bool,
}

/// A packet header as plain values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketHeader {
    /// [`abi::PACKET_MAGIC`] in a good packet.
    pub magic: u32,
    /// Trace UUID, set by the recorder.
    pub uuid: [u8; 16],
    /// Stream class, set by the recorder.
    pub stream_id: u32,
    /// Clock, not after the first record.
    pub timestamp_begin: u64,
    /// Clock, not before the last record.
    pub timestamp_end: u64,
    /// Bits of header and records without the slack of the last one.
    pub content_bits: u64,
    /// Bits of the whole packet.
    pub packet_bits: u64,
    /// Sequence number.
    pub sequence: u64,
    /// Lost events of all causes.
    pub events_discarded: u64,
    /// Lost events by cause.
    pub lost: LossCounts,
    /// Which area.
    pub area_id: u64,
    /// Which CPU, or which ring where rings belong to threads.
    pub cpu_id: u32,
    /// CRC-32C of the packet with this field zero; 0 = none.
    pub checksum: u32,
    /// [`abi::FLAG_OVERWRITE`], [`abi::FLAG_OPEN_PART`], and what [`PacketHeader::set_place`] adds.
    pub ring_flags: u32,
    /// Number of the packet in the ring, low 32 bits; 0 in the ring itself.
    pub ring_sequence: u32,
}

impl PacketHeader {
    /// Reads a header; `swapped` turns the words.
    pub fn decode(bytes: &[u8; abi::PACKET_HEADER_BYTES as usize], swapped: bool) -> PacketHeader {
        let u32_at = |offset: u64| {
            let at = offset as usize;
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            if swapped {
                word.reverse();
            }
            u32::from_ne_bytes(word)
        };
        let u64_at = |offset: u64| {
            let at = offset as usize;
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            if swapped {
                word.reverse();
            }
            u64::from_ne_bytes(word)
        };
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[packet::UUID as usize..packet::UUID as usize + 16]);
        PacketHeader {
            magic: u32_at(packet::MAGIC),
            uuid,
            stream_id: u32_at(packet::STREAM_ID),
            timestamp_begin: u64_at(packet::TIMESTAMP_BEGIN),
            timestamp_end: u64_at(packet::TIMESTAMP_END),
            content_bits: u64_at(packet::CONTENT_BITS),
            packet_bits: u64_at(packet::PACKET_BITS),
            sequence: u64_at(packet::SEQUENCE),
            events_discarded: u64_at(packet::EVENTS_DISCARDED),
            lost: LossCounts {
                full: u64_at(packet::LOST_FULL),
                too_big: u64_at(packet::LOST_TOO_BIG),
                contended: u64_at(packet::LOST_CONTENDED),
                no_ring: u64_at(packet::LOST_NO_RING),
            },
            area_id: u64_at(packet::AREA_ID),
            cpu_id: u32_at(packet::CPU_ID),
            checksum: u32_at(packet::CHECKSUM),
            ring_flags: u32_at(packet::RING_FLAGS),
            ring_sequence: u32_at(RING_SEQUENCE),
        }
    }

    /// Notes where the records were in the ring.
    pub fn set_place(&mut self, place: &PacketPlace) {
        // The longest packet has 16 MiB, 2^21 units.
        self.ring_flags |= FLAG_PLACE | ((place.from / 8) as u32) << PLACE_SHIFT;
        self.ring_flags |= if place.has_repeated_writer { FLAG_REPEATED_WRITER } else { 0 };
        self.ring_flags |= if place.has_all_losses { FLAG_ALL_LOSSES } else { 0 };
        self.ring_sequence = place.sequence as u32;
    }

    /// Writes the header; `swapped` as for [`PacketHeader::decode`].
    pub fn encode(&self, bytes: &mut [u8; abi::PACKET_HEADER_BYTES as usize], swapped: bool) {
        bytes.fill(0);
        let mut put = |offset: u64, word: &mut [u8]| {
            if swapped {
                word.reverse();
            }
            bytes[offset as usize..offset as usize + word.len()].copy_from_slice(word);
        };
        for (offset, value) in [
            (packet::MAGIC, self.magic),
            (packet::STREAM_ID, self.stream_id),
            (packet::CPU_ID, self.cpu_id),
            (packet::CHECKSUM, self.checksum),
            (packet::RING_FLAGS, self.ring_flags),
            (RING_SEQUENCE, self.ring_sequence),
        ] {
            put(offset, &mut value.to_ne_bytes());
        }
        for (offset, value) in [
            (packet::TIMESTAMP_BEGIN, self.timestamp_begin),
            (packet::TIMESTAMP_END, self.timestamp_end),
            (packet::CONTENT_BITS, self.content_bits),
            (packet::PACKET_BITS, self.packet_bits),
            (packet::SEQUENCE, self.sequence),
            (packet::EVENTS_DISCARDED, self.events_discarded),
            (packet::LOST_FULL, self.lost.full),
            (packet::LOST_TOO_BIG, self.lost.too_big),
            (packet::LOST_CONTENDED, self.lost.contended),
            (packet::LOST_NO_RING, self.lost.no_ring),
            (packet::AREA_ID, self.area_id),
        ] {
            put(offset, &mut value.to_ne_bytes());
        }
        bytes[packet::UUID as usize..packet::UUID as usize + 16].copy_from_slice(&self.uuid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_undoes_encode_in_both_byte_orders() {
        let header = PacketHeader {
            magic: abi::PACKET_MAGIC,
            uuid: *b"0123456789abcdef",
            stream_id: 1,
            timestamp_begin: 2,
            timestamp_end: 3,
            content_bits: 4,
            packet_bits: 5,
            sequence: 6,
            events_discarded: 7,
            lost: LossCounts { full: 8, too_big: 9, contended: 10, no_ring: 11 },
            area_id: 12,
            cpu_id: 13,
            checksum: 14,
            ring_flags: 15,
            ring_sequence: 16,
        };
        for swapped in [false, true] {
            let mut bytes = [0xff; 128];
            header.encode(&mut bytes, swapped);
            assert_eq!(PacketHeader::decode(&bytes, swapped), header);
            let magic = abi::PACKET_MAGIC;
            let expected = if swapped { magic.swap_bytes() } else { magic }.to_ne_bytes();
            assert_eq!(bytes[..4], expected);
        }
    }
}
