// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet captures: pcapng is read and written, classic pcap is read.
//!
//! ```text
//! bytes ─ blocks ─► ng, classic ─► sink ─► MemoryTrace: one stream per interface
//! Source ─────────► write ───────► pcapng: one section
//! ```
//!
//! Every packet is an event `packet` with the fields of [`FIELDS`]. Interfaces are renumbered in
//! each section of a file; the table of a section ends with the section, so that a number never
//! refers to an earlier name. Interfaces of equal name and resolution are one stream, in any
//! section.
//!
//! Sources: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap.
//!
//! ## Design constraints
//!
//! * Bytes in, values out; no I/O.
//! * All bytes are hostile: no panic, time linear in the input, memory bounded by the limit given
//!   plus a small multiple of the input.
//! * A bad block costs that block: reading continues at the next block whose two lengths agree.
//!
//! ```
//! use lateralis_model::Source;
//! // Classic pcap of two microsecond time stamps: header, one packet of 3 bytes.
//! let mut file = Vec::new();
//! for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1, 7, 500_000, 3, 60] {
//!     file.extend_from_slice(&word.to_le_bytes());
//! }
//! file.extend_from_slice(&[1, 2, 3]);
//! let trace = lateralis_pcapng::read("a.pcap", &file, 1 << 20).unwrap();
//! let mut events = trace.events();
//! let packet = events.next_event().unwrap();
//! assert_eq!(packet.time.0, 7_500_000_000);
//! assert_eq!(packet.payload().unwrap().get("original_bytes").unwrap().as_u64(), Some(60));
//! ```

#![forbid(unsafe_code)]

mod blocks;
mod classic;
mod interface;
mod ng;
mod sink;
mod write;

use std::fmt;

use lateralis_model::MemoryTrace;

pub use sink::FIELDS;
pub use write::{Options, write};

/// Why nothing at all can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are of another format.
    NotACapture {
        /// Name of the file.
        name: String,
        /// Its first bytes, at most 4.
        found: Vec<u8>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::NotACapture { name, found } = self;
        write!(f, "no packet capture: {name}: begins with")?;
        found.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
        f.write_str(if found.is_empty() { " nothing" } else { "" })?;
        f.write_str("; give a pcapng or pcap file")
    }
}

impl std::error::Error for Error {}

/// Whether these first bytes (12 suffice) are those of pcapng or pcap.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    ng::sniff(first) || classic::sniff(first)
}

/// Reads a capture into memory; events may take `limit_bytes` there.
///
/// Cost: one pass over the bytes, one over what is damaged.
///
/// # Errors
/// Only if the file is not a capture. Damage, losses and a reached limit are reported by the trace.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    if ng::sniff(bytes) {
        Ok(ng::read(name, bytes, limit_bytes))
    } else if classic::sniff(bytes) {
        Ok(classic::read(name, bytes, limit_bytes))
    } else {
        let found = bytes[..bytes.len().min(4)].to_vec();
        Err(Error::NotACapture { name: name.to_owned(), found })
    }
}
