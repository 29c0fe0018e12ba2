// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the ends of JSON values without building them.
//!
//! An event can be read only as a whole, but a trace need not be: events are
//! found one after the other, so an array without its end, and events that are
//! damaged, cost only themselves.

/// What a text in UTF-8 may begin with.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// Why no value ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The text ends first.
    Truncated,
    /// This byte is not allowed here.
    Bad(usize),
}

/// First byte at or after `at` that is no blank.
pub fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    at + blanks.count()
}

/// First byte after the value that begins at `at`.
///
/// Cost: one step for each byte, no recursion.
pub fn skip_value(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    skip(bytes, at, skip_string)
}

/// The same where strings may hold any character but a quote.
pub fn skip_loose_value(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    skip(bytes, at, skip_loose_string)
}

#[inline]
fn skip(
    bytes: &[u8],
    at: usize,
    skip_string: impl Fn(&[u8], usize) -> Result<usize, Fault>,
) -> Result<usize, Fault> {
    let mut at = at;
    // Closing brackets that are still missing.
    let mut open: Vec<u8> = Vec::new();
    loop {
        let Some(&byte) = bytes.get(at) else { return Err(Fault::Truncated) };
        match byte {
            b'"' => at = skip_string(bytes, at)?,
            b'{' | b'[' => {
                open.push(byte + 2);
                at += 1;
            }
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    return Err(Fault::Bad(at));
                }
                at += 1;
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' if !open.is_empty() => at += 1,
            b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let scalar = bytes[at..].iter().take_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
                });
                at += scalar.count();
            }
            _ => return Err(Fault::Bad(at)),
        }
        if open.is_empty() {
            return Ok(at);
        }
    }
}

/// First byte after the string whose quote is at `at`. Characters below a blank are not allowed in
/// strings ([RFC 8259 §7]), so a missing quote is noticed at the end of the line.
pub fn skip_string(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            None => return Err(Fault::Truncated),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(0..=0x1f) => return Err(Fault::Bad(at)),
            Some(_) => at += 1,
        }
    }
}

fn skip_loose_string(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            None => return Err(Fault::Truncated),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_json_says() {
        for text in ["1.5e3", "\"a\\\"]\"", "{}", "[1,{\"a\":[]},\"}\"]", "null", "{\"a\": -1 }"] {
            let followed = format!("{text},next");
            assert_eq!(skip_value(followed.as_bytes(), 0), Ok(text.len()), "{text}");
        }
    }

    #[test]
    fn cuts_and_faults_are_told_apart() {
        assert_eq!(skip_value(b"{\"a\":1", 0), Err(Fault::Truncated));
        assert_eq!(skip_value(b"\"a\\", 0), Err(Fault::Truncated));
        assert_eq!(skip_value(b"{]", 0), Err(Fault::Bad(1)));
        assert_eq!(skip_value(b"{\"a\n\"}", 0), Err(Fault::Bad(3)));
        assert_eq!(skip_value(b"", 0), Err(Fault::Truncated));
    }
}
