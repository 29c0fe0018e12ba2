// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The output of Barrelfish's bfscope: dumps as text, with or without a length prefix.
//!
//! | sender | prefix of a dump |
//! |---|---|
//! | bfscope of Barrelfish | 8 bytes: decimal digits, then NUL and old content of its buffer |
//! | as Aquarium 2 expects, [`length_prefix`] | 8 digits with leading zeros |
//! | older servers and tools | 6 digits with leading blanks, or nothing |
//!
//! The length is not believed: a dump begins where its first line does.

/// Longest text that a length prefix can express.
pub const DUMP_BYTES_MAX: usize = 99_999_999;

const FIRST_LINE: &[u8] = b"# Start";
/// Lengths of prefixes, the usual one first.
const PREFIXES: [usize; 3] = [8, 6, 9];
const LOOK_AHEAD: usize = 9 + FIRST_LINE.len();

/// Bytes of [`length_prefix`].
pub const LENGTH_BYTES: usize = 8;

/// The eight-byte prefix of a dump: its length as digits with leading zeros.
#[must_use]
pub fn length_prefix(bytes: usize) -> [u8; LENGTH_BYTES] {
    let mut digits = [b'0'; LENGTH_BYTES];
    let mut rest = bytes.min(DUMP_BYTES_MAX);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Takes the prefixes out of a stream of dumps. Memory: what was fed since the last call of
/// [`Dumps::take`], and 15 bytes.
#[derive(Debug, Default)]
pub struct Dumps {
    held: Vec<u8>,
    text: Vec<u8>,
    inside_a_line: bool,
    dumps: u64,
}

impl Dumps {
    /// Takes bytes as they come.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.advance(false);
    }

    /// Nothing follows: what was held back is text.
    pub fn end(&mut self) {
        self.advance(true);
    }

    /// The text so far, once.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }

    /// Dumps begun so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.dumps
    }

    fn advance(&mut self, ended: bool) {
        let mut at = 0;
        while at < self.held.len() {
            let rest = &self.held[at..];
            if !self.inside_a_line {
                if rest.len() < LOOK_AHEAD && !ended {
                    break;
                }
                let prefix = prefix_bytes(rest);
                self.dumps += u64::from(rest[prefix..].starts_with(FIRST_LINE));
                at += prefix;
            }
            let rest = &self.held[at..];
            let line_end = rest.iter().position(|byte| *byte == b'\n');
            let end = line_end.map_or(rest.len(), |end| end + 1);
            // NULs occur between chunks, never in a line.
            self.text.extend(rest[..end].iter().filter(|byte| **byte != 0));
            self.inside_a_line = line_end.is_none() && end > 0;
            at += end;
        }
        self.held.drain(..at);
    }
}

/// Bytes of the prefix at the start of a line; 0 if there is none.
fn prefix_bytes(line: &[u8]) -> usize {
    let is_prefix = |bytes: &&usize| {
        let Some((prefix, rest)) = line.split_at_checked(**bytes) else { return false };
        let digits = prefix.trim_ascii_start();
        rest.starts_with(FIRST_LINE)
            && digits.first().is_some_and(u8::is_ascii_digit)
            && !prefix.contains(&b'\n')
    };
    PREFIXES.iter().find(is_prefix).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "# Start 5 Duration 0 Stop 9\n0 7 7337000100000000\n0 1 2\n";

    fn text_of(bytes: &[u8], piece: usize) -> (String, u64) {
        let mut dumps = Dumps::default();
        let mut text = Vec::new();
        for part in bytes.chunks(piece) {
            dumps.feed(part);
            text.extend(dumps.take());
        }
        dumps.end();
        text.extend(dumps.take());
        (String::from_utf8(text).unwrap(), dumps.count())
    }

    #[test]
    fn every_known_prefix_is_taken_out_and_nothing_else() {
        let length = DUMP.len();
        let prefixes: [&[u8]; 6] = [
            &length_prefix(length)[..],
            format!("{length}\0\0\0\0\0\0").as_bytes(),
            format!("{length}\0gar#\x7f").as_bytes(),
            format!("{length:6}").as_bytes(),
            format!("{length}\0\0\0\0\0\0\0").as_bytes(),
            b"",
        ]
        .map(|prefix: &[u8]| prefix.to_vec().leak() as &[u8]);
        for prefix in prefixes {
            let stream = [prefix, DUMP.as_bytes(), prefix, DUMP.as_bytes()].concat();
            for piece in [1, 3, 8, 1000] {
                let (text, dumps) = text_of(&stream, piece);
                assert_eq!(text, DUMP.repeat(2), "{prefix:?} in pieces of {piece}");
                assert_eq!(dumps, 2);
            }
        }
    }

    #[test]
    fn a_prefix_has_eight_digits() {
        assert_eq!(&length_prefix(1234), b"00001234");
        assert_eq!(&length_prefix(usize::MAX), b"99999999");
    }
}
