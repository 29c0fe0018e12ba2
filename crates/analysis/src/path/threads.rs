// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one thread did, stretch by stretch.

use lateralis_units::Nanos;

use super::scene::WokenBy;

/// What a thread does during a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs on a processor.
    Running(u32),
    /// It could run; another does.
    Ready,
    /// It waits.
    Blocked,
    /// It is not known.
    Unknown,
}

/// A stretch of a thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Did {
    /// Which thread.
    pub thread: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// The state.
    pub state: State,
    /// Who brought it about, where it is the end of a wait.
    pub woken_by: Option<WokenBy>,
}

/// From a time on, a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Since when.
    pub time: Nanos,
    /// Which.
    pub state: State,
    /// Who woke the thread, if that made it ready.
    pub waker: Option<WokenBy>,
}

/// The states of each thread, ascending in time; empty where nothing is known.
pub fn states(thread_count: usize, mut did: Vec<Did>) -> Vec<Vec<Change>> {
    // Stable: of those that begin at one time the last reported counts.
    did.sort_by_key(|did| did.begin);
    let mut threads: Vec<(Vec<Change>, Nanos)> = vec![(Vec::new(), Nanos(i64::MIN)); thread_count];
    for Did { thread, begin, end, state, woken_by } in did {
        let Some((changes, known_until)) = threads.get_mut(thread as usize) else { continue };
        if changes.is_empty() {
            // Who is woken has waited, however long.
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
