// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One text under one path, for programs that read it again and again, such as Prometheus.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use lateralis_peers::{HalfOpen, Peer, Place};

use super::{Serves, accept, http, read_head, refuse, respond, token};
use crate::serving::Refused;

/// Time for a head to arrive, and for an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);
/// Text format of Prometheus.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves a text that is made for each request. Programs of this user and root get it; others need a token.
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    half_open: Arc<HalfOpen>,
    text: Box<dyn Fn() -> String + Send + Sync>,
}

impl MetricsServer {
    /// Listens at an address; port 0 takes a free one. Without a token one is made.
    ///
    /// # Errors
    /// The address cannot be had, or there is no randomness for a token.
    pub fn bind(
        address: SocketAddr,
        token_given: Option<String>,
        text: Box<dyn Fn() -> String + Send + Sync>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let token = token_given.map_or_else(token, Ok)?;
        Ok(Self { listener, address, token, half_open: Arc::default(), text })
    }

    /// Address of the text for programs of this user.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, http::METRICS)
    }

    /// Token for programs of other users and on other machines.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// The listening socket has gone.
    pub fn run(self) -> io::Result<()> {
        accept(Arc::new(self))
    }
}

impl Serves for MetricsServer {
    fn listener(&self) -> (&TcpListener, &Arc<HalfOpen>) {
        (&self.listener, &self.half_open)
    }

    fn connection(&self, mut stream: TcpStream, peer: Peer, _place: Place) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = match read_head(&mut stream)? {
            Ok((head, _)) => head,
            Err(refused) => return refuse(&mut stream, refused),
        };
        let token = (!peer.is_own()).then_some(&*self.token);
        if let Err(refused) = head.check(self.address, token, &[]) {
            return refuse(&mut stream, refused);
        }
        if head.path != http::METRICS {
            return refuse(&mut stream, Refused::NotFound);
        }
        respond(&mut stream, "200 OK", KIND, (self.text)().as_bytes())
    }
}
