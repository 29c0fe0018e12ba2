// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP and WebSocket server (spec/view.md §1). One thread per connection, and two more per page.

mod export;
mod http;
mod metrics;
mod page;
mod pushing;
mod socket;
mod trace_server;
mod visits;
mod waiting;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lateralis_peers::{HalfOpen, Peer, Place};

use crate::host::Host;
use export::{Chunked, Export};
use http::HEAD_MAX;

use visits::{Visit, Visits};

pub use http::{Head, Refused};
pub use metrics::MetricsServer;
pub use page::is_there as has_page;
pub use waiting::Request;

/// Time limit for receiving a head, and for each write of a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Server of a host's session.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    host: Arc<Host>,
    /// Origins of other pages that may use the Trace Server Protocol.
    friends: Vec<String>,
    /// Connections that have not shown the token yet.
    half_open: Arc<HalfOpen>,
    /// Connections that have shown the token.
    visits: Arc<Visits>,
}

impl Server {
    /// Listens at an address; port 0 selects a free one. All requests except those for the files of the
    /// page must contain a token, on loopback too, because all users of a machine can connect to it.
    ///
    /// # Errors
    /// If the address is not available, or no random token can be created.
    pub fn bind(address: SocketAddr, host: Arc<Host>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (friends, half_open, visits) = (Vec::new(), Arc::default(), Arc::default());
        Ok(Self { listener, address, token: token()?, host, friends, half_open, visits })
    }

    /// Permits pages of these origins to use the Trace Server Protocol; for patterns, see
    /// [`Head::friend`].
    #[must_use]
    pub fn with_friends(mut self, origins: Vec<String>) -> Self {
        self.friends = origins;
        self
    }

    /// URL of the Trace Server Protocol.
    #[must_use]
    pub fn trace_server_url(&self) -> String {
        format!("http://{}/token/{}{}", self.address, self.token, http::TRACE_SERVER)
    }

    /// URL to open in a browser.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// Serves requests until the process ends.
    ///
    /// # Errors
    /// If the listening socket fails.
    pub fn run(self) -> io::Result<()> {
        accept(Arc::new(self))
    }
}

/// A server of which [`accept`] takes the connections.
trait Serves: Send + Sync + 'static {
    /// Its socket, and its connections that have not shown a token.
    fn listener(&self) -> (&TcpListener, &Arc<HalfOpen>);

    /// Serves one connection. An error is the end of this connection.
    fn connection(&self, stream: TcpStream, peer: Peer, place: Place) -> io::Result<()>;
}

/// Serves each connection on a thread of its own, until the socket has gone.
fn accept(server: Arc<impl Serves>) -> io::Result<()> {
    loop {
        let (listener, half_open) = server.listener();
        let (stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            // The client has closed the connection already, or no file descriptor is free.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) if error.raw_os_error().is_some_and(|code| code == 23 || code == 24) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // A connection without a slot is closed unread. Other users cannot occupy slots of this user.
        let Some(peer) = Peer::of(&stream) else { continue };
        let Some(place) = half_open.add(peer, &stream) else { continue };
        let of = Arc::clone(&server);
        // An error on a connection only ends that connection.
        let serve = move || drop(of.connection(stream, peer, place));
        // If no thread can be started, the connection is closed.
        drop(thread::Builder::new().name("view".into()).spawn(serve));
    }
}

impl Serves for Server {
    fn listener(&self) -> (&TcpListener, &Arc<HalfOpen>) {
        (&self.listener, &self.half_open)
    }

    fn connection(&self, mut stream: TcpStream, peer: Peer, place: Place) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let (head, rest) = match read_head(&mut stream)? {
            Ok(read) => read,
            Err(refused) => return refuse(&mut stream, refused),
        };
        // The files of the page contain no data of the user and need no token. A cookie cannot
        // replace the token: browsers send it to all ports of this machine, including those of
        // other users.
        let is_file = !head.is_data();
        // Trace viewers cannot always be configured with a token; for a local connection, the
        // kernel reports whether the client belongs to the same user.
        let is_known = head.trace_server().is_some() && peer.is_own();
        let token = (!is_file && !is_known).then_some(&*self.token);
        if let Err(refused) = head.check(self.address, token, &self.friends) {
            return refuse(&mut stream, refused);
        }
        if is_file {
            return match page::find(&head.path) {
                None => refuse(&mut stream, Refused::NotFound),
                Some((content, kind)) => respond(&mut stream, "200 OK", kind, content),
            };
        }
        drop(place);
        match self.visits.add(&stream) {
            Ok(visit) => self.request(stream, &head, rest, &visit),
            Err(_) => refuse(&mut stream, Refused::TooMany),
        }
    }
}

impl Server {
    /// Answers a request that passed the checks.
    fn request(
        &self,
        mut stream: TcpStream,
        head: &Head,
        rest: Vec<u8>,
        visit: &Visit,
    ) -> io::Result<()> {
        if head.trace_server().is_some() {
            let begun = Instant::now();
            let Some(Ok(session)) = self.host.session(&|| begun.elapsed() > PATIENCE) else {
                return refuse(&mut stream, Refused::NotReady);
            };
            return trace_server::serve(&mut stream, head, rest, &session, &self.friends);
        }
        match (&*head.path, &head.key) {
            ("/ws", Some(key)) => socket::serve(stream, key, rest, &self.host, visit),
            ("/ws", None) => refuse(&mut stream, Refused::Bad),
            _ => match Export::of(head) {
                Some(export) => self.export(&mut stream, &export),
                None => refuse(&mut stream, Refused::NotFound),
            },
        }
    }
}

impl Server {
    fn export(&self, stream: &mut TcpStream, export: &Export) -> io::Result<()> {
        let begun = Instant::now();
        let Some(Ok(session)) = self.host.session(&|| begun.elapsed() > PATIENCE) else {
            return refuse(stream, Refused::NotReady);
        };
        let (kind, name) = (export.kind(), export.name());
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\
             Content-Disposition: attachment; filename=\"{name}\"\r\n{HEADERS}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut out = Chunked::new(stream);
        export.write(&session, &mut out)?;
        out.end()
    }
}

/// Reads a head; returns it with the bytes that follow it.
fn read_head(stream: &mut TcpStream) -> io::Result<Result<(Head, Vec<u8>), Refused>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 2048];
    // Limits the total time: a client that sends single bytes slowly would occupy the connection.
    let begun = Instant::now();
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 || bytes.len() + count > HEAD_MAX || begun.elapsed() > PATIENCE {
            return Ok(Err(Refused::Bad));
        }
        bytes.extend_from_slice(&piece[..count]);
        match Head::parse(&bytes) {
            Err(refused) => return Ok(Err(refused)),
            Ok(None) => {}
            Ok(Some((head, length))) => return Ok(Ok((head, bytes.split_off(length)))),
        }
    }
}

fn refuse(stream: &mut TcpStream, refused: Refused) -> io::Result<()> {
    let (status, text) = refused.status();
    respond(stream, status, "text/plain; charset=utf-8", format!("{text}\n").as_bytes())?;
    // The kernel would discard the response if received bytes stayed unread.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut rest = [0; 4096];
    for _ in 0..64 {
        if stream.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, content: &[u8]) -> io::Result<()> {
    respond_with(stream, status, kind, "", content)
}

/// `more`: headers of this response only.
fn respond_with(
    stream: &mut TcpStream,
    status: &str,
    kind: &str,
    more: &str,
    content: &[u8],
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}{HEADERS}\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(content)
}

/// The page loads nothing from other sites, and other sites cannot embed it.
pub(crate) const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\n\
    X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; worker-src 'self' blob:; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'\r\n";

/// Creates a random token of 128 bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
