// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads and processors together: a thread runs where and as long as its processor is known to have it,
//! so that both say the same of every moment.

use lateralis_units::Nanos;

use crate::contradictions::{Contradiction, ContradictionKind};
use crate::occupancy::{Occupancy, Occupant, Stretch, Switch};
use crate::thread_states::{Comes, GoesInto, Leaves, ThreadInterval, ThreadState, ThreadStates};
use crate::{Gaps, ThreadTotals, Utilisation};

/// Sums of what threads and processors did.
#[derive(Debug)]
pub struct ScheduleSums {
    /// By processor, and the running time of each thread.
    pub utilisation: Utilisation,
    /// By thread and state.
    pub threads: ThreadTotals,
    /// Wake-ups of threads that were awake.
    pub needless_wakes: u64,
}

/// Follows threads and processors through switches and wake-ups, in the order of time.
///
/// Threads and processors are small numbers ([`crate::Numbering`]). Cost: constant for each event; memory by
/// threads and processors.
#[derive(Debug)]
pub struct Scheduling {
    occupancy: Occupancy,
    states: ThreadStates,
    cpu_count: u32,
    sums: Option<Box<ScheduleSums>>,
    /// Stretches of threads that were not taken yet.
    ended: Vec<ThreadInterval>,
    /// Contradictions that were not taken yet.
    contradictions: Vec<Contradiction>,
}

impl Scheduling {
    /// From a moment on, with where events are missing; `buckets` of a time series of each processor at most,
    /// where sums are wanted.
    #[must_use]
    pub fn new(begin: Nanos, gaps: &Gaps, buckets: Option<usize>) -> Self {
        let sums = |buckets| ScheduleSums {
            utilisation: Utilisation::new(begin, buckets),
            threads: ThreadTotals::default(),
            needless_wakes: 0,
        };
        Self {
            occupancy: Occupancy::new(begin, gaps.clone()),
            states: ThreadStates::new(gaps.clone()),
            cpu_count: 0,
            sums: buckets.map(|buckets| Box::new(sums(buckets))),
            ended: Vec::new(),
            contradictions: Vec::new(),
        }
    }

    /// More is known by now of where events are missing.
    pub fn set_gaps(&mut self, gaps: &Gaps) {
        self.states.set_gaps(gaps.clone());
        self.occupancy.set_gaps(gaps.clone());
    }

    /// The sums so far, where they are wanted; from now on there are none.
    #[must_use]
    pub fn take_sums(&mut self) -> Option<Box<ScheduleSums>> {
        self.sums.take()
    }

    /// As [`ThreadStates::now`].
    #[must_use]
    pub fn now(&self, thread: u32) -> Option<(Option<ThreadState>, Nanos, Option<u32>)> {
        self.states.now(thread)
    }

    /// Stretches of threads that have ended since this was asked last, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.ended.drain(..)
    }

    /// Contradictions found since this was asked last.
    pub fn take_contradictions(&mut self) -> impl Iterator<Item = Contradiction> + '_ {
        self.contradictions.drain(..)
    }

    /// Something happened on a processor.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) {
        self.cpu_count = self.cpu_count.max(cpu.saturating_add(1));
        let stretch = self.occupancy.appear(cpu, time);
        if let (Some(stretch), Some(sums)) = (stretch, &mut self.sums) {
            sums.utilisation.credit(&stretch);
        }
    }

    /// As [`ThreadStates::has_wakes`].
    #[must_use]
    pub fn has_wakes(&self) -> bool {
        self.states.has_wakes()
    }

    /// As [`ThreadStates::set_unordered`].
    pub fn set_unordered(&mut self, thread: u32, time: Nanos) {
        self.states.set_unordered(thread, time);
    }

    /// As [`ThreadStates::forget`].
    pub fn forget(&mut self, thread: u32, time: Nanos) {
        self.states.forget(thread, time);
        self.end(None);
    }

    /// A thread is made by another: it has no time before.
    pub fn made(&mut self, time: Nanos, thread: u32) {
        self.states.made(time, thread);
        if let Some(sums) = &mut self.sums {
            sums.threads.has_ended(thread, false);
        }
        self.end(None);
    }

    /// A thread is made ready to run, and whether it was not before.
    pub fn wake(&mut self, time: Nanos, thread: u32) -> bool {
        let is_ready = self.states.wake(time, thread);
        if let Some(sums) = &mut self.sums {
            sums.needless_wakes += u64::from(!is_ready);
        }
        self.end(None);
        is_ready
    }

    /// A processor turns from one thread, which goes into this, to another. Gives what it did until now.
    pub fn switch(&mut self, switch: &Switch, goes_into: GoesInto) -> Stretch {
        let Switch { time, cpu, stream, from, to, to_is_whole, is_since_last } = *switch;
        self.appear(cpu, time);
        let came = self.occupancy.occupant(cpu);
        let mut stretch = self.occupancy.switch(*switch);
        if let Some([came, left]) = stretch.missing
            && !self.occupancy.has_gap(&stretch)
        {
            let Stretch { begin, end, .. } = stretch;
            let kind = ContradictionKind::OtherThreadLeft { came, left };
            self.contradictions.push(Contradiction { cpu, begin, end, kind });
        }
        // No thread is on two processors: where another says so as well, both are unknown.
        if let Some(Occupant::Thread(thread)) = stretch.occupant
            && !self.states.has_run_on(thread, cpu, time)
        {
            stretch.occupant = None;
        }
        let leaves = Leaves {
            thread: from.thread(),
            goes_into,
            is_whole: is_since_last,
            has_run: stretch.occupant.is_some(),
        };
        let comes = Comes { thread: to.thread(), is_whole: to_is_whole };
        let has_come = self.states.came(cpu).is_some_and(|came| Some(came) == leaves.thread);
        self.states.switch((time, cpu), stream, leaves, comes);
        if let Some(sums) = &mut self.sums {
            sums.utilisation.push(switch, came, &stretch);
            if let Some(thread) = leaves.thread {
                if is_since_last {
                    sums.threads.has_ended(thread, goes_into == GoesInto::End);
                }
                if has_come {
                    sums.threads.ran(thread, &stretch);
                }
            }
        }
        self.end(Some((cpu, from)));
        stretch
    }

    /// Counts what has ended.
    fn end(&mut self, switched: Option<(u32, Occupant)>) {
        self.contradictions.extend(self.states.take_contradictions());
        for interval in self.states.take() {
            if let Some(sums) = &mut self.sums {
                sums.threads.add(&interval, switched);
            }
            self.ended.push(interval);
        }
    }

    /// The trace ends, or recordings end behind which others begin.
    pub fn finish(&mut self, end: Nanos) {
        for cpu in 0..self.cpu_count {
            let came = self.occupancy.occupant(cpu);
            let stretch = self.occupancy.finish(cpu, end);
            if let Some(sums) = &mut self.sums {
                sums.utilisation.finish(came, &stretch);
            }
        }
        self.states.finish(end);
        self.end(None);
    }
}

#[cfg(test)]
#[path = "scheduling_tests.rs"]
mod tests;
