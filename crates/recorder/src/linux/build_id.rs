// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The build id of a program: the note `GNU`/3 in its program headers [gABI, "Note Section"].

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

const TYPE_NOTE: u32 = 4;
const NOTE_BUILD_ID: u32 = 3;
/// Bytes of notes looked at; a build id is 36.
const NOTES_BYTES_MAX: u64 = 64 << 10;
/// Read at once: in nearly every program it has the headers and the notes.
const BEGINNING_BYTES: usize = 2048;

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
        // In memory order of this machine now; the unused bytes are zero.
        if cfg!(target_endian = "big") {
            word.rotate_right(8 - width);
        }
        Some(u64::from_ne_bytes(word))
    }
}

/// Reads the build id of a program as hexadecimal text; `None` if it has none or is no ELF file.
///
/// The path may come from an area and name anything: it is opened only if it is a regular file that
/// can be executed. Opening a device or a file of the kernel would have effects of its own, and a
/// pipe would never be opened.
pub(super) fn of_file(path: &Path) -> Option<String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = place.metadata().ok()?;
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        return None;
    }
    of_open(&File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()?)
}

/// The same, as bytes, of a file that a process has mapped, which need not be executable, if the path
/// still names the file of this number. A file of layers has another number than what is mapped of it: it
/// is the same if nothing was done to it since a time before it was mapped, in seconds of UTC.
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

/// The same of notes as they lie in memory, in the byte order of this machine: those of the kernel are
/// `/sys/kernel/notes`.
pub(super) fn of_notes(notes: &[u8]) -> Option<Vec<u8>> {
    let native = Elf { wide: size_of::<usize>() == 8, swapped: false };
    bytes(&in_notes(&native, notes)?)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok()).collect()
}

/// A file of which the beginning was read already. A recording of programs that live for a moment reads one
/// of each: a dozen small reads were half of the system calls that it makes for such a program.
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

/// The same of a file that is open.
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
}
