// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first bytes of each side, and the head of a frame [live §2, §3].

use std::fmt;

/// Bytes with which each side begins.
pub const PREAMBLE_BYTES: usize = 16;
/// Length of a frame's header in bytes.
pub const FRAME_HEADER_BYTES: usize = 16;
/// Longest body of a frame to a client.
pub const BODY_BYTES_MAX: u32 = 64 << 20;
/// Longest body of a frame to a server.
pub const REQUEST_BYTES_MAX: u32 = 4 << 20;

const MAGIC: [u8; 8] = *b"LATLIVE\n";
const VERSION: u16 = 1;
const ONE_WAY: u16 = 1;
const NEEDS_TOKEN: u16 = 2;

/// Why a stream cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The first bytes are not those of a live stream.
    NoMagic,
    /// The other side speaks another version.
    Version(u16),
    /// A frame is longer than it may be; in bytes.
    TooLong(u32),
    /// The checksum of a frame is wrong.
    Checksum,
    /// The body of a frame of this kind is malformed.
    Malformed(u16),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoMagic => write!(f, "Cannot understand peer: it sends no live stream"),
            Fault::Version(version) => {
                write!(f, "Cannot understand peer: version={version}, known={VERSION}")
            }
            Fault::TooLong(bytes) => write!(f, "Cannot take frame: bytes={bytes} are too many"),
            Fault::Checksum => write!(f, "Cannot trust frame: its checksum is wrong"),
            Fault::Malformed(kind) => write!(f, "Cannot understand frame: kind={kind}"),
        }
    }
}

impl std::error::Error for Fault {}

/// The first bytes of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preamble {
    /// The server expects nothing from its client: a pipe.
    pub one_way: bool,
    /// The server wants a token in the request.
    pub needs_token: bool,
}

impl Preamble {
    /// The value on the wire.
    #[must_use]
    pub fn encode(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        let flag = |flag: u16, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(ONE_WAY, self.one_way) | flag(NEEDS_TOKEN, self.needs_token);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    /// Reads the first bytes of a peer. Unknown flags are ignored.
    pub fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Preamble, Fault> {
        if bytes[..8] != MAGIC {
            return Err(Fault::NoMagic);
        }
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if word(8) != VERSION {
            return Err(Fault::Version(word(8)));
        }
        Ok(Preamble { one_way: word(10) & ONE_WAY != 0, needs_token: word(10) & NEEDS_TOKEN != 0 })
    }
}

/// What the head of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) body_bytes: u32,
    pub(crate) kind: u16,
    pub(crate) checksum: u32,
}

impl Head {
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> Head {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Head {
            body_bytes: word(0),
            kind: u16::from_le_bytes([bytes[4], bytes[5]]),
            checksum: word(8),
        }
    }
}

/// The head of a frame whose body is these parts, one after the other. CRC-32C over the first
/// eight bytes of the head and the body.
#[must_use]
pub fn frame_header(kind: u16, parts: &[&[u8]]) -> [u8; FRAME_HEADER_BYTES] {
    let mut head = [0; FRAME_HEADER_BYTES];
    let body_bytes: usize = parts.iter().map(|part| part.len()).sum();
    // Who makes longer bodies is refused by every decoder.
    head[..4].copy_from_slice(&u32::try_from(body_bytes).unwrap_or(u32::MAX).to_le_bytes());
    head[4..6].copy_from_slice(&kind.to_le_bytes());
    let sum = checksum(&head, parts);
    head[8..12].copy_from_slice(&sum.to_le_bytes());
    head
}

pub(crate) fn checksum(head: &[u8; FRAME_HEADER_BYTES], parts: &[&[u8]]) -> u32 {
    let first = crc32c::crc32c(&head[..8]);
    parts.iter().fold(first, |sum, part| crc32c::crc32c_append(sum, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_says_what_it_is_from_the_first_byte() {
        let preamble = Preamble { one_way: true, needs_token: false };
        let mut bytes = preamble.encode();
        assert!(bytes.starts_with(b"LATLIVE\n"));
        assert_eq!(Preamble::decode(&bytes), Ok(preamble));
        bytes[8] = 2;
        assert_eq!(Preamble::decode(&bytes), Err(Fault::Version(2)));
        bytes[0] = b'G';
        assert_eq!(Preamble::decode(&bytes), Err(Fault::NoMagic));
    }
}
