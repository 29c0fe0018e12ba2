// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The threads selected for a recording, if the kernel returns the events of all threads: applies the
//! rules of tracefs for `set_event_pid` and `event-fork`.

use std::collections::HashSet;

use lateralis_perfdata::tracepoint::{Format, Kind};

/// Maximum number of threads (PID_MAX_LIMIT of Linux).
const THREADS_MAX: usize = 1 << 22;

/// Offset of the other thread in events of the scheduler, by the kernel's number of the event.
#[derive(Debug, Clone, Default)]
pub struct OtherThread(Vec<(u16, usize)>);

impl OtherThread {
    /// Adds an event. A switch counts for both threads, a wakeup for the woken thread as well
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

/// The selected threads.
#[derive(Debug, Default)]
pub struct Chosen {
    threads: HashSet<u32>,
    /// Threads selected since the last turn, and since the one before: events processed meanwhile may
    /// include their creation by a thread that is not selected.
    fresh: [HashSet<u32>; 2],
    others: OtherThread,
}

impl Chosen {
    pub(super) fn new(others: OtherThread) -> Chosen {
        Chosen { others, ..Chosen::default() }
    }

    /// Selects a thread.
    pub fn add(&mut self, tid: u32) {
        self.insert(tid);
        self.fresh[0].insert(tid);
    }

    fn insert(&mut self, tid: u32) {
        if self.threads.len() < THREADS_MAX {
            self.threads.insert(tid);
        }
    }

    /// All events read before the last turn have been processed.
    pub(super) fn turned(&mut self) {
        self.fresh[1] = std::mem::take(&mut self.fresh[0]);
    }

    /// A thread was created: it is selected if its creator is.
    pub(super) fn made(&mut self, by: u32, tid: u32) {
        if self.threads.contains(&by) {
            self.insert(tid);
        }
    }

    /// A thread was created by an unselected thread: its id no longer denotes a selected one.
    pub(super) fn forget(&mut self, by: u32, tid: u32) {
        let is_fresh = self.fresh.iter().any(|fresh| fresh.contains(&tid));
        if !is_fresh && !self.threads.contains(&by) {
            self.threads.remove(&tid);
        }
    }

    /// Whether a record belongs to a selected thread.
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
