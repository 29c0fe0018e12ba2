// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace on standard input: `-` in place of a path.
//!
//! Readers seek in files. A file redirected by a shell (`< FILE`) is read in place; data from a pipe is
//! copied to a private folder, which is removed when the command ends.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lateralis_files::TemporaryFolder;
use rustix::fs::{FileType, fstat};
use rustix::termios::isatty;

/// The copy, once it is made: `-` is read only once, even if it is given several times.
static COPY: Mutex<Option<TemporaryFolder>> = Mutex::new(None);

/// Name of the copy in its folder, as commands show it.
const NAME: &str = "standard-input";

/// Returns the path at which the trace on standard input can be read.
///
/// # Errors
/// A sentence: standard input is a terminal, or cannot be copied.
pub fn path() -> Result<PathBuf, String> {
    let mut copy = copy();
    if let Some(copy) = &*copy {
        return Ok(copy.path().join(NAME));
    }
    let input = io::stdin();
    if isatty(&input) {
        return Err("standard input is a terminal: pipe a trace into it, or name a file".to_owned());
    }
    let kind = fstat(&input).map(|status| FileType::from_raw_mode(status.st_mode));
    if let (Ok(FileType::RegularFile), Ok(path)) = (kind, fs::canonicalize("/proc/self/fd/0")) {
        return Ok(path);
    }
    let folder = TemporaryFolder::new("lat-input-").map_err(cannot_copy)?;
    let path = folder.path().join(NAME);
    let mut file = File::create_new(&path).map_err(cannot_copy)?;
    io::copy(&mut input.lock(), &mut file).map_err(cannot_copy)?;
    *copy = Some(folder);
    Ok(path)
}

/// Removes the copy. Must be called before the process ends, because a static value is never dropped.
pub fn remove_copy() {
    copy().take();
}

fn cannot_copy(cause: io::Error) -> String {
    format!("cannot copy standard input into {}: {cause}", std::env::temp_dir().display())
}

fn copy() -> MutexGuard<'static, Option<TemporaryFolder>> {
    COPY.lock().unwrap_or_else(PoisonError::into_inner)
}
