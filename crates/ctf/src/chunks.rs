// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams whose packets lie in several files: chunks of a rotated recording, and
//! snapshots, which overlap.

use crate::packets::Found;
use crate::reader::StreamFile;

/// Orders the packets of one stream; `parts` are those of its files, none empty.
///
/// A flight recorder writes what its rings hold each time it is asked, so one packet
/// may lie in several snapshots: it counts once. Packets are the same if their number,
/// times and sizes are, and in streams without numbers if all their bytes are.
///
/// Cost: files that follow each other are joined as they are. Those that overlap are
/// sorted by the beginning of their packets.
pub fn join(mut parts: Vec<Vec<Found>>, files: &[StreamFile]) -> Vec<Found> {
    if let [_] = parts.as_slice() {
        return parts.remove(0);
    }
    parts.sort_by_key(|packets| packets[0].packet.begin);
    let overlap = parts.windows(2).any(|pair| {
        let last = pair[0].last().and_then(|found| found.packet.begin);
        pair[1][0].packet.begin <= last
    });
    let mut packets: Vec<Found> = parts.into_iter().flatten().collect();
    if overlap && packets.iter().all(|found| found.packet.begin.is_some()) {
        packets.sort_by_key(|found| {
            let packet = &found.packet;
            (packet.begin, packet.sequence, packet.end)
        });
        packets.dedup_by(|again, first| same(again, first, files));
    }
    packets
}

fn same(again: &Found, first: &Found, files: &[StreamFile]) -> bool {
    let (a, b) = (&again.packet, &first.packet);
    let alike = a.file != b.file
        && (a.begin, a.end, a.sequence) == (b.begin, b.end, b.sequence)
        && (a.size_bytes, a.content_bits) == (b.size_bytes, b.content_bits);
    alike && (a.sequence.is_some() || bytes(again, files) == bytes(first, files))
}

fn bytes<'a>(found: &Found, files: &'a [StreamFile]) -> Option<&'a [u8]> {
    let packet = &found.packet;
    let begin = usize::try_from(packet.offset_bytes).ok()?;
    let end = begin.checked_add(usize::try_from(packet.size_bytes).ok()?)?;
    (*files.get(packet.file as usize)?.bytes).as_ref().get(begin..end)
}
