// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a finished stream, of any source.

use crate::clock::ClockModel;
use crate::report;
use crate::stream::RingStream;

/// The report of a stream; `None` if it is empty. With the area id in hexadecimal, and the number of
/// the ring.
pub(super) fn stream_report(
    clock: &ClockModel,
    stream: &RingStream,
    (area_id, ring): (&str, u32),
    cpu: Option<u32>,
) -> Option<report::Stream> {
    let totals = *stream.totals();
    let silent = totals.packets == 0
        && totals.not_written == 0
        && totals.lost_packets == 0
        && totals.damaged_packets == 0
        && stream.losses().total() == 0;
    if silent {
        return None;
    }
    let intervals = stream.intervals().iter().map(|interval| report::LossInterval {
        from_ns: clock.utc_ns(interval.from),
        to_ns: clock.utc_ns(interval.to),
        lost: interval.lost.into(),
    });
    let damages = stream.damages().iter().map(|damage| report::Damage {
        packet_sequence: damage.sequence,
        dropped_bytes: damage.dropped_bytes,
        reason: damage.reason.clone(),
    });
    Some(report::Stream {
        files: Vec::new(),
        area_id: area_id.to_owned(),
        ring,
        cpu,
        packets: totals.packets,
        bytes: totals.bytes,
        events: totals.events,
        internal_events: totals.internal_events,
        lost: stream.losses().into(),
        intervals: intervals.collect(),
        lost_packets: totals.lost_packets,
        not_written: totals.not_written,
        damaged_packets: totals.damaged_packets,
        damages: damages.collect(),
        backward_steps: totals.backward_steps,
        unreadable: false,
    })
}

/// Events by name.
pub(super) mod count_events {
    use std::collections::BTreeMap;

    use crate::classes::RegisteredSchema;

    /// Names of events by id, with the internal ones.
    pub(in super::super) fn names(registered: &[RegisteredSchema]) -> BTreeMap<u32, String> {
        let mut names = BTreeMap::new();
        let internal = lateralis_pleco::internal_schema();
        for event in &internal.events {
            names.insert(event.index, internal.full_name(event));
        }
        for entry in registered {
            for event in &entry.schema.events {
                names.insert(entry.base_id + event.index, entry.schema.full_name(event));
            }
        }
        names
    }

    /// Adds counts by id to counts by name.
    pub(in super::super) fn add(
        events: &mut BTreeMap<String, u64>,
        counts: &[u64],
        names: &BTreeMap<u32, String>,
    ) {
        for (id, count) in counts.iter().enumerate() {
            if *count != 0
                && let Some(name) = names.get(&(id as u32))
            {
                *events.entry(name.clone()).or_insert(0) += count;
            }
        }
    }
}
