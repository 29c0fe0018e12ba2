// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of a bfscope server. Each receives dumps at its own pace; the server waits for none.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_peers::Peer;
use lateralis_recorder::linux::live::bfscope::{DUMP_BYTES_MAX, LENGTH_BYTES, length_prefix};

/// Largest number of clients. A new client replaces the one that has lagged longest.
const CLIENTS_MAX: usize = 8;
/// Connections accepted per poll.
const ACCEPTED_MAX: usize = 64;
/// Size limit of dumps queued for one client. Further dumps are dropped, and the client gets the number of
/// their packets.
const WAITING_MAX: usize = 64 << 20;
/// A client with queued data must receive this many bytes per second, after a delay.
const PACE_BYTES: u64 = 1 << 20;

/// A dump, shared by all clients that receive it.
pub type Dump = Arc<[u8]>;

/// See the module's description.
pub struct Clients {
    listener: TcpListener,
    open: Vec<Client>,
}

struct Client {
    stream: TcpStream,
    waiting: VecDeque<Dump>,
    waiting_bytes: usize,
    /// Bytes of the first queued dump that are sent, including length prefixes.
    sent_bytes: usize,
    /// Packets of dumps that did not fit into the queue.
    missed: u64,
    /// When the client began to lag, and bytes received since then.
    since: Option<(Instant, u64)>,
    is_gone: bool,
}

impl Clients {
    /// Takes a socket that listens and does not block.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, open: Vec::new() }
    }

    /// Whether no client is connected.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a client has queued data.
    pub fn has_waiting(&self) -> bool {
        self.open.iter().any(|client| !client.waiting.is_empty())
    }

    /// Accepts clients, and detects disconnected ones. Their input is read and ignored, as in bfscope. The
    /// protocol has no token: the operating system identifies other users of the machine, and their
    /// connections are refused.
    pub fn look(&mut self) {
        self.open.iter_mut().for_each(Client::listen);
        for _ in 0..ACCEPTED_MAX {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if Peer::of(&stream).is_none_or(Peer::is_foreign)
                || stream.set_nonblocking(true).is_err()
            {
                continue;
            }
            if self.open.len() >= CLIENTS_MAX {
                let since = |at: &usize| self.open[*at].since.map(|(since, _)| since);
                // The client that has lagged longest, else the one that connected first.
                let late = (0..self.open.len()).filter(|at| since(at).is_some()).min_by_key(since);
                self.open.remove(late.unwrap_or(0));
            }
            self.open.push(Client::new(stream));
        }
    }

    /// Queues a dump of some packets for all clients.
    pub fn offer(&mut self, dump: &Dump, packets: u64) {
        self.open.iter_mut().for_each(|client| client.offer(dump, packets));
    }

    /// Sends queued data without blocking. Clients that are disconnected, or have received too little for
    /// `patience`, are closed. Returns the dumps that the last remaining client did not receive.
    pub fn send(&mut self, patience: Duration) -> (VecDeque<Dump>, Option<io::Error>) {
        let (mut left, mut why) = (VecDeque::new(), None);
        self.open.retain_mut(|client| {
            let Err(error) = client.send(patience) else { return true };
            if !client.waiting.is_empty() {
                left = std::mem::take(&mut client.waiting);
                why = Some(error);
            }
            false
        });
        if !self.open.is_empty() {
            left.clear();
        }
        (left, why)
    }
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        let waiting = VecDeque::new();
        let (waiting_bytes, sent_bytes, missed) = (0, 0, 0);
        Self { stream, waiting, waiting_bytes, sent_bytes, missed, since: None, is_gone: false }
    }

    fn listen(&mut self) {
        let mut word = [0; 256];
        self.is_gone |= match self.stream.read(&mut word) {
            Ok(bytes) => bytes == 0,
            Err(error) => !is_later(&error),
        };
    }

    fn offer(&mut self, dump: &Dump, packets: u64) {
        // A single dump is queued whatever its size.
        if !self.waiting.is_empty() && self.waiting_bytes + dump.len() > WAITING_MAX {
            self.missed += packets;
            return;
        }
        if self.missed > 0 {
            let missed = format!("# Lost packets {}\n", std::mem::take(&mut self.missed));
            self.add(missed.into_bytes().into());
        }
        self.add(Arc::clone(dump));
    }

    fn add(&mut self, dump: Dump) {
        self.waiting_bytes += dump.len();
        self.waiting.push_back(dump);
    }

    fn send(&mut self, patience: Duration) -> io::Result<()> {
        if self.is_gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        while let Some(dump) = self.waiting.front() {
            let Some(piece) = Piece::at(dump, self.sent_bytes) else {
                self.waiting_bytes -= dump.len();
                self.waiting.pop_front();
                self.sent_bytes = 0;
                continue;
            };
            match self.stream.write(piece.bytes()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.sent_bytes += bytes;
                    if let Some((_, taken)) = &mut self.since {
                        *taken += bytes as u64;
                    }
                }
                Err(error) if is_later(&error) => {
                    let (since, taken) = *self.since.get_or_insert_with(|| (Instant::now(), 0));
                    let is_late =
                        since.elapsed() >= patience + Duration::from_secs(taken / PACE_BYTES);
                    return if is_late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) };
                }
                Err(error) => return Err(error),
            }
        }
        self.since = None;
        Ok(())
    }
}

/// A part of the byte stream. Each dump is preceded by its length; a dump whose length needs more than eight
/// digits is sent in several parts.
enum Piece<'a> {
    /// A length prefix, and the number of its bytes already sent.
    Length([u8; LENGTH_BYTES], usize),
    Text(&'a [u8]),
}

impl<'a> Piece<'a> {
    /// Returns the part that follows the first `sent` bytes of a dump with its lengths; `None` if nothing
    /// follows.
    fn at(dump: &'a [u8], sent: usize) -> Option<Self> {
        let (part, within) =
            (sent / (LENGTH_BYTES + DUMP_BYTES_MAX), sent % (LENGTH_BYTES + DUMP_BYTES_MAX));
        let text = dump.chunks(DUMP_BYTES_MAX).nth(part)?;
        if within < LENGTH_BYTES {
            return Some(Self::Length(length_prefix(text.len()), within));
        }
        let rest = &text[within - LENGTH_BYTES..];
        (!rest.is_empty()).then_some(Self::Text(rest))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Length(digits, from) => &digits[*from..],
            Self::Text(text) => text,
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn listening() -> (Clients, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        (Clients::new(listener), address)
    }

    fn connect(clients: &mut Clients, address: SocketAddr) -> TcpStream {
        let client = TcpStream::connect(address).unwrap();
        let before = clients.open.len();
        while clients.open.len() == before && before < CLIENTS_MAX {
            clients.look();
        }
        clients.look();
        client
    }

    #[test]
    fn a_client_that_reads_nothing_holds_up_no_other() {
        let (mut clients, address) = listening();
        let _silent = connect(&mut clients, address);
        let mut reader = connect(&mut clients, address);
        let dump: Dump = vec![b'x'; 24 << 20].into();
        let taken = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        for _ in 0..4 {
            clients.offer(&dump, 7);
            // Until the reading client has received everything.
            while !clients.open[1].waiting.is_empty() {
                assert!(clients.send(Duration::MAX / 2).1.is_none());
            }
        }
        // The queue of the other client is bounded.
        assert!(clients.open[0].waiting_bytes <= WAITING_MAX);
        assert_eq!(clients.open[0].missed, 14);
        let (left, why) = clients.send(Duration::ZERO);
        assert_eq!(why.unwrap().kind(), io::ErrorKind::TimedOut);
        assert!(left.is_empty() && clients.open.len() == 1, "the reader has had it");
        clients.open.clear();
        let taken = taken.join().unwrap().unwrap();
        assert_eq!(taken.len(), 4 * (LENGTH_BYTES + dump.len()));
        assert_eq!(taken[..LENGTH_BYTES], *b"25165824");
    }

    #[test]
    fn what_the_last_client_did_not_take_goes_elsewhere() {
        let (mut clients, address) = listening();
        let _silent = connect(&mut clients, address);
        let dump: Dump = vec![b'x'; 24 << 20].into();
        clients.offer(&dump, 1);
        clients.offer(&dump, 1);
        let (left, why) = clients.send(Duration::ZERO);
        assert!(why.is_some() && clients.is_empty());
        assert_eq!(left.len(), 2);
    }

    #[test]
    fn newcomers_take_the_place_of_the_one_that_is_furthest_behind() {
        let (mut clients, address) = listening();
        let mut all = vec![connect(&mut clients, address), connect(&mut clients, address)];
        let late = clients.open[1].stream.peer_addr().unwrap();
        clients.open[1].since = Some((Instant::now(), 0));
        while all.len() < CLIENTS_MAX {
            all.push(connect(&mut clients, address));
        }
        let newcomer = TcpStream::connect(address).unwrap();
        let own = newcomer.local_addr().unwrap();
        let peers = |clients: &Clients| {
            let peers = clients.open.iter().filter_map(|client| client.stream.peer_addr().ok());
            peers.collect::<Vec<_>>()
        };
        while !peers(&clients).contains(&own) {
            clients.look();
        }
        assert_eq!(clients.open.len(), CLIENTS_MAX);
        assert!(!peers(&clients).contains(&late));
    }

    #[test]
    fn long_dumps_come_in_parts_behind_their_lengths() {
        let dump = vec![b'y'; DUMP_BYTES_MAX + 3];
        let (mut at, mut lengths) = (0, Vec::new());
        while let Some(piece) = Piece::at(&dump, at) {
            if let Piece::Length(digits, 0) = &piece {
                lengths.push(String::from_utf8(digits.to_vec()).unwrap());
            }
            at += piece.bytes().len().div_ceil(2);
        }
        assert_eq!(lengths, ["99999999", "00000003"]);
        assert_eq!(at, dump.len() + 2 * LENGTH_BYTES);
    }
}
