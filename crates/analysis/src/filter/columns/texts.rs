// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of texts in a packet.
//!
//! The search text is valid UTF-8 without U+FFFD, which replaces invalid bytes. So a text contains it
//! exactly if the bytes of the text contain its bytes, and nothing has to be decoded.

use std::borrow::Cow;

use lateralis_model::Spans;
use memchr::memmem::Finder;

use super::words::{NONE, Words, retain, test};
use crate::filter::matches_pattern;

/// Condition on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextTest {
    /// Equals this text.
    Is(String),
    /// Starts with this text.
    Begins(String),
    /// Ends with this text.
    Ends(String),
    /// Contains this text.
    Has(String),
    /// Matches this pattern of `*` and `?`.
    Matches(String),
    /// Is not empty.
    IsSome,
}

impl TextTest {
    /// Reference implementation of matching a text against a pattern of `*` and `?`.
    #[must_use]
    pub fn pattern(pattern: &str) -> Self {
        let inner = pattern.trim_matches('*');
        let is_plain = !inner.contains(['*', '?']) && !inner.contains('\u{fffd}');
        let (open, closed) = (pattern.starts_with('*'), pattern.ends_with('*'));
        match (is_plain, open, closed) {
            (true, false, false) => Self::Is(inner.to_owned()),
            (true, false, true) => Self::Begins(inner.to_owned()),
            (true, true, false) => Self::Ends(inner.to_owned()),
            (true, true, true) => Self::Has(inner.to_owned()),
            (false, ..) => Self::Matches(pattern.to_owned()),
        }
    }
}

/// A test of texts, prepared for slices.
#[derive(Debug, Clone)]
pub struct Texts {
    test: TextTest,
    /// Searcher for a text at any position.
    finder: Option<Box<Finder<'static>>>,
}

impl Texts {
    /// Prepares a test; `None` for a text that could also be the decoded form of invalid bytes.
    #[must_use]
    pub fn of(test: TextTest) -> Option<Self> {
        let finder = match &test {
            TextTest::Is(text) | TextTest::Begins(text) | TextTest::Ends(text)
                if text.contains('\u{fffd}') =>
            {
                return None;
            }
            TextTest::Has(text) if text.contains('\u{fffd}') => return None,
            TextTest::Has(text) => Some(Box::new(Finder::new(text.as_bytes()).into_owned())),
            _ => None,
        };
        Some(Self { test, finder })
    }

    /// Replaces `yes` by those events of `care` whose texts satisfy the test.
    ///
    /// Cost: for equality and prefixes, a comparison of lengths, and of two words for those that fit; for
    /// the others, the length of the relevant texts.
    pub(super) fn test(&self, spans: &Spans<'_>, care: &Words, yes: &mut Words) {
        let mut each = |holds: &mut dyn FnMut(usize) -> bool| {
            *yes = *care;
            retain(yes, holds);
        };
        match &self.test {
            // A text too long for the packet is read as empty, too.
            TextTest::Is(text) if text.is_empty() => each(&mut |at| spans.get(at).is_empty()),
            TextTest::Is(text) => match u32::try_from(text.len()) {
                Ok(length) => {
                    test(spans.lengths(), care, yes, |own| own == length);
                    narrow(spans, text.as_bytes(), yes);
                }
                Err(_) => *yes = NONE,
            },
            TextTest::Begins(text) if text.is_empty() => *yes = *care,
            TextTest::Begins(text) => match u32::try_from(text.len()) {
                Ok(length) => {
                    test(spans.lengths(), care, yes, |own| own >= length);
                    narrow(spans, text.as_bytes(), yes);
                }
                Err(_) => *yes = NONE,
            },
            TextTest::Ends(text) => each(&mut |at| spans.get(at).ends_with(text.as_bytes())),
            TextTest::Has(_) => match &self.finder {
                Some(finder) => {
                    let first = FirstBytes::of(finder.needle());
                    each(&mut |at| match first.is_in(spans, at) {
                        Some(answer) => answer,
                        None => finder.find(spans.get(at)).is_some(),
                    });
                }
                None => *yes = NONE,
            },
            TextTest::Matches(pattern) => each(&mut |at| {
                let text: Cow<'_, str> = String::from_utf8_lossy(spans.get(at));
                matches_pattern(pattern, &text)
            }),
            TextTest::IsSome => each(&mut |at| !spans.get(at).is_empty()),
        }
    }
}

/// The first eight bytes of a text as a word; bytes after its end are masked out.
#[derive(Clone, Copy)]
struct FirstBytes {
    length: usize,
    word: u64,
    seen: u64,
}

impl FirstBytes {
    /// Needs at least one byte.
    fn of(bytes: &[u8]) -> Self {
        let mut first = [0; 8];
        let short = bytes.len().clamp(1, 8);
        first.iter_mut().zip(bytes).for_each(|(first, byte)| *first = *byte);
        let (word, seen) = (u64::from_le_bytes(first), u64::MAX >> (64 - 8 * short));
        Self { length: bytes.len(), word, seen }
    }

    fn are(self, eight: &[u8; 8]) -> bool {
        (u64::from_le_bytes(*eight) ^ self.word) & self.seen == 0
    }

    /// Whether a text contains them; `None` if that would take too many steps, or the search text is
    /// longer than eight bytes.
    fn is_in(self, spans: &Spans<'_>, at: usize) -> Option<bool> {
        let (start, length) = (spans.starts()[at] as usize, spans.lengths()[at] as usize);
        if self.length == 0 || self.length > 8 || length > 48 {
            return None;
        }
        let Some(more) = length.checked_sub(self.length) else { return Some(false) };
        let bytes = spans.bytes().get(start..start.checked_add(length + 7)?)?;
        let mut places = bytes.windows(8).take(more + 1);
        Some(places.any(|place| place.first_chunk::<8>().is_some_and(|eight| self.are(eight))))
    }
}

/// Keeps the texts that start with the given bytes, at least one; all texts are at least that long.
fn narrow(spans: &Spans<'_>, bytes: &[u8], yes: &mut Words) {
    let (all, starts, lengths) = (spans.bytes(), spans.starts(), spans.lengths());
    let first = FirstBytes::of(bytes);
    let slow = |at: usize| spans.get(at).starts_with(bytes);
    // Last position at which eight bytes can be read.
    let Some(latest) = all.len().checked_sub(8) else { return retain(yes, slow) };
    retain(yes, |at| {
        let (start, length) = (starts[at] as usize, lengths[at] as usize);
        match all.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
            // One of two results, without a branch between them.
            Some(found) => first.are(found) & (length <= latest + 8 - start),
            None => slow(at),
        }
    });
    if bytes.len() <= 8 {
        return;
    }
    // Then the last eight bytes of a search text of at most sixteen.
    match bytes.last_chunk::<8>().filter(|_| bytes.len() <= 16) {
        Some(last) => retain(yes, |at| {
            let from = starts[at] as usize + bytes.len() - 8;
            all.get(from..).and_then(|rest| rest.first_chunk::<8>()) == Some(last)
        }),
        None => retain(yes, slow),
    }
}
