// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders for embedded parts of `lat`: only this user can write to them, and programs of other users can
//! read those of the superuser.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use lateralis_files::shared_entry;
use rustix::process::geteuid;

/// A possible folder.
#[derive(Debug)]
pub struct Candidate {
    /// The folder; it may not be there yet.
    pub path: PathBuf,
    /// Whether other users must be able to read its files.
    is_for_all: bool,
}

/// Returns folders in order of preference: the user's cache; the folder that the system provides for the
/// superuser or for a session; a folder in `/tmp`, looked up only if the others are unsuitable.
pub fn candidates() -> impl Iterator<Item = Candidate> {
    let is_for_all = geteuid().is_root();
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let second = match is_for_all {
        true => Some(PathBuf::from("/var/cache")),
        false => absolute("XDG_RUNTIME_DIR"),
    };
    let named = user.into_iter().chain(second).map(|folder| folder.join("lateralis"));
    // Another user may take this name, but gains nothing by it: a folder with another name is used then.
    let name = format!("lateralis-cache-{}", geteuid().as_raw());
    let shared = std::iter::once_with(move || {
        let path = shared_entry(Path::new("/tmp"), &name).ok()?;
        // The folder was created for this user alone.
        if is_for_all {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).ok()?;
        }
        Some(path)
    });
    named.chain(shared.flatten()).map(move |path| Candidate { path, is_for_all })
}

impl Candidate {
    /// Makes a folder inside it. Each folder on the path belongs to this user or the superuser, and no other
    /// user can write to it.
    ///
    /// Errors: another user could write to a folder; or other users cannot reach it although they must.
    pub fn make(&self, folder: &Path) -> io::Result<()> {
        let mode = if self.is_for_all { 0o755 } else { 0o700 };
        let mut path = PathBuf::new();
        for component in folder.components() {
            if component == Component::ParentDir {
                return Err(io::Error::other("its path has .. in it"));
            }
            path.push(component);
            match DirBuilder::new().mode(mode).create(&path) {
                // Independent of the umask.
                Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(mode))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    // A read-only file system returns its error for existing folders, too.
                    if !path.is_dir() {
                        return Err(error);
                    }
                }
            }
            self.check(&path)?;
        }
        Ok(())
    }

    fn check(&self, folder: &Path) -> io::Result<()> {
        // A link is trusted if its owner, who made it, is trusted; then its target is checked.
        let link = fs::symlink_metadata(folder)?;
        let found = fs::metadata(folder)?;
        if !found.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let trusted = |uid: u32| uid == 0 || uid == geteuid().as_raw() || is_unmapped(uid);
        let is_shared = found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0;
        if !trusted(link.uid()) || !trusted(found.uid()) || is_shared {
            let text = format!("others can change what is in {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if self.is_for_all && found.mode() & 0o001 == 0 {
            let text = format!("other users cannot reach what is in {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(())
    }
}

/// Whether the owner looks like one of the system's folders seen from a user namespace that does not map it.
fn is_unmapped(uid: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let overflow = read("/proc/sys/kernel/overflowuid");
    let map = read("/proc/self/uid_map");
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    !is_whole && overflow.trim().parse() == Ok(uid)
}

/// Whether the dynamic linker can load a file from there: the path is valid in `LD_PRELOAD`, and the file
/// system allows execution.
pub fn loads(path: &Path) -> bool {
    let is_plain = !path.as_os_str().as_encoded_bytes().iter().any(|byte| b" \t:$".contains(byte));
    let may_run = File::open(path)
        .and_then(|file| Ok(rustix::fs::fstatvfs(&file)?))
        .is_ok_and(|system| !system.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    is_plain && may_run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_others_can_change_do_not_serve() {
        let folder = std::env::temp_dir().join(format!("lateralis-places-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let own = Candidate { path: folder.clone(), is_for_all: false };
        own.make(&folder.join("a/b")).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(&folder.join("a/b")), 0o700);
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.join("a"), open).expect("changed");
        let error = own.make(&folder.join("a/c")).expect_err("refused");
        assert!(error.to_string().contains("others can change"), "{error}");
        assert!(!folder.join("a/c").exists());
        assert!(own.make(&folder.join("x/../y")).is_err());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn paths_that_ld_preload_cannot_name_do_not_serve() {
        assert!(!loads(Path::new("/a b/library.so")) && !loads(Path::new("/a:b/library.so")));
        assert!(!loads(Path::new("/no such file")));
    }
}
