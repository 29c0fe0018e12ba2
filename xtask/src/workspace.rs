// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where things are: the root of the sources, the target folder, the files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the sources.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where builds go: `CARGO_TARGET_DIR`, else `target/`.
pub fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    if folder.is_absolute() { folder } else { root().join(folder) }
}

/// A folder for what a task makes, emptied first.
pub fn fresh_folder(name: &str) -> Result<PathBuf, String> {
    let folder = target().join("xtask").join(name);
    let describe = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(describe)?;
    }
    std::fs::create_dir_all(&folder).map_err(describe)?;
    Ok(folder)
}

/// All files of the project, relative to the root: those under version control
/// and those that would be added.
pub fn files() -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut files: Vec<PathBuf> = output
        .stdout
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// A number that depends only on the sources under version control, not on earlier commits; 0
/// without git.
pub fn seed() -> u64 {
    let output =
        Command::new("git").args(["rev-parse", "HEAD^{tree}"]).current_dir(root()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let digits = text.get(..16).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Whether a command can be run here.
pub fn have(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}
