// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Information about processes from /proc. All of it may be missing: a process can end at any time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Identity of a process, even if its pid is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessTag {
    pub(super) pid: u32,
    /// Clock ticks after boot at which it started.
    start: u64,
}

fn stat(pid: u32) -> Option<(char, u32, u64)> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses state, parent and start from a text of /proc/PID/stat: fields after the name, which may contain
/// any characters.
pub(super) fn parse_stat(text: &[u8]) -> Option<(char, u32, u64)> {
    let text = String::from_utf8_lossy(text);
    let behind_name = &text[text.rfind(')')? + 1..];
    let mut fields = behind_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the file; 3 and 4 are already consumed.
    let start = fields.nth(17)?.parse().ok()?;
    Some((state, parent, start))
}

impl ProcessTag {
    /// The current process with this pid; `None` if there is none, or it is a zombie that waits for its
    /// parent.
    pub(super) fn of(pid: u32) -> Option<ProcessTag> {
        ProcessTag::of_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Like `of`, from the text of its file.
    pub(super) fn of_stat(pid: u32, text: &[u8]) -> Option<ProcessTag> {
        let (state, _, start) = parse_stat(text)?;
        (!matches!(state, 'Z' | 'X')).then_some(ProcessTag { pid, start })
    }

    /// Whether it is still running.
    pub(super) fn is_alive(&self) -> bool {
        ProcessTag::of(self.pid) == Some(*self)
    }
}

/// Whether any process has this pid.
pub(super) fn exists(pid: u32) -> bool {
    ProcessTag::of(pid).is_some()
}

/// Entries of a directory that are numbers.
pub(super) fn numbers(path: &str) -> Vec<u32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Inode of the PID namespace of this process; 0 if unknown.
pub(super) fn own_namespace() -> u64 {
    static OWN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *OWN.get_or_init(|| fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino()))
}

/// Whether the PID namespace recorded in an area is known and not that of this process.
pub(super) fn is_foreign_namespace(inode: u64) -> bool {
    let own = own_namespace();
    inode != 0 && own != 0 && inode != own
}

/// Its parent.
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent, _)| parent)
}

/// Whether `pid` is `ancestor` or a descendant of it, as far as the chain still exists.
pub(super) fn descends_from(pid: u32, ancestor: u32) -> bool {
    let mut current = pid;
    for _ in 0..64 {
        if current == ancestor {
            return true;
        }
        match parent(current) {
            Some(next) if next > 1 => current = next,
            _ => return false,
        }
    }
    false
}

/// Path of its program.
fn exe(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Name of its program; for another user's process the kernel's name, truncated at 15 characters.
pub(super) fn program_name(pid: u32) -> String {
    let own = exe(pid).and_then(|path| {
        path.file_name()
            .map(|name| name.to_string_lossy().trim_end_matches(" (deleted)").to_owned())
    });
    own.unwrap_or_else(|| {
        let text = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_this_process_and_not_its_successor() {
        let pid = std::process::id();
        let tag = ProcessTag::of(pid).unwrap();
        assert!(tag.is_alive());
        assert!(!ProcessTag { start: tag.start + 1, ..tag }.is_alive());
        assert!(parent(pid).is_some_and(|parent| descends_from(pid, parent)));
        assert!(exe(pid).is_some());
        assert!(!exists(0));
    }
}
