// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State intervals of one thread around a time.

use std::collections::VecDeque;

use lateralis_analysis::{Edge, Side, Span, ThreadState};
use lateralis_model::{Interval, Quality, Writer};
use lateralis_semantics::{DerivedSink, ThreadStateInterval};
use lateralis_units::Nanos;

use super::found::{Found, NotFound, named_thread};
use crate::chosen::Chosen;
use crate::facts::Kinds;

/// A thread in one state, from one switch or wake-up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The state; `None` if it is not known.
    pub state: Option<ThreadState>,
    /// Start of the stretch.
    pub begin: Nanos,
    /// End of the stretch.
    pub end: Nanos,
    /// CPU of a thread that runs.
    pub cpu: Option<u32>,
    /// Quality of the state and the length.
    pub quality: Quality,
}

/// Returns the stretch of a thread that contains a time, with at most `count` stretches before it and as many
/// after it, and the part of the thread's time that they cover. `thread` is a number, or a name that only
/// one thread has. All events of `around` are read, and `within` bounds the part that is returned.
///
/// Cost: two passes over the events, the second up to the last of the stretches.
///
/// # Errors
///
/// As [`super::find_thread`]; [`NotFound::Unknown`] if the trace has no switches around the time.
pub fn find_stretches(
    around: &Chosen<'_>,
    within: Interval,
    thread: &str,
    at: Nanos,
    count: usize,
) -> Result<(Found, Vec<Stretch>), NotFound> {
    let of = named_thread(around, thread)?;
    let mut facts = around.facts();
    let mut deriver = around.deriver(&facts, around.source.damage(), false);
    let mut sink = Sink { tid: of.tid, at, count, before: VecDeque::new(), after: Vec::new() };
    let mut events = around.source.events_in(around.interval);
    let mut last = None;
    while let Some(event) = events.next_event() {
        last = Some(event.time);
        facts.tell(&event, |kinds, at, fact| deriver.fact(kinds, at, fact, &mut sink));
        if sink.is_enough() {
            break;
        }
    }
    if !sink.is_enough() {
        deriver.finish(facts.kinds(), last, &mut sink);
    }
    let is_inside = sink.after.first().is_some_and(|stretch| stretch.begin <= at);
    let stretches: Vec<Stretch> = sink.before.into_iter().chain(sink.after).collect();
    let (Some(first), Some(last), true) = (stretches.first(), stretches.last(), is_inside) else {
        return Err(NotFound::Unknown);
    };
    let writer = Some(Writer { pid: of.pid, tid: of.tid });
    let edge = |time, side| Edge { time, side, key: None, writer };
    let begin = within.begin.map_or(first.begin, |begin| begin.max(first.begin));
    let end = within.end.map_or(last.end, |end| end.min(last.end));
    let span = Span { begin: edge(begin, Side::Begin), end: edge(end, Side::End) };
    let tid = of.tid;
    let found = Found { span, tid, is_certain: true, unsure_by_clocks: None, is_open: false };
    Ok((found, stretches))
}

struct Sink {
    tid: u32,
    at: Nanos,
    count: usize,
    /// Stretches that end before the time, without a gap up to the next.
    before: VecDeque<Stretch>,
    /// The stretch that contains the time, and those that follow.
    after: Vec<Stretch>,
}

impl DerivedSink for Sink {
    type Event = ();

    fn thread_state(&mut self, _: &Kinds, of: &ThreadStateInterval) {
        let ThreadStateInterval { tid, state, begin, end, cpu, quality, .. } = *of;
        if tid != self.tid || end <= begin || self.is_enough() {
            return;
        }
        let stretch = Stretch { state, begin, end, cpu, quality };
        if end > self.at {
            self.after.push(stretch);
            return;
        }
        if self.before.back().is_some_and(|last| last.end != begin) {
            self.before.clear();
        }
        if self.before.len() == self.count {
            self.before.pop_front();
        }
        if self.count > 0 {
            self.before.push_back(stretch);
        }
    }

    fn is_enough(&self) -> bool {
        self.after.len() > self.count
    }
}
