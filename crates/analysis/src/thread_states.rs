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
//! A stretch has a state where both of its ends were seen, nothing is missing in between and no processor
//! contradicts it; else it is unknown, so that each sum of stretches could only be larger. A processor
//! contradicts if by its last switch it runs the thread while the thread is known to be elsewhere, or not to
//! run: then neither is known, until that processor switches again.

use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::Gaps;
use crate::contradictions::{Contradiction, ContradictionKind};

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
    /// What each processor says by its last switch.
    cpus: Vec<Claim>,
    /// Stretches that were not taken yet.
    intervals: Vec<ThreadInterval>,
    /// Whether the trace has wake-ups.
    has_wakes: bool,
    /// Contradictions that were not taken yet.
    contradictions: Vec<Contradiction>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    now: Option<(Known, Nanos)>,
    is_first: bool,
    /// It came to another processor than it was on, and may leave that in the same moment.
    moved: Option<Moved>,
    /// Processors that say that they run it while it is known to be elsewhere.
    rival_count: u32,
    /// Until when there was such a processor.
    contradicted_until: Nanos,
    /// When its events of one time, in several streams, can have happened in different orders.
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

    /// Whether a processor contradicts what is known of it since then.
    fn is_contradicted(&self, since: Nanos) -> bool {
        self.rival_count > 0 || self.contradicted_until > since
    }

    /// Whether a state from one time to another depends on the order of events of one time.
    fn is_unordered(&self, begin: Nanos, end: Nanos) -> bool {
        begin == end && self.unordered_at == Some(end)
    }
}

/// Where a thread was, since when, and when it came elsewhere.
#[derive(Debug, Clone, Copy)]
struct Moved {
    cpu: u32,
    since: Nanos,
    at: Nanos,
    /// Whether it was contradicted before that.
    is_contradicted: bool,
}

/// What a processor says by its last switch: that a thread came to it, and did not leave it since.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    /// Who came last; it may have left unseen.
    came: Option<u32>,
    /// Since when that thread has it, if every switch of the thread is in the trace.
    since: Option<Nanos>,
    stream: Option<StreamIndex>,
    /// Since when the thread is known to be elsewhere.
    is_rival_since: Option<Nanos>,
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
        let contradictions = Vec::new();
        Self { gaps, threads, cpus, intervals, has_wakes: false, contradictions }
    }

    /// Stretches that have ended since this was asked last, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.intervals.drain(..)
    }

    /// Contradictions that were found since this was asked last.
    pub fn take_contradictions(&mut self) -> impl Iterator<Item = Contradiction> + '_ {
        self.contradictions.drain(..)
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
    /// this time: no other processor says that it runs it.
    #[must_use]
    pub fn has_run_on(&self, thread: u32, cpu: u32, time: Nanos) -> bool {
        let Some(of) = self.threads.get(thread as usize) else { return false };
        match (of.now, of.moved) {
            (Some((Known::On(on), since)), _) if on == cpu => !of.is_contradicted(since),
            (_, Some(moved)) => (moved.cpu, moved.at) == (cpu, time) && !moved.is_contradicted,
            _ => false,
        }
    }

    /// Whether a thread came to another processor in this moment, and may leave this one in it as well.
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

    /// Who came to a processor last; it may have left it unseen.
    #[must_use]
    pub fn came(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(cpu as usize)?.came
    }

    /// A thread is known to be elsewhere, or not to run, from a time on: the processor to which it came is
    /// believed no longer, and contradicts, unless events are missing in which the thread can have left it.
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

    /// A processor switches: what it said until now it says no longer. Gives the thread that came last.
    fn take_claim(&mut self, cpu: u32, time: Nanos) -> Option<u32> {
        let old = self.cpus.get_mut(cpu as usize).map(std::mem::take)?;
        if let (Some(thread), Some(since)) = (old.came, old.is_rival_since) {
            let of = self.thread(thread);
            of.rival_count = of.rival_count.saturating_sub(1);
            // In one moment a thread leaves here and is elsewhere.
            if time > since {
                of.contradicted_until = of.contradicted_until.max(time);
                self.contradicts(cpu, thread, since, time);
            }
        }
        old.came
    }

    /// A processor said that it runs a thread that was elsewhere, or did not run.
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

    /// Ends what a thread did: in `state` all the time, if that is what was known of it.
    fn turn(
        &mut self,
        thread: u32,
        time: Nanos,
        was: impl Fn(Known) -> Option<ThreadState>,
        next: Known,
    ) {
        self.end_move(thread, false);
        let of = *self.thread(thread);
        // Where its processor has switched itself, that claims it no longer.
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
        // Of one that ran, its processor has told whether anything is missing.
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

    /// What a thread did before it moved: it ran, if it left in that moment. Says whether it moved.
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

    /// Events of a thread have this time in several streams, and their order decides what it does: it is
    /// unknown until [`ThreadStates::forget`] and afterwards until its next event.
    pub fn set_unordered(&mut self, thread: u32, time: Nanos) {
        self.thread(thread).unordered_at = Some(time);
    }

    /// What a thread does from now on is unknown.
    pub fn forget(&mut self, thread: u32, time: Nanos) {
        if self.now(thread).is_none_or(|(state, ..)| state.is_some()) {
            self.turn(thread, time, |_| None, Known::Nothing);
        }
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

    /// A processor turns from one thread to another; `stream`: that which alone has its switches.
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
        // Who sleeps was woken first, unseen: neither its sleep nor its wait is known.
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

    /// The trace ends, or recordings end behind which others begin: what threads do still was not seen to
    /// its end.
    pub fn finish(&mut self, end: Nanos) {
        for (thread, of) in (0..).zip(&mut self.threads) {
            let of = std::mem::replace(of, Thread::NEW);
            let Thread { now, is_first, moved, .. } = of;
            // On two processors at once up to the end: that is one stretch of which nothing is known.
            let now = moved.map(|moved| (Known::Nothing, moved.since)).or(now);
            let Some((known, begin)) = now.filter(|(known, _)| *known != Known::Ended) else {
                continue;
            };
            let is_whole = !of.is_contradicted(begin) && !self.gaps.between_in(None, begin, end);
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
        for (cpu, claim) in (0..).zip(std::mem::take(&mut self.cpus)) {
            let rival = claim.came.zip(claim.is_rival_since);
            if let Some((thread, since)) = rival.filter(|(_, since)| end > *since) {
                self.contradicts(cpu, thread, since, end);
            }
        }
    }
}
