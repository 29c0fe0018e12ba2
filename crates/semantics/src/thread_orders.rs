// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of a thread after events of equal time in several streams: known only if all orders of these
//! events lead to it.
//!
//! ```text
//! before     runs on CPU 0
//! stream 0   leaves CPU 0, preempted
//! stream 1   comes to CPU 1, leaves it, sleeping
//! stream 2   comes to CPU 2, leaves it, preempted
//! after      sleeping, or preempted: unknown
//! ```
//!
//! Orders with contradictions (a thread leaves a CPU that it is not on) or needless wakeups count only
//! if no order has fewer.

use lateralis_analysis::{GoesInto, ThreadState};

/// Largest number of combinations of positions in the streams; the state is unknown if there are more.
const CELLS_MAX: usize = 256;
/// Cost of a contradiction; a needless or missing wakeup costs 1.
const CONTRADICTION: u32 = 1 << 16;

/// Effect of an event on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It comes to this CPU.
    Comes(u32),
    /// It leaves this CPU.
    Leaves(u32, GoesInto),
    /// It is woken; holds the number of the wakeup.
    Wakes(u32),
    /// It comes to a run queue: the other end of a wakeup that began before, or the only event of one;
    /// holds the number of that event.
    Queued(u32),
    /// It is created; holds the number of that event.
    Starts(u32),
}

/// Known position of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Unknown,
    /// It runs on this CPU.
    On(u32),
    /// It is in another state, after this wakeup if one of these events woke it.
    Off(ThreadState, Option<u32>),
    Ended,
}

/// A thread after all of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    /// [`Position::Unknown`] if it depends on the order.
    pub position: Position,
    /// Whether all orders have the same wakeup last.
    pub is_waker_known: bool,
}

impl After {
    const UNKNOWN: Self = Self { position: Position::Unknown, is_waker_known: false };
}

/// Position of the thread after the event, and the cost of the event at this place of an order.
fn apply(position: Position, step: Step, has_wakes: bool) -> (Position, u32) {
    match (step, position) {
        (Step::Comes(cpu), Position::On(_)) => (Position::On(cpu), CONTRADICTION),
        // A sleeping thread was woken, but that event is missing.
        (Step::Comes(cpu), Position::Off(state, _)) if !state.is_waiting_for_cpu() => {
            (Position::On(cpu), has_wakes.into())
        }
        (Step::Comes(cpu), _) => (Position::On(cpu), 0),
        (Step::Leaves(cpu, into), position) => {
            let next = match into {
                GoesInto::State(state) => Position::Off(state, None),
                GoesInto::End => Position::Ended,
                GoesInto::Unknown => Position::Unknown,
            };
            let is_possible = position == Position::On(cpu) || position == Position::Unknown;
            (next, if is_possible { 0 } else { CONTRADICTION })
        }
        (Step::Wakes(_), Position::On(_)) => (position, 1),
        (Step::Wakes(_), Position::Off(state, _)) if state.is_waiting_for_cpu() => (position, 1),
        (Step::Queued(_), Position::On(_)) => (position, 1),
        (Step::Queued(_), Position::Off(state, _)) if state.is_waiting_for_cpu() => (position, 0),
        (Step::Wakes(by) | Step::Queued(by), _) => {
            (Position::Off(ThreadState::Runnable, Some(by)), 0)
        }
        (Step::Starts(by), Position::Unknown | Position::Ended) => {
            (Position::Off(ThreadState::Runnable, Some(by)), 0)
        }
        (Step::Starts(by), _) => (Position::Off(ThreadState::Runnable, Some(by)), CONTRADICTION),
    }
}

/// Position of the thread after events of equal time, in stream order for each stream; `has_wakes`:
/// whether the trace has wakeups.
///
/// Cost: at most 256 combinations of positions, each with the states that the thread can have there.
pub(crate) fn after(before: Position, streams: &[Vec<Step>], has_wakes: bool) -> After {
    let mut cells_count = 1_usize;
    for steps in streams {
        cells_count = cells_count.saturating_mul(steps.len() + 1);
    }
    if cells_count > CELLS_MAX {
        return After::UNKNOWN;
    }
    // A cell for each combination of positions; that of the first stream varies fastest.
    let mut cells: Vec<Vec<(Position, u32)>> = vec![Vec::new(); cells_count];
    cells[0].push((before, 0));
    for index in 0..cells_count {
        let here = std::mem::take(&mut cells[index]);
        let mut stride = 1;
        for steps in streams {
            let taken = index / stride % (steps.len() + 1);
            if let Some(step) = steps.get(taken) {
                for (position, cost) in &here {
                    let (next, more) = apply(*position, *step, has_wakes);
                    add(&mut cells[index + stride], next, cost + more);
                }
            }
            stride *= steps.len() + 1;
        }
        if index + 1 == cells_count {
            return cheapest(&here);
        }
    }
    After::UNKNOWN
}

fn add(cell: &mut Vec<(Position, u32)>, position: Position, cost: u32) {
    match cell.iter_mut().find(|(known, _)| *known == position) {
        Some((_, known)) => *known = cost.min(*known),
        None => cell.push((position, cost)),
    }
}

/// Common result of all orders with the lowest cost.
fn cheapest(ends: &[(Position, u32)]) -> After {
    let Some(least) = ends.iter().map(|(_, cost)| *cost).min() else { return After::UNKNOWN };
    let mut all = ends.iter().filter(|(_, cost)| *cost == least).map(|(position, _)| *position);
    let Some(first) = all.next().filter(|_| least < CONTRADICTION) else { return After::UNKNOWN };
    let mut after = After { position: first, is_waker_known: true };
    for other in all {
        match (first, other) {
            (Position::Off(one, by), Position::Off(two, other_by)) if one == two => {
                after.is_waker_known &= by == other_by;
            }
            _ => return After::UNKNOWN,
        }
    }
    if let (Position::Off(state, _), false) = (first, after.is_waker_known) {
        after.position = Position::Off(state, None);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{Preempted, Runnable, Sleeping};

    fn leaves(cpu: u32, state: ThreadState) -> Step {
        Step::Leaves(cpu, GoesInto::State(state))
    }

    fn position(before: Position, streams: &[&[Step]]) -> Position {
        let streams: Vec<Vec<Step>> = streams.iter().map(|steps| steps.to_vec()).collect();
        let mut reversed = streams.clone();
        reversed.reverse();
        let found = after(before, &streams, true);
        assert_eq!(found, after(before, &reversed, true), "{streams:?}");
        found.position
    }

    #[test]
    fn visits_of_one_cpu_have_an_order_and_those_of_two_have_none() {
        let on = Position::On(0);
        let first = [leaves(0, Preempted)];
        let sleeps = [Step::Comes(1), leaves(1, Sleeping)];
        let preempted = [Step::Comes(2), leaves(2, Preempted)];
        let state = |state| Position::Off(state, None);
        assert_eq!(position(on, &[&first, &sleeps]), state(Sleeping));
        assert_eq!(position(on, &[&first, &preempted]), state(Preempted));
        // It is awake until it sleeps, and no event wakes it after that.
        assert_eq!(position(on, &[&first, &sleeps, &preempted]), state(Sleeping));
        let wakes = [Step::Wakes(7)];
        assert_eq!(position(on, &[&first, &sleeps, &preempted, &wakes]), Position::Unknown);
        let stays = [Step::Comes(1)];
        assert_eq!(position(on, &[&first, &stays, &preempted]), Position::On(1));
        let twice = [Step::Comes(1), leaves(1, Preempted)];
        assert_eq!(position(on, &[&first, &twice, &preempted]), state(Preempted));
    }

    #[test]
    fn a_thread_sleeps_before_it_is_woken_and_is_awake_before_it_runs() {
        let (on, asleep) = (Position::On(0), Position::Off(Sleeping, None));
        let (sleeps, wakes) = ([leaves(0, Sleeping)], [Step::Wakes(7)]);
        assert_eq!(position(on, &[&sleeps, &wakes]), Position::Off(Runnable, Some(7)));
        let visit = [Step::Comes(1), leaves(1, Sleeping)];
        assert_eq!(position(asleep, &[&visit, &wakes]), asleep);
        let streams = [visit.to_vec(), wakes.to_vec(), vec![Step::Wakes(8)]];
        let found = after(asleep, &streams, true);
        // Either of them wakes it first.
        assert_eq!((found.position, found.is_waker_known), (Position::Off(Runnable, None), false));
    }

    /// A wakeup ends that began earlier, or another one: nothing shows which.
    #[test]
    fn the_other_end_of_a_wakeup_can_be_before_a_visit_of_a_cpu_and_after_it() {
        let (ready, asleep) = (Position::Off(Runnable, None), Position::Off(Sleeping, None));
        let visit = [Step::Comes(1), leaves(1, Sleeping)];
        let queued = [Step::Queued(7)];
        assert_eq!(position(ready, &[&visit, &queued]), Position::Unknown);
        assert_eq!(position(asleep, &[&visit, &queued]), asleep);
        let sleeps = [leaves(0, Sleeping)];
        let woken = Position::Off(Runnable, Some(7));
        assert_eq!(position(Position::On(0), &[&sleeps, &queued]), woken);
    }

    #[test]
    fn contradictions_and_more_events_than_are_compared_leave_it_unknown() {
        let on = Position::On(0);
        let two = [&[leaves(0, Sleeping)][..], &[leaves(1, Preempted)]];
        assert_eq!(position(on, &two), Position::Unknown);
        let many = [Step::Comes(1), leaves(1, Preempted)].repeat(20);
        let first = [leaves(0, Preempted)];
        assert_eq!(position(on, &[&first, &many]), Position::Off(Preempted, None));
        assert_eq!(position(on, &[&first, &many, &many]), Position::Unknown);
    }
}
