// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats of single files, in the order in which they are tried.

use std::sync::Arc;

use lateralis_interchange::{chrome, fxt, perfetto};
use lateralis_model::Source;
use lateralis_seedformats::sel4::{self, Abi};
use lateralis_seedformats::{barrelfish, composite};

use crate::open::OpenOptions;

/// Contents of a file, mapped or in memory.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A format in which one file is a whole trace.
pub struct Format {
    /// Human-readable name.
    pub name: &'static str,
    /// Its name on the command line.
    pub word: &'static str,
    /// Whether a file with these first bytes and this length has the format; false for formats without a
    /// mark.
    pub sniff: fn(&[u8], u64) -> bool,
    /// Reader of a file.
    pub read: Read,
}

/// Reads a trace from the name and the contents of a file; the error is the reason.
pub type Read = fn(&str, &Bytes, &OpenOptions) -> Result<Box<dyn Source>, String>;

/// A format whose reader needs only the bytes and a memory limit.
macro_rules! plain {
    ($name:literal, $word:literal, $reader:path) => {{
        use $reader as reader;
        Format {
            name: $name,
            word: $word,
            sniff: |first, _| reader::sniff(first),
            read: |name, bytes, options| {
                boxed(reader::read(name, all(bytes), options.memory_bytes))
            },
        }
    }};
}

/// Formats with a magic number come before text formats, specific marks before general ones, and those
/// that must be requested come last.
pub const FORMATS: &[Format] = &[
    plain!("pcapng, pcap", "pcap", lateralis_pcapng),
    Format {
        name: "perf.data",
        word: "perf",
        sniff: |first, _| lateralis_perfdata::perf::sniff(first),
        read: |name, bytes, options| {
            boxed(lateralis_perfdata::perf::open(name, bytes.clone(), options.memory_bytes))
        },
    },
    Format {
        name: "trace.dat",
        word: "trace-cmd",
        sniff: |first, _| lateralis_perfdata::ftrace::sniff(first),
        read: |name, bytes, options| {
            boxed(lateralis_perfdata::ftrace::open(name, bytes.clone(), options.memory_bytes))
        },
    },
    plain!("FXT", "fxt", fxt),
    Format {
        name: "Barrelfish text dump",
        word: "barrelfish",
        sniff: |first, _| barrelfish::sniff(first),
        read: |name, bytes, options| {
            let own = barrelfish_options(options)?;
            boxed(barrelfish::read_with(name, all(bytes), options.memory_bytes, &own))
        },
    },
    Format {
        name: "Barrelfish buffers",
        word: "barrelfish-buffers",
        sniff: barrelfish::sniff_buffers,
        read: |name, bytes, options| {
            let own = barrelfish_options(options)?;
            boxed(barrelfish::read_buffers(name, all(bytes), options.memory_bytes, &own))
        },
    },
    Format {
        name: "Composite CSV",
        word: "composite",
        sniff: |first, _| composite::sniff(first),
        read: |name, bytes, options| {
            let own = composite::Options { frequency_hz: options.frequency_hz };
            boxed(composite::read_with(name, all(bytes), options.memory_bytes, &own))
        },
    },
    plain!("seL4 text and JSON", "sel4", sel4),
    plain!("Chrome JSON", "chrome", chrome),
    plain!("Perfetto", "perfetto", perfetto),
    Format {
        name: "seL4 tracepoint log (--as sel4-tracepoints:ABI)",
        word: "sel4-tracepoints",
        sniff: |_, _| false,
        read: |name, bytes, options| {
            let own = sel4_options("sel4-tracepoints", options)?;
            boxed(sel4::read_tracepoints(name, all(bytes), options.memory_bytes, &own))
        },
    },
    Format {
        name: "seL4 kernel entry log (--as sel4-entries:ABI)",
        word: "sel4-entries",
        sniff: |_, _| false,
        read: |name, bytes, options| {
            let own = sel4_options("sel4-entries", options)?;
            boxed(sel4::read_entries(name, all(bytes), options.memory_bytes, &own))
        },
    },
];

fn all(bytes: &Bytes) -> &[u8] {
    (**bytes).as_ref()
}

fn boxed<S: Source + 'static, E: std::error::Error>(
    read: Result<S, E>,
) -> Result<Box<dyn Source>, String> {
    read.map(|source| Box::new(source) as Box<dyn Source>).map_err(text)
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn barrelfish_options(options: &OpenOptions) -> Result<barrelfish::Options, String> {
    let definitions = match &options.definitions {
        Some((name, json)) => barrelfish::Definitions::from_json(name, json).map_err(text)?,
        None => barrelfish::Definitions::legacy(),
    };
    Ok(barrelfish::Options { definitions, frequency_hz: options.frequency_hz })
}

/// Names of the architectures of seL4.
const ABIS: [(&str, Abi); 6] = [
    ("aarch32", Abi::Aarch32),
    ("aarch64", Abi::Aarch64),
    ("ia32", Abi::Ia32),
    ("x86_64", Abi::X86_64),
    ("riscv32", Abi::Riscv32),
    ("riscv64", Abi::Riscv64),
];

fn sel4_options(format: &str, options: &OpenOptions) -> Result<sel4::Options, String> {
    let word = options.abi.as_deref().unwrap_or_default();
    let abi = ABIS.iter().find(|(known, _)| *known == word).map(|(_, abi)| *abi);
    let abi = abi.ok_or_else(|| {
        let known = ABIS.map(|(known, _)| known).join(", ");
        format!("which architecture wrote it? use {format}:ABI with {known}")
    })?;
    Ok(sel4::Options { frequency_hz: options.frequency_hz, ..sel4::Options::new(abi) })
}

/// Names of all formats that [`open`](crate::open) knows.
pub fn supported() -> impl Iterator<Item = &'static str> {
    ["CTF 1.8", "CTF 2"].into_iter().chain(FORMATS.iter().map(|format| format.name))
}

/// Names of the formats that can be requested.
pub fn words() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.word)
}
