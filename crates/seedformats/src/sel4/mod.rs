// SPDX-License-Identifier: Apache-2.0 OR MIT
//! seL4: what its kernel logs for benchmarks, and what its benchmarks print.
//!
//! | function | reads |
//! |---|---|
//! | [`read_tracepoints`] | the log buffer of a kernel built with `tracepoints` |
//! | [`read_entries`] | that of one built with `track_kernel_entries` |
//! | [`read`] | JSON of utilisation or of the `sel4bench` program; text of `sel4utils` |
//!
//! Logs have no magic number and differ by architecture, so they are never
//! guessed: the caller says which it is, and of which [`Abi`].
//!
//! Sources: seL4 `benchmark_track_types.h`, `benchmark_utilisation.c`; sizes of
//! structures as gcc lays them out for each architecture.

mod json;
mod log;
mod text;

pub use log::{read_entries, read_tracepoints};

use lateralis_model::MemoryTrace;

use crate::Error;

/// The architecture of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Abi {
    /// 32-bit ARM.
    Aarch32,
    /// 64-bit ARM.
    Aarch64,
    /// 32-bit x86, whose 64-bit numbers are aligned to 4 bytes.
    Ia32,
    /// 64-bit x86.
    X86_64,
    /// 32-bit RISC-V.
    Riscv32,
    /// 64-bit RISC-V.
    Riscv64,
}

impl Abi {
    /// Bytes of a machine word.
    #[must_use]
    pub fn word_bytes(self) -> usize {
        match self {
            Self::Aarch32 | Self::Ia32 | Self::Riscv32 => 4,
            Self::Aarch64 | Self::X86_64 | Self::Riscv64 => 8,
        }
    }

    /// Bytes from a kernel entry to the next: 21 or 17, rounded up to the alignment
    /// of its 64-bit time.
    #[must_use]
    pub fn entry_bytes(self) -> usize {
        if self == Self::Ia32 { 20 } else { 24 }
    }
}

/// What a log does not say.
#[derive(Debug, Clone)]
pub struct Options {
    /// The architecture of the kernel.
    pub abi: Abi,
    /// Cycles per second. Without it a cycle is taken for a nanosecond, and a
    /// remark says so.
    pub frequency_hz: Option<u64>,
    /// What `seL4_BenchmarkFinalizeLog` returned. Without it the log ends before
    /// the zeros at its end. A number larger than the log holds is a loss.
    pub entries: Option<u64>,
    /// Whether the kernel has the mixed-criticality system calls, which are
    /// numbered otherwise.
    pub mcs: bool,
}

impl Options {
    /// Nothing but the architecture.
    #[must_use]
    pub fn new(abi: Abi) -> Self {
        Self { abi, frequency_hz: None, entries: None, mcs: false }
    }
}

/// Whether these first bytes (4 KiB are enough) are those of something that
/// [`read`] reads.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let first = &first[..first.len().min(4096)];
    json::sniff(first) || text::sniff(first)
}

/// Reads JSON of utilisation or of benchmarks, or the text of a log. Other console output before
/// and after it is ignored.
///
/// # Errors
/// If it is none of these.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    if text::sniff(bytes) {
        return Ok(text::read(name, bytes, limit_bytes));
    }
    json::read(name, bytes, limit_bytes).ok_or_else(|| {
        let advice = "give JSON of utilisation or of sel4bench, or lines of tracepoints";
        Error::new("no output of seL4 benchmarks", name, advice)
    })
}
