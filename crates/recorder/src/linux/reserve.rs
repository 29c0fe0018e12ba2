// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Space for the end of a recording: a full disk must not leave packets without index and report.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// Pending index entries of 3 streams (1024 of 72 bytes each), and a report.
const BYTES: u64 = 256 << 10;

/// A file that exists only to be removed. If the file system does not support preallocation, or is
/// full, there is no reserve.
#[derive(Debug)]
pub(super) struct Reserve(Option<PathBuf>);

impl Reserve {
    /// Allocates the space in the directory of a recording.
    pub(super) fn make(root: &Path) -> Reserve {
        let path = root.join(".reserve");
        // Left by a killed recorder.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let made =
            file.is_ok_and(|file| fallocate(&file, FallocateFlags::empty(), 0, BYTES).is_ok());
        if !made {
            let _ = fs::remove_file(&path);
        }
        Reserve(made.then_some(path))
    }

    /// Releases the space.
    pub(super) fn release(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_space_and_leaves_nothing() {
        let root = std::env::temp_dir().join(format!("lateralis-reserve-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let reserve = Reserve::make(&root);
        let is_there = root.join(".reserve").metadata().map(|file| file.len());
        assert!(reserve.0.is_none() || is_there.is_ok_and(|bytes| bytes == BYTES));
        drop(reserve);
        fs::remove_dir(&root).unwrap();
    }
}
