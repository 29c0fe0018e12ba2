// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies on the processes of this machine: facts about a process, the plan for it, and
//! the request that programs read when they start [ring-abi §8].

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::discovery::{AreaInfo, OpenArea, living};
use super::processes;
use super::rings::RingWish;
use super::session_lock::is_held;
use super::traced::{resolved, words};
use super::verified::VerifiedProcess;
use crate::error::Error;
use crate::filter::Filter;
use crate::options::RecordOptions;
use crate::pattern::Patterns;
use crate::policy::{self, Common, Facts};
use crate::sieve::ThreadRule;

/// Name of the request file, in the directory of areas.
const REQUEST_NAME: &str = "record.request";
/// Maximum number of ancestors in a label.
const ANCESTORS_MAX: usize = 64;
/// Maximum number of bytes read from the list of users.
const USERS_BYTES_MAX: usize = 1 << 20;

/// The recording plan of one program.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) wish: RingWish,
    pub(super) enable: Patterns,
    pub(super) filters: Vec<Filter>,
    /// Rules for threads; empty: all events of all threads.
    pub(super) threads: Vec<ThreadRule>,
    /// The recording for its events; `None`: that of the session.
    pub(super) output: Option<PathBuf>,
}

/// The plan of the options for the program of an area; `None`: not recorded.
pub(super) fn wanted(options: &RecordOptions, area: &OpenArea) -> Option<Wanted> {
    let header = &area.header;
    let wanted = match &options.policies {
        None => None,
        Some(policies) => {
            let command = words(&header.command);
            let exe = resolved(&String::from_utf8_lossy(&header.exe));
            let process = living(area).into_iter().next();
            let facts = facts(process.as_ref(), &exe, &command, area.file.owner());
            Some(policies.wanted(&facts)?)
        }
    };
    let (choice, threads) = match wanted {
        Some(wanted) => (Some(wanted.choice), wanted.threads),
        None => (None, Vec::new()),
    };
    let choice = choice.as_ref();
    Some(Wanted {
        wish: RingWish {
            buffer_bytes: choice.and_then(|one| one.buffer_bytes).unwrap_or(options.buffer_bytes),
            packet_bytes: choice.and_then(|one| one.packet_bytes).unwrap_or(options.packet_bytes),
            cap_bytes: options.cap_bytes,
            mode: choice.and_then(|one| one.mode).unwrap_or(options.mode),
        },
        enable: choice.map_or(&options.enable, |one| &one.enable).clone(),
        filters: choice.map_or(&options.filters, |one| &one.filters).clone(),
        threads,
        output: choice.and_then(|one| one.output.clone()),
    })
}

/// Facts for policies; those from /proc are used only of a verified process.
fn facts(process: Option<&VerifiedProcess>, program: &str, command: &[String], uid: u32) -> Facts {
    let pid = process.map(VerifiedProcess::pid);
    Facts {
        program: program.to_owned(),
        command: command.join(" "),
        label: pid.map(label).unwrap_or_default(),
        cgroup: pid.map(cgroup).unwrap_or_default(),
        uid,
        user: user_name(uid),
    }
}

/// The facts of a traceable program.
pub fn facts_of(area: &AreaInfo) -> Facts {
    let open = super::discovery::open(&area.path).ok();
    let process = open.and_then(|open| living(&open).into_iter().next());
    facts(process.as_ref(), &area.exe, &area.command, area.uid)
}

/// Names of the programs from the first ancestor to the process itself.
fn label(pid: u32) -> String {
    let mut names = Vec::new();
    let mut current = pid;
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = processes::parent(current) else { break };
        names.push(processes::program_name(current));
        if parent == 0 {
            break;
        }
        current = parent;
    }
    names.reverse();
    names.join(" -> ")
}

/// Path of the control group: of version 2, else of the first hierarchy.
fn cgroup(pid: u32) -> String {
    let text = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    let first = || text.lines().next().and_then(|line| line.splitn(3, ':').nth(2));
    unified.or_else(first).unwrap_or_default().to_owned()
}

/// A user's name from /etc/passwd.
fn user_name(uid: u32) -> String {
    let text = fs::read("/etc/passwd").unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..text.len().min(USERS_BYTES_MAX)]);
    let found = text.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    found.unwrap_or_default()
}

/// The request to programs that start from now on.
pub(super) fn request_text(
    options: &RecordOptions,
    session: u64,
    launched: bool,
) -> Result<String, Error> {
    let common = Common {
        session,
        recorder_pid: std::process::id(),
        buffer_bytes: options.buffer_bytes,
        packet_bytes: options.packet_bytes,
        cap_bytes: options.cap_bytes,
        mode: options.mode,
        launched,
        waits: options.trigger.as_ref().is_some_and(|trigger| trigger.start.is_some()),
    };
    let policies = options.policies.as_ref().cloned().unwrap_or_default();
    policy::request(&policies, &common).map_err(|error| Error::Refused(error.to_string()))
}

/// A request to every starting program. The lock on its file shows
/// programs that the recorder is running, and ends with this process in any case.
#[derive(Debug)]
pub(super) struct Standing {
    path: PathBuf,
    _lock: File,
}

impl Standing {
    /// Publishes the request.
    ///
    /// Errors: another recorder has published one, or the file cannot be created.
    pub(super) fn publish(area_dir: &Path, text: &str) -> Result<Standing, Error> {
        let path = area_dir.join(REQUEST_NAME);
        if is_held(&path) {
            return Err(Error::Refused(format!(
                "another recorder applies policies to all programs of {}: end it first",
                area_dir.display()
            )));
        }
        let hidden = area_dir.join(format!(".{}-{REQUEST_NAME}", std::process::id()));
        let make = || -> std::io::Result<File> {
            let _ = fs::remove_file(&hidden);
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&hidden, &path)?;
            Ok(file)
        };
        let lock = make().map_err(|cause| Error::file("write", &path, cause))?;
        Ok(Standing { path, _lock: lock })
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_of_this_process_what_policies_ask() {
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_string_lossy().into_owned();
        let path = std::env::temp_dir().join(format!("lateralis-facts-{}", std::process::id()));
        fs::write(&path, [0; 4096]).unwrap();
        let area = super::super::area_file::AreaFile::open(&path).unwrap();
        let access = super::super::mapping::Access::Shared;
        let mapping = super::super::mapping::Mapping::of_file(area.file(), access).unwrap();
        let process = VerifiedProcess::at(std::process::id(), &area);
        let command = ["a".into(), "b".into()];
        let said = facts(process.as_ref(), &own.to_string_lossy(), &command, 0);
        let unchecked = facts(None, &own.to_string_lossy(), &command, 0);
        assert!(unchecked.label.is_empty() && unchecked.cgroup.is_empty());
        drop(mapping);
        fs::remove_file(&path).unwrap();
        assert!(said.label.ends_with(&name), "{said:?}");
        assert!(said.label.contains(" -> "), "{said:?}");
        assert_eq!(said.command, "a b");
        assert_eq!(said.user, "root");
    }

    #[test]
    fn one_request_stands_at_a_time_and_goes_with_its_recorder() {
        let dir = std::env::temp_dir().join(format!("lateralis-request-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let first = Standing::publish(&dir, "one").unwrap();
        assert!(matches!(Standing::publish(&dir, "two"), Err(Error::Refused(_))));
        assert_eq!(fs::read_to_string(dir.join(REQUEST_NAME)).unwrap(), "one");
        drop(first);
        assert!(!dir.join(REQUEST_NAME).exists());
        // The file of a killed recorder is replaced.
        fs::write(dir.join(REQUEST_NAME), "old").unwrap();
        let second = Standing::publish(&dir, "new").unwrap();
        assert_eq!(fs::read_to_string(dir.join(REQUEST_NAME)).unwrap(), "new");
        drop(second);
        fs::remove_dir_all(&dir).unwrap();
    }
}
