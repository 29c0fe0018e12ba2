// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection to a peer, or one way of it: never waits longer than it is told.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// A pipe that is said to be writable takes so many bytes without waiting [pipe(7), PIPE_BUF].
const PIPE_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) enum Wire {
    /// Both ways; does not block.
    Socket(TcpStream),
    /// One way. Its descriptor is shared with others, so it stays as it is.
    Pipe(OwnedFd),
}

/// What a connection is ready for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ready {
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The peer is gone.
    pub(super) over: bool,
}

impl Wire {
    pub(super) fn socket(stream: TcpStream) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Wire::Socket(stream))
    }

    pub(super) fn is_pipe(&self) -> bool {
        matches!(self, Wire::Pipe(_))
    }

    pub(super) fn peer(&self) -> String {
        match self {
            Wire::Socket(stream) => {
                stream.peer_addr().map_or_else(|_| "gone".to_owned(), |peer| peer.to_string())
            }
            Wire::Pipe(_) => "pipe".to_owned(),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Socket(stream) => stream.as_fd(),
            Wire::Pipe(pipe) => pipe.as_fd(),
        }
    }

    /// Waits until it can be read, or written if `write` says so, or `other` can be read.
    pub(super) fn wait(
        &self,
        read: bool,
        write: bool,
        other: Option<BorrowedFd<'_>>,
        time: Duration,
    ) -> Ready {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, read);
        wanted.set(PollFlags::OUT, write);
        let own = self.fd();
        let mut fds = vec![PollFd::from_borrowed_fd(own, wanted)];
        fds.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        let timeout = rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // A signal ends the wait early, which is as good.
        if poll(&mut fds, Some(&timeout)).is_err() {
            return Ready::default();
        }
        let found = fds[0].revents();
        let over = found.intersects(PollFlags::HUP | PollFlags::ERR);
        Ready {
            reads: found.contains(PollFlags::IN) || read && over,
            writes: write && (found.contains(PollFlags::OUT) || over),
            over,
        }
    }

    /// Writes what fits now. For a pipe only after [`Wire::wait`] said that it can be written.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Socket(stream) => stream.write(bytes),
            Wire::Pipe(pipe) => {
                let bytes = &bytes[..bytes.len().min(PIPE_BYTES)];
                Ok(rustix::io::write(&*pipe, bytes)?)
            }
        }
    }

    /// Reads what is there. For a pipe only after [`Wire::wait`] said that it can be read.
    pub(super) fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Socket(stream) => stream.read(buffer),
            Wire::Pipe(pipe) => Ok(rustix::io::read(&*pipe, buffer)?),
        }
    }

    /// Nothing more is written.
    pub(super) fn end_writing(&self) {
        if let Wire::Socket(stream) = self {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }
}

/// Whether to try again later.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
