// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From being woken to running: who wakes whom, and how long it takes.

use lateralis_units::Nanos;

/// A thread that was woken and has come to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken<W> {
    /// Who woke it.
    pub waker: W,
    /// When.
    pub wake: Nanos,
    /// When it left a processor before, where that was seen. Only if no events are
    /// missing since then, it is certain that nobody had woken it earlier.
    pub asleep: Option<Nanos>,
    /// When it ran.
    pub run: Nanos,
}

impl<W> Woken<W> {
    /// Nanoseconds from the one to the other; 0 where two clocks disagree.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.run.since(self.wake).max(0) as u64
    }
}

#[derive(Debug, Clone, Copy)]
struct Thread<W> {
    is_running: bool,
    asleep: Option<Nanos>,
    woken: Option<(Nanos, W)>,
}

/// Follows threads through wake-ups and switches, both in the order of time.
///
/// Threads are small numbers ([`crate::Numbering`]), wakers whatever `W` says of them. Cost: constant;
/// memory by threads.
#[derive(Debug, Clone)]
pub struct Wakes<W> {
    threads: Vec<Thread<W>>,
    needless_count: u64,
}

impl<W> Default for Thread<W> {
    fn default() -> Self {
        Self { is_running: false, asleep: None, woken: None }
    }
}

impl<W> Default for Wakes<W> {
    fn default() -> Self {
        Self { threads: Vec::new(), needless_count: 0 }
    }
}

impl<W: Copy> Wakes<W> {
    fn thread(&mut self, thread: u32) -> &mut Thread<W> {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// `thread` is made ready. Only the first of several wake-ups counts; of a thread that
    /// runs, none does.
    pub fn wake(&mut self, time: Nanos, waker: W, thread: u32) {
        let of = self.thread(thread);
        if of.is_running || of.woken.is_some() {
            self.needless_count += 1;
            return;
        }
        of.woken = Some((time, waker));
    }

    /// A processor turns from one thread to another; `None` is idleness. Gives the wake-up
    /// that `to` ran after, if there was one since it ran last.
    pub fn switch(&mut self, time: Nanos, from: Option<u32>, to: Option<u32>) -> Option<Woken<W>> {
        if let Some(from) = from {
            *self.thread(from) = Thread { asleep: Some(time), ..Thread::default() };
        }
        let of = self.thread(to?);
        of.is_running = true;
        let (wake, waker) = of.woken.take()?;
        Some(Woken { waker, wake, asleep: of.asleep, run: time })
    }

    /// Wake-ups of threads that were awake.
    #[must_use]
    pub fn needless_count(&self) -> u64 {
        self.needless_count
    }

    /// Threads that were woken and have not run since.
    #[must_use]
    pub fn waiting_count(&self) -> u64 {
        self.threads.iter().filter(|thread| thread.woken.is_some()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wake_up_of_a_sleeper_counts() {
        let mut wakes = Wakes::default();
        assert_eq!(wakes.switch(Nanos(0), None, Some(1)), None, "nobody woke it");
        wakes.wake(Nanos(5), Some(2), 1);
        assert_eq!(wakes.needless_count(), 1, "it runs");
        wakes.switch(Nanos(10), Some(1), None);
        wakes.wake(Nanos(20), Some(2), 1);
        wakes.wake(Nanos(25), Some(3), 1);
        assert_eq!((wakes.needless_count(), wakes.waiting_count()), (2, 1));
        let woken = wakes.switch(Nanos(32), None, Some(1)).unwrap();
        assert_eq!((woken.waker, woken.nanos(), woken.asleep), (Some(2), 12, Some(Nanos(10))));
        assert_eq!(wakes.switch(Nanos(40), Some(1), Some(1)), None, "preempted, not woken");
    }
}
