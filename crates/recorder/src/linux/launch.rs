// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starting the program to be recorded.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use lateralis_ring::RingMode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::rules;
use crate::error::Error;
use crate::options::RecordOptions;
use crate::report;

/// Patterns longer than this cannot be handed over in the environment.
const REQUEST_BYTES_MAX: usize = 2000;

/// The text of `LATERALIS_RECORD` [ring-abi §8].
pub(super) fn record_request(session: u64, options: &RecordOptions) -> Result<String, Error> {
    let mode = match options.mode {
        RingMode::Discard => "discard",
        RingMode::Overwrite => "overwrite",
    };
    // With a start trigger nothing is enabled until the trigger is set.
    let waits = options.trigger.as_ref().is_some_and(|trigger| trigger.start.is_some());
    let enable = if waits {
        String::new()
    } else if options.starts_stopped() {
        rules::patterns(&options.rules).to_string()
    } else {
        options.enable.to_string()
    };
    let request = format!(
        "session={session:x};buffer={};packet={};mode={mode};cap={};enable={enable}",
        options.buffer_bytes, options.packet_bytes, options.cap_bytes
    );
    if request.len() > REQUEST_BYTES_MAX {
        return Err(Error::Refused(format!(
            "patterns are too long: bytes={}, greatest={}",
            request.len(),
            REQUEST_BYTES_MAX
        )));
    }
    Ok(request)
}

/// Lets this process open as many files as it may; the former limit, for the child.
pub(super) fn raise_file_limit() -> Option<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    setrlimit(Resource::Nofile, raised).ok()?;
    Some(before)
}

/// What the new process does before it becomes the command.
pub(super) struct BeforeExec {
    /// The limit of open files to give it back.
    pub(super) file_limit: Option<Rlimit>,
    /// Where it writes its number.
    pub(super) adoptions: Vec<OwnedFd>,
}

impl BeforeExec {
    /// Context: between fork and exec: only system calls.
    fn act(&self) -> std::io::Result<()> {
        if let Some(limit) = self.file_limit {
            setrlimit(Resource::Nofile, limit)?;
        }
        let mut digits = [0; 12];
        for file in &self.adoptions {
            let text = decimal(std::process::id(), &mut digits);
            // Not being looked at by a source does not keep a program from running.
            let _ = rustix::io::write(file, text);
        }
        Ok(())
    }
}

/// A number as text, without memory of its own.
fn decimal(mut number: u32, digits: &mut [u8; 12]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Starts the command with its terminal, files and signals as they are here.
pub(super) fn spawn(
    command: &[OsString],
    area_dir: &Path,
    request: &str,
    environment: &[(OsString, OsString)],
    before: BeforeExec,
) -> Result<Child, Error> {
    let (program, arguments) = command.split_first().ok_or(Error::NoCommand)?;
    let mut child = Command::new(program);
    child.args(arguments).env("LATERALIS_RECORD", request).env("LATERALIS_DIR", area_dir);
    for (name, value) in environment {
        if name == OsStr::new("LD_PRELOAD") {
            // In front of what is there: the user's own libraries stay.
            let mut list = value.clone();
            if let Some(old) = std::env::var_os("LD_PRELOAD").filter(|old| !old.is_empty()) {
                list.push(":");
                list.push(old);
            }
            child.env(name, list);
        } else {
            child.env(name, value);
        }
    }
    if before.file_limit.is_some() || !before.adoptions.is_empty() {
        // SAFETY: `act` makes system calls only; nothing else runs between fork and exec.
        unsafe {
            child.pre_exec(move || before.act());
        }
    }
    child
        .spawn()
        .map_err(|cause| Error::Launch { command: program.to_string_lossy().into_owned(), cause })
}

/// A command and how it ended, for the report.
pub(super) fn command_report(command: &[OsString], status: Option<ExitStatus>) -> report::Command {
    let signal = status.and_then(|status| status.signal());
    report::Command {
        arguments: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_status: status
            .and_then(|status| status.code().or_else(|| signal.map(|number| 128 + number))),
        signal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_text() {
        for number in [0, 9, 10, 4_194_304, u32::MAX] {
            assert_eq!(decimal(number, &mut [0; 12]), number.to_string().as_bytes());
        }
    }
}
