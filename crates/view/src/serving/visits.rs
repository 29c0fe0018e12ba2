// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that have shown the token.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use crate::session::lock;

/// Maximum number of open connections.
const VISITS_MAX: usize = 64;
/// Maximum number of connections whose threads have not ended, including closed connections.
const THREADS_MAX: usize = 4 * VISITS_MAX;

/// List of connections; see the module's description.
#[derive(Debug, Default)]
pub struct Visits(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// Open connections, ordered by the time of their last request, longest idle first.
    open: Vec<(u64, TcpStream)>,
    threads: usize,
}

/// A connection; removed from the list when dropped.
#[derive(Debug)]
pub struct Visit {
    of: Arc<Visits>,
    number: u64,
}

impl Visits {
    /// Adds a connection. If there are too many, the one that is idle longest is closed, so that
    /// closed pages and idle clients block no others.
    ///
    /// Errors: if the threads of too many closed connections are still running, or no file
    /// descriptor is free.
    pub fn add(self: &Arc<Self>, stream: &TcpStream) -> io::Result<Visit> {
        let stream = stream.try_clone()?;
        let mut list = lock(&self.0);
        if list.threads >= THREADS_MAX {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if list.open.len() >= VISITS_MAX {
            // Its thread detects this at the next read or write.
            let _ = list.open.remove(0).1.shutdown(Shutdown::Both);
        }
        let number = list.next;
        list.next += 1;
        list.threads += 1;
        list.open.push((number, stream));
        Ok(Visit { of: Arc::clone(self), number })
    }
}

impl Visit {
    /// Marks the connection as active after a message of its client.
    pub fn speaks(&self) {
        let mut list = lock(&self.of.0);
        if let Some(at) = list.open.iter().position(|(number, _)| *number == self.number) {
            list.open[at..].rotate_left(1);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut list = lock(&self.of.0);
        list.threads -= 1;
        list.open.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_one_that_was_silent_longest_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let visits = Arc::<Visits>::default();
        let visit = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let served = listener.accept().unwrap().0;
            (client, visits.add(&served), served)
        };
        let is_closed = |client: &mut TcpStream| {
            client.set_nonblocking(true).unwrap();
            matches!(client.read(&mut [0]), Ok(0))
        };
        let mut all: Vec<_> = (0..VISITS_MAX).map(|_| visit()).collect();
        all[0].1.as_ref().unwrap().speaks();
        all.push(visit());
        let closed: Vec<usize> = (0..all.len()).filter(|at| is_closed(&mut all[*at].0)).collect();
        assert_eq!(closed, [1]);
        while all.len() < THREADS_MAX {
            all.push(visit());
        }
        assert!(visit().1.is_err(), "those that were closed have not ended");
        drop(all.remove(1));
        assert!(visit().1.is_ok());
        drop(all);
        assert_eq!(lock(&visits.0).threads, 0);
    }
}
