// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of a directory besides CTF traces: files that may be traces, and remarks on those that are not
//! read.

use std::fs;
use std::path::{Path, PathBuf};

use super::recorded;
use crate::joined::Placed;
use crate::packed::Unpacked;

/// Number of directory levels that are searched for files of a known format.
pub(super) const SEARCH_DEPTH: usize = 8;

/// Largest number of unread files that are named.
const UNREAD_SHOWN: usize = 20;

/// Largest number of files examined below one path.
const FILES_MAX: usize = 10_000;

/// Traces of a directory; the first gets the remark that files were not read.
pub(super) fn with_unread(mut sources: Vec<Placed>, unread: &[String]) -> Vec<Placed> {
    if !sources.is_empty() && !unread.is_empty() {
        let (place, first) = sources.remove(0);
        let remark = not_read(unread);
        sources.insert(0, (place, Box::new(Unpacked::new(first, Vec::new(), vec![remark]))));
    }
    sources
}

pub(super) fn has_bytes(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| about.len() > 0)
}

/// A remark on files beside traces that are not traces.
fn not_read(files: &[String]) -> String {
    let shown = files.iter().take(UNREAD_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let rest = files.len().saturating_sub(UNREAD_SHOWN);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    let what = if files.len() == 1 { "a file beside it is" } else { "files beside it are" };
    format!("{what} not read: {shown}{more}")
}

/// Files under a directory that is not a CTF trace.
pub(super) fn search(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    if directory.join("metadata").is_file() {
        return;
    }
    let mut entries: Vec<_> = entries.flatten().take(FILES_MAX).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let is_recorded = recorded::is_recorded(directory);
    for entry in entries {
        if is_recorded && recorded::is_of_recorder(&entry.file_name()) {
            continue;
        }
        // Links to files are followed, links to directories are not: they may form cycles.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && depth > 0 {
            search(&entry.path(), depth - 1, files);
        } else if entry.path().is_file() && files.len() < FILES_MAX {
            files.push(entry.path());
        }
    }
}
