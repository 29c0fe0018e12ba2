// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of what the kernel did for threads and with devices.
//!
//! A pass over the events in the order of time, of traces in which any tells of it.

use std::ops::ControlFlow;

use lateralis_analysis::Gaps;
use lateralis_model::{Damage, Quality, Source, StreamIndex, Trace, Writer};
use lateralis_semantics::kernel::calls::{Call, CallName, Moves};
use lateralis_semantics::kernel::{Activity, KernelEvents, Topics};
use lateralis_units::Nanos;

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use super::rows::fixed;
use crate::facts::{At, Doubts, Facts};

/// What a table is made of; `None`: of something else.
pub fn topics(small: Small) -> Option<Topics> {
    match small {
        Small::Calls => Some(Topics { calls: true, ..Topics::default() }),
        _ => None,
    }
}

/// Adds the rows of one recording; `trace` carries the roles of its classes.
pub fn rows(
    topics: Topics,
    opened: &Opened,
    trace: &Trace,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    let mut kernel = KernelEvents::new(trace, topics, opened.recording.successions());
    if !kernel.has_any() {
        damage.extend(opened.inner_damage());
        return ControlFlow::Continue(());
    }
    let mut facts = Facts::new(trace, &opened.recording.streams);
    let gaps = opened.gaps();
    let mut doubts = Doubts::new(&facts, Nanos(i64::MIN));
    let mut events = opened.recording.source.events();
    let mut activities = Vec::new();
    let mut ended = None;
    while let Some(event) = events.next_event() {
        ended = ended.max(Some(event.time));
        let at = facts.of(&event, |at, fact| doubts.see(at, &fact, gaps));
        if !kernel.wants(event.stream_class_index, event.class_index) {
            continue;
        }
        let writer = at.writer.filter(|_| !doubts.is_in_doubt(&at, gaps));
        kernel.event(&event, &At { writer, ..at }, &mut |activity| activities.push(*activity));
        for activity in activities.drain(..) {
            row(opened, &kernel, &activity, rows)?;
        }
    }
    damage.extend(events.damage());
    kernel.finish(ended, &mut |activity| activities.push(*activity));
    for activity in &activities {
        row(opened, &kernel, activity, rows)?;
    }
    // The next recording numbers its names anew.
    rows.flush()
}

fn row(
    opened: &Opened,
    kernel: &KernelEvents,
    activity: &Activity,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    match activity {
        Activity::Call(call) => call_row(opened, kernel.calls().names(), call, rows),
    }
}

fn recording(opened: &Opened, stream: StreamIndex) -> Cell<'_> {
    let label = opened.label_of(stream);
    Cell::Word(label.as_ptr() as u64, Some(label))
}

/// Process, thread, name of the thread.
fn who(opened: &Opened, writer: Option<Writer>) -> [Cell<'_>; 3] {
    let Some(Writer { pid, tid }) = writer else { return [Cell::Null; 3] };
    let name = opened.owners().thread(tid);
    [Some(pid).into(), Some(tid).into(), Cell::Word(tid.into(), name)]
}

/// Of a time between two events, if both are there.
fn quality(gaps: &Gaps, begin: Option<Nanos>, end: Option<Nanos>) -> Quality {
    match (begin, end) {
        (Some(begin), Some(end)) if !gaps.touch(begin.min(end), end) => Quality::Exact,
        _ => Quality::Unknown,
    }
}

fn call_row(
    opened: &Opened,
    names: &[CallName],
    call: &Call,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    let Some(name) = names.get(call.name as usize) else {
        return ControlFlow::Continue(());
    };
    let [pid, tid, thread] = who(opened, call.writer);
    let duration = call.begin.zip(call.end).map(|(begin, end)| end.since(begin).max(0));
    let error = call.error_name();
    let status = match (call.begin, call.end) {
        (Some(_), Some(_)) => "complete",
        (None, _) => "no_begin",
        (Some(_), None) if call.is_overtaken => "no_end",
        (Some(_), None) => "unfinished",
    };
    rows.row(&[
        recording(opened, call.stream),
        call.begin.or(call.end).into(),
        call.end.into(),
        duration.map_or(Cell::Null, Cell::Int),
        Cell::Word(call.name.into(), Some(&name.name)),
        fixed(name.layer.name()),
        pid,
        tid,
        thread,
        call.value.map_or(Cell::Null, Cell::Int),
        error.as_deref().into(),
        call.bytes().into(),
        name.moves.map(Moves::name).map_or(Cell::Null, fixed),
        fixed(status),
        fixed(quality(opened.gaps(), call.begin, call.end).name()),
    ])
}
