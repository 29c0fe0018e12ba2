// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a command could not do its work, in the form a person can act on.

use std::fmt;
use std::io;
use std::path::Path;

/// A command that could not run. Printed as `error: what: where: what to do`,
/// exit code 2.
#[derive(Debug)]
pub enum CliError {
    /// Something outside was not as needed.
    Failed {
        /// What could not be done, lower case, no full stop.
        what: String,
        /// The file, process or argument it is about; empty if there is none.
        place: String,
        /// The cause or the next step, as the user would do it; may be empty.
        advice: String,
        /// Lines below, which show the place; mostly empty.
        picture: String,
    },
    /// Standard output could not be written. A closed pipe is no failure:
    /// whoever read us had enough.
    Output(io::Error),
}

impl CliError {
    /// An error in its three parts.
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (what, place, advice) = (what.into(), place.into(), advice.into());
        Self::Failed { what, place, advice, picture: String::new() }
    }

    /// The same error, with lines below that show its place.
    pub fn with_picture(mut self, lines: String) -> Self {
        if let Self::Failed { picture, .. } = &mut self {
            *picture = lines;
        }
        self
    }

    /// Lines below the error that show its place; may be empty.
    pub fn picture(&self) -> &str {
        match self {
            Self::Failed { picture, .. } => picture,
            Self::Output(_) => "",
        }
    }

    /// An operating-system error about a path.
    pub fn at_path(what: impl Into<String>, path: &Path, cause: &io::Error) -> Self {
        lateralis_reports::Error::at_path(what, path, cause).into()
    }

    /// Whether this only says that the reader of our output went away.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { what, place, advice, .. } => {
                f.write_str(what)?;
                for part in [place, advice] {
                    if !part.is_empty() {
                        write!(f, ": {part}")?;
                    }
                }
                Ok(())
            }
            Self::Output(error) => write!(f, "cannot write output: {error}"),
        }
    }
}

impl std::error::Error for CliError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { .. } => None,
            Self::Output(error) => Some(error),
        }
    }
}

/// Errors of writing to standard output; anything else is given its place by
/// [`CliError::new`] or [`CliError::at_path`].
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<lateralis_traces::Error> for CliError {
    fn from(error: lateralis_traces::Error) -> Self {
        lateralis_reports::Error::from(error).into()
    }
}

impl From<lateralis_reports::Error> for CliError {
    fn from(error: lateralis_reports::Error) -> Self {
        let lateralis_reports::Error { what, place, advice, picture } = error;
        Self::Failed { what, place, advice, picture }
    }
}

impl From<lateralis_recorder::Error> for CliError {
    fn from(error: lateralis_recorder::Error) -> Self {
        Self::new(lower_first(&error.to_string()), "", error.advice())
    }
}

/// Libraries begin their messages with a capital; behind `error:` none is wanted.
fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_by_colons_and_empty_ones_left_out() {
        let all = CliError::new("cannot open", "trace", "check the name");
        assert_eq!(all.to_string(), "cannot open: trace: check the name");
        assert_eq!(CliError::new("nothing to do", "", "").to_string(), "nothing to do");
    }

    #[test]
    fn only_a_closed_pipe_on_output_counts_as_broken_pipe() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(CliError::from(closed()).is_broken_pipe());
        assert!(!CliError::at_path("cannot read", Path::new("x"), &closed()).is_broken_pipe());
        assert!(!CliError::from(io::Error::from(io::ErrorKind::StorageFull)).is_broken_pipe());
    }
}
