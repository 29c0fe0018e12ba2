// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verified processes: /proc shows that they map the area that contains their pid.
//!
//! Pids in an area are hostile, and may be of another PID namespace. Every operation of
//! this crate on a process of an area, and every query about one, takes a [`VerifiedProcess`],
//! which only the checks of this module create [trust-model].
//!
//! A process is held by its directory in /proc: it always refers to this process, and is empty once
//! the process has ended, even if its pid is reused.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{Mode, OFlags, openat};

use super::area_file::{AreaFile, FileKey, MapRange, map_ranges};
use super::processes::{self, ProcessTag, parse_stat};

/// Maximum number of bytes read from a text of /proc.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// A process by its directory in /proc.
#[derive(Debug)]
struct Handle {
    pid: u32,
    directory: OwnedFd,
}

impl Handle {
    fn open(pid: u32) -> Option<Handle> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = format!("/proc/{pid}");
        let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        Some(Handle { pid, directory })
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(File::from(openat(self.directory.as_fd(), name, flags, Mode::empty())?))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.file(name, OFlags::RDONLY)?.take(TEXT_BYTES_MAX).read_to_end(&mut text)?;
        Ok(text)
    }

    /// `None`: ended, or a zombie.
    fn tag(&self) -> Option<ProcessTag> {
        ProcessTag::of_stat(self.pid, &self.read("stat").ok()?)
    }

    fn maps(&self, key: FileKey) -> bool {
        let maps = self.read("maps").unwrap_or_default();
        map_ranges(&maps).any(|range| range.file == Some(key))
    }

    fn status(&self) -> Option<String> {
        Some(String::from_utf8_lossy(&self.read("status").ok()?).into_owned())
    }
}

/// Numbers after a key of a status text.
fn numbers(status: &str, key: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The id of a process or thread in its own PID namespace.
fn own_number(status: &str, outside: u32) -> u32 {
    numbers(status, "NSpid:").last().copied().unwrap_or(outside)
}

/// A verified process.
#[derive(Debug)]
pub(super) struct VerifiedProcess {
    handle: Handle,
    tag: ProcessTag,
    number: u32,
}

impl VerifiedProcess {
    /// The process with this pid here, if it maps the area.
    pub(super) fn at(pid: u32, area: &AreaFile) -> Option<VerifiedProcess> {
        // Its directory first, so that all later checks are on this process or fail.
        let handle = Handle::open(pid)?;
        if !handle.maps(area.key()) {
            return None;
        }
        let number = own_number(&handle.status()?, pid);
        let tag = handle.tag()?;
        Some(VerifiedProcess { handle, tag, number })
    }

    /// The process with this pid in the area, if it has the same pid here.
    pub(super) fn local(number: u32, area: &AreaFile) -> Option<VerifiedProcess> {
        VerifiedProcess::at(number, area).filter(|found| found.number == number)
    }

    /// All other processes that map the area, whatever their pids in it; with a PID namespace, those of
    /// this one. Cost: a file of each process, or some microseconds for those in other namespaces.
    pub(super) fn all(area: &AreaFile, namespace: Option<u64>) -> Vec<VerifiedProcess> {
        let own = std::process::id();
        let is_in = |pid: u32| {
            namespace.is_none_or(|inode| {
                let is_it = |found: std::fs::Metadata| found.ino() == inode;
                std::fs::metadata(format!("/proc/{pid}/ns/pid")).is_ok_and(is_it)
            })
        };
        let pids = processes::numbers("/proc").into_iter().filter(|pid| *pid != own && is_in(*pid));
        pids.filter_map(|pid| VerifiedProcess::at(pid, area)).collect()
    }

    /// A process that was verified before, if it is still the same and still maps the area.
    pub(super) fn again(tag: ProcessTag, area: &AreaFile) -> Option<VerifiedProcess> {
        VerifiedProcess::at(tag.pid, area).filter(|found| found.tag == tag)
    }

    /// Its pid here.
    pub(super) fn pid(&self) -> u32 {
        self.handle.pid
    }

    /// Its pid in its own PID namespace.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Its identity, for [`again`](VerifiedProcess::again).
    pub(super) fn tag(&self) -> ProcessTag {
        self.tag
    }

    /// Path of its program.
    pub(super) fn exe(&self) -> Option<String> {
        let path = rustix::fs::readlinkat(self.handle.directory.as_fd(), "exe", Vec::new()).ok()?;
        Some(String::from_utf8_lossy(path.as_bytes()).into_owned())
    }

    /// Build id of the program that it runs.
    pub(super) fn build_id(&self) -> Option<String> {
        super::build_id::of_open(&self.handle.file("exe", OFlags::RDONLY).ok()?)
    }

    /// Pid of its parent here.
    pub(super) fn parent(&self) -> Option<u32> {
        parse_stat(&self.handle.read("stat").ok()?).map(|(_, parent, _)| parent)
    }

    /// Id here of the thread with this id in the process's namespace. Cost: a file of each of its threads.
    pub(super) fn thread(&self, number: u32) -> Option<u32> {
        if number == self.number {
            return Some(self.handle.pid);
        }
        processes::numbers(&format!("/proc/{}/task", self.handle.pid)).into_iter().find(|tid| {
            let status = self.handle.read(&format!("task/{tid}/status")).unwrap_or_default();
            own_number(&String::from_utf8_lossy(&status), *tid) == number
        })
    }

    /// Opens its memory for writing.
    ///
    /// Errors: not permitted, or it has ended ([`io::ErrorKind::NotFound`]).
    pub(super) fn memory(&self, area: &AreaFile) -> io::Result<ProgramMemory> {
        let own = rustix::process::geteuid().as_raw();
        if area.owner() != own {
            return Err(refused(format!("the area is of user {}", area.owner())));
        }
        let file = self.handle.file("mem", OFlags::RDWR)?;
        // After opening: it may have executed another program, or changed its user since it
        // was verified. Memory opened earlier belongs to the previous program.
        let status = self.handle.status().ok_or(io::ErrorKind::NotFound)?;
        let users = numbers(&status, "Uid:");
        if users.len() != 4 || users.iter().any(|user| *user != own) {
            return Err(refused("it runs as another user than this recorder".to_owned()));
        }
        let maps: Vec<MapRange> = map_ranges(&self.handle.read("maps")?).collect();
        if !maps.iter().any(|range| range.file == Some(area.key())) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(ProgramMemory { file, maps })
    }
}

/// A process's own pid: a number only, on which nothing may be based.
pub(super) fn number_of(pid: u32) -> Option<u32> {
    Some(own_number(&Handle::open(pid)?.status()?, pid))
}

/// The current name of a thread of a process that was verified before. Both ids are those here.
pub(super) fn thread_name(process: ProcessTag, tid: u32) -> Option<Vec<u8>> {
    let handle = Handle::open(process.pid)?;
    let mut name = handle.read(&format!("task/{tid}/comm")).ok()?;
    name.truncate(name.trim_ascii_end().len());
    (handle.tag()? == process).then_some(name)
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Writable memory of a process that maps the area, and has the user of the area and of
/// this recorder, and no other.
#[derive(Debug)]
pub(super) struct ProgramMemory {
    file: File,
    maps: Vec<MapRange>,
}

impl ProgramMemory {
    fn range(&self, address: u64, bytes: u64) -> Option<&MapRange> {
        let end = address.checked_add(bytes)?;
        let next = self.maps.partition_point(|range| range.end <= address);
        self.maps.get(next).filter(|range| range.start <= address && end <= range.end)
    }

    /// Reads bytes at an address.
    pub(super) fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, address)
    }

    /// The program file that contains these bytes as constants, which therefore are unchanged.
    pub(super) fn constants(&self, address: u64, bytes: u64) -> Option<FileKey> {
        let range = self.range(address, bytes)?;
        range.file.filter(|_| !range.writable && !range.shared)
    }

    /// Whether the bytes are code of this file.
    pub(super) fn is_code_of(&self, file: FileKey, address: u64, bytes: u64) -> bool {
        self.range(address, bytes)
            .is_some_and(|range| range.executable && !range.shared && range.file == Some(file))
    }

    /// Writes one byte.
    pub(super) fn write(&self, byte: u8, address: u64) -> io::Result<()> {
        self.file.write_all_at(&[byte], address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// An area's file that another process has mapped, and one that it only has open.
    #[test]
    fn a_process_counts_only_if_it_maps_the_file() {
        let path = std::env::temp_dir().join(format!("lateralis-mapped-{}", std::process::id()));
        std::fs::write(&path, vec![0; 8192]).unwrap();
        let area = AreaFile::open(&path).unwrap();
        let mut holder = Command::new("sleep")
            .arg("100")
            .stdin(Stdio::from(std::fs::File::open(&path).unwrap()))
            .spawn()
            .unwrap();
        assert!(VerifiedProcess::at(holder.id(), &area).is_none(), "open is not mapped");
        assert!(VerifiedProcess::at(std::process::id(), &area).is_none());
        assert!(VerifiedProcess::at(1, &area).is_none());
        let _own = super::super::mapping::Mapping::of_file(
            area.file(),
            super::super::mapping::Access::Shared,
        )
        .unwrap();
        let own = VerifiedProcess::at(std::process::id(), &area).unwrap();
        assert_eq!(own.number(), own.pid());
        assert!(VerifiedProcess::again(own.tag(), &area).is_some());
        assert!(own.exe().is_some() && own.parent().is_some());
        assert!(thread_name(own.tag(), own.pid()).is_some());
        let memory = own.memory(&area).unwrap();
        let constant: &'static str = "a constant of this program";
        let at = constant.as_ptr().addr() as u64;
        let file = memory.constants(at, constant.len() as u64).unwrap();
        let code = numbers as fn(&str, &str) -> Vec<u32> as usize as u64;
        assert!(memory.is_code_of(file, code, 5));
        assert!(!memory.is_code_of(area.key(), code, 5) && !memory.is_code_of(file, at, 5));
        let on_heap = Box::new([0u8; 64]);
        assert_eq!(memory.constants(on_heap.as_ptr().addr() as u64, 64), None);
        assert_eq!(memory.constants(u64::MAX - 3, 8), None);
        holder.kill().unwrap();
        holder.wait().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
