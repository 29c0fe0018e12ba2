// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that have not shown yet that they may be there.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Peer;

/// In all: a browser opens six at a time.
const ALL_MAX: usize = 128;
/// Of one peer that is not this user: others can have some of the places, never all.
const OTHERS_MAX: usize = 32;

/// See the module's description.
#[derive(Debug, Default)]
pub struct HalfOpen {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// From the oldest to the newest.
    list: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    peer: Peer,
    stream: TcpStream,
}

/// One of them; dropped when it is served, or over.
#[derive(Debug)]
pub struct Place {
    of: Arc<HalfOpen>,
    number: u64,
}

impl HalfOpen {
    /// Adds a connection. Where there are too many, the oldest of the same peer or of all is closed.
    /// `None`: it cannot be added.
    #[must_use]
    pub fn add(self: &Arc<Self>, peer: Peer, stream: &TcpStream) -> Option<Place> {
        let stream = stream.try_clone().ok()?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = waiting.list.iter().filter(|one| one.peer == peer).count();
        let oldest = if !peer.is_own() && of_peer >= OTHERS_MAX {
            waiting.list.iter().position(|one| one.peer == peer)
        } else if waiting.list.len() >= ALL_MAX {
            // Others first.
            waiting.list.iter().position(|one| !one.peer.is_own()).or(Some(0))
        } else {
            None
        };
        if let Some(oldest) = oldest {
            // Its thread finds out by reading.
            let _ = waiting.list.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.list.push(Connection { number, peer, stream });
        Some(Place { of: Arc::clone(self), number })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.of.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.list.retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn whoever_comes_is_let_in_and_the_oldest_of_others_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let half_open = Arc::<HalfOpen>::default();
        let own = Peer::User(rustix::process::geteuid().as_raw());
        let foreign = Peer::User(4_000_000_001);
        let (mut mine, accepted) = connect();
        let _mine = half_open.add(own, &accepted).unwrap();
        let mut others: Vec<_> = (0..OTHERS_MAX + 1)
            .map(|_| {
                let (client, accepted) = connect();
                (client, half_open.add(foreign, &accepted).unwrap())
            })
            .collect();
        let is_closed = |stream: &mut TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.read(&mut [0]), Ok(0))
        };
        assert!(!is_closed(&mut mine), "others take no place of ours");
        assert!(is_closed(&mut others[0].0) && !is_closed(&mut others[1].0));
        // All places are taken, by our own: a new connection is still admitted.
        let many: Vec<_> = (0..ALL_MAX)
            .map(|_| {
                let (client, accepted) = connect();
                (client, half_open.add(own, &accepted).unwrap())
            })
            .collect();
        assert!(others.iter_mut().all(|(client, _)| is_closed(client)), "others go first");
        assert!(is_closed(&mut mine), "then the oldest");
        drop((many, others, _mine));
        assert!(half_open.waiting.lock().unwrap().list.is_empty());
    }
}
