// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places in a schema file.

/// A range of bytes in the source text, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The range from the start of `self` to the end of `other`.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

/// Where something is written: line and column, both counted from 1, the
/// column in characters.
///
/// Two places always compare equal: where something is written is not part of
/// what it says, and schemas are compared by what they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Line, from 1; 0 = not from a file.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

/// A source text with the offsets of its lines.
pub(crate) struct Source<'a> {
    pub text: &'a str,
    line_starts: Vec<u32>,
    /// Characters before every `STRIDE_BYTES`-th byte, so that a column costs the same in a line of
    /// 16 MiB.
    characters: Vec<u32>,
}

const STRIDE_BYTES: usize = 1024;

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Source<'a> {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at as u32 + 1));
        let mut characters = vec![0];
        let mut count = 0;
        for chunk in text.as_bytes().chunks(STRIDE_BYTES) {
            count += count_characters(chunk);
            characters.push(count);
        }
        Source { text, line_starts, characters }
    }

    pub fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of a byte. Cost: O(log lines), bounded.
    pub fn place(&self, offset: u32) -> Place {
        let offset = offset.min(self.text.len() as u32);
        let index = self.line_starts.partition_point(|start| *start <= offset) - 1;
        let before = self.characters_before(offset);
        let column = before - self.characters_before(self.line_starts[index]);
        Place { line: index as u32 + 1, column: column + 1 }
    }

    /// At most `chars_max` characters of the line that contains `offset`, beginning at most
    /// `back_max` characters before it; and the number of characters before it.
    pub fn excerpt(&self, offset: u32, back_max: usize, chars_max: usize) -> (String, usize) {
        let (before, after) = self.text.split_at_checked(offset as usize).unwrap_or(("", ""));
        let mut back: Vec<char> =
            before.chars().rev().take_while(|c| *c != '\n').take(back_max).collect();
        back.reverse();
        let start = back.len();
        let rest = after.chars().take_while(|c| *c != '\n' && *c != '\r');
        (back.into_iter().chain(rest).take(chars_max).collect(), start)
    }

    fn characters_before(&self, offset: u32) -> u32 {
        let chunk = offset as usize / STRIDE_BYTES;
        let rest = &self.text.as_bytes()[chunk * STRIDE_BYTES..offset as usize];
        self.characters[chunk] + count_characters(rest)
    }
}

/// UTF-8 characters that begin in `bytes`: all bytes but continuations.
fn count_characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32
}
