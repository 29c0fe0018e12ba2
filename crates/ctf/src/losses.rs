// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the counters in the packets of a stream say was lost.

use std::collections::BTreeMap;

use lateralis_model::{Interval, Loss, LossCause, Packet, StreamIndex};
use lateralis_units::{Nanos, Ticks};

use crate::packets::{Found, LOSS_CAUSES};

/// What was before a packet whose predecessor is read from another recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before {
    /// Number of the packet before it.
    pub sequence: Option<u64>,
    /// Counter of all losses.
    pub discarded: Option<u64>,
    /// Counters by cause.
    pub lost: Option<[u64; 4]>,
}

/// What the counters of the packets of one stream say was lost, in the order of
/// the packets; `befores` by number of the packet.
///
/// Counters are cumulative. If the stream was recorded from its start (its first packet has number
/// 0, or the trace is of Lateralis) they count from zero. Otherwise the parts of their first value
/// lost before the recording and in its first packet are unknown: an unknown number of events may
/// be missing in that packet.
pub fn count(
    stream: StreamIndex,
    packets: &[Found],
    befores: &BTreeMap<usize, Before>,
    lateralis: bool,
    nanos: &dyn Fn(Option<Ticks>) -> Option<Nanos>,
    out: &mut Vec<Loss>,
) {
    let Some(first) = packets.first() else { return };
    let from_start = lateralis || first.packet.sequence == Some(0);
    let mut discarded = if from_start { Some(0) } else { first.packet.discarded };
    let mut lost = if from_start { Some([0; 4]) } else { first.lost };
    let mut previous: Option<&Packet> = None;
    for (number, found) in packets.iter().enumerate() {
        let packet = &found.packet;
        let before = befores.get(&number);
        if let Some(before) = before {
            discarded = before.discarded.or(discarded);
            lost = before.lost.or(lost);
        }
        let begin = previous.map_or(packet.begin, |packet| packet.end);
        let since = nanos(begin);
        let interval = Interval { begin: since, end: nanos(packet.end) }.ordered();
        let mut push = |cause, count: u64| {
            if count > 0 {
                out.push(Loss { stream, cause, count: Some(count), interval });
            }
        };
        let mut explained = 0u64;
        if let (Some(before), Some(now)) = (lost, found.lost) {
            for (index, cause) in LOSS_CAUSES.into_iter().enumerate() {
                let count = now[index].saturating_sub(before[index]);
                explained = count.saturating_add(explained);
                push(cause, count);
            }
        }
        if let (Some(before), Some(now)) = (discarded, packet.discarded) {
            let count = now.saturating_sub(before);
            // A recorder of Lateralis adds to the sum of the causes what it could not write.
            let rest = if lateralis { LossCause::NotWritten } else { LossCause::Discarded };
            push(rest, count.saturating_sub(explained));
        }
        if let Some(number) = packet.sequence {
            let expected = match previous {
                _ if before.is_some_and(|before| before.sequence.is_some()) => {
                    before.and_then(|before| before.sequence?.checked_add(1))
                }
                Some(previous) => previous.sequence.map(|number| number.saturating_add(1)),
                None if lateralis => Some(0),
                None => None,
            };
            let missing = expected.map_or(0, |expected| number.saturating_sub(expected));
            if missing > 0 {
                let end = nanos(packet.begin);
                let interval = Interval { begin: since, end }.ordered();
                let count = Some(missing);
                out.push(Loss { stream, cause: LossCause::Packets, count, interval });
            }
        }
        let has_lost = packet.discarded.is_some_and(|count| count > 0);
        if previous.is_none() && !from_start && before.is_none() && has_lost {
            out.push(Loss { stream, cause: LossCause::Discarded, count: None, interval });
        }
        discarded = packet.discarded.or(discarded);
        lost = found.lost.or(lost);
        previous = Some(packet);
    }
}
