// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Combines threads and CPUs: a thread runs exactly while its CPU is known to run it, so that both agree
//! at every time.

use lateralis_units::Nanos;

use crate::contradictions::{Contradiction, ContradictionKind};
use crate::occupancy::{Occupancy, Occupant, Stretch, Switch};
use crate::thread_states::{Comes, GoesInto, Leaves, ThreadInterval, ThreadState, ThreadStates};
use crate::{Gaps, ThreadTotals, Utilisation};

/// Sums over threads and CPUs.
#[derive(Debug)]
pub struct ScheduleSums {
    /// By CPU, and the running time of each thread.
    pub utilisation: Utilisation,
    /// By thread and state.
    pub threads: ThreadTotals,
    /// Wakeups of threads that were awake.
    pub needless_wakes: u64,
}

/// Follows threads and CPUs through switches and wakeups, in time order.
///
/// CPUs and threads are small numbers ([`crate::Numbering`]). Cost: constant for each event; memory
/// proportional to threads and CPUs.
#[derive(Debug)]
pub struct Scheduling {
    occupancy: Occupancy,
    states: ThreadStates,
    cpu_count: u32,
    sums: Option<Box<ScheduleSums>>,
    /// Thread intervals that have not been taken yet.
    ended: Vec<ThreadInterval>,
    /// Contradictions that have not been taken yet.
    contradictions: Vec<Contradiction>,
}

impl Scheduling {
    /// Starts at a time, with the known gaps; `buckets`: compute sums, with at most this number of
    /// buckets in the time series of each CPU.
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

    /// Replaces the known gaps.
    pub fn set_gaps(&mut self, gaps: &Gaps) {
        self.states.set_gaps(gaps.clone());
        self.occupancy.set_gaps(gaps.clone());
    }

    /// Takes the sums so far, if enabled; afterwards there are none.
    #[must_use]
    pub fn take_sums(&mut self) -> Option<Box<ScheduleSums>> {
        self.sums.take()
    }

    /// See [`ThreadStates::now`].
    #[must_use]
    pub fn now(&self, thread: u32) -> Option<(Option<ThreadState>, Nanos, Option<u32>)> {
        self.states.now(thread)
    }

    /// Thread intervals that ended since the last call, in the order of their ends.
    pub fn take(&mut self) -> impl Iterator<Item = ThreadInterval> + '_ {
        self.ended.drain(..)
    }

    /// Contradictions found since the last call.
    pub fn take_contradictions(&mut self) -> impl Iterator<Item = Contradiction> + '_ {
        self.contradictions.drain(..)
    }

    /// An event happened on a CPU.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) {
        self.cpu_count = self.cpu_count.max(cpu.saturating_add(1));
        let stretch = self.occupancy.appear(cpu, time);
        if let (Some(stretch), Some(sums)) = (stretch, &mut self.sums) {
            sums.utilisation.credit(&stretch);
        }
    }

    /// See [`ThreadStates::has_wakes`].
    #[must_use]
    pub fn has_wakes(&self) -> bool {
        self.states.has_wakes()
    }

    /// See [`ThreadStates::set_unordered`].
    pub fn set_unordered(&mut self, thread: u32, time: Nanos) {
        self.states.set_unordered(thread, time);
    }

    /// See [`ThreadStates::forget`].
    pub fn forget(&mut self, thread: u32, time: Nanos) {
        self.states.forget(thread, time);
        self.end(None);
    }

    /// A thread is created by another: it did not exist before.
    pub fn made(&mut self, time: Nanos, thread: u32) {
        self.states.made(time, thread);
        if let Some(sums) = &mut self.sums {
            sums.threads.has_ended(thread, false);
        }
        self.end(None);
    }

    /// A thread is woken; returns whether it was not runnable before.
    pub fn wake(&mut self, time: Nanos, thread: u32) -> bool {
        let is_ready = self.states.wake(time, thread);
        if let Some(sums) = &mut self.sums {
            sums.needless_wakes += u64::from(!is_ready);
        }
        self.end(None);
        is_ready
    }

    /// A CPU switches from one thread, which enters `goes_into`, to another. Returns the interval that
    /// ends.
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
        // A thread is not on two CPUs: if another CPU claims it as well, both are unknown.
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

    /// Adds ended intervals to the sums.
    fn end(&mut self, switched: Option<(u32, Occupant)>) {
        self.contradictions.extend(self.states.take_contradictions());
        for interval in self.states.take() {
            if let Some(sums) = &mut self.sums {
                sums.threads.add(&interval, switched);
            }
            self.ended.push(interval);
        }
    }

    /// Ends the trace, or a recording that others follow.
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
