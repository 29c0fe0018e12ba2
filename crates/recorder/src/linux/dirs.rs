// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Directories of areas [ring-abi §2].

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use lateralis_files::{is_own_entry, own_entries, random_entry};

use crate::error::Error;

/// Maximum number of areas examined in one directory.
const AREAS_MAX: usize = 65536;

/// Names of the default directory in one place: without a number, then `-1` to `-9`.
const NUMBERS: u32 = 10;

/// The directory of areas: `given`, else `LATERALIS_DIR`, else the default of this user: the existing one,
/// or the first that could be created.
pub fn area_dir(given: Option<&Path>) -> PathBuf {
    chosen(given).unwrap_or_else(|| Defaults::of_this_user().find())
}

/// Like [`area_dir`]; creates the directory if it is missing.
///
/// # Errors
/// The directory cannot be created, belongs to another user, or others can write it.
pub fn make_area_dir(given: Option<&Path>) -> Result<PathBuf, Error> {
    match chosen(given) {
        Some(dir) => make(&dir).map(|()| dir),
        None => Defaults::of_this_user().make(),
    }
}

fn chosen(given: Option<&Path>) -> Option<PathBuf> {
    let of_environment =
        || std::env::var_os("LATERALIS_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    given.map(Path::to_owned).or_else(of_environment)
}

fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Default directories in the order in which they are tried: another user may have taken a name in
/// shared folders. If all predictable names are taken, one with an unpredictable name is created, which is
/// found by its owner. Keep in step with `tracer/c/src/directory.c`.
struct Defaults {
    names: Vec<PathBuf>,
    /// Folders that may contain directories with names that begin with `prefix`.
    shared: [PathBuf; 2],
    prefix: String,
}

impl Defaults {
    fn of_this_user() -> Self {
        let runtime = PathBuf::from(format!("/run/user/{}", effective_uid()));
        Self::new(Path::new("/dev/shm"), &runtime, Path::new("/tmp"))
    }

    fn new(shared_memory: &Path, runtime: &Path, temporary: &Path) -> Self {
        let uid = effective_uid();
        let numbered = |parent: &Path| {
            let first = parent.join(format!("lateralis-{uid}"));
            let others = (1..NUMBERS).map(|number| format!("lateralis-{uid}-{number}"));
            let others = others.map(|name| parent.join(name));
            std::iter::once(first).chain(others).collect::<Vec<_>>()
        };
        let own = vec![runtime.join("lateralis")];
        Self {
            names: [numbered(shared_memory), own, numbered(temporary)].concat(),
            shared: [shared_memory, temporary].map(Path::to_owned),
            prefix: format!("lateralis-{uid}-"),
        }
    }

    /// An existing one takes precedence over one that can be created: recorder and program still find the
    /// same when another user removes a name.
    fn existing(&self) -> Option<PathBuf> {
        let known = self.names.iter().find(|dir| is_own_entry(dir)).cloned();
        let among = |parent: &PathBuf| own_entries(parent, &self.prefix).into_iter().next();
        known.or_else(|| self.shared.iter().find_map(among))
    }

    fn find(&self) -> PathBuf {
        let is_free = |dir: &&PathBuf| {
            let parent = dir.parent().unwrap_or(Path::new("/"));
            let can_be_made = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
            can_be_made && fs::symlink_metadata(dir).is_err()
        };
        // If all are taken: the one whose parent belongs to this user, so that nothing of others is read.
        let last = &self.names[NUMBERS as usize];
        let free = || self.names.iter().find(is_free).unwrap_or(last).clone();
        self.existing().unwrap_or_else(free)
    }

    fn make(&self) -> Result<PathBuf, Error> {
        if let Some(dir) = self.existing() {
            return Ok(dir);
        }
        let mut refusal = match make(&self.names[0]) {
            Ok(()) => return Ok(self.names[0].clone()),
            Err(error) => error,
        };
        for dir in &self.names[1..] {
            match make(dir) {
                Ok(()) => return Ok(dir.clone()),
                // A taken name explains more than a missing parent.
                Err(error) if !matches!(refusal, Error::AreaDirectory { .. }) => refusal = error,
                Err(_) => {}
            }
        }
        let mut made = self.shared.iter().map(|parent| random_entry(parent, &self.prefix));
        made.find_map(Result::ok).ok_or(refusal)
    }
}

/// Creates the directory if it is missing, and checks that no other user can write it.
fn make(dir: &Path) -> Result<(), Error> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::file("make directory", dir, error)),
    }
    let metadata = fs::symlink_metadata(dir).map_err(|cause| Error::file("look at", dir, cause))?;
    if !is_own_entry(dir) {
        return Err(Error::AreaDirectory { path: dir.to_owned(), owner: metadata.uid() });
    }
    Ok(())
}

/// The visible area files, sorted by name; none if the directory is missing.
pub(super) fn area_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let hidden =
                path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            !hidden && path.extension() == Some(OsStr::new("area"))
        })
        .take(AREAS_MAX)
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn names_taken_by_others_are_passed_over_by_all_alike() {
        let root = std::env::temp_dir().join(format!("lateralis-dirs-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let [shm, runtime, tmp] = ["shm", "run", "tmp"].map(|name| root.join(name));
        [&shm, &tmp].iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
        let defaults = Defaults::new(&shm, &runtime, &tmp);
        let names = defaults.names.clone();
        assert_eq!(defaults.find(), names[0]);
        assert!(fs::read_dir(&shm).unwrap().next().is_none(), "looking makes nothing");
        // A directory that others can write, a link to a valid one, and a file.
        fs::create_dir(&names[0]).unwrap();
        fs::set_permissions(&names[0], fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(root.join("good")).unwrap();
        symlink(root.join("good"), &names[1]).unwrap();
        fs::write(&names[2], b"").unwrap();
        assert_eq!(defaults.find(), names[3]);
        assert_eq!(defaults.make().unwrap(), names[3]);
        assert_eq!(fs::metadata(&names[3]).unwrap().mode() & 0o777, 0o700);
        // The existing one is still used when a name before it becomes free.
        fs::remove_file(&names[1]).unwrap();
        assert_eq!(defaults.find(), names[3]);
        assert_eq!(defaults.make().unwrap(), names[3]);
        fs::remove_dir(&names[3]).unwrap();
        names[1..NUMBERS as usize].iter().for_each(|name| fs::write(name, b"").unwrap());
        assert_eq!(defaults.make().unwrap(), names[NUMBERS as usize + 1]);
        fs::create_dir(&runtime).unwrap();
        fs::remove_dir(&names[NUMBERS as usize + 1]).unwrap();
        assert_eq!(defaults.make().unwrap(), names[NUMBERS as usize]);
        fs::remove_dir_all(&runtime).unwrap();
        names[NUMBERS as usize + 1..].iter().for_each(|name| fs::write(name, b"").unwrap());
        assert_eq!(defaults.find(), names[NUMBERS as usize]);
        // All predictable names are taken: an unpredictable one is created, and found from then on.
        let made = defaults.make().unwrap();
        assert!(made.parent() == Some(&*shm) && !names.contains(&made), "{}", made.display());
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        assert_eq!((defaults.find(), defaults.make().unwrap()), (made.clone(), made.clone()));
        names.iter().for_each(|name| drop(fs::remove_file(name)));
        assert_eq!(defaults.find(), made, "names that are given back change nothing");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn where_nothing_can_be_made_the_name_that_is_taken_is_told() {
        let root = std::env::temp_dir().join(format!("lateralis-dirs-none-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let file = root.join("file");
        fs::write(&file, b"").unwrap();
        let refused = Defaults::new(&file, &file, &file).make().unwrap_err();
        assert!(matches!(&refused, Error::File { .. }), "{refused}");
        fs::remove_dir_all(&root).unwrap();
    }
}
