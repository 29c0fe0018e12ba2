// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders that last as long as the process needs them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::{TRIES, ending, random_name, split};

/// Between a folder is made and locked it looks left over: so old it must be.
const LEFT_OVER: Duration = Duration::from_secs(60);
/// Names in the folder of temporary files that are looked at: others may put any number there.
const LOOKED_AT_MAX: usize = 20_000;
/// Left-over folders that are removed at a time.
const REMOVED_MAX: usize = 16;

/// A folder below `$TMPDIR` that only this user may read, gone when it is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// Locked as long as the process lives: a folder without that lock is left over.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// `prefix` names the purpose. Folders left by killed processes of this user under the same
    /// prefix are removed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(prefix: &str) -> io::Result<Self> {
        let root = std::env::temp_dir();
        sweep(&root, prefix);
        let path = create_random(|random| {
            let random = random.to_string_lossy();
            root.join(format!("{prefix}{}", random.trim_start_matches('.')))
        })?;
        Ok(Self { _lock: lock(&path), path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        ending::forget(&self.path);
    }
}

/// A folder that appears under its name when it is whole. Gone if it is dropped unpublished.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    name: PathBuf,
}

impl NewFolder {
    /// One that will be at `path`, and that only this user may read.
    ///
    /// # Errors
    /// The folder above is not there, or nothing can be made in it.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let (above, name) = split(path)?;
        let path_now = create_random(|random| {
            let mut hidden = std::ffi::OsString::from(".");
            if name.len() <= 200 {
                hidden.push(name);
            }
            hidden.push(random);
            above.join(hidden)
        })?;
        Ok(Self { path: path_now, name: path.to_owned() })
    }

    /// Where it is until it is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, which an empty folder may have.
    ///
    /// # Errors
    /// Those of the file system: something has that name.
    pub fn publish(self) -> io::Result<()> {
        fs::rename(&self.path, &self.name)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // One that was published has this name no more.
        let _ = fs::remove_dir_all(&self.path);
        ending::forget(&self.path);
    }
}

fn create_random(path: impl Fn(&OsStr) -> PathBuf) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        let path = path(&random_name(OsStr::new(""))?);
        ending::register(&path);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => {
                ending::forget(&path);
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The lock of a folder, unless another process has it.
fn lock(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Removes what processes left that were killed.
fn sweep(root: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(root) else { return };
    let mut removed = 0;
    for entry in entries.flatten().take(LOOKED_AT_MAX) {
        if removed == REMOVED_MAX {
            return;
        }
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let is_left_over = entry.metadata().is_ok_and(|about| {
            let is_own = about.uid() == rustix::process::geteuid().as_raw();
            let age = about.modified().ok().and_then(|time| time.elapsed().ok());
            about.is_dir() && is_own && age.is_some_and(|age| age > LEFT_OVER)
        });
        if is_left_over && let Some(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
            removed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn temporary_folders_are_private_and_gone_afterwards() {
        let folder = TemporaryFolder::new("lat-test-").unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("x"), "1").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(lock(&path).is_none(), "it is in use");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_used_stays() {
        let prefix = format!("lat-test-sweep-{}-", std::process::id());
        let used = TemporaryFolder::new(&prefix).unwrap();
        let root = std::env::temp_dir();
        let (old, fresh) = (root.join(format!("{prefix}old")), root.join(format!("{prefix}fresh")));
        let link = root.join(format!("{prefix}link"));
        for folder in [&old, &fresh] {
            fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::symlink(&fresh, &link).unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        for path in [old.as_path(), used.path()] {
            File::open(path).unwrap().set_modified(hour_ago).unwrap();
        }
        let _other = TemporaryFolder::new(&prefix).unwrap();
        assert!(!old.exists(), "left over");
        assert!(used.path().exists() && fresh.exists() && link.is_symlink());
        fs::remove_file(&link).unwrap();
        fs::remove_dir(&fresh).unwrap();
    }

    #[test]
    fn a_new_folder_appears_when_it_is_published() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        let path = root.path().join("out");
        drop(NewFolder::beside(&path).unwrap());
        let folder = NewFolder::beside(&path).unwrap();
        fs::write(folder.path().join("x"), "1").unwrap();
        assert!(!path.exists());
        folder.publish().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        assert!(path.join("x").is_file());
    }
}
