// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What events tell of threads: their processes, their names, and which runs where.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use lateralis_model::Writer;

use super::{Fact, Leaving};

/// Threads that are remembered: a hostile trace may name four thousand million.
const MAX_THREADS: usize = 1 << 20;
/// Processors likewise.
const MAX_CPUS: usize = 1 << 19;
/// Threads whose process need not be looked up again.
const RECENT: usize = 256;

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process, where an event has told.
    pub pid: Option<u32>,
    /// Its process as who recorded its events has it. What happened is not understood by this: it
    /// would be another where those events are lost.
    pub recorded_pid: Option<u32>,
    /// Its name; the last one.
    pub name: Option<String>,
    /// Its priority as switches tell it; the last one.
    pub priority: Option<i64>,
    /// Whether an event about it has told its process; else a stream has, perhaps by the thread's own number.
    is_process_told: bool,
    /// Whether it is of a program that is recorded, where others are left out.
    is_recorded: bool,
}

/// All threads that events have told of.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Thread, RandomState>,
    /// Who was told of last, by the low bits of its number: a few threads tell most.
    recent: Vec<Option<Writer>>,
    /// The same of what recorders say.
    recorded: Vec<Option<Writer>>,
    running: Vec<Option<u32>>,
    /// Whether an event about any thread has told a process of another number than its own.
    has_told: bool,
    /// What threads go into when they leave their processor, where other events than the switch tell.
    leaving: HashMap<u32, Leaving, RandomState>,
    /// Calls of the system that threads are in, where one kind of event ends all.
    calls: HashMap<u32, (u32, Option<u64>), RandomState>,
    /// Spans of which one is open for each key: kind and key.
    pending: HashSet<(u32, u64), RandomState>,
    /// Whose process turned out to be another than it was taken for, where anybody asks.
    changed: Option<Vec<u32>>,
    /// Threads with events whose process was not known: they got their own number as process.
    guessed: HashSet<u32, RandomState>,
    /// The same of the last ones, by the low bits of the number.
    guessed_lately: Vec<Option<u32>>,
    /// Of those, the ones whose process has become known since.
    learnt: Vec<Writer>,
}

/// The common name of the idle threads, or nothing: all of them have the id 0, and on each CPU another name
/// (`swapper/3`).
#[must_use]
pub fn name_of_idle(name: &str) -> &str {
    if name.starts_with("swapper") { "swapper" } else { "" }
}

impl Threads {
    /// A thread by its number.
    #[must_use]
    pub fn get(&self, tid: u32) -> Option<&Thread> {
        self.known.get(&tid)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Thread)> {
        self.known.iter().map(|(tid, thread)| (*tid, thread))
    }

    /// Its process; the number of the thread itself where nobody has told, as is right for
    /// the first thread of each process.
    #[must_use]
    pub fn pid(&self, tid: u32) -> u32 {
        self.known.get(&tid).and_then(|thread| thread.pid).unwrap_or(tid)
    }

    /// The same for an event of the thread that does not say its process. A guess is remembered, so
    /// that what the thread has open stays its own when its process becomes known.
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

    /// An event about a thread tells its process.
    pub(super) fn told(&mut self, writer: Writer) {
        self.belongs(writer);
        if let Some(thread) = self.thread(writer.tid) {
            thread.is_process_told = true;
            self.has_told |= writer.pid != writer.tid;
        }
    }

    /// The process of a thread, as far as it is no guess: a number other than its own, or one that was told.
    pub(super) fn told_process(&self, tid: u32) -> Option<u32> {
        let thread = self.known.get(&tid)?;
        thread.pid.filter(|pid| *pid != tid || thread.is_process_told)
    }

    /// The thread that a stream says an event is of. Formats without processes give each thread its own
    /// number for one: it is of the process that another event has told.
    pub(super) fn settled(&self, writer: Writer) -> Writer {
        if writer.pid != writer.tid || !self.has_told {
            return writer;
        }
        let pid = self.known.get(&writer.tid).filter(|thread| thread.is_process_told);
        Writer { pid: pid.and_then(|thread| thread.pid).unwrap_or(writer.pid), ..writer }
    }

    /// Its process for people, by whatever has told of it.
    #[must_use]
    pub fn process(&self, tid: u32) -> Option<u32> {
        let thread = self.known.get(&tid)?;
        thread.pid.or(thread.recorded_pid)
    }

    /// The thread that runs on a processor, once a switch has told.
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

    /// Notes what who recorded an event says of its thread.
    pub(super) fn recorded(&mut self, writer: Writer) {
        // A thread whose process nobody knew has been given its own number: that is no news.
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

    /// Whether [`Threads::learnt`] has any.
    #[inline]
    pub(super) fn has_learnt(&self) -> bool {
        !self.learnt.is_empty()
    }

    /// Threads whose process was guessed and has become known, since this was asked last.
    pub(super) fn learnt(&mut self) -> impl Iterator<Item = Fact> + use<> {
        let learnt = std::mem::take(&mut self.learnt).into_iter();
        learnt.map(|Writer { pid, tid }| Fact::Belongs { tid, pid })
    }

    /// From now on it is remembered whose process changes.
    pub(super) fn remember_changes(&mut self) {
        self.changed = Some(Vec::new());
    }

    /// Whose process has changed since this was asked last.
    pub(super) fn changes(&mut self) -> impl Iterator<Item = u32> {
        self.changed.as_mut().into_iter().flat_map(|changed| changed.drain(..))
    }

    /// Gives a name to a thread; it costs a comparison where it has that name already.
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

    /// A switch tells the priority of a thread.
    pub(super) fn prioritised(&mut self, tid: u32, priority: i64) {
        if tid != 0
            && let Some(thread) = self.thread(tid)
        {
            thread.priority = Some(priority);
        }
    }

    /// A thread is of a program that is recorded: all its events are there.
    pub(super) fn is_recorded(&mut self, tid: u32) {
        if tid != 0
            && let Some(thread) = self.thread(tid)
        {
            thread.is_recorded = true;
        }
    }

    /// Whether every switch to and from a thread is there, though others are left out.
    pub(super) fn has_all_switches(&self, tid: u32) -> bool {
        self.get(tid).is_some_and(|thread| thread.is_recorded)
    }

    /// The processor goes to a thread; `None`: to one of which it is not known how long it stays.
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

    /// What a thread goes into when it leaves its processor.
    pub(super) fn leaves(&mut self, tid: u32, into: Leaving) {
        if self.leaving.len() < MAX_THREADS || self.leaving.contains_key(&tid) {
            self.leaving.insert(tid, into);
        }
    }

    /// What a thread that leaves its processor now goes into, as far as it was told.
    pub(super) fn left(&mut self, tid: u32) -> Leaving {
        self.leaving.remove(&tid).unwrap_or(Leaving::Unknown)
    }

    /// A thread begins a call of the system: the kind of span that it is, and its key.
    pub(super) fn calls(&mut self, tid: u32, call: (u32, Option<u64>)) {
        if self.calls.len() < MAX_THREADS || self.calls.contains_key(&tid) {
            self.calls.insert(tid, call);
        }
    }

    /// The call that a thread is in ends: one with this number, if it is told. A new thread returns from a
    /// call that its maker has begun.
    pub(super) fn returns(&mut self, tid: u32, number: Option<u64>) -> Option<(u32, Option<u64>)> {
        let (_, key) = self.calls.get(&tid)?;
        let is_it = number.is_none() || key.is_none() || number == *key;
        if is_it { self.calls.remove(&tid) } else { None }
    }

    /// A span begins or ends of which one is open for each key; whether that is news.
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
