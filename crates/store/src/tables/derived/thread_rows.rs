// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of what threads did: running, waiting for a processor, sleeping.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use lateralis_analysis::{
    Comes, Gaps, Leaves, Numbering, ThreadInterval, ThreadState, ThreadStates,
};
use lateralis_model::{Quality, StreamIndex};
use lateralis_semantics::DerivedSink;
use lateralis_units::Nanos;

use super::super::opened::Opened;
use super::super::small::{Cell, Rows};
use super::rows::fixed;
use crate::facts::{At, Fact, Kinds, WakeMoment, Waker};

/// Processors of which anything is told.
const CPUS_MAX: usize = 1 << 16;

/// Where the rows go.
pub struct ThreadRows<'a, 'r> {
    opened: &'a Opened,
    rows: &'a mut Rows<'r>,
    states: ThreadStates,
    threads: Numbering<u32>,
    cpus: Numbering<u32>,
    /// Who woke each thread last.
    wakers: HashMap<u32, Waker, RandomState>,
    stream: StreamIndex,
    /// Whether more rows are wanted.
    pub flow: ControlFlow<()>,
}

impl<'a, 'r> ThreadRows<'a, 'r> {
    /// Of a recording.
    pub fn new(opened: &'a Opened, rows: &'a mut Rows<'r>) -> Self {
        let gaps: Gaps = opened.gaps().clone();
        Self {
            opened,
            rows,
            states: ThreadStates::with_intervals(gaps),
            threads: Numbering::default(),
            cpus: Numbering::default(),
            wakers: HashMap::default(),
            stream: StreamIndex(0),
            flow: ControlFlow::Continue(()),
        }
    }

    /// The last event happened then.
    pub fn finish(&mut self, end: Nanos) {
        self.states.finish(end);
        self.tell();
    }

    fn tell(&mut self) {
        for interval in self.states.take() {
            if self.flow.is_break() {
                return;
            }
            let ThreadInterval { thread, state, begin, end, cpu, has_ended } = interval;
            let tid = self.threads.things().get(thread as usize).copied().unwrap_or(0);
            let owners = self.opened.owners();
            let pid = owners.pid(tid);
            let cpu = cpu.and_then(|cpu| self.cpus.things().get(cpu as usize).copied());
            // Who woke it, of one that was woken and waited since.
            let waker =
                self.wakers.get(&tid).filter(|_| state == Some(ThreadState::Runnable)).copied();
            let woken_by = match waker {
                Some(Waker::Thread(_)) => Some("thread"),
                Some(Waker::Interrupt) => Some("interrupt"),
                Some(Waker::Unknown(_)) => Some("unknown"),
                None => None,
            };
            let quality = match (state, has_ended) {
                (None, _) => Quality::Unknown,
                (Some(_), true) => Quality::Exact,
                (Some(_), false) => Quality::LowerBound,
            };
            let label = self.opened.label_of(self.stream);
            let word = |text: Option<&'static str>| text.map_or(Cell::Null, fixed);
            self.flow = self.rows.row(&[
                Cell::Word(label.as_ptr() as u64, Some(label)),
                Cell::Int(begin.0),
                Cell::Int(end.0),
                Cell::Int(end.since(begin).max(0)),
                fixed(state.map_or("unknown", ThreadState::name)),
                cpu.into(),
                Some(pid).into(),
                Some(tid).into(),
                Cell::Word(tid.into(), owners.thread(tid)),
                word(woken_by),
                waker.and_then(Waker::thread).into(),
                fixed(if has_ended { "complete" } else { "unfinished" }),
                fixed(quality.name()),
            ]);
        }
    }
}

impl DerivedSink for ThreadRows<'_, '_> {
    type Event = ();

    fn fact(&mut self, _: &Kinds, at: &At, fact: &Fact) {
        match *fact {
            Fact::Switch { from, to, leaving, from_is_whole, to_is_whole } => {
                let Some(cpu) = at.cpu else { return };
                if self.cpus.len() >= CPUS_MAX && self.cpus.known(&cpu).is_none() {
                    return;
                }
                let cpu = self.cpus.number(cpu);
                let mut number = |tid: u32| (tid != 0).then(|| self.threads.number(tid));
                let (thread, to) = (number(from), number(to));
                let goes_into = leaving.goes_into();
                let from = Leaves { thread, goes_into, is_whole: from_is_whole };
                let to = Comes { thread: to, is_whole: to_is_whole };
                self.states.switch(at.time, cpu, from, to);
            }
            Fact::Wake { tid, waker, moment, .. } if tid != 0 => {
                let thread = self.threads.number(tid);
                // The moment at which it begins has the waker.
                if moment.is_begin() {
                    self.wakers.insert(tid, waker);
                }
                match moment == WakeMoment::BeginOfNew {
                    true => self.states.made(at.time, thread),
                    false => self.states.wake(at.time, thread),
                }
            }
            _ => return,
        }
        self.stream = at.stream;
        self.tell();
    }

    fn is_enough(&self) -> bool {
        self.flow.is_break()
    }
}
