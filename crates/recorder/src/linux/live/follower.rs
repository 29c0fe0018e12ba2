// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows a live recording in the process that makes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_live::{Cursor, Item};
use rustix::event::{PollFd, PollFlags, poll};

use super::bell::Bell;
use super::server::Shared;

/// A client without a connection. It does not delay the recording's end.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    bell: Arc<Bell>,
    cursor: Cursor,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>) -> std::io::Result<Follower> {
        let bell = shared.add_bell()?;
        Ok(Follower { shared, bell, cursor: Cursor::default() })
    }

    /// The next item; waits at most `time`. [`Item::End`] is the last.
    pub fn next(&mut self, time: Duration) -> Option<Item> {
        let until = Instant::now() + time;
        loop {
            self.bell.arm();
            if let Some(item) = self.shared.window().next(&mut self.cursor) {
                return Some(item);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let mut fds = [PollFd::from_borrowed_fd(self.bell.fd(), PollFlags::IN)];
            let timeout = rustix::time::Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let _ = poll(&mut fds, Some(&timeout));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.remove_bell(&self.bell);
    }
}
