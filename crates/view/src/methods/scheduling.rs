// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scheduling of single thread states: CPU, exit, waker of the thread, and threads that it woke.

use lateralis_analysis::ThreadState;
use lateralis_lanes::{Intervals, Lanes, RowKind, WakerKind};
use serde_json::{Value, json};

use crate::session::Session;

/// Maximum number of woken threads in one answer.
const WAKES_LISTED_MAX: usize = 20;
/// Maximum number of wake-ups examined for one answer.
const WAKES_EXAMINED_MAX: usize = 1 << 20;

fn is_state(lanes: &Lanes, states: &Intervals, index: usize, state: ThreadState) -> bool {
    let name = lanes.meta().names.get(states.name(index) as usize);
    name.is_some_and(|name| name == state.name())
}

/// Returns the CPU of a state, or `None` if the thread does not run in it.
pub fn cpu_of(lanes: &Lanes, states: &Intervals, index: usize) -> Option<u32> {
    if !is_state(lanes, states, index, ThreadState::Running) {
        return None;
    }
    let [switch, _] = states.events(index);
    lanes.meta().lanes.get(switch?.lane as usize)?.cpu
}

/// Returns whether the thread exited at the end of a state, given by its row and its index there:
/// no other state follows, neither in this row nor on another lane of the thread.
pub fn exits_after(lanes: &Lanes, row: usize, index: usize) -> bool {
    let Some((of, states)) = lanes.row(row) else { return false };
    let next = index.saturating_add(1);
    let (end, is_last) = (states.ends(index).1, next >= states.len());
    !states.is_unfinished(index)
        && (is_last || states.ends(next).0 > end)
        && !is_elsewhere(lanes, (row, of.lane), end)
}

/// Returns whether another lane of the same thread has a state at a time. A thread has several
/// lanes if its process was not known at first.
fn is_elsewhere(lanes: &Lanes, (row, lane): (usize, u32), time: u64) -> bool {
    let meta = lanes.meta();
    let tid_of = |lane: u32| meta.lanes.get(lane as usize).and_then(|lane| lane.tid);
    let Some(tid) = tid_of(lane) else { return false };
    let time = i64::try_from(time).unwrap_or(i64::MAX);
    let others = meta.rows.iter().enumerate().filter(|(other, of)| {
        *other != row && of.kind == RowKind::ThreadStates && tid_of(of.lane) == Some(tid)
    });
    others.filter_map(|(other, _)| lanes.row(other)).any(|(_, states)| {
        let (from, to) = states.touching(time, time.saturating_add(1));
        from < to
    })
}

/// Returns the time of the wakeup at the begin of a state, before it, or at its end.
fn wake_time(lanes: &Lanes, states: &Intervals, index: usize) -> Option<u64> {
    let (begin, end) = states.ends(index);
    let is = |index, state| is_state(lanes, states, index, state);
    if is(index, ThreadState::Runnable) {
        return Some(begin);
    }
    if is(index, ThreadState::Running) {
        let wait = index.checked_sub(1).filter(|wait| is(*wait, ThreadState::Runnable))?;
        let (woken, ran) = states.ends(wait);
        return (ran == begin).then_some(woken);
    }
    let waits = [ThreadState::Sleeping, ThreadState::Blocked, ThreadState::Stopped];
    (waits.into_iter().any(|state| is(index, state)) && !states.is_unfinished(index)).then_some(end)
}

/// Describes a thread by its number, with the same members as other responses.
fn thread(lanes: &Lanes, number: u32) -> Value {
    let Some(thread) = lanes.meta().threads.get(number as usize) else { return json!({}) };
    json!({ "thread": thread.name, "tid": thread.tid, "pid": thread.pid, "lane": thread.lane })
}

/// Returns the wake-up of a thread at a time, or `None` if none is recorded.
fn woken_by(lanes: &Lanes, lane: u32, time: u64) -> Option<Value> {
    let rows = &lanes.meta().rows;
    let row = rows.iter().position(|row| (row.lane, row.kind) == (lane, RowKind::Wakes))?;
    let (_, wakes) = lanes.row(row)?;
    let index = wakes.before(i64::try_from(time).ok()?.checked_add(1)?).checked_sub(1)?;
    if wakes.ends(index).0 != time {
        return None;
    }
    let kind = WakerKind::ALL.get(wakes.name(index) as usize)?;
    let mut woken = match kind {
        WakerKind::Thread => thread(lanes, wakes.thread(index)),
        WakerKind::Interrupt | WakerKind::Unknown => json!({}),
    };
    woken["kind"] = kind.name().into();
    woken["at"] = time.into();
    Some(woken)
}

/// Returns the threads that a thread woke in an interval, in the order of time.
fn woken_in(lanes: &Lanes, waker: u32, (begin, end): (u64, u64)) -> (Vec<(u64, u32)>, bool) {
    let time = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
    let (mut found, mut examined) = (Vec::new(), 0);
    for (row, of) in
        lanes.meta().rows.iter().enumerate().filter(|(_, of)| of.kind == RowKind::Wakes)
    {
        let Some((_, wakes)) = lanes.row(row) else { continue };
        let (from, to) = (wakes.before(time(begin)), wakes.before(time(end).saturating_add(1)));
        examined += to.saturating_sub(from);
        if examined > WAKES_EXAMINED_MAX {
            return (found, true);
        }
        let by_waker = (from..to).filter(|index| {
            wakes.thread(*index) == waker && wakes.name(*index) == WakerKind::Thread as u32
        });
        found.extend(by_waker.map(|index| (wakes.ends(index).0, of.lane)));
    }
    found.sort_unstable();
    (found, false)
}

/// Adds scheduling details to the description of a thread state, given by its row and its index there.
pub fn add(session: &Session, (row, index): (usize, usize), thing: &mut Value) {
    let lanes = &session.lanes;
    let Some((told, states)) = lanes.row(row) else { return };
    if exits_after(lanes, row, index) {
        thing["has_ended"] = true.into();
    }
    if let Some(woken) =
        wake_time(lanes, states, index).and_then(|time| woken_by(lanes, told.lane, time))
    {
        thing["woken_by"] = woken;
    }
    if !is_state(lanes, states, index, ThreadState::Running) {
        return;
    }
    let (found, is_cut) = woken_in(lanes, states.thread(index), states.ends(index));
    let threads = &lanes.meta().threads;
    let listed = found.iter().take(WAKES_LISTED_MAX).map(|(at, lane)| {
        let number = threads.iter().position(|thread| thread.lane == Some(*lane));
        let mut woken = number.map_or(json!({}), |number| thread(lanes, number as u32));
        woken["at"] = (*at).into();
        woken["lane"] = (*lane).into();
        woken
    });
    if !found.is_empty() || is_cut {
        let listed: Vec<Value> = listed.collect();
        thing["wakes"] = json!({ "count": found.len(), "is_cut": is_cut, "threads": listed });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lateralis_lanes::{Builder, Interval, Lane, Meta, Shared};

    use super::*;

    #[test]
    fn a_thread_that_goes_on_on_another_lane_of_it_does_not_exit() {
        let mut builder = Builder::default();
        let of = |tid| Lane { tid: Some(tid), ..Lane::default() };
        let [first, second, other] = [7, 7, 8].map(|tid| builder.lane(of(tid)));
        let state = |begin, end| Interval {
            begin,
            end: Some(end),
            name: 0,
            thread: 0,
            from: None,
            to: None,
            quality: 0,
        };
        for (lane, begin, end) in [(first, 0, 10), (second, 10, 30), (other, 0, 40)] {
            builder.interval(lane, RowKind::ThreadStates, None, state(begin, end));
        }
        let meta = Meta { end: 100, names: vec!["running".into()], ..Meta::default() };
        let mut bytes = Vec::new();
        builder.finish(meta, "", &mut bytes).unwrap();
        let lanes = Lanes::open(Arc::new(bytes) as Shared, "").unwrap();
        let row_of = |lane| lanes.meta().rows.iter().position(|row| row.lane == lane).unwrap();
        let exits = [first, second, other].map(|lane| exits_after(&lanes, row_of(lane), 0));
        assert_eq!(exits, [false, true, true]);
    }
}
