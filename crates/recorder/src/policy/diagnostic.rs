// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors in a text, with their positions and advice.

use std::fmt;
use std::ops::Range;

/// One error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the text.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do; may be empty.
    pub advice: String,
    /// The line.
    text: String,
    /// Number of characters concerned.
    width: usize,
}

/// Maximum number of characters of a line that are shown.
const SHOWN_MAX: usize = 160;

impl Diagnostic {
    /// An error in the bytes `span` of `text`.
    pub fn new(
        (file, text): (&str, &str),
        span: Range<usize>,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Diagnostic {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let width = text[start..end.min(line_end)].chars().count().max(1);
        let column = text[line_start..start].chars().count() + 1;
        Diagnostic {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column,
            what: what.into(),
            advice: advice.into(),
            text: visible(&text[line_start..line_end]),
            width,
        }
    }
}

/// The last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Replaces control characters by a visible one, so that the caret is at the right position.
fn visible(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let shown = |c: char| if c == '\t' { ' ' } else { c };
    let shown = line.chars().map(shown).take(SHOWN_MAX);
    shown.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { file, line, column, what, advice, text, width } = self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "error: {what}\n{margin}--> {file}:{line}:{column}")?;
        writeln!(f, "{margin} |\n{number} | {text}")?;
        let room = SHOWN_MAX.saturating_sub(column - 1).max(1);
        let (blank, caret) =
            (" ".repeat((column - 1).min(SHOWN_MAX)), "^".repeat(*width.min(&room)));
        write!(f, "{margin} | {blank}{caret}")?;
        if advice.is_empty() { Ok(()) } else { write!(f, " {advice}") }
    }
}

/// The most similar names, or all if none is similar.
pub(crate) fn advice(wrong: &str, names: &[&str]) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let mut near: Vec<&str> = names.iter().copied().filter(|name| likeness(name) >= 0.8).collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let quoted = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    match near.as_slice() {
        [] => format!("it can be {}", quoted(names)),
        near => format!("did you mean {}?", quoted(&near[..near.len().min(3)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_what_is_meant() {
        let text = "a = 1\n\tbö = \"x\"\r\n";
        let at = text.find("bö").unwrap();
        let said = Diagnostic::new(("f.toml", text), at..at + 3, "no b", "say c");
        assert_eq!(
            said.to_string(),
            "error: no b\n --> f.toml:2:2\n  |\n2 |  bö = \"x\"\n  |  ^^ say c"
        );
        // Outside of the text, and inside of a character.
        assert_eq!(Diagnostic::new(("f", text), 99..120, "x", "").line, 3);
        assert_eq!(Diagnostic::new(("f", text), at + 2..at + 2, "x", "").column, 3);
    }
}
