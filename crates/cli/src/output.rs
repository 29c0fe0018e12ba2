// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output and error: the only place of this crate that writes to them (`cargo xtask tidy`).
//!
//! Text for people is a [`Page`]: whatever a line is made of, only printable characters of it reach a
//! terminal, and only the page itself ends lines ([`lateralis_model::terminal`]). Data goes through
//! [`data`], which leaves it as it is where no terminal reads it. Both survive a closed pipe.

use crate::colour::{self, Role};
use crate::error::CliError;
use crate::reading;
use lateralis_model::terminal::{Cleaner, Style};
pub use lateralis_reports::json::JSON_VERSION;
use lateralis_reports::json::{Versioned, VersionedMembers};
pub use lateralis_reports::page::Page;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Whether somebody sees standard output at once.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Columns of the terminal that standard output is, if it is one.
pub fn terminal_columns() -> Option<usize> {
    if !is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether somebody sees standard error at once.
pub fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Results take the place of the line of progress, unless they go into a file: the reader of a pipe may draw
/// on the same terminal.
fn begin_output() {
    let is_file = rustix::fs::fstat(rustix::stdio::stdout())
        .is_ok_and(|about| rustix::fs::FileType::from_raw_mode(about.st_mode).is_file());
    if !is_file {
        reading::end();
    }
}

/// Writes a page to standard output in one piece.
///
/// Errors: [`CliError::Output`], also for a closed pipe, which the exit code
/// then treats as success.
pub fn print(page: &Page) -> Result<(), CliError> {
    print_bytes(page.painted(colour::is_shown_on(is_terminal())).as_bytes())
}

/// Shows a page in place of the last one: on a terminal as much of it as fits, else all, and an empty line.
///
/// Errors: as [`print`].
pub fn replace_screen(page: &Page) -> Result<(), CliError> {
    let rows = is_terminal()
        .then(|| rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok())
        .flatten()
        .map(|size| usize::from(size.ws_row).max(2) - 1);
    let painted = page.painted(colour::is_shown_on(is_terminal()));
    let Some(rows) = rows else {
        return print_bytes(format!("{painted}\n").as_bytes());
    };
    // Codes do not go beyond their line.
    let shown: String = painted.split_inclusive('\n').take(rows).collect();
    // Cursor to the first place, then each line to its end, then the rest: nothing flickers.
    let lines = shown.replace('\n', "\x1b[K\n");
    print_bytes(format!("\x1b[H{lines}\x1b[J").as_bytes())
}

/// Writes bytes that are `lat`'s own to standard output: scripts, manual pages, generated documents.
///
/// Errors: as [`print`].
pub fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    begin_output();
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}

/// Writes what a program printed that runs elsewhere, as it is.
///
/// # Errors
/// Nobody reads it.
pub fn pass_on_output(bytes: &[u8]) -> io::Result<()> {
    begin_output();
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// The same of its standard error.
///
/// # Errors
/// Nobody reads it.
pub fn pass_on_errors(bytes: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(bytes)
}

/// Writes a page to standard error, if somebody reads it.
pub fn tell(page: &Page) {
    reading::make_room();
    let painted = page.painted(colour::is_shown_on(is_error_terminal()));
    let _ = io::stderr().lock().write_all(painted.as_bytes());
}

/// Words that begin a line about something wrong, and their colours.
const BEGINNINGS: [(&str, Role); 5] = [
    ("error:", Role::Problem),
    ("lost:", Role::Problem),
    ("damage:", Role::Problem),
    ("incomplete:", Role::Problem),
    ("warning:", Role::Uncertain),
];

/// Writes one line to standard error, if somebody reads it.
pub fn tell_line(line: fmt::Arguments<'_>) {
    let text = line.to_string();
    let mut page = Page::new();
    match BEGINNINGS.iter().find(|(word, _)| text.starts_with(word)) {
        Some((word, role)) => {
            let (word, rest) = text.split_at(word.len() - 1);
            page.part_as(*role, format_args!("{word}"));
            page.line(format_args!("{rest}"));
        }
        None => page.line(format_args!("{text}")),
    }
    tell(&page);
}

/// Says why a command could not do its work, on standard error.
pub fn tell_error(error: &CliError) {
    reading::end();
    let mut page = Page::new();
    page.part_as(Role::Problem, format_args!("error"));
    page.line(format_args!(": {error}"));
    page.lines(error.picture());
    let painted = page.painted(colour::is_shown_on(is_error_terminal()));
    // Nobody is left to tell if standard error is closed as well.
    let _ = io::stderr().lock().write_all(painted.as_bytes());
}

/// Replaces the last line of the terminal by this one, leaving the cursor at its start. A problem that is
/// its last word has the colour of one.
pub fn overwrite_line(line: &str, problem: Option<&str>) {
    let mut page = Page::new();
    match problem.and_then(|problem| Some((line.strip_suffix(problem)?, problem))) {
        Some((before, problem)) => {
            page.part(format_args!("{before}"));
            page.part_as(Role::Problem, format_args!("{problem}"));
        }
        None => page.part(format_args!("{line}")),
    }
    let painted = page.painted(colour::is_shown_on(is_error_terminal()));
    let _ = write!(io::stderr().lock(), "\r\x1b[K{painted}\r");
}

/// Goes to the start of an empty line: of this one if it is empty, else of the next.
pub fn leave_line(columns: usize) {
    let _ = write!(io::stderr().lock(), "{:1$}\r\x1b[K", "", columns);
}

/// Standard output for lines for people that are cleaned as they are made ([`terminal::clean`]): as
/// fast as they are printed.
pub fn cleaned_lines() -> io::StdoutLock<'static> {
    begin_output();
    io::stdout().lock()
}

/// Standard output for data, whose values keep what they have; shown on a terminal they do not.
pub fn data(style: Style) -> Box<dyn Write> {
    begin_output();
    let stdout = io::stdout().lock();
    match is_terminal() {
        true => Box::new(Cleaner::new(stdout, style)),
        false => Box::new(stdout),
    }
}

/// Standard output for JSON, which can say every character by printable ones.
pub fn json() -> impl Write {
    begin_output();
    let stdout = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    Cleaner::new(stdout, Style::Json)
}

/// Writes a document of a command, pretty, with its version and a final line feed.
pub fn print_json(document: &Value) -> Result<(), CliError> {
    print_versioned_json(&Versioned(document))
}

/// Writes members by name as [`print_json`] does the members of a document.
pub fn print_json_members<T: Serialize>(
    members: &std::collections::BTreeMap<String, T>,
) -> Result<(), CliError> {
    print_versioned_json(&VersionedMembers(members))
}

/// The same as one line.
pub fn print_json_members_line<T: Serialize>(
    members: &std::collections::BTreeMap<String, T>,
) -> Result<(), CliError> {
    print_json_line(&VersionedMembers(members))
}

/// Writes a document that has its [`JSON_VERSION`] already. Its text is never in memory as a whole.
pub fn print_versioned_json(document: &impl Serialize) -> Result<(), CliError> {
    let mut out = json();
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Writes a JSON value as one line.
pub fn print_json_line(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut out = json();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
