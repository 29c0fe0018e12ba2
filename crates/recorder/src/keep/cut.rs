// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cuts the part of a packet that lies in a window of time.

use lateralis_ring::{Chunk, abi};

use super::Held;
use crate::stream::PREFIX_BYTES;
use crate::walk::RecordPlan;

/// The cut part of a packet, for [`RingStream::seal`].
///
/// [`RingStream::seal`]: crate::stream::RingStream::seal
#[derive(Debug, Clone)]
pub struct Cut {
    /// Its records, in the buffer from [`PREFIX_BYTES`] on.
    pub chunk: Chunk,
    /// Time of the first remaining record, and the preceding WRITER, if records before it were cut.
    pub begins: Option<(u64, Option<[u8; 8]>)>,
    /// Times of the first and the last remaining record of a schema.
    pub events: Option<(u64, u64)>,
}

/// Copies the records from `from` to `to`, both included, to `buffer`, which grows if needed.
/// `None` if the packet has nothing in that time: no records, and no losses.
///
/// Cost: a walk over the records, and a copy.
pub fn cut(
    plan: &RecordPlan,
    packet: &Held,
    (from, to): (u64, u64),
    buffer: &mut Vec<u8>,
) -> Option<Cut> {
    let header = &packet.header;
    if header.timestamp_end < from || header.timestamp_begin > to {
        return None;
    }
    let slack = header.packet_bits.saturating_sub(header.content_bits) / 8;
    let (mut start, mut end) = (None, 0);
    let mut last_end = 0;
    let mut writer = None;
    let mut begin_time = 0;
    let mut events: Option<(u64, u64)> = None;
    for record in plan.records(&packet.records, slack, header.timestamp_begin) {
        if record.time > to {
            break;
        }
        let is_writer = u32::from(record.id) == u32::from(abi::ID_WRITER);
        if record.time < from {
            if is_writer {
                let at = record.at + abi::RECORD_HEADER_BYTES as usize;
                let payload = packet.records.get(at..at + 8);
                writer = payload.and_then(|payload| payload.try_into().ok());
            }
            continue;
        }
        if start.is_none() {
            start = Some(record.at);
            begin_time = record.time;
        }
        if u32::from(record.id) >= abi::INTERNAL_EVENT_COUNT {
            events = Some((events.map_or(record.time, |(first, _)| first), record.time));
        }
        end = record.next().min(packet.records.len());
        last_end = record.end;
    }
    let first = start.unwrap_or(0);
    let is_whole_front = first == 0;
    if start.is_none() && !packet.records.is_empty() {
        return None;
    }
    let records = &packet.records[first..end.max(first)];
    if buffer.len() < PREFIX_BYTES + records.len() {
        buffer.resize(PREFIX_BYTES + records.len(), 0);
    }
    buffer[PREFIX_BYTES..PREFIX_BYTES + records.len()].copy_from_slice(records);
    let mut cut_header = *header;
    cut_header.timestamp_begin = header.timestamp_begin.max(from);
    cut_header.timestamp_end = header.timestamp_end.min(to);
    let head = abi::PACKET_HEADER_BYTES;
    let chunk = Chunk {
        sequence: header.sequence,
        from: if is_whole_front { head } else { head + first as u64 },
        bytes: records.len() as u64,
        slack: end.saturating_sub(last_end) as u64,
        closed: true,
        header: cut_header,
    };
    let begins = (!is_whole_front).then_some((begin_time, writer));
    Some(Cut { chunk, begins, events })
}
