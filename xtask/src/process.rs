// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running other programs with their output in a log and an end in time.

use crate::workspace;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A hung program must not hang CI: nothing here takes longer than this.
const LIMIT: Duration = Duration::from_secs(25 * 60);

/// What a finished program printed and returned.
pub struct Finished {
    /// Standard output and error together, in the order in which they came.
    pub output: String,
    /// How it ended; none if it was stopped for taking too long.
    pub status: Option<ExitStatus>,
}

impl Finished {
    /// Whether it ended by itself with 0.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The end of the output, where compilers and tests say what is wrong.
    pub fn tail(&self, lines: usize) -> String {
        let all: Vec<&str> = self.output.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Runs a command from the root of the sources; its output goes to a log file
/// in the target folder and into the result.
///
/// Errors: a sentence if it cannot be started.
pub fn run(command: &mut Command, log_name: &str) -> Result<Finished, String> {
    let logs = workspace::target().join("xtask").join("logs");
    let log = logs.join(format!("{log_name}.log"));
    let describe = |error: std::io::Error| format!("{}: {error}", log.display());
    fs::create_dir_all(&logs).map_err(describe)?;
    let file = File::create(&log).map_err(describe)?;
    let twin = file.try_clone().map_err(describe)?;
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(file).stderr(twin).process_group(0);
    if command.get_current_dir().is_none() {
        command.current_dir(workspace::root());
    }
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if begin.elapsed() > LIMIT => {
                // The group, because test harnesses have children of their own.
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                let _ = child.wait();
                break None;
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    };
    let output = fs::read(&log).map_err(describe)?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if status.is_none() {
        output.push_str("\nstopped: it took longer than 25 minutes\n");
    }
    Ok(Finished { output, status })
}

/// Hands over to the measurements in `bench/`, with the terminal as it is.
pub fn bench(arguments: &[&str]) -> ExitCode {
    let script = workspace::root().join("bench/run");
    if !Path::new(&script).is_file() {
        eprintln!("error: no measurements here: bench/run: this version has none");
        return ExitCode::from(2);
    }
    let status = Command::new(script).args(arguments).current_dir(workspace::root()).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot run measurements: bench/run: {error}");
            ExitCode::from(2)
        }
    }
}
