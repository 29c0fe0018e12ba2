// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packet index of each stream file, in LTTng's format 1.1: all numbers big-endian,
//! sizes in bits [trace-layout, formats of `ctf/index`].

use lateralis_ring::PacketHeader;

/// First bytes of an index file.
pub const FILE_HEADER: [u8; 16] = {
    let mut bytes = [0; 16];
    let magic = 0xc1f1_dcc1_u32.to_be_bytes();
    let mut i = 0;
    while i < 4 {
        bytes[i] = magic[i];
        i += 1;
    }
    bytes[7] = 1; // major version
    bytes[11] = 1; // minor version
    bytes[15] = ENTRY_BYTES as u8;
    bytes
};

/// Bytes of an entry: nine words.
pub const ENTRY_BYTES: usize = 72;

/// The index entry of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexEntry {
    /// Offset of the packet in the stream file, in bytes.
    pub offset_bytes: u64,
    /// Size of the packet in bits.
    pub packet_bits: u64,
    /// Size of its content in bits.
    pub content_bits: u64,
    /// Clock at the start.
    pub timestamp_begin: u64,
    /// Clock at the end.
    pub timestamp_end: u64,
    /// Events lost so far, of all causes.
    pub events_discarded: u64,
    /// Stream class.
    pub stream_id: u64,
    /// Ring number.
    pub stream_instance_id: u64,
    /// Sequence number of the packet.
    pub sequence: u64,
}

/// Entry of a packet at the start of its file.
impl From<&PacketHeader> for IndexEntry {
    fn from(header: &PacketHeader) -> Self {
        Self {
            offset_bytes: 0,
            packet_bits: header.packet_bits,
            content_bits: header.content_bits,
            timestamp_begin: header.timestamp_begin,
            timestamp_end: header.timestamp_end,
            events_discarded: header.events_discarded,
            stream_id: header.stream_id.into(),
            stream_instance_id: header.cpu_id.into(),
            sequence: header.sequence,
        }
    }
}

impl IndexEntry {
    /// The entry in the format of the file.
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let words = [
            self.offset_bytes,
            self.packet_bits,
            self.content_bits,
            self.timestamp_begin,
            self.timestamp_end,
            self.events_discarded,
            self.stream_id,
            self.stream_instance_id,
            self.sequence,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_entry_are_big_endian() {
        assert_eq!(FILE_HEADER, [0xc1, 0xf1, 0xdc, 0xc1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 72]);
        let entry = IndexEntry { offset_bytes: 1, sequence: 0x0203, ..IndexEntry::default() };
        let bytes = entry.encode();
        assert_eq!(bytes[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[64..], [0, 0, 0, 0, 0, 0, 2, 3]);
    }
}
