// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time of threads in the kernel: on a CPU and inside a system call, or interrupted.

use lateralis_units::Nanos;

use crate::Gaps;

/// Largest nesting of calls and interrupts, and number of places in which the time of one is counted
/// separately.
const INSIDE_MAX: usize = 64;

/// Calls or interrupts that a thread or a CPU is inside of. Their time counts once the return has been
/// seen: without a recorded return they would last for ever.
#[derive(Debug, Clone, Default)]
struct Inside {
    /// Kinds that were entered, outermost first, and the time of the first.
    kinds: Vec<u32>,
    entered: Nanos,
    /// Nanoseconds since then, by place.
    nanos: Vec<(Option<u32>, u64)>,
}

impl Inside {
    fn enter(&mut self, kind: u32, time: Nanos) {
        if self.kinds.is_empty() || self.kinds.len() == INSIDE_MAX {
            self.forget();
            self.entered = time;
        }
        self.kinds.push(kind);
    }

    fn forget(&mut self) {
        self.kinds.clear();
        self.nanos.clear();
    }

    fn pass(&mut self, place: Option<u32>, nanos: u64) {
        let known = self.nanos.iter().position(|(known, _)| *known == place);
        if let Some((_, sum)) = known.map(|index| &mut self.nanos[index]) {
            *sum = sum.saturating_add(nanos);
        } else if self.nanos.len() < INSIDE_MAX {
            self.nanos.push((place, nanos));
        }
    }

    /// If this leaves the outermost, returns the nanoseconds of all that was entered, by place.
    fn leave(&mut self, kind: u32, time: Nanos, gaps: &Gaps) -> Vec<(Option<u32>, u64)> {
        // It is not the innermost one: events in between were not recorded.
        if self.kinds.pop() != Some(kind) {
            self.forget();
        }
        if !self.kinds.is_empty() || gaps.between(self.entered.min(time), time) {
            return Vec::new();
        }
        std::mem::take(&mut self.nanos)
    }
}

#[derive(Debug, Clone, Default)]
struct Cpu {
    since: Nanos,
    thread: Option<u32>,
    /// By interrupted thread.
    interrupts: Inside,
    nanos: u64,
}

#[derive(Debug, Clone, Default)]
struct Thread {
    /// By CPU.
    calls: Inside,
    nanos: u64,
}

/// An entry of a thread into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Kind; its return has the same kind.
    pub kind: u32,
    /// Whether it can be nested in another one, as a fault can. A system call cannot.
    pub is_nested: bool,
}

/// Follows switches, calls and interrupts, in time order.
///
/// CPUs and threads are small numbers ([`crate::Numbering`]). Cost: constant; memory proportional to CPUs
/// and threads. The sums are always lower bounds: no tracer records every entry into the kernel
/// (non-maskable interrupts, traps, kernel threads), and calls that began before the trace, or have not
/// returned in it, do not count.
#[derive(Debug, Clone, Default)]
pub struct KernelTime {
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    gaps: Gaps,
}

impl KernelTime {
    /// With these gaps.
    #[must_use]
    pub fn new(gaps: Gaps) -> Self {
        Self { cpus: Vec::new(), threads: Vec::new(), gaps }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    fn cpu(&mut self, cpu: u32, time: Nanos) -> &mut Cpu {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize_with(index + 1, || Cpu { since: time, ..Cpu::default() });
        }
        &mut self.cpus[index]
    }

    /// Adds the time of a CPU up to now to what it is inside of.
    fn pass(&mut self, cpu: u32, time: Nanos) -> &mut Cpu {
        let of = self.cpu(cpu, time);
        let nanos = time.since(of.since).max(0) as u64;
        of.since = of.since.max(time);
        let thread = of.thread;
        if nanos > 0 {
            if !of.interrupts.kinds.is_empty() {
                of.interrupts.pass(thread, nanos);
            } else if let Some(thread) = thread
                && !self.thread(thread).calls.kinds.is_empty()
            {
                self.thread(thread).calls.pass(Some(cpu), nanos);
            }
        }
        &mut self.cpus[cpu as usize]
    }

    fn add(&mut self, cpu: u32, thread: Option<u32>, nanos: u64) {
        if let Some(of) = self.cpus.get_mut(cpu as usize) {
            of.nanos = of.nanos.saturating_add(nanos);
        }
        if let Some(thread) = thread {
            let of = self.thread(thread);
            of.nanos = of.nanos.saturating_add(nanos);
        }
    }

    /// A CPU switches to a thread; `None` is idle.
    pub fn switch(&mut self, cpu: u32, time: Nanos, to: Option<u32>) {
        let of = self.pass(cpu, time);
        of.thread = to;
        // No interrupt stays open across a switch: its return is missing.
        of.interrupts.forget();
    }

    /// A thread enters the kernel by itself: a call, a fault.
    pub fn call(&mut self, cpu: u32, thread: u32, call: Call, time: Nanos) {
        self.pass(cpu, time).thread = Some(thread);
        let calls = &mut self.thread(thread).calls;
        if !call.is_nested {
            // The return of the previous one is missing.
            calls.forget();
        }
        calls.enter(call.kind, time);
    }

    /// The thread returns from the kernel.
    pub fn return_from_call(&mut self, cpu: u32, thread: u32, kind: u32, time: Nanos) {
        self.pass(cpu, time).thread = Some(thread);
        let mut calls = std::mem::take(&mut self.thread(thread).calls);
        for (place, nanos) in calls.leave(kind, time, &self.gaps) {
            if let Some(cpu) = place {
                self.add(cpu, Some(thread), nanos);
            }
        }
        self.thread(thread).calls = calls;
    }

    /// A CPU is interrupted.
    pub fn interrupt(&mut self, cpu: u32, kind: u32, time: Nanos) {
        self.pass(cpu, time).interrupts.enter(kind, time);
    }

    /// A CPU returns from an interrupt.
    pub fn return_from_interrupt(&mut self, cpu: u32, kind: u32, time: Nanos) {
        let mut interrupts = std::mem::take(&mut self.pass(cpu, time).interrupts);
        for (thread, nanos) in interrupts.leave(kind, time, &self.gaps) {
            self.add(cpu, thread, nanos);
        }
        self.cpu(cpu, time).interrupts = interrupts;
    }

    /// Nanoseconds of a CPU in the kernel on behalf of threads, or interrupted.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> u64 {
        self.cpus.get(cpu as usize).map_or(0, |of| of.nanos)
    }

    /// Nanoseconds of a thread in the kernel, including interrupts while it ran.
    #[must_use]
    pub fn of_thread(&self, thread: u32) -> u64 {
        self.threads.get(thread as usize).map_or(0, |of| of.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{Interval, Loss, LossCause, StreamIndex};

    const READ: Call = Call { kind: 7, is_nested: false };
    const FAULT: Call = Call { kind: 8, is_nested: true };

    #[test]
    fn only_time_on_a_processor_counts() {
        let mut all = KernelTime::default();
        all.switch(0, Nanos(0), Some(1));
        all.call(0, 1, READ, Nanos(10));
        all.switch(0, Nanos(15), None);
        all.interrupt(0, 0, Nanos(20));
        all.return_from_interrupt(0, 0, Nanos(22));
        all.switch(1, Nanos(40), Some(1));
        all.call(1, 1, FAULT, Nanos(41));
        all.return_from_call(1, 1, FAULT.kind, Nanos(42));
        all.return_from_call(1, 1, READ.kind, Nanos(43));
        all.interrupt(1, 0, Nanos(50));
        all.interrupt(1, 3, Nanos(52));
        all.return_from_interrupt(1, 3, Nanos(55));
        all.return_from_interrupt(1, 0, Nanos(56));
        assert_eq!(all.of_thread(1), 5 + 3 + 6);
        assert_eq!((all.of_cpu(0), all.of_cpu(1)), (5 + 2, 3 + 6));
        assert_eq!((all.of_cpu(7), all.of_thread(7)), (0, 0));
    }

    #[test]
    fn what_was_not_seen_to_return_does_not_count() {
        let mut all = KernelTime::default();
        all.switch(0, Nanos(0), Some(1));
        // No return is recorded, or only one of them.
        all.call(0, 1, READ, Nanos(10));
        all.interrupt(0, 0, Nanos(11));
        all.switch(0, Nanos(20), None);
        all.switch(0, Nanos(30), Some(1));
        all.call(0, 1, READ, Nanos(50));
        all.return_from_call(0, 1, READ.kind, Nanos(53));
        all.return_from_call(0, 1, READ.kind, Nanos(60));
        all.call(0, 1, READ, Nanos(70));
        all.return_from_call(0, 1, FAULT.kind, Nanos(80));
        all.return_from_call(0, 1, READ.kind, Nanos(90));
        assert_eq!((all.of_thread(1), all.of_cpu(0)), (3, 3));
    }

    #[test]
    fn what_began_before_a_loss_is_doubted() {
        let interval = Interval { begin: Some(Nanos(20)), end: Some(Nanos(30)) };
        let cause = LossCause::Full;
        let loss = Loss { stream: StreamIndex(0), cause, count: None, interval };
        let mut all = KernelTime::new(Gaps::new(&[loss], &[], |_| None));
        all.switch(0, Nanos(0), Some(1));
        all.call(0, 1, READ, Nanos(10));
        // A return and another call are lost.
        all.switch(0, Nanos(40), Some(1));
        all.return_from_call(0, 1, READ.kind, Nanos(45));
        all.call(0, 1, READ, Nanos(50));
        all.return_from_call(0, 1, READ.kind, Nanos(53));
        all.switch(0, Nanos(60), None);
        assert_eq!(all.of_thread(1), 3);
    }
}
