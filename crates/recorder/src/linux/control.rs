// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Communication with a running recorder: one datagram to `recorder-PID.sock` in the directory of
//! areas, one back. Only its user can access the socket, so every process that can send to it may.
//!
//! Interfaces for other tools, which return values instead of texts: [`recorders`] finds
//! running recorders, and the recording of each; [`super::targets`] starts, stops and flushes
//! the recording of a program, [`super::discovery::set_enabled`] changes its enabled events,
//! and [`super::snapshot`] reads the contents of rings.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::SocketAddrUnix;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::options::Progress;

/// A request to a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Report the state.
    Status,
    /// Write the contents of open packets now.
    Flush,
    /// Disable all events; the recording continues.
    Stop,
    /// Enable them again.
    Start,
    /// End the recording.
    End,
}

const WORDS: [(&str, Request); 5] = [
    ("status", Request::Status),
    ("flush", Request::Flush),
    ("stop", Request::Stop),
    ("start", Request::Start),
    ("end", Request::End),
];

/// The response of a recorder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Why the request was rejected.
    pub refused: Option<String>,
    /// The output directory.
    pub output: Option<PathBuf>,
    /// Events written.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Processes seen.
    pub processes: u64,
    /// Tracing is paused.
    pub paused: bool,
    /// Milliseconds since the start of the recording.
    pub elapsed_ms: u64,
}

fn server_path(area_dir: &Path, pid: u32) -> PathBuf {
    area_dir.join(format!("recorder-{pid}.sock"))
}

/// Binds a socket that only its user can send to, regardless of umask and the mode of the directory.
fn bind(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // Its file gets the mode that the socket has before it is bound.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The recorder's side.
#[derive(Debug)]
pub(super) struct ControlServer {
    socket: UnixDatagram,
    path: PathBuf,
}

impl ControlServer {
    pub(super) fn new(area_dir: &Path) -> io::Result<ControlServer> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = server_path(area_dir, std::process::id());
        let socket = match bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // The name belongs to another session of this process, or to a dead one.
                if UnixDatagram::unbound()?.connect(&path).is_ok() {
                    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                    let path = path.with_extension(format!("{number}.sock"));
                    let socket = bind(&path)?;
                    socket.set_nonblocking(true)?;
                    return Ok(ControlServer { socket, path });
                }
                std::fs::remove_file(&path)?;
                bind(&path)?
            }
            other => other?,
        };
        socket.set_nonblocking(true)?;
        Ok(ControlServer { socket, path })
    }

    pub(super) fn socket(&self) -> &UnixDatagram {
        &self.socket
    }

    /// The next request; never blocks. Invalid requests are dropped.
    pub(super) fn next(&self) -> Option<(Request, SocketAddr)> {
        let mut buffer = [0; 64];
        for _ in 0..64 {
            let (bytes, client) = self.socket.recv_from(&mut buffer).ok()?;
            let word = WORDS.iter().find(|(word, _)| word.as_bytes() == &buffer[..bytes]);
            if let Some((_, request)) = word {
                return Some((*request, client));
            }
        }
        None
    }

    /// Sends a response; errors of the client are ignored.
    pub(super) fn answer(&self, client: &SocketAddr, result: Result<(Progress, PathBuf), Error>) {
        let answer = match result {
            Ok((progress, output)) => Answer {
                refused: None,
                output: Some(output),
                events: progress.events,
                lost: progress.lost,
                bytes: progress.bytes,
                processes: progress.processes,
                paused: progress.paused,
                elapsed_ms: progress.elapsed.as_millis() as u64,
            },
            Err(error) => Answer {
                refused: Some(error.to_string()),
                output: None,
                events: 0,
                lost: 0,
                bytes: 0,
                processes: 0,
                paused: false,
                elapsed_ms: 0,
            },
        };
        let text = serde_json::to_vec(&answer).unwrap_or_default();
        let _ = self.socket.send_to_addr(&text, client);
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A running recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningRecorder {
    /// Its process id.
    pub pid: u32,
    /// Its response when it was found: directory and state.
    pub answer: Answer,
    area_dir: PathBuf,
    socket: PathBuf,
}

impl RunningRecorder {
    /// Sends a request; waits at most two seconds for the response.
    ///
    /// Errors: it has ended, does not respond, or rejects the request.
    pub fn ask(&self, request: Request) -> Result<Answer, Error> {
        ask_at(&self.area_dir, &self.socket, self.pid, request)
    }
}

/// The process whose recorder has a socket of this name.
fn recorder_of(name: &str) -> Option<u32> {
    let number = name.strip_prefix("recorder-")?.strip_suffix(".sock")?;
    // A second recorder of one process has a number appended.
    number.split('.').next()?.parse().ok()
}

/// All responding recorders of this user, including those that record no program. A killed one
/// leaves its socket, and does not respond.
///
/// Cost: a request to each; two seconds for one that is stuck.
pub fn recorders(dir: Option<&Path>) -> Vec<RunningRecorder> {
    let area_dir = super::dirs::area_dir(dir);
    let entries = std::fs::read_dir(&area_dir).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let pid = recorder_of(entry.file_name().to_str()?)?;
        let socket = entry.path();
        let answer = ask_at(&area_dir, &socket, pid, Request::Status).ok()?;
        Some(RunningRecorder { pid, answer, area_dir: area_dir.clone(), socket })
    });
    let mut found: Vec<RunningRecorder> = found.collect();
    found.sort_by(|a, b| (a.pid, &a.socket).cmp(&(b.pid, &b.socket)));
    found
}

/// Sends a request to the recorder with this process id; waits at most two seconds.
///
/// Errors: it does not exist, does not respond, or rejects the request.
pub fn ask(area_dir: &Path, recorder_pid: u32, request: Request) -> Result<Answer, Error> {
    ask_at(area_dir, &server_path(area_dir, recorder_pid), recorder_pid, request)
}

fn ask_at(
    area_dir: &Path,
    server: &Path,
    recorder_pid: u32,
    request: Request,
) -> Result<Answer, Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let no_answer = || Error::NoAnswer { recorder_pid };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let own = area_dir.join(format!(".client-{}-{number}.sock", std::process::id()));
    let _ = std::fs::remove_file(&own);
    let socket = bind(&own).map_err(|cause| Error::file("make socket", &own, cause))?;
    let talk = || -> io::Result<Vec<u8>> {
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        socket.set_write_timeout(Some(Duration::from_secs(2)))?;
        let word = WORDS.iter().find(|(_, known)| *known == request).map_or("", |(word, _)| word);
        socket.send_to(word.as_bytes(), server)?;
        let mut buffer = vec![0; 64 << 10];
        let bytes = socket.recv(&mut buffer)?;
        buffer.truncate(bytes);
        Ok(buffer)
    };
    let answered = talk();
    let _ = std::fs::remove_file(&own);
    let answer: Answer =
        serde_json::from_slice(&answered.map_err(|_| no_answer())?).map_err(|_| no_answer())?;
    match answer.refused {
        Some(reason) => Err(Error::Refused(reason)),
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_say_whose_they_are() {
        assert_eq!(recorder_of("recorder-12.sock"), Some(12));
        assert_eq!(recorder_of("recorder-12.3.sock"), Some(12));
        assert_eq!(recorder_of("recorder-.sock"), None);
        assert_eq!(recorder_of(".client-12-0.sock"), None);
        assert_eq!(recorder_of("recorder-x.sock"), None);
    }

    #[test]
    fn a_socket_is_of_its_user_alone_and_a_dead_one_gives_its_name() {
        let dir = std::env::temp_dir().join(format!("lateralis-control-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        drop(UnixDatagram::bind(server_path(&dir, std::process::id())).unwrap());
        let servers = [ControlServer::new(&dir).unwrap(), ControlServer::new(&dir).unwrap()];
        for server in &servers {
            let mode = std::os::unix::fs::MetadataExt::mode(&server.path.metadata().unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_ne!(servers[0].path, servers[1].path);
        drop(servers);
        std::fs::remove_dir(&dir).unwrap();
    }
}
