// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking `lat`.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names the `lat` that started `lat-sql`.
pub const VARIABLE: &str = "LATERALIS_LAT";
/// The program.
const PROGRAM: &str = "lat";

/// Starts `lat` with the options that the traces were opened with.
#[derive(Debug, Clone, Default)]
pub struct Lat {
    /// How traces are opened: `--as FORMAT` and the like.
    pub options: Vec<OsString>,
}

impl Lat {
    /// What a command says as JSON about these recordings. `has_options` says whether it
    /// takes options about the format of traces.
    ///
    /// Errors: there is no `lat`, or it could not answer: its words.
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
            // It found something, and said all the same.
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

/// The one that started this program, else beside it, else on the PATH.
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
