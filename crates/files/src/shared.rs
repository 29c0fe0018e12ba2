// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders in places that all users share, such as `/tmp`, which the next process finds again. Another user
//! can take every name that can be guessed: then one gets a name that cannot, and is found by its owner.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::{TRIES, random_name};

/// Whether this is a folder of this user, no link to one, in which no other user can put anything.
#[must_use]
pub fn is_own_entry(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| {
        let is_own = about.uid() == rustix::process::geteuid().as_raw();
        about.is_dir() && is_own && about.mode() & 0o022 == 0
    })
}

/// Folders of this user whose names begin so, sorted.
///
/// Cost: proportional to the number of names that begin so, of all users.
#[must_use]
pub fn own_entries(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let begins =
        |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
    let mut found: Vec<PathBuf> = entries
        .filter(begins)
        .map(|entry| entry.path())
        .filter(|path| is_own_entry(path))
        .collect();
    found.sort();
    found
}

/// Makes a folder that only this user may read, under a name that begins so and cannot be guessed.
///
/// # Errors
/// It cannot be made.
pub fn random_entry(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        let random = random_name(OsStr::new(""))?;
        let random = random.to_string_lossy();
        let path = parent.join(format!("{prefix}{}", random.trim_start_matches('.')));
        match make(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A folder of this user in a place that all users share, created if missing: under its plain name,
/// otherwise under that name with a suffix.
///
/// # Errors
/// Nothing can be made there.
pub fn shared_entry(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let plain = parent.join(name);
    if make(&plain).is_ok() || is_own_entry(&plain) {
        return Ok(plain);
    }
    let prefix = format!("{name}-");
    match own_entries(parent, &prefix).into_iter().next() {
        Some(found) => Ok(found),
        None => random_entry(parent, &prefix),
    }
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemporaryFolder;

    #[test]
    fn a_name_that_is_taken_gives_way_to_one_that_cannot_be_guessed() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        let parent = root.path();
        let plain = parent.join("x-1");
        assert_eq!(shared_entry(parent, "x-1").unwrap(), plain);
        assert_eq!(shared_entry(parent, "x-1").unwrap(), plain);
        // A link, even to a folder of its own, is what another may have made.
        fs::remove_dir(&plain).unwrap();
        fs::create_dir(parent.join("own")).unwrap();
        std::os::unix::fs::symlink(parent.join("own"), &plain).unwrap();
        let made = shared_entry(parent, "x-1").unwrap();
        assert!(made.to_string_lossy().len() > plain.to_string_lossy().len() + 16);
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        assert_eq!(shared_entry(parent, "x-1").unwrap(), made, "it is found again");
        assert_eq!(own_entries(parent, "x-"), [made]);
        assert!(shared_entry(&parent.join("missing"), "x").is_err());
    }
}
