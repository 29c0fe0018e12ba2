// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Locations of traces, `lat`, and folders for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// A trace of the shared data.
pub fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: no trace at {}", path.display());
    None
}

/// The `lat` of the same sources, which must have been built before: building it here would take longer
/// than all tests.
pub fn lat() -> Option<PathBuf> {
    let told = std::env::var_os("LATERALIS_LAT").map(PathBuf::from);
    let found = told.filter(|path| path.is_file());
    if found.is_none() {
        println!("SKIPPED: LATERALIS_LAT does not name a lat: ./x test sets it");
    }
    found
}

/// A folder for one test, emptied first.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A recording of the demonstration: processes, locks, messages, states. Made once.
pub fn demo() -> Option<&'static Path> {
    static DEMO: OnceLock<Option<PathBuf>> = OnceLock::new();
    DEMO.get_or_init(|| record("demo")).as_deref()
}

/// A separate recording of the demonstration.
pub fn record(name: &str) -> Option<PathBuf> {
    let lat = lat()?;
    let place = folder(&format!("{name}-{}", std::process::id()));
    let output = Command::new(lat)
        .args(["demo", "-o", "recording"])
        .current_dir(&place)
        .env("LATERALIS_DIR", place.join("areas"))
        .env("XDG_CACHE_HOME", place.join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(place.join("recording").is_dir(), "lat demo: {said}");
    Some(place.join("recording"))
}

/// JSON output of `lat`.
pub fn lat_json(lat: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(lat).args(arguments).stdin(Stdio::null()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| {
        panic!("{arguments:?}: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })
}

/// `lat-sql` for a trace, not started yet.
pub fn command(trace: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-sql"));
    command.arg(trace).args(arguments).stdin(Stdio::null());
    command
}

/// Runs `lat-sql`.
pub fn run(trace: &Path, arguments: &[&str]) -> Output {
    command(trace, arguments).output().unwrap()
}

/// Rows of a statement.
pub fn rows(trace: &Path, sql: &str) -> Vec<Value> {
    let output = run(trace, &["--json", "-c", sql]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{sql}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{sql}: {why}: {said}"))
}

/// Exit code, and standard error.
pub fn outcome(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
