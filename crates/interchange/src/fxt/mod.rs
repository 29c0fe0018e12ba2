// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FXT, the trace format of Fuchsia: records of 64-bit words, little-endian.
//!
//! Source: "Fuchsia trace format" (fuchsia.dev/fuchsia-src/reference/tracing/trace-format);
//! sections are named as there.

mod read;
mod records;
mod write;

pub use read::{read, sniff};
pub use write::write;

/// The trace info record that begins a file.
pub const MAGIC: u64 = 0x0016_5478_4604_0010;

/// Types of events, with the phase of Chrome's that means the same.
const PHASES: [u8; 11] = *b"iCBEXbnestf";
