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
//! A stretch has a state where both of its ends were seen and nothing is missing in between; else it is
//! unknown, so that each sum of stretches could only be larger.

use lateralis_units::Nanos;

use crate::Gaps;

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
    /// Whether nothing is known of the thread before, and it can have been there.
    pub is_first: bool,
    /// Whether it ended when the thread came to a processor.
    pub comes_to_cpu: bool,
    /// Of one whose state is not known: whether it had no processor all the time. It slept, and then may
    /// have waited for one.
    pub is_off_cpu: bool,
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

    fn state(self) -> Option<ThreadState> {
        match self {
            Self::State(state) => Some(state),
            Self::On(_) => Some(ThreadState::Running),
            Self::Nothing | Self::Ended => None,
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
/// threads.
#[derive(Debug)]
pub struct ThreadStates {
    gaps: Gaps,
    threads: Vec<Thread>,
    /// Who came to each processor last.
    cpus: Vec<Option<u32>>,
    /// Stretches that nobody has taken yet.
    intervals: Vec<ThreadInterval>,
    /// Whether the trace has wake-ups.
    has_wakes: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    now: Option<(Known, Nanos)>,
    is_first: bool,
    /// It came to another processor than it was on, and may leave that in the same moment.
    moved: Option<Moved>,
}

/// Where a thread was, since when, and when it came elsewhere.
#[derive(Debug, Clone, Copy)]
struct Moved {
    cpu: u32,
    since: Nanos,
    at: Nanos,
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
    /// Whether it is known to have had the processor since it came ([`crate::Occupancy`]).
    pub has_run: bool,
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
        let (threads, cpus, intervals) = (Vec::new(), Vec::new(), Vec::new());
        Self { gaps, threads, cpus, intervals, has_wakes: false }
    }

    /// Stretches that have ended since this was asked last, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.intervals.drain(..)
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
        (known != Known::Ended).then_some((known.state(), since, known.cpu()))
    }

    /// Whether a thread came to a processor, and nothing says that it had left it or was elsewhere before
    /// this time.
    #[must_use]
    pub fn was_on(&self, thread: u32, cpu: u32, time: Nanos) -> bool {
        let moved = self.threads.get(thread as usize).and_then(|of| of.moved);
        self.is_on(thread, cpu) || moved.is_some_and(|moved| (moved.cpu, moved.at) == (cpu, time))
    }

    fn is_on(&self, thread: u32, cpu: u32) -> bool {
        let now = self.threads.get(thread as usize).and_then(|of| of.now);
        matches!(now, Some((Known::On(on), _)) if on == cpu)
    }

    /// Who came to a processor last; it may have left it unseen.
    #[must_use]
    pub fn came(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(cpu as usize).copied().flatten()
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, || Thread {
                now: None,
                is_first: true,
                moved: None,
            });
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
        self.end_move(thread, false);
        let of = self.thread(thread);
        let is_first = std::mem::replace(&mut of.is_first, false);
        let Some((known, begin)) = of.now.replace((next, time)) else {
            of.is_first = is_first;
            return;
        };
        if known == Known::Ended {
            return;
        }
        // Of one that ran, its processor has told whether anything is missing.
        let state = was(known);
        let is_touched = || self.gaps.touch(begin, time);
        let state = state.filter(|state| *state == ThreadState::Running || !is_touched());
        let comes_to_cpu = matches!(next, Known::On(_));
        let is_off_cpu =
            state.is_none() && comes_to_cpu && matches!(known, Known::State(_)) && !is_touched();
        self.intervals.push(ThreadInterval {
            thread,
            state,
            begin,
            end: time,
            cpu: known.cpu().filter(|_| state.is_some()),
            has_ended: true,
            is_first,
            comes_to_cpu,
            is_off_cpu,
        });
    }

    /// What a thread did before it moved: it ran, if it left in that moment. Says whether it moved.
    fn end_move(&mut self, thread: u32, has_run: bool) -> bool {
        let of = self.thread(thread);
        let Some(Moved { cpu, since: begin, at: end }) = of.moved.take() else { return false };
        let is_first = std::mem::replace(&mut of.is_first, false);
        let state = Some(ThreadState::Running).filter(|_| has_run);
        self.intervals.push(ThreadInterval {
            thread,
            state,
            begin,
            end,
            cpu: Some(cpu).filter(|_| has_run),
            has_ended: true,
            is_first,
            comes_to_cpu: true,
            is_off_cpu: false,
        });
        true
    }

    /// A thread is made by another: it has no time before.
    pub fn made(&mut self, time: Nanos, thread: u32) {
        self.has_wakes = true;
        self.turn(thread, time, |_| None, Known::State(ThreadState::Runnable));
        self.thread(thread).is_first = false;
    }

    /// A thread is made ready to run, and whether it was not before. Of one that runs, or is ready already,
    /// it says nothing.
    pub fn wake(&mut self, time: Nanos, thread: u32) -> bool {
        self.has_wakes = true;
        let is_awake = match self.thread(thread).now {
            Some((Known::State(state), _)) => state.is_waiting_for_cpu(),
            Some((Known::On(_), _)) => true,
            Some((Known::Nothing | Known::Ended, _)) | None => false,
        };
        if !is_awake {
            let was = |known| match known {
                Known::State(state) => Some(state),
                Known::On(_) | Known::Nothing | Known::Ended => None,
            };
            self.turn(thread, time, was, Known::State(ThreadState::Runnable));
        }
        !is_awake
    }

    /// A processor turns from one thread to another.
    pub fn switch(&mut self, time: Nanos, cpu: u32, from: Leaves, to: Comes) {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, None);
        }
        let came = std::mem::replace(&mut self.cpus[index], to.thread);
        // A thread that came and is not the one that leaves has left in between, unseen.
        if let Some(came) = came.filter(|came| Some(*came) != from.thread)
            && self.is_on(came, cpu)
        {
            self.turn(came, time, |_| None, Known::Nothing);
        }
        let has_moved = |of: &Self, thread| !of.is_on(thread, cpu) && of.was_on(thread, cpu, time);
        if let Some(leaver) = from.thread.filter(|leaver| from.is_whole && has_moved(self, *leaver))
        {
            self.end_move(leaver, from.has_run);
        } else if let Some(leaver) = from.thread.filter(|_| from.is_whole) {
            let next = match from.goes_into {
                GoesInto::State(state) => Known::State(state),
                GoesInto::End => Known::Ended,
                GoesInto::Unknown => Known::Nothing,
            };
            let has_run = |known| from.has_run && known == Known::On(cpu);
            let was = |known| has_run(known).then_some(ThreadState::Running);
            self.turn(leaver, time, was, next);
        }
        // Who sleeps was woken first, unseen: neither its sleep nor its wait is known.
        if let Some(to) = to.thread.filter(|_| to.is_whole) {
            if let Some((Known::On(elsewhere), since)) = self.thread(to).now
                && elsewhere != cpu
            {
                self.end_move(to, false);
                let of = self.thread(to);
                of.moved = Some(Moved { cpu: elsewhere, since, at: time });
                of.now = Some((Known::On(cpu), time));
                return;
            }
            let ready = |known| match known {
                Known::State(state) if state.is_waiting_for_cpu() => Some(state),
                _ => None,
            };
            self.turn(to, time, ready, Known::On(cpu));
        }
    }

    /// The trace ends, or recordings end behind which others begin: what threads do still was not seen to
    /// its end.
    pub fn finish(&mut self, end: Nanos) {
        for (thread, of) in (0..).zip(&mut self.threads) {
            let new = Thread { now: None, is_first: true, moved: None };
            let Thread { now, is_first, moved } = std::mem::replace(of, new);
            // On two processors at once up to the end: that is one stretch of which nothing is known.
            let now = moved.map(|moved| (Known::Nothing, moved.since)).or(now);
            let Some((known, begin)) = now.filter(|(known, _)| *known != Known::Ended) else {
                continue;
            };
            let is_whole = !self.gaps.touch(begin, end);
            // Without wake-ups a thread that slept may wait for a processor by now.
            let is_told = |of: &ThreadState| {
                self.has_wakes || of.is_waiting_for_cpu() || *of == ThreadState::Running
            };
            let state = known.state().filter(|state| is_whole && is_told(state));
            let cpu = known.cpu().filter(|_| is_whole);
            let (has_ended, comes_to_cpu, is_off_cpu) = (false, false, false);
            self.intervals.push(ThreadInterval {
                thread,
                state,
                begin,
                end,
                cpu,
                has_ended,
                is_first,
                comes_to_cpu,
                is_off_cpu,
            });
        }
        self.cpus.clear();
    }
}
