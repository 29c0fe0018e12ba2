// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What threads do and who has the processors, from switches and wake-ups: each stretch with the events
//! at both of its ends.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_analysis::{
    CpuTime, Gaps, Numbering, Occupant, ScheduleSums, Scheduling, Stretch, Switch, ThreadInterval,
    ThreadState, ThreadTime, ThreadTimes,
};
use lateralis_model::{Host, Quality, StreamIndex};
use lateralis_units::Nanos;

use crate::contradictions::{Contradiction, ContradictionKind};
use crate::derived::DerivedSink;
use crate::facts::{At, Fact, Kinds, Leaving, WakeMoment, Waker};
use crate::simultaneous::{Before, Simultaneous, SpreadThread};
use crate::thread_orders::{After, Position, after};

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
    /// Of one that was woken and waits for a processor: who woke it, and which moment of that began it.
    pub woken: Option<(Waker, WakeMoment)>,
    /// The switch or wake-up that put it into this state.
    pub begun_by: E,
    /// The one that ended it; `None`: the recording ended.
    pub ended_by: Option<E>,
    /// The stream of the event that said so last.
    pub stream: StreamIndex,
    /// Whether it ended when the thread came to a processor.
    pub comes_to_cpu: bool,
    /// Of one whose state is not known: whether it had no processor all the time.
    pub is_off_cpu: bool,
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

/// How long threads and processors did what.
#[derive(Debug, Default)]
pub struct Schedule {
    sums: Option<Box<ScheduleSums>>,
    tids: Vec<u32>,
    cpus: Vec<u32>,
    left_out: u64,
}

impl Schedule {
    /// CPUs that are followed; a damaged trace may name four thousand million.
    pub const CPUS_MAX: usize = 1 << 16;

    /// Number of switches of other CPUs.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Processors and their times.
    pub fn cpus(&self) -> impl Iterator<Item = (u32, &CpuTime)> {
        let times = self.sums.iter().flat_map(|sums| sums.utilisation.cpus());
        self.cpus.iter().copied().zip(times)
    }

    /// Threads that came to processors or left them.
    pub fn ran(&self) -> impl Iterator<Item = (u32, &ThreadTime)> {
        let times = self.sums.iter().flat_map(|sums| sums.utilisation.threads());
        self.tids.iter().copied().zip(times)
    }

    /// Threads and their times in each state.
    pub fn states(&self) -> impl Iterator<Item = (u32, &ThreadTimes)> {
        let times = self.sums.iter().flat_map(|sums| sums.threads.threads());
        self.tids.iter().copied().zip(times)
    }

    /// Wake-ups of threads that were awake.
    #[must_use]
    pub fn needless_wakes(&self) -> u64 {
        self.sums.as_ref().map_or(0, |sums| sums.needless_wakes)
    }

    /// A thread that a time names.
    #[must_use]
    pub fn tid(&self, thread: u32) -> Option<u32> {
        self.tids.get(thread as usize).copied()
    }

    /// A processor that a time names.
    #[must_use]
    pub fn cpu(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(cpu as usize).copied()
    }
}

/// What is remembered of a thread.
#[derive(Debug, Clone, Copy)]
struct Thread<E> {
    /// The event that put it into its state; `None` where nothing is known.
    begun_by: Option<E>,
    /// Who woke it, if that did.
    woken: Option<(Waker, WakeMoment)>,
    /// The stream of that event.
    stream: StreamIndex,
}

/// Number of the machine whose thread or processor this is, where each has `step` of them.
fn host_of(number: u32, step: u32) -> u32 {
    number.checked_div(step).unwrap_or(0).min(HOSTS_MAX)
}

/// The last machine that is told apart.
const HOSTS_MAX: u32 = 1 << 8;

/// What is remembered of a processor: who came, when, by which event.
type Came<E> = (Option<u32>, Nanos, E);

/// Follows threads and processors.
///
/// Cost: constant for each switch and wake-up. Memory: by threads and processors.
#[derive(Debug)]
pub struct Timelines<E> {
    scheduling: Scheduling,
    threads: Numbering<u32>,
    cpus: Numbering<u32>,
    /// By thread.
    of_threads: Vec<Thread<E>>,
    /// By processor.
    came: Vec<Option<Came<E>>>,
    /// Streams that alone record the switches of their processor: losses of others do not matter to it.
    alone: Vec<bool>,
    stream: StreamIndex,
    ended: Vec<ThreadInterval>,
    /// Switches and wake-ups of the last time, while others of that time may come.
    simultaneous: Simultaneous<E>,
    /// Where there are more events of one time than are put in order together: each of their threads, with
    /// the stream of its first event, its last event, and whether it has events in several streams.
    spread: HashMap<u32, (StreamIndex, E, bool), RandomState>,
    /// Threads of which several events of this time can be the one that wakes them.
    unknown_wakers: Vec<u32>,
    /// By machine, when its last switch or wake-up was.
    seen_until: Vec<Option<Nanos>>,
    /// Switches of CPUs that are not followed.
    left_out: u64,
}

impl<E: Copy + Default> Timelines<E> {
    /// From a moment on; with sums that have so many buckets of a time series at most, where they are wanted.
    pub(crate) fn new(begin: Nanos, gaps: &Gaps, alone: Vec<bool>, sums: Option<usize>) -> Self {
        Self {
            scheduling: Scheduling::new(begin, gaps, sums),
            threads: Numbering::default(),
            cpus: Numbering::default(),
            of_threads: Vec::new(),
            came: Vec::new(),
            alone,
            stream: StreamIndex(0),
            ended: Vec::new(),
            simultaneous: Simultaneous::default(),
            spread: HashMap::default(),
            unknown_wakers: Vec::new(),
            seen_until: Vec::new(),
            left_out: 0,
        }
    }

    pub(crate) fn set_gaps(&mut self, gaps: &Gaps) {
        self.scheduling.set_gaps(gaps);
    }

    pub(crate) fn set_alone_streams(&mut self, alone: Vec<bool>) {
        self.alone = alone;
    }

    fn cpu(&mut self, cpu: u32) -> Option<u32> {
        let has_room = self.cpus.len() < Schedule::CPUS_MAX || self.cpus.known(&cpu).is_some();
        has_room.then(|| self.cpus.number(cpu))
    }

    /// Something happened on a processor.
    #[inline]
    pub(crate) fn appears(&mut self, cpu: u32, time: Nanos) {
        if let Some(cpu) = self.cpu(cpu) {
            self.scheduling.appear(cpu, time);
        }
    }

    /// The sums, where they are wanted, of what has ended; from now on there are none.
    pub(crate) fn take_sums(&mut self) -> Schedule {
        let things = |of: &Numbering<u32>| of.things().to_vec();
        let sums = self.scheduling.take_sums();
        let (tids, cpus) = (things(&self.threads), things(&self.cpus));
        Schedule { sums, tids, cpus, left_out: self.left_out }
    }

    fn of_thread(&mut self, thread: u32) -> &mut Thread<E> {
        let index = thread as usize;
        if index >= self.of_threads.len() {
            let new = || Thread { begun_by: None, woken: None, stream: StreamIndex(0) };
            self.of_threads.resize_with(index + 1, new);
        }
        &mut self.of_threads[index]
    }

    /// A machine has recorded a switch or a wake-up.
    #[inline]
    fn see(&mut self, host: u32, time: Nanos) {
        let index = host as usize;
        if index >= self.seen_until.len() {
            self.seen_until.resize(index + 1, None);
        }
        self.seen_until[index] = Some(time);
    }

    /// Until when an interval of a thread that had not ended is known to have lasted, if its recording ended
    /// then. Of several machines the last event need not be of its own.
    fn lasted_until(&self, tid: u32, begin: Nanos, end: Nanos) -> Nanos {
        if self.seen_until.iter().flatten().nth(1).is_none() {
            return end;
        }
        let seen = self.seen_until.get(host_of(tid, Host::new(1).steps().1) as usize);
        seen.copied().flatten().map_or(begin, |seen| seen.min(end).max(begin))
    }

    /// Takes a switch or a wake-up; of another fact nothing follows. What it does is known once all others of
    /// its time have come.
    pub(crate) fn fact<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: &Fact,
        sink: &mut S,
    ) {
        self.pass(kinds, Some(at.time), sink);
        match *fact {
            Fact::Switch { .. } => {
                let Some(number) = at.cpu else { return };
                if self.cpu(number).is_none() {
                    self.left_out += 1;
                    return;
                }
            }
            // Of one whose switches are left out nothing would say when it ran.
            Fact::Wake { tid, is_whole: true, .. } if tid != 0 => {}
            _ => return,
        }
        if self.simultaneous.is_full() {
            self.add_spread();
            self.take_all(kinds, sink);
        }
        let event = sink.event(kinds, at, fact);
        self.simultaneous.push(*at, *fact, event);
    }

    /// Time has come up to here, or to the end: what happened earlier is known completely.
    #[inline]
    pub(crate) fn pass<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        now: Option<Nanos>,
        sink: &mut S,
    ) {
        if self.simultaneous.has_passed(now) {
            let has_spread = !self.spread.is_empty();
            if has_spread {
                self.add_spread();
            }
            let time = self.simultaneous.time();
            self.take_all(kinds, sink);
            if has_spread {
                self.forget_spread(kinds, time.unwrap_or_default(), sink);
            }
        }
    }

    /// Notes the threads of events of one time that are not put in order with others of that time.
    #[cold]
    fn add_spread(&mut self) {
        for (tid, stream, event) in self.simultaneous.threads() {
            let of = self.spread.entry(tid).or_insert((stream, event, false));
            (of.1, of.2) = (event, of.2 || of.0 != stream);
        }
    }

    /// What threads with events of one time in several streams do is unknown where these are too many to be
    /// compared.
    #[cold]
    fn forget_spread<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        time: Nanos,
        sink: &mut S,
    ) {
        let mut spread: Vec<_> = std::mem::take(&mut self.spread).into_iter().collect();
        spread.retain(|(_, (.., is_spread))| *is_spread);
        spread.sort_unstable_by_key(|(tid, _)| *tid);
        for (tid, (_, event, _)) in spread {
            let thread = self.threads.number(tid);
            self.forget(kinds, thread, time, event, sink);
        }
    }

    /// What a thread does from now on is unknown.
    fn forget<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        thread: u32,
        time: Nanos,
        event: E,
        sink: &mut S,
    ) {
        self.scheduling.forget(thread, time);
        self.end_states(kinds, Some(event), None, sink);
        self.begin_state(thread, event, sink);
    }

    fn take_all<S: DerivedSink<Event = E>>(&mut self, kinds: &Kinds, sink: &mut S) {
        let mut all = std::mem::take(&mut self.simultaneous);
        let time = all.time().unwrap_or_default();
        let spread: Vec<_> =
            all.spread_threads().into_iter().map(|of| self.foresee(&of, time)).collect();
        while let Some((at, fact, event)) = all.next(|at, fact| self.state_before(at, fact)) {
            self.take(kinds, &at, &fact, event, sink);
        }
        self.simultaneous = all.cleared();
        self.unknown_wakers.clear();
        for (thread, after, event) in spread {
            if !self.is_at(thread, after.position) {
                self.forget(kinds, thread, time, event, sink);
            }
        }
    }

    /// What is known of a thread after its events of one time, whatever their order; with its last event.
    fn foresee(&mut self, of: &SpreadThread<E>, time: Nanos) -> (u32, After, E) {
        let thread = self.threads.number(of.tid);
        let before = match self.scheduling.now(thread) {
            Some((Some(ThreadState::Running), _, Some(cpu))) => {
                Position::On(self.cpus.things().get(cpu as usize).copied().unwrap_or(0))
            }
            Some((Some(state), ..)) => Position::Off(state, None),
            Some((None, ..)) | None => Position::Unknown,
        };
        let after = after(before, &of.streams, self.scheduling.has_wakes());
        if after.position == Position::Unknown {
            self.scheduling.set_unordered(thread, time);
        }
        if !after.is_waker_known {
            self.unknown_wakers.push(thread);
        }
        (thread, after, of.event)
    }

    /// Whether a thread is taken for where its events of this time put it, whatever their order.
    fn is_at(&self, thread: u32, position: Position) -> bool {
        match (position, self.scheduling.now(thread)) {
            (Position::On(cpu), Some((Some(ThreadState::Running), _, Some(on)))) => {
                self.cpus.things().get(on as usize) == Some(&cpu)
            }
            (Position::Off(state, _), Some((Some(now), ..))) => now == state,
            (Position::Ended, now) => now.is_none(),
            _ => false,
        }
    }

    /// What a thread has to do before an event can happen, by what is known of it now.
    fn state_before(&self, at: &At, fact: &Fact) -> Before {
        let state_of = |tid: u32| {
            let now = self.threads.known(&tid).and_then(|thread| self.scheduling.now(thread));
            now.map(|(state, _, cpu)| (state, cpu))
        };
        let on = |cpu: Option<u32>| cpu.and_then(|of| self.cpus.things().get(of as usize).copied());
        match *fact {
            Fact::Switch { to, .. } if to != 0 => match state_of(to) {
                Some((Some(ThreadState::Running), cpu)) if on(cpu) != at.cpu => Before::Leaves(to),
                Some((Some(state), _)) if state.is_waiting_for_cpu() => Before::Nothing,
                Some((Some(ThreadState::Running), _)) => Before::Nothing,
                _ => Before::Wakes(to),
            },
            Fact::Wake { tid, .. } => match state_of(tid) {
                Some((Some(state), _))
                    if state == ThreadState::Running || state.is_waiting_for_cpu() =>
                {
                    Before::Leaves(tid)
                }
                _ => Before::Nothing,
            },
            _ => Before::Nothing,
        }
    }

    fn take<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: &Fact,
        event: E,
        sink: &mut S,
    ) {
        match *fact {
            Fact::Switch { from, to, leaving, from_is_whole, to_is_whole } => {
                let Some(number) = at.cpu else { return };
                let Some(cpu) = self.cpu(number) else { return };
                self.stream = at.stream;
                self.see(host_of(number, Host::new(1).steps().0), at.time);
                let from = (from, leaving, from_is_whole);
                self.switch(kinds, at, cpu, from, (to, to_is_whole), event, sink);
            }
            Fact::Wake { tid, waker, moment, .. } => {
                let thread = self.threads.number(tid);
                self.stream = at.stream;
                self.see(host_of(tid, Host::new(1).steps().1), at.time);
                let is_ready = match moment == WakeMoment::BeginOfNew {
                    true => {
                        self.scheduling.made(at.time, thread);
                        true
                    }
                    false => self.scheduling.wake(at.time, thread),
                };
                // Of several that wake a thread it is the first who makes it ready.
                let is_waker_known = !self.unknown_wakers.contains(&thread);
                let waker = if is_waker_known { waker } else { Waker::Unknown(None) };
                let woken = is_ready.then_some((thread, (waker, moment)));
                self.end_states(kinds, Some(event), woken, sink);
                if let Some((_, woken)) = woken {
                    self.of_thread(thread).woken = Some(woken);
                }
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
        let stretch = self.scheduling.switch(
            &Switch {
                time: at.time,
                cpu,
                stream: self.alone.get(at.stream.0 as usize).filter(|is| **is).map(|_| at.stream),
                from: occupant(leaver),
                to: occupant(comer),
                to_is_whole,
                is_since_last: from_is_whole,
            },
            leaving.goes_into(),
        );
        self.leave_cpu(kinds, &stretch, sink);
        self.end_states(kinds, Some(event), None, sink);
        for thread in [leaver, comer].into_iter().flatten() {
            self.begin_state(thread, event, sink);
        }
        let tid = (to != 0).then_some(to);
        let number = self.cpus.things().get(cpu as usize).copied().unwrap_or(0);
        let begin = at.time;
        let quality = Quality::Unknown;
        let comes = CpuInterval { cpu: number, tid, begin, end: None, begun_by: event, quality };
        let index = cpu as usize;
        if index >= self.came.len() {
            self.came.resize(index + 1, None);
        }
        self.came[index] = Some((tid, at.time, sink.cpu_interval_begins(&comes)));
    }

    /// Hands on who had a processor until now.
    fn leave_cpu<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        stretch: &Stretch,
        sink: &mut S,
    ) {
        let came = self.came.get_mut(stretch.cpu as usize).and_then(Option::take);
        let Some((tid, begin, begun_by)) = came else { return };
        let cpu = self.cpus.things().get(stretch.cpu as usize).copied().unwrap_or(0);
        let is_known = stretch.occupant.is_some();
        let quality = if is_known { Quality::Exact } else { Quality::Unknown };
        let end = Some(stretch.end.max(begin));
        sink.cpu_interval(kinds, &CpuInterval { cpu, tid, begin, end, begun_by, quality });
    }

    /// Hands on the states that have ended, by an event or with the recording; with the thread that was
    /// woken now, by whom.
    fn end_states<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended_by: Option<E>,
        now_woken: Option<(u32, (Waker, WakeMoment))>,
        sink: &mut S,
    ) {
        for found in self.scheduling.take_contradictions() {
            sink.contradiction(&Contradiction {
                cpu: self.cpus.things().get(found.cpu as usize).copied().unwrap_or(0),
                stream: self.stream,
                begin: found.begin,
                end: found.end,
                kind: ContradictionKind::of(found.kind, self.threads.things()),
            });
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.extend(self.scheduling.take());
        for (index, interval) in ended.iter().enumerate() {
            let ThreadInterval { thread, state, begin, end, cpu, has_ended, .. } = *interval;
            let of = self.of_thread(thread);
            let (begun_by, begun_in) = (of.begun_by.take(), of.stream);
            let next = now_woken.filter(|(woken, _)| *woken == thread).map(|(_, by)| by);
            let woken = std::mem::replace(&mut of.woken, next);
            let quality = match (state, has_ended) {
                (None, _) => Quality::Unknown,
                (Some(_), true) => Quality::Exact,
                (Some(_), false) => Quality::LowerBound,
            };
            let tid = self.threads.things().get(thread as usize).copied().unwrap_or(0);
            let end = if has_ended { end } else { self.lasted_until(tid, begin, end) };
            let interval = ThreadStateInterval {
                tid,
                state,
                begin,
                end,
                cpu: cpu.and_then(|cpu| self.cpus.things().get(cpu as usize).copied()),
                woken,
                begun_by: begun_by.or(ended_by).unwrap_or_default(),
                ended_by: ended_by.filter(|_| has_ended),
                stream: if has_ended { self.stream } else { begun_in },
                comes_to_cpu: interval.comes_to_cpu,
                is_off_cpu: interval.is_off_cpu,
                quality,
            };
            sink.thread_state(kinds, &interval);
            // One that turned into another state without being named by the event goes on in it.
            // Few end by one event; with the recording all do, and are not asked.
            let goes_on = |_: &E| ended[index + 1..].iter().any(|next| next.thread == thread);
            if let Some(event) = ended_by.filter(|event| !goes_on(event)) {
                self.begin_state(thread, event, sink);
            }
        }
        ended.clear();
        self.ended = ended;
    }

    /// Hands on that a thread is in another state by an event, if it is.
    fn begin_state<S: DerivedSink<Event = E>>(&mut self, thread: u32, event: E, sink: &mut S) {
        let Some((state, begin, cpu)) = self.scheduling.now(thread) else { return };
        let of = *self.of_thread(thread);
        if of.begun_by.is_some() {
            return;
        }
        let interval = ThreadStateInterval {
            tid: self.threads.things().get(thread as usize).copied().unwrap_or(0),
            state,
            begin,
            end: begin,
            cpu: cpu.and_then(|cpu| self.cpus.things().get(cpu as usize).copied()),
            woken: of.woken,
            begun_by: event,
            ended_by: None,
            stream: self.stream,
            comes_to_cpu: false,
            is_off_cpu: false,
            quality: Quality::Unknown,
        };
        let begun_by = sink.thread_state_begins(&interval);
        let stream = self.stream;
        let of = self.of_thread(thread);
        (of.begun_by, of.stream) = (Some(begun_by), stream);
    }

    /// The recording has ended, with its last event then; another may begin.
    pub(crate) fn finish<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended: Option<Nanos>,
        sink: &mut S,
    ) {
        self.pass(kinds, None, sink);
        if let Some(ended) = ended {
            self.scheduling.finish(ended);
            self.end_states(kinds, None, None, sink);
            self.seen_until.clear();
        }
        let open = std::mem::take(&mut self.came).into_iter().enumerate();
        for (cpu, (tid, begin, begun_by)) in open.filter_map(|(cpu, came)| Some((cpu, came?))) {
            let cpu = self.cpus.things().get(cpu).copied().unwrap_or(0);
            let quality = Quality::Unknown;
            sink.cpu_interval(
                kinds,
                &CpuInterval { cpu, tid, begin, end: None, begun_by, quality },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Ended(Vec<ThreadStateInterval>);

    impl DerivedSink for Ended {
        type Event = ();

        fn thread_state(&mut self, _: &Kinds, interval: &ThreadStateInterval) {
            self.0.push(*interval);
        }
    }

    /// Switches, each with stream, time, processor, and the threads that leave and come; what is not over
    /// when the last of all recordings ends: thread, stream, since when and until when.
    fn unfinished(switches: &[(u32, i64, u32, u32, u32)], end: i64) -> Vec<(u32, u32, i64, i64)> {
        let mut timelines = Timelines::new(Nanos(0), &Gaps::default(), vec![true; 2], None);
        let (kinds, mut sink) = (Kinds::default(), Ended::default());
        for &(stream, time, cpu, from, to) in switches {
            let (stream, time, cpu) = (StreamIndex(stream), Nanos(time), Some(cpu));
            let at = At { time, stream, cpu, writer: None, is_told: false };
            let (from_is_whole, to_is_whole, leaving) = (true, true, Leaving::Waiting);
            let fact = Fact::Switch { from, leaving, to, from_is_whole, to_is_whole };
            timelines.fact(&kinds, &at, &fact, &mut sink);
        }
        timelines.finish(&kinds, Some(Nanos(end)), &mut sink);
        let open = sink.0.iter().filter(|of| of.ended_by.is_none());
        open.map(|of| (of.tid, of.stream.0, of.begin.0, of.end.0)).collect()
    }

    #[test]
    fn what_is_not_over_lasted_until_its_own_machine_was_seen_last() {
        let one = Host::new(1);
        let (cpu, thread) = (one.cpu(0), one.thread(7));
        let here = [(0, 10, 0, 0, 7), (0, 20, 0, 7, 8)];
        assert_eq!(unfinished(&here, 90), [(7, 0, 20, 90), (8, 0, 20, 90)]);
        let there = [(1, 30, cpu, 0, thread), (1, 50, cpu, thread, 0), (1, 60, cpu, 0, thread)];
        let both = [&here[..], &there].concat();
        assert_eq!(unfinished(&both, 90), [(7, 0, 20, 20), (8, 0, 20, 20), (thread, 1, 60, 60)]);
    }

    /// What is exact of a thread after events of one time in three streams: sleeping, runnable, running.
    fn states(facts: &[FactOf], order: [u32; 3]) -> Vec<ThreadStateInterval> {
        let mut timelines = Timelines::new(Nanos(0), &Gaps::default(), vec![true; 3], None);
        let (kinds, mut sink) = (Kinds::default(), Ended::default());
        let mut facts = facts.to_vec();
        // Those of one stream have its order.
        facts.sort_by_key(|(stream, time, ..)| (*time, order[*stream as usize]));
        for (stream, time, cpu, fact) in facts {
            let stream = StreamIndex(order[stream as usize]);
            let at = At { time: Nanos(time), stream, cpu: Some(cpu), writer: None, is_told: false };
            timelines.fact(&kinds, &at, &fact, &mut sink);
        }
        timelines.finish(&kinds, Some(Nanos(90)), &mut sink);
        let known = sink.0.into_iter().filter(|of| of.quality == Quality::Exact);
        known.map(|of| ThreadStateInterval { stream: StreamIndex(0), ..of }).collect()
    }

    const ORDERS: [[u32; 3]; 6] =
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    #[test]
    fn a_wake_up_precedes_the_switch_of_its_time_whichever_stream_comes_first() {
        let switch = |from, leaving, to| Fact::Switch {
            from,
            leaving,
            to,
            from_is_whole: true,
            to_is_whole: true,
        };
        let wake = |waker, moment| Fact::Wake { tid: 7, cpu: None, waker, moment, is_whole: true };
        let by = Waker::Thread(9);
        let facts = [
            (1, 10, 1, switch(0, Leaving::Unknown, 7)),
            // It sleeps, is woken, comes to another processor, all at once.
            (1, 20, 1, switch(7, Leaving::Waiting, 0)),
            (2, 20, 2, wake(by, WakeMoment::Begin)),
            (0, 20, 0, wake(Waker::Unknown(None), WakeMoment::Queued)),
            (0, 20, 0, switch(0, Leaving::Unknown, 7)),
            (0, 30, 0, switch(7, Leaving::Preempted, 0)),
        ];
        for order in ORDERS {
            let found = states(&facts, order);
            let known: Vec<_> =
                found.iter().map(|of| (of.state.unwrap().name(), of.begin.0, of.end.0)).collect();
            let expected = [
                ("running", 10, 20),
                ("sleeping", 20, 20),
                ("runnable", 20, 20),
                ("running", 20, 30),
            ];
            assert_eq!(known, expected, "{order:?}");
            assert_eq!(found[2].woken, Some((by, WakeMoment::Begin)), "{order:?}");
        }
    }

    #[test]
    fn a_thread_that_leaves_several_cpus_at_one_time_is_in_an_unknown_state() {
        let switch = |from, leaving, to| Fact::Switch {
            from,
            leaving,
            to,
            from_is_whole: true,
            to_is_whole: true,
        };
        let (waker, moment) = (Waker::Thread(9), WakeMoment::Begin);
        let facts = [
            (0, 10, 0, switch(0, Leaving::Unknown, 7)),
            (0, 20, 0, switch(7, Leaving::Preempted, 0)),
            (0, 20, 0, Fact::Wake { tid: 7, cpu: None, waker, moment, is_whole: true }),
            (1, 20, 1, switch(0, Leaving::Unknown, 7)),
            (1, 20, 1, switch(7, Leaving::Waiting, 0)),
            (2, 20, 2, switch(0, Leaving::Unknown, 7)),
            (2, 20, 2, switch(7, Leaving::Preempted, 0)),
            (0, 30, 0, switch(0, Leaving::Unknown, 7)),
            (0, 40, 0, switch(7, Leaving::Preempted, 0)),
        ];
        for order in ORDERS {
            let found = states(&facts, order);
            let known: Vec<_> =
                found.iter().map(|of| (of.state.unwrap().name(), of.begin.0, of.end.0)).collect();
            assert_eq!(known, [("running", 10, 20), ("running", 30, 40)], "{order:?}");
        }
    }

    /// More switches of one time than are put in order together: two streams have events of the same thread.
    #[test]
    fn a_thread_with_too_many_events_of_one_time_is_in_an_unknown_state() {
        let switch = |from, to| {
            let (from_is_whole, to_is_whole, leaving) = (true, true, Leaving::Preempted);
            Fact::Switch { from, leaving, to, from_is_whole, to_is_whole }
        };
        let mut facts = vec![(0, 10, 0, switch(0, 7)), (0, 20, 0, switch(7, 0))];
        for stream in [1, 2] {
            for _ in 0..200 {
                facts.push((stream, 20, stream, switch(0, 7)));
                facts.push((stream, 20, stream, switch(7, 0)));
            }
        }
        facts.extend([(0, 30, 0, switch(0, 7)), (0, 40, 0, switch(7, 0))]);
        for order in ORDERS {
            let found = states(&facts, order);
            let known = found.iter().filter(|of| of.end > of.begin);
            let known: Vec<_> = known.map(|of| (of.begin.0, of.end.0)).collect();
            assert_eq!(known.last(), Some(&(30, 40)), "{order:?}");
            assert!(known.iter().all(|of| [(10, 20), (30, 40)].contains(of)), "{known:?}");
        }
    }

    /// Stream, time and CPU of a fact.
    type FactOf = (u32, i64, u32, Fact);

    /// A thread in a state: which thread, its state, since when and until when.
    type Row = (u32, &'static str, i64, i64);

    /// What happened on three CPUs, most of it at one time with something else: the events, each with its
    /// stream, time and CPU, and all states that lasted.
    fn history(seed: u64) -> (Vec<FactOf>, Vec<Row>) {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % bound as u64) as usize
        };
        let (mut facts, mut rows) = (Vec::new(), Vec::new());
        let mut now: [(&'static str, i64); 6] = [("preempted", 0); 6];
        let mut on = [0_u32; 3];
        let mut time = 10;
        for step in 0..300 {
            if step < 6 || below(5) == 0 {
                time += 1 + below(30) as i64;
            }
            let cpu = below(3);
            let awake = |state: &str| state == "preempted" || state == "runnable";
            let is_wake = below(3) == 0;
            let can_be = |of: &&u32| match is_wake {
                true => now[**of as usize].0 == "sleeping",
                false => awake(now[**of as usize].0),
            };
            let threads: Vec<u32> = [1, 2, 3, 4, 5].iter().filter(can_be).copied().collect();
            let of = threads.get(below(6)).copied();
            let mut changes = Vec::new();
            let fact = if is_wake {
                let Some(tid) = of else { continue };
                changes.push((tid, "runnable"));
                let (waker, moment) = (Waker::Thread(on[cpu]), WakeMoment::Begin);
                Fact::Wake { tid, cpu: None, waker, moment, is_whole: true }
            } else {
                let (from, to) = (on[cpu], of.unwrap_or(0));
                if from == to {
                    continue;
                }
                let sleeps = below(2) == 0;
                let leaving = if sleeps { Leaving::Waiting } else { Leaving::Preempted };
                changes.push((from, if sleeps { "sleeping" } else { "preempted" }));
                changes.push((to, "running"));
                on[cpu] = to;
                Fact::Switch { from, leaving, to, from_is_whole: true, to_is_whole: true }
            };
            for (tid, state) in changes.into_iter().filter(|(tid, _)| *tid != 0) {
                let (before, since) = std::mem::replace(&mut now[tid as usize], (state, time));
                if time > since {
                    rows.push((tid, before, since, time));
                }
            }
            facts.push((cpu as u32, time, cpu as u32, fact));
        }
        (facts, rows)
    }

    #[test]
    fn exact_states_are_what_happened_whatever_the_order_of_streams() {
        for seed in 0..400 {
            let (facts, truth) = history(seed);
            let mut first = None;
            for order in ORDERS {
                let found = states(&facts, order);
                let known = found.iter().filter(|of| of.end > of.begin);
                let known: Vec<Row> = known
                    .map(|of| (of.tid, of.state.unwrap().name(), of.begin.0, of.end.0))
                    .collect();
                for row in &known {
                    assert!(truth.contains(row), "seed {seed}, {order:?}: {row:?} did not happen");
                }
                assert!(known.len() * 10 > truth.len() * 7, "{} of {}", known.len(), truth.len());
                let mut known = known;
                known.sort_unstable();
                assert_eq!(first.get_or_insert_with(|| known.clone()), &known, "seed {seed}");
            }
        }
    }

    /// Each processor has as many switches of one time as a packet holds: that costs no search among all.
    #[test]
    fn many_switches_of_one_time_are_taken_in_steps() {
        let mut timelines = Timelines::new(Nanos(0), &Gaps::default(), vec![true; 3], None);
        let (kinds, mut sink) = (Kinds::default(), Ended::default());
        for number in 0..100_000_u32 {
            let (stream, cpu) = (StreamIndex(number % 3), Some(number % 3));
            let at = At { time: Nanos(5), stream, cpu, writer: None, is_told: false };
            let [from, to] = [number, number + 3];
            let leaving = Leaving::Waiting;
            let (from_is_whole, to_is_whole) = (true, true);
            let fact = Fact::Switch { from, leaving, to, from_is_whole, to_is_whole };
            timelines.fact(&kinds, &at, &fact, &mut sink);
        }
        timelines.finish(&kinds, Some(Nanos(6)), &mut sink);
        assert!(sink.0.len() >= 100_000, "{}", sink.0.len());
    }
}
