// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads: their processes and names, and which of them runs where.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use lateralis_model::Writer;

use super::{Fact, Leaving};

/// Threads that are remembered: a hostile trace may name four thousand million.
const MAX_THREADS: usize = 1 << 20;
/// CPUs that are remembered.
const MAX_CPUS: usize = 1 << 19;
/// Threads whose process need not be looked up again.
const RECENT: usize = 256;

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process, if an event has reported it.
    pub pid: Option<u32>,
    /// Its process as reported by the recorder of its events. Not used for interpretation: results would
    /// change if those events were lost.
    pub recorded_pid: Option<u32>,
    /// Its name; the last one reported.
    pub name: Option<String>,
    /// Its priority from switches; the last one reported.
    pub priority: Option<i64>,
    /// Whether an event about it has reported its process; otherwise a stream has, perhaps by the thread
    /// id.
    is_process_told: bool,
    /// Whether it belongs to a recorded program, where others are left out.
    is_recorded: bool,
}

/// All threads known from events.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Thread, RandomState>,
    /// Threads reported last, by the low bits of the id: a few threads cause most events.
    recent: Vec<Option<Writer>>,
    /// Likewise for processes from the recorder.
    recorded: Vec<Option<Writer>>,
    running: Vec<Option<u32>>,
    /// Whether an event about any thread has reported a process id other than the thread id.
    has_told: bool,
    /// States that threads will enter when they leave their CPU, if an event other than the switch
    /// reports it.
    leaving: HashMap<u32, Leaving, RandomState>,
    /// Current system calls of threads, for traces in which one event class ends all calls.
    calls: HashMap<u32, (u32, Option<u64>), RandomState>,
    /// Spans of which one is open for each key: kind and key.
    pending: HashSet<(u32, u64), RandomState>,
    /// Threads whose assumed process turned out to be wrong; only if a consumer needs them.
    changed: Option<Vec<u32>>,
    /// Threads with events whose process was unknown: they got their own id as process.
    guessed: HashSet<u32, RandomState>,
    /// The most recent of those, by the low bits of the id.
    guessed_lately: Vec<Option<u32>>,
    /// Those whose process has become known since.
    learnt: Vec<Writer>,
}

/// The common name of the idle threads, or nothing: all of them have the id 0, and on each CPU another name
/// (`swapper/3`).
#[must_use]
pub fn name_of_idle(name: &str) -> &str {
    if name.starts_with("swapper") { "swapper" } else { "" }
}

impl Threads {
    /// A thread by its id.
    #[must_use]
    pub fn get(&self, tid: u32) -> Option<&Thread> {
        self.known.get(&tid)
    }

    /// All threads, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Thread)> {
        self.known.iter().map(|(tid, thread)| (*tid, thread))
    }

    /// Its process; the thread id if unknown, which is right for the first thread of each process.
    #[must_use]
    pub fn pid(&self, tid: u32) -> u32 {
        self.known.get(&tid).and_then(|thread| thread.pid).unwrap_or(tid)
    }

    /// The process for an event of the thread that does not contain one. A guess is remembered, so that
    /// open items of the thread stay its own when its process becomes known.
    #[inline]
    pub(super) fn taken_for(&mut self, tid: u32) -> u32 {
        if let Some(pid) = self.known.get(&tid).and_then(|thread| thread.pid) {
            return pid;
        }
        let place = tid as usize % RECENT;
        if self.guessed_lately.get(place) != Some(&Some(tid)) && self.guessed.len() < MAX_THREADS {
            self.guessed.insert(tid);
            self.guessed_lately.resize(RECENT, None);
            self.guessed_lately[place] = Some(tid);
        }
        tid
    }

    /// An event about a thread reports its process.
    pub(super) fn told(&mut self, writer: Writer) {
        self.belongs(writer);
        if let Some(thread) = self.thread(writer.tid) {
            thread.is_process_told = true;
            self.has_told |= writer.pid != writer.tid;
        }
    }

    /// Process of a thread if it is not guessed: an id other than the thread's, or one that was reported.
    pub(super) fn told_process(&self, tid: u32) -> Option<u32> {
        let thread = self.known.get(&tid)?;
        thread.pid.filter(|pid| *pid != tid || thread.is_process_told)
    }

    /// Corrects the thread that a stream assigns to an event. Formats without processes use the thread id
    /// as process id: then the process reported by another event holds.
    pub(super) fn settled(&self, writer: Writer) -> Writer {
        if writer.pid != writer.tid || !self.has_told {
            return writer;
        }
        let pid = self.known.get(&writer.tid).filter(|thread| thread.is_process_told);
        Writer { pid: pid.and_then(|thread| thread.pid).unwrap_or(writer.pid), ..writer }
    }

    /// Process for display, from any source.
    #[must_use]
    pub fn process(&self, tid: u32) -> Option<u32> {
        let thread = self.known.get(&tid)?;
        thread.pid.or(thread.recorded_pid)
    }

    /// The thread that runs on a CPU; known after the first switch.
    #[must_use]
    pub fn running(&self, cpu: u32) -> Option<u32> {
        self.running.get(cpu as usize).copied().flatten()
    }

    pub(super) fn belongs(&mut self, writer: Writer) {
        let place = writer.tid as usize % RECENT;
        if self.recent.get(place) == Some(&Some(writer)) {
            return;
        }
        if let Some(thread) = self.thread(writer.tid) {
            let known = thread.pid.replace(writer.pid);
            let before = known.unwrap_or(writer.tid);
            if known.is_none() && self.guessed.remove(&writer.tid) && before != writer.pid {
                self.learnt.push(writer);
            }
            if let Some(changed) = self.changed.as_mut().filter(|_| before != writer.pid) {
                changed.push(writer.tid);
            }
            if self.recent.is_empty() {
                self.recent = vec![None; RECENT];
            }
            self.recent[place] = Some(writer);
        }
    }

    /// Notes the thread and process that the recorder assigns to an event.
    pub(super) fn recorded(&mut self, writer: Writer) {
        // A thread without a known process has its own id as process: that adds nothing.
        let place = writer.tid as usize % RECENT;
        if writer.pid == writer.tid || self.recorded.get(place) == Some(&Some(writer)) {
            return;
        }
        if let Some(thread) = self.thread(writer.tid) {
            thread.recorded_pid = Some(writer.pid);
            if self.recorded.is_empty() {
                self.recorded = vec![None; RECENT];
            }
            self.recorded[place] = Some(writer);
        }
    }

    /// Whether [`Threads::learnt`] has any items.
    #[inline]
    pub(super) fn has_learnt(&self) -> bool {
        !self.learnt.is_empty()
    }

    /// Threads whose process was guessed and has become known since the last call.
    pub(super) fn learnt(&mut self) -> impl Iterator<Item = Fact> + use<> {
        let learnt = std::mem::take(&mut self.learnt).into_iter();
        learnt.map(|Writer { pid, tid }| Fact::Belongs { tid, pid })
    }

    /// Starts collecting threads whose process changes.
    pub(super) fn remember_changes(&mut self) {
        self.changed = Some(Vec::new());
    }

    /// Threads whose process has changed since the last call.
    pub(super) fn changes(&mut self) -> impl Iterator<Item = u32> {
        self.changed.as_mut().into_iter().flat_map(|changed| changed.drain(..))
    }

    /// Sets the name of a thread; costs a comparison if it has that name already.
    pub(super) fn named(&mut self, tid: u32, name: &str) {
        let name = if tid == 0 { name_of_idle(name) } else { name };
        if name.is_empty() {
            return;
        }
        if let Some(thread) = self.thread(tid)
            && thread.name.as_deref() != Some(name)
        {
            thread.name = Some(name.to_owned());
        }
    }

    /// A switch reports the priority of a thread.
    pub(super) fn prioritised(&mut self, tid: u32, priority: i64) {
        if tid != 0
            && let Some(thread) = self.thread(tid)
        {
            thread.priority = Some(priority);
        }
    }

    /// Marks a thread as belonging to a recorded program: the trace has all its events.
    pub(super) fn is_recorded(&mut self, tid: u32) {
        if tid != 0
            && let Some(thread) = self.thread(tid)
        {
            thread.is_recorded = true;
        }
    }

    /// Whether the trace has every switch of a thread, though others are left out.
    pub(super) fn has_all_switches(&self, tid: u32) -> bool {
        self.get(tid).is_some_and(|thread| thread.is_recorded)
    }

    /// The CPU switches to a thread; `None`: to one whose stay is of unknown length.
    pub(super) fn switched(&mut self, cpu: u32, to: Option<u32>) {
        let cpu = cpu as usize;
        if cpu >= MAX_CPUS {
            return;
        }
        if self.running.len() <= cpu {
            self.running.resize(cpu + 1, None);
        }
        self.running[cpu] = to;
    }

    /// Sets the state that a thread will enter when it leaves its CPU.
    pub(super) fn leaves(&mut self, tid: u32, into: Leaving) {
        if self.leaving.len() < MAX_THREADS || self.leaving.contains_key(&tid) {
            self.leaving.insert(tid, into);
        }
    }

    /// State of a thread that leaves its CPU now, as far as it was reported.
    pub(super) fn left(&mut self, tid: u32) -> Leaving {
        self.leaving.remove(&tid).unwrap_or(Leaving::Unknown)
    }

    /// A thread begins a system call: kind and key of its span.
    pub(super) fn calls(&mut self, tid: u32, call: (u32, Option<u64>)) {
        if self.calls.len() < MAX_THREADS || self.calls.contains_key(&tid) {
            self.calls.insert(tid, call);
        }
    }

    /// Ends the current call of a thread; if a number is given, only if it is that call. A new thread
    /// returns from a call that its creator began.
    pub(super) fn returns(&mut self, tid: u32, number: Option<u64>) -> Option<(u32, Option<u64>)> {
        let (_, key) = self.calls.get(&tid)?;
        let is_it = number.is_none() || key.is_none() || number == *key;
        if is_it { self.calls.remove(&tid) } else { None }
    }

    /// Begins or ends a span of which one is open for each key; returns whether that changes anything.
    pub(super) fn pends(&mut self, span: (u32, u64), begins: bool) -> bool {
        match begins {
            true => self.pending.len() < MAX_CPUS && self.pending.insert(span),
            false => self.pending.remove(&span),
        }
    }

    fn thread(&mut self, tid: u32) -> Option<&mut Thread> {
        if self.known.len() >= MAX_THREADS && !self.known.contains_key(&tid) {
            return None;
        }
        Some(self.known.entry(tid).or_default())
    }
}
