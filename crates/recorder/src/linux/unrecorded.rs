// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that the library of `with` does not record: the command is examined before it starts, the
//! programs that it starts are noted by the library (`tracer/preload/exec.c`) in a table of the session.
//! Both are reported with the reason and possible remedies.

mod table;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use self::table::Table;
use crate::report::{NotRecorded, NotRecordedReason};

/// Maximum number of nested scripts whose interpreters are followed.
const SCRIPTS_MAX: usize = 4;
/// Maximum number of program headers examined.
const HEADERS_MAX: usize = 64;
/// Maximum number of entries of a dynamic section examined.
const ENTRIES_MAX: usize = 256;

/// Why a program is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Static,
    OtherLibrary,
    OtherMachine,
    OtherUser,
    Sanitizer,
    OutOfReach,
    Cleared,
    NoRoom,
    NeverBegun,
    OtherRecorder,
}

impl Reason {
    /// The reason for a letter in the table [ring-abi §8].
    fn of_letter(letter: u8) -> Option<Reason> {
        Some(match letter {
            b's' => Reason::Static,
            b'l' => Reason::OtherLibrary,
            b'm' => Reason::OtherMachine,
            b'u' => Reason::OtherUser,
            b'a' => Reason::Sanitizer,
            b'r' => Reason::OutOfReach,
            b'e' => Reason::Cleared,
            b'n' => Reason::NoRoom,
            b'o' => Reason::OtherRecorder,
            _ => return None,
        })
    }

    /// Description, and possible remedies.
    fn sentence(self) -> &'static str {
        match self {
            Reason::Static => {
                "statically linked, so nothing can be loaded into it: use --kernel or --probe"
            }
            Reason::OtherLibrary => {
                "of another C library than glibc (musl, for example): use --kernel or --probe"
            }
            Reason::OtherMachine => {
                "of another architecture than lat (32 bits, for example): use --kernel or --probe"
            }
            Reason::OtherUser => {
                "set-user-id, set-group-id or with capabilities, so the system loads nothing into it: \
                 run lat as the user whose rights it gets, or use --kernel"
            }
            Reason::Sanitizer => {
                "built with AddressSanitizer as a shared library, which must be loaded first: link it \
                 with -static-libasan, or use --kernel or --probe"
            }
            Reason::OutOfReach => {
                "in another root directory or of a user who cannot read lat's library: run lat there, \
                 or use --kernel"
            }
            Reason::Cleared => {
                "started with an environment without LD_PRELOAD or LATERALIS_RECORD: keep them and \
                 LATERALIS_DIR in it, or use --kernel or --probe"
            }
            Reason::NoRoom => {
                "started where there is no room for its events: a limit of file size (ulimit -f), of open \
                 files or of memory, or a full file system: raise the limit, or use --kernel or --probe"
            }
            Reason::NeverBegun => {
                "started and never recorded: it ended before, or it runs as another user, in another \
                 mount namespace or without LATERALIS_DIR in its environment: run lat there, or use \
                 --kernel or --probe"
            }
            Reason::OtherRecorder => {
                "recorded by another lat, which it was started by: its events are in that recording"
            }
        }
    }

    /// The reason in the report.
    fn in_report(self) -> NotRecordedReason {
        match self {
            Reason::NoRoom => NotRecordedReason::NoRoom,
            Reason::NeverBegun => NotRecordedReason::NeverRegistered,
            Reason::OtherRecorder => NotRecordedReason::Other,
            _ => NotRecordedReason::CannotBePreloaded,
        }
    }

    /// Whether the program must start without the library: it would print an error or fail.
    pub(super) fn forbids_loading(self) -> bool {
        matches!(self, Reason::OtherMachine | Reason::Sanitizer)
    }
}

/// Programs that were not recorded.
#[derive(Debug, Default)]
pub(super) struct Unrecorded {
    programs: BTreeMap<(Reason, String), Programs>,
    table: Option<Table>,
}

#[derive(Debug, Default)]
struct Programs {
    count: u64,
    /// The process of the last one, if known.
    pid: Option<u32>,
}

impl Unrecorded {
    /// Creates the table of this session. Without it only the command is known.
    pub(super) fn begin(&mut self, area_dir: &Path, session: u64) {
        self.table = Table::make(area_dir, session).ok();
    }

    /// Adds programs of this name.
    pub(super) fn add(&mut self, reason: Reason, program: &OsStr, count: u64, pid: Option<u32>) {
        let name = Path::new(program).file_name().unwrap_or(program);
        let name = name.to_string_lossy().replace(char::is_control, "?");
        let programs = self.programs.entry((reason, name)).or_default();
        programs.count = programs.count.saturating_add(count);
        programs.pid = pid;
    }

    /// Reads the table and removes its file; returns the programs by reason and name, and the number of
    /// further ones of which nothing is known.
    pub(super) fn end(&mut self) -> (Vec<NotRecorded>, u64) {
        let entries = self.table.take().map(|table| table.read()).unwrap_or_default();
        for (letter, name, count) in entries.counted {
            if let Some(reason) = Reason::of_letter(letter) {
                self.add(reason, OsStr::from_bytes(&name), count, None);
            }
        }
        for (name, process) in entries.never_begun {
            self.add(Reason::NeverBegun, OsStr::from_bytes(&name), 1, Some(process));
        }
        let programs = std::mem::take(&mut self.programs);
        let programs = programs.into_iter().map(|((reason, program), programs)| NotRecorded {
            program,
            pid: programs.pid.filter(|_| programs.count == 1),
            reason: reason.in_report(),
            detail: reason.sentence().to_owned(),
            count: programs.count,
        });
        (programs.collect(), entries.without_slot)
    }
}

/// Why the program of this command word cannot load the library; `None` if it can, or cannot start.
pub(super) fn reason(program: &OsStr, preloaded: &OsStr) -> Option<Reason> {
    let path = found(program)?;
    let found = reason_of_file(&path)?;
    // The sanitizer's library is already first.
    let has_sanitizer = String::from_utf8_lossy(preloaded.as_bytes()).contains("asan");
    Some(found).filter(|reason| *reason != Reason::Sanitizer || !has_sanitizer)
}

/// Why the library of `with` could not be loaded into the program of this command word, and possible
/// remedies; `None` if it could.
pub fn obstacle(program: &OsStr) -> Option<&'static str> {
    reason(program, OsStr::new("")).map(Reason::sentence)
}

/// The file of a command's first word, as `execvp` finds it.
fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(program));
    paths.find(|path| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
    })
}

fn reason_of_file(path: &Path) -> Option<Reason> {
    let mut path = path.to_owned();
    for _ in 0..=SCRIPTS_MAX {
        let metadata = fs::metadata(&path).ok()?;
        if !metadata.is_file() {
            return None;
        }
        let file = File::open(&path).ok()?;
        let mut start = [0; 256];
        let got = file.read_at(&mut start, 0).ok()?;
        let start = start.get(..got)?;
        if start.starts_with(b"\x7fELF") {
            return reason_of_elf(&file, start).or_else(|| is_privileged(&path, &metadata));
        }
        // A script: the result is that of its interpreter.
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let word = line.split(is_blank).find(|word| !word.is_empty())?;
        path = PathBuf::from(OsStr::from_bytes(word));
    }
    None
}

/// Whether the kernel gives the program other rights than this process has, so that its dynamic linker
/// runs in secure mode.
fn is_privileged(path: &Path, metadata: &fs::Metadata) -> Option<Reason> {
    use rustix::process::{getegid, geteuid};
    let mode = metadata.mode();
    let user = mode & libc::S_ISUID != 0 && metadata.uid() != geteuid().as_raw();
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    let group = mode & group_bits == group_bits && metadata.gid() != getegid().as_raw();
    let mut value = [0; 64];
    let capabilities = !geteuid().is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut value).is_ok_and(|size| size > 0);
    (user || group || capabilities).then_some(Reason::OtherUser)
}

fn reason_of_elf(file: &File, start: &[u8]) -> Option<Reason> {
    let bits = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    if start.get(4) != Some(&bits) || start.get(5) != Some(&1) {
        return Some(Reason::OtherMachine);
    }
    if u16_at(start, 18)? != machine {
        return Some(Reason::OtherMachine);
    }
    let (offset, size, count) = (u64_at(start, 32)?, u16_at(start, 54)?, u16_at(start, 56)?);
    if size != 56 || usize::from(count) > HEADERS_MAX {
        return None;
    }
    let bytes = read(file, offset, usize::from(count) * 56)?;
    let headers: Vec<Header> = bytes.chunks_exact(56).filter_map(Header::read).collect();
    let Some(interpreter) = headers.iter().find(|one| one.kind == PT_INTERP) else {
        return Some(Reason::Static);
    };
    let interpreter =
        read(file, interpreter.offset, usize::try_from(interpreter.size).ok()?.min(4096))?;
    let interpreter = interpreter.split(|byte| *byte == 0).next()?;
    let name = interpreter.rsplit(|byte| *byte == b'/').next()?;
    let of_glibc = ["ld-linux", "ld64.so", "ld.so.", "ld-2."];
    if !of_glibc.iter().any(|known| name.starts_with(known.as_bytes())) {
        return Some(Reason::OtherLibrary);
    }
    let needed = match first_needed(file, &headers)? {
        // It has a dynamic linker but no C library, so the library cannot be loaded into it.
        None => return Some(Reason::OtherLibrary),
        Some(needed) => needed,
    };
    let is_sanitizer = needed.starts_with(b"libasan.so") || needed.starts_with(b"libclang_rt.asan");
    is_sanitizer.then_some(Reason::Sanitizer)
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;

struct Header {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Header> {
        let kind = u32::from_le_bytes(*bytes.first_chunk()?);
        let (offset, address) = (u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        Some(Header { kind, offset, address, size: u64_at(bytes, 32)? })
    }
}

/// The library that the dynamic linker loads first for the program; the inner `None` if it needs none,
/// the outer `None` if unknown.
fn first_needed(file: &File, headers: &[Header]) -> Option<Option<Vec<u8>>> {
    let dynamic = headers.iter().find(|one| one.kind == PT_DYNAMIC)?;
    let size = usize::try_from(dynamic.size).ok()?.min(ENTRIES_MAX * 16);
    let bytes = read(file, dynamic.offset, size)?;
    let (mut needed, mut strings, mut is_whole) = (None, None, false);
    for entry in bytes.chunks_exact(16) {
        match (u64_at(entry, 0)?, u64_at(entry, 8)?) {
            (0, _) => {
                is_whole = true;
                break;
            }
            (1, at) => needed = needed.or(Some(at)),
            (5, at) => strings = Some(at),
            _ => {}
        }
    }
    let Some(needed) = needed else { return is_whole.then_some(None) };
    let strings = strings?;
    let holds = |one: &&Header| one.kind == PT_LOAD && strings.wrapping_sub(one.address) < one.size;
    let load = headers.iter().find(holds)?;
    let at = (strings - load.address).checked_add(load.offset)?.checked_add(needed)?;
    let name = read(file, at, 64)?;
    Some(Some(name.split(|byte| *byte == 0).next()?.to_vec()))
}

/// At most `size` bytes of a file from `offset` on.
fn read(file: &File, offset: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    let got = file.read_at(&mut bytes, offset).ok()?;
    bytes.truncate(got);
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_this_system_can_take_the_library() {
        assert_eq!(reason(OsStr::new("sh"), OsStr::new("")), None);
        let own = std::env::current_exe().expect("a path");
        assert_eq!(reason_of_file(&own), None);
        assert_eq!(reason(OsStr::new("no such program"), OsStr::new("")), None);
        assert_eq!(reason_of_file(Path::new("/dev/null")), None);
    }

    /// A 64-bit ELF file with these program headers, each with its content.
    fn elf(machine: u16, parts: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(parts.len() as u16).to_le_bytes());
        let mut at = 64 + 56 * parts.len() as u64;
        for (kind, part) in parts {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            for field in [8, 16] {
                header[field..field + 8].copy_from_slice(&at.to_le_bytes());
            }
            header[32..40].copy_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&header);
            at += part.len() as u64;
        }
        parts.iter().for_each(|(_, part)| bytes.extend_from_slice(part));
        bytes
    }

    fn judged(bytes: &[u8]) -> Option<Reason> {
        let folder = std::env::temp_dir().join(format!("lateralis-elf-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("program");
        fs::write(&path, bytes).expect("a file");
        let reason = reason_of_file(&path);
        fs::remove_dir_all(&folder).expect("removed");
        reason
    }

    #[test]
    fn what_cannot_take_the_library_is_told_apart_before_it_starts() {
        let own: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        let glibc: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
        let musl: &[u8] = b"/lib/ld-musl-x86_64.so.1\0";
        // The strings follow the dynamic section, in the loaded segment.
        let needing = |library: &[u8]| {
            let parts = 3_u64;
            let strings = 64 + 56 * parts + glibc.len() as u64 + 48;
            let entries = [(1_u64, 1_u64), (5, strings), (0, 0)];
            let words = entries.iter().flat_map(|(tag, value)| [*tag, *value]);
            let dynamic: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let text = [b"\0", library, b"\0"].concat();
            elf(own, &[(PT_INTERP, glibc), (PT_DYNAMIC, &dynamic), (PT_LOAD, &text)])
        };
        assert_eq!(judged(&needing(b"libc.so.6")), None);
        assert_eq!(judged(&needing(b"libasan.so.8")), Some(Reason::Sanitizer));
        assert_eq!(judged(&needing(b"libclang_rt.asan-x86_64.so")), Some(Reason::Sanitizer));
        let nothing = elf(own, &[(PT_INTERP, glibc), (PT_DYNAMIC, &[0; 16])]);
        assert_eq!(judged(&nothing), Some(Reason::OtherLibrary));
        assert_eq!(judged(&elf(own, &[(PT_LOAD, b"")])), Some(Reason::Static));
        assert_eq!(judged(&elf(own, &[(PT_INTERP, musl)])), Some(Reason::OtherLibrary));
        assert_eq!(judged(&elf(own + 1, &[])), Some(Reason::OtherMachine));
        assert_eq!(judged(b"\x7fELF\x01\x01\x01"), Some(Reason::OtherMachine));
        assert_eq!(judged(b"#!/no/such/interpreter\n"), None);
        // Truncated anywhere, it may be unknown, but must have no other effect.
        let whole = needing(b"libc.so.6");
        for length in 0..whole.len() {
            let _ = judged(&whole[..length]);
        }
    }

    #[test]
    fn programs_are_named_once_with_their_number() {
        let mut list = Unrecorded::default();
        for name in ["/usr/bin/git", "/bin/git", "/bin/a\x1b[2J"] {
            list.add(Reason::Static, OsStr::new(name), 1, Some(7));
        }
        list.add(Reason::NeverBegun, OsStr::new("m"), 1, Some(8));
        let (programs, _) = list.end();
        let found: Vec<_> =
            programs.iter().map(|one| (one.program.as_str(), one.count, one.pid)).collect();
        assert_eq!(found, [("a?[2J", 1, Some(7)), ("git", 2, None), ("m", 1, Some(8))]);
        assert!(programs[1].detail.starts_with("statically linked"), "{}", programs[1].detail);
        assert_eq!(programs[2].reason, NotRecordedReason::NeverRegistered);
    }
}
