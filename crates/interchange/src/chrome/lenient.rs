// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads an event that is no strict JSON.
//!
//! Tracers write arguments with `printf`: `NaN` and `inf`, control characters, bytes that are not
//! UTF-8, halves of surrogate pairs, unescaped quotes. Perfetto reads most of it, and the event of
//! such an argument is as good as any. A fault therefore costs only its own value: characters are
//! replaced, numbers that JSON cannot express are read, other words are kept as text. Times, ids
//! and names are read by the same rules.

use std::borrow::Cow;

use super::event::{Raw, put};
use super::scan::{skip_blanks, skip_value};
use crate::dynamic::{Dyn, Named};

/// Deeper values are kept as text.
const MAX_DEPTH: u32 = 64;
/// Longest string in which quotes need not be escaped.
const MAX_QUOTED_BYTES: usize = 1 << 20;

/// The event whose brace is at `at`, and the first byte after it; `None` if it cannot be read even
/// this way. Also the number of bytes examined.
pub fn event(bytes: &[u8], at: usize) -> (Option<(Raw<'_>, usize)>, usize) {
    let mut cost = 0;
    for loose_quotes in [false, true] {
        let mut reader = Reader { bytes, at, reach: at, loose_quotes };
        let raw = reader.event();
        cost += reader.reach.max(reader.at) - at;
        if let Some(raw) = raw {
            return (Some((raw, reader.at)), cost);
        }
    }
    (None, cost)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How far strings were looked through that do not end.
    reach: usize,
    /// Whether a quote ends a string only where a value or a name may end.
    loose_quotes: bool,
}

impl<'a> Reader<'a> {
    fn blank(&mut self) -> Option<u8> {
        self.at = skip_blanks(self.bytes, self.at);
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.blank() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn event(&mut self) -> Option<Raw<'a>> {
        let mut raw = Raw::default();
        self.members(0, &mut |key, value, source| raw.member(key, value, source))?;
        Some(raw)
    }

    /// The members of the object whose brace is here, each with its text.
    fn members(
        &mut self,
        depth: u32,
        see: &mut dyn FnMut(Cow<'a, str>, Dyn<'a>, &'a [u8]),
    ) -> Option<()> {
        if !self.take(b'{') {
            return None;
        }
        loop {
            while self.take(b',') {}
            if self.take(b'}') {
                return Some(());
            }
            let key = self.string(true)?;
            if !self.take(b':') {
                return None;
            }
            self.blank()?;
            let begin = self.at;
            let value = self.value(depth + 1)?;
            see(key, value, &self.bytes[begin..self.at]);
            if !matches!(self.blank()?, b',' | b'}') {
                return None;
            }
        }
    }

    fn value(&mut self, depth: u32) -> Option<Dyn<'a>> {
        let first = self.blank()?;
        if depth > MAX_DEPTH && matches!(first, b'{' | b'[') {
            let begin = self.at;
            self.at = skip_value(self.bytes, begin).ok()?;
            return Some(Dyn::Text(String::from_utf8_lossy(&self.bytes[begin..self.at])));
        }
        match first {
            b'"' => self.string(false).map(Dyn::Text),
            b'{' => {
                let mut members: Named<'a> = Vec::new();
                self.members(depth, &mut |key, value, _| put(&mut members, key, value))?;
                super::event::unique(&mut members);
                Some(Dyn::Dict(members))
            }
            b'[' => {
                self.at += 1;
                let mut elements = Vec::new();
                loop {
                    while self.take(b',') {}
                    if self.take(b']') {
                        return Some(Dyn::List(elements));
                    }
                    elements.push(self.value(depth + 1)?);
                    if !matches!(self.blank()?, b',' | b']') {
                        return None;
                    }
                }
            }
            // Nothing where a value should be.
            b',' | b'}' | b']' => Some(Dyn::Null),
            _ => self.word(),
        }
    }

    /// A number, or a word of the language that wrote the file.
    fn word(&mut self) -> Option<Dyn<'a>> {
        let rest = &self.bytes[self.at..];
        let ends =
            |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'"' | b'{' | b'[') || *byte <= b' ';
        let length = rest.iter().position(ends)?;
        self.at += length;
        let text = String::from_utf8_lossy(&rest[..length]);
        Some(match text.as_ref() {
            "null" => Dyn::Null,
            "true" => Dyn::Bool(true),
            "false" => Dyn::Bool(false),
            word => match number(word) {
                Some(number) => number,
                None => Dyn::Text(text),
            },
        })
    }

    /// A string, whose quote is here.
    fn string(&mut self, is_key: bool) -> Option<Cow<'a, str>> {
        if self.blank()? != b'"' {
            return None;
        }
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            self.reach = self.reach.max(at.min(self.bytes.len()));
            match self.bytes.get(at)? {
                b'\\' => at += 2,
                b'"' if !self.loose_quotes || self.may_end(at, is_key) => break,
                _ => at += 1,
            }
            if self.loose_quotes && at - begin > MAX_QUOTED_BYTES {
                return None;
            }
        }
        let content = self.bytes.get(begin..at)?;
        if self.loose_quotes && has_boundary(content) {
            return None;
        }
        self.at = at + 1;
        Some(text(content))
    }

    /// Whether a string may end with the quote at `at`.
    fn may_end(&self, at: usize, is_key: bool) -> bool {
        let next = skip_blanks(self.bytes, at + 1);
        match self.bytes.get(next) {
            Some(b':') => is_key,
            Some(b'}' | b']') => !is_key,
            Some(b',') => {
                let after = skip_blanks(self.bytes, next + 1);
                // The next name or value follows a comma.
                !is_key && self.bytes.get(after).is_none_or(|byte| !byte.is_ascii_alphabetic())
            }
            _ => false,
        }
    }
}

/// Whether a text holds the end of an event and the beginning of another: then its quote is
/// missing, and it has run into the next event.
fn has_boundary(content: &[u8]) -> bool {
    content.iter().enumerate().any(|(at, byte)| {
        if *byte != b'}' {
            return false;
        }
        let mut next = skip_blanks(content, at + 1);
        if content.get(next) == Some(&b',') {
            next = skip_blanks(content, next + 1);
        }
        let rest = content.get(next..).unwrap_or_default();
        let Some(rest) = rest.strip_prefix(b"{") else { return false };
        let rest = &rest[skip_blanks(rest, 0)..];
        let names: [&[u8]; 7] =
            [b"\"ph\"", b"\"name\"", b"\"ts\"", b"\"pid\"", b"\"tid\"", b"\"cat\"", b"\"args\""];
        // The content ends with a quote that would belong to the name.
        names.iter().any(|name| rest.starts_with(&name[..name.len() - 1]))
    })
}

/// A number as JSON, C, Python or JavaScript write it. One that would become infinite is none.
fn number(word: &str) -> Option<Dyn<'static>> {
    if let Ok(number) = word.parse::<u64>() {
        return Some(Dyn::Unsigned(number));
    }
    if let Ok(number) = word.parse::<i64>() {
        return Some(Dyn::Signed(number));
    }
    let number: f64 = word.parse().ok()?;
    let has_digits = word.bytes().any(|byte| byte.is_ascii_digit());
    (number.is_finite() || !has_digits).then_some(Dyn::Real(number))
}

/// The characters of a string: escapes resolved, what is none replaced by U+FFFD.
fn text(content: &[u8]) -> Cow<'_, str> {
    if !content.contains(&b'\\') {
        return String::from_utf8_lossy(content);
    }
    let content = String::from_utf8_lossy(content);
    let mut out = String::with_capacity(content.len());
    let mut rest = content.as_ref();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else { break };
        rest = &rest[escape.len_utf8()..];
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            '"' | '\\' | '/' => out.push(escape),
            'u' => match hex(rest) {
                Some(high @ 0xd800..=0xdbff) => {
                    rest = &rest[4..];
                    let low = rest.strip_prefix("\\u").and_then(hex);
                    match low {
                        Some(low @ 0xdc00..=0xdfff) => {
                            rest = &rest[6..];
                            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                            out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        }
                        _ => out.push(char::REPLACEMENT_CHARACTER),
                    }
                }
                Some(code) => {
                    rest = &rest[4..];
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                None => out.push_str("\\u"),
            },
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn hex(text: &str) -> Option<u32> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(value: &[u8]) -> Option<Dyn<'static>> {
        let text = [b"{\"ph\":\"i\",\"args\":{\"a\":", value, b"},\"ts\":5}, next"].concat();
        let (raw, end) = event(text.leak(), 0).0?;
        assert_eq!((raw.time, raw.phase.as_deref()), (Some("5"), Some("i")));
        assert!(raw.is_repaired && end > 0);
        let Some(Dyn::Dict(members)) = raw.args else { panic!() };
        assert_eq!(members.len(), 1);
        members.into_iter().next().map(|(_, value)| value)
    }

    #[test]
    fn what_is_wrong_costs_its_own_value() {
        let text = |text: &str| Some(Dyn::Text(text.to_owned().into()));
        assert!(matches!(argument(b"NaN"), Some(Dyn::Real(real)) if real.is_nan()));
        assert_eq!(argument(b"-Infinity"), Some(Dyn::Real(f64::NEG_INFINITY)));
        assert_eq!(argument(b"inf"), Some(Dyn::Real(f64::INFINITY)));
        assert_eq!(argument(b"1e400"), text("1e400"));
        assert_eq!(argument(b"1.#QNAN"), text("1.#QNAN"));
        assert_eq!(argument(b"undefined"), text("undefined"));
        assert_eq!(argument(b""), Some(Dyn::Null));
        assert_eq!(argument(b"\"a\nb\x01\""), text("a\nb\u{1}"));
        assert_eq!(argument(b"\"\xff\xfe\""), text("\u{fffd}\u{fffd}"));
        assert_eq!(argument(b"\"\\ud800x\\ud83d\\ude00\\q\""), text("\u{fffd}x\u{1f600}\\q"));
        assert_eq!(argument(b"\"say \"hi\" now\""), text("say \"hi\" now"));
        assert_eq!(argument(b"\"odd \" one\""), text("odd \" one"));
        let deep = [b"[".repeat(5000), b"]".repeat(5000)].concat();
        let mut value = argument(&deep);
        while let Some(Dyn::List(mut inner)) = value {
            value = inner.pop();
        }
        assert!(matches!(value, Some(Dyn::Text(text)) if text.len() > 9000));
    }

    #[test]
    fn a_missing_quote_does_not_swallow_the_next_event() {
        let text = b"{\"ph\":\"i\",\"name\":\"a,\"ts\":1},\n{\"ph\":\"i\",\"name\":\"b\",\"ts\":2}";
        assert!(event(text, 0).0.is_none());
        assert!(event(b"{\"ph\":\"i", 0).0.is_none());
        assert!(event(b"{\"ph\" 1}", 0).0.is_none());
    }
}
