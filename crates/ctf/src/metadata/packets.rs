// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata in packets [CTF 1.8.3 §7.1, CTF2-PMETA-1.0]: a header of 37 bytes (or
//! more, where its own header says so in version 2), then text, then padding.

use std::borrow::Cow;

use lateralis_model::Uuid;

use super::Diagnostic;

const MAGIC: u32 = 0x75d1_1d57;
const HEADER_BYTES: usize = 37;

/// The text inside packets, or the input itself if there are none.
#[derive(Debug, PartialEq, Eq)]
pub struct Unpacked<'a> {
    /// The text.
    pub text: Cow<'a, [u8]>,
    /// UUID of the packets.
    pub uuid: Option<Uuid>,
}

/// Takes metadata out of its packets.
///
/// A packet that is cut, compressed or encrypted ends the text there, with a diagnostic; a few
/// bytes after the last packet are ignored silently as long as they are zero or less than a header.
pub fn unpack<'a>(bytes: &'a [u8], diagnostics: &mut Vec<Diagnostic>) -> Unpacked<'a> {
    let magic = bytes.first_chunk::<4>();
    let little = match magic {
        Some(bytes) if u32::from_le_bytes(*bytes) == MAGIC => true,
        Some(bytes) if u32::from_be_bytes(*bytes) == MAGIC => false,
        _ => {
            return Unpacked { text: Cow::Borrowed(bytes), uuid: None };
        }
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut uuid = None;
    let mut offset = 0;
    while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
        match packet(rest, little) {
            Ok(packet) => {
                text.extend_from_slice(packet.content);
                uuid = uuid.or(Some(packet.uuid));
                offset += packet.size;
            }
            Err(reason) => {
                let trailing = rest.len() < HEADER_BYTES || rest.iter().all(|&byte| byte == 0);
                if offset == 0 || !trailing {
                    diagnostics.push(Diagnostic {
                        line: 0,
                        column: 0,
                        message: format!(
                            "metadata packet at byte {offset}: {reason}; the rest is not read"
                        ),
                    });
                }
                break;
            }
        }
    }
    Unpacked { text: Cow::Owned(text), uuid }
}

struct Packet<'a> {
    content: &'a [u8],
    size: usize,
    uuid: Uuid,
}

fn packet(bytes: &[u8], little: bool) -> Result<Packet<'_>, &'static str> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or("its header is cut")?;
    let word = |at: usize| {
        let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        if little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    };
    if word(0) != MAGIC {
        return Err("its magic number is wrong");
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&header[4..20]);
    let (content_bits, size_bits) = (word(24) as usize, word(28) as usize);
    let [compression, encryption, _checksum, major, _minor] =
        [header[32], header[33], header[34], header[35], header[36]];
    if compression != 0 {
        return Err("it is compressed");
    }
    if encryption != 0 {
        return Err("it is encrypted");
    }
    // Version 2 has a 38th byte and more: where the header ends in bits.
    let header_bytes = match (major, bytes.get(37..44)) {
        (2, Some(more)) => pmeta_header_bytes(more, little)?,
        _ => HEADER_BYTES,
    };
    let (content, size) = (content_bits / 8, size_bits / 8);
    if content < header_bytes || size < content {
        return Err("its sizes contradict each other");
    }
    let content = bytes.get(header_bytes..content).ok_or("it is cut")?;
    Ok(Packet { content, size, uuid: Uuid(uuid) })
}

/// Size of a CTF 2 packet header from the bytes after the 37 common ones: three
/// bytes of zero and a 32-bit number of bits.
fn pmeta_header_bytes(more: &[u8], little: bool) -> Result<usize, &'static str> {
    let [_, _, _, a, b, c, d] = *more else {
        return Ok(HEADER_BYTES);
    };
    let bits =
        if little { u32::from_le_bytes([a, b, c, d]) } else { u32::from_be_bytes([a, b, c, d]) };
    let bytes = bits as usize / 8;
    if bits % 8 != 0 || bytes < HEADER_BYTES + 7 {
        return Err("the size of its header is wrong");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &[u8], padding: usize) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([7; 16]);
        bytes.extend([0; 4]);
        let content = ((HEADER_BYTES + text.len()) * 8) as u32;
        bytes.extend(content.to_le_bytes());
        bytes.extend((content + padding as u32 * 8).to_le_bytes());
        bytes.extend([0, 0, 0, 1, 8]);
        bytes.extend(text);
        bytes.extend(vec![0; padding]);
        bytes
    }

    #[test]
    fn packets_are_joined_without_their_padding() {
        let mut bytes = packed(b"trace {", 5);
        bytes.extend(packed(b" };", 0));
        let mut diagnostics = Vec::new();
        let unpacked = unpack(&bytes, &mut diagnostics);
        assert_eq!(*unpacked.text, *b"trace { };");
        assert_eq!(unpacked.uuid, Some(Uuid([7; 16])));
        assert_eq!(diagnostics, []);
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        let unpacked = unpack(b"/* CTF 1.8 */", &mut Vec::new());
        assert_eq!(*unpacked.text, *b"/* CTF 1.8 */");
    }

    #[test]
    fn cut_anywhere_keeps_the_whole_packets() {
        let first = packed(b"one", 0);
        let mut bytes = first.clone();
        bytes.extend(packed(b"two", 0));
        for cut in 0..bytes.len() {
            let mut diagnostics = Vec::new();
            let text = unpack(&bytes[..cut], &mut diagnostics).text;
            if cut >= first.len() {
                assert_eq!(*text, *b"one", "cut at {cut}");
            } else if cut >= 4 {
                assert_eq!((text.len(), diagnostics.len()), (0, 1), "cut at {cut}");
            }
        }
    }
}
