// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading and writing files. An output appears whole or not at all: it is
//! written under another name in the same directory and then renamed.

use super::Failure;
use crate::FILE_BYTES_MAX;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The content of a file, or of standard input for `-`. One byte more than a
/// schema may have is enough to see that it is too large.
pub(super) fn read(path: &OsString) -> Result<Vec<u8>, String> {
    let limit = FILE_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let outcome = if path == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    match outcome {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("cannot read {}: {error}", path.to_string_lossy())),
    }
}

/// Writes to standard output. A closed pipe is the reader's right.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::CannotRun(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The stem of a path's file name; none for standard output.
pub(super) fn stem(path: &OsString) -> Option<String> {
    let stem = Path::new(path).file_stem()?.to_string_lossy().into_owned();
    (path != "-").then_some(stem)
}

/// Writes all outputs: first all under temporary names, then all renames.
pub(super) fn write_all(outputs: &[(OsString, String)]) -> Result<(), Failure> {
    let mut pending: Vec<(PathBuf, PathBuf)> = Vec::new();
    for (path, text) in outputs {
        let target = Path::new(path);
        let written = if path == "-" {
            print(text)?;
            continue;
        } else if is_special(target) {
            // A pipe or device cannot be replaced.
            fs::write(target, text).map(|()| None)
        } else {
            write_beside(target, text).map(Some)
        };
        match written {
            Ok(None) => {}
            Ok(Some(names)) => pending.push(names),
            Err(error) => {
                discard(&pending);
                return Err(format!("cannot write {}: {error}", target.display()).into());
            }
        }
    }
    for (done, (temporary, target)) in pending.iter().enumerate() {
        if let Err(error) = fs::rename(temporary, target) {
            discard(&pending[done..]);
            return Err(format!("cannot write {}: {error}", target.display()).into());
        }
    }
    Ok(())
}

fn is_special(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The names of the complete temporary file and of its target. Its rights are those of the target,
/// if there is one.
fn write_beside(target: &Path, text: &str) -> io::Result<(PathBuf, PathBuf)> {
    // The target of the link is used, not the link.
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = target.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let outcome = (|| {
        let mut file = File::options().write(true).create_new(true).open(&temporary)?;
        if let Ok(metadata) = fs::metadata(&target) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())
    })();
    match outcome {
        Ok(()) => Ok((temporary, target)),
        Err(error) => {
            // It may not exist; there is nothing more to be done about it.
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

fn discard(pending: &[(PathBuf, PathBuf)]) {
    for (temporary, _) in pending {
        let _ = fs::remove_file(temporary);
    }
}
