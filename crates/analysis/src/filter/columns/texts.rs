// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of texts that lie in a packet.
//!
//! What is looked for is valid UTF-8 without U+FFFD, which stands for bytes that are no
//! character. So it is in a text exactly where its bytes are in the bytes of the text, and
//! nothing has to be decoded.

use std::borrow::Cow;

use lateralis_model::Spans;
use memchr::memmem::Finder;

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

    /// For each text 1 if it is as told, else 0. Only those are looked at for which `care`
    /// says so; the others get 0.
    ///
    /// Cost: of equality and of beginnings a comparison of lengths, and of eight bytes or
    /// more where those fit; of the others the length of the texts.
    pub(super) fn test(&self, spans: &Spans<'_>, care: impl Fn(usize) -> bool, out: &mut [u8]) {
        match &self.test {
            // What is too long to be in the packet is read as empty, too.
            TextTest::Is(text) if text.is_empty() => {
                some(out, care, |at| spans.get(at).is_empty());
            }
            TextTest::Is(text) => {
                let text = text.as_bytes();
                let length = text.len() as u64;
                for (answer, &own) in out.iter_mut().zip(spans.lengths()) {
                    *answer = u8::from(u64::from(own) == length);
                }
                narrow(spans, text, care, out);
            }
            TextTest::Begins(text) => {
                let text = text.as_bytes();
                let length = text.len() as u64;
                for (answer, &own) in out.iter_mut().zip(spans.lengths()) {
                    *answer = u8::from(u64::from(own) >= length);
                }
                if text.is_empty() {
                    return;
                }
                narrow(spans, text, care, out);
            }
            TextTest::Ends(text) => {
                some(out, care, |at| spans.get(at).ends_with(text.as_bytes()));
            }
            TextTest::Has(_) => {
                let Some(finder) = &self.finder else { return out.fill(0) };
                some(out, care, |at| finder.find(spans.get(at)).is_some());
            }
            TextTest::Matches(pattern) => some(out, care, |at| {
                let text: Cow<'_, str> = String::from_utf8_lossy(spans.get(at));
                matches_pattern(pattern, &text)
            }),
            TextTest::IsSome => some(out, care, |at| !spans.get(at).is_empty()),
        }
    }
}

fn some(out: &mut [u8], care: impl Fn(usize) -> bool, holds: impl Fn(usize) -> bool) {
    for (at, answer) in out.iter_mut().enumerate() {
        *answer = u8::from(care(at) && holds(at));
    }
}

/// Leaves the ones of those texts that begin with some bytes, at least one.
#[inline(always)]
fn narrow(spans: &Spans<'_>, bytes: &[u8], care: impl Fn(usize) -> bool, out: &mut [u8]) {
    let all = spans.bytes();
    let word = |at: usize| {
        let eight = all.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(eight.try_into().ok()?))
    };
    // The first eight bytes at once, those behind the text not looked at.
    let mut first = [0; 8];
    let short = bytes.len().min(8);
    first[..short].copy_from_slice(&bytes[..short]);
    let first = u64::from_le_bytes(first);
    let seen = u64::MAX >> (64 - 8 * short);
    let places = spans.starts().iter().zip(spans.lengths());
    for (at, (answer, (&start, &length))) in out.iter_mut().zip(places).enumerate() {
        if *answer == 0 {
            continue;
        }
        let start = start as usize;
        let is_it = care(at)
            && match word(start) {
                Some(found) if (found ^ first) & seen != 0 => false,
                Some(_) if bytes.len() <= 8 => {
                    start.checked_add(length as usize).is_some_and(|end| end <= all.len())
                }
                _ => spans.get(at).starts_with(bytes),
            };
        *answer = u8::from(is_it);
    }
}
