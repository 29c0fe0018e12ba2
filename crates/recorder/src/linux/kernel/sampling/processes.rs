// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mappings of existing processes, from `/proc` [proc(5), "/proc/pid/maps"].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::super::threads::Process;
use crate::kernel::stack_samples::{Known, MappedFile};
use crate::linux::build_id;
use crate::source::Thread;

/// Maximum number of files whose build ids are cached.
const FILES_MAX: usize = 1 << 16;

/// Caches the build ids of mapped files.
#[derive(Debug)]
pub(super) struct Processes {
    /// By path and inode.
    build_ids: HashMap<(Vec<u8>, u64), Vec<u8>>,
    /// UTC at the start of the recording, in seconds.
    began_s: i64,
}

/// The build id of the running kernel.
pub(super) fn kernel_build_id() -> Option<Vec<u8>> {
    build_id::of_notes(&fs::read("/sys/kernel/notes").ok()?)
}

impl Processes {
    /// For a recording started at this time.
    pub(super) fn new(utc_ns: i64) -> Processes {
        Processes { build_ids: HashMap::new(), began_s: utc_ns / 1_000_000_000 }
    }

    /// Names of its threads, and its code mappings.
    /// Cost: a file for the process, and one for each file whose build id is not known.
    pub(super) fn known(&mut self, process: &Process) -> impl Iterator<Item = Known> + use<> {
        let pid = process.pid;
        let mut all = vec![Known::Parent(pid, process.parent_pid)];
        for (tid, name) in &process.threads {
            all.push(Known::Name(Thread { pid, tid: *tid }, name.clone()));
        }
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        for mut file in maps.split(|byte| *byte == b'\n').filter_map(mapped) {
            file.build_id = self.build_id(pid, &file);
            all.push(Known::Mapped(pid, file));
        }
        all.into_iter()
    }

    /// The build id of a file that a process has mapped; empty if unknown.
    /// Cost: some reads of each file, once.
    pub(super) fn build_id(&mut self, pid: u32, file: &MappedFile) -> Vec<u8> {
        if !file.path.starts_with(b"/") || file.path.starts_with(b"//") {
            return Vec::new();
        }
        let key = (file.path.clone(), file.inode);
        if let Some(known) = self.build_ids.get(&key) {
            return known.clone();
        }
        // As seen by the process, which may have another root; after its end, as seen here.
        let roots = [format!("/proc/{pid}/root"), String::new()];
        let found = roots.iter().find_map(|root| {
            let place = [root.as_bytes(), &file.path].concat();
            let place = Path::new(OsStr::from_bytes(&place));
            build_id::of_mapped(place, file.inode, self.began_s)
        });
        let found = found.unwrap_or_default();
        if self.build_ids.len() < FILES_MAX {
            self.build_ids.insert(key, found.clone());
        }
        found
    }
}

/// A line of `maps`: `7f00-7f10 r-xp 00001000 fe:01 1234      /usr/lib/libc.so.6`; `None` if not executable.
fn mapped(line: &[u8]) -> Option<MappedFile> {
    let mut rest = line;
    let mut next = || {
        let word;
        (word, rest) = rest.split_at(rest.iter().position(|byte| *byte == b' ')?);
        rest = rest.trim_ascii_start();
        str::from_utf8(word).ok()
    };
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (begin, end) = next()?.split_once('-')?;
    let modes = next()?.as_bytes();
    let offset = hexadecimal(next()?)?;
    let (major, minor) = next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    // Spaces follow the number even if there is no path.
    let inode = next()?.parse().ok()?;
    let path = if rest.is_empty() { b"//anon" } else { rest };
    let has = |at: usize, mode: u8| modes.get(at) == Some(&mode);
    if !has(2, b'x') {
        return None;
    }
    let begin = hexadecimal(begin)?;
    Some(MappedFile {
        begin,
        bytes: hexadecimal(end)?.checked_sub(begin)?,
        offset,
        // PROT_READ, PROT_WRITE, PROT_EXEC; MAP_SHARED, MAP_PRIVATE.
        protection: u32::from(has(0, b'r')) | u32::from(has(1, b'w')) << 1 | 4,
        flags: if has(3, b's') { 1 } else { 2 },
        device,
        inode,
        path: path.to_vec(),
        ..MappedFile::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read_and_only_code_counts() {
        let file =
            mapped(b"7f00-7f90 r-xp 00001000 fe:01 1234      /usr/lib/a b.so (deleted)").unwrap();
        let wanted = MappedFile {
            begin: 0x7f00,
            bytes: 0x90,
            offset: 0x1000,
            protection: 5,
            flags: 2,
            device: (0xfe, 1),
            inode: 1234,
            path: b"/usr/lib/a b.so (deleted)".to_vec(),
            ..MappedFile::default()
        };
        assert_eq!(file, wanted);
        assert_eq!(mapped(b"7f00-7f90 rwxs 00000000 00:00 0 ").unwrap().path, b"//anon");
        for line in [
            &b"7f00-7f90 r--p 00001000 fe:01 1234 /usr/lib/a.so"[..],
            b"7f90-7f00 r-xp 00001000 fe:01 1234 /usr/lib/a.so",
            b"7f00-7f90 r-xp 00001000 fe01 1234 /a",
            b"7f00",
            b"",
        ] {
            assert_eq!(mapped(line), None, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn this_process_has_its_own_program_mapped() {
        let own = std::process::id();
        let process = super::super::super::threads::one(own).unwrap();
        let known: Vec<Known> = Processes::new(i64::MAX).known(&process).collect();
        let program = std::env::current_exe().unwrap();
        let program = program.as_os_str().as_bytes();
        assert!(
            known.iter().any(|one| matches!(one, Known::Mapped(_, file) if file.path == program))
        );
        assert!(known.iter().any(|one| matches!(one, Known::Name(thread, _) if thread.tid == own)));
    }
}
