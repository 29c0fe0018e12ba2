// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text with the escapes of babeltrace2.

use super::pen::Pen;
use super::wide::first_special;

/// Bytes that are looked at and copied together.
const BLOCK: usize = 16;

/// Appends the first `length` of `bytes`, up to the first zero byte. Additional bytes after them
/// avoid a copy.
#[inline(always)]
pub(super) fn escaped(pen: &mut Pen<'_>, bytes: &[u8], length: usize) {
    let mut rest = bytes;
    let mut left = length.min(bytes.len());
    while left > 0 {
        let block = match rest.first_chunk::<BLOCK>() {
            Some(block) => *block,
            None => padded(rest),
        };
        let first = first_special(&block);
        if first >= left.min(BLOCK) {
            pen.put(&block, left);
            if left <= BLOCK {
                break;
            }
            rest = &rest[BLOCK..];
            left -= BLOCK;
            continue;
        }
        // Most characters are unchanged.
        pen.put(&block, first);
        let byte = block[first];
        if byte == 0 {
            break;
        }
        let (escape, used) = escape(byte);
        pen.put(&escape, used);
        rest = &rest[first + 1..];
        left -= first + 1;
    }
}

/// Less than a block, padded with blanks.
#[inline(never)]
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    for (to, &byte) in block.iter_mut().zip(rest) {
        *to = byte;
    }
    block
}

/// Replacement of an escaped byte, and its length.
#[cold]
#[inline(never)]
fn escape(byte: u8) -> ([u8; 4], usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        7 => b'a',
        8 => b'b',
        0x1b => b'e',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0b => b'v',
        0x00..=0x1f | 0x7f => {
            let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
            return ([b'\\', b'x', digits[0], digits[1]], 4);
        }
        _ => byte,
    };
    ([b'\\', letter, 0, 0], 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut pen = Pen::new(&mut out);
        escaped(&mut pen, bytes, length);
        pen.finish();
        out
    }

    /// The same, byte by byte.
    fn slow(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &byte in text.iter().take_while(|&&byte| byte != 0) {
            match byte {
                7 => out.extend_from_slice(b"\\a"),
                8 => out.extend_from_slice(b"\\b"),
                9 => out.extend_from_slice(b"\\t"),
                10 => out.extend_from_slice(b"\\n"),
                11 => out.extend_from_slice(b"\\v"),
                12 => out.extend_from_slice(b"\\f"),
                13 => out.extend_from_slice(b"\\r"),
                27 => out.extend_from_slice(b"\\e"),
                b'\\' | b'\'' | b'"' | b'?' => out.extend_from_slice(&[b'\\', byte]),
                0..32 | 127 => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                _ => out.push(byte),
            }
        }
        out
    }

    #[test]
    fn every_byte_at_every_place_is_escaped_if_it_must_be() {
        for byte in 0..=255u8 {
            for place in 0..40 {
                let mut text = [b'a'; 40];
                text[place] = byte;
                for length in [place, place + 1, 40] {
                    assert_eq!(of(&text, length), slow(&text[..length]), "{byte:#x} at {place}");
                    assert_eq!(of(&text[..length], length), slow(&text[..length]));
                }
            }
        }
        assert_eq!(of(b"12345678\n9\"\x01?\0x", 15), br#"12345678\n9\"\x01\?"#);
        assert_eq!(of(b"cut", 9), b"cut");
    }

    #[test]
    fn any_text_of_any_length() {
        let mut seed = 5u64;
        for turn in 0..20_000 {
            let mut text = [0; 50];
            for byte in &mut text {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // One in this number is special.
                let rare = (seed >> 8).is_multiple_of(turn % 60 + 1);
                *byte = if rare { seed as u8 } else { b'A' + (seed % 26) as u8 };
            }
            let length = (seed >> 32) as usize % 51;
            assert_eq!(of(&text, length), slow(&text[..length]));
            assert_eq!(of(&text[..length], length), slow(&text[..length]));
        }
    }
}
