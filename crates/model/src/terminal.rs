// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trace may not say to a terminal.
//!
//! Names, values and paths come from programs and files that may be hostile: an escape sequence in one of
//! them would colour the screen, change the title of its window or write to its clipboard; a line feed would
//! forge lines; controls of the writing direction would show text in another order than it has. Where text
//! is printed for people these characters are shown as escapes, `\x1b`, `\n`, `\u{202e}`. A backslash of
//! the text stays as it is.
//!
//! What is escaped: all control characters (U+0000 to U+001F, tab and line feed among them, U+007F to
//! U+009F), controls of the writing direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
//! U+2069), line and paragraph separators (U+2028, U+2029), and characters that have neither width nor
//! meaning outside typesetting (U+200B, U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB, tags). Joiners
//! (U+200C, U+200D) stay: words and pictures need them.

use std::borrow::Cow;
use std::io;

/// Whether a character must not reach a terminal as it is.
pub fn is_hostile(character: char) -> bool {
    match character {
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\0'..'\u{61c}' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Whether all bytes are printable ASCII. Most texts are, and this is quick to know.
#[inline]
pub fn is_printable_ascii(bytes: &[u8]) -> bool {
    // Without a branch for each byte, so that the compiler takes many at a time.
    let mut chunks = bytes.chunks_exact(32);
    let is_bad = |bytes: &[u8]| {
        bytes.iter().fold(false, |found, byte| found | (byte.wrapping_sub(b' ') >= 0x5f))
    };
    chunks.by_ref().all(|chunk| !is_bad(chunk)) && !is_bad(chunks.remainder())
}

/// Appends text with its hostile characters as escapes.
pub fn push(out: &mut String, text: &str) {
    if is_printable_ascii(text.as_bytes()) {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        if is_hostile(character) {
            push_escape(out, character);
        } else {
            out.push(character);
        }
    }
}

/// The text with its hostile characters as escapes.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    push(&mut out, text);
    Cow::Owned(out)
}

fn push_escape(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(character))),
        _ => out.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
    }
}

/// Escapes what is hostile from `start` on: bytes of one line, without its line feed. What is no UTF-8
/// stays, but for the bytes that a terminal of one byte a character takes for controls.
pub fn clean(out: &mut Vec<u8>, start: usize) {
    if is_printable_ascii(&out[start..]) {
        return;
    }
    clean_slowly(out, start);
}

#[cold]
#[inline(never)]
fn clean_slowly(out: &mut Vec<u8>, start: usize) {
    let is_clean = |chunk: std::str::Utf8Chunk<'_>| {
        !chunk.valid().contains(is_hostile) && !chunk.invalid().iter().any(is_single_control)
    };
    if out[start..].utf8_chunks().all(is_clean) {
        return;
    }
    let raw = out.split_off(start);
    let mut text = String::new();
    for chunk in raw.utf8_chunks() {
        text.clear();
        push(&mut text, chunk.valid());
        out.extend_from_slice(text.as_bytes());
        for byte in chunk.invalid() {
            match is_single_control(byte) {
                true => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                false => out.push(*byte),
            }
        }
    }
}

/// Variant for a line of JSON, in which such characters occur inside strings only: `\u009b`.
pub fn clean_json(out: &mut Vec<u8>, start: usize) {
    if is_printable_ascii(&out[start..]) {
        return;
    }
    let raw = out.split_off(start);
    // Writing into memory does not fail.
    let _ = io::Write::write_all(&mut Cleaner::new(out, Style::Json), &raw);
}

/// A byte that is no UTF-8, and a control where each byte is a character.
fn is_single_control(byte: &u8) -> bool {
    (0x80..=0x9f).contains(byte)
}

/// Data on its way to a terminal.
///
/// Line feeds pass: they end the lines of the data; so do a carriage return and a line feed, as in CSV
/// (RFC 4180). Both pairs and characters may be cut by two writes.
pub struct Cleaner<W> {
    out: W,
    style: Style,
    /// The beginning of a character or of the end of a line, until the rest comes.
    cut: Vec<u8>,
}

/// How a hostile character is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `\x1b`, `\u{202e}`
    Text,
    /// As JSON has it in its strings: `\u001b`, `\u202e`; the meaning stays
    Json,
}

impl<W: io::Write> Cleaner<W> {
    /// In front of a writer.
    pub fn new(out: W, style: Style) -> Self {
        Self { out, style, cut: Vec::new() }
    }

    fn clean(&mut self, text: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, character) in text.char_indices() {
            let is_end = character == '\r' && text[at + 1..].starts_with('\n');
            if is_end || character == '\n' || !is_hostile(character) {
                continue;
            }
            self.out.write_all(&text.as_bytes()[plain..at])?;
            plain = at + character.len_utf8();
            match self.style {
                Style::Text => {
                    let mut escape = String::new();
                    push_escape(&mut escape, character);
                    self.out.write_all(escape.as_bytes())?;
                }
                Style::Json => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        self.out.write_all(&text.as_bytes()[plain..])
    }
}

impl<W: io::Write> io::Write for Cleaner<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cut.is_empty() && bytes.split(|byte| *byte == b'\n').all(is_printable_ascii) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    let (whole, cut) =
                        text.split_at(text.len() - usize::from(text.ends_with('\r')));
                    self.clean(whole)?;
                    self.cut = cut.as_bytes().to_vec();
                    break;
                }
                Err(error) => error,
            };
            let (valid, behind) = rest.split_at(error.valid_up_to());
            self.clean(std::str::from_utf8(valid).unwrap_or_default())?;
            let Some(wrong) = error.error_len() else {
                self.cut = behind.to_vec();
                break;
            };
            for byte in &behind[..wrong] {
                match (is_single_control(byte), self.style) {
                    (true, Style::Text) => write!(self.out, "\\x{byte:02x}")?,
                    (true, Style::Json) => write!(self.out, "\\ufffd")?,
                    (false, _) => self.out.write_all(&[*byte])?,
                }
            }
            rest = &behind[wrong..];
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const HOSTILE: &str = "a\x1b]0;T\x07\t\r\n\x7f\u{9b}31m\u{202e}z\u{2066}\u{2028}\u{feff}ü";
    const SHOWN: &str =
        "a\\x1b]0;T\\x07\\t\\r\\n\\x7f\\u{9b}31m\\u{202e}z\\u{2066}\\u{2028}\\u{feff}ü";

    #[test]
    fn nothing_hostile_stays_and_everything_else_does() {
        assert_eq!(shown(HOSTILE), SHOWN);
        for text in ["", "plain \\ text", "größe µs 日本語 👩‍👩‍👧"] {
            assert_eq!(shown(text), text);
        }
        for length in 0..80 {
            let mut text = "x".repeat(length);
            assert!(is_printable_ascii(text.as_bytes()));
            text.push('\x1b');
            assert!(!is_printable_ascii(text.as_bytes()));
            assert_eq!(shown(&text), format!("{}\\x1b", "x".repeat(length)));
        }
    }

    #[test]
    fn every_control_of_unicode_is_hostile() {
        for character in ('\0'..=char::MAX).filter(|character| character.is_control()) {
            assert!(is_hostile(character), "{character:?}");
        }
    }

    #[test]
    fn bytes_of_a_line_are_cleaned_also_where_they_are_no_text() {
        let mut line = b"before\x1b".to_vec();
        let start = line.len();
        line.extend_from_slice(b"n\xc3\xbc\x9b31m \xff \xe2\x80\xae \xe0\x82\x9b");
        clean(&mut line, start);
        let expected = b"before\x1bn\xc3\xbc\\x9b31m \xff \\u{202e} \xe0\\x82\\x9b";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let text = HOSTILE.replace('\n', "");
        for at in 0..text.len() {
            let mut out = Vec::new();
            let mut cleaner = Cleaner::new(&mut out, Style::Text);
            cleaner.write_all(&text.as_bytes()[..at]).unwrap();
            cleaner.write_all(&text.as_bytes()[at..]).unwrap();
            cleaner.write_all(b"\n").unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), SHOWN.replace("\\n", "") + "\n");
        }
    }

    #[test]
    fn a_carriage_return_passes_only_at_the_end_of_a_line() {
        let data = "a,b\r\nc\rd\r\r\n\r\u{9b}\r\n";
        let expected = "a,b\r\nc\\rd\\r\r\n\\r\\u{9b}\r\n";
        for at in 0..data.len() {
            let mut out = Vec::new();
            let mut cleaner = Cleaner::new(&mut out, Style::Text);
            cleaner.write_all(&data.as_bytes()[..at]).unwrap();
            cleaner.write_all(&data.as_bytes()[at..]).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{at}");
        }
    }

    #[test]
    fn json_says_the_same_behind_it() {
        let json = "{\n\"k\": \"\u{9b}\u{202e}\u{e0041}é\"}\n";
        let mut out = Vec::new();
        Cleaner::new(&mut out, Style::Json).write_all(json.as_bytes()).unwrap();
        let expected = "{\n\"k\": \"\\u009b\\u202e\\udb40\\udc41é\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
