// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Removes leftovers of programs and recorders that have ended: areas, sockets, locks, folders.
//!
//! Nothing in use is removed: an area is in use if the kernel lists users of its file
//! ([`AreaFile::users`]), a lock if it is held, a socket if it has a receiver. Only items of this user are
//! examined.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use lateralis_ring::RingMode;

use super::area_file::{AreaFile, Users};
use super::dirs::{area_dir, area_files};
use super::processes;
use super::session_lock::{is_held, is_lock_name, lock_path};

/// Maximum number of directory entries examined.
const ENTRIES_MAX: usize = 65536;
/// Folders of temporary files whose names end with the process id of their creator.
const OF_PROCESSES: [&str; 2] = ["lat-follow-", "lat-dumps-"];
/// Folders of temporary files whose names do not identify their creator.
const OF_SOMEBODY: [&str; 1] = ["lateralis-unpacked-"];

/// Kind of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// The area of a program that has ended.
    Area,
    /// The socket of a recorder that has ended.
    Socket,
    /// The lock or request of a recorder that has ended.
    Lock,
    /// A folder of temporary files.
    Folder,
}

/// A leftover.
#[derive(Debug)]
pub struct Leftover {
    /// Its kind.
    pub kind: LeftoverKind,
    /// Its path.
    pub path: PathBuf,
    /// Bytes it occupies.
    pub bytes: u64,
    /// Why it could not be removed.
    pub error: Option<std::io::Error>,
}

/// Lists all leftovers in the directory of areas and among temporary files; with `remove` they are
/// removed.
pub fn clean(dir: Option<&Path>, remove: bool) -> Vec<Leftover> {
    let mut found = in_area_dir(&area_dir(dir));
    found.extend(temporary_folders(&std::env::temp_dir()));
    if remove {
        for one in &mut found {
            let removed = match one.kind {
                LeftoverKind::Folder => fs::remove_dir_all(&one.path),
                _ => fs::remove_file(&one.path),
            };
            one.error = removed.err();
        }
    }
    found
}

/// Removes unused areas without content: of programs that ended while they were not
/// recorded. A program does not remove it itself, as it makes no system calls at its end. Also removes areas
/// that a killed recorder had prepared.
pub(super) fn sweep(dir: &Path) {
    super::prepared::sweep(dir);
    for path in area_files(dir) {
        let Ok(area) = super::discovery::open(&path) else { continue };
        let header = &area.header;
        let is_recorder_left = header.session != 0 || header.recorder_pid != 0;
        let is_flight = RingMode::from_word(header.ring_mode) == RingMode::Overwrite;
        let holds_records = header.rings_ready != 0 && is_flight;
        if !is_recorder_left && !holds_records && area.file.users() == Users::Nobody {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_own(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn entries(dir: &Path) -> impl Iterator<Item = (String, PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(ENTRIES_MAX);
    entries.filter_map(|entry| {
        let metadata = fs::symlink_metadata(entry.path()).ok().filter(is_own)?;
        Some((entry.file_name().to_str()?.to_owned(), entry.path(), metadata))
    })
}

fn in_area_dir(dir: &Path) -> Vec<Leftover> {
    let leftover = |(name, path, metadata): (String, PathBuf, fs::Metadata)| {
        let kind = if metadata.is_file() && name.ends_with(".area") {
            // Hidden ones as well, of programs killed while they created their area.
            let area = AreaFile::open(&path).ok()?;
            (area.users() == Users::Nobody).then_some(LeftoverKind::Area)?
        } else if metadata.file_type().is_socket() {
            let answers = UnixDatagram::unbound().ok()?.connect(&path).is_ok();
            (!answers).then_some(LeftoverKind::Socket)?
        } else if metadata.is_file() && (is_lock_name(&name) || name == "record.request") {
            (!is_held(&path)).then_some(LeftoverKind::Lock)?
        } else if let Some(session) =
            super::prepared::session_of(&name).filter(|_| metadata.is_dir())
        {
            (!is_held(&lock_path(dir, session))).then_some(LeftoverKind::Folder)?
        } else if let Some(session) =
            name.strip_prefix("unrecorded-").filter(|_| metadata.is_file())
        {
            // The list of programs that were not recorded in a session.
            let session = u64::from_str_radix(session, 16).ok()?;
            (!is_held(&lock_path(dir, session))).then_some(LeftoverKind::Lock)?
        } else {
            return None;
        };
        let below = if metadata.is_dir() { bytes_below(&path, 1) } else { 0 };
        Some(Leftover { kind, path, bytes: metadata.blocks() * 512 + below, error: None })
    };
    let mut found: Vec<Leftover> = entries(dir).filter_map(leftover).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Whether another process of this program is running, to which a folder may belong.
fn is_another_running() -> bool {
    let own = std::process::id();
    let name = processes::program_name(own);
    let mut others = processes::numbers("/proc").into_iter().filter(|pid| *pid != own);
    others.any(|pid| processes::program_name(pid) == name)
}

fn temporary_folders(dir: &Path) -> Vec<Leftover> {
    let mut found = Vec::new();
    for (name, path, metadata) in entries(dir).filter(|(_, _, metadata)| metadata.is_dir()) {
        let of_process = OF_PROCESSES.iter().find_map(|prefix| name.strip_prefix(prefix));
        let is_left = match of_process.map(str::parse) {
            Some(Ok(pid)) => !processes::exists(pid),
            Some(Err(_)) => false,
            None => {
                OF_SOMEBODY.iter().any(|prefix| name.starts_with(prefix)) && !is_another_running()
            }
        };
        if is_left {
            let bytes = metadata.blocks() * 512 + bytes_below(&path, 64);
            found.push(Leftover { kind: LeftoverKind::Folder, path, bytes, error: None });
        }
    }
    found
}

/// Total size of the files below a folder; links are not followed.
fn bytes_below(dir: &Path, depth: u32) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(ENTRIES_MAX);
    entries.fold(0, |sum: u64, entry| {
        let Ok(metadata) = fs::symlink_metadata(entry.path()) else { return sum };
        let below = match metadata.is_dir() && depth > 0 {
            true => bytes_below(&entry.path(), depth - 1),
            false => 0,
        };
        sum.saturating_add(metadata.blocks() * 512).saturating_add(below)
    })
}

#[cfg(test)]
mod tests {
    use super::super::session_lock::SessionLock;
    use super::*;

    #[test]
    fn what_is_in_use_stays() {
        let dir = std::env::temp_dir().join(format!("lateralis-clean-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let lock = SessionLock::take(&dir, 1).unwrap();
        fs::write(dir.join("session-0000000000000002.lock"), "1\n").unwrap();
        fs::write(dir.join("record.request"), "old").unwrap();
        drop(UnixDatagram::bind(dir.join("recorder-1.sock")).unwrap());
        let socket = UnixDatagram::bind(dir.join("recorder-2.sock")).unwrap();
        for name in ["1-1.area", "2-2.area", ".3-3.area", "other.txt"] {
            fs::write(dir.join(name), vec![1; 8192]).unwrap();
        }
        let used = fs::File::open(dir.join("2-2.area")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("4-4.area")).unwrap();
        let found = in_area_dir(&dir);
        let names: Vec<_> = found.iter().map(|one| one.path.file_name().unwrap()).collect();
        let expected = [
            ".3-3.area",
            "1-1.area",
            "record.request",
            "recorder-1.sock",
            "session-0000000000000002.lock",
        ];
        assert_eq!(names, expected);
        assert!(found[1].bytes >= 8192);
        assert_eq!(
            clean(Some(&dir), true).iter().filter(|one| one.path.starts_with(&dir)).count(),
            5
        );
        let left: Vec<Leftover> = in_area_dir(&dir);
        assert!(left.is_empty(), "{left:?}");
        assert!(dir.join("2-2.area").exists() && dir.join("recorder-2.sock").exists());
        drop((lock, used, socket));
        fs::remove_dir_all(&dir).unwrap();
    }
}
