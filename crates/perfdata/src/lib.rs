// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tools of the Linux kernel record, read into the model.
//!
//! Three containers, one kind of content:
//!
//! ```text
//! perf.data   file or pipe of perf record: samples, tracepoints, sideband   perf
//! trace.dat   file of trace-cmd, versions 6 and 7                           ftrace
//! pages       what per_cpu/cpuN/trace_pipe_raw gives                        ftrace
//! ```
//!
//! Events of the kernel are decoded by the descriptions that the files carry
//! ([`tracepoint`]). What is damaged or lost becomes a value of the trace; all
//! that is intact is delivered.
//!
//! This crate does no I/O and reads no clock. Everything is decoded while it is
//! read, over an index of runs of records or pages that are in the order of time.

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

/// Why nothing at all could be read.
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

/// Opens a file that [`sniff`] knows; `name` stands in reports of damage. What
/// cannot be read lazily takes at most `limit_bytes`; what does not fit is left
/// out, with a remark.
///
/// # Errors
/// Where it is neither format, or no event could ever be found in it.
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
