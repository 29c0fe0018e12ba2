// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts the program to be recorded.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use lateralis_ring::RingMode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::gate::Waits;
use super::inherited::Inherited;
use super::{processes, rules};
use crate::error::Error;
use crate::options::{RecordOptions, rings_grow};
use crate::report;

/// Maximum size of patterns that are passed in the environment.
const REQUEST_BYTES_MAX: usize = 2000;

/// The text of `LATERALIS_RECORD` [ring-abi §8]. `prepared`: names of prepared areas.
pub(super) fn record_request(
    session: u64,
    options: &RecordOptions,
    prepared: u32,
) -> Result<String, Error> {
    let mode = match options.mode {
        RingMode::Discard => "discard",
        RingMode::Overwrite => "overwrite",
    };
    // With a start trigger no event is enabled until the trigger is set.
    let waits = options.trigger.as_ref().is_some_and(|trigger| trigger.start.is_some());
    let enable = if waits {
        String::new()
    } else if options.starts_stopped() {
        rules::patterns(&options.rules).to_string()
    } else {
        options.enable.to_string()
    };
    // Saves the program a system call.
    let cpus = possible_cpus().map_or(String::new(), |cpus| format!("cpus={cpus};"));
    let namespace = processes::own_namespace();
    let namespace = if namespace == 0 { String::new() } else { format!("pidns={namespace};") };
    let prepared = if prepared == 0 { String::new() } else { format!("prepared={prepared};") };
    let grow = if rings_grow(options.buffer_bytes) { "grow;" } else { "" };
    let request = format!(
        "session={session:x};recorder={};lock;{grow}{cpus}{namespace}{prepared}buffer={};packet={};\
         mode={mode};cap={};enable={enable}",
        std::process::id(),
        options.buffer_bytes,
        options.packet_bytes,
        options.cap_bytes
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

/// The session whose request is in a process's environment, which children inherit.
pub(super) fn inherited_session(pid: u32) -> Option<u64> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let request = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"LATERALIS_RECORD="))?;
    let text = std::str::from_utf8(request).ok()?;
    let session = text.split([';', '\n']).find_map(|item| item.strip_prefix("session="))?;
    u64::from_str_radix(session, 16).ok().filter(|session| *session != 0)
}

/// Bytes of each per-CPU ring of a program, within the limit for all its rings.
#[must_use]
pub fn ring_bytes(options: &RecordOptions) -> u64 {
    options.buffer_bytes.min(options.cap_bytes / possible_cpus().unwrap_or(1))
}

/// Number of possible CPUs of this machine, from the number of the last.
pub(super) fn possible_cpus() -> Option<u64> {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    let last: u64 = cpus.trim().rsplit(['-', ',']).next()?.parse().ok()?;
    last.checked_add(1)
}

/// Raises the limit of open files of this process to its maximum; returns the former one, for the child.
pub(super) fn raise_file_limit() -> Option<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    setrlimit(Resource::Nofile, raised).ok()?;
    Some(before)
}

/// Actions of the new process before it executes the command.
pub(super) struct BeforeExec {
    /// The limit of open files to restore.
    pub(super) file_limit: Option<Rlimit>,
    /// Files to write its pid to.
    pub(super) adoptions: Vec<OwnedFd>,
    /// Where it waits for sources that examine it first.
    pub(super) waits: Option<Waits>,
    /// State that the recorder changed for itself.
    pub(super) inherited: Inherited,
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
            // A failure of a source must not keep a program from running.
            let _ = rustix::io::write(file, text);
        }
        self.inherited.restore();
        self.waits.as_ref().map_or(Ok(()), Waits::pass)
    }
}

/// A number as text, without allocation.
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

/// Starts the command with the current terminal, files and signals.
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
            let old = std::env::var_os("LD_PRELOAD").filter(|old| !old.is_empty());
            child.env(name, preload_list(value, old));
        } else {
            child.env(name, value);
        }
    }
    // SAFETY: `act` makes only system calls; nothing else runs between fork and exec.
    unsafe {
        child.pre_exec(move || before.act());
    }
    child
        .spawn()
        .map_err(|cause| Error::Launch { command: program.to_string_lossy().into_owned(), cause })
}

/// Prepends the library to the user's own, but after that of a sanitizer, which must be first.
fn preload_list(library: &OsStr, own: Option<OsString>) -> OsString {
    let Some(mut own) = own else { return library.to_owned() };
    let has_sanitizer = String::from_utf8_lossy(own.as_encoded_bytes()).contains("asan");
    if has_sanitizer {
        own.push(":");
        own.push(library);
        return own;
    }
    let mut list = library.to_owned();
    list.push(":");
    list.push(own);
    list
}

/// The command and its exit status, for the report.
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
