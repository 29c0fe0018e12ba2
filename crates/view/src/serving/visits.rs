// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that have shown the token.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use crate::session::lock;

/// Connections at the same time.
const VISITS_MAX: usize = 64;
/// Connections whose threads have not ended, those that were closed included.
const THREADS_MAX: usize = 4 * VISITS_MAX;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Visits(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// Open connections, the one that has been silent longest first.
    open: Vec<(u64, TcpStream)>,
    threads: usize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Visit {
    of: Arc<Visits>,
    number: u64,
}

impl Visits {
    /// Adds a connection. Where there are too many, the one that has been silent longest is closed:
    /// pages that are gone, and clients that only hold a connection, lock out no other.
    ///
    /// Errors: too many that were closed are still at work, or there are no more descriptors.
    pub fn add(self: &Arc<Self>, stream: &TcpStream) -> io::Result<Visit> {
        let stream = stream.try_clone()?;
        let mut list = lock(&self.0);
        if list.threads >= THREADS_MAX {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if list.open.len() >= VISITS_MAX {
            // Its thread finds out by reading, or by writing.
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
    /// Its client has sent something.
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
