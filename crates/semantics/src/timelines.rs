// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What threads do and who has the processors, from switches and wake-ups: each stretch with the events
//! at both of its ends.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_analysis::{
    Comes, Gaps, Leaves, Numbering, Occupancy, Occupant, Stretch, Switch, ThreadInterval,
    ThreadState, ThreadStates,
};
use lateralis_model::{Quality, StreamIndex};
use lateralis_units::Nanos;

use crate::derived::DerivedSink;
use crate::facts::{At, Fact, Kinds, Leaving, WakeMoment, Waker};

/// Processors that are followed; a damaged trace may name four thousand million.
const CPUS_MAX: usize = 1 << 16;

/// A thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadStateInterval<E = ()> {
    /// Whose.
    pub tid: u32,
    /// Which; `None` where it is not known: a switch of the thread is missing.
    pub state: Option<ThreadState>,
    /// Since when.
    pub begin: Nanos,
    /// Until when it is known to have lasted.
    pub end: Nanos,
    /// Of a thread that runs, the processor.
    pub cpu: Option<u32>,
    /// Of one that was woken and waits for a processor, who woke it.
    pub woken_by: Option<Waker>,
    /// The switch or wake-up that put it into this state.
    pub begun_by: E,
    /// The one that ended it; `None`: the recording ended.
    pub ended_by: Option<E>,
    /// The stream of the event that said so last.
    pub stream: StreamIndex,
    /// How far the length can be trusted.
    pub quality: Quality,
}

/// A processor from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuInterval<E = ()> {
    /// Which.
    pub cpu: u32,
    /// Who came; `None`: it became idle.
    pub tid: Option<u32>,
    /// Since when.
    pub begin: Nanos,
    /// Until the next switch of it; `None`: the recording ended, and nothing says how long it stayed.
    pub end: Option<Nanos>,
    /// The switch with which it came.
    pub begun_by: E,
    /// How far it can be trusted that this one had the processor all the time.
    pub quality: Quality,
}

/// What is remembered of a thread.
#[derive(Debug, Clone, Copy)]
struct Thread<E> {
    /// The event that put it into its state; `None` where nothing is known.
    begun_by: Option<E>,
    /// Who woke it last.
    waker: Option<Waker>,
}

/// What is remembered of a processor: who came, when, by which event.
type Came<E> = (Option<u32>, Nanos, E);

/// Follows threads and processors.
///
/// Cost: constant for each switch and wake-up. Memory: by threads and processors.
#[derive(Debug)]
pub struct Timelines<E> {
    states: ThreadStates,
    occupancy: Occupancy,
    threads: Numbering<u32>,
    cpus: Numbering<u32>,
    of_threads: HashMap<u32, Thread<E>, RandomState>,
    came: HashMap<u32, Came<E>, RandomState>,
    /// Streams that alone record the switches of their processor: losses of others do not matter to it.
    alone: Vec<bool>,
    stream: StreamIndex,
    ended: Vec<ThreadInterval>,
}

impl<E: Copy + Default> Timelines<E> {
    pub(crate) fn new(gaps: &Gaps, alone: Vec<bool>) -> Self {
        Self {
            states: ThreadStates::with_intervals(gaps.clone()),
            occupancy: Occupancy::new(Nanos(i64::MIN), gaps.clone()),
            threads: Numbering::default(),
            cpus: Numbering::default(),
            of_threads: HashMap::default(),
            came: HashMap::default(),
            alone,
            stream: StreamIndex(0),
            ended: Vec::new(),
        }
    }

    pub(crate) fn set_gaps(&mut self, gaps: &Gaps) {
        self.states.set_gaps(gaps.clone());
        self.occupancy.set_gaps(gaps.clone());
    }

    pub(crate) fn set_alone_streams(&mut self, alone: Vec<bool>) {
        self.alone = alone;
    }

    /// Takes a switch or a wake-up; of another fact nothing follows.
    pub(crate) fn fact<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: &Fact,
        sink: &mut S,
    ) {
        match *fact {
            Fact::Switch { from, to, leaving, from_is_whole, to_is_whole } => {
                let Some(cpu) = at.cpu else { return };
                if self.cpus.len() >= CPUS_MAX && self.cpus.known(&cpu).is_none() {
                    return;
                }
                let cpu = self.cpus.number(cpu);
                let event = sink.event(kinds, at, fact);
                self.stream = at.stream;
                let from = (from, leaving, from_is_whole);
                self.switch(kinds, at, cpu, from, (to, to_is_whole), event, sink);
            }
            // Of one whose switches are left out nothing would say when it ran.
            Fact::Wake { tid, waker, moment, is_whole: true, .. } if tid != 0 => {
                let thread = self.threads.number(tid);
                let event = sink.event(kinds, at, fact);
                self.stream = at.stream;
                // The moment at which it begins has the waker.
                if moment.is_begin() {
                    let new = Thread { begun_by: None, waker: None };
                    self.of_threads.entry(thread).or_insert(new).waker = Some(waker);
                }
                match moment == WakeMoment::BeginOfNew {
                    true => self.states.made(at.time, thread),
                    false => self.states.wake(at.time, thread),
                }
                self.end_states(kinds, Some(event), sink);
                self.begin_state(thread, event, sink);
            }
            _ => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of one switch, and for whom")]
    fn switch<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        cpu: u32,
        (from, leaving, from_is_whole): (u32, Leaving, bool),
        (to, to_is_whole): (u32, bool),
        event: E,
        sink: &mut S,
    ) {
        let mut number = |tid: u32| (tid != 0).then(|| self.threads.number(tid));
        let (leaver, comer) = (number(from), number(to));
        let occupant = |thread: Option<u32>| thread.map_or(Occupant::Idle, Occupant::Thread);
        let stretch = self.occupancy.switch(Switch {
            time: at.time,
            cpu,
            stream: self.alone.get(at.stream.0 as usize).filter(|is| **is).map(|_| at.stream),
            from: Some(occupant(leaver)),
            to: Some(occupant(comer)),
            is_since_last: from_is_whole,
        });
        self.leave_cpu(kinds, &stretch, sink);
        let goes_into = leaving.goes_into();
        let leaves = Leaves { thread: leaver, goes_into, is_whole: from_is_whole };
        let comes = Comes { thread: comer, is_whole: to_is_whole };
        self.states.switch(at.time, cpu, leaves, comes);
        self.end_states(kinds, Some(event), sink);
        for thread in [leaver, comer].into_iter().flatten() {
            self.begin_state(thread, event, sink);
        }
        let tid = (to != 0).then_some(to);
        let number = self.cpus.things().get(cpu as usize).copied().unwrap_or(0);
        let begin = at.time;
        let quality = Quality::Unknown;
        let comes = CpuInterval { cpu: number, tid, begin, end: None, begun_by: event, quality };
        self.came.insert(cpu, (tid, at.time, sink.cpu_interval_begins(&comes)));
    }

    /// Hands on who had a processor until now.
    fn leave_cpu<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        stretch: &Stretch,
        sink: &mut S,
    ) {
        let Some((tid, begin, begun_by)) = self.came.remove(&stretch.cpu) else { return };
        let cpu = self.cpus.things().get(stretch.cpu as usize).copied().unwrap_or(0);
        let is_known = stretch.occupant.is_some();
        let quality = if is_known { Quality::Exact } else { Quality::Unknown };
        let end = Some(stretch.end.max(begin));
        sink.cpu_interval(kinds, &CpuInterval { cpu, tid, begin, end, begun_by, quality });
    }

    /// Hands on the states that have ended, by an event or with the recording.
    fn end_states<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended_by: Option<E>,
        sink: &mut S,
    ) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.extend(self.states.take());
        for ThreadInterval { thread, state, begin, end, cpu, has_ended } in ended.drain(..) {
            let known = self.of_threads.get_mut(&thread);
            let (begun_by, waker) = known.map_or((None, None), |of| (of.begun_by.take(), of.waker));
            let quality = match (state, has_ended) {
                (None, _) => Quality::Unknown,
                (Some(_), true) => Quality::Exact,
                (Some(_), false) => Quality::LowerBound,
            };
            let interval = ThreadStateInterval {
                tid: self.threads.things().get(thread as usize).copied().unwrap_or(0),
                state,
                begin,
                end,
                cpu: cpu.and_then(|cpu| self.cpus.things().get(cpu as usize).copied()),
                woken_by: waker.filter(|_| state == Some(ThreadState::Runnable)),
                begun_by: begun_by.unwrap_or_default(),
                ended_by: ended_by.filter(|_| has_ended),
                stream: self.stream,
                quality,
            };
            sink.thread_state(kinds, &interval);
            // One that turned into another state without being named by the event goes on in it.
            if let Some(event) = ended_by {
                self.begin_state(thread, event, sink);
            }
        }
        self.ended = ended;
    }

    /// Hands on that a thread is in another state by an event, if it is.
    fn begin_state<S: DerivedSink<Event = E>>(&mut self, thread: u32, event: E, sink: &mut S) {
        let Some((state, begin, cpu)) = self.states.now(thread) else { return };
        let new = Thread { begun_by: None, waker: None };
        let of = self.of_threads.entry(thread).or_insert(new);
        if of.begun_by.is_some() {
            return;
        }
        let interval = ThreadStateInterval {
            tid: self.threads.things().get(thread as usize).copied().unwrap_or(0),
            state,
            begin,
            end: begin,
            cpu: cpu.and_then(|cpu| self.cpus.things().get(cpu as usize).copied()),
            woken_by: of.waker.filter(|_| state == Some(ThreadState::Runnable)),
            begun_by: event,
            ended_by: None,
            stream: self.stream,
            quality: Quality::Unknown,
        };
        of.begun_by = Some(sink.thread_state_begins(&interval));
    }

    /// The recording has ended, with its last event then.
    pub(crate) fn finish<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended: Option<Nanos>,
        sink: &mut S,
    ) {
        if let Some(ended) = ended {
            self.states.finish(ended);
            self.end_states(kinds, None, sink);
        }
        let mut open: Vec<_> = self.came.drain().collect();
        open.sort_by_key(|(cpu, _)| *cpu);
        for (cpu, (tid, begin, begun_by)) in open {
            let cpu = self.cpus.things().get(cpu as usize).copied().unwrap_or(0);
            let quality = Quality::Unknown;
            sink.cpu_interval(
                kinds,
                &CpuInterval { cpu, tid, begin, end: None, begun_by, quality },
            );
        }
    }
}
