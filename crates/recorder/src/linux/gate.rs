// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes a new process wait until sources have examined it, before it executes the command.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send};

const GO: u8 = 1;
const STAY: u8 = 0;

/// The recorder's end.
pub(super) struct Gate(OwnedFd);

/// The new process's end.
pub(super) struct Waits {
    own: OwnedFd,
    /// The recorder's end, of which the new process has a copy.
    other: RawFd,
}

/// Creates both ends.
pub(super) fn gate() -> io::Result<(Gate, Waits)> {
    let (one, other) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let waits = Waits { own: other, other: one.as_raw_fd() };
    Ok((Gate(one), waits))
}

impl Waits {
    /// Sends the pid of this process and waits for the response.
    ///
    /// Errors: this process must not execute the command.
    /// Context: between fork and exec: only system calls.
    pub(super) fn pass(&self) -> io::Result<()> {
        // Closes the copy, so that the wait ends if the recorder is killed.
        // SAFETY: the number is that of the recorder's end, which nothing in this process uses; `exec`
        // would close it.
        unsafe { libc::close(self.other) };
        let sent = send(&self.own, &std::process::id().to_ne_bytes(), SendFlags::NOSIGNAL);
        let mut answer = [STAY];
        loop {
            match recv(&self.own, &mut answer, RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                // There is no recorder: a program must run even if it is not recorded.
                Ok((0, _)) | Err(_) => return Ok(()),
                Ok(_) if sent.is_ok() && answer == [STAY] => {
                    // The parent process receives only the error number.
                    return Err(io::Error::from_raw_os_error(libc::EPERM));
                }
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl Gate {
    /// Waits for a process, has it examined, and releases it or not. If none comes, nothing happens.
    pub(super) fn open(self, look: impl FnOnce(u32) -> Result<(), String>) -> Result<(), String> {
        let mut pid = [0; 4];
        let received = loop {
            match recv(&self.0, &mut pid, RecvFlags::WAITALL) {
                Err(rustix::io::Errno::INTR) => {}
                received => break received,
            }
        };
        if !matches!(received, Ok((4, _))) {
            return Ok(());
        }
        let looked = look(u32::from_ne_bytes(pid));
        let answer = if looked.is_ok() { GO } else { STAY };
        // If it has ended, its parent learns the reason.
        let _ = send(&self.0, &[answer], SendFlags::NOSIGNAL);
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Starts `true` after a gate with this response.
    fn start(answer: Result<(), String>) -> (io::Result<()>, Result<(), String>) {
        let (gate, waits) = gate().unwrap();
        std::thread::scope(|scope| {
            let opened =
                scope.spawn(move || gate.open(|pid| if pid > 1 { answer } else { Ok(()) }));
            let mut command = Command::new("true");
            // SAFETY: `pass` makes only system calls.
            unsafe { command.pre_exec(move || waits.pass()) };
            let status = command.status().map(|status| assert!(status.success()));
            drop(command);
            (status, opened.join().unwrap())
        })
    }

    #[test]
    fn a_process_begins_when_it_was_looked_at_or_not_at_all() {
        let (status, opened) = start(Ok(()));
        assert!(status.is_ok() && opened.is_ok());
        let (status, opened) = start(Err("why".to_owned()));
        assert_eq!(status.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(opened, Err("why".to_owned()));
    }

    #[test]
    fn nobody_waits_for_a_process_that_never_came() {
        let (gate, waits) = gate().unwrap();
        drop(waits);
        assert_eq!(gate.open(|_| Err("nobody".to_owned())), Ok(()));
    }
}
