// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes over a serial line from a machine without an operating system.
//!
//! Arbitrary bytes are hardly ever a frame, so the input is a list of them, whose checksums are made here:
//! 4 bytes of kind, run, sequence and length, then the payload. A kind of 8 or more is bytes as they are.

use lateralis_recorder::serial::{
    Consumer, Decoder, Found, Frame, FrameKind, Hello, Receiver, RunEnd, encode,
};
use lateralis_recorder::small::{schemas_of, widen};
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::LossCounts;
use lateralis_ring::small::reference::{SmallBuilder, TEXT};
use lateralis_ring::small::{SmallPacketHeader, abi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads a line in two ways, in pieces and as a whole. Besides not panicking: both find the same; what was
/// sent is what came and what did not; packets of a core come in order, within their bounds; runs begin once
/// and end once.
pub fn check(input: &[u8]) {
    let line = line_of(input);
    let pieces: Vec<&[u8]> = line.chunks(7).collect();
    assert_eq!(frames(&[&line]), frames(&pieces));
    let (whole, in_pieces) = (receive(&[&line]), receive(&pieces));
    assert_eq!(whole.given, in_pieces.given);
    assert_eq!(whole.ended, in_pieces.ended);
    assert!(whole.open.is_empty());
}

/// The line encoded by an input.
fn line_of(input: &[u8]) -> Vec<u8> {
    let (mut line, mut rest) = (Vec::new(), input);
    while let Some(([kind, run, sequence, bytes], more)) = rest.split_first_chunk() {
        let (payload, more) = more.split_at(more.len().min(usize::from(*bytes)));
        rest = more;
        let kind = match kind {
            1 => FrameKind::Hello,
            2 => FrameKind::Text,
            3 => FrameKind::Packet,
            4 => FrameKind::Status,
            0..8 => FrameKind::Other(*kind),
            _ => {
                line.extend_from_slice(payload);
                continue;
            }
        };
        // Both ends of what 32 bits count.
        let sequence =
            if *sequence < 200 { u32::from(*sequence) } else { u32::MAX - u32::from(*sequence) };
        line.extend(encode(&Frame { kind, run: (*run).into(), sequence, payload }));
    }
    line
}

fn frames(pieces: &[&[u8]]) -> Vec<(u16, u32, Vec<u8>)> {
    let (mut decoder, mut found) = (Decoder::default(), Vec::new());
    let mut take = |one: Found<'_>| {
        if let Found::Frame(frame) = one {
            found.push((frame.run, frame.sequence, frame.payload.to_vec()));
        }
    };
    pieces.iter().for_each(|piece| decoder.feed(piece, &mut take));
    decoder.interrupt(&mut take);
    found
}

fn receive(pieces: &[&[u8]]) -> Checking {
    let (mut receiver, mut checking) = (Receiver::default(), Checking::default());
    for piece in pieces {
        receiver.feed(piece, &mut checking);
        let line = receiver.line();
        assert_eq!(line.sent, line.before + line.received + line.damaged + line.lost);
    }
    receiver.end(&mut checking);
    assert!(receiver.line().received as usize == frames(pieces).len());
    checking
}

#[derive(Default)]
struct Checking {
    /// Runs that have begun: the plan of their records, the next packet of each core.
    open: BTreeMap<u64, (Hello, RecordPlan, BTreeMap<u16, u64>)>,
    given: Vec<(u64, u16, u64, LossCounts)>,
    ended: Vec<(u64, RunEnd)>,
}

impl Consumer for Checking {
    fn begin(&mut self, run: u64, hello: &Hello, texts: &[&[u8]], last_chance: bool) -> bool {
        assert!(!self.open.contains_key(&run) && self.ended.iter().all(|(ended, _)| *ended != run));
        let compile = |text: &[u8]| {
            let schema = lateralis_pleco::compile("fuzzed.pleco", text).schema?;
            let hash = schema.hash();
            Some((Arc::new(schema), hash))
        };
        let known: Vec<_> = texts
            .iter()
            .filter_map(|text| {
                let (schema, hash) = compile(text)?;
                Some(lateralis_recorder::classes::RegisteredSchema { base_id: 0, schema, hash })
            })
            .collect();
        let (found, _) = schemas_of(&hello.schemas, &[], &known, compile);
        if found.len() < hello.schemas.len() && !last_chance {
            return false;
        }
        let mut plan = RecordPlan::new(hello.header.swapped);
        found.iter().for_each(|entry| plan.add(entry.base_id, &entry.schema));
        self.open.insert(run, (hello.clone(), plan, BTreeMap::new()));
        true
    }

    fn packet(
        &mut self,
        run: u64,
        packet: &SmallPacketHeader,
        records: &[u8],
        lost: LossCounts,
        missing: u64,
    ) {
        let Some((hello, plan, next)) = self.open.get_mut(&run) else { panic!("it has not begun") };
        let bytes = records.len() + abi::PACKET_HEADER_BYTES as usize;
        assert!(packet.core < hello.header.core_count);
        assert!(bytes <= hello.header.packet_bytes as usize && bytes.is_multiple_of(8));
        let expected = next.insert(packet.core, packet.sequence + 1);
        assert!(expected.is_none_or(|next| next + missing == packet.sequence));
        let mut records = records.to_vec();
        let widened = widen(&mut records, packet.begin, 0, hello.header.time_bits, plan);
        assert!(widened.slack < 8 && widened.last_time >= packet.begin);
        self.given.push((run, packet.core, packet.sequence, lost));
    }

    fn end(&mut self, run: u64, end: &RunEnd) {
        assert_eq!(self.open.remove(&run).is_some(), end.has_begun);
        self.ended.push((run, end.clone()));
    }
}

/// Lines of both byte orders: a late packet, introductions, packets of two cores, text between them, a reset.
pub fn good() -> Vec<Vec<u8>> {
    let hash =
        lateralis_pleco::compile("good.pleco", TEXT.as_bytes()).schema.map(|schema| schema.hash());
    [false, true].map(|swapped| good_line(swapped, hash.unwrap_or_default())).to_vec()
}

fn good_line(swapped: bool, hash: u64) -> Vec<u8> {
    let mut made = SmallBuilder::new(swapped, 32, 0, hash);
    let mut input = Vec::new();
    let mut put = |kind: u8, sequence: u8, payload: &[u8]| {
        input.extend([kind, 7, sequence, payload.len() as u8]);
        input.extend_from_slice(payload);
    };
    let text_at = made.bytes.len() - TEXT.len();
    let descriptor = text_at - abi::SCHEMA_BYTES as usize..text_at;
    let mut hello = vec![1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    hello.extend(&made.bytes[..abi::HEADER_BYTES as usize]);
    hello.extend(&made.bytes[descriptor]);
    let packets: Vec<Vec<u8>> = (0..4u64)
        .map(|n| {
            let (core, sequence) = (n as usize % 2, n / 2);
            let records: [(u16, u64, &[u8]); 2] =
                [(16, 10 * n, &[1, 0, 0, 0]), (17, 10 * n + 5, b"text\0")];
            made.packet(core, sequence, 10 * n, [n as u32; 3], &records, false);
            let at = SmallBuilder::packet_at(core, sequence);
            made.bytes[at..at + 64].to_vec()
        })
        .collect();
    let status = [0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    let (first, second) = TEXT.as_bytes().split_at(TEXT.len() / 2);
    let piece = |offset: usize, text: &[u8]| [&[0, 0, 0, 0, offset as u8, 0, 0, 0], text].concat();
    put(3, 1, &packets[0]);
    put(1, 2, &hello);
    put(2, 3, &piece(0, first));
    put(3, 4, &packets[1]);
    put(2, 5, &piece(first.len(), second));
    put(9, 0, b"text of a program\r\n");
    put(3, 6, &packets[2]);
    put(3, 8, &packets[3]);
    put(4, 9, &status);
    put(1, 0, &hello);
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_lines_have_what_is_looked_for() {
        for input in good() {
            check(&input);
            let seen = receive(&[&line_of(&input)]);
            let packets: Vec<_> =
                seen.given.iter().map(|given| (given.0, given.1, given.2)).collect();
            assert_eq!(packets, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]);
            assert_eq!(seen.ended.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(seen.ended[0].1.line.lost, 1);
        }
    }
}
