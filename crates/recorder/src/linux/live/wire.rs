// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection to a peer, or one direction of it, with time limits on all waits.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use super::secure::{Patience, Secure};

/// A writable pipe accepts this many bytes without blocking [pipe(7), PIPE_BUF].
const PIPE_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) enum Wire {
    /// Both directions; non-blocking.
    Socket(TcpStream),
    /// Both directions over TLS.
    Secure(Box<Secure>),
    /// One direction. Its descriptor is shared with other processes, so its flags are not changed.
    Pipe(OwnedFd),
}

/// Readiness of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ready {
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The peer has disconnected.
    pub(super) over: bool,
    /// Some held-back data has been sent meanwhile.
    pub(super) took: bool,
}

impl Wire {
    pub(super) fn socket(stream: TcpStream) -> io::Result<Wire> {
        Ok(Wire::Socket(prepared(stream)?))
    }

    /// A client's connection to the server of this name.
    pub(super) fn to_server(
        stream: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Wire> {
        Ok(Wire::Secure(Box::new(Secure::client(prepared(stream)?, config, name)?)))
    }

    /// A server's connection.
    pub(super) fn to_client(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<Wire> {
        Ok(Wire::Secure(Box::new(Secure::server(prepared(stream)?, config)?)))
    }

    pub(super) fn is_pipe(&self) -> bool {
        matches!(self, Wire::Pipe(_))
    }

    pub(super) fn peer(&self) -> String {
        match self {
            Wire::Socket(stream) => peer(stream),
            Wire::Secure(secure) => peer(&secure.stream),
            Wire::Pipe(_) => "pipe".to_owned(),
        }
    }

    /// Performs the TLS handshake, if needed. Errors: [`io::ErrorKind::TimedOut`];
    /// [`io::ErrorKind::Unsupported`] if the peer of a server does not use TLS, and this wire now
    /// does not, either; [`io::ErrorKind::InvalidData`] if the peer is not the expected one.
    pub(super) fn handshake(&mut self, patience: &Patience<'_>, serves: bool) -> io::Result<()> {
        let began = Instant::now();
        let mut is_known = !serves;
        while let Wire::Secure(secure) = self {
            if !is_known {
                match secure.is_plain()? {
                    Some(true) => {
                        *self = Wire::Socket(secure.stream.try_clone()?);
                        return Err(io::ErrorKind::Unsupported.into());
                    }
                    said => is_known = said.is_some(),
                }
            }
            if is_known {
                secure.shake()?;
            }
            let Some(wants) = secure.wants() else { break };
            let left = patience.left(began)?;
            let fd = secure.stream.as_fd();
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, wants.reads);
            wanted.set(PollFlags::OUT, wants.writes);
            let _ = poll(&mut [PollFd::from_borrowed_fd(fd, wanted)], Some(&timeout(left)));
        }
        Ok(())
    }

    /// Whether some written data has not left this process.
    pub(super) fn holds_back(&self) -> bool {
        matches!(self, Wire::Secure(secure) if secure.holds_back())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Socket(stream) => stream.as_fd(),
            Wire::Secure(secure) => secure.stream.as_fd(),
            Wire::Pipe(pipe) => pipe.as_fd(),
        }
    }

    /// Waits until it is readable, or writable if `write` is set, or `other` is readable.
    pub(super) fn wait(
        &mut self,
        read: bool,
        write: bool,
        other: Option<BorrowedFd<'_>>,
        time: Duration,
    ) -> Ready {
        let has_unread = matches!(self, Wire::Secure(secure) if read && secure.has_unread());
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, read);
        wanted.set(PollFlags::OUT, write || self.holds_back());
        let own = self.fd();
        let mut fds = vec![PollFd::from_borrowed_fd(own, wanted)];
        fds.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        let time = if has_unread { Duration::ZERO } else { time };
        // A signal ends the wait early, which is harmless.
        if poll(&mut fds, Some(&timeout(time))).is_err() {
            return Ready::default();
        }
        let found = fds[0].revents();
        let over = found.intersects(PollFlags::HUP | PollFlags::ERR);
        let mut ready = Ready {
            reads: found.contains(PollFlags::IN) || has_unread || read && over,
            writes: write && (found.contains(PollFlags::OUT) || over),
            over,
            took: false,
        };
        if let Wire::Secure(secure) = self
            && secure.holds_back()
            && found.contains(PollFlags::OUT)
        {
            // The next write returns the error.
            ready.took = secure.flush().unwrap_or(false);
            ready.writes &= !secure.holds_back() || over;
        }
        ready
    }

    /// Writes as much as fits now. For a pipe only after [`Wire::wait`] reported it writable.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Socket(stream) => stream.write(bytes),
            Wire::Secure(secure) => secure.write_some(bytes),
            Wire::Pipe(pipe) => {
                let bytes = &bytes[..bytes.len().min(PIPE_BYTES)];
                Ok(rustix::io::write(&*pipe, bytes)?)
            }
        }
    }

    /// Reads the available bytes. For a pipe only after [`Wire::wait`] reported it readable.
    pub(super) fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Socket(stream) => stream.read(buffer),
            Wire::Secure(secure) => secure.read_some(buffer),
            Wire::Pipe(pipe) => Ok(rustix::io::read(&*pipe, buffer)?),
        }
    }

    /// Ends the outgoing direction.
    pub(super) fn end_writing(&mut self) {
        match self {
            Wire::Socket(stream) => drop(stream.shutdown(std::net::Shutdown::Write)),
            Wire::Secure(secure) => secure.end_writing(),
            Wire::Pipe(_) => {}
        }
    }
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn timeout(time: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

fn peer(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "gone".to_owned(), |peer| peer.to_string())
}

/// Whether to retry later.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
