// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces of four research and microkernel systems, each in its own module:
//!
//! | module | reads | writes |
//! |---|---|---|
//! | [`barrelfish`] | text dumps, raw event buffers, definitions as JSON | text dumps |
//! | [`composite`] | CSV | – |
//! | [`sel4`] | kernel logs of two kinds, utilisation and benchmark JSON, log text | – |
//! | [`genode`] | trees of CTF streams that another crate has opened | – |
//!
//! All return a [`MemoryTrace`](lateralis_model::MemoryTrace) whose events may use the number of
//! bytes that the caller permits; damage costs only itself. No module depends on another.

#![forbid(unsafe_code)]

pub mod barrelfish;
pub mod composite;
pub mod genode;
pub mod sel4;

mod damages;
mod printf;

use std::fmt;

/// Why nothing at all can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    what: &'static str,
    /// The file.
    name: String,
    /// What to do.
    advice: String,
}

impl Error {
    pub(crate) fn new(what: &'static str, name: &str, advice: impl Into<String>) -> Self {
        Self { what, name: name.to_owned(), advice: advice.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.name, self.advice)
    }
}

impl std::error::Error for Error {}
