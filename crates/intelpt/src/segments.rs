// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of a stream that can be decoded each on its own, in any order, and together give what decoding it
//! from front to back gives.
//!
//! A PSB and what follows it up to PSBEND say everything that a decoder needs. What leads up to it belongs to
//! the part before: so that ends behind the PSBEND of the next one.

use alloc::vec::Vec;
use core::ops::Range;

use crate::errata::Errata;
use crate::packet::{Packet, Packets, find_psb, synced};

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its PSB up to its PSBEND; nothing of the first segment, which begins with nothing known.
    pub(crate) head: Range<usize>,
    /// What is decoded, up to behind the head of the next one.
    pub(crate) body: Range<usize>,
    /// The PSB of the next one.
    pub(crate) next: Option<usize>,
}

impl Segment {
    /// The bytes of its packets, the head of the next segment among them.
    #[must_use]
    pub fn bytes(&self) -> Range<usize> {
        self.head.start..self.body.end
    }

    /// Its PSB up to its PSBEND; empty in the first segment of a part.
    #[must_use]
    pub fn head(&self) -> Range<usize> {
        self.head.clone()
    }

    /// The packets that are decoded with it, the head of the next segment among them.
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

/// Divides a stream of a processor with these errata into segments of at least this many bytes, as far as it
/// has whole PSBs.
///
/// Cost: a look at each byte. Memory: by segments.
#[must_use]
pub fn segments(bytes: &[u8], bytes_min: usize, errata: Errata) -> Vec<Segment> {
    segments_in(bytes, synced(bytes)..bytes.len(), bytes_min, errata)
}

/// Divides a part of a stream, which begins at a packet. The first segment has no head: a decoder has to know
/// from elsewhere where the processor is.
///
/// Cost: a look at each byte. Memory: by segments.
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

/// Behind its PSBEND, where everything is there: the mode and the address.
fn whole_head(bytes: &[u8], at: usize, errata: Errata) -> Option<usize> {
    /// More packets than there are kinds that may stand there.
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
