// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Existing processes and threads, from `/proc` [proc(5)].

use std::fs;

/// A process with its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent_pid: u32,
    pub(super) name: Vec<u8>,
    /// Id and name of each.
    pub(super) threads: Vec<(u32, Vec<u8>)>,
}

/// Directory entries that are numbers.
fn numbers(path: &str) -> Vec<u32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn name(path: &str) -> Vec<u8> {
    let mut name = fs::read(path).unwrap_or_default();
    name.truncate(name.trim_ascii_end().len());
    name
}

/// A number from a line of a `status` file.
fn status(text: &str, key: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
}

/// All existing processes. Cost: two files per process, one per thread.
pub(super) fn all() -> Vec<Process> {
    numbers("/proc").into_iter().filter_map(one).collect()
}

/// A process, if it exists.
pub(super) fn one(pid: u32) -> Option<Process> {
    let text = fs::read(format!("/proc/{pid}/status")).ok()?;
    let parent_pid = status(&String::from_utf8_lossy(&text), "PPid:")?;
    let thread = |tid| (tid, name(&format!("/proc/{pid}/task/{tid}/comm")));
    Some(Process {
        pid,
        parent_pid,
        name: name(&format!("/proc/{pid}/comm")),
        threads: of(pid).into_iter().map(thread).collect(),
    })
}

/// The threads of a process.
pub(super) fn of(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The process of a thread.
pub(super) fn process_of(tid: u32) -> Option<u32> {
    let text = fs::read(format!("/proc/{tid}/status")).ok()?;
    status(&String::from_utf8_lossy(&text), "Tgid:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_threads() {
        let own = std::process::id();
        let list = all();
        let process = list.iter().find(|process| process.pid == own).unwrap();
        assert_eq!(process.parent_pid, std::os::unix::process::parent_id());
        assert!(process.threads.iter().any(|(tid, name)| *tid == own && !name.is_empty()));
        let (tid, _) = process.threads.last().unwrap();
        assert_eq!(process_of(*tid), Some(own));
        assert_eq!(process_of(u32::MAX), None);
    }
}
