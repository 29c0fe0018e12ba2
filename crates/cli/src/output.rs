// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output and error, and how numbers look on it.

use crate::error::CliError;
use std::env;
use std::fmt;
use std::io::{self, Write};

/// Whether to colour a stream: only a terminal, and never with `NO_COLOR` set
/// or `TERM=dumb`.
pub fn colour(is_terminal: bool) -> bool {
    is_terminal
        && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes text to standard output in one piece.
///
/// Errors: [`CliError::Output`], also for a closed pipe, which the exit code
/// then treats as success.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Writes to standard error, if somebody reads it.
pub fn tell(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Writes a JSON value, pretty, with a final line feed. Its text is never in memory as a whole.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
