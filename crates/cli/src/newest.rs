// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recording that is meant where none is named: the newest one in the current folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::commands::record::NAME_PREFIX;
use crate::error::CliError;

/// Entries of the folder that are looked at: it may be any folder.
const LOOKED_AT_MAX: usize = 100_000;

/// The newest recording that `lat record` has named itself, by when its report was last written.
///
/// # Errors
/// There is none.
pub fn recording() -> Result<PathBuf, CliError> {
    newest_in(Path::new(".")).ok_or_else(|| {
        CliError::new(
            "no trace is named",
            format!("no recording ({NAME_PREFIX}*) is in this folder"),
            "name one, or make one: lat record -- CMD",
        )
    })
}

fn newest_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().take(LOOKED_AT_MAX);
    let recordings = entries.filter_map(|entry| {
        let name = entry.file_name();
        let is_named_so = name.as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes());
        let report =
            fs::symlink_metadata(entry.path().join("report.json")).ok().filter(|_| is_named_so)?;
        Some((report.modified().ok()?, name))
    });
    // The name decides where two were written in one moment of the file system's clock.
    recordings.max().map(|(_, name)| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_files::TemporaryFolder;
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_by_its_report_is_found() {
        let folder = TemporaryFolder::new("newest-test-").expect("a folder");
        let make = |name: &str, age: u64| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a recording");
            let report = File::create(path.join("report.json")).expect("its report");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
            report.set_modified(time).expect("its time");
        };
        assert_eq!(newest_in(folder.path()), None);
        make("lateralis-ls", 20);
        make("lateralis-make", 10);
        make("other", 1);
        fs::create_dir(folder.path().join("lateralis-empty")).expect("a folder");
        assert_eq!(newest_in(folder.path()), Some("lateralis-make".into()));
        make("lateralis-ls-2", 5);
        assert_eq!(newest_in(folder.path()), Some("lateralis-ls-2".into()));
    }
}
