// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the counters in the packets of a stream say was lost.

use lateralis_model::{Interval, Loss, LossCause, Packet, StreamIndex};
use lateralis_units::{Nanos, Ticks};

use crate::packets::{Found, LOSS_CAUSES};

/// What the counters of the packets of one stream say was lost, in the order of
/// the packets.
///
/// Counters are cumulative. Where the stream was recorded from its beginning
/// (its first packet has number 0, or the trace is of Lateralis) they count from
/// zero, else from their first value: what was lost before is unknown.
pub fn count(
    stream: StreamIndex,
    packets: &[Found],
    lateralis: bool,
    nanos: &dyn Fn(Option<Ticks>) -> Option<Nanos>,
    out: &mut Vec<Loss>,
) {
    let Some(first) = packets.first() else { return };
    let from_start = lateralis || first.packet.sequence == Some(0);
    let mut discarded = if from_start { Some(0) } else { first.packet.discarded };
    let mut lost = if from_start { Some([0; 4]) } else { first.lost };
    let mut previous: Option<&Packet> = None;
    for found in packets {
        let packet = &found.packet;
        let begin = previous.map_or(packet.begin, |packet| packet.end);
        let interval = Interval { begin: nanos(begin), end: nanos(packet.end) };
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
            push(LossCause::Discarded, count.saturating_sub(explained));
        }
        if let Some(number) = packet.sequence {
            let expected = match previous {
                Some(previous) => previous.sequence.map(|number| number.saturating_add(1)),
                None if lateralis => Some(0),
                None => None,
            };
            let missing = expected.map_or(0, |expected| number.saturating_sub(expected));
            if missing > 0 {
                let end = nanos(packet.begin);
                let interval = Interval { end, ..interval };
                let count = Some(missing);
                out.push(Loss { stream, cause: LossCause::Packets, count, interval });
            }
        }
        discarded = packet.discarded.or(discarded);
        lost = found.lost.or(lost);
        previous = Some(packet);
    }
}
