// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State intervals of one thread.

use lateralis_units::Nanos;

use super::scene::WokenBy;

/// State of a thread during an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs on a processor.
    Running(u32),
    /// It is runnable, while another thread runs.
    Ready,
    /// It waits.
    Blocked,
    /// Unknown.
    Unknown,
}

/// An interval of a thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Did {
    /// The thread.
    pub thread: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// The state.
    pub state: State,
    /// Cause of the wakeup, if this is the end of a wait.
    pub woken_by: Option<WokenBy>,
}

/// A state from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Time.
    pub time: Nanos,
    /// State.
    pub state: State,
    /// Waker of the thread, if a wakeup made it ready.
    pub waker: Option<WokenBy>,
}

/// States of each thread, ascending in time; empty if nothing is known.
pub fn states(thread_count: usize, mut did: Vec<Did>) -> Vec<Vec<Change>> {
    // Stable: of intervals that begin at the same time the last reported counts.
    did.sort_by_key(|did| did.begin);
    let mut threads: Vec<(Vec<Change>, Nanos)> = vec![(Vec::new(), Nanos(i64::MIN)); thread_count];
    for Did { thread, begin, end, state, woken_by } in did {
        let Some((changes, known_until)) = threads.get_mut(thread as usize) else { continue };
        if changes.is_empty() {
            // A woken thread has waited, for an unknown time.
            let state = if woken_by.is_some() { State::Blocked } else { State::Unknown };
            changes.push(Change { time: Nanos(i64::MIN), state, waker: None });
        } else if *known_until < begin {
            changes.push(Change { time: *known_until, state: State::Unknown, waker: None });
        }
        let mut change = Change { time: begin, state, waker: woken_by };
        // A thread that ran at the time of its wakeup was woken as well.
        if let Some(last) = changes.pop_if(|last| last.time == begin) {
            change.waker = change.waker.or(last.waker);
        }
        changes.push(change);
        *known_until = end.max(begin);
    }
    let open = |(mut changes, until): (Vec<Change>, Nanos)| {
        if !changes.is_empty() {
            changes.push(Change { time: until, state: State::Unknown, waker: None });
        }
        changes
    };
    threads.into_iter().map(open).collect()
}
