// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recorder's side of a live recording: the window, and the thread that accepts connections.

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

/// Maximum number of clients at the same time.
pub(super) const CLIENTS_MAX: usize = 64;
/// Maximum number of clients in the report.
const REPORTED_MAX: usize = 1000;
/// Time between two checks whether the recording has ended.
const ACCEPT_NS: i64 = 50_000_000;
/// Stalled clients are not waited for after this time.
const STUCK: Duration = Duration::from_secs(1);
/// Minimum flush period that clients may request.
const FLUSH_LEAST: Duration = Duration::from_millis(20);
/// Time limit for the last frames, which are short.
const CLOSING: Duration = Duration::from_secs(1);

/// Time that rejected connections are kept, and their maximum number: closing a connection with unread
/// input would discard the rejection.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_MAX: usize = 16;

/// Progress of the recording's end. Only increases.
pub(super) mod stage {
    /// The recording continues, or clients read the remaining packets.
    pub(in super::super) const OPEN: u8 = 0;
    /// Clients that have not received everything by now are cut off.
    pub(in super::super) const CUT: u8 = 1;
    /// The last report has been added; nothing follows it.
    pub(in super::super) const CLOSED: u8 = 2;
}

/// State shared by the recorder and the threads of its clients.
#[derive(Debug)]
pub(super) struct Shared {
    window: Mutex<Window>,
    bells: Mutex<Vec<Arc<Bell>>>,
    /// Progress of each connection.
    paces: Mutex<Vec<Arc<Pace>>>,
    pub(super) uuid: [u8; 16],
    /// Directory of the stream files; `None` if there are none.
    pub(super) root: Option<PathBuf>,
    pub(super) token: Option<Vec<u8>>,
    stage: AtomicU8,
    refused: AtomicU64,
    /// Number of connections.
    open: AtomicUsize,
    /// Number of clients among them that have not been reported yet.
    served: AtomicUsize,
    reports: Mutex<Vec<report::LiveClient>>,
}

/// A lock whose holder panicked still protects valid values: every change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Held only to read or add one item; never during I/O.
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

    /// Whether all remaining clients are stalled.
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

    /// Adds a connection. If there are too many, a stalled client gives up
    /// its slot; `false`: there is none.
    pub(super) fn enter(&self) -> bool {
        // Pair: the load in `LiveServer::end`, the one in `leave`.
        let has_place = self.open.fetch_add(1, Ordering::AcqRel) < CLIENTS_MAX;
        has_place || lock(&self.paces).iter().any(|pace| pace.give_up(STUCK))
    }

    /// Removes a connection.
    pub(super) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Release);
    }

    /// Adds a client that will be reported.
    pub(super) fn begin_serving(&self) {
        // Pair: the load in `LiveServer::finish`.
        self.served.fetch_add(1, Ordering::AcqRel);
    }

    /// Reports a client's result; once for each.
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

/// Server of a live recording.
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
    /// Starts listening. `root`: the recording's directory, if it keeps stream files.
    ///
    /// Errors: the address is invalid, in use, or reachable by others without a token; the
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
        // Data that leaves this machine is always encrypted.
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

    /// Uses standard output for the stream, and redirects all other output to standard error.
    fn write_to_standard_output(&mut self) -> Result<(), Error> {
        let error = |cause: std::io::Error| Error::System { action: "use standard output", cause };
        let stdout = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)
            .map_err(|cause| error(cause.into()))?;
        rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|cause| error(cause.into()))?;
        serve::begin(&self.shared, Wire::Pipe(stdout), None).map_err(error)
    }

    /// Address it listens on.
    pub(in super::super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Fingerprint of its certificate, if it encrypts.
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

    /// Adds a packet that has been written to its file. Cost: a copy, and a system call for each idle
    /// client.
    pub(in super::super) fn packet(&self, stream: u32, events: Option<u64>, bytes: &[u8]) {
        let bytes = bytes.into();
        // Memory is freed outside of the lock.
        let freed = self.shared.window().push(stream, events, bytes);
        drop(freed);
        self.shared.ring();
    }

    /// Shortest flush period requested by clients, if any.
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

    /// Ends the packets: gives clients time to read the remaining ones, and returns
    /// their results.
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

    /// After the last report has been added: sends it to clients, and ends.
    pub(in super::super) fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.shared.stage() == stage::CLOSED {
            return;
        }
        self.enter(stage::CLOSED);
        if let Some(accepting) = self.accepting.take() {
            // It does not wait for clients.
            let _ = accepting.join();
        }
        // Pair: the release in `Shared::leave`. Stalled clients are abandoned.
        self.wait_until(CLOSING, || self.shared.open.load(Ordering::Acquire) == 0);
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Accepts connections. Unauthorised ones hold separate slots, so that
/// they block no client.
fn accept(shared: &Arc<Shared>, listener: &TcpListener, tls: Option<&TlsServer>) {
    let half_open = Arc::<HalfOpen>::default();
    let mut parting = VecDeque::new();
    while shared.stage() == stage::OPEN {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: ACCEPT_NS };
        let _ = poll(&mut fds, Some(&timeout));
        // At most as many as can be handled between two checks of the stage.
        for _ in 0..CLIENTS_MAX {
            while parting.front().is_some_and(|(since, _): &(Instant, _)| since.elapsed() > PARTING)
            {
                parting.pop_front();
            }
            let Ok((stream, _)) = listener.accept() else { break };
            let peer = Peer::of(&stream);
            // Every user of the machine can reach loopback: without a token only this user is accepted.
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

/// Sends the reason; bytes that are not accepted at once are dropped.
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
