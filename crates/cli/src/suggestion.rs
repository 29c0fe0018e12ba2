// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that `lat` suggests; they work when pasted into a shell.

use std::env;
use std::path::{Path, PathBuf};

/// Returns the command by which the user starts this `lat`: the bare name if a shell finds this file by it,
/// else its quoted path.
pub fn own_command() -> String {
    let Ok(own) = env::current_exe().and_then(|path| path.canonicalize()) else {
        return "lat".into();
    };
    let on_path = env::var_os("PATH").and_then(|path| first_on_path(&path, "lat"));
    if on_path.is_some_and(|found| found.canonicalize().is_ok_and(|found| found == own)) {
        "lat".into()
    } else {
        quoted(&own.to_string_lossy())
    }
}

/// Returns the file that a shell starts for a bare name.
fn first_on_path(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Quotes a word for a POSIX shell if necessary.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("out/prog-2"), "out/prog-2");
        assert_eq!(quoted("my prog"), "'my prog'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(reboot)"), "'$(reboot)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn the_first_executable_of_a_path_is_found() {
        let folder = env::temp_dir();
        let path = env::join_paths([folder.as_path(), Path::new("/bin")]).unwrap();
        assert_eq!(first_on_path(&path, "sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(first_on_path(&path, "no such program"), None);
    }
}
