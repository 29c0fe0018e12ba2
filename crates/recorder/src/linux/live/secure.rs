// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection over TLS: non-blocking, like a socket.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::Connection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::wire::is_later;

/// Maximum number of bytes encrypted at once, four records: a packet must wait for them.
const WRITE_BYTES: usize = 64 << 10;
/// First byte of a client without TLS, of `LATLIVE`. A TLS record never starts with it.
const PLAIN: u8 = b'L';

/// A non-blocking connection for both directions.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) stream: TcpStream,
    session: Connection,
    /// Decrypted bytes that have not been read yet.
    unread: usize,
}

/// The events that a handshake waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wants {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Secure {
    pub(super) fn server(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<Secure> {
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Secure { stream, session: session.into(), unread: 0 })
    }

    pub(super) fn client(
        stream: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Secure> {
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(Secure { stream, session: session.into(), unread: 0 })
    }

    /// Whether the other side starts without TLS. `None`: it has sent nothing yet.
    pub(super) fn is_plain(&self) -> io::Result<Option<bool>> {
        let mut first = [0];
        match self.stream.peek(&mut first) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(Some(first[0] == PLAIN)),
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The events that the handshake waits for; `None`: it is complete.
    pub(super) fn wants(&self) -> Option<Wants> {
        let writes = self.session.wants_write();
        let over = !self.session.is_handshaking() && !writes;
        (!over).then(|| Wants { reads: self.session.is_handshaking() && !writes, writes })
    }

    /// Continues the handshake with the data that can be read and written now.
    pub(super) fn shake(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.session.is_handshaking() {
            match self.take() {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Reads from the socket, and decrypts complete records.
    fn take(&mut self) -> io::Result<usize> {
        let read = self.session.read_tls(&mut self.stream)?;
        match self.session.process_new_packets() {
            Ok(state) => self.unread = state.plaintext_bytes_to_read(),
            Err(cause) => {
                // Sends the reason to the peer, if its connection accepts it at once.
                let _ = self.flush();
                return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
            }
        }
        Ok(read)
    }

    /// Whether encrypted bytes wait for the socket.
    pub(super) fn holds_back(&self) -> bool {
        self.session.wants_write()
    }

    /// Whether something can be read without the socket.
    pub(super) fn has_unread(&self) -> bool {
        self.unread > 0
    }

    /// Writes encrypted bytes as far as the socket accepts them; returns whether it accepted any.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let mut took = false;
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.stream) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => took = true,
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(took)
    }

    /// Encrypts some bytes, if all previously encrypted ones have been sent.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.holds_back() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(&bytes[..bytes.len().min(WRITE_BYTES)])?;
        self.flush()?;
        Ok(taken)
    }

    /// Reads the available bytes. An unannounced end is an end of file: the frame END shows whether all
    /// arrived.
    pub(super) fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Ok(read) => {
                    self.unread = self.unread.saturating_sub(read);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
            if self.take()? == 0 && self.unread == 0 {
                return Ok(0);
            }
        }
    }

    /// Ends the outgoing direction.
    pub(super) fn end_writing(&mut self) {
        self.session.send_close_notify();
        let _ = self.flush();
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// A time limit, and a check for cancellation.
pub(super) struct Patience<'a> {
    pub(super) time: Duration,
    pub(super) look: Duration,
    pub(super) is_over: &'a dyn Fn() -> bool,
}

impl Patience<'_> {
    /// Time to wait now. Errors: the limit has passed.
    pub(super) fn left(&self, began: Instant) -> io::Result<Duration> {
        let left = self.time.checked_sub(began.elapsed()).filter(|_| !(self.is_over)());
        left.map(|left| left.min(self.look)).ok_or(io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests;
