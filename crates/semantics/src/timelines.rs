// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timelines of threads and CPUs, from switches and wakeups: each interval with the events at both of its
//! ends.

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
    /// The thread.
    pub tid: u32,
    /// The state; `None` if unknown: a switch of the thread is missing.
    pub state: Option<ThreadState>,
    /// Begin.
    pub begin: Nanos,
    /// Time until which it is known to have lasted.
    pub end: Nanos,
    /// The CPU, if the thread runs.
    pub cpu: Option<u32>,
    /// Waker and stage of the wakeup, if the thread was woken and waits for a CPU.
    pub woken: Option<(Waker, WakeMoment)>,
    /// The switch or wakeup that began the state.
    pub begun_by: E,
    /// The event that ended it; `None`: the recording ended.
    pub ended_by: Option<E>,
    /// Stream of the last event that confirmed it.
    pub stream: StreamIndex,
    /// Whether it ended because the thread came to a CPU.
    pub comes_to_cpu: bool,
    /// If the state is unknown: whether the thread was off the CPU all the time.
    pub is_off_cpu: bool,
    /// Quality of the length.
    pub quality: Quality,
}

/// A CPU from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuInterval<E = ()> {
    /// The CPU.
    pub cpu: u32,
    /// The thread that came; `None`: the CPU became idle.
    pub tid: Option<u32>,
    /// Begin.
    pub begin: Nanos,
    /// Time of the next switch; `None`: the recording ended, and the length of the stay is unknown.
    pub end: Option<Nanos>,
    /// The switch that began it.
    pub begun_by: E,
    /// Quality of the claim that the thread had the CPU all the time.
    pub quality: Quality,
}

/// Sums over the timelines of threads and CPUs.
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

    /// Number of switches of CPUs that are not followed.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// CPUs and their times.
    pub fn cpus(&self) -> impl Iterator<Item = (u32, &CpuTime)> {
        let times = self.sums.iter().flat_map(|sums| sums.utilisation.cpus());
        self.cpus.iter().copied().zip(times)
    }

    /// Threads that came to CPUs or left them.
    pub fn ran(&self) -> impl Iterator<Item = (u32, &ThreadTime)> {
        let times = self.sums.iter().flat_map(|sums| sums.utilisation.threads());
        self.tids.iter().copied().zip(times)
    }

    /// Threads and their times in each state.
    pub fn states(&self) -> impl Iterator<Item = (u32, &ThreadTimes)> {
        let times = self.sums.iter().flat_map(|sums| sums.threads.threads());
        self.tids.iter().copied().zip(times)
    }

    /// Number of wakeups of threads that were awake.
    #[must_use]
    pub fn needless_wakes(&self) -> u64 {
        self.sums.as_ref().map_or(0, |sums| sums.needless_wakes)
    }

    /// A thread by its number in the times.
    #[must_use]
    pub fn tid(&self, thread: u32) -> Option<u32> {
        self.tids.get(thread as usize).copied()
    }

    /// A CPU by its number in the times.
    #[must_use]
    pub fn cpu(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(cpu as usize).copied()
    }
}

/// Current state of a thread.
#[derive(Debug, Clone, Copy)]
struct Thread<E> {
    /// The event that began the state; `None` if nothing is known.
    begun_by: Option<E>,
    /// The waker, if a wakeup began the state.
    woken: Option<(Waker, WakeMoment)>,
    /// The stream of that event.
    stream: StreamIndex,
}

/// Machine of a thread or CPU number, where each machine has `step` numbers.
fn host_of(number: u32, step: u32) -> u32 {
    number.checked_div(step).unwrap_or(0).min(HOSTS_MAX)
}

/// The last machine that is distinguished.
const HOSTS_MAX: u32 = 1 << 8;

/// Current occupant of a CPU: thread, time and event of its arrival.
type Came<E> = (Option<u32>, Nanos, E);

/// Follows threads and CPUs.
///
/// Cost: constant for each switch and wakeup. Memory: proportional to threads and CPUs.
#[derive(Debug)]
pub struct Timelines<E> {
    scheduling: Scheduling,
    threads: Numbering<u32>,
    cpus: Numbering<u32>,
    /// By thread.
    of_threads: Vec<Thread<E>>,
    /// By CPU.
    came: Vec<Option<Came<E>>>,
    /// Streams that alone record the switches of their CPU: losses of others do not affect it.
    alone: Vec<bool>,
    stream: StreamIndex,
    ended: Vec<ThreadInterval>,
    /// Switches and wakeups of the latest time, while further ones of that time may come.
    simultaneous: Simultaneous<E>,
    /// If there are too many events of equal time to order: each of their threads, with the stream of its
    /// first event, its last event, and whether it has events in several streams.
    spread: HashMap<u32, (StreamIndex, E, bool), RandomState>,
    /// Threads for which several events of this time can be the wakeup.
    unknown_wakers: Vec<u32>,
    /// Time of the last switch or wakeup, by machine.
    seen_until: Vec<Option<Nanos>>,
    /// Switches of CPUs that are not followed.
    left_out: u64,
}

impl<E: Copy + Default> Timelines<E> {
    /// Starts at a time; `sums`: compute sums, with at most this number of buckets in a time series.
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

    /// Records that an event happened on a CPU.
    #[inline]
    pub(crate) fn appears(&mut self, cpu: u32, time: Nanos) {
        if let Some(cpu) = self.cpu(cpu) {
            self.scheduling.appear(cpu, time);
        }
    }

    /// Takes the sums of everything that has ended; afterwards there are none.
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

    /// Records a switch or a wakeup of a machine.
    #[inline]
    fn see(&mut self, host: u32, time: Nanos) {
        let index = host as usize;
        if index >= self.seen_until.len() {
            self.seen_until.resize(index + 1, None);
        }
        self.seen_until[index] = Some(time);
    }

    /// Time until which an open interval of a thread is known to have lasted, if its recording ended at
    /// `end`. With several machines, the last event may be that of another machine.
    fn lasted_until(&self, tid: u32, begin: Nanos, end: Nanos) -> Nanos {
        if self.seen_until.iter().flatten().nth(1).is_none() {
            return end;
        }
        let seen = self.seen_until.get(host_of(tid, Host::new(1).steps().1) as usize);
        seen.copied().flatten().map_or(begin, |seen| seen.min(end).max(begin))
    }

    /// Processes a switch or a wakeup; ignores other facts. The effect is known once all others of its
    /// time have come.
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
            // If its switches are left out, nothing would show when it ran.
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

    /// Advances the time, or ends it: everything earlier is known completely.
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

    /// Notes the threads of events of equal time that are not ordered with others of that time.
    #[cold]
    fn add_spread(&mut self) {
        for (tid, stream, event) in self.simultaneous.threads() {
            let of = self.spread.entry(tid).or_insert((stream, event, false));
            (of.1, of.2) = (event, of.2 || of.0 != stream);
        }
    }

    /// Sets threads with events of equal time in several streams to unknown if there are too many events
    /// to compare.
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

    /// Sets the state of a thread to unknown from now on.
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

    /// State of a thread after its events of equal time, whatever their order; with its last event.
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

    /// Whether the assumed state of a thread is the one that its events of this time lead to in any
    /// order.
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

    /// Required change of a thread before an event can happen, given its current state.
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
                // Of several wakeups of a thread the first makes it runnable.
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

    /// Reports the interval of the thread that had a CPU until now.
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

    /// Reports the states that an event or the end of the recording has ended; with the thread that was
    /// woken now, and its waker.
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
            // If several intervals of a thread have ended, its new state begins after the last of them.
            // One event ends few intervals; the end of the recording ends all, but begins no state and
            // searches nothing.
            let goes_on = |_: &E| ended[index + 1..].iter().any(|next| next.thread == thread);
            if let Some(event) = ended_by.filter(|event| !goes_on(event)) {
                self.begin_state(thread, event, sink);
            }
        }
        ended.clear();
        self.ended = ended;
    }

    /// Reports that an event has put a thread into another state, if it has.
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

    /// Ends the recording with its last event; another may follow.
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

    /// Switches with stream, time, CPU, and the threads that leave and come. Returns the states open at
    /// the end of the last recording: thread, stream, begin and end.
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

    /// Exact states of a thread after events of equal time in three streams: sleeping, runnable, running.
    fn states(facts: &[FactOf], order: [u32; 3]) -> Vec<ThreadStateInterval> {
        let mut timelines = Timelines::new(Nanos(0), &Gaps::default(), vec![true; 3], None);
        let (kinds, mut sink) = (Kinds::default(), Ended::default());
        let mut facts = facts.to_vec();
        // Events of one stream keep its order.
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
            // It sleeps, is woken, and comes to another CPU, all at the same time.
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

    /// More switches of equal time than are ordered together: two streams have events of the same thread.
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

    /// A thread in a state: thread, state, begin and end.
    type Row = (u32, &'static str, i64, i64);

    /// Events on three CPUs, most of them at the same time as others: the events, each with its stream,
    /// time and CPU, and all states that lasted.
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

    /// Each CPU has as many switches of equal time as a packet holds: no search among all events.
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
