// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of texts that lie in a packet.
//!
//! What is looked for is valid UTF-8 without U+FFFD, which stands for bytes that are no
//! character. So it is in a text exactly where its bytes are in the bytes of the text, and
//! nothing has to be decoded.

use std::borrow::Cow;

use lateralis_model::Spans;
use memchr::memmem::Finder;

use super::words::{NONE, Words, retain, test};
use crate::filter::matches_pattern;

/// What a text shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextTest {
    /// This text.
    Is(String),
    /// One that begins so.
    Begins(String),
    /// One that ends so.
    Ends(String),
    /// One with this in it.
    Has(String),
    /// One that matches this pattern of `*` and `?`.
    Matches(String),
    /// One with any characters.
    IsSome,
}

impl TextTest {
    /// That a text matches a pattern of `*` and `?`, in the simplest words.
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

/// A test of texts, made ready for slices.
#[derive(Debug, Clone)]
pub struct Texts {
    test: TextTest,
    /// Finds what is looked for, where it may be anywhere.
    finder: Option<Box<Finder<'static>>>,
}

impl Texts {
    /// Ready; `None` for a text that bytes that are no characters could be read as.
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

    /// Replaces `yes` by those events of `care` whose texts are as told.
    ///
    /// Cost: of equality and of beginnings a comparison of lengths, and of two words where
    /// those fit; of the others the length of the texts that matter.
    pub(super) fn test(&self, spans: &Spans<'_>, care: &Words, yes: &mut Words) {
        let mut each = |holds: &mut dyn FnMut(usize) -> bool| {
            *yes = *care;
            retain(yes, holds);
        };
        match &self.test {
            // What is too long to be in the packet is read as empty, too.
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

/// The first eight bytes of something, as a word; those behind its end do not count.
#[derive(Clone, Copy)]
struct FirstBytes {
    length: usize,
    word: u64,
    seen: u64,
}

impl FirstBytes {
    /// Of at least one byte.
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

    /// Whether they are somewhere in a text; `None` where that takes more than some steps, or
    /// there are more of them.
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

/// Leaves those texts that begin with some bytes, at least one; all are as long at least.
fn narrow(spans: &Spans<'_>, bytes: &[u8], yes: &mut Words) {
    let (all, starts, lengths) = (spans.bytes(), spans.starts(), spans.lengths());
    let first = FirstBytes::of(bytes);
    let slow = |at: usize| spans.get(at).starts_with(bytes);
    // Where the last eight bytes begin.
    let Some(latest) = all.len().checked_sub(8) else { return retain(yes, slow) };
    retain(yes, |at| {
        let (start, length) = (starts[at] as usize, lengths[at] as usize);
        match all.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
            // One answer of two, without a branch between them.
            Some(found) => first.are(found) & (length <= latest + 8 - start),
            None => slow(at),
        }
    });
    if bytes.len() <= 8 {
        return;
    }
    // Then the last eight of a text of sixteen at most.
    match bytes.last_chunk::<8>().filter(|_| bytes.len() <= 16) {
        Some(last) => retain(yes, |at| {
            let from = starts[at] as usize + bytes.len() - 8;
            all.get(from..).and_then(|rest| rest.first_chunk::<8>()) == Some(last)
        }),
        None => retain(yes, slow),
    }
}
