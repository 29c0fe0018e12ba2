// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shows whether a session still has its recorder: a file locked by the recorder [ring-abi §8].
//!
//! The kernel releases the lock when the recorder ends for any reason. Programs that inherit a request
//! check it before they create an area: the request of an ended session has no effect.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

/// Maximum number of bytes read from a lock file.
const TEXT_BYTES_MAX: u64 = 64;

/// Device and inode of a file.
type FileId = (u64, u64);

/// Files of the locks held by this process. They are never opened a second time: closing them would
/// release the lock of `fcntl`, which belongs to the process [fcntl(2)].
static OWN: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<FileId>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_own(path: &Path) -> bool {
    let file = fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    file.is_ok_and(|id| own().contains(&id))
}

/// A held lock: of `flock`, which shows that the session has its recorder, and of `fcntl`, for
/// which the kernel reports the holder by its pid in the PID namespace of the caller.
#[derive(Debug)]
pub(super) struct SessionLock {
    path: PathBuf,
    id: FileId,
    _file: File,
}

fn name(session: u64) -> String {
    format!("session-{session:016x}.lock")
}

/// Path of the lock of a session.
pub(super) fn lock_path(area_dir: &Path, session: u64) -> PathBuf {
    area_dir.join(name(session))
}

/// Whether a file in the directory of areas is such a lock.
pub(super) fn is_lock_name(name: &str) -> bool {
    name.strip_prefix("session-")
        .and_then(|rest| rest.strip_suffix(".lock"))
        .is_some_and(|number| number.len() == 16 && u64::from_str_radix(number, 16).is_ok())
}

impl SessionLock {
    /// Takes the lock of a session. Errors: another recorder holds it, or the file cannot be created.
    pub(super) fn take(area_dir: &Path, session: u64) -> io::Result<SessionLock> {
        let path = lock_path(area_dir, session);
        if is_held(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let hidden = area_dir.join(format!(".{}-{}", std::process::id(), name(session)));
        let _ = fs::remove_file(&hidden);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
        // Locked before it is visible: without the lock it would mean that the session has ended.
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // On a file system without such locks, programs read /proc.
        let _ = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
        writeln!(file, "{}", std::process::id())?;
        let metadata = file.metadata()?;
        let id = (metadata.dev(), metadata.ino());
        own().insert(id);
        let lock = SessionLock { path, id, _file: file };
        fs::rename(&hidden, &lock.path)?;
        Ok(lock)
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        own().remove(&self.id);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether another process or this one holds a lock on this file.
pub(super) fn is_held(path: &Path) -> bool {
    if is_own(path) {
        return true;
    }
    let Ok(file) = open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Process ids of the recorders that hold a lock in a directory of areas.
pub(super) fn recording_pids(area_dir: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(area_dir).into_iter().flatten().flatten();
    let held = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_lock_name))
        .map(|entry| entry.path())
        .filter(|path| is_held(path));
    let number = |path: PathBuf| {
        if is_own(&path) {
            return Some(std::process::id());
        }
        let mut text = String::new();
        open(&path).ok()?.take(TEXT_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    };
    held.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_held_as_long_as_its_recorder_has_it() {
        let dir = std::env::temp_dir().join(format!("lateralis-session-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let lock = SessionLock::take(&dir, 0x1f).unwrap();
        let path = dir.join("session-000000000000001f.lock");
        assert!(is_held(&path) && SessionLock::take(&dir, 0x1f).is_err());
        assert!(recording_pids(&dir).contains(&std::process::id()));
        drop(lock);
        assert!(!path.exists());
        // The file of a killed recorder has no effect, and can be reused.
        fs::write(&path, "12\n").unwrap();
        assert!(!is_held(&path) && recording_pids(&dir).is_empty());
        drop(SessionLock::take(&dir, 0x1f).unwrap());
        assert!(!path.exists());
        assert!(is_lock_name("session-000000000000001f.lock"));
        assert!(!is_lock_name("session-1f.lock") && !is_lock_name("recorder-1.sock"));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_lock_by_which_programs_know_its_process_stays_however_often_it_is_looked_at() {
        let dir = std::env::temp_dir().join(format!("lateralis-process-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let lock = SessionLock::take(&dir, 0x2f).unwrap();
        let inode = fs::metadata(lock_path(&dir, 0x2f)).unwrap().ino();
        // POSIX  ADVISORY  WRITE 4711 00:1b:12 0 EOF
        let is_locked = || {
            let pid = std::process::id().to_string();
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| {
                let mut words = line.split_whitespace().skip(1);
                let is_it = words.next() == Some("POSIX") && words.nth(2) == Some(&*pid);
                is_it && words.next().is_some_and(|file| file.ends_with(&format!(":{inode}")))
            })
        };
        assert!(is_locked());
        assert!(is_held(&lock.path) && SessionLock::take(&dir, 0x2f).is_err());
        assert_eq!(recording_pids(&dir), BTreeSet::from([std::process::id()]));
        assert!(is_locked(), "to close the file a second time drops the lock");
        drop(lock);
        assert!(!is_locked());
        fs::remove_dir_all(&dir).unwrap();
    }
}
