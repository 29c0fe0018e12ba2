// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The session's table of started programs that may not be recorded [ring-abi §8]: programs write it
//! through their mappings (`tracer/preload/starts.c`), the recorder creates it and reads it at the end.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Size of a slot: state and value, 4 bytes each, and a zero-terminated name.
const SLOT_BYTES: usize = 128;
/// Number of slots; the first contains the number of programs that found none.
const SLOT_COUNT: usize = 1024;

const STARTS: u32 = 2;
const BEGUN: u32 = 3;
/// The reason is in bits 8 to 15.
const COUNTED: u32 = 4;

/// The file of a session.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
}

/// Content of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// Letter of the reason, name, number of programs.
    pub(super) counted: Vec<(u8, Vec<u8>, u64)>,
    /// Programs that were started but did not start recording: name, process in its namespace.
    pub(super) never_begun: Vec<(Vec<u8>, u32)>,
    /// Number of programs that found no slot.
    pub(super) without_slot: u64,
}

impl Table {
    /// Creates the file of a session, with allocated zeros: on a full file system, a program
    /// that writes to a hole of a mapping would be killed. Cost: 128 KiB of shared memory.
    pub(super) fn make(area_dir: &Path, session: u64) -> io::Result<Table> {
        let path = area_dir.join(format!("unrecorded-{session:x}"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&path)?;
        let table = Table { path };
        file.write_all(&[0; SLOT_BYTES * SLOT_COUNT])?;
        Ok(table)
    }

    /// Reads its current content; empty if the file cannot be read.
    pub(super) fn read(&self) -> Entries {
        let mut bytes = Vec::new();
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&self.path);
        let most = (SLOT_BYTES * SLOT_COUNT) as u64;
        let _ = file.map(|file: File| file.take(most).read_to_end(&mut bytes));
        Entries::of(&bytes)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Entries {
    /// Decodes the bytes of a table. Programs write them: any bytes are possible.
    fn of(bytes: &[u8]) -> Entries {
        let mut entries = Entries::default();
        // A start and a begin of one process cancel out, in whatever slots they are.
        let mut begun: BTreeMap<u32, u64> = BTreeMap::new();
        for (at, slot) in bytes.chunks_exact(SLOT_BYTES).enumerate() {
            let (Some((state, rest)), [_, reason, ..]) = (word(slot), slot) else { continue };
            let Some((value, name)) = word(rest) else { continue };
            let name = name.split(|byte| *byte == 0).next().unwrap_or(&[]).to_vec();
            match state {
                _ if at == 0 => entries.without_slot = value.into(),
                STARTS => entries.never_begun.push((name, value)),
                BEGUN => *begun.entry(value).or_default() += 1,
                _ if state & 0xff == COUNTED => {
                    entries.counted.push((*reason, name, value.into()));
                }
                _ => {}
            }
        }
        entries.never_begun.retain(|(_, process)| match begun.get_mut(process) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        entries
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(state: u32, value: u32, name: &str) -> Vec<u8> {
        let mut bytes = [state.to_ne_bytes(), value.to_ne_bytes()].concat();
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(SLOT_BYTES, 0);
        bytes
    }

    #[test]
    fn a_start_without_its_beginning_is_a_program_that_was_not_recorded() {
        let letter = u32::from(b's') << 8;
        let table = [
            slot(0, 3, ""),
            slot(STARTS, 10, "one"),
            slot(COUNTED | letter, 2, "git"),
            slot(STARTS, 11, "two"),
            slot(BEGUN, 10, ""),
            slot(BEGUN, 12, ""),
            slot(1, 13, "claimed"),
            slot(0, 14, "free"),
        ];
        let expected = Entries {
            counted: vec![(b's', b"git".to_vec(), 2)],
            never_begun: vec![(b"two".to_vec(), 11)],
            without_slot: 3,
        };
        assert_eq!(Entries::of(&table.concat()), expected);
        assert_eq!(Entries::of(&[]), Entries::default());
        let _ = Entries::of(&[0xff; SLOT_BYTES * 3 + 1]);
    }
}
