// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A private folder in which a test runs `lat`, also for areas, so that other traced programs on this machine
//! are neither visible nor disturbed.

// Each test file uses only a part.
#![allow(dead_code)]

pub mod genode;
pub mod program;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test, removed when the test ends.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Partner: none; the numbers only need to differ.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("recording-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(path.join("areas")).expect("a folder for the test");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(path.join("areas"), private).expect("mode 0700");
        Place(path)
    }

    pub fn lat(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lat"))
            .args(arguments)
            .current_dir(&self.0)
            .env("LATERALIS_DIR", self.0.join("areas"))
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .stdin(Stdio::null())
            .output()
            .expect("lat can be started")
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.lat(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        })
    }

    pub fn report(&self, recording: &str) -> Value {
        let text = fs::read(self.0.join(recording).join("report.json")).expect("a report");
        serde_json::from_slice(&text).expect("the report is JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
