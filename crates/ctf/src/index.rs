// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packet index that LTTng puts beside stream files, version 1.1: a header
//! of 16 bytes and 72 bytes for each packet, all big-endian. Readers that know
//! it need not touch the stream file to find a time.
//!
//! Reference: `index.h` of lttng-tools 2.13, `struct ctf_packet_index_file_hdr`
//! and `struct ctf_packet_index`.
//!
//! ```
//! use lateralis_ctf::index::{self, Entry};
//! let entry = Entry { offset_bytes: 0, packet_bits: 4096, content_bits: 1024, ..Entry::default() };
//! let mut file = index::header().to_vec();
//! file.extend(entry.to_bytes());
//! assert_eq!(index::read(&file).unwrap(), [entry]);
//! ```

use std::fmt;

/// First word of an index file.
pub const MAGIC: u32 = 0xc1f1_dcc1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of an entry of version 1.1.
pub const ENTRY_BYTES: usize = 72;

/// Version 1.0 lacks the last two words.
const OLD_ENTRY_BYTES: usize = 56;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// First byte in the stream file.
    pub offset_bytes: u64,
    /// Size of the packet with its padding, in bits.
    pub packet_bits: u64,
    /// Size of its content, in bits.
    pub content_bits: u64,
    /// Clock at its beginning.
    pub timestamp_begin: u64,
    /// Clock at its end.
    pub timestamp_end: u64,
    /// Events discarded up to its end, cumulative.
    pub events_discarded: u64,
    /// Number of the stream class.
    pub stream_id: u64,
    /// Number of the stream in its class.
    pub stream_instance_id: u64,
    /// Number of the packet in its stream.
    pub packet_seq_num: u64,
}

impl Entry {
    /// The entry with its bytes as in the file.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let words = [
            self.offset_bytes,
            self.packet_bits,
            self.content_bits,
            self.timestamp_begin,
            self.timestamp_end,
            self.events_discarded,
            self.stream_id,
            self.stream_instance_id,
            self.packet_seq_num,
        ];
        let mut bytes = [0; ENTRY_BYTES];
        for (word, place) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The entry of version 1.1 that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let mut all = [0; ENTRY_BYTES / 8];
        for (word, place) in words.iter().zip(&mut all) {
            *place = u64::from_be_bytes(*word);
        }
        Self::from_words(&all)
    }

    fn from_words(words: &[u64]) -> Self {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        Self {
            offset_bytes: word(0),
            packet_bits: word(1),
            content_bits: word(2),
            timestamp_begin: word(3),
            timestamp_end: word(4),
            events_discarded: word(5),
            stream_id: word(6),
            stream_instance_id: word(7),
            packet_seq_num: word(8),
        }
    }
}

/// Beginning of an index file.
#[must_use]
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    for (word, place) in [MAGIC, 1, 1, ENTRY_BYTES as u32].iter().zip(bytes.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// Why a file is no index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It is shorter than a header.
    Short,
    /// Its first word is another.
    Magic(u32),
    /// A version, or an entry size, that is not known.
    Version {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
        /// Bytes of an entry.
        entry_bytes: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the packet index is shorter than its header"),
            Self::Magic(found) => write!(f, "not a packet index: magic={found:#010x}"),
            Self::Version { major, minor, entry_bytes } => {
                write!(
                    f,
                    "unknown packet index: version={major}.{minor}, entry-bytes={entry_bytes}"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Reads an index file of version 1.0 or 1.1. A cut entry at its end is left
/// out; words that 1.0 lacks are zero.
///
/// # Errors
/// If it is no index, or of a later version.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
    let (header, entries) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Error::Short)?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (magic, major, minor, entry_bytes) = (word(0), word(4), word(8), word(12));
    if magic != MAGIC {
        return Err(Error::Magic(magic));
    }
    let known = major == 1 && [ENTRY_BYTES, OLD_ENTRY_BYTES].contains(&(entry_bytes as usize));
    if !known {
        return Err(Error::Version { major, minor, entry_bytes });
    }
    let entries = entries.chunks_exact(entry_bytes as usize);
    Ok(entries
        .map(|entry| {
            let (words, _) = entry.as_chunks::<8>();
            let words: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
            Entry::from_words(&words)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            offset_bytes: 1,
            packet_bits: 2,
            content_bits: 3,
            timestamp_begin: 4,
            timestamp_end: 5,
            events_discarded: 6,
            stream_id: 7,
            stream_instance_id: 8,
            packet_seq_num: 9,
        }
    }

    #[test]
    fn bytes_are_as_lttng_has_them() {
        assert_eq!(header(), [0xc1, 0xf1, 0xdc, 0xc1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 72]);
        let bytes = entry().to_bytes();
        let last_bytes: Vec<u8> = bytes.chunks(8).map(|word| word[7]).collect();
        assert_eq!(last_bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn cut_anywhere_keeps_whole_entries() {
        let mut file = header().to_vec();
        file.extend(entry().to_bytes());
        file.extend(entry().to_bytes());
        for cut in 0..=file.len() {
            match read(&file[..cut]) {
                Ok(entries) => assert_eq!(entries.len(), (cut - HEADER_BYTES) / ENTRY_BYTES),
                Err(error) => assert!(cut < HEADER_BYTES && error == Error::Short),
            }
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(read(&[0; 16]), Err(Error::Magic(0)));
        let mut file = header();
        file[7] = 2;
        assert!(matches!(read(&file), Err(Error::Version { major: 2, .. })));
    }
}
