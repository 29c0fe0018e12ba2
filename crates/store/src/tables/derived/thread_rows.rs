// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of thread states: running, waiting for a CPU, sleeping; and of contradictions.

use std::ops::ControlFlow;

use lateralis_analysis::ThreadState;
use lateralis_semantics::{Contradiction, DerivedSink, Deriver, Known, ThreadStateInterval};

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use super::rows::fixed;
use crate::facts::{Facts, Kinds, Waker};

/// Writer of rows for threads.
pub struct ThreadRows<'a, 'r> {
    small: Small,
    opened: &'a Opened,
    rows: &'a mut Rows<'r>,
    /// Whether more rows are needed.
    pub flow: ControlFlow<()>,
}

impl<'a, 'r> ThreadRows<'a, 'r> {
    /// For a recording.
    pub fn new(small: Small, opened: &'a Opened, rows: &'a mut Rows<'r>) -> Self {
        Self { small, opened, rows, flow: ControlFlow::Continue(()) }
    }

    /// The deriver for these rows.
    pub fn deriver(opened: &Opened, facts: &Facts) -> Deriver<()> {
        let alone = facts.alone_streams(&opened.recording.streams);
        let gaps = opened.gaps().clone();
        let known = Known {
            gaps,
            successions: opened.recording.successions(),
            follows_threads: Some(alone),
            ..Known::default()
        };
        Deriver::new(facts, known)
    }
}

impl DerivedSink for ThreadRows<'_, '_> {
    type Event = ();

    fn thread_state(&mut self, _: &Kinds, interval: &ThreadStateInterval) {
        if self.small != Small::ThreadStates || self.flow.is_break() {
            return;
        }
        let ThreadStateInterval { tid, state, begin, end, cpu, woken, .. } = *interval;
        let waker = woken.map(|(waker, _)| waker).filter(|_| state == Some(ThreadState::Runnable));
        let owners = self.opened.owners();
        let woken_by = match waker {
            Some(Waker::Thread(_)) => Some("thread"),
            Some(Waker::Interrupt) => Some("interrupt"),
            Some(Waker::Unknown(_)) => Some("unknown"),
            None => None,
        };
        let has_ended = interval.ended_by.is_some();
        let label = self.opened.label_of(interval.stream);
        let word = |text: Option<&'static str>| text.map_or(Cell::Null, fixed);
        self.flow = self.rows.row(&[
            Cell::Word(label.as_ptr() as u64, Some(label)),
            Cell::Int(begin.0),
            Cell::Int(end.0),
            Cell::Int(end.since(begin).max(0)),
            fixed(state.map_or("unknown", ThreadState::name)),
            cpu.into(),
            Some(owners.pid(tid)).into(),
            Some(tid).into(),
            Cell::Word(tid.into(), owners.thread(tid)),
            word(woken_by),
            waker.and_then(Waker::thread).into(),
            fixed(if has_ended { "complete" } else { "unfinished" }),
            fixed(interval.quality.name()),
        ]);
    }

    fn contradiction(&mut self, of: &Contradiction) {
        if self.small != Small::Contradictions || self.flow.is_break() {
            return;
        }
        let owners = self.opened.owners();
        let label = self.opened.label_of(of.stream);
        let (came, left) = (of.kind.came(), of.kind.left());
        let name = |tid: Option<u32>| {
            tid.map_or(Cell::Null, |tid| Cell::Word(tid.into(), owners.thread(tid)))
        };
        self.flow = self.rows.row(&[
            Cell::Word(label.as_ptr() as u64, Some(label)),
            Cell::Int(of.begin.0),
            Cell::Int(of.end.0),
            Cell::Int(of.end.since(of.begin).max(0)),
            fixed(of.kind.name()),
            Some(of.cpu).into(),
            came.into(),
            name(came),
            left.into(),
            name(left),
        ]);
    }

    fn is_enough(&self) -> bool {
        self.flow.is_break()
    }
}
