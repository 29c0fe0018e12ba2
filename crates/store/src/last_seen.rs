// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Until when processes were seen: a span that has not ended lasts at least until then.

use std::collections::{HashMap, HashSet};

use lateralis_model::{Interval, Source};
use lateralis_units::Nanos;

use crate::Recording;
use crate::facts::Facts;

/// Of a trace with more packets than this (some hundred megabytes) only the last quarter is looked
/// through, so that no answer takes twice as long for what is rarely different.
const PACKETS_MAX: u64 = 1 << 13;

/// When each of these processes did something last between the two times, which are those of the first and
/// the last event, as far as it was found. Never too late.
///
/// Cost: events from the end back until all are found, at most twice as many as there are; of a large
/// trace half of them.
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
