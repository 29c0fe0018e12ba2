// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A live recording that is followed by its address: received into a temporary folder meanwhile.

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

/// Most that is received, then following ends: it is on disk as long as somebody follows.
const BYTES_MAX: u64 = 4 << 30;
/// How long to try to come back when the connection broke.
const RETRY: Duration = Duration::from_secs(10);
/// Flushes for which what came before may have to wait, to be told in the order of time.
const FLUSHES_WAITED: u32 = 3;
/// Without packets the rest is looked at so often: names of processes, what the recorder lost.
const QUIET: Duration = Duration::from_millis(500);

/// How it is going.
#[derive(Debug, Default)]
struct Now {
    /// Everything up to this moment is here.
    flushed_ns: Option<i64>,
    /// It has ended: whether as it should, or why not.
    ended: Option<Result<bool, String>>,
    link: Link,
    /// Packets that came, or were told as dropped.
    packets: u64,
    seen: Option<Seen>,
}

/// What was there when somebody looked last.
#[derive(Debug, Clone, Copy)]
struct Seen {
    packets: u64,
    flushed_ns: Option<i64>,
    /// Flushes since packets came last, backwards.
    flushes_left: u32,
    at: Instant,
}

impl Now {
    /// Whether there may be more than when this was asked last.
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

/// What can be followed by its address alone.
const THERE_MUST_BE: &str = "there must be a `lat live` or `lat record --live`; dumps of a bfscope are \
                             shown by `lat view bfscope://HOST:PORT`";

/// How the connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Link {
    /// There is one.
    pub connected: bool,
    /// There was one before.
    pub was_connected: bool,
    /// What the server could not give any more.
    pub dropped: Count,
}

/// How to receive.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyOptions {
    /// How often the other side shall flush, if not as often as it does anyway.
    pub flush_every: Option<Duration>,
    /// Whether the copy may be of any size: whoever follows lets go of what it has read.
    pub is_let_go: bool,
}

/// A copy that grows. Gone when nobody follows any more.
pub struct LiveCopy {
    folder: TemporaryFolder,
    address: String,
    now: Arc<(Mutex<Now>, Condvar)>,
    stop: Arc<AtomicBool>,
    receiver: Option<JoinHandle<()>>,
}

impl LiveCopy {
    /// Begins to receive, if what is given is no path but `HOST:PORT`.
    ///
    /// Errors: there is no room for a temporary folder.
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

    /// Where the copy is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until more is here than at that moment, or it has ended; so long at most.
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

    /// Whether there may be more than when this was asked last: what came is worth a look, and
    /// some flushes later what had to wait.
    pub fn has_news(&self) -> bool {
        lock(&self.now.0).has_news(Instant::now())
    }

    /// How the connection is.
    pub fn link(&self) -> Link {
        lock(&self.now.0).link
    }

    /// Whether the other side is this machine.
    pub fn is_here(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// How far it is.
    ///
    /// Errors: nobody is there, or refuses.
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
        // Partner: the load in the receiver, which only looks whether it is set.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

/// Every change is one assignment.
fn lock(now: &Mutex<Now>) -> std::sync::MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `HOST:PORT`, if it is not the name of something that is there.
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
