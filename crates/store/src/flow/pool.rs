// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs jobs on several cores and delivers their output in the order of the jobs.
//!
//! Threads take jobs one after the other, and emit items while they work. The output of the first
//! unfinished job is delivered at once; that of later ones waits, up to a number of bytes. Beyond that,
//! their threads wait, too.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs in progress or waiting to be delivered, per thread.
const JOBS_PER_THREAD: usize = 4;
/// Items of the first job that may wait, whatever their size.
const ITEMS_MIN: usize = 2;

/// Next output of a job.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T, R> {
    /// A part of its output.
    Item(T),
    /// It is done.
    Done(R),
}

struct Output<T, R> {
    items: VecDeque<(T, usize)>,
    result: Option<R>,
}

struct Shared<T, R> {
    /// The job whose output is being delivered, and the first job without a thread.
    head: usize,
    next: usize,
    /// Outputs of the jobs between them.
    outputs: VecDeque<Output<T, R>>,
    waiting_bytes: usize,
    /// Whether no more output is needed, or a thread has panicked.
    is_over: bool,
}

/// Distributes jobs, and holds their output until it is taken.
pub struct Pool<T, R> {
    shared: Mutex<Shared<T, R>>,
    changed: Condvar,
    jobs: usize,
    window: usize,
    bytes_max: usize,
}

impl<T: Send, R: Send> Pool<T, R> {
    /// `bytes_max`: largest size of waiting output.
    pub fn new(jobs: usize, threads: usize, bytes_max: usize) -> Self {
        let shared =
            Shared { head: 0, next: 0, outputs: VecDeque::new(), waiting_bytes: 0, is_over: false };
        Self {
            shared: Mutex::new(shared),
            changed: Condvar::new(),
            jobs,
            window: threads.saturating_mul(JOBS_PER_THREAD),
            bytes_max,
        }
    }

    /// Runs `worker` on `threads` threads, and `taker` on this one; the workers end when `taker` does.
    pub fn run(&self, threads: usize, worker: impl Fn() + Sync, taker: impl FnOnce()) {
        std::thread::scope(|scope| {
            let _over = Over { pool: self, is_always: true };
            for _ in 0..threads {
                scope.spawn(|| {
                    let _over = Over { pool: self, is_always: false };
                    worker();
                });
            }
            taker();
        });
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T, R>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, Shared<T, R>>) -> MutexGuard<'g, Shared<T, R>> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// For worker threads: the next job; `None`: there are no more.
    pub fn take_job(&self) -> Option<usize> {
        let mut shared = self.lock();
        loop {
            if shared.is_over || shared.next >= self.jobs {
                return None;
            }
            if shared.next < shared.head.saturating_add(self.window) {
                shared.outputs.push_back(Output { items: VecDeque::new(), result: None });
                shared.next += 1;
                return Some(shared.next - 1);
            }
            shared = self.wait(shared);
        }
    }

    /// For worker threads: emits a part of a job; breaks if it is no longer needed.
    pub fn put(&self, job: usize, item: T, bytes: usize) -> ControlFlow<()> {
        let mut shared = self.lock();
        loop {
            let Some(place) = job.checked_sub(shared.head).filter(|_| !shared.is_over) else {
                return ControlFlow::Break(());
            };
            let is_full = shared.waiting_bytes.saturating_add(bytes) > self.bytes_max;
            let Some(output) = shared.outputs.get_mut(place) else {
                return ControlFlow::Break(());
            };
            // The first job never waits for others: only for its output to be taken.
            if !is_full || place == 0 && output.items.len() < ITEMS_MIN {
                output.items.push_back((item, bytes));
                shared.waiting_bytes = shared.waiting_bytes.saturating_add(bytes);
                drop(shared);
                self.changed.notify_all();
                return ControlFlow::Continue(());
            }
            shared = self.wait(shared);
        }
    }

    /// For worker threads: a job is complete.
    pub fn done(&self, job: usize, result: R) {
        let mut shared = self.lock();
        let place = job.checked_sub(shared.head);
        if let Some(output) = place.and_then(|place| shared.outputs.get_mut(place)) {
            output.result = Some(result);
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// The next output of the first job that has not been taken; `None`: a thread has panicked.
    pub fn next(&self) -> Option<Next<T, R>> {
        let mut shared = self.lock();
        loop {
            if let Some(output) = shared.outputs.front_mut() {
                if let Some((item, bytes)) = output.items.pop_front() {
                    shared.waiting_bytes = shared.waiting_bytes.saturating_sub(bytes);
                    drop(shared);
                    self.changed.notify_all();
                    return Some(Next::Item(item));
                }
                if let Some(result) = output.result.take() {
                    drop(shared);
                    self.skip();
                    return Some(Next::Done(result));
                }
            }
            if shared.is_over {
                return None;
            }
            shared = self.wait(shared);
        }
    }

    /// Discards the remaining output of the first job that has not been taken.
    pub fn skip(&self) {
        let mut shared = self.lock();
        shared.head += 1;
        match shared.outputs.pop_front() {
            Some(output) => {
                let bytes: usize = output.items.iter().map(|(_, bytes)| bytes).sum();
                shared.waiting_bytes = shared.waiting_bytes.saturating_sub(bytes);
            }
            // No thread has started it, and none will.
            None => shared.next = shared.next.max(shared.head),
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// Number of jobs that threads have taken.
    pub fn taken(&self) -> usize {
        self.lock().next
    }
}

/// Ends everything when a thread panics, or when no more output is taken.
struct Over<'p, T: Send, R: Send> {
    pool: &'p Pool<T, R>,
    is_always: bool,
}

impl<T: Send, R: Send> Drop for Over<'_, T, R> {
    fn drop(&mut self) {
        if self.is_always || std::thread::panicking() {
            self.pool.lock().is_over = true;
            self.pool.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Each job emits its number, that many times; each item counts as 8 bytes.
    fn work(pool: &Pool<usize, usize>, most: &AtomicUsize) {
        while let Some(job) = pool.take_job() {
            let mut put = 0;
            for _ in 0..job * 10 {
                if pool.put(job, job, 8).is_break() {
                    break;
                }
                most.fetch_max(pool.lock().waiting_bytes, Ordering::Relaxed);
                put += 1;
            }
            pool.done(job, put);
        }
    }

    #[test]
    fn output_comes_in_the_order_of_jobs_and_what_waits_is_bounded() {
        for threads in [1, 2, 5] {
            let (pool, most) = (Pool::new(40, threads, 100), AtomicUsize::new(0));
            let (mut found, mut done) = (Vec::new(), 0);
            pool.run(
                threads,
                || work(&pool, &most),
                || {
                    while done < 40 {
                        match pool.next().expect("no panic") {
                            Next::Item(item) => found.push(item),
                            Next::Done(count) => {
                                assert_eq!(count, done * 10);
                                done += 1;
                            }
                        }
                    }
                },
            );
            let expected: Vec<usize> = (0..40).flat_map(|job| vec![job; job * 10]).collect();
            assert!(found == expected, "{threads} threads");
            assert!(most.into_inner() <= 100 + ITEMS_MIN * 8);
        }
    }

    #[test]
    fn jobs_that_are_skipped_end_and_nobody_waits_when_nothing_more_is_taken() {
        let (pool, most) = (Pool::new(1 << 20, 3, 100), AtomicUsize::new(0));
        let mut found = Vec::new();
        pool.run(
            3,
            || work(&pool, &most),
            || {
                // Job 0 has no items; of job 1 some are taken, of job 2 none, then one of job 3.
                assert_eq!(pool.next(), Some(Next::Done(0)));
                found.extend(pool.next());
                pool.skip();
                pool.skip();
                found.extend(pool.next());
            },
        );
        assert_eq!(found, [Next::Item(1), Next::Item(3)]);
        assert!(pool.taken() <= 3 + 3 * JOBS_PER_THREAD, "{}", pool.taken());
    }

    #[test]
    fn a_panic_ends_all_threads() {
        let pool: Pool<usize, usize> = Pool::new(100, 2, 100);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(2, || panic!("a thread"), || assert_eq!(pool.next(), None));
        }));
        assert!(outcome.is_err());
    }
}
