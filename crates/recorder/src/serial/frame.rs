// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames on a line: COBS between zeros, header, checksum.

use lateralis_ring::small::abi;

/// `version` of a frame.
pub const VERSION: u8 = 1;
const HEAD_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;
/// Maximum size of a payload: a packet.
pub const PAYLOAD_BYTES_MAX: usize = *abi::PACKET_BYTES_RANGE.end() as usize;
/// Maximum size of the content of a frame.
pub const CONTENT_BYTES_MAX: usize = HEAD_BYTES + PAYLOAD_BYTES_MAX + CHECKSUM_BYTES;
/// Maximum number of bytes covered by one COBS code, without the zero [Cheshire & Baker 1999].
const RUN_MAX: usize = 254;
/// Maximum size of a block: a code for each run of 254 bytes, and one more.
const BLOCK_BYTES_MAX: usize = CONTENT_BYTES_MAX + CONTENT_BYTES_MAX / RUN_MAX + 1;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Description of the packets.
    Hello,
    /// A part of the text of a schema.
    Text,
    /// A packet.
    Packet,
    /// Counters of a core.
    Status,
    /// A kind of a newer sender, which is counted and ignored.
    Other(u8),
}

impl FrameKind {
    fn from_byte(byte: u8) -> FrameKind {
        match byte {
            1 => FrameKind::Hello,
            2 => FrameKind::Text,
            3 => FrameKind::Packet,
            4 => FrameKind::Status,
            other => FrameKind::Other(other),
        }
    }

    fn byte(self) -> u8 {
        match self {
            FrameKind::Hello => 1,
            FrameKind::Text => 2,
            FrameKind::Packet => 3,
            FrameKind::Status => 4,
            FrameKind::Other(byte) => byte,
        }
    }
}

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: FrameKind,
    /// Number of the program's run, as far as the program can distinguish its runs.
    pub run: u16,
    /// Its sequence number in the run, modulo 2^32.
    pub sequence: u32,
    /// Its payload, at most [`PAYLOAD_BYTES_MAX`].
    pub payload: &'a [u8],
}

/// The bytes between two zeros of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Not a frame: a damaged one, or other text on the line.
    Damage,
}

/// Finds frames in a byte stream. Memory: one frame.
#[derive(Debug, Default)]
pub struct Decoder {
    block: Vec<u8>,
}

impl Decoder {
    /// Processes received bytes. Cost: a few steps for each.
    pub fn feed(&mut self, bytes: &[u8], take: &mut dyn FnMut(Found<'_>)) {
        let mut pieces = bytes.split(|byte| *byte == 0);
        if let Some(first) = pieces.next() {
            self.add(first);
        }
        for piece in pieces {
            self.end(take);
            self.add(piece);
        }
    }

    /// Ends an interrupted line: the bytes since the last zero are not a frame.
    pub fn interrupt(&mut self, take: &mut dyn FnMut(Found<'_>)) {
        // Except a frame that lacks only its last zero, which also ends here.
        self.end(take);
    }

    fn add(&mut self, piece: &[u8]) {
        // One byte more than the maximum marks it as invalid.
        let room = (BLOCK_BYTES_MAX + 1).saturating_sub(self.block.len());
        self.block.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn end(&mut self, take: &mut dyn FnMut(Found<'_>)) {
        if self.block.is_empty() {
            return;
        }
        take(match decode(&mut self.block) {
            Some(frame) => Found::Frame(frame),
            None => Found::Damage,
        });
        self.block.clear();
    }
}

/// Decodes the frame of a block; COBS is decoded in place.
fn decode(block: &mut [u8]) -> Option<Frame<'_>> {
    if block.len() > BLOCK_BYTES_MAX {
        return None;
    }
    // The decoded part is never longer than the consumed part of the block.
    let (mut from, mut to) = (0, 0);
    while from < block.len() {
        let code = usize::from(block[from]);
        let run = from + 1..from + code;
        if code == 0 || run.end > block.len() {
            return None;
        }
        let bytes = run.len();
        block.copy_within(run.clone(), to);
        to += bytes;
        from = run.end;
        if bytes < RUN_MAX && from < block.len() {
            block[to] = 0;
            to += 1;
        }
    }
    let content = &block[..to];
    let (rest, checksum) = content.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (head, payload) = rest.split_first_chunk::<HEAD_BYTES>()?;
    let [version, kind, run0, run1, sequence @ ..] = *head;
    let is_whole = version == VERSION
        && payload.len() <= PAYLOAD_BYTES_MAX
        && crc32c::crc32c(rest) == u32::from_le_bytes(*checksum);
    is_whole.then(|| Frame {
        kind: FrameKind::from_byte(kind),
        run: u16::from_le_bytes([run0, run1]),
        sequence: u32::from_le_bytes(sequence),
        payload,
    })
}

/// The bytes of a frame on a line, with the surrounding zeros, as sent by `tracer/c/small/serial.c`.
pub fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut content = vec![VERSION, frame.kind.byte()];
    content.extend(frame.run.to_le_bytes());
    content.extend(frame.sequence.to_le_bytes());
    content.extend(frame.payload);
    content.extend(crc32c::crc32c(&content).to_le_bytes());
    let mut line = vec![0];
    for run in content.split(|byte| *byte == 0) {
        let mut rest = run;
        while let Some((full, more)) = rest.split_at_checked(RUN_MAX) {
            line.push(u8::MAX);
            line.extend(full);
            rest = more;
        }
        line.push(rest.len() as u8 + 1);
        line.extend(rest);
    }
    line.push(0);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds bytes to a decoder in pieces of this length; returns sequence numbers and payloads.
    fn found(bytes: &[u8], pieces: usize) -> Vec<(u32, Vec<u8>)> {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        let mut take = |found: Found<'_>| {
            if let Found::Frame(frame) = found {
                frames.push((frame.sequence, frame.payload.to_vec()));
            }
        };
        bytes.chunks(pieces.max(1)).for_each(|piece| decoder.feed(piece, &mut take));
        decoder.interrupt(&mut take);
        frames
    }

    fn frame(sequence: u32, payload: &[u8]) -> Vec<u8> {
        encode(&Frame { kind: FrameKind::Packet, run: 7, sequence, payload })
    }

    /// Frames of all lengths and with many zeros, like packets.
    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let byte = prop_oneof![3 => Just(0u8), 1 => any::<u8>(), 1 => Just(0xffu8)];
        let one = prop_oneof![
            proptest::collection::vec(byte, 0..80),
            proptest::collection::vec(1..=u8::MAX, 240..270),
        ];
        proptest::collection::vec(one, 1..12)
    }

    #[test]
    fn the_examples_of_the_paper_and_the_edges_of_a_run() {
        // Figure 3 of the paper, and lengths around one and two runs of 254 bytes without a zero.
        for length in (0..600).chain([PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX]) {
            for byte in [0, 0x45] {
                let payload = vec![byte; length];
                let line = frame(3, &payload);
                assert_eq!(found(&line, 77), [(3, payload)], "{length} bytes of {byte}");
                assert!(line[1..line.len() - 1].iter().all(|byte| *byte != 0));
                assert!(line.len() <= BLOCK_BYTES_MAX + 2);
            }
        }
        let too_long = vec![1; PAYLOAD_BYTES_MAX + 1];
        assert_eq!(found(&frame(3, &too_long), 1000), []);
    }

    #[test]
    fn memory_is_bounded_and_an_endless_block_is_one_damage() {
        let (mut decoder, mut damage) = (Decoder::default(), 0);
        let mut take = |found: Found<'_>| damage += u32::from(found == Found::Damage);
        for _ in 0..1000 {
            decoder.feed(&[0xff; 4096], &mut take);
        }
        assert!(decoder.block.capacity() <= 2 * BLOCK_BYTES_MAX + 4096);
        decoder.feed(&[0], &mut take);
        assert_eq!(damage, 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            pieces in 1usize..99,
        ) {
            found(&bytes, pieces);
        }

        #[test]
        fn whole_frames_are_found_however_they_are_cut(payloads in payloads(), pieces in 1usize..99) {
            let line: Vec<u8> = (0..).zip(&payloads).flat_map(|(n, payload)| frame(n, payload)).collect();
            let expected: Vec<_> = (0..).zip(payloads).collect();
            prop_assert_eq!(found(&line, pieces), expected);
        }

        /// A frame whose bytes and adjacent zeros are intact is found, whatever happens to other bytes,
        /// and no frame is found that was not sent.
        #[test]
        fn damage_costs_the_frames_that_it_touches(
            payloads in payloads(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..6),
            noise in proptest::collection::vec(1..=u8::MAX, 0..40),
        ) {
            let mut line: Vec<(u8, usize)> = Vec::new();
            for (n, payload) in payloads.iter().enumerate() {
                line.extend(frame(n as u32, payload).into_iter().map(|byte| (byte, n)));
            }
            let mut hit = vec![false; payloads.len()];
            for (place, byte, what) in changes {
                if line.is_empty() { break }
                let at = place.index(line.len());
                let touched = line[at].1;
                match what {
                    0 => if line[at].0 != byte { hit[touched] = true; line[at].0 = byte },
                    1 => { hit[touched] = true; line.remove(at); }
                    _ => {
                        // An insertion before a frame's first zero only affects the preceding bytes.
                        line.insert(at, (byte, touched));
                        hit[touched] = true;
                        if let Some(before) = at.checked_sub(1) { hit[line[before].1] = true }
                    }
                }
            }
            // Text before and after.
            let line: Vec<u8> = line.into_iter().map(|(byte, _)| byte).collect();
            let line = [&noise[..], &line, &noise].concat();
            let got = found(&line, 13);
            for (n, payload) in payloads.iter().enumerate() {
                let is_there = got.iter().any(|(sequence, bytes)| *sequence == n as u32 && bytes == payload);
                prop_assert!(is_there || hit[n], "frame {n} of {} is lost", payloads.len());
            }
            for (sequence, payload) in &got {
                prop_assert_eq!(Some(payload), payloads.get(*sequence as usize));
            }
        }
    }
}
