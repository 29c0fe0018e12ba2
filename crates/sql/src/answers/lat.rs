// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs commands of `lat`.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Environment variable with the path of the `lat` that started `lat-sql`.
pub const VARIABLE: &str = "LATERALIS_LAT";
/// The program.
const PROGRAM: &str = "lat";

/// Starts `lat` with the options with which the traces were opened.
#[derive(Debug, Clone, Default)]
pub struct Lat {
    /// Options for opening traces: `--as FORMAT` and the like.
    pub options: Vec<OsString>,
}

impl Lat {
    /// JSON output of a command for these recordings. `has_options`: whether it accepts options for the
    /// format of traces.
    ///
    /// Errors: there is no `lat`, or it failed: its message.
    pub fn ask(
        &self,
        command: &[OsString],
        paths: &[&PathBuf],
        has_options: bool,
    ) -> Result<Value, String> {
        let mut lat = Command::new(find()?);
        // Settings and colours of the user do not apply.
        lat.args(["--no-config", "--color=never"]).args(command).arg("--json");
        if has_options {
            lat.args(&self.options);
        }
        lat.arg("--").args(paths).stdin(Stdio::null());
        let output = lat.output().map_err(|why| format!("cannot start lat: {why}"))?;
        let words = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            // 1 means that it found problems, but printed its result.
            Some(0 | 1) => serde_json::from_slice(&output.stdout)
                .map_err(|why| format!("lat {}: no JSON: {why}", command[0].display())),
            Some(_) => {
                let words = words.trim();
                Err(words.strip_prefix("error: ").unwrap_or(words).to_owned())
            }
            None => Err(format!("lat {}: ended by a signal", command[0].display())),
        }
    }
}

/// The `lat` that started this program, otherwise the one beside it, otherwise the one on the PATH.
fn find() -> Result<PathBuf, String> {
    let told = env::var_os(VARIABLE).map(PathBuf::from);
    let own = env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let mut all = told.into_iter().chain(beside).chain(on_path);
    all.find(|path| path.is_file()).ok_or_else(|| {
        "lat is not installed: neither beside lat-sql nor on the PATH: ./x build makes it"
            .to_owned()
    })
}
