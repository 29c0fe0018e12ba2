// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long threads were in each state, and their waits for a processor: sums of [`ThreadInterval`].

use std::collections::{BTreeMap, VecDeque};

use lateralis_units::Nanos;

use crate::occupancy::{Occupant, Stretch};
use crate::{Durations, ThreadInterval, ThreadState};

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

/// Who had a processor: thread, since when and until when. The last [`RUNS`].
type Runs = VecDeque<(u32, Nanos, Nanos)>;

/// Stretches of a processor that are remembered, to find the thread that ran instead of a waiting one.
const RUNS: usize = 64;

/// Adds stretches of threads up.
///
/// Cost: constant for each, and a look at the last [`RUNS`] of a processor for the longest wait so far of a
/// thread. Memory: by threads and waits.
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

    /// A thread had a processor; that it had it all the time need not be known.
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

    /// Who of those that are remembered ran longest on a processor since then.
    fn ran_most_since(&self, cpu: u32, begin: Nanos) -> Option<u32> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        let runs = self.runs.get(cpu as usize)?;
        for (thread, since, until) in runs.iter().rev().take_while(|run| run.2 > begin) {
            *sums.entry(*thread).or_default() += until.since((*since).max(begin));
        }
        sums.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(thread, _)| thread)
    }

    /// A thread has ended, or is there again under the number of one that has.
    pub fn has_ended(&mut self, thread: u32, has_ended: bool) {
        self.thread(thread).has_ended = has_ended;
    }

    /// Adds a stretch. `switched`: the processor whose switch ended it, and who left that then.
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

    /// By thread.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTimes] {
        &self.threads
    }
}
