// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The threads that a recording is about, where the kernel gives what everybody does: what tracefs
//! chooses by `set_event_pid` and `event-fork`, by the same rules.

use std::collections::HashSet;

use lateralis_perfdata::tracepoint::{Format, Kind};

/// Most threads that are remembered (PID_MAX_LIMIT of Linux).
const THREADS_MAX: usize = 1 << 22;

/// Where events of the scheduler say of whom else they tell, by the kernel's number of the event.
#[derive(Debug, Clone, Default)]
pub struct OtherThread(Vec<(u16, usize)>);

impl OtherThread {
    /// Notes an event. A switch counts for both threads, waking for who is woken as well
    /// [kernel/trace/trace_events.c, `event_filter_pid_sched_*`].
    pub(super) fn learn(&mut self, format: &Format) {
        let field = match (format.system.as_str(), format.name.as_str()) {
            ("sched", "sched_switch") => "next_pid",
            ("sched", "sched_wakeup" | "sched_wakeup_new" | "sched_waking") => "pid",
            _ => return,
        };
        let is_it = |kind: Kind, size| matches!(kind, Kind::Integer { .. }) && size == 4;
        let found = format.fields.iter().find(|one| one.name == field);
        if let Some(one) = found.filter(|one| is_it(one.kind, one.size)) {
            self.0.push((format.id, one.offset));
        }
    }

    fn of(&self, id: u16, record: &[u8]) -> Option<u32> {
        let (_, at) = self.0.iter().find(|(of, _)| *of == id)?;
        Some(u32::from_ne_bytes(*record.get(*at..)?.first_chunk()?))
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Chosen {
    threads: HashSet<u32>,
    /// Chosen since the last turn, and since the one before: what is looked at meanwhile may tell
    /// how they were made, by somebody who is not chosen.
    fresh: [HashSet<u32>; 2],
    others: OtherThread,
}

impl Chosen {
    pub(super) fn new(others: OtherThread) -> Chosen {
        Chosen { others, ..Chosen::default() }
    }

    /// Chooses a thread.
    pub fn add(&mut self, tid: u32) {
        self.insert(tid);
        self.fresh[0].insert(tid);
    }

    fn insert(&mut self, tid: u32) {
        if self.threads.len() < THREADS_MAX {
            self.threads.insert(tid);
        }
    }

    /// All that had been read before the last turn has been looked at.
    pub(super) fn turned(&mut self) {
        self.fresh[1] = std::mem::take(&mut self.fresh[0]);
    }

    /// A thread was made: it is chosen if its maker is.
    pub(super) fn made(&mut self, by: u32, tid: u32) {
        if self.threads.contains(&by) {
            self.insert(tid);
        }
    }

    /// A thread was made by somebody else: its number means nobody who was chosen.
    pub(super) fn forget(&mut self, by: u32, tid: u32) {
        let is_fresh = self.fresh.iter().any(|fresh| fresh.contains(&tid));
        if !is_fresh && !self.threads.contains(&by) {
            self.threads.remove(&tid);
        }
    }

    /// Whether a record is of a chosen thread.
    #[inline]
    pub(super) fn wants(&self, id: u16, tid: Option<u32>, record: &[u8]) -> bool {
        tid.is_some_and(|tid| self.threads.contains(&tid))
            || self.others.of(id, record).is_some_and(|tid| self.threads.contains(&tid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::samples;

    #[test]
    fn a_switch_counts_for_both_and_children_for_their_makers() {
        let mut others = OtherThread::default();
        others.learn(&Format::parse("sched", samples::SCHED_SWITCH, 8).unwrap());
        let mut chosen = Chosen::new(others);
        chosen.add(5);
        chosen.made(5, 6);
        chosen.made(7, 8);
        let wants = |chosen: &Chosen, from: u32, to: u32| {
            chosen.wants(372, Some(from), &samples::switch(from, to))
        };
        assert!(wants(&chosen, 5, 1) && wants(&chosen, 1, 5) && wants(&chosen, 6, 1));
        assert!(!wants(&chosen, 8, 1) && !wants(&chosen, 1, 8));
        assert!(!chosen.wants(372, Some(1), &samples::switch(1, 5)[..30]));
        assert!(!chosen.wants(373, Some(1), &samples::switch(1, 5)));
        chosen.forget(9, 5);
        chosen.turned();
        chosen.forget(9, 5);
        chosen.turned();
        chosen.forget(9, 6);
        chosen.forget(5, 5);
        assert!(!wants(&chosen, 6, 1) && wants(&chosen, 5, 1));
        chosen.forget(9, 5);
        assert!(!wants(&chosen, 5, 1));
    }
}
