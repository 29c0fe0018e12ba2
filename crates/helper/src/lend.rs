// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The helper's side: an instance for each recorder, with the rights to just what it needs.
//!
//! Files to be written are given to the user who asked, files to be read to that user's group:
//! tracefs lets the group read. Directories above stay closed; the recorder gets in by the
//! descriptor alone.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, chown, lchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::loans::{Counted, Loans};
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

/// Who borrows and never switches on what was lent gives it back after so long. A recording switches
/// on at once; one that is paused had been on.
const IDLE: Duration = Duration::from_secs(60);
/// Between two looks at whether that is so.
const LOOK: Duration = Duration::from_secs(5);
/// Time that a recorder has to take an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Time that a recorder has to read why it was refused, and how many have it at a time.
const REFUSED: Duration = Duration::from_secs(1);
const REFUSED_MAX: usize = 8;
/// Events that one recorder may ask for, also those that there are not.
const ASKED_MAX: usize = 1 << 16;
/// Interval between attempts to remove an instance that a process has open.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Makes instances and takes them away.
#[derive(Debug, Clone)]
pub struct Lender {
    tracefs: PathBuf,
    loans: Arc<Loans>,
    /// Recorders that were refused and are read to their end.
    refused: Arc<AtomicUsize>,
}

impl Lender {
    /// Of a tracing file system.
    ///
    /// Errors: it is none, or there is no right to make instances.
    pub fn new(tracefs: &Path) -> io::Result<Self> {
        fs::read_dir(tracefs.join("instances"))?;
        fs::File::open(tracefs.join("available_events"))?;
        Ok(Self { tracefs: tracefs.to_owned(), loans: Arc::default(), refused: Arc::default() })
    }

    /// Serves one recorder until it closes the connection, and returns when the instance is gone.
    ///
    /// Errors: of the connection or the file system; the instance is taken away all the same.
    pub fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        client.set_write_timeout(Some(ANSWER))?;
        let peer = rustix::net::sockopt::socket_peercred(&client)?;
        let (user, group) = (peer.uid.as_raw(), peer.gid.as_raw());
        let counted = match self.loans.lend(user) {
            Ok(counted) => counted,
            Err(refusal) => return self.refuse(client, &refusal.to_string()),
        };
        let name = format!("{PREFIX}{}-{}", std::process::id(), counted.number());
        let path = self.tracefs.join("instances").join(name);
        fs::create_dir(&path)?;
        let served = hand_over(&path, user, group)
            .and_then(|()| greet(&client, &path))
            .and_then(|()| answer(&mut client, &path, user, group));
        if let Err(error) = &served {
            // The recorder may be gone: then no reply is needed.
            let _ = send_line(&client, &format!("error: {error}"));
        }
        drop(client);
        take_away(&path, &counted);
        served
    }

    /// Says why, and reads what has been asked in the meantime: closing a socket with unread bytes resets
    /// the connection, and a recorder that sends before it reads would never see the reason. Few wait so
    /// at a time: who connects again and again must not take the connections of others.
    fn refuse(&self, client: UnixStream, refusal: &str) -> io::Result<()> {
        send_line(&client, &format!("error: {refusal}"))?;
        // No other memory is published by this count.
        let is_one_of_few = self.refused.fetch_add(1, Ordering::Relaxed) < REFUSED_MAX;
        let read = if is_one_of_few { read_until_closed(client) } else { Ok(()) };
        self.refused.fetch_sub(1, Ordering::Relaxed);
        read
    }

    /// Removes instances of helpers and recorders that are gone. An instance with open files counts
    /// as lent to its user until it can be removed.
    pub fn remove_abandoned(&self) {
        let instances = fs::read_dir(self.tracefs.join("instances"));
        for entry in instances.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            if owner.is_none_or(|pid| Path::new("/proc").join(pid.to_string()).exists()) {
                continue;
            }
            let path = entry.path();
            if remove(&path) {
                continue;
            }
            // A recorder that outlives the helper that lent it an instance continues to use it.
            let user = fs::metadata(path.join("tracing_on")).map_or(0, |about| about.uid());
            let counted = self.loans.adopt(user);
            let wait = move || {
                let _counted = counted;
                while !remove(&path) {
                    sleep(TRY_AGAIN);
                }
            };
            // Without a thread it stays, as long as this helper runs.
            let _ = thread::Builder::new().name("left-over".to_owned()).spawn(wait);
        }
    }
}

fn read_until_closed(mut client: UnixStream) -> io::Result<()> {
    client.shutdown(Shutdown::Write)?;
    let until = Instant::now() + REFUSED;
    let mut unread = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut unread) {
            Ok(0) => return Ok(()),
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
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
    client.set_read_timeout(Some(LOOK))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut line, mut lent, mut asked) = (Vec::new(), HashSet::new(), 0);
    let lent_at = Instant::now();
    let mut was_on = false;
    loop {
        // What has come of a line is kept over a look.
        let left = (LINE_BYTES - line.len().min(LINE_BYTES)) as u64;
        match reader.by_ref().take(left).read_until(b'\n', &mut line) {
            Ok(0) if line.is_empty() => return Ok(()),
            Ok(_) => {}
            Err(error) if is_later(&error) => {
                was_on = was_on || is_on(path);
                if !was_on && lent_at.elapsed() > IDLE {
                    return Err(io::Error::other("nothing was recorded for a minute"));
                }
                continue;
            }
            Err(error) => return Err(error),
        }
        let text = std::str::from_utf8(&line).map_err(io::Error::other)?;
        let answer = match Request::parse(text) {
            Err(wrong) => format!("error: {wrong}"),
            Ok(Request::Events(events)) => {
                asked += events.len();
                if asked > ASKED_MAX {
                    return Err(io::Error::other("too many events are asked for"));
                }
                for (system, event) in events {
                    // One that there is not is the recorder's to notice.
                    if lent.insert(format!("{system}:{event}")) {
                        let _ = lend_event(path, system, event, user, group);
                    }
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
        line.clear();
        send_line(client, &answer)?;
    }
}

/// Sends one line by one system call: formatted output would go out in pieces.
fn send_line(mut client: &UnixStream, line: &str) -> io::Result<()> {
    client.write_all(format!("{line}\n").as_bytes())
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn is_on(path: &Path) -> bool {
    fs::read(path.join("tracing_on")).is_ok_and(|text| text.starts_with(b"1"))
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

/// Takes an instance from its user and removes it. It is busy while a process has a file of it
/// open: until then it is switched off, has minimal buffers, and counts as lent.
fn take_away(path: &Path, counted: &Counted) {
    revoke(path);
    for wait_ms in (0..7).map(|power| 10 << power) {
        if remove(path) {
            return;
        }
        sleep(Duration::from_millis(wait_ms));
    }
    counted.is_left_over();
    while !remove(path) {
        // Who has kept a switch open may have used it.
        quiet(path);
        sleep(TRY_AGAIN);
    }
}

/// Whether an instance is gone.
fn remove(path: &Path) -> bool {
    match fs::remove_dir(path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Nothing is recorded any more, and what was is thrown away.
fn quiet(path: &Path) {
    for (name, text) in [("tracing_on", "0"), ("events/enable", "0"), ("trace", "")] {
        let _ = fs::write(path.join(name), text);
    }
    // The least that the kernel gives.
    let _ = fs::write(path.join("buffer_size_kb"), "1");
}

/// Nothing of an instance can be opened by its user any more.
fn revoke(path: &Path) {
    for name in WRITTEN {
        let _ = lchown(path.join(name), Some(0), Some(0));
    }
    for name in READ {
        let _ = readable(&path.join(name), 0);
    }
    for cpu in fs::read_dir(path.join("per_cpu")).into_iter().flatten().flatten() {
        for name in ["trace_pipe_raw", "stats", "."] {
            let _ = readable(&cpu.path().join(name), 0);
        }
    }
    quiet(path);
}
