// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that write into an area, as long as they live and after.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lateralis_ring::{AreaHeader, AreaView, abi, processes};

use super::clocks;
use super::processes::{self as proc, ProcessTag};
use crate::report;
use crate::walk::Introduction;

#[derive(Debug, Clone)]
struct Traced {
    /// None: it was gone when it was first looked for.
    tag: Option<ProcessTag>,
    parent_pid: u32,
    exe: String,
    name: String,
    /// Reading of the area's clock when it last told its name in a record.
    named_at: u64,
    arguments: Vec<String>,
    build_id: Option<String>,
    seen_ns: i64,
    ended_ns: Option<i64>,
}

/// See the module's description.
#[derive(Debug, Clone)]
pub(super) struct TracedProcesses {
    area_id: u64,
    live: bool,
    by_pid: BTreeMap<u32, Traced>,
    /// The area's table had a place for no other.
    pub(super) table_was_full: bool,
}

/// Processes that are remembered.
const PROCESSES_MAX: usize = 65536;

/// Words separated by NUL as text.
pub(super) fn words(command: &[u8]) -> Vec<String> {
    if command.is_empty() {
        return Vec::new();
    }
    command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect()
}

impl TracedProcesses {
    /// With the process that made the area. `live`: /proc is about the same processes; false
    /// for an area that is recovered.
    pub(super) fn new(header: &AreaHeader, live: bool) -> TracedProcesses {
        let mut traced = TracedProcesses {
            area_id: header.area_id,
            live,
            by_pid: BTreeMap::new(),
            table_was_full: false,
        };
        let exe = String::from_utf8_lossy(&header.exe).into_owned();
        let pid = header.creator_pid;
        let tag = ProcessTag::of(pid).filter(|_| live);
        let build_id = tag
            .and_then(|_| proc::build_id(pid))
            .or_else(|| super::build_id::of_file(&PathBuf::from(&exe)));
        let now = clocks::utc_ns();
        let name = exe.rsplit('/').next().unwrap_or_default().chars().take(15).collect();
        traced.by_pid.insert(
            pid,
            Traced {
                tag,
                parent_pid: tag.and_then(|_| proc::parent(pid)).unwrap_or(0),
                exe,
                name,
                named_at: 0,
                arguments: words(&header.command),
                build_id,
                seen_ns: now,
                ended_ns: tag.is_none().then_some(now),
            },
        );
        traced
    }

    /// Looks at the area's process table for new ones, and which have ended.
    /// Cost: 128 loads, and one small file of /proc for each that lives.
    pub(super) fn refresh(&mut self, view: &AreaView<'_>) {
        let now = clocks::utc_ns();
        let entries = processes(view).unwrap_or_default();
        self.table_was_full |= entries.len() >= abi::PROCESS_COUNT as usize;
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if let Some(known) = self.by_pid.get_mut(&entry.pid) {
                if known.parent_pid == 0 {
                    known.parent_pid = entry.parent_pid;
                }
                if !name.is_empty() {
                    known.name = name;
                }
                continue;
            }
            self.add(entry.pid, entry.parent_pid, name, now);
        }
        for traced in self.by_pid.values_mut() {
            if traced.ended_ns.is_none() && !traced.tag.is_some_and(|tag| tag.is_alive()) {
                traced.ended_ns = Some(now);
            }
        }
    }

    /// Takes over what a process says of itself in its first record, at a reading of the area's clock:
    /// so those are known, too, that had ended before the table was looked at, or found no place in it.
    pub(super) fn introduce(&mut self, process: &Introduction, time: u64) {
        let name = String::from_utf8_lossy(&process.name).into_owned();
        if !self.by_pid.contains_key(&process.pid) {
            self.add(process.pid, process.parent_pid, name.clone(), clocks::utc_ns());
        }
        let Some(known) = self.by_pid.get_mut(&process.pid) else { return };
        // In shared rings a process introduces itself again when it has executed another program,
        // perhaps in the ring of another processor, of which was read before.
        if time < known.named_at {
            return;
        }
        known.named_at = time;
        if known.name != name && !name.is_empty() {
            known.name = name;
            let alive = known.tag.is_some_and(|tag| tag.is_alive());
            if let Some(exe) = proc::exe(process.pid).filter(|_| alive) {
                known.exe = exe.to_string_lossy().into_owned();
                known.build_id = proc::build_id(process.pid);
            }
        }
    }

    fn add(&mut self, pid: u32, parent_pid: u32, name: String, now: i64) {
        if self.by_pid.len() >= PROCESSES_MAX {
            return;
        }
        let tag = ProcessTag::of(pid).filter(|_| self.live);
        let exe = tag.and_then(|_| proc::exe(pid));
        let traced = Traced {
            tag,
            parent_pid,
            exe: exe.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
            name,
            named_at: 0,
            arguments: Vec::new(),
            build_id: tag.and_then(|_| proc::build_id(pid)),
            seen_ns: now,
            ended_ns: tag.is_none().then_some(now),
        };
        self.by_pid.insert(pid, traced);
    }

    /// Whether none of them is left, as of the last look.
    pub(super) fn have_ended(&self) -> bool {
        self.by_pid.values().all(|traced| traced.ended_ns.is_some())
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.by_pid.len() as u64
    }

    /// For the report.
    pub(super) fn into_report(self) -> Vec<report::Process> {
        let area_id = format!("{:016x}", self.area_id);
        self.by_pid
            .into_iter()
            .map(|(pid, traced)| report::Process {
                pid,
                parent_pid: traced.parent_pid,
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
                by_pid: BTreeMap::new(),
                table_was_full: false,
            };
            for (name, time) in order.map(|at| told[at]) {
                traced.introduce(&said(name), time);
            }
            assert_eq!(traced.into_report()[0].name, "last", "{order:?}");
        }
    }
}
