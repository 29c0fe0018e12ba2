// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What threads did with their time: from switches and wake-ups.
//!
//! ```text
//!               switched in                     leaves, and could run on
//!   runnable ───────────────────► running ──────────────────────────────► preempted ──► running …
//!      ▲                             │
//!      │ wake-up                     │ leaves, and waits
//!      └──────── sleeping, blocked, stopped ◄┘
//! ```
//!
//! A stretch counts where both of its ends were seen and nothing is missing in between; else it is
//! unknown, so that each number could only be larger.

use std::collections::{BTreeMap, VecDeque};

use lateralis_units::Nanos;

use crate::{Durations, Gaps};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadState {
    /// It has a processor.
    Running,
    /// It was woken, and waits for a processor.
    Runnable,
    /// Another took its processor, and it waits for one.
    Preempted,
    /// It waits for something; a signal would wake it.
    Sleeping,
    /// It waits for a device or the like; no signal wakes it.
    Blocked,
    /// It is stopped, traced or parked.
    Stopped,
}

impl ThreadState {
    /// All of them, in the order of [`ThreadTimes::of`].
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Runnable,
        Self::Preempted,
        Self::Sleeping,
        Self::Blocked,
        Self::Stopped,
    ];

    /// The word used in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Runnable => "runnable",
            Self::Preempted => "preempted",
            Self::Sleeping => "sleeping",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
        }
    }

    /// Whether it waits for a processor.
    #[must_use]
    pub fn is_waiting_for_cpu(self) -> bool {
        matches!(self, Self::Runnable | Self::Preempted)
    }
}

/// Time in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateTime {
    /// Nanoseconds of all stretches.
    pub nanos: u64,
    /// How many stretches.
    pub count: u64,
}

/// The longest wait for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestWait {
    /// When it began.
    pub begin: Nanos,
    /// How long it was.
    pub nanos: u64,
    /// The processor that the thread got.
    pub cpu: u32,
    /// The thread that had that processor for most of the wait; where that is not known, the last one.
    /// `None`: the processor was idle.
    pub instead: Option<u32>,
    /// Whether it had been running, and not asleep.
    pub was_preempted: bool,
}

/// What a thread did.
#[derive(Debug, Clone, Default)]
pub struct ThreadTimes {
    times: [StateTime; ThreadState::ALL.len()],
    /// Nanoseconds between its first event and its last whose state is not known.
    pub unknown_nanos: u64,
    /// Waits for a processor, from being woken or preempted to running.
    pub waits: Durations,
    /// The longest of them.
    pub longest_wait: Option<LongestWait>,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether its times are lower bounds: it began before the trace, goes on at its end, or switches are
    /// missing.
    pub is_open: bool,
    /// Whether some of its waits may be longer, or not among them: something between its first event and
    /// the last is not known, or it waits at the end.
    pub may_wait_more: bool,
    now: Option<(Known, Nanos)>,
    has_appeared: bool,
}

impl ThreadTimes {
    /// Time in a state.
    #[must_use]
    pub fn of(&self, state: ThreadState) -> StateTime {
        self.times[state as usize]
    }

    /// Whether anything is known of it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.times.iter().any(|time| time.count > 0)
    }
}

/// A stretch of a thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadInterval {
    /// Whose.
    pub thread: u32,
    /// The state; `None`: not known.
    pub state: Option<ThreadState>,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Of a thread that runs, the processor.
    pub cpu: Option<u32>,
    /// Whether its end was seen; else the trace ends.
    pub has_ended: bool,
}

/// What is known of a thread from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    State(ThreadState),
    /// Of its running: on this processor.
    On(u32),
    /// Nothing: a switch of it is missing.
    Nothing,
    /// It has ended.
    Ended,
}

impl Known {
    fn cpu(self) -> Option<u32> {
        match self {
            Self::On(cpu) => Some(cpu),
            Self::State(_) | Self::Nothing | Self::Ended => None,
        }
    }
}

/// What a thread that leaves its processor goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoesInto {
    /// This state.
    State(ThreadState),
    /// Its end.
    End,
    /// The trace does not say.
    Unknown,
}

/// Follows threads through switches and wake-ups, both in the order of time.
///
/// Threads and processors are small numbers ([`crate::Numbering`]). Cost: constant for each event; memory by
/// threads and waits.
#[derive(Debug)]
pub struct ThreadStates {
    gaps: Gaps,
    threads: Vec<ThreadTimes>,
    cpus: Vec<Cpu>,
    /// Stretches that nobody has taken yet, where somebody wants them.
    intervals: Option<Vec<ThreadInterval>>,
    /// Whether the trace has wake-ups.
    has_wakes: bool,
}

/// Who had a processor.
#[derive(Debug, Clone, Default)]
struct Cpu {
    /// Who came last, and when.
    came: Option<(u32, Nanos)>,
    /// Who ran before, from when until when: the last [`RUNS`].
    runs: VecDeque<(u32, Nanos, Nanos)>,
}

/// Stretches of a processor that are remembered, to find the thread that ran instead of a waiting one.
const RUNS: usize = 64;

impl Cpu {
    fn ran(&mut self, thread: u32, since: Nanos, until: Nanos) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back((thread, since, until));
    }

    /// Who of those that are remembered ran longest since then.
    fn ran_most_since(&self, begin: Nanos) -> Option<u32> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        for (thread, since, until) in self.runs.iter().rev().take_while(|run| run.2 > begin) {
            *sums.entry(*thread).or_default() += until.since((*since).max(begin));
        }
        sums.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(thread, _)| thread)
    }
}

/// A thread that leaves a processor.
#[derive(Debug, Clone, Copy)]
pub struct Leaves {
    /// Who; `None`: the processor was idle.
    pub thread: Option<u32>,
    /// What it goes into.
    pub goes_into: GoesInto,
    /// Whether every switch of it is in the trace; else it only may have run instead of another.
    pub is_whole: bool,
}

/// A thread that comes to a processor.
#[derive(Debug, Clone, Copy)]
pub struct Comes {
    /// Who; `None`: the processor becomes idle.
    pub thread: Option<u32>,
    /// Whether every switch of it is in the trace.
    pub is_whole: bool,
}

impl ThreadStates {
    /// With where events are missing.
    #[must_use]
    pub fn new(gaps: Gaps) -> Self {
        Self { gaps, threads: Vec::new(), cpus: Vec::new(), intervals: None, has_wakes: false }
    }

    /// The same, for whoever takes each stretch: see [`ThreadStates::take`].
    #[must_use]
    pub fn with_intervals(gaps: Gaps) -> Self {
        Self { intervals: Some(Vec::new()), ..Self::new(gaps) }
    }

    /// Stretches that have ended since this was asked last, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.intervals.iter_mut().flat_map(|intervals| intervals.drain(..))
    }

    /// More is known by now of where events are missing.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.gaps = gaps;
    }

    /// What a thread does by the last event that said so, and since when; `None` before the first such
    /// event, and after its end. Its state is `None` where a switch of it is missing; of a thread that
    /// runs, the processor is the last.
    #[must_use]
    pub fn now(&self, thread: u32) -> Option<(Option<ThreadState>, Nanos, Option<u32>)> {
        let (known, since) = self.threads.get(thread as usize)?.now?;
        let state = match known {
            Known::State(state) => Some(state),
            Known::On(_) => Some(ThreadState::Running),
            Known::Nothing => None,
            Known::Ended => return None,
        };
        Some((state, since, known.cpu()))
    }

    fn thread(&mut self, thread: u32) -> &mut ThreadTimes {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, ThreadTimes::default);
        }
        &mut self.threads[index]
    }

    /// Ends what a thread did: in `state` all the time, if that is what was known of it.
    fn turn(
        &mut self,
        thread: u32,
        time: Nanos,
        was: impl Fn(Known) -> Option<ThreadState>,
        next: Known,
    ) {
        let before = self.thread(thread).now;
        let is_touched = before.is_some_and(|(_, since)| self.gaps.touch(since, time));
        self.thread(thread);
        let Self { threads, intervals, .. } = self;
        let of = &mut threads[thread as usize];
        if let Some((known, since)) = of.now.replace((next, time)) {
            let nanos = time.since(since).max(0) as u64;
            let state = was(known).filter(|_| !is_touched);
            if let Some(intervals) = intervals.as_mut().filter(|_| known != Known::Ended) {
                let cpu = known.cpu().filter(|_| state.is_some());
                let (begin, end, has_ended) = (since, time, true);
                intervals.push(ThreadInterval { thread, state, begin, end, cpu, has_ended });
            }
            match state {
                Some(state) => {
                    let sum = &mut of.times[state as usize];
                    sum.nanos = sum.nanos.saturating_add(nanos);
                    sum.count += 1;
                }
                // After the end of a thread its number is unused.
                None if known == Known::Ended => {}
                None => {
                    of.unknown_nanos = of.unknown_nanos.saturating_add(nanos);
                    (of.is_open, of.may_wait_more) = (true, true);
                }
            }
        } else if !of.has_appeared {
            // What it did before is not in the trace.
            of.is_open = true;
        }
        of.has_appeared = true;
    }

    /// A thread is made by another: it has no time before.
    pub fn made(&mut self, time: Nanos, thread: u32) {
        self.has_wakes = true;
        let of = self.thread(thread);
        (of.has_appeared, of.has_ended) = (true, false);
        self.turn(thread, time, |_| None, Known::State(ThreadState::Runnable));
    }

    /// A thread is made ready to run. Of one that runs, or is ready already, it says nothing.
    pub fn wake(&mut self, time: Nanos, thread: u32) {
        self.has_wakes = true;
        let is_asleep = match self.thread(thread).now {
            Some((
                Known::On(_) | Known::State(ThreadState::Runnable | ThreadState::Preempted),
                _,
            )) => false,
            Some((Known::State(_) | Known::Nothing | Known::Ended, _)) | None => true,
        };
        if is_asleep {
            let was = |known| match known {
                Known::State(state) => Some(state),
                Known::On(_) | Known::Nothing | Known::Ended => None,
            };
            self.turn(thread, time, was, Known::State(ThreadState::Runnable));
        }
    }

    /// A processor turns from one thread to another.
    pub fn switch(&mut self, time: Nanos, cpu: u32, from: Leaves, to: Comes) {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        let came = std::mem::replace(&mut self.cpus[index].came, to.thread.map(|to| (to, time)));
        if let Some((came, since)) = came {
            if Some(came) == from.thread {
                self.cpus[index].ran(came, since, time);
            } else if matches!(self.thread(came).now, Some((Known::On(on), _)) if on == cpu) {
                // A thread that came and is not the one that leaves has left in between, unseen.
                self.turn(came, time, |_| None, Known::Nothing);
            }
        }
        let goes_into = from.goes_into;
        if let Some(from) = from.thread.filter(|_| from.is_whole) {
            let next = match goes_into {
                GoesInto::State(state) => Known::State(state),
                GoesInto::End => Known::Ended,
                GoesInto::Unknown => Known::Nothing,
            };
            let was = |known| (known == Known::On(cpu)).then_some(ThreadState::Running);
            self.turn(from, time, was, next);
            self.thread(from).has_ended = goes_into == GoesInto::End;
        }
        if let Some(to) = to.thread.filter(|_| to.is_whole) {
            self.comes(time, cpu, from.thread, to);
        }
    }

    fn comes(&mut self, time: Nanos, cpu: u32, last: Option<u32>, to: u32) {
        let before = self.thread(to).now;
        // Who sleeps was woken first, unseen: neither its sleep nor its wait is known.
        let ready = |known| match known {
            Known::State(state) if state.is_waiting_for_cpu() => Some(state),
            _ => None,
        };
        if let Some((known, begin)) = before
            && let Some(state) = ready(known)
            && !self.gaps.touch(begin, time)
        {
            let nanos = time.since(begin).max(0) as u64;
            let longest = self.thread(to).longest_wait;
            self.thread(to).waits.push(nanos);
            if longest.is_none_or(|longest| longest.nanos < nanos) {
                let was_preempted = state == ThreadState::Preempted;
                let instead = self.cpus[cpu as usize].ran_most_since(begin).or(last);
                self.thread(to).longest_wait =
                    Some(LongestWait { begin, nanos, cpu, instead, was_preempted });
            }
        }
        self.turn(to, time, ready, Known::On(cpu));
    }

    /// The trace ends: what threads do still was not seen to its end.
    pub fn finish(&mut self, end: Nanos) {
        for (thread, of) in (0..).zip(&mut self.threads) {
            if let Some((known, since)) = of.now.take().filter(|(known, _)| *known != Known::Ended)
            {
                if let Some(intervals) = &mut self.intervals {
                    let is_whole = !self.gaps.touch(since, end);
                    let state = match known {
                        Known::State(state) => Some(state),
                        Known::On(_) => Some(ThreadState::Running),
                        Known::Nothing | Known::Ended => None,
                    };
                    // Without wake-ups a thread that slept may wait for a processor by now.
                    let is_told = |of: &ThreadState| {
                        self.has_wakes || of.is_waiting_for_cpu() || *of == ThreadState::Running
                    };
                    let state = state.filter(|state| is_whole && is_told(state));
                    let cpu = known.cpu().filter(|_| is_whole);
                    let (begin, has_ended) = (since, false);
                    intervals.push(ThreadInterval { thread, state, begin, end, cpu, has_ended });
                }
                of.may_wait_more |= match known {
                    Known::On(_) | Known::Ended => false,
                    Known::State(state) => state.is_waiting_for_cpu(),
                    Known::Nothing => true,
                };
                of.unknown_nanos = of.unknown_nanos.saturating_add(end.since(since).max(0) as u64);
                of.is_open = true;
            }
        }
    }

    /// By thread.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTimes] {
        &self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{Blocked, Preempted, Runnable, Running, Sleeping};

    fn leaves(thread: u32, state: ThreadState) -> Leaves {
        Leaves { thread: Some(thread), goes_into: GoesInto::State(state), is_whole: true }
    }

    fn sleeps(thread: u32) -> Leaves {
        leaves(thread, Sleeping)
    }

    fn ends(thread: u32) -> Leaves {
        Leaves { goes_into: GoesInto::End, ..sleeps(thread) }
    }

    fn comes(thread: u32) -> Comes {
        Comes { thread: Some(thread), is_whole: true }
    }

    const IDLE: Leaves = Leaves { thread: None, goes_into: GoesInto::Unknown, is_whole: true };
    const REST: Comes = Comes { thread: None, is_whole: true };

    fn times(states: &ThreadStates, thread: u32) -> [(u64, u64); 6] {
        let of = &states.threads()[thread as usize];
        ThreadState::ALL.map(|state| (of.of(state).nanos, of.of(state).count))
    }

    #[test]
    fn each_stretch_between_two_seen_ends_has_its_state() {
        let mut states = ThreadStates::new(Gaps::default());
        states.switch(Nanos(0), 0, IDLE, comes(1));
        states.switch(Nanos(10), 0, sleeps(1), comes(2));
        states.wake(Nanos(30), 1);
        states.wake(Nanos(31), 1);
        // 2 is preempted by 1, goes to another processor and waits for a disk there.
        states.switch(Nanos(37), 0, leaves(2, Preempted), comes(1));
        states.switch(Nanos(40), 1, IDLE, comes(2));
        states.switch(Nanos(45), 1, leaves(2, Blocked), REST);
        states.wake(Nanos(65), 2);
        states.switch(Nanos(66), 1, IDLE, comes(2));
        states.switch(Nanos(67), 1, ends(2), REST);
        states.finish(Nanos(100));
        // Running, runnable, preempted, sleeping, blocked, stopped.
        assert_eq!(times(&states, 1), [(10, 1), (7, 1), (0, 0), (20, 1), (0, 0), (0, 0)]);
        assert_eq!(times(&states, 2), [(33, 3), (1, 1), (3, 1), (0, 0), (20, 1), (0, 0)]);
        let [_, one, two] = states.threads() else { panic!() };
        assert_eq!((one.unknown_nanos, one.has_ended), (63, false));
        assert_eq!((two.unknown_nanos, two.has_ended), (0, true));
        let longest = one.longest_wait.unwrap();
        assert_eq!((longest.begin, longest.nanos, longest.cpu), (Nanos(30), 7, 0));
        assert_eq!((longest.instead, longest.was_preempted), (Some(2), false));
        assert!(
            two.longest_wait.unwrap().was_preempted && two.longest_wait.unwrap().instead.is_none()
        );
        assert_eq!(two.waits.len(), 2);
    }

    #[test]
    fn stretches_are_those_that_the_times_are_sums_of() {
        let mut states = ThreadStates::with_intervals(Gaps::default());
        states.switch(Nanos(0), 0, IDLE, comes(1));
        states.switch(Nanos(10), 0, sleeps(1), comes(2));
        states.wake(Nanos(30), 1);
        states.switch(Nanos(37), 0, leaves(2, Preempted), comes(1));
        let mut told: Vec<ThreadInterval> = states.take().collect();
        states.finish(Nanos(50));
        told.extend(states.take());
        let of = |i: &ThreadInterval| (i.thread, i.state, i.begin.0, i.end.0, i.cpu, i.has_ended);
        let told: Vec<_> = told.iter().map(of).collect();
        let expected = [
            (1, Some(Running), 0, 10, Some(0), true),
            (1, Some(Sleeping), 10, 30, None, true),
            (2, Some(Running), 10, 37, Some(0), true),
            (1, Some(Runnable), 30, 37, None, true),
            (1, Some(Running), 37, 50, Some(0), false),
            (2, Some(Preempted), 37, 50, None, false),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_contradicts_itself_is_unknown() {
        let mut states = ThreadStates::new(Gaps::default());
        states.switch(Nanos(0), 0, IDLE, comes(1));
        // Another leaves than came, and one that was never woken comes.
        states.switch(Nanos(10), 0, sleeps(2), comes(3));
        states.switch(Nanos(20), 0, sleeps(3), REST);
        states.switch(Nanos(30), 0, IDLE, comes(3));
        states.switch(Nanos(40), 0, sleeps(3), REST);
        // Two processors say that they run it.
        states.switch(Nanos(50), 0, IDLE, comes(3));
        states.switch(Nanos(55), 1, IDLE, comes(3));
        states.finish(Nanos(60));
        assert_eq!(times(&states, 1), [(0, 0); 6]);
        assert_eq!(states.threads()[1].unknown_nanos, 60);
        assert_eq!(times(&states, 3)[Running as usize], (20, 2));
        assert_eq!(times(&states, 3)[Sleeping as usize], (0, 0));
        assert_eq!(times(&states, 3)[Runnable as usize], (0, 0));
        // 20 to 30: no wake-up was seen; 40 to 60: likewise, and two processors claim it.
        assert_eq!(states.threads()[3].unknown_nanos, 30);
    }

    #[test]
    fn a_thread_that_is_made_has_nothing_before() {
        let mut states = ThreadStates::new(Gaps::default());
        states.made(Nanos(5), 1);
        states.switch(Nanos(7), 0, IDLE, comes(1));
        states.switch(Nanos(9), 0, ends(1), REST);
        // Its number is used again.
        states.made(Nanos(50), 1);
        states.switch(Nanos(51), 0, IDLE, comes(1));
        states.switch(Nanos(53), 0, ends(1), REST);
        states.finish(Nanos(60));
        assert_eq!(times(&states, 1), [(4, 2), (3, 2), (0, 0), (0, 0), (0, 0), (0, 0)]);
        assert!(!states.threads()[1].is_open && states.threads()[1].unknown_nanos == 0);
    }
}
