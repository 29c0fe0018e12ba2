// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The root file system of the machine: a cpio archive in the format "newc" [Linux:
//! Documentation/driver-api/early-userspace/buffer-format.rst].

use std::collections::BTreeSet;

/// Types of entries, as in `st_mode`.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// Largest size of an entry: sizes are 32-bit numbers.
pub const ENTRY_BYTES_MAX: u64 = u32::MAX as u64;

/// Files, folders and links, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    /// Existing paths.
    paths: BTreeSet<Vec<u8>>,
}

impl Archive {
    /// Adds a file at an absolute path, with its parent folders. An existing file is kept.
    pub fn file(&mut self, path: &[u8], mode: u32, content: &[u8]) {
        self.add(path, FILE | mode & 0o7777, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &[u8], target: &[u8]) {
        self.add(path, LINK | 0o777, target);
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &[u8], mode: u32) {
        self.add(path, FOLDER | mode & 0o7777, &[]);
    }

    /// Whether there is an entry at a path.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(trimmed(path))
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The whole archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(b"TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn add(&mut self, path: &[u8], mode: u32, content: &[u8]) {
        let path = trimmed(path);
        if path.is_empty() || content.len() as u64 > ENTRY_BYTES_MAX {
            return;
        }
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if self.paths.insert(path[..at].to_vec()) {
                self.entry(&path[..at], FOLDER | 0o755, &[]);
            }
        }
        if self.paths.insert(path.to_vec()) {
            self.entry(path, mode, content);
        }
    }

    fn entry(&mut self, path: &[u8], mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode & FOLDER == FOLDER { 2 } else { 1 };
        let (size, name) = (content.len() as u32, path.len() as u32 + 1);
        // Number, mode, user, group, links, time, size, two devices, length of the name, no checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Without the leading slash: names are relative to the root.
fn trimmed(path: &[u8]) -> &[u8] {
    let begin = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let path = &path[begin..];
    path.strip_suffix(b"/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_on_multiples_of_four_with_their_folders_before_them() {
        let mut archive = Archive::default();
        archive.file(b"/usr/bin/a", 0o755, b"hello");
        archive.link(b"/bin", b"usr/bin");
        archive.file(b"/usr/bin/a", 0o755, b"not again");
        assert!(archive.has(b"/usr/bin/a") && archive.has(b"usr") && !archive.has(b"/usr/b"));
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("usr\0") < at("usr/bin\0") && at("usr/bin\0") < at("usr/bin/a\0"));
        assert_eq!(text.matches("070701").count(), 5);
        assert!(text.contains("hello") && !text.contains("not again"));
        // Its size field.
        let entry = at("usr/bin/a\0") - 110;
        assert_eq!(&text[entry..entry + 6], "070701");
        assert_eq!(&text[entry + 54..entry + 62], "00000005");
    }
}
