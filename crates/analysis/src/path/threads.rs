// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one thread did, stretch by stretch, as switches and wakes tell.

use lateralis_units::Nanos;

use super::scene::{Leaves, Switch, Wake, WokenBy};

/// What a thread does during a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs on a processor.
    Running(u32),
    /// It could run; another does.
    Ready,
    /// It waits.
    Blocked,
}

/// From a time on, a state; who brought it about, where it is the end of a wait.
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
pub fn states(thread_count: usize, switches: &[Switch], wakes: &[Wake]) -> Vec<Vec<Change>> {
    enum Step<'a> {
        Switch(&'a Switch),
        Wake(&'a Wake),
    }
    let mut steps: Vec<(Nanos, Step)> =
        switches.iter().map(|s| (s.time, Step::Switch(s))).collect();
    steps.extend(wakes.iter().map(|wake| (wake.time, Step::Wake(wake))));
    // Stable: at the same time a thread is switched away before it is woken.
    steps.sort_by_key(|step| step.0);
    let mut threads: Vec<Vec<Change>> = vec![Vec::new(); thread_count];
    let mut add = |thread: u32, time: Nanos, state: State, waker: Option<WokenBy>| {
        let Some(changes) = threads.get_mut(thread as usize) else {
            return;
        };
        if changes.is_empty() {
            // What it was before its first change follows from that.
            let before = match state {
                State::Running(_) => State::Ready,
                State::Ready if waker.is_none() => return,
                State::Ready => State::Blocked,
                State::Blocked => State::Ready,
            };
            changes.push(Change { time: Nanos(i64::MIN), state: before, waker: None });
        }
        changes.push(Change { time, state, waker });
    };
    for (time, step) in steps {
        match step {
            Step::Switch(switch) => {
                if let Some(from) = switch.from {
                    add(from, time, State::Running(switch.cpu), None);
                    let state = match switch.leaves {
                        Leaves::Ready => State::Ready,
                        Leaves::Blocked => State::Blocked,
                    };
                    add(from, time, state, None);
                }
                if let Some(to) = switch.to {
                    add(to, time, State::Running(switch.cpu), None);
                }
            }
            Step::Wake(wake) => add(wake.wakee, time, State::Ready, Some(wake.by)),
        }
    }
    threads.iter_mut().for_each(tidy);
    threads
}

/// Drops changes that change nothing, and wakes of those that do not wait.
fn tidy(changes: &mut Vec<Change>) {
    let mut kept: Vec<Change> = Vec::with_capacity(changes.len());
    for &change in changes.iter() {
        let Some(last) = kept.last_mut() else {
            kept.push(change);
            continue;
        };
        match (last.state, change.state) {
            (State::Running(_) | State::Ready, State::Ready) if change.waker.is_some() => {}
            (a, b) if a == b => {}
            // It leaves a processor that nobody saw it enter.
            (State::Ready, State::Running(_)) if last.time.0 == i64::MIN => {
                last.state = change.state
            }
            _ if last.time == change.time => *last = change,
            _ => kept.push(change),
        }
    }
    *changes = kept;
}
