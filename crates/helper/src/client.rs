// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recorder's side.

use std::io::{self, BufRead, BufReader, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::{EVENTS_MAX, GREETING, LINE_BYTES};

/// An instance takes the kernel milliseconds, on a busy machine a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// An instance that is lent; given back when dropped.
#[derive(Debug)]
pub struct Loan {
    directory: OwnedFd,
    connection: UnixStream,
}

impl Loan {
    /// Borrows one.
    ///
    /// Errors: nothing listens there, the caller is not permitted, or the helper could not create
    /// one.
    pub fn ask(socket: &Path) -> io::Result<Self> {
        Self::receive(UnixStream::connect(socket)?)
    }

    fn receive(connection: UnixStream) -> io::Result<Self> {
        connection.set_read_timeout(Some(PATIENCE))?;
        let mut line = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let buffers = &mut [IoSliceMut::new(&mut line)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = rustix::net::recvmsg(&connection, buffers, &mut control, flags)?;
        let directory = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        // A stream has no messages: what comes first may be the beginning of a line.
        let mut said = line[..received.bytes].to_vec();
        if !said.is_empty() && !said.contains(&b'\n') {
            let left = line.len() - said.len();
            BufReader::new((&connection).take(left as u64)).read_until(b'\n', &mut said)?;
        }
        let said = String::from_utf8_lossy(&said);
        match directory {
            Some(directory) if said.trim_end() == GREETING => Ok(Self { directory, connection }),
            _ => Err(io::Error::other(format!("the helper said: {}", said.trim_end()))),
        }
    }

    /// The instance, in this process.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }

    /// Asks for the right to enable events, `SUBSYSTEM:EVENT`.
    ///
    /// Errors: the helper is gone, or said why not.
    pub fn events<'a>(
        &self,
        events: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> io::Result<()> {
        // Lines stay short for any request.
        let mut line = String::new();
        let mut count = 0;
        for (system, event) in events {
            if line.len() > LINE_BYTES / 2 || count == EVENTS_MAX {
                self.request(&line)?;
                line.clear();
                count = 0;
            }
            count += 1;
            if line.is_empty() {
                line.push_str("events");
            }
            line.push_str(&format!(" {system}:{event}"));
        }
        if line.is_empty() { Ok(()) } else { self.request(&line) }
    }

    /// Asks for buffers of this size for each CPU; more than there may be is cut.
    ///
    /// Errors: as [`Loan::events`].
    pub fn buffer_kb(&self, kb: u64) -> io::Result<()> {
        self.request(&format!("buffer_kb {}", kb.clamp(1, crate::BUFFER_KB_MAX)))
    }

    fn request(&self, line: &str) -> io::Result<()> {
        (&self.connection).write_all(format!("{line}\n").as_bytes())?;
        let mut said = String::new();
        // Answers are one line each, and nothing is read beyond: nothing was asked yet.
        BufReader::new((&self.connection).take(LINE_BYTES as u64)).read_line(&mut said)?;
        match said.trim_end() {
            "ok" => Ok(()),
            "" => Err(io::Error::other("the helper is gone")),
            other => Err(io::Error::other(format!("the helper said: {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_in_pieces_is_read_whole() {
        let (connection, mut helper) = UnixStream::pair().unwrap();
        let helper = std::thread::spawn(move || {
            for piece in ["error: ", "files are ", "still open\n"] {
                let _ = helper.write_all(piece.as_bytes());
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let refused = Loan::receive(connection).unwrap_err().to_string();
        helper.join().unwrap();
        assert_eq!(refused, "the helper said: error: files are still open");
    }
}
