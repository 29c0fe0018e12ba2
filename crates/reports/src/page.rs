// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text for people: whatever a line is made of, only printable characters of it reach a terminal, and only
//! the page itself ends lines ([`lateralis_model::terminal`]). A page records the meaning of its parts beside
//! the text; codes of colours are added after the text has passed the filter.

use anstyle::{AnsiColor, Style};
use lateralis_model::terminal;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Meaning of a part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Title of a section, name of a column.
    Heading,
    /// A limit is exceeded, events are lost, bytes are damaged.
    Problem,
    /// A number that is a lower bound or unknown.
    Uncertain,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Role::Heading => Style::new().bold(),
            Role::Problem => AnsiColor::Red.on_default().bold(),
            Role::Uncertain => AnsiColor::Yellow.on_default(),
        }
    }

    /// Adds a text with its codes.
    pub fn paint(self, text: &str, painted: &mut String) {
        let style = self.style();
        painted.push_str(&style.render().to_string());
        painted.push_str(text);
        painted.push_str(&style.render_reset().to_string());
    }

    /// Role of a number, by its mark: `≥ 5`, `5 ?`, `?`.
    pub fn of_number(text: &str) -> Option<Role> {
        let is_uncertain = text.starts_with("≥ ") || text.ends_with(" ?") || text == "?";
        is_uncertain.then_some(Role::Uncertain)
    }
}

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
    pub fn painted(&self, is_coloured: bool) -> Cow<'_, str> {
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

    #[test]
    fn numbers_show_their_quality() {
        for text in ["≥ 5", "1.2 ms ?", "?"] {
            assert_eq!(Role::of_number(text), Some(Role::Uncertain), "{text}");
        }
        for text in ["5", "", "5?", "≥5"] {
            assert_eq!(Role::of_number(text), None, "{text}");
        }
    }
}
