// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records, and the parts that they have in common.

use std::borrow::Cow;
use std::collections::HashMap;

use lateralis_units::Nanos;

use crate::dynamic::{Dyn, Named, make_unique};

/// Bits `low..=high` of a word.
pub fn bits(word: u64, low: u32, high: u32) -> u64 {
    (word >> low) & (u64::MAX >> (63 - (high - low)))
}

/// A record: its first word, and the following words as bytes.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub header: u64,
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`, and its length.
    ///
    /// Errors: the bytes that are missing, or `None` if no record begins so.
    pub fn first(bytes: &'a [u8]) -> Result<(Self, usize), Option<u64>> {
        let Some((word, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(Some(8 - bytes.len() as u64));
        };
        let header = u64::from_le_bytes(*word);
        let large = bits(header, 0, 3) == 15;
        let words = if large { bits(header, 4, 35) } else { bits(header, 4, 15) };
        let known = large || bits(header, 0, 3) <= 9;
        let Some(body_words) = words.checked_sub(1).filter(|_| known) else { return Err(None) };
        match usize::try_from(body_words * 8).ok().and_then(|length| rest.get(..length)) {
            Some(body) => Ok((Self { header, body }, 8 + body.len())),
            None => Err(Some(body_words * 8 - rest.len() as u64)),
        }
    }
}

/// What the records of one provider refer to.
#[derive(Debug, Default)]
pub struct Provider {
    pub name: String,
    pub strings: HashMap<u64, String>,
    pub threads: HashMap<u64, (u64, u64)>,
    /// Ticks per second; 0 until known.
    pub frequency: u64,
    /// Time of the last event, for records that have none.
    pub last: i64,
}

impl Provider {
    /// Nanoseconds of a reading; the frequency is 10⁹ until known.
    pub fn nanos(&self, ticks: u64) -> i64 {
        let frequency = if self.frequency == 0 { 1_000_000_000 } else { self.frequency };
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(frequency);
        // Below 2⁹⁴: 64 bits times 30.
        Nanos::nearest(nanos as i128).0
    }
}

/// Takes the parts of a record one after the other.
#[derive(Debug)]
pub struct Reader<'a, 'p> {
    pub rest: &'a [u8],
    pub provider: &'p Provider,
}

impl<'a> Reader<'a, '_> {
    /// The next word.
    pub fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// This number of bytes, and the padding of their last word.
    pub fn padded(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length.checked_next_multiple_of(8)?)?;
        self.rest = rest;
        bytes.get(..length)
    }

    /// A text of this number of bytes.
    pub fn text(&mut self, length: u64) -> Option<Cow<'a, str>> {
        self.padded(length).map(String::from_utf8_lossy)
    }

    /// What a string reference of 16 bits means.
    pub fn string(&mut self, reference: u64) -> Option<Cow<'a, str>> {
        if reference & 0x8000 != 0 {
            return self.text(reference & 0x7fff);
        }
        Some(match reference {
            0 => Cow::Borrowed(""),
            _ => match self.provider.strings.get(&reference) {
                Some(text) => Cow::Owned(text.clone()),
                None => Cow::Owned(format!("#{reference}")),
            },
        })
    }

    /// What a thread reference of 8 bits means: process and thread.
    pub fn thread(&mut self, reference: u64) -> Option<(u64, u64)> {
        match reference {
            0 => Some((self.word()?, self.word()?)),
            _ => Some(self.provider.threads.get(&reference).copied().unwrap_or((0, reference))),
        }
    }

    /// This number of arguments.
    pub fn arguments(&mut self, count: u64) -> Option<Named<'a>> {
        let mut arguments = Vec::new();
        for _ in 0..count {
            let (bytes, header) = (self.rest, self.word()?);
            let length = usize::try_from(bits(header, 4, 15) * 8).ok()?;
            let whole = bytes.get(..length).filter(|bytes| bytes.len() >= 8)?;
            let mut reader = Reader { rest: &whole[8..], provider: self.provider };
            self.rest = &bytes[length..];
            let name = reader.string(bits(header, 16, 31))?;
            let value = match bits(header, 0, 3) {
                0 => Dyn::Null,
                1 => Dyn::Signed(i64::from(bits(header, 32, 63) as i32)),
                2 => Dyn::Unsigned(bits(header, 32, 63)),
                3 => Dyn::Signed(reader.word()? as i64),
                4 => Dyn::Unsigned(reader.word()?),
                5 => Dyn::Real(f64::from_bits(reader.word()?)),
                6 => Dyn::Text(reader.string(bits(header, 32, 47))?),
                7 => Dyn::Hex(reader.word()?),
                8 => Dyn::Unsigned(reader.word()?),
                9 => Dyn::Bool(bits(header, 32, 32) != 0),
                10 => Dyn::Bytes(Cow::Borrowed(reader.padded(bits(header, 32, 58))?)),
                _ => Dyn::Bytes(Cow::Borrowed(reader.rest)),
            };
            arguments.push((name, value));
        }
        make_unique(&mut arguments);
        Some(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_low_end() {
        assert_eq!(bits(super::super::MAGIC, 0, 3), 0);
        assert_eq!(bits(super::super::MAGIC, 4, 15), 1);
        assert_eq!(bits(super::super::MAGIC, 16, 19), 4);
        assert_eq!(bits(u64::MAX, 0, 63), u64::MAX);
    }
}
