// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Releases disk space of a growing copy.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// Minimum number of bytes released at once.
const LEAST_BYTES: u64 = 4 << 20;
/// Maximum number of bytes of a file released at once, because writers wait meanwhile.
const MOST_BYTES: u64 = 32 << 20;
/// A hole consists of whole pages.
const PAGE_BYTES: u64 = 4096;

/// The stream files of a recording whose start is not needed any more.
#[derive(Debug)]
pub struct LetGo {
    folder: PathBuf,
    done: BTreeMap<String, u64>,
}

impl LetGo {
    /// For the recording in `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { folder: root.join("ctf"), done: BTreeMap::new() }
    }

    /// Releases the parts of files before these offsets. The files keep their sizes; on a file
    /// system without holes this has no effect.
    pub fn before(&mut self, marks: &BTreeMap<String, u64>) {
        for (name, mark) in marks {
            let done = self.done.get(name).copied().unwrap_or(0);
            // The rest follows in the next call.
            let end = (mark / PAGE_BYTES * PAGE_BYTES).min(done.saturating_add(MOST_BYTES));
            if end.saturating_sub(done) < LEAST_BYTES {
                continue;
            }
            let Ok(file) = OpenOptions::new().write(true).open(self.folder.join(name)) else {
                continue;
            };
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&file, flags, done, end - done);
            self.done.insert(name.clone(), end);
        }
    }

    /// Whether anything was released.
    #[must_use]
    pub fn is_any(&self) -> bool {
        !self.done.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn what_is_let_go_takes_no_room_and_the_rest_stays() {
        let root = std::env::temp_dir().join(format!("lateralis-let-go-{}", std::process::id()));
        let path = root.join("ctf").join("stream");
        std::fs::create_dir_all(root.join("ctf")).unwrap();
        std::fs::write(&path, vec![7; 24 << 20]).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        let mut let_go = LetGo::new(&root);
        let_go.before(&BTreeMap::from([
            ("stream".to_owned(), 1 << 20),
            ("none".to_owned(), 1 << 30),
        ]));
        assert!(!let_go.is_any(), "too little");
        let mark = (20 << 20) + 5000;
        let_go.before(&BTreeMap::from([("stream".to_owned(), mark)]));
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.len(), before.len());
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[mark as usize..].iter().all(|byte| *byte == 7));
        // A file system without holes keeps all bytes.
        assert!(after.blocks() == before.blocks() || bytes[..20 << 20].iter().all(|b| *b == 0));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
