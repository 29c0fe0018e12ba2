// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From bytes as they come to frames.

use crate::frame::{FRAME_HEADER_BYTES, Fault, Head, PREAMBLE_BYTES, Preamble, checksum};
use crate::message::Message;

/// Number of read bytes at which they are removed from the buffer.
const COMPACT_BYTES: usize = 1 << 16;

/// Accepts bytes in any pieces. Memory: one frame and the bytes fed after it.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    at: usize,
    body_bytes_max: u32,
    preamble: Option<Preamble>,
    fault: Option<Fault>,
}

impl Decoder {
    /// For frames whose bodies have at most this number of bytes.
    #[must_use]
    pub fn new(body_bytes_max: u32) -> Decoder {
        Decoder { buffer: Vec::new(), at: 0, body_bytes_max, preamble: None, fault: None }
    }

    /// Adds bytes from the peer. To be called when [`Decoder::next_message`] has nothing more.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        } else if self.at >= COMPACT_BYTES {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// What the peer said first; `None`: not all of it is here.
    pub fn preamble(&mut self) -> Result<Option<Preamble>, Fault> {
        if self.preamble.is_none() {
            let Some(first) = self.buffer.first_chunk::<PREAMBLE_BYTES>() else {
                let magic = Preamble::default().encode();
                let known = self.buffer.len().min(8);
                let wrong = self.buffer[..known] != magic[..known];
                return if wrong { Err(Fault::NoMagic) } else { Ok(None) };
            };
            self.preamble = Some(Preamble::decode(first)?);
            self.at = PREAMBLE_BYTES;
        }
        Ok(self.preamble)
    }

    /// The next message; `None`: more bytes are needed. Messages of unknown kinds are skipped.
    ///
    /// Errors: the same one from then on; what follows cannot be trusted.
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match self.advance() {
            Err(fault) => {
                self.fault = Some(fault.clone());
                Err(fault)
            }
            Ok(None) => Ok(None),
            Ok(Some((kind, begin, end))) => match Message::decode(kind, &self.buffer[begin..end]) {
                Some(message) => Ok(Some(message)),
                None => {
                    self.fault = Some(Fault::Malformed(kind));
                    Err(Fault::Malformed(kind))
                }
            },
        }
    }

    /// Whether a part of a frame is here: a peer that ends now has ended too early.
    #[must_use]
    pub fn is_inside_a_frame(&self) -> bool {
        self.at < self.buffer.len()
    }

    /// Kind and place of the body of the next frame of a known kind.
    fn advance(&mut self) -> Result<Option<(u16, usize, usize)>, Fault> {
        if self.preamble()?.is_none() {
            return Ok(None);
        }
        loop {
            let Some(bytes) = self.buffer[self.at..].first_chunk::<FRAME_HEADER_BYTES>() else {
                return Ok(None);
            };
            let head = Head::decode(bytes);
            if head.body_bytes > self.body_bytes_max {
                return Err(Fault::TooLong(head.body_bytes));
            }
            let begin = self.at + FRAME_HEADER_BYTES;
            let end = begin + head.body_bytes as usize;
            let Some(body) = self.buffer.get(begin..end) else { return Ok(None) };
            if checksum(bytes, &[body]) != head.checksum {
                return Err(Fault::Checksum);
            }
            self.at = end;
            if Message::knows(head.kind) {
                return Ok(Some((head.kind, begin, end)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{BODY_BYTES_MAX, frame_header};
    use crate::message::Message;

    fn stream() -> Vec<u8> {
        let mut bytes = Preamble::default().encode().to_vec();
        Message::Metadata(b"text").encode(&mut bytes);
        bytes.extend(frame_header(999, &[b"from the future"]));
        bytes.extend(b"from the future");
        Message::End { complete: true }.encode(&mut bytes);
        bytes
    }

    #[test]
    fn frames_come_whole_however_the_bytes_come() {
        let bytes = stream();
        for piece in [1, 2, 7, 1000] {
            let mut decoder = Decoder::new(BODY_BYTES_MAX);
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                decoder.feed(part);
                while let Some(message) = decoder.next_message().unwrap() {
                    found.push(format!("{message:?}"));
                }
            }
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(!decoder.is_inside_a_frame());
        }
    }

    #[test]
    fn what_was_changed_is_refused_for_good() {
        let mut bytes = stream();
        bytes[PREAMBLE_BYTES + FRAME_HEADER_BYTES] ^= 1;
        let mut decoder = Decoder::new(BODY_BYTES_MAX);
        decoder.feed(&bytes);
        assert_eq!(decoder.next_message(), Err(Fault::Checksum));
        assert_eq!(decoder.next_message(), Err(Fault::Checksum));
        let mut short = Decoder::new(3);
        short.feed(&stream());
        assert_eq!(short.next_message(), Err(Fault::TooLong(4)));
        let mut other = Decoder::new(3);
        other.feed(b"GET / HT");
        assert_eq!(other.next_message(), Err(Fault::NoMagic));
    }
}
