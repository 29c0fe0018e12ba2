// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of a stream that can be decoded independently, in any order, and together give the same result
//! as decoding it from front to back.
//!
//! A PSB and the packets up to PSBEND contain everything that a decoder needs. The way up to a PSB
//! belongs to the part before, which therefore ends after the PSBEND of the next part.

use alloc::vec::Vec;
use core::ops::Range;

use crate::errata::Errata;
use crate::packet::{Packet, Packets, find_psb, synced};

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its PSB up to its PSBEND; empty for the first segment, which starts with an unknown state.
    pub(crate) head: Range<usize>,
    /// The part that is decoded, up to the end of the head of the next segment.
    pub(crate) body: Range<usize>,
    /// The PSB of the next segment.
    pub(crate) next: Option<usize>,
}

impl Segment {
    /// The bytes of its packets, including the head of the next segment.
    #[must_use]
    pub fn bytes(&self) -> Range<usize> {
        self.head.start..self.body.end
    }

    /// Its PSB up to its PSBEND; empty in the first segment of a part.
    #[must_use]
    pub fn head(&self) -> Range<usize> {
        self.head.clone()
    }

    /// The packets that are decoded with it, including the head of the next segment.
    #[must_use]
    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }

    /// The PSB of the next segment.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        self.next
    }
}

/// Divides a stream of a processor with these errata into segments of at least this many bytes, as far as
/// it has complete PSBs.
///
/// Cost: each byte is examined. Memory: proportional to segments.
#[must_use]
pub fn segments(bytes: &[u8], bytes_min: usize, errata: Errata) -> Vec<Segment> {
    segments_in(bytes, synced(bytes)..bytes.len(), bytes_min, errata)
}

/// Divides a part of a stream that begins at a packet. The first segment has no head: the decoder must
/// get the initial state from elsewhere.
///
/// Cost: each byte is examined. Memory: proportional to segments.
#[must_use]
pub fn segments_in(
    bytes: &[u8],
    part: Range<usize>,
    bytes_min: usize,
    errata: Errata,
) -> Vec<Segment> {
    let bytes = bytes.get(..part.end).unwrap_or(bytes);
    let begin = part.start.min(bytes.len());
    let mut all: Vec<Segment> = Vec::new();
    all.push(Segment { head: begin..begin, body: begin..bytes.len(), next: None });
    let mut from = begin.saturating_add(bytes_min.max(1));
    while let Some(at) = find_psb(bytes, from) {
        let Some(end) = whole_head(bytes, at, errata) else {
            from = at + 1;
            continue;
        };
        if let Some(last) = all.last_mut() {
            last.body.end = end;
            last.next = Some(at);
        }
        all.push(Segment { head: at..end, body: end..bytes.len(), next: None });
        from = end.max(at.saturating_add(bytes_min));
    }
    all
}

/// Position after its PSBEND if it is complete: has the mode and the address.
fn whole_head(bytes: &[u8], at: usize, errata: Errata) -> Option<usize> {
    /// More packets than there are kinds that may occur there.
    const PACKETS_MAX: usize = 64;
    let (mut has_mode, mut has_ip) = (false, false);
    let mut packets = Packets::new(bytes).with_errata(errata);
    packets.go_behind(at);
    for (number, found) in packets.take(PACKETS_MAX).enumerate() {
        let found = found.ok()?;
        match found.packet {
            Packet::Psb if number == 0 => {}
            Packet::Psb | Packet::Ovf => return None,
            Packet::ModeExec { .. } => has_mode = true,
            Packet::Fup(ip) => has_ip = ip.apply(0).is_some(),
            Packet::PsbEnd => return (has_mode && has_ip).then_some(found.end),
            _ => {}
        }
    }
    None
}
