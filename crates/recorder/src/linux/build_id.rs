// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The build id of a program: the note `GNU`/3 in its program headers [gABI, "Note Section"].

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

use super::clocks;

const TYPE_NOTE: u32 = 4;
const NOTE_BUILD_ID: u32 = 3;
/// Maximum bytes of notes read; a build id is 36.
const NOTES_BYTES_MAX: u64 = 64 << 10;
/// First read: nearly every program has its headers and notes in it.
const BEGINNING_BYTES: usize = 2048;

/// Number of programs whose build ids are cached, for scripts that start the same ones repeatedly.
const READ_MAX: usize = 16;
const SETTLED_S: i64 = 3;
/// Most recent first.
static READ: Mutex<VecDeque<(Version, Option<String>)>> = Mutex::new(VecDeque::new());

struct Elf {
    wide: bool,
    swapped: bool,
}

impl Elf {
    fn number(&self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let mut word = [0; 8];
        let source = bytes.get(at..at.checked_add(width)?)?;
        word[..width].copy_from_slice(source);
        if self.swapped {
            word[..width].reverse();
        }
        // In this machine's byte order now; the unused bytes are zero.
        if cfg!(target_endian = "big") {
            word.rotate_right(8 - width);
        }
        Some(u64::from_ne_bytes(word))
    }
}

/// Reads the build id of a program as hexadecimal text; `None` if it has none or is not an ELF file.
///
/// The path may come from an area and name anything: it is opened only if it is a regular executable
/// file. Opening a device or a file of the kernel could have side effects, and opening a
/// pipe would block.
pub(super) fn of_file(path: &Path) -> Option<String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = place.metadata().ok()?;
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        return None;
    }
    let version = Version::of(&metadata);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, build_id)) = read.iter().find(|(known, _)| *known == version) {
        return build_id.clone();
    }
    let build_id = of_open(&File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()?);
    if version.is_settled(clocks::utc_ns()) {
        read.truncate(READ_MAX - 1);
        read.push_front((version, build_id.clone()));
    }
    build_id
}

/// Version of the content of a file whose build id was read. Each write to the file
/// changes the time, and no system call sets it [inode(7), "ctime"].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Version {
    fn of(metadata: &fs::Metadata) -> Version {
        Version {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        }
    }

    /// Whether a later change will have another time: file systems have a resolution of up to 2 s (FAT), and
    /// if the clock was set back, times are in the future.
    fn is_settled(&self, now_ns: i64) -> bool {
        self.changed_s.saturating_add(SETTLED_S) < now_ns / 1_000_000_000
    }
}

/// The build id as bytes, of a file that a process has mapped, which need not be executable, if the path
/// still names the file of this inode. A file on overlayfs has another inode than its mapping: it
/// is accepted if it was not changed since a time before it was mapped, in seconds of UTC.
pub(super) fn of_mapped(path: &Path, inode: u64, since_s: i64) -> Option<Vec<u8>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = place.metadata().ok()?;
    let is_same = metadata.ino() == inode || metadata.ctime() < since_s;
    if !metadata.is_file() || !is_same {
        return None;
    }
    bytes(&of_open(&File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()?)?)
}

/// The build id in notes in memory, in the byte order of this machine: those of the kernel are
/// `/sys/kernel/notes`.
pub(super) fn of_notes(notes: &[u8]) -> Option<Vec<u8>> {
    let native = Elf { wide: size_of::<usize>() == 8, swapped: false };
    bytes(&in_notes(&native, notes)?)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok()).collect()
}

/// A file whose beginning has been read already. A recording of short-lived programs reads one
/// of each: a dozen small reads were half of the system calls for such a program.
struct Beginning<'file> {
    file: &'file File,
    bytes: [u8; BEGINNING_BYTES],
    length: usize,
}

impl Beginning<'_> {
    fn of(file: &File) -> io::Result<Beginning<'_>> {
        let mut bytes = [0; BEGINNING_BYTES];
        let length = loop {
            match file.read_at(&mut bytes, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        Ok(Beginning { file, bytes, length })
    }

    fn read_exact_at(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        let known = usize::try_from(offset)
            .ok()
            .and_then(|from| self.bytes[..self.length].get(from..from.checked_add(to.len())?));
        match known {
            Some(bytes) => to.copy_from_slice(bytes),
            None => self.file.read_exact_at(to, offset)?,
        }
        Ok(())
    }
}

/// The build id of an open file.
pub(super) fn of_open(file: &File) -> Option<String> {
    let file = Beginning::of(file).ok()?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..4] != *b"\x7fELF" {
        return None;
    }
    let elf =
        Elf { wide: header[4] == 2, swapped: (header[5] == 2) != cfg!(target_endian = "big") };
    let (table_at, size_at, count_at) = if elf.wide { (32, 54, 56) } else { (28, 42, 44) };
    let table = elf.number(&header, table_at, if elf.wide { 8 } else { 4 })?;
    let entry_bytes = elf.number(&header, size_at, 2)?;
    let count = elf.number(&header, count_at, 2)?;
    for index in 0..count {
        let mut entry = [0; 56];
        let used = if elf.wide { 56 } else { 32 };
        if entry_bytes < used as u64 {
            return None;
        }
        let at = table.checked_add(index * entry_bytes)?;
        file.read_exact_at(&mut entry[..used], at).ok()?;
        if elf.number(&entry, 0, 4)? != u64::from(TYPE_NOTE) {
            continue;
        }
        let (offset, bytes) = if elf.wide {
            (elf.number(&entry, 8, 8)?, elf.number(&entry, 32, 8)?)
        } else {
            (elf.number(&entry, 4, 4)?, elf.number(&entry, 16, 4)?)
        };
        let mut notes = vec![0; bytes.min(NOTES_BYTES_MAX) as usize];
        file.read_exact_at(&mut notes, offset).ok()?;
        if let Some(id) = in_notes(&elf, &notes) {
            return Some(id);
        }
    }
    None
}

fn in_notes(elf: &Elf, notes: &[u8]) -> Option<String> {
    let mut at = 0usize;
    while at + 12 <= notes.len() {
        let name_bytes = elf.number(notes, at, 4)? as usize;
        let value_bytes = elf.number(notes, at + 4, 4)? as usize;
        let kind = elf.number(notes, at + 8, 4)?;
        let name_at = at + 12;
        let value_at = name_at.checked_add(name_bytes.checked_next_multiple_of(4)?)?;
        let value = notes.get(value_at..value_at.checked_add(value_bytes)?)?;
        let name = notes.get(name_at..name_at.checked_add(name_bytes)?)?;
        if kind == u64::from(NOTE_BUILD_ID) && name == b"GNU\0" && value.len() <= 64 {
            return Some(value.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        at = value_at.checked_add(value_bytes.checked_next_multiple_of(4)?)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_note_among_others_and_survives_any_lengths() {
        let elf = Elf { wide: true, swapped: false };
        let word = |value: u32| value.to_ne_bytes();
        let mut notes = Vec::new();
        for (name, value, kind) in
            [(&b"GNU\0"[..], &[1, 2, 3, 4][..], 1u32), (b"GNU\0", &[0xab, 0xcd], 3)]
        {
            notes.extend(word(name.len() as u32));
            notes.extend(word(value.len() as u32));
            notes.extend(word(kind));
            notes.extend(name);
            notes.extend(value);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(in_notes(&elf, &notes).as_deref(), Some("abcd"));
        for at in 0..notes.len() {
            let mut broken = notes.clone();
            broken[at] = 0xff;
            in_notes(&elf, &broken);
            in_notes(&elf, &notes[..at]);
        }
    }

    /// The smallest file that has one.
    fn elf_with_build_id(build_id: [u8; 2]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(32, &64u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(64, &TYPE_NOTE.to_le_bytes());
        put(64 + 8, &120u64.to_le_bytes());
        put(64 + 32, &20u64.to_le_bytes());
        for word in [4, 2, NOTE_BUILD_ID] {
            file.extend(word.to_le_bytes());
        }
        file.extend(b"GNU\0");
        file.extend(build_id);
        file.extend([0; 2]);
        file
    }

    #[test]
    fn a_program_that_was_replaced_has_another_build_id_and_the_same_is_read_once() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("lateralis-build-id-{}", std::process::id()));
        let write = |build_id| {
            fs::write(&path, elf_with_build_id(build_id)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        };
        let is_known = || {
            let version = Version::of(&fs::metadata(&path).unwrap());
            READ.lock().unwrap().iter().any(|(known, _)| *known == version)
        };
        write([0x12, 0x34]);
        assert_eq!(of_file(&path).as_deref(), Some("1234"));
        assert!(!is_known(), "it may change again at the same time");
        write([0xab, 0xcd]);
        assert_eq!(of_file(&path).as_deref(), Some("abcd"));
        std::thread::sleep(std::time::Duration::from_secs(SETTLED_S as u64 + 1));
        assert_eq!(of_file(&path).as_deref(), Some("abcd"));
        assert!(is_known());
        assert_eq!(of_file(&path).as_deref(), Some("abcd"));
        write([0x56, 0x78]);
        assert_eq!(of_file(&path).as_deref(), Some("5678"));
        fs::remove_file(&path).unwrap();
    }
}
