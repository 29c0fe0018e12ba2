// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small area as a program would leave it, for tests and fuzzing: two cores, four packets of 256
//! bytes each, one schema of two events.

use alloc::vec;
use alloc::vec::Vec;

use super::abi::{self, header, packet, ring, schema};

/// Bytes of a packet.
pub const PACKET_BYTES: usize = 256;
/// Packets of a ring.
pub const PACKETS: usize = 4;
/// Cores.
pub const CORES: usize = 2;
/// Where it says it is.
pub const ADDRESS: u64 = 0x2000_0000;
/// Address of the text of its schema: after it, in the same memory.
pub const TEXT_ADDRESS: u64 = ADDRESS + TEXT_AT as u64;
/// Its schema.
pub const TEXT: &str = "schema s;\nsubsystem s {\nevent A (a: u32),\nevent B (t: string),\n};\n";
const STRIDE: usize = abi::CONTROL_BYTES as usize + PACKETS * PACKET_BYTES;
const SCHEMAS_AT: usize = abi::HEADER_BYTES as usize + CORES * STRIDE;
const AREA_BYTES: usize = SCHEMAS_AT + abi::SCHEMA_BYTES as usize;
const TEXT_AT: usize = AREA_BYTES;

/// An area that is being made.
#[derive(Debug, Clone)]
pub struct SmallBuilder {
    /// The memory: the area, then the text of its schema.
    pub bytes: Vec<u8>,
    swapped: bool,
}

impl SmallBuilder {
    /// An area without packets. `hash` is that of [`TEXT`].
    pub fn new(swapped: bool, clock_bits: u32, mode: u32, hash: u64) -> SmallBuilder {
        let mut made = SmallBuilder { bytes: vec![0; AREA_BYTES], swapped };
        made.bytes.extend_from_slice(TEXT.as_bytes());
        made.u64(0, header::MAGIC, abi::MAGIC);
        made.u64(0, header::MAGIC_COMPLEMENT, !abi::MAGIC);
        for (offset, value) in [
            (header::ABI_VERSION, abi::ABI_VERSION),
            (header::BYTE_ORDER, abi::BYTE_ORDER_MARK),
            (header::HEADER_BYTES, abi::HEADER_BYTES),
            (header::AREA_BYTES, AREA_BYTES as u32),
            (header::EVENT_COUNT, 2),
            (header::PACKET_BYTES, PACKET_BYTES as u32),
            (header::PACKETS_PER_RING, PACKETS as u32),
            (header::RING_OFFSET, abi::HEADER_BYTES),
            (header::RING_STRIDE, STRIDE as u32),
            (header::SCHEMA_OFFSET, SCHEMAS_AT as u32),
            (header::MODE, mode),
            (header::CLOCK_BITS, clock_bits),
            (header::POINTER_BYTES, 4),
            (header::STATE, abi::STATE_READY),
            (header::GENERATION, 1),
        ] {
            made.u32(0, offset, value);
        }
        made.u64(0, header::ADDRESS, ADDRESS);
        made.u64(0, header::CLOCK_HZ, 1_000_000);
        made.u16(0, header::CORE_COUNT, CORES as u16);
        made.u16(0, header::SCHEMA_COUNT, 1);
        made.u64(SCHEMAS_AT, schema::HASH, hash);
        made.u64(SCHEMAS_AT, schema::TEXT, TEXT_ADDRESS);
        made.u32(SCHEMAS_AT, schema::TEXT_BYTES, TEXT.len() as u32);
        made.u16(SCHEMAS_AT, schema::BASE_ID, 16);
        made.u16(SCHEMAS_AT, schema::EVENT_COUNT, 2);
        for core in 0..CORES {
            made.control(core, ring::CORE, core as u32);
        }
        made
    }

    fn put(&mut self, at: usize, offset: u32, word: &mut [u8]) {
        if self.swapped {
            word.reverse();
        }
        let at = at + offset as usize;
        self.bytes[at..at + word.len()].copy_from_slice(word);
    }

    /// Writes a word of the header, or of what begins at `at`.
    pub fn u16(&mut self, at: usize, offset: u32, value: u16) {
        self.put(at, offset, &mut value.to_ne_bytes());
    }

    /// As [`SmallBuilder::u16`].
    pub fn u32(&mut self, at: usize, offset: u32, value: u32) {
        self.put(at, offset, &mut value.to_ne_bytes());
    }

    /// As [`SmallBuilder::u16`].
    pub fn u64(&mut self, at: usize, offset: u32, value: u64) {
        self.put(at, offset, &mut value.to_ne_bytes());
    }

    /// Writes a word of the control block of a core.
    pub fn control(&mut self, core: usize, offset: u32, value: u32) {
        self.u32(Self::ring_at(core), offset, value);
    }

    /// Where the control block of a core is.
    pub fn ring_at(core: usize) -> usize {
        abi::HEADER_BYTES as usize + core * STRIDE
    }

    /// Where the packet with this sequence is.
    pub fn packet_at(core: usize, sequence: u64) -> usize {
        let slot = sequence as usize % PACKETS;
        Self::ring_at(core) + abi::CONTROL_BYTES as usize + slot * PACKET_BYTES
    }

    /// Adds a packet with these records, `(id, time, payload)`; open ones move the cursor. `lost` is
    /// full, too big, nested, as the control block counts them.
    pub fn packet(
        &mut self,
        core: usize,
        sequence: u64,
        begin: u64,
        lost: [u32; 3],
        records: &[(u16, u64, &[u8])],
        is_open: bool,
    ) {
        let at = Self::packet_at(core, sequence);
        let mut end = at + abi::PACKET_HEADER_BYTES as usize;
        let little = cfg!(target_endian = "little") != self.swapped;
        for (id, time, payload) in records {
            let time = time & ((1 << crate::abi::TIME_BITS) - 1);
            let id = u64::from(*id);
            let word = if little { id | time << 16 } else { id << 48 | time };
            self.u64(end, 0, word);
            self.bytes[end + 8..end + 8 + payload.len()].copy_from_slice(payload);
            end += (8 + payload.len()).next_multiple_of(8);
        }
        self.u32(at, packet::MAGIC, abi::PACKET_MAGIC);
        self.u32(at, packet::SEQUENCE, sequence as u32);
        self.u16(at, packet::SEQUENCE_HIGH, (sequence >> 32) as u16);
        self.u16(at, packet::CONTENT_BYTES, if is_open { 0 } else { (end - at) as u16 });
        self.u16(at, packet::CORE, core as u16);
        self.u64(at, packet::BEGIN, begin);
        self.u32(at, packet::LOST_FULL, lost[0]);
        self.u16(at, packet::LOST_TOO_BIG, lost[1] as u16);
        self.u16(at, packet::LOST_NESTED, lost[2] as u16);
        let cursor = (end - Self::ring_at(core)) as u32;
        self.control(core, ring::CURSOR, cursor);
        for (offset, count) in
            [ring::LOST_FULL, ring::LOST_TOO_BIG, ring::LOST_NESTED].into_iter().zip(lost)
        {
            self.control(core, offset, count);
        }
    }
}
