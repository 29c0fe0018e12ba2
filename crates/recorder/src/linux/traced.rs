// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that write to an area, during their life and after.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lateralis_ring::{AreaHeader, AreaView, abi, processes};

use super::area_file::{AreaFile, Users};
use super::clocks;
use super::processes::{self as proc, ProcessTag};
use super::verified::{self, VerifiedProcess};
use crate::report;
use crate::walk::{Introduction, RecordPlan};

#[derive(Debug, Clone)]
struct Traced {
    /// `None`: it had ended when it was first searched for.
    tag: Option<ProcessTag>,
    /// Its own pid, if that is not its pid here.
    number: Option<u32>,
    parent_pid: u32,
    exe: String,
    name: String,
    /// Clock of the area when it last recorded its name.
    named_at: u64,
    arguments: Vec<String>,
    build_id: Option<String>,
    seen_ns: i64,
    ended_ns: Option<i64>,
}

/// The processes of an area.
///
/// An area contains pids of its own PID namespace. Here, in the recording and in the report,
/// processes and threads have the ids of the recorder's namespace, so that those of two
/// namespaces differ, and match those in the kernel's events. A process of another namespace that had
/// ended before it was searched for gets an id that no process has.
#[derive(Debug, Clone)]
pub(super) struct TracedProcesses {
    area_id: u64,
    live: bool,
    /// The namespace in which the area was created, if it is not this one.
    namespace: Option<u64>,
    /// Some of its pids denote other processes here.
    is_foreign: bool,
    by_pid: BTreeMap<u32, Traced>,
    /// Pid here, by the process's own pid.
    numbers: HashMap<u32, u32>,
    /// Thread id here, by process here and the thread's own id.
    threads: HashMap<(u32, u32), u32>,
    /// When to ask the kernel again whether an area with running processes has users.
    use_due: Instant,
    /// The area's table had no free slot.
    pub(super) table_was_full: bool,
}

/// Ids from this one on are assigned by this recorder: the kernel's are below 2^22 (PID_MAX_LIMIT).
const GIVEN_FROM: u32 = 1_000_000_000;
static GIVEN: AtomicU32 = AtomicU32::new(GIVEN_FROM);

fn give_number() -> u32 {
    // Ids repeat only after a thousand million; a collision in one recording is very unlikely.
    GIVEN.fetch_add(1, Ordering::Relaxed).max(GIVEN_FROM)
}

/// Time between two checks whether an area with running processes has users: a process that executed
/// another program no longer counts.
const USE_PERIOD: Duration = Duration::from_millis(500);
/// Maximum number of threads kept.
const THREADS_MAX: usize = 1 << 20;
/// Maximum number of processes kept.
const PROCESSES_MAX: usize = 65536;

/// Words separated by NUL as text.
pub(super) fn words(command: &[u8]) -> Vec<String> {
    if command.is_empty() {
        return Vec::new();
    }
    command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect()
}

/// Resolves the program path in an area: a program that is recorded from its start may have
/// stored the path that it was started by, which can be a link. Opens nothing.
pub(super) fn resolved(exe: &str) -> String {
    let path = std::fs::canonicalize(exe).ok().filter(|_| exe.starts_with('/'));
    path.map_or_else(|| exe.to_owned(), |path| path.to_string_lossy().into_owned())
}

impl TracedProcesses {
    /// Starts with the process that created the area. `area`: /proc describes the same processes; `None` for
    /// a recovered area.
    pub(super) fn new(header: &AreaHeader, area: Option<&AreaFile>) -> TracedProcesses {
        let inode = header.pid_namespace;
        let is_foreign = area.is_some() && proc::is_foreign_namespace(inode);
        let mut traced = TracedProcesses {
            area_id: header.area_id,
            live: area.is_some(),
            namespace: is_foreign.then_some(inode),
            is_foreign,
            by_pid: BTreeMap::new(),
            numbers: HashMap::new(),
            threads: HashMap::new(),
            use_due: Instant::now(),
            table_was_full: false,
        };
        let exe = resolved(&String::from_utf8_lossy(&header.exe));
        let name: String = exe.rsplit('/').next().unwrap_or_default().chars().take(15).collect();
        let number = header.creator_pid;
        let pid = traced.add((number, 0, name), area);
        if let Some(creator) = traced.by_pid.get_mut(&pid) {
            if creator.tag.is_none() {
                creator.build_id = super::build_id::of_file(&PathBuf::from(&exe));
            }
            creator.exe = exe;
            creator.arguments = words(&header.command);
        }
        traced
    }

    /// Reads the area's process table for new and ended processes.
    /// Cost: 128 loads, and some small files of /proc for each new or running process.
    pub(super) fn refresh(&mut self, view: &AreaView<'_>, area: Option<&AreaFile>) {
        let entries = processes(view).unwrap_or_default();
        self.table_was_full |= entries.len() >= abi::PROCESS_COUNT as usize;
        self.is_foreign |= self.live && entries.iter().any(|entry| self.begins_namespace(entry));
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if let Some(known) =
                self.numbers.get(&entry.pid).and_then(|pid| self.by_pid.get_mut(pid))
            {
                if known.parent_pid == 0 && known.number.is_none() {
                    known.parent_pid = entry.parent_pid;
                }
                if !name.is_empty() {
                    known.name = name;
                }
                continue;
            }
            self.add((entry.pid, entry.parent_pid, name), area);
        }
        let now = clocks::utc_ns();
        for (&pid, traced) in &mut self.by_pid {
            if traced.ended_ns.is_none() && !traced.tag.is_some_and(|tag| tag.is_alive()) {
                traced.ended_ns = Some(now);
                // A killed process could not do it, and programs do not check for that.
                let _ = lateralis_ring::free_process(view, traced.number.unwrap_or(pid));
            }
        }
    }

    /// Whether some ids in the area denote other processes or threads here.
    pub(super) fn has_foreign_numbers(&self) -> bool {
        self.is_foreign
    }

    /// Whether a process may be in another PID namespace than its parent: it sees no parent, or its pid is
    /// below that of the process that forked it. The latter also happens after pids wrap,
    /// and then costs a search without a result.
    fn begins_namespace(&self, entry: &lateralis_ring::ProcessEntry) -> bool {
        let is_outside = entry.parent_pid == 0 || entry.parent_pid >= entry.pid;
        is_outside && !self.numbers.contains_key(&entry.pid)
    }

    /// Checks whether a process of the area entered another PID namespace. Cost: 128 loads.
    pub(super) fn look_for_namespaces(&mut self, view: &AreaView<'_>, area: Option<&AreaFile>) {
        if self.live && !self.is_foreign {
            let entries = processes(view).unwrap_or_default();
            if entries.iter().any(|entry| self.begins_namespace(entry)) {
                self.refresh(view, area);
            }
        }
    }

    /// Ids here of a process and a thread with these ids in the area.
    fn outside(&mut self, number: u32, thread: u32, area: Option<&AreaFile>) -> (u32, u32) {
        let known = self.numbers.get(&number).copied();
        let pid = known.unwrap_or_else(|| self.add((number, 0, String::new()), area));
        if pid == number {
            return (pid, thread);
        }
        if thread == number {
            return (pid, pid);
        }
        if let Some(known) = self.threads.get(&(pid, thread)) {
            return (pid, *known);
        }
        let process = self.by_pid.get(&pid).and_then(|traced| traced.tag).zip(area);
        let process = process.and_then(|(tag, area)| VerifiedProcess::again(tag, area));
        let tid = process.and_then(|process| process.thread(thread)).unwrap_or_else(give_number);
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        self.threads.insert((pid, thread), tid);
        (pid, tid)
    }

    /// Translates the ids of processes and threads of other PID namespaces in records that were
    /// read. The last record ends `slack` bytes before their end. Cost: nothing without such a namespace,
    /// else a walk over the records.
    pub(super) fn translate(
        &mut self,
        plan: &RecordPlan,
        records: &mut [u8],
        slack: u64,
        area: Option<&AreaFile>,
    ) {
        if !self.is_foreign {
            return;
        }
        let mut found: Vec<(u16, usize)> = Vec::new();
        for record in plan.records(records, slack, 0) {
            if matches!(record.id, abi::ID_WRITER | abi::ID_THREAD_NAME | abi::ID_PROCESS) {
                found.push((record.id, record.at + abi::RECORD_HEADER_BYTES as usize));
            }
        }
        for (id, at) in found {
            let Some(place) = records.get_mut(at..at + 8) else { continue };
            let [a, b, c, d, e, f, g, h] = *place else { continue };
            let number = u32::from_ne_bytes([a, b, c, d]);
            let second = u32::from_ne_bytes([e, f, g, h]);
            let (pid, second) = if id == abi::ID_PROCESS {
                let pid = self.outside(number, number, area).0;
                // The parent of the first process of a namespace is outside, and has no pid in it.
                let parent = self.by_pid.get(&pid).map_or(0, |traced| traced.parent_pid);
                (pid, if pid == number { second } else { parent })
            } else {
                self.outside(number, second, area)
            };
            place[..4].copy_from_slice(&pid.to_ne_bytes());
            place[4..].copy_from_slice(&second.to_ne_bytes());
        }
    }

    /// Adds a process from its introduction record, at a clock time of the area. So processes
    /// are known even if they ended before the table was read, or found no slot in it.
    pub(super) fn introduce(&mut self, process: &Introduction, time: u64, area: Option<&AreaFile>) {
        let name = String::from_utf8_lossy(&process.name).into_owned();
        if !self.by_pid.contains_key(&process.pid) {
            self.add((process.pid, process.parent_pid, name.clone()), area);
        }
        let Some(known) = self.by_pid.get_mut(&process.pid) else { return };
        // In shared rings a process introduces itself again after it executes another program,
        // possibly in another CPU's ring, which may have been read before.
        if time < known.named_at {
            return;
        }
        known.named_at = time;
        if known.parent_pid == 0 && known.number.is_none() {
            known.parent_pid = process.parent_pid;
        }
        if known.name != name && !name.is_empty() {
            known.name = name;
            let again =
                known.tag.zip(area).and_then(|(tag, area)| VerifiedProcess::again(tag, area));
            if let Some(process) = again {
                if let Some(exe) = process.exe() {
                    known.exe = exe;
                }
                known.build_id = process.build_id();
            }
        }
    }

    /// The process with this pid in the area: verified, in whatever namespace.
    fn find(&self, number: u32, area: &AreaFile) -> Option<VerifiedProcess> {
        let local = VerifiedProcess::local(number, area);
        if local.is_some() || !self.is_foreign {
            return local;
        }
        let known = |pid: u32| self.by_pid.get(&pid).is_some_and(|traced| traced.tag.is_some());
        let all = VerifiedProcess::all(area, self.namespace);
        let others = all.into_iter().filter(|process| !known(process.pid()));
        others.into_iter().find(|process| process.number() == number)
    }

    /// The child of a verified process whose own pid is `number`.
    fn child_called(&self, number: u32) -> Option<u32> {
        let tags = self.by_pid.values().filter_map(|traced| traced.tag);
        let parents: Vec<u32> = tags.filter(ProcessTag::is_alive).map(|tag| tag.pid).collect();
        let is_child = |pid: &u32| proc::parent(*pid).is_some_and(|one| parents.contains(&one));
        let children = proc::numbers("/proc").into_iter().filter(is_child);
        children.into_iter().find(|pid| verified::number_of(*pid) == Some(number))
    }

    /// Adds a process by its and its parent's pids in the area; returns its pid here.
    fn add(&mut self, (number, parent, name): (u32, u32, String), area: Option<&AreaFile>) -> u32 {
        let process = area.and_then(|area| self.find(number, area));
        let parent_here = self.numbers.get(&parent).copied();
        // Without a running process: it is of another namespace if its area or its parent is, or if its
        // parent is outside.
        let is_elsewhere = self.namespace.is_some()
            || self.is_foreign
                && (parent == 0
                    || parent >= number
                    || parent_here.is_some_and(|here| here != parent));
        let pid = match &process {
            Some(process) => process.pid(),
            // It may have executed another program meanwhile: then only its pid is used.
            None if is_elsewhere => self.child_called(number).unwrap_or_else(give_number),
            None => number,
        };
        let is_same = pid == number;
        if self.numbers.len() < PROCESSES_MAX {
            self.numbers.insert(number, pid);
        }
        if self.by_pid.contains_key(&pid) || self.by_pid.len() >= PROCESSES_MAX {
            return pid;
        }
        let of_process = process.as_ref().and_then(VerifiedProcess::parent);
        let now = clocks::utc_ns();
        let traced = Traced {
            tag: process.as_ref().map(VerifiedProcess::tag),
            number: (!is_same).then_some(number),
            parent_pid: match (is_same, of_process) {
                (true, _) if parent != 0 => parent,
                (_, Some(parent)) => parent,
                _ => parent_here.unwrap_or(0),
            },
            exe: process.as_ref().and_then(VerifiedProcess::exe).unwrap_or_default(),
            name,
            named_at: 0,
            arguments: Vec::new(),
            build_id: process.as_ref().and_then(VerifiedProcess::build_id),
            seen_ns: now,
            ended_ns: process.is_none().then_some(now),
        };
        self.by_pid.insert(pid, traced);
        pid
    }

    /// The current name of a thread, if its process was verified and is running. Cost: two small files.
    pub(super) fn thread_name(
        &mut self,
        (pid, tid): (u32, u32),
        area: Option<&AreaFile>,
    ) -> Option<Vec<u8>> {
        if !self.by_pid.contains_key(&pid) && !self.is_foreign {
            self.add((pid, 0, String::new()), area);
        }
        verified::thread_name(self.by_pid.get(&pid)?.tag?, tid)
    }

    /// Current users of the area: `Unknown` if no process is known to have it and the kernel does not
    /// report any. Cost: some system calls.
    pub(super) fn users(&mut self, area: Option<&AreaFile>) -> Users {
        if self.any_lives() && (area.is_none() || Instant::now() < self.use_due) {
            return Users::Others;
        }
        self.use_due = Instant::now() + USE_PERIOD;
        self.users_now(area)
    }

    /// Like `users`, but always asks the kernel.
    pub(super) fn users_now(&self, area: Option<&AreaFile>) -> Users {
        match area.map_or(Users::Unknown, AreaFile::users) {
            Users::Unknown if self.any_lives() => Users::Others,
            Users::Unknown => match area.map(|area| VerifiedProcess::all(area, self.namespace)) {
                Some(processes) if !processes.is_empty() => Users::Others,
                _ => Users::Unknown,
            },
            known => known,
        }
    }

    fn any_lives(&self) -> bool {
        self.by_pid.values().any(|traced| traced.ended_ns.is_none())
    }

    /// Number of processes.
    pub(super) fn count(&self) -> u64 {
        self.by_pid.len() as u64
    }

    /// Converts to the report.
    pub(super) fn into_report(self) -> Vec<report::Process> {
        let area_id = format!("{:016x}", self.area_id);
        self.by_pid
            .into_iter()
            .map(|(pid, traced)| report::Process {
                pid,
                parent_pid: traced.parent_pid,
                pid_in_namespace: traced.number,
                area_id: area_id.clone(),
                exe: traced.exe,
                name: traced.name,
                arguments: traced.arguments,
                build_id: traced.build_id,
                seen_ns: traced.seen_ns,
                ended_ns: traced.ended_ns,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_stays_in_whatever_order_rings_are_read() {
        let said = |name: &str| Introduction { pid: 7, parent_pid: 1, name: name.into() };
        let told = [("before", 10), ("between", 20), ("last", 30)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut traced = TracedProcesses {
                area_id: 1,
                live: false,
                namespace: None,
                is_foreign: false,
                by_pid: BTreeMap::new(),
                numbers: HashMap::new(),
                threads: HashMap::new(),
                use_due: Instant::now(),
                table_was_full: false,
            };
            for (name, time) in order.map(|at| told[at]) {
                traced.introduce(&said(name), time, None);
            }
            assert_eq!(traced.into_report()[0].name, "last", "{order:?}");
        }
    }
}
