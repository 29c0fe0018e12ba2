// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text for people: whatever a line is made of, only printable characters of it reach a terminal, and only
//! the page itself ends lines ([`lateralis_model::terminal`]).

use lateralis_model::terminal;
use std::fmt;

/// Text for people, line by line.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
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
        self.text.push_str(&other.text);
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
}
