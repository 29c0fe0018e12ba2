// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The helper's side: an instance for each recorder, with the rights to just what it needs.
//!
//! Files to be written are given to the user who asked, files to be read to that user's group:
//! tracefs lets the group read. Directories above stay closed; the recorder gets in by the
//! descriptor alone.

use std::fs;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{chown, lchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::{GREETING, LINE_BYTES, Request};

/// Names of instances begin so, as those that recorders make themselves.
const PREFIX: &str = "lateralis-";
/// What a recorder writes: switches and clock, which threads count, which wake-up.
const WRITTEN: [&str; 6] = [
    "tracing_on",
    "trace_clock",
    "set_event_pid",
    "buffer_percent",
    "options/event-fork",
    "options/record-cmd",
];
/// What it reads besides.
const READ: [&str; 7] = [
    "",
    "events",
    "events/header_page",
    "options",
    "per_cpu",
    "buffer_size_kb",
    "buffer_subbuf_size_kb",
];

/// Makes instances and takes them away.
#[derive(Debug, Clone)]
pub struct Lender {
    tracefs: PathBuf,
}

impl Lender {
    /// Of a tracing file system.
    ///
    /// Errors: it is none, or there is no right to make instances.
    pub fn new(tracefs: &Path) -> io::Result<Self> {
        fs::read_dir(tracefs.join("instances"))?;
        fs::File::open(tracefs.join("available_events"))?;
        Ok(Self { tracefs: tracefs.to_owned() })
    }

    /// Serves one recorder until it closes the connection. `number`: of all that this process
    /// serves.
    ///
    /// Errors: of the connection or the file system; the instance is taken away all the same.
    pub fn serve(&self, mut client: UnixStream, number: u64) -> io::Result<()> {
        let peer = rustix::net::sockopt::socket_peercred(&client)?;
        let (user, group) = (peer.uid.as_raw(), peer.gid.as_raw());
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = self.tracefs.join("instances").join(name);
        fs::create_dir(&path)?;
        let served = hand_over(&path, user, group)
            .and_then(|()| greet(&client, &path))
            .and_then(|()| answer(&mut client, &path, user, group));
        if let Err(error) = &served {
            // The recorder may be gone: then nobody wants to know.
            let _ = writeln!(client, "error: {error}");
        }
        drop(client);
        take_away(&path);
        served
    }
}

fn greet(client: &UnixStream, path: &Path) -> io::Result<()> {
    let directory = fs::File::open(path)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [directory.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let line = format!("{GREETING}\n");
    // A line this short goes at once: the buffer of the socket is empty.
    let flags = SendFlags::NOSIGNAL;
    rustix::net::sendmsg(client, &[IoSlice::new(line.as_bytes())], &mut control, flags)?;
    Ok(())
}

fn answer(client: &mut UnixStream, path: &Path, user: u32, group: u32) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_BYTES as u64).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match Request::parse(&line) {
            Err(wrong) => format!("error: {wrong}"),
            Ok(Request::Events(events)) => {
                for (system, event) in events {
                    // One that there is not is the recorder's to notice.
                    let _ = lend_event(path, system, event, user, group);
                }
                "ok".to_owned()
            }
            Ok(Request::BufferKb(kb)) => {
                match fs::write(path.join("buffer_size_kb"), kb.to_string()) {
                    Ok(()) => "ok".to_owned(),
                    Err(error) => format!("error: buffer_size_kb: {error}"),
                }
            }
        };
        writeln!(client, "{answer}")?;
    }
}

/// Gives what every recorder needs.
fn hand_over(path: &Path, user: u32, group: u32) -> io::Result<()> {
    fs::write(path.join("tracing_on"), "0")?;
    for name in READ {
        readable(&path.join(name), group)?;
    }
    for name in WRITTEN {
        // Options come and go with versions of the kernel.
        match lchown(path.join(name), Some(user), Some(group)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for cpu in fs::read_dir(path.join("per_cpu"))?.flatten() {
        readable(&cpu.path(), group)?;
        for name in ["trace_pipe_raw", "stats"] {
            readable(&cpu.path().join(name), group)?;
        }
    }
    for system in fs::read_dir(path.join("events"))?.flatten() {
        readable(&system.path(), group)?;
    }
    Ok(())
}

fn readable(path: &Path, group: u32) -> io::Result<()> {
    chown(path, None, Some(group))
}

fn lend_event(path: &Path, system: &str, event: &str, user: u32, group: u32) -> io::Result<()> {
    let folder = path.join("events").join(system).join(event);
    readable(&folder, group)?;
    readable(&folder.join("format"), group)?;
    lchown(folder.join("enable"), Some(user), Some(group))
}

/// Removes an instance; it is busy as long as somebody has a file of it open.
fn take_away(path: &Path) {
    let _ = fs::write(path.join("tracing_on"), "0");
    for wait_ms in (0..7).map(|power| 10 << power) {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                sleep(Duration::from_millis(wait_ms));
            }
            _ => return,
        }
    }
}

/// Removes instances of helpers and recorders that are gone.
pub fn remove_abandoned(tracefs: &Path) {
    for entry in fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // One that is still in use stays; the next helper tries again.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
