// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time of threads in each state, and their waits for a CPU: sums of [`ThreadInterval`].

use std::collections::{BTreeMap, VecDeque};

use lateralis_units::Nanos;

use crate::occupancy::{Occupant, Stretch};
use crate::{Durations, ThreadInterval, ThreadState};

/// Time in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateTime {
    /// Nanoseconds of all intervals.
    pub nanos: u64,
    /// Number of intervals.
    pub count: u64,
}

/// The longest wait for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestWait {
    /// Begin of the wait.
    pub begin: Nanos,
    /// Length in nanoseconds.
    pub nanos: u64,
    /// CPU that the thread got.
    pub cpu: u32,
    /// Thread that had that CPU for most of the wait; the last one if that is unknown. `None`: the CPU
    /// was idle.
    pub instead: Option<u32>,
    /// Whether it had been running rather than sleeping.
    pub was_preempted: bool,
}

/// Times of a thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadTimes {
    times: [StateTime; ThreadState::ALL.len()],
    /// Nanoseconds of unknown state between its first event and its last.
    pub unknown_nanos: u64,
    /// Waits for a CPU, from being woken or preempted to running.
    pub waits: Durations,
    /// The longest wait.
    pub longest_wait: Option<LongestWait>,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether its times are lower bounds: it began before the trace, continues at its end, or switches
    /// are missing.
    pub is_open: bool,
    /// Whether some of its waits may be longer, or missing: part of the time between its first event and
    /// the last is unknown, or it waits at the end.
    pub may_wait_more: bool,
}

impl ThreadTimes {
    /// Time in a state.
    #[must_use]
    pub fn of(&self, state: ThreadState) -> StateTime {
        self.times[state as usize]
    }

    /// Whether anything is known about it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.times.iter().any(|time| time.count > 0)
    }
}

/// Recent occupants of a CPU: thread, begin and end. At most [`RUNS`].
type Runs = VecDeque<(u32, Nanos, Nanos)>;

/// Intervals of a CPU that are remembered to find the thread that ran instead of a waiting one.
const RUNS: usize = 64;

/// Adds up thread intervals.
///
/// Cost: constant for each, and a look at the last [`RUNS`] of a CPU for the longest wait so far of a
/// thread. Memory: proportional to threads and waits.
#[derive(Debug, Clone, Default)]
pub struct ThreadTotals {
    threads: Vec<ThreadTimes>,
    runs: Vec<Runs>,
}

impl ThreadTotals {
    fn thread(&mut self, thread: u32) -> &mut ThreadTimes {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, ThreadTimes::default);
        }
        &mut self.threads[index]
    }

    /// A thread had a CPU; it need not be known to have had it all the time.
    pub fn ran(&mut self, thread: u32, stretch: &Stretch) {
        let index = stretch.cpu as usize;
        if index >= self.runs.len() {
            self.runs.resize_with(index + 1, Runs::default);
        }
        let runs = &mut self.runs[index];
        if runs.len() == RUNS {
            runs.pop_front();
        }
        runs.push_back((thread, stretch.begin, stretch.end));
    }

    /// The thread that ran longest on a CPU since a time, among those remembered.
    fn ran_most_since(&self, cpu: u32, begin: Nanos) -> Option<u32> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        let runs = self.runs.get(cpu as usize)?;
        for (thread, since, until) in runs.iter().rev().take_while(|run| run.2 > begin) {
            *sums.entry(*thread).or_default() += until.since((*since).max(begin));
        }
        sums.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(thread, _)| thread)
    }

    /// A thread has ended, or its number is reused.
    pub fn has_ended(&mut self, thread: u32, has_ended: bool) {
        self.thread(thread).has_ended = has_ended;
    }

    /// Adds an interval. `switched`: the CPU whose switch ended it, and the occupant that left.
    pub fn add(&mut self, of: &ThreadInterval, switched: Option<(u32, Occupant)>) {
        let nanos = of.end.since(of.begin).max(0) as u64;
        let state = of.state.filter(|_| of.has_ended);
        let time = self.thread(of.thread);
        time.is_open |= of.is_first || state.is_none();
        let Some(state) = state else {
            time.unknown_nanos = time.unknown_nanos.saturating_add(nanos);
            time.may_wait_more |=
                of.has_ended || of.state.is_none_or(ThreadState::is_waiting_for_cpu);
            return;
        };
        let sum = &mut time.times[state as usize];
        sum.nanos = sum.nanos.saturating_add(nanos);
        sum.count += 1;
        let Some((cpu, last)) = switched.filter(|_| state.is_waiting_for_cpu()) else { return };
        time.waits.push(nanos);
        if time.longest_wait.is_none_or(|longest| longest.nanos < nanos) {
            let was_preempted = state == ThreadState::Preempted;
            let instead = self.ran_most_since(cpu, of.begin).or(last.thread());
            let begin = of.begin;
            let longest = LongestWait { begin, nanos, cpu, instead, was_preempted };
            self.thread(of.thread).longest_wait = Some(longest);
        }
    }

    /// Times by thread.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTimes] {
        &self.threads
    }
}
