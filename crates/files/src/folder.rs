// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders that their owner alone may read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};

/// Makes a folder, and those above it that are missing. All of these only their owner may read, or
/// less where the umask says so; a folder that is there stays as it is.
///
/// # Errors
/// It cannot be made, or something else has its name.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether a folder belongs to the user and no other user can write to it.
#[must_use]
pub fn is_own_folder(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| {
        let is_own = about.uid() == rustix::process::geteuid().as_raw();
        about.is_dir() && is_own && about.mode() & 0o022 == 0
    })
}

/// The owner of a folder that another user made: neither this user nor the superuser, nor who became the
/// superuser by `sudo`.
#[must_use]
pub fn owner_elsewhere(path: &Path) -> Option<u32> {
    let owner = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?.uid();
    let own = rustix::process::geteuid().as_raw();
    // Only root's own environment counts: it is set by the `sudo` that started this.
    let invoker = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    let is_trusted = owner == 0 || owner == own || (own == 0 && invoker() == Some(owner));
    (!is_trusted).then_some(owner)
}

/// Whether files can be created in a folder, by its mode and its file system. Determined without
/// creating one.
#[must_use]
pub fn is_writable_folder(path: &Path) -> bool {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn folders_are_private_and_those_that_others_write_to_are_not_own() {
        let root = crate::TemporaryFolder::new("lat-test-").unwrap();
        let inner = root.path().join("a/b");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&root.path().join("a"))), (0o700, 0o700));
        assert!(is_own_folder(&inner) && is_writable_folder(&inner));
        assert!(!is_writable_folder(&root.path().join("missing")));
        for mode in [0o720, 0o702, 0o777] {
            fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
            assert!(!is_own_folder(&inner), "{mode:o}");
        }
        assert_eq!(owner_elsewhere(&inner), None);
        fs::write(root.path().join("file"), "").unwrap();
        assert!(!is_own_folder(&root.path().join("file")));
        assert!(!is_own_folder(&root.path().join("missing")));
    }
}
