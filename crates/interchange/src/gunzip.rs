// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that were compressed as a whole.

use std::io::Read;

/// Whether the bytes begin like a gzip file ([RFC 1952 §2.3.1]).
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// The bytes inside, at most `limit_bytes`, and what is wrong with the rest.
///
/// A cut or damaged file gives what lies before the damage.
pub fn gunzip(bytes: &[u8], limit_bytes: u64) -> (Vec<u8>, Option<&'static str>) {
    let mut out = Vec::new();
    // One byte more tells whether there is more.
    let mut reader = flate2::read::MultiGzDecoder::new(bytes).take(limit_bytes.saturating_add(1));
    let fault = match reader.read_to_end(&mut out) {
        Ok(_) if out.len() as u64 > limit_bytes => {
            out.truncate(limit_bytes as usize);
            Some("the file does not fit into the memory it may take once it is decompressed")
        }
        Ok(_) => None,
        Err(_) => Some("the compressed file is cut or damaged: read up to there"),
    };
    (out, fault)
}

/// What the first bytes of a file say, decompressed if need be; at most 4 KiB.
pub fn first_bytes(bytes: &[u8]) -> Vec<u8> {
    if is_gzip(bytes) { gunzip(bytes, 4096).0 } else { bytes[..bytes.len().min(4096)].to_vec() }
}
