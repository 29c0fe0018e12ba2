// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where areas live [ring-abi §2].

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Most areas looked at in one directory.
const AREAS_MAX: usize = 65536;

/// The directory of areas: `given`, else `LATERALIS_DIR`, else the user's default.
pub fn area_dir(given: Option<&Path>) -> PathBuf {
    if let Some(given) = given {
        return given.to_owned();
    }
    if let Some(dir) = std::env::var_os("LATERALIS_DIR").filter(|dir| !dir.is_empty()) {
        return PathBuf::from(dir);
    }
    let name = format!("lateralis-{}", rustix::process::geteuid().as_raw());
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() { shared_memory.join(name) } else { Path::new("/tmp").join(name) }
}

/// Makes the directory if it is missing, and checks that nobody else can write it.
pub(super) fn ensure_area_dir(dir: &Path) -> Result<(), Error> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::file("make directory", dir, error)),
    }
    let metadata = fs::symlink_metadata(dir).map_err(|cause| Error::file("look at", dir, cause))?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || !mine || metadata.mode() & 0o022 != 0 {
        return Err(Error::AreaDirectory(dir.to_owned()));
    }
    Ok(())
}

/// The visible area files, sorted by name. A directory that is missing has none.
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
