// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The directory itself: creation, locking while it is written, replacement of its texts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use lateralis_files::{create_folder, owner_elsewhere};
use rustix::fs::{FlockOperation, flock};

use super::Output;
use crate::error::Error;

pub(in super::super) fn replace(path: &Path, text: &[u8]) -> Result<(), Error> {
    lateralis_files::write_file(path, text, lateralis_files::SHARED)
        .map_err(|cause| Error::file("write", path, cause))
}

/// Whether a recorder is writing to a recording, or this is unknown because files cannot
/// be locked. A killed recorder leaves no lock.
#[must_use]
pub fn is_being_written(root: &Path) -> bool {
    let Ok(directory) = File::open(root) else { return false };
    flock(&directory, FlockOperation::NonBlockingLockShared).is_err()
}

/// Whether a recorder is certainly writing to a directory: it takes the lock before it writes anything, so
/// this also detects one that has not written anything yet.
#[must_use]
pub fn is_locked(root: &Path) -> bool {
    let directory = File::open(root).ok().filter(|it| it.metadata().is_ok_and(|it| it.is_dir()));
    let Some(directory) = directory else { return false };
    let lock = flock(&directory, FlockOperation::NonBlockingLockShared);
    matches!(lock, Err(rustix::io::Errno::WOULDBLOCK))
}

/// Absolute path of a directory, and the writer's lock, if it is free. The working
/// directory may change; the recording stays at its path.
fn lock(root: &Path) -> Result<(PathBuf, Option<File>), Error> {
    let root =
        fs::canonicalize(root).map_err(|cause| Error::file("open directory", root, cause))?;
    let lock = File::open(&root).ok();
    let lock = lock.filter(|lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok());
    Ok((root, lock))
}

/// Rejects a directory that another user created under a predictable name before this user did. Its
/// owner could read and replace its content.
pub(in super::super) fn refuse_of_another(root: &Path) -> Result<(), Error> {
    match owner_elsewhere(root) {
        Some(owner) => Err(Error::OutputOfAnother { path: root.to_owned(), owner }),
        None => Ok(()),
    }
}

impl Output {
    /// Creates the directory, readable only by its owner. It must not exist, or be empty.
    pub(in super::super) fn create(root: &Path, bytes_max: Option<u64>) -> Result<Output, Error> {
        Output::create_with(root, bytes_max, &root.join("ctf").join("index"))
    }

    /// Creates a directory for recordings, with a report and no trace of its own.
    pub(in super::super) fn create_folder(root: &Path) -> Result<Output, Error> {
        let mut output = Output::create_with(root, None, root)?;
        output.is_folder = true;
        Ok(output)
    }

    fn create_with(root: &Path, bytes_max: Option<u64>, innermost: &Path) -> Result<Output, Error> {
        match fs::read_dir(root) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Error::OutputExists(root.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(Error::OutputExists(root.to_owned()));
            }
            Err(error) => return Err(Error::file("open directory", root, error)),
        }
        let make = |path: &Path| {
            create_folder(path).map_err(|cause| Error::file("make directory", root, cause))
        };
        make(root)?;
        // A process that sees content also sees the lock.
        let (locked, lock) = lock(root)?;
        refuse_of_another(&locked)?;
        make(innermost)?;
        let root = locked;
        let mut output = Output::empty(root, bytes_max);
        output._lock = lock;
        Ok(output)
    }

    /// Continues with a directory whose writer has ended.
    ///
    /// Errors: it does not exist, or is being written.
    pub(in super::super) fn reopen(root: &Path, bytes_max: Option<u64>) -> Result<Output, Error> {
        refuse_of_another(root)?;
        create_folder(&root.join("ctf").join("index"))
            .map_err(|cause| Error::file("make directory", root, cause))?;
        let (root, lock) = lock(root)?;
        if lock.is_none() {
            return Err(Error::OutputExists(root));
        }
        let mut output = Output::empty(root, bytes_max);
        output._lock = lock;
        Ok(output)
    }
}
