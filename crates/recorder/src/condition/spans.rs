// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open spans, and spans that took too long. Ends are matched to starts as in the analyses:
//! among equal keys the innermost, preferably one of the same thread, then of the same
//! process. Events of one time in different rings have no order: an end is matched to an earlier start, and
//! only without one to a start at its own time.
//!
//! This runs between two rounds of draining: no step scans all open spans.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::source::Thread;

/// Maximum number of open spans of a test.
pub(super) const OPEN_MAX: usize = 1 << 16;
/// Maximum number of open spans of one key searched for one of the end's own thread or process, as in
/// the analyses (`lateralis-analysis`, `Pairer`).
const SEARCH_MAX: usize = 1024;
/// Maximum number of keys with ends that were seen before a start of the same time.
const EARLY_MAX: usize = 1 << 12;

/// A ring: area id, and number of the ring in it.
pub(super) type RingId = (u64, u32);

#[derive(Debug)]
struct Open {
    begin: u64,
    /// Distinguishes it from others that began at the same time.
    serial: u64,
    by: Option<Thread>,
    /// Ring of the start event.
    ring: RingId,
    /// Number of its firing.
    fired: Option<u64>,
}

/// A span that exceeded the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) begin: u64,
    /// Duration until its end, or until now.
    pub(super) ticks: u64,
    pub(super) has_ended: bool,
    pub(super) key: String,
    pub(super) by: Option<Thread>,
}

/// Result of an end event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    InTime,
    TooLong(TooLong),
    /// A span that had fired while open has ended: its number and final duration.
    Fired(u64, u64),
}

/// The open spans of a test.
#[derive(Debug)]
pub(super) struct Spans {
    limit: u64,
    open: HashMap<Arc<str>, Vec<Open>>,
    /// Those that have not fired, by start.
    waiting: BTreeMap<(u64, u64), Arc<str>>,
    next_serial: u64,
    count: usize,
    fired: usize,
    /// Ends of one time without an earlier start, by key: their rings.
    early: (u64, HashMap<Arc<str>, Vec<RingId>>),
}

impl Spans {
    pub(super) fn new(limit: u64) -> Spans {
        let (open, waiting, early) = (HashMap::new(), BTreeMap::new(), (0, HashMap::new()));
        Spans { limit, open, waiting, next_serial: 0, count: 0, fired: 0, early }
    }

    /// Returns false if there is no room for it.
    pub(super) fn begin(
        &mut self,
        key: &str,
        by: Option<Thread>,
        (begin, ring): (u64, RingId),
    ) -> bool {
        if self.has_ended_early(key, (begin, ring)) {
            return true;
        }
        if self.count == OPEN_MAX && self.fired > 0 {
            // A span that fired has served its purpose; its end may have been lost.
            self.forget_fired();
        }
        if self.count == OPEN_MAX {
            return false;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let key = match self.open.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(key),
        };
        self.waiting.insert((begin, serial), Arc::clone(&key));
        self.open.entry(key).or_default().push(Open { begin, serial, by, ring, fired: None });
        self.count += 1;
        true
    }

    fn forget_fired(&mut self) {
        self.open.retain(|_, spans| {
            spans.retain(|span| span.fired.is_none());
            !spans.is_empty()
        });
        self.count -= self.fired;
        self.fired = 0;
    }

    /// Whether the span ended at the same time, in another ring.
    fn has_ended_early(&mut self, key: &str, (begin, ring): (u64, RingId)) -> bool {
        let (time, early) = &mut self.early;
        if *time != begin {
            return false;
        }
        let Some(rings) = early.get_mut(key) else { return false };
        let Some(at) = rings.iter().position(|of| *of != ring) else { return false };
        rings.remove(at);
        true
    }

    fn ends_early(&mut self, key: &str, (time, ring): (u64, RingId)) {
        let (of, early) = &mut self.early;
        if *of != time {
            *of = time;
            early.clear();
        }
        if early.len() >= EARLY_MAX && !early.contains_key(key) {
            return;
        }
        let rings = early.entry(Arc::from(key)).or_default();
        if rings.len() < SEARCH_MAX {
            rings.push(ring);
        }
    }

    pub(super) fn end(
        &mut self,
        key: &str,
        by: Option<Thread>,
        (time, ring): (u64, RingId),
    ) -> Ended {
        let Some(spans) = self.open.get_mut(key) else {
            self.ends_early(key, (time, ring));
            return Ended::InTime;
        };
        let first = spans.len().saturating_sub(SEARCH_MAX);
        let pid = |by: Option<Thread>| by.map(|by| by.pid);
        let best = |can_be: &dyn Fn(&Open) -> bool| {
            let last = |is_it: &dyn Fn(&Open) -> bool| {
                let found = spans[first..].iter().rposition(|span| can_be(span) && is_it(span));
                found.map(|at| first + at)
            };
            last(&|span| span.by == by)
                .or_else(|| last(&|span| pid(span.by) == pid(by)))
                .or_else(|| last(&|_| true))
        };
        let before = best(&|span| span.begin < time || span.ring == ring);
        let at = before.or_else(|| best(&|_| true)).unwrap_or(spans.len() - 1);
        let span = spans.remove(at);
        if spans.is_empty() {
            self.open.remove(key);
        }
        self.count -= 1;
        let ticks = time.saturating_sub(span.begin);
        if let Some(number) = span.fired {
            self.fired -= 1;
            return Ended::Fired(number, ticks);
        }
        self.waiting.remove(&(span.begin, span.serial));
        if ticks <= self.limit {
            return Ended::InTime;
        }
        let (begin, by, key) = (span.begin, span.by, key.to_owned());
        Ended::TooLong(TooLong { begin, ticks, has_ended: true, key, by })
    }

    /// Spans that are still open at `now` and have exceeded the limit since the last call, earliest
    /// first. `fire` assigns each its number.
    pub(super) fn overdue(&mut self, now: u64, mut fire: impl FnMut(TooLong) -> u64) {
        while let Some(entry) = self.waiting.first_entry() {
            let (begin, serial) = *entry.key();
            let ticks = now.saturating_sub(begin);
            if ticks <= self.limit {
                return;
            }
            let key = entry.remove();
            let spans = self.open.get_mut(&key);
            // Serials of a key are ascending.
            let span = spans.and_then(|spans| {
                let at = spans.binary_search_by_key(&serial, |span| span.serial).ok()?;
                spans.get_mut(at)
            });
            if let Some(span) = span {
                let (by, key) = (span.by, key.as_ref().to_owned());
                span.fired = Some(fire(TooLong { begin, ticks, has_ended: false, key, by }));
                self.fired += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A span in the reference model: key, thread, start, number of its firing.
    type Kept = (String, Option<Thread>, u64, Option<u64>);

    #[test]
    fn a_begin_and_an_end_of_one_time_are_one_span_whichever_ring_comes_first() {
        const FIRST: RingId = (5, 0);
        const SECOND: RingId = (5, 1);
        for ends_first in [false, true] {
            let mut spans = Spans::new(10);
            if ends_first {
                assert_eq!(spans.end("k", None, (7, FIRST)), Ended::InTime);
                assert!(spans.begin("k", None, (7, SECOND)));
            } else {
                assert!(spans.begin("k", None, (7, FIRST)));
                assert_eq!(spans.end("k", None, (7, SECOND)), Ended::InTime);
            }
            spans.overdue(1000, |span| panic!("{span:?} is over"));
            // Within one ring the order is known: this one has not ended.
            assert_eq!(spans.end("k", None, (2000, FIRST)), Ended::InTime);
            assert!(spans.begin("k", None, (2000, FIRST)));
            let mut fired = 0;
            spans.overdue(3000, |_| {
                fired += 1;
                fired
            });
            assert_eq!(fired, 1);
        }
    }

    proptest! {
        // Compares with a scan of all open spans at each step.
        #[test]
        fn open_spans_end_and_fire_as_those_of_a_search(
            steps in prop::collection::vec((0u8..3, 0u64..30, 0u8..2, 0u32..4), 0..120),
            limit in 0u64..60,
        ) {
            let mut spans = Spans::new(limit);
            let mut all: Vec<Kept> = Vec::new();
            let (mut now, mut number) = (0, 0);
            for (step, later, key, tid) in steps {
                now += later;
                let key = key.to_string();
                let by = tid.checked_sub(1).map(|tid| Thread { pid: tid / 2, tid });
                match step {
                    0 => {
                        prop_assert!(spans.begin(&key, by, (now, (0, 0))));
                        all.push((key, by, now, None));
                    }
                    1 => {
                        let last = |is_it: &dyn Fn(&Kept) -> bool| {
                            all.iter().rposition(|of| of.0 == key && is_it(of))
                        };
                        let pid = |by: Option<Thread>| by.map(|by| by.pid);
                        let at = last(&|of| of.1 == by)
                            .or_else(|| last(&|of| pid(of.1) == pid(by)))
                            .or_else(|| last(&|_| true));
                        let expected = match at.map(|at| all.remove(at)) {
                            None => Ended::InTime,
                            Some((.., begin, Some(number))) => Ended::Fired(number, now - begin),
                            Some((.., begin, None)) if now - begin <= limit => Ended::InTime,
                            Some((_, by, begin, None)) => {
                                let (ticks, key) = (now - begin, key.clone());
                                Ended::TooLong(TooLong { begin, ticks, has_ended: true, key, by })
                            }
                        };
                        prop_assert_eq!(spans.end(&key, by, (now, (0, 0))), expected);
                    }
                    _ => {
                        let mut fired = Vec::new();
                        spans.overdue(now, |span| {
                            fired.push((span.begin, span.key));
                            number += 1;
                            number - 1
                        });
                        let mut next = number - fired.len() as u64;
                        let mut expected = Vec::new();
                        for (key, _, begin, of) in &mut all {
                            if of.is_none() && now - *begin > limit {
                                expected.push((*begin, key.clone()));
                                *of = Some(next);
                                next += 1;
                            }
                        }
                        prop_assert_eq!(fired, expected);
                    }
                }
            }
        }
    }
}
