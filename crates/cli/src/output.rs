// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output and error: the only place of this crate that writes to them (`cargo xtask tidy`).
//!
//! Text for people is a [`Page`]: whatever a line is made of, only printable characters of it reach a
//! terminal, and only the page itself ends lines ([`lateralis_model::terminal`]). Data goes through
//! [`data`], which leaves it as it is where no terminal reads it. Both survive a closed pipe.

use crate::colour::{self, Role};
use crate::error::CliError;
use crate::reading;
use lateralis_model::terminal::{self, Cleaner, Style};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::ops::Range;

/// Text for people, line by line.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    /// Parts with a colour, in the order of the text; none has a line feed in it.
    roles: Vec<(Range<usize>, Role)>,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds to the line that is not ended yet.
    pub fn part(&mut self, part: fmt::Arguments<'_>) {
        // Neither this writer nor a text that is shown can fail.
        let _ = fmt::Write::write_fmt(&mut Shown(&mut self.text), part);
    }

    /// Adds a part that has a colour on a terminal.
    pub fn part_as(&mut self, role: Role, part: fmt::Arguments<'_>) {
        let begin = self.text.len();
        self.part(part);
        if self.text.len() > begin {
            self.roles.push((begin..self.text.len(), role));
        }
    }

    /// Adds a number, coloured if it is marked as a lower bound or as unknown.
    pub fn number(&mut self, text: &str) {
        match Role::of_number(text) {
            Some(role) => self.part_as(role, format_args!("{text}")),
            None => self.part(format_args!("{text}")),
        }
    }

    /// Adds a line that has a colour on a terminal.
    pub fn line_as(&mut self, role: Role, line: fmt::Arguments<'_>) {
        self.part_as(role, line);
        self.text.push('\n');
    }

    /// Adds a line, or the rest of one.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        self.part(line);
        self.text.push('\n');
    }

    /// Adds a line for each that a text of ours has: a picture of an error, help.
    pub fn lines(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(format_args!("{line}")));
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds another page below.
    pub fn page(&mut self, other: &Page) {
        let offset = self.text.len();
        self.text.push_str(&other.text);
        let moved = |(at, role): &(Range<usize>, Role)| (at.start + offset..at.end + offset, *role);
        self.roles.extend(other.roles.iter().map(moved));
    }

    /// What is on it, with codes of colours if `is_coloured`.
    fn painted(&self, is_coloured: bool) -> Cow<'_, str> {
        if !is_coloured || self.roles.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut painted = String::with_capacity(self.text.len() + self.roles.len() * 16);
        let mut done = 0;
        for (at, role) in &self.roles {
            painted.push_str(&self.text[done..at.start]);
            role.paint(&self.text[at.clone()], &mut painted);
            done = at.end;
        }
        painted.push_str(&self.text[done..]);
        Cow::Owned(painted)
    }

    /// What is on it, as it is printed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Removes blanks at the end of the line that is not ended yet.
    pub fn trim_line(&mut self) {
        let begin = self.text.rfind('\n').map_or(0, |at| at + 1);
        let end = self.text.trim_end_matches(' ').len().max(begin);
        self.text.truncate(end);
        for (at, _) in &mut self.roles {
            at.end = at.end.min(end);
        }
        self.roles.retain(|(at, _)| at.start < at.end);
    }

    /// A page with one line.
    pub fn of_line(line: fmt::Arguments<'_>) -> Self {
        let mut page = Self::new();
        page.line(line);
        page
    }
}

impl From<Page> for String {
    fn from(page: Page) -> Self {
        page.text
    }
}

/// Takes text, hostile characters as escapes.
struct Shown<'a>(&'a mut String);

impl fmt::Write for Shown<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        terminal::push(self.0, text);
        Ok(())
    }
}

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
    let mut page = Page::of_line(line);
    let beginning = BEGINNINGS.iter().find(|(word, _)| page.text.starts_with(word));
    if let Some((word, role)) = beginning {
        page.roles.push((0..word.len() - 1, *role));
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

/// Version of all JSON documents of the commands, their key `version`: a new one where a key gets another
/// meaning or goes away. New keys may come at any time.
pub const JSON_VERSION: u32 = 1;

/// A document with its version in front.
struct Versioned<'a>(&'a Value);

impl Serialize for Versioned<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(entries) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(entries.len() + 1))?;
        map.serialize_entry("version", &JSON_VERSION)?;
        for (key, value) in entries {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
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

/// Members with their version in front.
struct VersionedMembers<'a, T>(&'a std::collections::BTreeMap<String, T>);

impl<T: Serialize> Serialize for VersionedMembers<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len() + 1))?;
        map.serialize_entry("version", &JSON_VERSION)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_ends_lines() {
        let mut page = Page::new();
        let name = "a\nforged \x1b[31m\u{202e}";
        line!(page, "  {name:<3}  {}", 7);
        page.part(format_args!("x  "));
        page.trim_line();
        line!(page);
        page.gap();
        assert_eq!(page.as_str(), "  a\\nforged \\x1b[31m\\u{202e}  7\nx\n\n");
    }

    #[test]
    fn codes_are_around_what_they_colour_and_never_from_its_text() {
        let mut page = Page::new();
        page.part(format_args!("count "));
        page.number("≥ 5");
        page.line_as(Role::Heading, format_args!("\x1b[31m"));
        page.part_as(Role::Problem, format_args!("lost  "));
        page.trim_line();
        line!(page);
        let mut whole = Page::of_line(format_args!("title"));
        whole.page(&page);
        assert_eq!(whole.painted(false), "title\ncount ≥ 5\\x1b[31m\nlost\n");
        let painted = "title\ncount \x1b[33m≥ 5\x1b[0m\x1b[1m\\x1b[31m\x1b[0m\n\
                       \x1b[1m\x1b[31mlost\x1b[0m\n";
        assert_eq!(whole.painted(true), painted);
    }
}
