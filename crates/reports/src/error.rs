// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a report cannot be made.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a report cannot be made: `what: where: what to do`.
#[derive(Debug)]
pub struct Error {
    /// What failed, lower case, no full stop.
    pub what: String,
    /// The file, expression or name it is about; empty if there is none.
    pub place: String,
    /// The cause or the next step; may be empty.
    pub advice: String,
    /// Lines that show the place; mostly empty.
    pub picture: String,
}

impl Error {
    /// An error in its three parts.
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (what, place, advice) = (what.into(), place.into(), advice.into());
        Self { what, place, advice, picture: String::new() }
    }

    /// Adds lines that show the place.
    #[must_use]
    pub fn with_picture(mut self, lines: String) -> Self {
        self.picture = lines;
        self
    }

    /// An operating-system error about a path.
    pub fn at_path(what: impl Into<String>, path: &Path, cause: &io::Error) -> Self {
        Self::new(what, path.display().to_string(), explain(cause))
    }
}

/// The cause in the system's words, with the next step where it is known.
fn explain(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => "no such file or directory: check the name".into(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: it belongs to another user, or needs other rights".into()
        }
        io::ErrorKind::StorageFull => "no space left: free some, or choose another place".into(),
        _ => cause.to_string(),
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

impl From<lateralis_traces::Error> for Error {
    fn from(error: lateralis_traces::Error) -> Self {
        match error {
            lateralis_traces::Error::Io { path, source } => {
                Self::at_path("cannot read", &path, &source)
            }
            other => Self::new(other.to_string(), "", ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_by_colons_and_empty_ones_left_out() {
        let all = Error::new("cannot open", "trace", "check the name");
        assert_eq!(all.to_string(), "cannot open: trace: check the name");
        assert_eq!(Error::new("nothing to do", "", "").to_string(), "nothing to do");
    }
}
