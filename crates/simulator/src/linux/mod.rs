// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The simulator on a Linux host: QEMU, the distribution's kernel, files.
//!
//! ```text
//! root     the program, its libraries and other files ─► archive
//! kernel   the distribution's kernel, kept in the user's cache
//! qemu     the installed QEMU, or how to install one
//! machine  one run from start to end
//! ```

mod kernel;
mod machine;
mod qemu;
mod root;

use std::fmt;
use std::io;
use std::path::Path;

pub use kernel::Kernel;
pub use machine::{Job, Machine, Printed, Report};
pub use qemu::Qemu;

/// Reason why nothing could be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What failed.
    pub what: String,
    /// The file or program concerned; may be empty.
    pub place: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl Error {
    fn new(what: impl Into<String>, place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), place: place.into(), advice: advice.into() }
    }

    fn io(what: &str, path: &Path, cause: &io::Error) -> Self {
        Self::new(what, path.display().to_string(), cause.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for part in [&self.place, &self.advice] {
            if !part.is_empty() {
                write!(f, ": {part}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
