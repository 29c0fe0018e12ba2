// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recorder's side of a live recording: the window, and the thread that takes connections.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lateralis_live::{Folder, Message, Preamble, TOKEN_BYTES_MIN, Window};
use lateralis_peers::{HalfOpen, Peer};
use rustix::event::{PollFd, PollFlags, poll};

use super::bell::Bell;
use super::follower::Follower;
use super::pace::Pace;
use super::serve;
use super::tls::TlsServer;
use super::wire::Wire;
use crate::error::Error;
use crate::options::{Fingerprint, LiveAddress, LiveOptions, TlsIdentity};
use crate::report;

/// Most clients at the same time.
pub(super) const CLIENTS_MAX: usize = 64;
/// Most clients that the report names.
const REPORTED_MAX: usize = 1000;
/// Time between two looks at whether the recording has ended.
const ACCEPT_NS: i64 = 50_000_000;
/// Who takes nothing for so long is not waited for.
const STUCK: Duration = Duration::from_secs(1);
/// Flushes that clients may ask for.
const FLUSH_LEAST: Duration = Duration::from_millis(20);
/// Time that clients have for the last frames, which are short.
const CLOSING: Duration = Duration::from_secs(1);

/// How long and how many connections are kept that were told to go: of one that is closed with something
/// unread, what it was told is lost.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_MAX: usize = 16;

/// How far the end of the recording is. Only grows.
pub(super) mod stage {
    /// It goes on, or clients take what is left.
    pub(in super::super) const OPEN: u8 = 0;
    /// Who has not had everything by now does not get it.
    pub(in super::super) const CUT: u8 = 1;
    /// The last report is there; nothing follows it.
    pub(in super::super) const CLOSED: u8 = 2;
}

/// What the recorder and the threads of its clients share.
#[derive(Debug)]
pub(super) struct Shared {
    window: Mutex<Window>,
    bells: Mutex<Vec<Arc<Bell>>>,
    /// Of each connection.
    paces: Mutex<Vec<Arc<Pace>>>,
    pub(super) uuid: [u8; 16],
    /// Where the stream files are; `None` if there are none.
    pub(super) root: Option<PathBuf>,
    pub(super) token: Option<Vec<u8>>,
    stage: AtomicU8,
    refused: AtomicU64,
    /// Connections.
    open: AtomicUsize,
    /// Of them, clients that have not said yet how they came out.
    served: AtomicUsize,
    reports: Mutex<Vec<report::LiveClient>>,
}

/// A lock whose holder panicked still holds whole values: every change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Held for as long as it takes to look at or add one item; never during I/O.
    pub(super) fn window(&self) -> MutexGuard<'_, Window> {
        lock(&self.window)
    }

    pub(super) fn add_bell(&self) -> std::io::Result<Arc<Bell>> {
        let bell = Arc::new(Bell::new()?);
        lock(&self.bells).push(bell.clone());
        Ok(bell)
    }

    pub(super) fn remove_bell(&self, bell: &Arc<Bell>) {
        lock(&self.bells).retain(|other| !Arc::ptr_eq(other, bell));
    }

    pub(super) fn add_pace(&self) -> Arc<Pace> {
        let pace = Arc::new(Pace::new());
        lock(&self.paces).push(pace.clone());
        pace
    }

    pub(super) fn remove_pace(&self, pace: &Arc<Pace>) {
        lock(&self.paces).retain(|other| !Arc::ptr_eq(other, pace));
    }

    /// Whether all that is left is clients that have taken nothing for a while.
    fn all_are_stuck(&self) -> bool {
        lock(&self.paces).iter().all(|pace| pace.is_stuck(STUCK))
    }

    fn ring(&self) {
        for bell in lock(&self.bells).iter() {
            bell.ring();
        }
    }

    pub(super) fn stage(&self) -> u8 {
        // Pair: the store in `LiveServer::enter`.
        self.stage.load(Ordering::Acquire)
    }

    pub(super) fn refuse(&self) {
        // Partner: the load in `finish`; only the count matters.
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection more. Where there are too many, a client that has taken nothing for a while gives
    /// its place; `false`: there is none.
    pub(super) fn enter(&self) -> bool {
        // Pair: the load in `LiveServer::end`, the one in `leave`.
        let has_place = self.open.fetch_add(1, Ordering::AcqRel) < CLIENTS_MAX;
        has_place || lock(&self.paces).iter().any(|pace| pace.give_up(STUCK))
    }

    /// A connection less.
    pub(super) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Release);
    }

    /// A client that will be reported.
    pub(super) fn begin_serving(&self) {
        // Pair: the load in `LiveServer::finish`.
        self.served.fetch_add(1, Ordering::AcqRel);
    }

    /// How a client came out; once for each.
    pub(super) fn report(&self, client: report::LiveClient) {
        let mut reports = lock(&self.reports);
        if reports.len() < REPORTED_MAX {
            reports.push(client);
        }
        drop(reports);
        // Pair: the acquire load in `finish`, which then finds the report.
        self.served.fetch_sub(1, Ordering::Release);
    }
}

/// See the module's description.
#[derive(Debug)]
pub(in super::super) struct LiveServer {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    /// Of its certificate, if it encrypts.
    fingerprint: Option<Fingerprint>,
    window_bytes: u64,
    linger: Duration,
}

impl LiveServer {
    /// Begins to listen. `root`: the recording's directory, if it keeps stream files.
    ///
    /// Errors: the address is none, is taken, or is open to others and there is no token; the
    /// certificate cannot be used.
    pub(in super::super) fn start(
        options: &LiveOptions,
        uuid: [u8; 16],
        root: Option<PathBuf>,
    ) -> Result<LiveServer, Error> {
        let shared = Arc::new(Shared {
            window: Mutex::new(Window::new(options.window_bytes)),
            bells: Mutex::new(Vec::new()),
            paces: Mutex::new(Vec::new()),
            uuid,
            root,
            token: options.token.as_ref().map(|token| token.as_bytes().to_vec()),
            stage: AtomicU8::new(stage::OPEN),
            refused: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            reports: Mutex::new(Vec::new()),
        });
        let mut server = LiveServer {
            shared,
            accepting: None,
            address: None,
            fingerprint: None,
            window_bytes: options.window_bytes,
            linger: options.linger,
        };
        match &options.address {
            None => {}
            Some(LiveAddress::StandardOutput) => server.write_to_standard_output()?,
            Some(LiveAddress::Tcp(address)) => {
                server.listen(address, options)?;
            }
        }
        Ok(server)
    }

    fn listen(&mut self, address: &str, options: &LiveOptions) -> Result<(), Error> {
        let token_bytes = options.token.as_ref().map_or(0, String::len);
        let error = |cause| Error::Address { action: "listen", address: address.to_owned(), cause };
        let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(error)?.collect();
        let is_open = addresses.iter().any(|address| !address.ip().is_loopback());
        if is_open && token_bytes < TOKEN_BYTES_MIN {
            return Err(Error::NeedsToken(address.to_owned()));
        }
        // What leaves this machine is encrypted, whether somebody thought of it or not.
        let generated = is_open.then_some(TlsIdentity::Generated);
        let identity = options.tls.clone().or(generated);
        let tls = identity.map(|identity| TlsServer::new(&identity)).transpose()?;
        self.fingerprint = tls.as_ref().map(|tls| tls.fingerprint);
        let listener = TcpListener::bind(&addresses[..]).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        self.address = Some(listener.local_addr().map_err(error)?);
        let shared = self.shared.clone();
        let accept = move || accept(&shared, &listener, tls.as_ref());
        let thread = std::thread::Builder::new().name("live".to_owned());
        self.accepting = Some(thread.spawn(accept).map_err(error)?);
        Ok(())
    }

    /// Takes standard output for the stream, and lets everybody else write to standard error.
    fn write_to_standard_output(&mut self) -> Result<(), Error> {
        let error = |cause: std::io::Error| Error::System { action: "use standard output", cause };
        let stdout = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)
            .map_err(|cause| error(cause.into()))?;
        rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|cause| error(cause.into()))?;
        serve::begin(&self.shared, Wire::Pipe(stdout), None).map_err(error)
    }

    /// Where it listens.
    pub(in super::super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What clients know it by, if it encrypts.
    pub(in super::super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Follows in this process.
    pub(in super::super) fn follow(&self) -> Option<Follower> {
        Follower::new(self.shared.clone()).ok()
    }

    pub(in super::super) fn metadata(&self, text: &str) {
        self.shared.window().set_metadata(text.as_bytes());
        self.shared.ring();
    }

    pub(in super::super) fn report(&self, text: &str, last: bool) {
        self.shared.window().set_report(text.as_bytes(), last);
        self.shared.ring();
    }

    pub(in super::super) fn add_stream(&self, folder: Folder, name: &str, class: u32) -> u32 {
        self.shared.window().add_stream(folder, name, class)
    }

    /// A packet that stands in its file. Cost: a copy, and a system call for each client that
    /// has nothing else to do.
    pub(in super::super) fn packet(&self, stream: u32, events: Option<u64>, bytes: &[u8]) {
        let bytes = bytes.into();
        // Memory is given back without the lock.
        let freed = self.shared.window().push(stream, events, bytes);
        drop(freed);
        self.shared.ring();
    }

    /// How often clients want a flush, if any has said so.
    pub(in super::super) fn flush_period(&self) -> Option<Duration> {
        let paces = lock(&self.shared.paces);
        paces.iter().filter_map(|pace| pace.flush_period()).min().map(|of| of.max(FLUSH_LEAST))
    }

    pub(in super::super) fn flushed(&self, utc_ns: i64) {
        self.shared.window().flushed(utc_ns);
        self.shared.ring();
    }

    fn enter(&self, stage: u8) {
        // Pair: the load in `Shared::stage`.
        self.shared.stage.fetch_max(stage, Ordering::AcqRel);
        self.shared.ring();
    }

    fn wait_until(&self, time: Duration, mut done: impl FnMut() -> bool) {
        let until = Instant::now() + time;
        while !done() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// There will be no more packets: gives clients time to take what is left, and says how they
    /// came out.
    pub(in super::super) fn finish(&self) -> report::Live {
        self.shared.window().end();
        self.shared.ring();
        // Pair: the release in `Shared::report`.
        let all_told = || self.shared.served.load(Ordering::Acquire) == 0;
        self.wait_until(self.linger, || all_told() || self.shared.all_are_stuck());
        self.enter(stage::CUT);
        self.wait_until(CLOSING, all_told);
        report::Live {
            address: self.address.map(|address| address.to_string()),
            fingerprint: self.fingerprint.map(|fingerprint| fingerprint.to_string()),
            window_bytes: self.window_bytes,
            refused: self.shared.refused.load(Ordering::Relaxed),
            clients: lock(&self.shared.reports).clone(),
        }
    }

    /// The last report is in the window: clients get it, and that is all.
    pub(in super::super) fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.shared.stage() == stage::CLOSED {
            return;
        }
        self.enter(stage::CLOSED);
        if let Some(accepting) = self.accepting.take() {
            // It waits for nobody.
            let _ = accepting.join();
        }
        // Pair: the release in `Shared::leave`. Who is stuck is left behind.
        self.wait_until(CLOSING, || self.shared.open.load(Ordering::Acquire) == 0);
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes connections. Those that have not shown yet that they may be here have places of their own, so
/// that they keep out no client.
fn accept(shared: &Arc<Shared>, listener: &TcpListener, tls: Option<&TlsServer>) {
    let half_open = Arc::<HalfOpen>::default();
    let mut parting = VecDeque::new();
    while shared.stage() == stage::OPEN {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: ACCEPT_NS };
        let _ = poll(&mut fds, Some(&timeout));
        // Not more at once than can be looked at between two looks at the stage.
        for _ in 0..CLIENTS_MAX {
            while parting.front().is_some_and(|(since, _): &(Instant, _)| since.elapsed() > PARTING)
            {
                parting.pop_front();
            }
            let Ok((stream, _)) = listener.accept() else { break };
            let peer = Peer::of(&stream);
            // Every user of the machine reaches loopback: without a token it is for this one alone.
            if shared.token.is_none() && peer.is_none_or(Peer::is_foreign) {
                shared.refuse();
                if tls.is_none() && parting.len() < PARTING_MAX {
                    tell_foreign(&stream);
                    parting.push_back((Instant::now(), stream));
                }
                continue;
            }
            let place = peer.and_then(|peer| half_open.add(peer, &stream));
            if place.is_none() {
                shared.refuse();
                continue;
            }
            let wire = match tls {
                Some(tls) => Wire::to_client(stream, tls.config.clone()),
                None => Wire::socket(stream),
            };
            let begun = wire.and_then(|wire| serve::begin(shared, wire, place));
            if begun.is_err() {
                shared.refuse();
            }
        }
    }
}

/// Says why; what does not go at once is not sent.
fn tell_foreign(stream: &TcpStream) {
    let mut out = Preamble { one_way: false, needs_token: false }.encode().to_vec();
    let reason =
        "this recording belongs to another user of that machine: its owner gives it a --token";
    Message::Refused(reason).encode(&mut out);
    let _ = stream.set_nonblocking(true);
    let mut stream = stream;
    let _ = stream.write(&out);
    let _ = stream.shutdown(Shutdown::Write);
}
