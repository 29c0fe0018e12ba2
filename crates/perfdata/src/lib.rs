// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reader for recordings of Linux kernel tools: perf, trace-cmd and tracefs.
//!
//! Three containers, one kind of content:
//!
//! ```text
//! perf.data   file or pipe of perf record: samples, tracepoints, sideband   perf
//! trace.dat   file of trace-cmd, versions 6 and 7                           ftrace
//! pages       contents of per_cpu/cpuN/trace_pipe_raw                        ftrace
//! ```
//!
//! Kernel events are decoded using the descriptions in the files ([`tracepoint`]). Damage and losses
//! become values of the trace; everything intact is delivered.
//!
//! This crate does no I/O and reads no clock. Everything is decoded while it is read, using an index of
//! runs of records or pages that are in time order.

#![forbid(unsafe_code)]

mod catalog;
pub mod ftrace;
mod inflate;
mod notes;
pub mod perf;
pub mod row;
pub mod tracepoint;
mod tracing_data;
mod wire;

use lateralis_model::Source;

/// Reason why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    file: String,
    what: &'static str,
    advice: &'static str,
}

impl Error {
    pub(crate) fn new(file: &str, what: &'static str, advice: &'static str) -> Self {
        Self { file: file.to_owned(), what, advice }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.file, self.advice)
    }
}

impl std::error::Error for Error {}

/// Whether a file that begins with these bytes is a `perf.data` or a `trace.dat`.
/// Pages of the ring buffer have no mark of their own: see [`ftrace::open_pages`].
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    perf::sniff(first) || ftrace::sniff(first)
}

/// Opens a file that [`sniff`] recognises; `name` is used in reports of damage. Parts that cannot be read
/// lazily take at most `limit_bytes`; the rest is left out, with a remark.
///
/// # Errors
/// If it has neither format, or cannot contain any event.
pub fn open(name: &str, bytes: perf::Bytes, limit_bytes: u64) -> Result<Box<dyn Source>, Error> {
    let all = (*bytes).as_ref();
    if perf::sniff(all) {
        Ok(Box::new(perf::open(name, bytes, limit_bytes)?))
    } else if ftrace::sniff(all) {
        Ok(Box::new(ftrace::open(name, bytes, limit_bytes)?))
    } else {
        let advice = "it begins neither like perf.data nor like trace.dat; name another file";
        Err(Error::new(name, "unknown format", advice))
    }
}
