// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat sql` finds `lat-sql` and executes it; the tests of `lat-sql` cover its results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Makes a folder with a copy of `lat`, which has no `lat-sql` beside it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("path")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_lat"), folder.join("lat")).unwrap();
    folder
}

/// Writes a program that prints its location, its arguments and its caller, and exits with status 7.
fn say(folder: &Path, place: &str) {
    let path = folder.join(place);
    let lines = format!("echo {place}\nprintf '<%s>' \"$@\"\necho $LATERALIS_LAT >&2\nexit 7\n");
    fs::write(&path, format!("#!/bin/sh\n{lines}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn lat(folder: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", folder.join("path").display());
    let mut command = Command::new(folder.join("lat"));
    command.args(arguments).env("PATH", path).output().unwrap()
}

#[test]
fn where_there_is_none_it_says_how_to_build_it() {
    let folder = folder("sql-none");
    let output = lat(&folder, &["sql", "trace", "-c", "SELECT 1"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.starts_with("error: lat-sql is not installed: "), "{error}");
    assert!(error.contains("./x build sql"), "{error}");
    let output = lat(&folder, &["sql", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: lat sql"));
}

#[test]
fn arguments_and_exit_code_pass_through() {
    let folder = folder("sql-path");
    say(&folder, "path/lat-sql");
    let given = ["sql", "trace", "-c", "SELECT 'a b'", "--json", "--", "-x"];
    let output = lat(&folder, &given);
    assert_eq!(output.status.code(), Some(7));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(shown, "path/lat-sql\n<trace><-c><SELECT 'a b'><--json><--><-x>");
    // The environment names the calling `lat`, which provides the tables of other commands.
    let own = folder.join("lat").canonicalize().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), own.display().to_string());
    // A program beside `lat` precedes those on the PATH.
    say(&folder, "lat-sql");
    let output = lat(&folder, &["sql", "--help"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "lat-sql\n<--help>");
    // A file that cannot be executed is ignored.
    fs::set_permissions(folder.join("lat-sql"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = lat(&folder, &["sql"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "path/lat-sql\n<>");
}
