// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs of a session's scripts over one of its recordings alone, as if only that recording had been opened.
//!
//! ```text
//! script of the session ─┬─ run over the first alone ──► its number there, or why it failed
//!                        └─ run over the second alone ─► …
//! ```
//!
//! Each runs once, at the first request, on a thread of its own, so that a slow or stopped run
//! delays nothing else.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::Ran;
use super::following::STACK_BYTES;
use crate::answer::Problem;
use crate::session::{Session, lock};

/// Limit of simultaneous runs; further runs are queued.
const RUNNING_MAX: usize = 16;

/// Progress of a script, and whether its result is still wanted.
#[derive(Debug, Default)]
pub struct Watch {
    looked: AtomicU64,
    is_over: AtomicBool,
}

impl Watch {
    /// Stores the number of events examined so far.
    ///
    /// # Errors
    /// If the run was cancelled.
    pub fn looked(&self, events: u64) -> Result<(), Problem> {
        // Partners: the loads of `progress`, and the store of `end`. Neither orders accesses to
        // other memory.
        self.looked.store(events, Ordering::Relaxed);
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(replaced()),
            false => Ok(()),
        }
    }

    /// Cancels the run, which ends soon afterwards.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Run of a script over one recording.
pub struct Run {
    watch: Watch,
    /// Number of events of the recording.
    events: u64,
    end: Mutex<Option<Result<u32, Problem>>>,
    ended: Condvar,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// `looked` of all `events` were examined.
    Running { looked: u64, events: u64 },
    /// All events were examined; contains the number of the script in the session of the recording.
    Ended(u32),
}

impl Run {
    fn finish(&self, end: Result<u32, Problem>) {
        *lock(&self.end) = Some(end);
        self.ended.notify_all();
    }

    /// Returns the progress.
    ///
    /// # Errors
    /// If the run failed, or was cancelled.
    pub fn progress(&self) -> Result<Progress, Problem> {
        match lock(&self.end).clone() {
            Some(end) => end.map(Progress::Ended),
            None => {
                let looked = self.watch.looked.load(Ordering::Relaxed);
                Ok(Progress::Running { looked, events: self.events })
            }
        }
    }

    /// Returns the number of the script, without waiting.
    ///
    /// # Errors
    /// If the run failed, or has not ended.
    pub fn number(&self) -> Result<u32, Problem> {
        match self.progress()? {
            Progress::Ended(number) => Ok(number),
            Progress::Running { looked, events } => Err(Problem::new(
                "a script of the filter still looks at this recording",
                format!("{looked} of {events} events"),
                "ask again",
            )),
        }
    }

    /// Waits for the end of the run, and returns the number of the script.
    ///
    /// # Errors
    /// If the run failed, or was cancelled.
    pub fn wait(&self) -> Result<u32, Problem> {
        let mut end = lock(&self.end);
        loop {
            if let Some(end) = &*end {
                return end.clone();
            }
            end = self.ended.wait(end).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// A requested run.
struct Known {
    side: u32,
    script: Arc<Ran>,
    run: Arc<Run>,
}

/// All runs. Scripts with equal text share a run.
#[derive(Default)]
pub struct Beside {
    known: Mutex<Vec<Known>>,
    /// Numbers of replaced scripts of the session.
    replaced: Mutex<BTreeSet<u32>>,
    queue: Arc<Queue>,
}

impl Beside {
    /// Returns the run of a script over a recording, and starts it at the first request; `place` is
    /// the path of the recording, for messages.
    ///
    /// # Errors
    /// If the script was replaced before.
    pub fn run(
        &self,
        (side, session, place): (u32, &Arc<Session>, String),
        (id, script): (u32, &Arc<Ran>),
    ) -> Result<Arc<Run>, Problem> {
        let mut all = lock(&self.known);
        let is_it = |known: &&Known| known.side == side && known.script.text == script.text;
        if let Some(known) = all.iter().find(is_it) {
            return Ok(Arc::clone(&known.run));
        }
        if lock(&self.replaced).contains(&id) {
            return Err(replaced());
        }
        let run = Arc::new(Run {
            watch: Watch::default(),
            events: session.lanes.event_count(),
            end: Mutex::default(),
            ended: Condvar::new(),
        });
        all.push(Known { side, script: Arc::clone(script), run: Arc::clone(&run) });
        drop(all);
        let (session, script, own) = (Arc::clone(session), Arc::clone(script), Arc::clone(&run));
        let work = move || {
            let of = (script.name.as_str(), script.text.as_str());
            let ran = || session.common.scripts.add_ended(&session, of, &own.watch);
            let fault = || {
                let advice = "this is a fault of lat view: please report it, with the script";
                Problem::new("cannot run the script", "", advice)
            };
            let ended = catch_unwind(AssertUnwindSafe(ran)).unwrap_or_else(|_| Err(fault()));
            own.finish(ended.map_err(|problem| told(problem, &script.name, &place)));
        };
        if let Err(error) = self.queue.push(Box::new(work)) {
            run.finish(Err(Problem::new("cannot run the script", error.to_string(), "try again")));
        }
        Ok(run)
    }

    /// Marks a script of the session as replaced, and cancels its unfinished runs unless another
    /// script has the same text.
    pub fn replaced(&self, id: u32, all: &[Arc<Ran>]) {
        let Some(script) = all.get(id as usize) else { return };
        // Locked in the same order as in `run`.
        let mut known = lock(&self.known);
        let mut replaced = lock(&self.replaced);
        replaced.insert(id);
        let mut left = (0..).zip(all).filter(|(other, _)| !replaced.contains(other));
        if left.any(|(_, other)| other.text == script.text) {
            return;
        }
        known.retain(|known| {
            let is_it = known.script.text == script.text && lock(&known.run.end).is_none();
            if is_it {
                known.run.watch.end();
            }
            !is_it
        });
    }
}

fn replaced() -> Problem {
    Problem::new("the script was replaced by another", "", "use that")
}

/// Adds the name of the script and the recording to a problem.
fn told(problem: Problem, name: &str, place: &str) -> Problem {
    let Problem { what, place: at, advice } = problem;
    let advice = if advice.is_empty() { "switch it off, or change it".into() } else { advice };
    let at = if at.is_empty() { name.to_owned() } else { format!("{name}:{at}") };
    Problem { what, place: format!("{at}, over {place} alone"), advice }
}

type Job = Box<dyn FnOnce() + Send>;

/// Jobs for a limited number of threads, which end when the queue is empty.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    threads: usize,
}

impl Queue {
    /// Queues a job.
    ///
    /// # Errors
    /// If no thread can be started for it.
    fn push(self: &Arc<Self>, job: Job) -> std::io::Result<()> {
        let mut waiting = lock(&self.waiting);
        waiting.jobs.push_back(job);
        if waiting.threads == RUNNING_MAX {
            return Ok(());
        }
        let own = Arc::clone(self);
        let work = move || {
            while let Some(job) = own.next() {
                job();
            }
        };
        let thread = thread::Builder::new().name("script".into()).stack_size(STACK_BYTES);
        match thread.spawn(work) {
            Ok(_) => waiting.threads += 1,
            // A running thread will take the job.
            Err(_) if waiting.threads > 0 => {}
            Err(error) => {
                waiting.jobs.pop_back();
                return Err(error);
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<Job> {
        let mut waiting = lock(&self.waiting);
        let job = waiting.jobs.pop_front();
        if job.is_none() {
            waiting.threads -= 1;
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn no_more_than_so_many_run_at_once_and_all_do_in_the_end() {
        let queue = Arc::new(Queue::default());
        let (done, came) = mpsc::channel();
        let gate = Arc::new(Mutex::new(()));
        let closed = lock(&gate);
        for number in 0..3 * RUNNING_MAX {
            let (done, gate) = (done.clone(), Arc::clone(&gate));
            let job = move || {
                drop(lock(&gate));
                let _ = done.send(number);
            };
            queue.push(Box::new(job)).expect("a thread");
        }
        {
            let waiting = lock(&queue.waiting);
            assert_eq!(waiting.threads, RUNNING_MAX);
            assert!(waiting.jobs.len() >= 2 * RUNNING_MAX);
        }
        drop(closed);
        let mut all: Vec<usize> = came.iter().take(3 * RUNNING_MAX).collect();
        all.sort_unstable();
        assert_eq!(all, (0..3 * RUNNING_MAX).collect::<Vec<_>>());
    }
}
