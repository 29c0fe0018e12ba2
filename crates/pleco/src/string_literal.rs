// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text of a string literal, and the way back. The escapes are those of
//! Haskell [Haskell 2010 Report §2.6], which the original tool accepts.

use crate::diagnostic::{Code, Reporter};
use crate::source::Span;
use std::fmt::Write;

/// Names of the first 32 characters and DEL. `SO` is a prefix of `SOH`: the
/// longer one wins, as in Haskell.
const ASCII_NAMES: [(&str, u8); 34] = [
    ("NUL", 0),
    ("SOH", 1),
    ("STX", 2),
    ("ETX", 3),
    ("EOT", 4),
    ("ENQ", 5),
    ("ACK", 6),
    ("BEL", 7),
    ("DLE", 16),
    ("DC1", 17),
    ("DC2", 18),
    ("DC3", 19),
    ("DC4", 20),
    ("NAK", 21),
    ("SYN", 22),
    ("ETB", 23),
    ("CAN", 24),
    ("SUB", 26),
    ("ESC", 27),
    ("DEL", 127),
    ("BS", 8),
    ("HT", 9),
    ("LF", 10),
    ("VT", 11),
    ("FF", 12),
    ("CR", 13),
    ("SO", 14),
    ("SI", 15),
    ("EM", 25),
    ("FS", 28),
    ("GS", 29),
    ("RS", 30),
    ("US", 31),
    ("SP", 32),
];

/// The characters of a literal. `literal` begins with its quote; the closing one may be missing
/// (that was reported when it was read).
pub(crate) fn decode(literal: &str, span: Span, reporter: &mut Reporter<'_>) -> String {
    let mut out = String::new();
    let mut rest = literal.strip_prefix('"').unwrap_or(literal);
    while let Some(c) = rest.chars().next() {
        let at = span.start + (literal.len() - rest.len()) as u32;
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => break,
            '\\' => match escape(rest) {
                Some((value, used)) => {
                    out.extend(value);
                    rest = &rest[used..];
                }
                // A gap that is not closed was reported when the literal was read.
                None if rest.starts_with(char::is_whitespace) => {}
                None => {
                    let next = rest.chars().next();
                    let width = 1 + next.map_or(0, char::len_utf8) as u32;
                    let place = Span { start: at, end: at + width };
                    let text = format!("unknown escape `\\{}`", next.unwrap_or(' '));
                    let draft = reporter.report(Code::BadEscape, place, text);
                    draft.label("expected `\\n`, `\\t`, `\\\"`, `\\\\`, `\\DDD` or `\\xHHH`");
                    rest = &rest[next.map_or(0, char::len_utf8)..];
                }
            },
            c => out.push(c),
        }
    }
    out
}

/// Value and length of the escape after a backslash; `None` if it is not one. A gap and `\&` have
/// no value.
fn escape(rest: &str) -> Option<(Option<char>, usize)> {
    let first = rest.chars().next()?;
    let simple = match first {
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        '\\' | '"' | '\'' => Some(first),
        '&' => return Some((None, 1)),
        _ => None,
    };
    if let Some(c) = simple {
        return Some((Some(c), 1));
    }
    if first == '^' {
        let letter = rest[1..].chars().next()?;
        let is_control = ('A'..='_').contains(&letter);
        return is_control.then(|| (char::from_u32(letter as u32 - 'A' as u32 + 1), 2));
    }
    if first.is_whitespace() {
        let blanks = rest.len() - rest.trim_start().len();
        return rest[blanks..].starts_with('\\').then_some((None, blanks + 1));
    }
    if let Some((name, value)) = ASCII_NAMES.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((Some(char::from(*value)), name.len()));
    }
    let (radix, prefix) = match first {
        'x' | 'X' => (16, 1),
        'o' | 'O' => (8, 1),
        _ => (10, 0),
    };
    let digits = rest[prefix..].find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len() - prefix);
    let value = u32::from_str_radix(&rest[prefix..prefix + digits], radix).ok()?;
    Some((Some(char::from_u32(value)?), prefix + digits))
}

/// The shortest literal of only ASCII characters with the value `text`.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::from("\"");
    let mut ends_in_number = false;
    for c in text.chars() {
        // `\&` keeps a digit from joining the escape before it.
        if ends_in_number && c.is_ascii_hexdigit() {
            out.push_str("\\&");
        }
        ends_in_number = false;
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            c => {
                let _ = write!(out, "\\x{:x}", c as u32);
                ends_in_number = true;
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(literal: &str, expected: &str) {
        let mut reporter = Reporter::new("t", literal);
        let span = Span { start: 0, end: literal.len() as u32 };
        assert_eq!(decode(literal, span, &mut reporter), expected, "{literal}");
        assert!(!reporter.has_errors(), "{literal}");
        let again = encode(expected);
        let mut reporter = Reporter::new("t", &again);
        assert_eq!(decode(&again, span, &mut reporter), expected, "{again}");
        assert!(again.is_ascii());
    }

    #[test]
    fn haskell_escapes() {
        check(r#""plain""#, "plain");
        check(r#""\n\t\"\\\'""#, "\n\t\"\\'");
        check(r#""\65\x41\o101""#, "AAA");
        check(r#""\SO\&H""#, "\u{e}H");
        check(r#""\SOH""#, "\u{1}");
        check(r#""\DEL\ESC\^A\^_""#, "\u{7f}\u{1b}\u{1}\u{1f}");
        check("\"a\\  \n \\b\"", "ab");
        check(r#""\233""#, "é");
        check(r#""\x1&2""#, "\u{1}&2");
        check("\"\u{1F41F} é\"", "🐟 é");
    }

    #[test]
    fn digits_behind_a_numeric_escape_stay_apart() {
        assert_eq!(encode("\u{1}2"), r#""\x1\&2""#);
        check(r#""\x1\&2""#, "\u{1}2");
    }

    #[test]
    fn unknown_escapes_are_reported() {
        for literal in [r#""\q""#, r#""\x""#, r#""\1114112""#, r#""\^a""#, r#""\xD800""#] {
            let mut reporter = Reporter::new("t", literal);
            decode(literal, Span { start: 0, end: literal.len() as u32 }, &mut reporter);
            assert!(reporter.has_errors(), "{literal}");
        }
    }
}
