// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why nothing of a file can be read.

use std::fmt;

/// Nothing at all can be read. Files with intact parts are not an error: faults of the rest are in
/// the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub what: &'static str,
    /// Where: the name of the file, and the byte where it matters.
    pub place: String,
    /// What to do about it.
    pub help: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.place, self.help)
    }
}

impl std::error::Error for Error {}
