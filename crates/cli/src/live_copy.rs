// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows a live recording by its address: receives it into a temporary folder.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lateralis_files::TemporaryFolder;
use lateralis_recorder::linux::live::{Count, ReceiveFrom, ReceiveOptions, receive};
use lateralis_units::Nanos;

use crate::error::CliError;
use crate::following::{MARGIN_NANOS, State};
use crate::peer_args::PeerArgs;

/// Size limit of the copy, in bytes; at the limit, following ends. The copy is on disk while it is followed.
const BYTES_MAX: u64 = 4 << 30;
/// Time limit for reconnecting after the connection broke.
const RETRY: Duration = Duration::from_secs(10);
/// Number of flushes for which received events may have to wait, so that they are printed in time order.
const FLUSHES_WAITED: u32 = 3;
/// Interval at which the rest is read if no packets arrive: names of processes, losses reported by the
/// recorder.
const QUIET: Duration = Duration::from_millis(500);

/// Progress of the reception.
#[derive(Debug, Default)]
struct Now {
    /// Everything up to this time has been received.
    flushed_ns: Option<i64>,
    /// Set when the reception has ended: whether the recording is complete, or an error.
    ended: Option<Result<bool, String>>,
    link: Link,
    /// Number of packets received, or reported as dropped.
    packets: u64,
    seen: Option<Seen>,
}

/// Progress at the last call of `has_news`.
#[derive(Debug, Clone, Copy)]
struct Seen {
    packets: u64,
    flushed_ns: Option<i64>,
    /// Remaining flushes, counted down since the last packet, at which events that had to wait are read.
    flushes_left: u32,
    at: Instant,
}

impl Now {
    /// Whether there may be more data than at the last call.
    fn has_news(&mut self, at: Instant) -> bool {
        let (packets, flushed_ns) = (self.packets, self.flushed_ns);
        let flushes_left = match self.seen {
            Some(seen) if seen.packets == packets => match seen.flushes_left.checked_sub(1) {
                Some(left) if seen.flushed_ns != flushed_ns => left,
                _ if at.duration_since(seen.at) < QUIET => return false,
                _ => seen.flushes_left,
            },
            _ => FLUSHES_WAITED,
        };
        self.seen = Some(Seen { packets, flushed_ns, flushes_left, at });
        true
    }
}

/// Addresses that can be followed.
const THERE_MUST_BE: &str = "there must be a `lat live` or `lat record --live`; dumps of a bfscope are \
                             shown by `lat view bfscope://HOST:PORT`";

/// State of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Link {
    /// Whether it is connected.
    pub connected: bool,
    /// Whether it was connected before.
    pub was_connected: bool,
    /// Data that the server could no longer provide.
    pub dropped: Count,
}

/// Options of the reception.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyOptions {
    /// Requested flush interval of the server, if not its own.
    pub flush_every: Option<Duration>,
    /// Whether the copy may have any size, because the reader trims the parts that it has read.
    pub is_let_go: bool,
}

/// A growing copy, removed when it is dropped.
pub struct LiveCopy {
    folder: TemporaryFolder,
    address: String,
    now: Arc<(Mutex<Now>, Condvar)>,
    stop: Arc<AtomicBool>,
    receiver: Option<JoinHandle<()>>,
}

impl LiveCopy {
    /// Starts to receive if the argument is not a path but `HOST:PORT`.
    ///
    /// Errors: there is no space for a temporary folder.
    pub fn begin(
        traces: &[PathBuf],
        peer: &PeerArgs,
        copy: CopyOptions,
    ) -> Result<Option<Self>, CliError> {
        let Some(address) = address(traces) else { return Ok(None) };
        let folder = TemporaryFolder::new("lat-follow-").map_err(|cause| {
            CliError::at_path("cannot make a folder", &std::env::temp_dir(), &cause)
        })?;
        let (now, stop) = (Arc::<(Mutex<Now>, Condvar)>::default(), Arc::<AtomicBool>::default());
        let options = ReceiveOptions {
            from: ReceiveFrom::Tcp(address.clone()),
            output: folder.path().to_owned(),
            token: peer.token.clone(),
            trust: peer.trust(),
            retry: RETRY,
            duration: None,
            flush_every: copy.flush_every,
            max_disk_bytes: (!copy.is_let_go).then_some(BYTES_MAX),
            stop: stop.clone(),
        };
        let shared = now.clone();
        let receiver = std::thread::spawn(move || {
            let summary = receive(options, &mut |progress| {
                let mut now = lock(&shared.0);
                let was_connected = now.link.was_connected || progress.connected;
                let (connected, dropped) = (progress.connected, progress.dropped);
                now.link = Link { connected, was_connected, dropped };
                now.packets = progress.packets.saturating_add(dropped.packets);
                if now.flushed_ns != progress.flushed_ns {
                    now.flushed_ns = progress.flushed_ns;
                    shared.1.notify_all();
                }
            });
            let ended = summary.map(|summary| summary.report.complete);
            lock(&shared.0).ended = Some(ended.map_err(|error| error.to_string()));
            shared.1.notify_all();
        });
        Ok(Some(Self { folder, address, now, stop, receiver: Some(receiver) }))
    }

    /// Returns the folder of the copy.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Waits, at most for `time`, until more has been received than in the state `known`, or the recording
    /// has ended.
    pub fn wait(&self, known: State, time: Duration) {
        let until = Instant::now() + time;
        let mut now = lock(&self.now.0);
        let is_known = |now: &Now| match known {
            State::UpTo(up_to) => {
                now.flushed_ns.map(|ns| ns.saturating_sub(MARGIN_NANOS)) == Some(up_to.0)
            }
            _ => now.flushed_ns.is_none(),
        };
        while now.ended.is_none()
            && is_known(&now)
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            now = self.now.1.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether there may be more data than at the last call: new packets are read at once, and events that
    /// had to wait, a few flushes later.
    pub fn has_news(&self) -> bool {
        lock(&self.now.0).has_news(Instant::now())
    }

    /// Returns the state of the connection.
    pub fn link(&self) -> Link {
        lock(&self.now.0).link
    }

    /// Whether the server is on this machine.
    pub fn is_here(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// Returns the progress of the recording.
    ///
    /// Errors: no connection, or it was refused.
    pub fn state(&self) -> Result<State, CliError> {
        let now = lock(&self.now.0);
        match (&now.ended, now.flushed_ns) {
            (Some(Ok(true)), _) => Ok(State::Complete),
            (Some(Ok(false)), _) => Ok(State::Interrupted),
            (Some(Err(reason)), _) => Err(CliError::new(
                "cannot follow",
                &self.address,
                format!("{reason}; {THERE_MUST_BE}"),
            )),
            (None, Some(flushed)) => Ok(State::UpTo(Nanos(flushed.saturating_sub(MARGIN_NANOS)))),
            (None, None) => Ok(State::Busy),
        }
    }
}

impl Drop for LiveCopy {
    fn drop(&mut self) {
        // Partner: the load in the receiver, which only tests whether it is set.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

/// Ignores poisoning: every change is a single assignment.
fn lock(now: &Mutex<Now>) -> std::sync::MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `HOST:PORT`, unless a file of that name exists.
pub fn address(traces: &[PathBuf]) -> Option<String> {
    let [path] = traces else { return None };
    let text = path.to_str().filter(|text| !text.contains('/') && !path.exists())?;
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    (!host.is_empty() && port > 0).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_comes_nothing_is_looked_at_but_for_what_waited() {
        let mut now = Now { packets: 5, flushed_ns: Some(1), ..Now::default() };
        let at = Instant::now();
        assert!(now.has_news(at) && !now.has_news(at), "once");
        let mut looks = 0;
        for flush in 2..20 {
            now.flushed_ns = Some(flush);
            looks += u32::from(now.has_news(at));
        }
        assert_eq!(looks, FLUSHES_WAITED);
        assert!(now.has_news(at + QUIET) && !now.has_news(at + QUIET), "now and then");
        now.packets = 6;
        assert!(now.has_news(at + QUIET));
    }

    #[test]
    fn an_address_is_no_path() {
        let is = |text: &str| address(&[text.into()]).is_some();
        assert!(is("127.0.0.1:6660") && is("[::1]:6660") && is("localhost:1"));
        assert!(!is("demo") && !is("a:b") && !is(":6660") && !is("./a:1") && !is("h:70000"));
        assert_eq!(address(&["a:1".into(), "b:1".into()]), None);
    }
}
