// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State intervals of threads, from switches and wakeups.
//!
//! ```text
//!              switched in                     leaves, still runnable
//!  runnable ───────────────────► running ──────────────────────────────► preempted ──► running …
//!     ▲                             │
//!     │ wakeup                      │ leaves, and waits
//!     └──────── sleeping, blocked, stopped ◄┘
//! ```
//!
//! An interval has a state if both of its ends were seen, nothing is missing in between and no CPU
//! contradicts it; otherwise it is unknown, so that each sum of intervals is a lower bound. A CPU
//! contradicts if by its last switch it runs the thread while the thread is known to be elsewhere, or not
//! to run: then neither is known, until that CPU switches again.

use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::Gaps;
use crate::contradictions::{Contradiction, ContradictionKind};

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadState {
    /// It runs on a CPU.
    Running,
    /// It was woken, and waits for a CPU.
    Runnable,
    /// Another thread took its CPU, and it waits for one.
    Preempted,
    /// It waits for something; a signal would wake it.
    Sleeping,
    /// It waits for a device or similar; no signal wakes it.
    Blocked,
    /// It is stopped, traced or parked.
    Stopped,
}

impl ThreadState {
    /// All states, in the order of [`ThreadTimes::of`].
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Runnable,
        Self::Preempted,
        Self::Sleeping,
        Self::Blocked,
        Self::Stopped,
    ];

    /// Name in tables.
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

    /// Whether it waits for a CPU.
    #[must_use]
    pub fn is_waiting_for_cpu(self) -> bool {
        matches!(self, Self::Runnable | Self::Preempted)
    }
}

/// An interval of a thread in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadInterval {
    /// The thread.
    pub thread: u32,
    /// The state; `None` if unknown.
    pub state: Option<ThreadState>,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// The CPU, if the thread runs.
    pub cpu: Option<u32>,
    /// Whether its end was seen; otherwise the trace ends.
    pub has_ended: bool,
    /// Whether nothing is known of the thread before, so that it may have been in the state already.
    pub is_first: bool,
    /// Whether it ended because the thread came to a CPU.
    pub comes_to_cpu: bool,
    /// If the state is unknown: whether the thread was off the CPU all the time. It slept, and may then
    /// have waited for a CPU.
    pub is_off_cpu: bool,
}

/// Knowledge about a thread from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    State(ThreadState),
    /// It runs on this CPU.
    On(u32),
    /// Unknown: one of its switches is missing.
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

/// State that a thread enters when it leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoesInto {
    /// This state.
    State(ThreadState),
    /// It ends.
    End,
    /// The trace does not contain it.
    Unknown,
}

/// Follows threads through switches and wakeups, both in time order.
///
/// Threads and CPUs are small numbers ([`crate::Numbering`]). Cost: constant for each event; memory
/// proportional to the threads.
#[derive(Debug)]
pub struct ThreadStates {
    gaps: Gaps,
    threads: Vec<Thread>,
    /// Claim of each CPU by its last switch.
    cpus: Vec<Claim>,
    /// Intervals that have not been taken yet.
    intervals: Vec<ThreadInterval>,
    /// Whether the trace has wakeups.
    has_wakes: bool,
    /// Contradictions that have not been taken yet.
    contradictions: Vec<Contradiction>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    now: Option<(Known, Nanos)>,
    is_first: bool,
    /// It came to another CPU than it was on, and may leave the old one at the same time.
    moved: Option<Moved>,
    /// Number of CPUs that claim to run it while it is known to be elsewhere.
    rival_count: u32,
    /// Time until which there was such a CPU.
    contradicted_until: Nanos,
    /// Time at which its events in several streams may have happened in different orders.
    unordered_at: Option<Nanos>,
}

impl Thread {
    const NEW: Self = Self {
        now: None,
        is_first: true,
        moved: None,
        rival_count: 0,
        contradicted_until: Nanos(i64::MIN),
        unordered_at: None,
    };

    /// Whether a CPU contradicts the knowledge about it since then.
    fn is_contradicted(&self, since: Nanos) -> bool {
        self.rival_count > 0 || self.contradicted_until > since
    }

    /// Whether a state in this interval depends on the order of events of equal time.
    fn is_unordered(&self, begin: Nanos, end: Nanos) -> bool {
        begin == end && self.unordered_at == Some(end)
    }
}

/// Previous CPU of a thread, time of its arrival there, and time of the move.
#[derive(Debug, Clone, Copy)]
struct Moved {
    cpu: u32,
    since: Nanos,
    at: Nanos,
    /// Whether it was contradicted before the move.
    is_contradicted: bool,
}

/// Claim of a CPU by its last switch: a thread came to it, and did not leave it since.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    /// The thread that came last; it may have left unseen.
    came: Option<u32>,
    /// Time of its arrival, if the trace has every switch of the thread.
    since: Option<Nanos>,
    stream: Option<StreamIndex>,
    /// Time from which the thread is known to be elsewhere.
    is_rival_since: Option<Nanos>,
}

/// A thread that leaves a processor.
#[derive(Debug, Clone, Copy)]
pub struct Leaves {
    /// The thread; `None`: the CPU was idle.
    pub thread: Option<u32>,
    /// The state that it enters.
    pub goes_into: GoesInto,
    /// Whether the trace has every switch of it; otherwise it only matters as the thread that ran instead
    /// of another.
    pub is_whole: bool,
    /// Whether it is known to have had the CPU since it came ([`crate::Occupancy`]).
    pub has_run: bool,
}

/// A thread that comes to a CPU.
#[derive(Debug, Clone, Copy)]
pub struct Comes {
    /// The thread; `None`: the CPU becomes idle.
    pub thread: Option<u32>,
    /// Whether the trace has every switch of it.
    pub is_whole: bool,
}

impl ThreadStates {
    /// With the known gaps.
    #[must_use]
    pub fn new(gaps: Gaps) -> Self {
        let (threads, cpus, intervals) = (Vec::new(), Vec::new(), Vec::new());
        let contradictions = Vec::new();
        Self { gaps, threads, cpus, intervals, has_wakes: false, contradictions }
    }

    /// Intervals that ended since the last call, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.intervals.drain(..)
    }

    /// Contradictions found since the last call.
    pub fn take_contradictions(&mut self) -> impl Iterator<Item = Contradiction> + '_ {
        self.contradictions.drain(..)
    }

    /// Replaces the known gaps.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.gaps = gaps;
    }

    /// Current state of a thread, and its begin; `None` before the first event of the thread, and after
    /// its end. The state is `None` if one of its switches is missing; for a running thread, the last
    /// value is its CPU.
    #[must_use]
    pub fn now(&self, thread: u32) -> Option<(Option<ThreadState>, Nanos, Option<u32>)> {
        let (known, since) = self.threads.get(thread as usize)?.now?;
        (known != Known::Ended).then_some((known.state(), since, known.cpu()))
    }

    /// Whether a thread came to a CPU, and nothing shows that it left or was elsewhere before this time:
    /// no other CPU claims to run it.
    #[must_use]
    pub fn has_run_on(&self, thread: u32, cpu: u32, time: Nanos) -> bool {
        let Some(of) = self.threads.get(thread as usize) else { return false };
        match (of.now, of.moved) {
            (Some((Known::On(on), since)), _) if on == cpu => !of.is_contradicted(since),
            (_, Some(moved)) => (moved.cpu, moved.at) == (cpu, time) && !moved.is_contradicted,
            _ => false,
        }
    }

    /// Whether a thread came to another CPU at this time, and may leave this one at the same time.
    fn has_moved(&self, thread: u32, cpu: u32, time: Nanos) -> bool {
        let moved = self.threads.get(thread as usize).and_then(|of| of.moved);
        moved.is_some_and(|moved| (moved.cpu, moved.at) == (cpu, time)) && !self.is_on(thread, cpu)
    }

    fn is_on(&self, thread: u32, cpu: u32) -> bool {
        let now = self.threads.get(thread as usize).and_then(|of| of.now);
        matches!(now, Some((Known::On(on), _)) if on == cpu)
    }

    /// Whether there was any wakeup.
    #[must_use]
    pub fn has_wakes(&self) -> bool {
        self.has_wakes
    }

    /// The thread that came to a CPU last; it may have left unseen.
    #[must_use]
    pub fn came(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(cpu as usize)?.came
    }

    /// A thread is known to be elsewhere, or not to run, from a time on. The CPU to which it came is no
    /// longer trusted and counts as a contradiction, unless events are missing in which the thread may
    /// have left it.
    fn doubt_claim(&mut self, thread: u32, cpu: u32, time: Nanos) {
        let Some(claim) = self.cpus.get_mut(cpu as usize) else { return };
        let Some(since) = claim.since.filter(|_| claim.came == Some(thread)) else { return };
        if claim.is_rival_since.is_some() {
            return;
        }
        if self.gaps.between_in(claim.stream, since, time) {
            claim.since = None;
            return;
        }
        claim.is_rival_since = Some(time);
        let of = self.thread(thread);
        of.rival_count = of.rival_count.saturating_add(1);
    }

    /// A CPU switches, which ends its claim. Returns the thread that came last.
    fn take_claim(&mut self, cpu: u32, time: Nanos) -> Option<u32> {
        let old = self.cpus.get_mut(cpu as usize).map(std::mem::take)?;
        if let (Some(thread), Some(since)) = (old.came, old.is_rival_since) {
            let of = self.thread(thread);
            of.rival_count = of.rival_count.saturating_sub(1);
            // At the same time, a thread may leave here and be elsewhere.
            if time > since {
                of.contradicted_until = of.contradicted_until.max(time);
                self.contradicts(cpu, thread, since, time);
            }
        }
        old.came
    }

    /// A CPU claimed to run a thread that was elsewhere, or did not run.
    fn contradicts(&mut self, cpu: u32, thread: u32, begin: Nanos, end: Nanos) {
        let kind = ContradictionKind::RunsElsewhere { thread };
        self.contradictions.push(Contradiction { cpu, begin, end, kind });
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Thread::NEW);
        }
        &mut self.threads[index]
    }

    /// Ends the current interval of a thread; `was` returns its state, given the knowledge about it.
    fn turn(
        &mut self,
        thread: u32,
        time: Nanos,
        was: impl Fn(Known) -> Option<ThreadState>,
        next: Known,
    ) {
        self.end_move(thread, false);
        let of = *self.thread(thread);
        // If its CPU has itself switched, it no longer claims the thread.
        if let Some((Known::On(cpu), _)) = of.now
            && next != Known::On(cpu)
        {
            self.doubt_claim(thread, cpu, time);
        }
        let of = self.thread(thread);
        let rivals = *of;
        let is_first = std::mem::replace(&mut of.is_first, false);
        let Some((known, begin)) = of.now.replace((next, time)) else {
            of.is_first = is_first;
            return;
        };
        if known == Known::Ended {
            return;
        }
        // For a running thread, its CPU has already determined whether events are missing.
        let is_contradicted = rivals.is_contradicted(begin) || rivals.is_unordered(begin, time);
        let state = was(known).filter(|_| !is_contradicted);
        let is_touched = || is_contradicted || self.gaps.between_in(None, begin, time);
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

    /// Ends the interval of a thread before it moved: it ran if it left at that time. Returns whether it
    /// moved.
    fn end_move(&mut self, thread: u32, has_run: bool) -> bool {
        let of = self.thread(thread);
        let Some(moved) = of.moved.take() else { return false };
        let Moved { cpu, since: begin, at: end, is_contradicted } = moved;
        let is_first = std::mem::replace(&mut of.is_first, false);
        let has_run = has_run && !is_contradicted && !of.is_unordered(begin, end);
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

    /// A thread has events of this time in several streams, and their order determines its state: it is
    /// unknown until [`ThreadStates::forget`] and afterwards until its next event.
    pub fn set_unordered(&mut self, thread: u32, time: Nanos) {
        self.thread(thread).unordered_at = Some(time);
    }

    /// Sets the state of a thread to unknown from now on.
    pub fn forget(&mut self, thread: u32, time: Nanos) {
        if self.now(thread).is_none_or(|(state, ..)| state.is_some()) {
            self.turn(thread, time, |_| None, Known::Nothing);
        }
    }

    /// A thread is created by another: it did not exist before.
    pub fn made(&mut self, time: Nanos, thread: u32) {
        self.has_wakes = true;
        self.turn(thread, time, |_| None, Known::State(ThreadState::Runnable));
        self.thread(thread).is_first = false;
    }

    /// A thread is woken; returns whether it was not runnable before. No effect on a thread that runs or
    /// is runnable already.
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

    /// A CPU switches from one thread to another; `stream`: the only one with its switches.
    pub fn switch(
        &mut self,
        (time, cpu): (Nanos, u32),
        stream: Option<StreamIndex>,
        from: Leaves,
        to: Comes,
    ) {
        let came = self.take_claim(cpu, time);
        // A thread that came and is not the one that leaves has left in between, unseen.
        if let Some(came) = came.filter(|came| Some(*came) != from.thread)
            && self.is_on(came, cpu)
        {
            self.turn(came, time, |_| None, Known::Nothing);
        }
        let leaver = from.thread.filter(|_| from.is_whole);
        if let Some(leaver) = leaver.filter(|leaver| self.has_moved(*leaver, cpu, time)) {
            self.end_move(leaver, from.has_run);
        } else if let Some(leaver) = leaver {
            let next = match from.goes_into {
                GoesInto::State(state) => Known::State(state),
                GoesInto::End => Known::Ended,
                GoesInto::Unknown => Known::Nothing,
            };
            let has_run = |known| from.has_run && known == Known::On(cpu);
            let was = |known| has_run(known).then_some(ThreadState::Running);
            self.turn(leaver, time, was, next);
        }
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Claim::default());
        }
        let since = to.thread.filter(|_| to.is_whole).map(|_| time);
        self.cpus[index] = Claim { came: to.thread, since, stream, is_rival_since: None };
        // A sleeping thread was woken before, unseen: neither its sleep nor its wait is known.
        if let Some(to) = to.thread.filter(|_| to.is_whole) {
            if let Some((Known::On(elsewhere), since)) = self.thread(to).now
                && elsewhere != cpu
            {
                self.end_move(to, false);
                let is_contradicted = self.thread(to).is_contradicted(since);
                self.doubt_claim(to, elsewhere, time);
                let of = self.thread(to);
                of.moved = Some(Moved { cpu: elsewhere, since, at: time, is_contradicted });
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

    /// Ends the trace, or a recording that others follow: the ends of current states were not seen.
    pub fn finish(&mut self, end: Nanos) {
        for (thread, of) in (0..).zip(&mut self.threads) {
            let of = std::mem::replace(of, Thread::NEW);
            let Thread { now, is_first, moved, .. } = of;
            // On two CPUs at once up to the end: one unknown interval.
            let now = moved.map(|moved| (Known::Nothing, moved.since)).or(now);
            let Some((known, begin)) = now.filter(|(known, _)| *known != Known::Ended) else {
                continue;
            };
            let is_whole = !of.is_contradicted(begin) && !self.gaps.between_in(None, begin, end);
            // Without wakeups, a thread that slept may by now be waiting for a CPU.
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
        for (cpu, claim) in (0..).zip(std::mem::take(&mut self.cpus)) {
            let rival = claim.came.zip(claim.is_rival_since);
            if let Some((thread, since)) = rival.filter(|(_, since)| end > *since) {
                self.contradicts(cpu, thread, since, end);
            }
        }
    }
}
