// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A line: a serial device, or a socket connected to one.

use std::convert::Infallible;
use std::fmt;
use std::fs::OpenOptions;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{ControlModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use crate::error::Error;

/// Timeout for connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Address of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SerialFrom {
    /// A serial device, or another file that can be read.
    Device(PathBuf),
    /// `HOST:PORT`, as for QEMU's `-serial tcp:…,server` and `ser2net`.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for SerialFrom {
    type Err = Infallible;

    /// `tcp:HOST:PORT`, `unix:PATH`, or a path.
    fn from_str(text: &str) -> Result<SerialFrom, Infallible> {
        Ok(match (text.strip_prefix("tcp:"), text.strip_prefix("unix:")) {
            (Some(address), _) => SerialFrom::Tcp(address.to_owned()),
            (_, Some(path)) => SerialFrom::Unix(path.into()),
            _ => SerialFrom::Device(text.into()),
        })
    }
}

impl fmt::Display for SerialFrom {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SerialFrom::Device(path) => write!(text, "{}", path.display()),
            SerialFrom::Tcp(address) => write!(text, "tcp:{address}"),
            SerialFrom::Unix(path) => write!(text, "unix:{}", path.display()),
        }
    }
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Number of bytes read.
    Bytes(usize),
    /// No bytes yet.
    Nothing,
    /// The other end has closed the line.
    Ended,
}

/// An open line.
#[derive(Debug)]
pub(super) struct Line {
    fd: OwnedFd,
    /// Previous settings of the device.
    before: Option<Termios>,
    /// It may become available again: not a plain file.
    may_return: bool,
}

impl Line {
    /// Opens a line. A serial device is set to raw bytes without flow control; its settings are restored
    /// later.
    ///
    /// Errors: those of the operating system.
    pub(super) fn open(from: &SerialFrom, baud: u32) -> Result<Line, Error> {
        let error = |cause| Error::Line { place: from.to_string(), cause };
        let socket = |fd: OwnedFd| Line { fd, before: None, may_return: true };
        match from {
            SerialFrom::Tcp(name) => Ok(socket(connect(name).map_err(error)?.into())),
            SerialFrom::Unix(path) => Ok(socket(UnixStream::connect(path).map_err(error)?.into())),
            SerialFrom::Device(path) => {
                // Read only: nothing is ever sent. Without NONBLOCK, opening would wait for a modem line.
                let device = OpenOptions::new()
                    .read(true)
                    .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
                    .open(path)
                    .map_err(error)?;
                let kind = device.metadata().map_err(error)?.file_type();
                let fd = OwnedFd::from(device);
                let before = if isatty(&fd) {
                    Some(set_raw(&fd, baud).map_err(|cause| error(cause.into()))?)
                } else {
                    None
                };
                Ok(Line { fd, before, may_return: kind.is_char_device() || kind.is_socket() })
            }
        }
    }

    /// Whether a line that has ended may become available again.
    pub(super) fn may_return(&self) -> bool {
        self.may_return
    }

    /// Waits at most `time` for bytes.
    pub(super) fn read(&mut self, buffer: &mut [u8], time: Duration) -> Read {
        let timeout = rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        // A signal ends the wait early, which is harmless.
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Read::Nothing,
            Ok(_) => {}
            Err(_) => return Read::Ended,
        }
        match rustix::io::read(&self.fd, buffer) {
            Ok(0) => Read::Ended,
            Ok(count) => Read::Bytes(count),
            Err(Errno::INTR | Errno::AGAIN) => Read::Nothing,
            // A device was unplugged, or a connection was reset.
            Err(_) => Read::Ended,
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A removed device needs no restoring.
            let _ = tcsetattr(&self.fd, OptionalActions::Now, before);
        }
    }
}

fn connect(name: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::ErrorKind::AddrNotAvailable.into();
    for address in name.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// Sets raw bytes at this speed, without flow control or modem lines [termios(3)]; returns the previous
/// settings.
fn set_raw(fd: impl AsFd, baud: u32) -> rustix::io::Result<Termios> {
    let before = tcgetattr(&fd)?;
    let mut raw = before.clone();
    raw.make_raw();
    raw.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    raw.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB;
    raw.set_speed(baud)?;
    tcsetattr(&fd, OptionalActions::Now, &raw)?;
    Ok(before)
}
