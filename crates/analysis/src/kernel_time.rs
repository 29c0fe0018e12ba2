// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of its time a thread spends in the kernel: on a processor and inside a call
//! of the system, or interrupted.

use lateralis_units::Nanos;

use crate::Gaps;

#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    since: Nanos,
    thread: Option<u32>,
    interrupts: u32,
    interrupted: Nanos,
    nanos: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    /// Calls it is inside of, and since when.
    calls: u32,
    entered: Nanos,
    nanos: u64,
}

/// Follows switches, calls and interrupts, in the order of time.
///
/// Processors and threads are small numbers ([`crate::Numbering`]). Cost: constant;
/// memory by processors and threads. What began before events were missing is doubted
/// until it is told anew, so that missing events can only make the sums smaller. What a processor does after
/// its last event is not known and does not count.
#[derive(Debug, Clone, Default)]
pub struct KernelTime {
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    gaps: Gaps,
}

impl KernelTime {
    /// With these stretches of missing events.
    #[must_use]
    pub fn new(gaps: Gaps) -> Self {
        Self { cpus: Vec::new(), threads: Vec::new(), gaps }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Thread::default());
        }
        &mut self.threads[index]
    }

    /// Gives the time of a processor up to now, if it was in the kernel.
    fn credit(&mut self, cpu: u32, time: Nanos) -> &mut Cpu {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Cpu { since: time, ..Cpu::default() });
        }
        let of = self.cpus[index];
        let called = of.thread.and_then(|thread| self.threads.get(thread as usize));
        let called = called.filter(|called| called.calls > 0);
        let entered = if of.interrupts > 0 {
            Some(of.interrupted)
        } else {
            called.map(|called| called.entered)
        };
        let nanos = time.since(of.since).max(0) as u64;
        if let Some(entered) = entered
            && nanos > 0
            && !self.gaps.between(entered.min(of.since), time)
        {
            let of_cpu = &mut self.cpus[index].nanos;
            *of_cpu = of_cpu.saturating_add(nanos);
            if let Some(thread) = of.thread {
                let of_thread = &mut self.thread(thread).nanos;
                *of_thread = of_thread.saturating_add(nanos);
            }
        }
        let of = &mut self.cpus[index];
        of.since = of.since.max(time);
        of
    }

    /// A processor turns to a thread; `None` is idleness.
    pub fn switch(&mut self, cpu: u32, time: Nanos, to: Option<u32>) {
        self.credit(cpu, time).thread = to;
    }

    /// A thread goes into the kernel by itself: a call, a fault.
    pub fn call(&mut self, cpu: u32, thread: u32, time: Nanos) {
        self.credit(cpu, time).thread = Some(thread);
        let is_doubted = {
            let entered = self.thread(thread).entered;
            self.gaps.between(entered.min(time), time)
        };
        let of = self.thread(thread);
        if of.calls == 0 || is_doubted {
            (of.calls, of.entered) = (0, time);
        }
        of.calls += 1;
    }

    /// It comes back.
    pub fn return_from_call(&mut self, cpu: u32, thread: u32, time: Nanos) {
        self.credit(cpu, time).thread = Some(thread);
        let of = self.thread(thread);
        of.calls = of.calls.saturating_sub(1);
    }

    /// A processor is interrupted.
    pub fn interrupt(&mut self, cpu: u32, time: Nanos) {
        let interrupted = self.credit(cpu, time).interrupted;
        let is_doubted = self.gaps.between(interrupted.min(time), time);
        let of = &mut self.cpus[cpu as usize];
        if of.interrupts == 0 || is_doubted {
            (of.interrupts, of.interrupted) = (0, time);
        }
        of.interrupts += 1;
    }

    /// It is done with the interrupt.
    pub fn return_from_interrupt(&mut self, cpu: u32, time: Nanos) {
        let of = self.credit(cpu, time);
        of.interrupts = of.interrupts.saturating_sub(1);
    }

    /// Nanoseconds of a processor in the kernel on behalf of threads, or interrupted.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> u64 {
        self.cpus.get(cpu as usize).map_or(0, |of| of.nanos)
    }

    /// Nanoseconds of a thread in the kernel, interrupts included that it bore.
    #[must_use]
    pub fn of_thread(&self, thread: u32) -> u64 {
        self.threads.get(thread as usize).map_or(0, |of| of.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{Interval, Loss, LossCause, StreamIndex};

    #[test]
    fn only_time_on_a_processor_counts() {
        let mut all = KernelTime::default();
        all.switch(0, Nanos(0), Some(1));
        all.call(0, 1, Nanos(10));
        all.switch(0, Nanos(15), None);
        all.interrupt(0, Nanos(20));
        all.return_from_interrupt(0, Nanos(22));
        all.switch(0, Nanos(40), Some(1));
        all.return_from_call(0, 1, Nanos(43));
        all.interrupt(0, Nanos(50));
        all.interrupt(0, Nanos(52));
        all.return_from_interrupt(0, Nanos(55));
        all.return_from_interrupt(0, Nanos(56));
        // When it comes back from this is not known.
        all.call(0, 1, Nanos(60));
        assert_eq!(all.of_thread(1), 5 + 3 + 6);
        assert_eq!(all.of_cpu(0), 5 + 2 + 3 + 6);
        assert_eq!((all.of_cpu(7), all.of_thread(7)), (0, 0));
    }

    #[test]
    fn what_began_before_a_loss_is_doubted() {
        let interval = Interval { begin: Some(Nanos(20)), end: Some(Nanos(30)) };
        let cause = LossCause::Full;
        let loss = Loss { stream: StreamIndex(0), cause, count: None, interval };
        let mut all = KernelTime::new(Gaps::new(&[loss], &[], |_| None));
        all.switch(0, Nanos(0), Some(1));
        all.call(0, 1, Nanos(10));
        all.interrupt(0, Nanos(12));
        // The returns are lost.
        all.switch(0, Nanos(40), Some(1));
        all.call(0, 1, Nanos(50));
        all.return_from_call(0, 1, Nanos(53));
        all.switch(0, Nanos(60), None);
        assert_eq!(all.of_thread(1), 2);
    }
}
