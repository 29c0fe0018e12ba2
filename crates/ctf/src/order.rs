// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a stream that do not lie in the order of time.

use crate::packets::Found;

/// Reports each packet that begins before its predecessor in the file, and puts all packets in the
/// order of time where everything they say agrees on one: each ends before the next begins, and
/// numbers ascend. Where it does not (a clock that starts again, damaged times), they stay as
/// they lie.
///
/// Cost: a comparison for each packet; those of a stream in disorder are sorted.
pub fn put_in_order(packets: &mut Vec<Found>, mut tell: impl FnMut(&Found)) {
    let mut before = None;
    let mut is_disordered = false;
    for found in packets.iter() {
        let begin = found.packet.begin;
        if begin.is_some() && begin < before {
            tell(found);
            is_disordered = true;
        }
        before = begin.or(before);
    }
    if !is_disordered {
        return;
    }
    let mut sorted: Vec<usize> = (0..packets.len()).collect();
    sorted.sort_by_key(|&index| packets[index].packet.begin);
    let follows = |pair: &[usize]| {
        let (before, behind) = (&packets[pair[0]].packet, &packets[pair[1]].packet);
        let ends = before.end.zip(behind.begin).is_some_and(|(end, begin)| end <= begin);
        ends && before.sequence.zip(behind.sequence).is_none_or(|(before, behind)| before < behind)
    };
    if sorted.windows(2).all(follows) {
        *packets = sorted.iter().map(|&index| packets[index].clone()).collect();
    }
}
