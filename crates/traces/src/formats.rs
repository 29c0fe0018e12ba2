// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formats of single files, in the order in which they are tried.

use lateralis_model::MemoryTrace;

/// A format that one file holds a whole trace of.
pub struct Format {
    /// Its name for people.
    pub name: &'static str,
    /// Whether a file that begins so may be of this format.
    pub sniff: fn(&[u8]) -> bool,
    /// Reads a file, into so many bytes of memory at most.
    pub read: fn(&str, &[u8], u64) -> Result<MemoryTrace, String>,
}

/// Formats with a magic number come ahead of those that are text.
pub const FORMATS: &[Format] = &[];

/// Names of all formats that [`open`](crate::open) knows.
pub fn supported() -> impl Iterator<Item = &'static str> {
    ["CTF 1.8", "CTF 2"].into_iter().chain(FORMATS.iter().map(|format| format.name))
}
