// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a script could not be run, with the place in its text.

use std::fmt;

/// Characters of a message or a line that are shown.
const SHOWN_MAX: usize = 400;

/// A script that cannot be read, or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Name of the script, as it was given.
    pub file: String,
    /// Line, from 1, where that is known.
    pub line: Option<u32>,
    /// Column in characters, from 1, where that is known.
    pub column: Option<u32>,
    /// What is wrong, and what to do where that is known.
    pub message: String,
    /// The line.
    pub excerpt: Option<String>,
}

impl ScriptError {
    /// An error without a place.
    pub(crate) fn new(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            message: shortened(&message.into()),
            excerpt: None,
        }
    }

    /// The same at a place of the text.
    pub(crate) fn at(mut self, text: &str, line: u32, column: Option<u32>) -> Self {
        self.line = Some(line);
        self.column = column;
        self.excerpt = text.lines().nth((line as usize).saturating_sub(1)).map(str::to_owned);
        self
    }

    /// `mutex.js:3:15`, as far as it is known.
    #[must_use]
    pub fn place(&self) -> String {
        let mut place = self.file.clone();
        for number in [self.line, self.column.filter(|_| self.line.is_some())].into_iter().flatten()
        {
            place += &format!(":{number}");
        }
        place
    }

    /// The line with a mark below the column; empty where it is not known.
    #[must_use]
    pub fn caret(&self) -> String {
        let (Some(line), Some(excerpt)) = (self.line, &self.excerpt) else {
            return String::new();
        };
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // A very long line is shown around the column only.
        let column = self.column.map(|column| column as usize - usize::from(column > 0));
        let skipped = column.unwrap_or(0).saturating_sub(SHOWN_MAX / 4);
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String =
            excerpt.chars().skip(skipped).take(SHOWN_MAX / 2).map(visible).collect();
        let mut text = format!("  {number} | {shown}");
        if let Some(column) = column {
            text += &format!("\n  {margin} | {}^", " ".repeat(column - skipped));
        }
        text
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        match self.caret() {
            caret if caret.is_empty() => Ok(()),
            caret => write!(f, "\n{caret}"),
        }
    }
}

impl std::error::Error for ScriptError {}

/// At most this number of characters; characters that do not belong in a line become blanks.
fn shortened(message: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = message.chars().take(SHOWN_MAX).map(visible).collect();
    if message.chars().nth(SHOWN_MAX).is_some() {
        text += " …";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_shown_with_a_caret() {
        let error = ScriptError::new("a.js", "TypeError: no").at("one\ntwo three\n", 2, Some(5));
        assert_eq!(error.to_string(), "a.js:2:5: TypeError: no\n  2 | two three\n    |     ^");
        assert_eq!(ScriptError::new("a.js", "no").to_string(), "a.js: no");
    }

    #[test]
    fn long_lines_are_shown_around_the_column() {
        let text = format!("{}x", "a".repeat(10_000));
        let error = ScriptError::new("a.js", "m".repeat(1000)).at(&text, 1, Some(10_001));
        let caret = error.caret();
        let lines: Vec<&str> = caret.lines().collect();
        assert!(lines.iter().all(|line| line.len() < 300), "{caret}");
        let mark = lines[1].find('^').unwrap();
        assert_eq!(&lines[0][mark..mark + 1], "x");
        assert!(error.message.len() < 500);
    }
}
