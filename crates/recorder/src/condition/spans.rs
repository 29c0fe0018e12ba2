// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans that are open, and those that took too long. Which end belongs to which beginning is as in
//! the analyses: of equal keys the innermost, rather one of the same thread, then of the same
//! process.

use std::collections::HashMap;

use crate::source::Thread;

/// Most spans open at a time, of one test.
pub(super) const OPEN_MAX: usize = 1 << 16;

#[derive(Debug)]
struct Open {
    begin: u64,
    by: Option<Thread>,
    /// Number of its firing.
    fired: Option<u64>,
}

/// A span that took longer than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) begin: u64,
    /// Until it ended, or until now.
    pub(super) ticks: u64,
    pub(super) has_ended: bool,
    pub(super) key: String,
    pub(super) by: Option<Thread>,
}

/// What an end says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    InTime,
    TooLong(TooLong),
    /// One that fired while it was open took so long in the end.
    Fired(u64, u64),
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Spans {
    limit: u64,
    open: HashMap<String, Vec<Open>>,
    count: usize,
    fired: usize,
}

impl Spans {
    pub(super) fn new(limit: u64) -> Spans {
        Spans { limit, open: HashMap::new(), count: 0, fired: 0 }
    }

    /// False if there is no room for it.
    pub(super) fn begin(&mut self, key: String, by: Option<Thread>, begin: u64) -> bool {
        if self.count == OPEN_MAX && self.fired > 0 {
            // What fired did what it is here for; its end may have been lost.
            self.forget_fired();
        }
        if self.count == OPEN_MAX {
            return false;
        }
        self.open.entry(key).or_default().push(Open { begin, by, fired: None });
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

    pub(super) fn end(&mut self, key: &str, by: Option<Thread>, time: u64) -> Ended {
        let Some(spans) = self.open.get_mut(key) else { return Ended::InTime };
        let last = |is_it: &dyn Fn(&Open) -> bool| spans.iter().rposition(is_it);
        let at = last(&|span| span.by == by)
            .or_else(|| last(&|span| span.by.map(|by| by.pid) == by.map(|by| by.pid)))
            .unwrap_or(spans.len() - 1);
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
        if ticks <= self.limit {
            return Ended::InTime;
        }
        let (begin, by, key) = (span.begin, span.by, key.to_owned());
        Ended::TooLong(TooLong { begin, ticks, has_ended: true, key, by })
    }

    /// Those that are still open at `now` and have passed the limit since somebody asked. `fire`
    /// gives each its number.
    pub(super) fn overdue(&mut self, now: u64, mut fire: impl FnMut(TooLong) -> u64) {
        for (key, spans) in &mut self.open {
            for span in spans.iter_mut().filter(|span| span.fired.is_none()) {
                let ticks = now.saturating_sub(span.begin);
                if ticks > self.limit {
                    let (begin, by, key) = (span.begin, span.by, key.clone());
                    span.fired = Some(fire(TooLong { begin, ticks, has_ended: false, key, by }));
                    self.fired += 1;
                }
            }
        }
    }
}
