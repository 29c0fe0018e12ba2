// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time until which processes were seen: a span that has not ended lasts at least until then.

use std::collections::{HashMap, HashSet};

use lateralis_model::{Interval, Source};
use lateralis_units::Nanos;

use crate::Recording;
use crate::facts::Facts;

/// If a trace has more packets than this (some hundred megabytes), only the last quarter is searched, so
/// that the time of an answer does not double for a result that rarely differs.
const PACKETS_MAX: u64 = 1 << 13;

/// Time of the last event of each of these processes in a range, which must be that of the first and the
/// last event, as far as it was found. Never too late.
///
/// Cost: events from the end back until all are found, at most twice the number of events; for a large
/// trace, half of them.
#[must_use]
pub fn last_seen(
    recording: &Recording,
    pids: &HashSet<u32>,
    (begin, end): (Nanos, Nanos),
) -> HashMap<u32, Nanos> {
    let mut seen = HashMap::new();
    let trace = recording.annotated();
    let packets: u64 = recording.streams.iter().map(|stream| stream.packets).sum();
    for share in [64, 16, 4, 1] {
        if pids.iter().all(|pid| seen.contains_key(pid)) {
            break;
        }
        if share == 1 && packets > PACKETS_MAX {
            break;
        }
        let length = end.since(begin).max(0) / share;
        let from = Nanos(end.0.saturating_sub(length).max(begin.0));
        let interval = Interval { begin: Some(from), end: Some(end) };
        let mut facts = Facts::new(&trace, &recording.streams);
        let mut events = recording.source.events_in(interval);
        while let Some(event) = events.next_event() {
            let mut until = event.time;
            let at = facts.of(&event, |at, fact| until = until.max(fact.lasts_until(at)));
            if let Some(writer) = at.writer.filter(|writer| pids.contains(&writer.pid)) {
                let last = seen.entry(writer.pid).or_insert(until);
                *last = until.max(*last);
            }
        }
    }
    seen
}
