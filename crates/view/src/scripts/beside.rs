// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of several recordings over each of them alone, as if that one had been opened by itself.
//!
//! ```text
//! script of all ─┬─ run over the first alone ──► its number there, or why it failed
//!                └─ run over the second alone ─► …
//! ```
//!
//! Each runs once, when somebody asks first, on a thread of its own: how long it takes, or that it is
//! stopped, changes nothing else.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::Ran;
use super::following::STACK_BYTES;
use crate::answer::Problem;
use crate::session::{Session, lock};

/// Those that run at the same time; others wait.
const RUNNING_MAX: usize = 16;

/// How far a script has looked, and whether anybody still wants it.
#[derive(Debug, Default)]
pub struct Watch {
    looked: AtomicU64,
    is_over: AtomicBool,
}

impl Watch {
    /// So many events were looked at.
    ///
    /// # Errors
    /// Nobody wants it any more.
    pub fn looked(&self, events: u64) -> Result<(), Problem> {
        // Partners: the loads of `progress`, and the store of `end`. Neither is about other memory.
        self.looked.store(events, Ordering::Relaxed);
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(replaced()),
            false => Ok(()),
        }
    }

    /// Whatever is watched by this ends soon.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A script over a recording alone.
pub struct Run {
    watch: Watch,
    /// Events of that recording.
    events: u64,
    end: Mutex<Option<Result<u32, Problem>>>,
    ended: Condvar,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has looked at so many of all events.
    Running { looked: u64, events: u64 },
    /// At all: its number in the session of that recording.
    Ended(u32),
}

impl Run {
    fn finish(&self, end: Result<u32, Problem>) {
        *lock(&self.end) = Some(end);
        self.ended.notify_all();
    }

    /// How far it has come.
    ///
    /// # Errors
    /// It failed, or was stopped.
    pub fn progress(&self) -> Result<Progress, Problem> {
        match lock(&self.end).clone() {
            Some(end) => end.map(Progress::Ended),
            None => {
                let looked = self.watch.looked.load(Ordering::Relaxed);
                Ok(Progress::Running { looked, events: self.events })
            }
        }
    }

    /// Its number, for whoever cannot wait.
    ///
    /// # Errors
    /// It failed, or has not ended.
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

    /// Its number, once it has ended.
    ///
    /// # Errors
    /// It failed, or was stopped.
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

/// One that was asked for.
struct Known {
    side: u32,
    script: Arc<Ran>,
    run: Arc<Run>,
}

/// All of them. Scripts of one text are one.
#[derive(Default)]
pub struct Beside {
    known: Mutex<Vec<Known>>,
    /// Scripts of all that others have taken the place of, by number.
    replaced: Mutex<BTreeSet<u32>>,
    queue: Arc<Queue>,
}

impl Beside {
    /// A script over a recording, which begins when it is asked for first; `place` is where that
    /// recording is.
    ///
    /// # Errors
    /// Another has taken its place before.
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

    /// Of the scripts of all, another has taken the place of one: where that still runs it ends,
    /// unless one that is left has the same text.
    pub fn replaced(&self, id: u32, all: &[Arc<Ran>]) {
        let Some(script) = all.get(id as usize) else { return };
        // In this order, as `run` has them.
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

/// Which script it is, and of which recording.
fn told(problem: Problem, name: &str, place: &str) -> Problem {
    let Problem { what, place: at, advice } = problem;
    let advice = if advice.is_empty() { "switch it off, or change it".into() } else { advice };
    let at = if at.is_empty() { name.to_owned() } else { format!("{name}:{at}") };
    Problem { what, place: format!("{at}, over {place} alone"), advice }
}

type Job = Box<dyn FnOnce() + Send>;

/// Work for some threads, which end when there is none.
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
    /// Has it done, as soon as others are.
    ///
    /// # Errors
    /// There can be no thread for it.
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
            // Another does it.
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
