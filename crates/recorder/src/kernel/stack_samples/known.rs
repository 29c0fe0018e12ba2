// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mappings and names of threads. Each is recorded once, and repeated at the start of each
//! part of a recording, which must be readable alone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lateralis_ring::abi;

use super::event;
use crate::source::{Introductions, Payload, TakeRecord, Thread};

/// Maximum number of processes (PID_MAX_LIMIT of Linux).
const PROCESSES_MAX: usize = 1 << 22;
/// Maximum number of threads and files of a process; beyond it the oldest are dropped.
const THREADS_MAX: usize = 1 << 16;
const FILES_MAX: usize = 1 << 12;
/// Number of processes kept after their end: a part of the recording may start before it.
const GONE_MAX: usize = 256;

/// An executable mapping of a file in a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedFile {
    /// First address.
    pub begin: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset in the file.
    pub offset: u64,
    /// `PROT_*`.
    pub protection: u32,
    /// `MAP_*`.
    pub flags: u32,
    /// Numbers of the device.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Generation of the inode.
    pub generation: u64,
    /// Empty if the file has none.
    pub build_id: Vec<u8>,
    /// Its path, `[vdso]`, or `//anon`.
    pub path: Vec<u8>,
}

impl MappedFile {
    /// Index of its event in the schema.
    pub(super) fn event(&self) -> u16 {
        if self.build_id.is_empty() { event::MMAP2 } else { event::MMAP2_BUILD_ID }
    }

    pub(super) fn fill(&self, thread: Thread, payload: &mut Payload<'_>) {
        payload.put(4, &thread.pid.to_ne_bytes());
        payload.put(4, &thread.tid.to_ne_bytes());
        for word in [self.begin, self.bytes, self.offset] {
            payload.put(8, &word.to_ne_bytes());
        }
        if self.build_id.is_empty() {
            payload.put(4, &self.device.0.to_ne_bytes());
            payload.put(4, &self.device.1.to_ne_bytes());
            payload.put(8, &self.inode.to_ne_bytes());
            payload.put(8, &self.generation.to_ne_bytes());
        } else {
            payload.sequence(1, &self.build_id);
        }
        payload.put(4, &self.protection.to_ne_bytes());
        payload.put(4, &self.flags.to_ne_bytes());
        payload.text(&self.path);
    }

    fn covers(&self, other: &MappedFile) -> bool {
        let end = |of: &MappedFile| of.begin.saturating_add(of.bytes);
        self.begin <= other.begin && end(self) >= end(other)
    }
}

#[derive(Debug, Clone, Default)]
struct Process {
    parent: u32,
    names: BTreeMap<u32, Box<[u8]>>,
    files: Vec<MappedFile>,
}

/// State of all processes.
#[derive(Debug, Default)]
pub(super) struct State {
    processes: HashMap<u32, Process>,
    gone: VecDeque<u32>,
    /// Files that belong to no process, with their build ids.
    build_ids: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Shared by the source, which updates it, and the recordings of parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    base_id: u16,
    state: Arc<Mutex<State>>,
}

impl Shared {
    pub(super) fn new(base_id: u16) -> Shared {
        Shared { base_id, ..Shared::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn process(&mut self, pid: u32) -> Option<&mut Process> {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            return None;
        }
        Some(self.processes.entry(pid).or_default())
    }

    pub(super) fn parent_of(&self, pid: u32) -> u32 {
        self.processes.get(&pid).map_or(0, |process| process.parent)
    }

    pub(super) fn has_parent(&mut self, pid: u32, parent: u32) {
        if let Some(process) = self.process(pid) {
            process.parent = parent;
        }
    }

    pub(super) fn mapped(&mut self, pid: u32, file: MappedFile) {
        let Some(process) = self.process(pid) else { return };
        process.files.retain(|other| !file.covers(other));
        if process.files.len() >= FILES_MAX {
            process.files.remove(0);
        }
        process.files.push(file);
    }

    /// Sets the name of a thread, possibly because its process executes another program.
    pub(super) fn named(&mut self, thread: Thread, name: &[u8], exec: bool) {
        let Some(process) = self.process(thread.pid) else { return };
        if exec {
            process.files.clear();
            process.names.clear();
        }
        if process.names.len() < THREADS_MAX || process.names.contains_key(&thread.tid) {
            process.names.insert(thread.tid, name.into());
        }
    }

    /// Adds a thread of the same process or a new one; returns the name inherited from its creator.
    pub(super) fn made(&mut self, by: Thread, thread: Thread) -> Option<Box<[u8]>> {
        let maker = self.processes.get(&by.pid);
        let name = maker.and_then(|process| process.names.get(&by.tid)).cloned();
        if thread.pid != by.pid {
            // The id may have been reused.
            let files = maker.map_or_else(Vec::new, |process| process.files.clone());
            self.gone.retain(|pid| *pid != thread.pid);
            if let Some(process) = self.process(thread.pid) {
                *process = Process { parent: by.pid, files, ..Process::default() };
            }
        }
        if let Some(name) = &name {
            self.named(thread, name, false);
        }
        name
    }

    pub(super) fn ended(&mut self, thread: Thread) {
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        if process.names.len() > 1 {
            process.names.remove(&thread.tid);
            return;
        }
        self.gone.push_back(thread.pid);
        if self.gone.len() > GONE_MAX
            && let Some(oldest) = self.gone.pop_front()
        {
            self.processes.remove(&oldest);
        }
    }

    pub(super) fn has_build_id(&mut self, path: Vec<u8>, build_id: Vec<u8>) {
        self.build_ids.push((path, build_id));
    }
}

/// Names a thread for readers of every recording, by a record of the internal schema.
pub(super) fn introduction(
    parent: u32,
    thread: Thread,
    name: &[u8],
) -> (u16, impl FnMut(&mut Payload<'_>)) {
    let is_process = thread.pid == thread.tid;
    let second = if is_process { parent } else { thread.tid };
    let fill = move |payload: &mut Payload<'_>| {
        payload.put(4, &thread.pid.to_ne_bytes());
        payload.put(4, &second.to_ne_bytes());
        payload.text(name);
    };
    (if is_process { abi::ID_PROCESS } else { abi::ID_THREAD_NAME }, fill)
}

pub(super) fn comm(thread: Thread, name: &[u8], exec: bool) -> impl FnMut(&mut Payload<'_>) {
    move |payload: &mut Payload<'_>| {
        payload.put(4, &thread.pid.to_ne_bytes());
        payload.put(4, &thread.tid.to_ne_bytes());
        payload.text(name);
        payload.put(1, &[u8::from(exec)]);
    }
}

pub(super) fn build_id(path: &[u8], build_id: &[u8]) -> impl FnMut(&mut Payload<'_>) {
    move |payload: &mut Payload<'_>| {
        // The kernel belongs to no process.
        payload.put(4, &(-1i32).to_ne_bytes());
        payload.sequence(1, build_id);
        payload.text(path);
    }
}

impl Introductions for Shared {
    fn each(&self, take: &mut TakeRecord<'_>) {
        let state = self.state();
        for (path, id) in &state.build_ids {
            take(None, self.base_id + event::BUILD_ID, &mut build_id(path, id));
        }
        for (pid, process) in &state.processes {
            let pid = *pid;
            for (tid, name) in &process.names {
                let thread = Thread { pid, tid: *tid };
                take(Some(thread), self.base_id + event::COMM, &mut comm(thread, name, false));
                let (id, mut fill) = introduction(process.parent, thread, name);
                take(None, id, &mut fill);
            }
            let thread = Thread { pid, tid: pid };
            for file in &process.files {
                let mut fill = |payload: &mut Payload<'_>| file.fill(thread, payload);
                take(Some(thread), self.base_id + file.event(), &mut fill);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(begin: u64, bytes: u64) -> MappedFile {
        MappedFile { begin, bytes, path: b"/a".to_vec(), ..MappedFile::default() }
    }

    fn counts(shared: &Shared) -> (usize, usize) {
        let (mut names, mut files) = (0, 0);
        shared.each(&mut |_, id, _| match id.checked_sub(shared.base_id) {
            Some(event::COMM) => names += 1,
            Some(event::MMAP2 | event::MMAP2_BUILD_ID) => files += 1,
            _ => {}
        });
        (names, files)
    }

    #[test]
    fn processes_have_what_their_makers_had_until_they_execute() {
        let shared = Shared::new(16);
        let (one, other) = (Thread { pid: 5, tid: 5 }, Thread { pid: 9, tid: 9 });
        shared.state().named(one, b"maker", true);
        shared.state().mapped(5, file(0x1000, 0x1000));
        shared.state().mapped(5, file(0x3000, 0x1000));
        assert_eq!(
            shared.state().made(one, Thread { pid: 5, tid: 6 }).as_deref(),
            Some(&b"maker"[..])
        );
        assert_eq!(shared.state().made(one, other).as_deref(), Some(&b"maker"[..]));
        assert_eq!((counts(&shared), shared.state().parent_of(9)), ((3, 4), 5));
        shared.state().named(other, b"other", true);
        shared.state().mapped(9, file(0x1000, 0x4000));
        // Mappings that it covers completely no longer exist.
        shared.state().mapped(5, file(0x1000, 0x4000));
        assert_eq!(counts(&shared), (3, 2));
        shared.state().ended(Thread { pid: 5, tid: 6 });
        assert_eq!(counts(&shared), (2, 2));
    }

    #[test]
    fn of_processes_that_ended_the_last_are_remembered() {
        let shared = Shared::new(16);
        for pid in 1..=300 {
            let thread = Thread { pid, tid: pid };
            shared.state().named(thread, b"short", true);
            shared.state().ended(thread);
        }
        assert_eq!(counts(&shared).0, GONE_MAX);
    }
}
