// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client's connection, and clock exchanges on it.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use lateralis_live::{
    BODY_BYTES_MAX, Decoder, Exchange, Has, Message, Preamble, Relation, Request,
};
use lateralis_ring::ClockKind;

use super::receive::{ReceiveFrom, ReceiveOptions};
use super::secure::Patience;
use super::tls;
use super::wire::Wire;
use crate::error::Error;
use crate::exchanges::Reading;
use crate::linux::clocks::{native_kind, now_ticks, utc_ns};

/// Timeout for connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time between two clock exchanges; the first ones follow each other quickly.
const CLOCK_PERIOD: Duration = Duration::from_secs(1);
const QUICK_PERIOD: Duration = Duration::from_millis(20);
const QUICK_EXCHANGES: u32 = 16;

/// A simultaneous reading of both clocks of this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    ns: i64,
    ticks: u64,
}

impl Moment {
    pub(super) fn now() -> Moment {
        Moment { ns: utc_ns(), ticks: now_ticks(native_kind()) }
    }
}

/// Result of one exchange.
pub(super) struct Told {
    pub(super) relation: Relation,
    /// Reading of the counters, and the kind of the server's.
    pub(super) reading: Option<(ClockKind, Reading)>,
}

pub(super) struct Connection {
    pub(super) wire: Wire,
    pub(super) decoder: Decoder,
    /// Index of each stream, by the server's number.
    pub(super) streams: HashMap<u32, usize>,
    pub(super) out: Vec<u8>,
    pub(super) greeted: bool,
    asked: Option<(Instant, Moment)>,
    /// Of the response being received: clock kind, received, sent.
    their_ticks: Option<(ClockKind, [u64; 2])>,
    answers: u32,
}

impl Connection {
    /// Connects, and prepares the request.
    ///
    /// Errors: the server is not reachable.
    pub(super) fn open(
        options: &ReceiveOptions,
        uuid: [u8; 16],
        has: Vec<Has>,
    ) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: connect(options)?,
            decoder: Decoder::new(BODY_BYTES_MAX),
            streams: HashMap::new(),
            out: Vec::new(),
            greeted: false,
            asked: None,
            their_ticks: None,
            answers: 0,
        };
        if !connection.wire.is_pipe() {
            connection.out.extend(Preamble::default().encode());
            let token = options.token.clone().unwrap_or_default().into_bytes();
            Message::Request(Request { token, uuid, has }).encode(&mut connection.out);
            if let Some(period) = options.flush_every {
                let period_ms = u32::try_from(period.as_millis()).unwrap_or(u32::MAX).max(1);
                Message::FlushEvery { period_ms }.encode(&mut connection.out);
            }
        }
        Ok(connection)
    }

    /// Sends a clock request if it is due.
    pub(super) fn ask_for_the_time(&mut self) {
        // The next one after the last one has been answered, or lost.
        let is_quick = self.answers < QUICK_EXCHANGES;
        let pause = if is_quick { QUICK_PERIOD } else { CLOCK_PERIOD };
        let due = self.asked.is_none_or(|(at, _)| at.elapsed() >= pause);
        // Only with an empty output buffer: pending data would lengthen the way there.
        if self.greeted && !self.wire.is_pipe() && due && self.out.is_empty() {
            let now = Moment::now();
            self.asked = Some((Instant::now(), now));
            Message::ClockAsk { asked_ns: now.ns }.encode(&mut self.out);
        }
    }

    /// Maximum wait before the next clock request is due.
    pub(super) fn pause(&self, most: Duration) -> Duration {
        let is_quick = self.greeted && !self.wire.is_pipe() && self.answers < QUICK_EXCHANGES;
        if is_quick { QUICK_PERIOD.min(most) } else { most }
    }
}

/// The times of an exchange, message by message.
pub(super) struct Asked<'c> {
    asked: &'c Option<(Instant, Moment)>,
    their_ticks: &'c mut Option<(ClockKind, [u64; 2])>,
    answers: &'c mut u32,
}

impl Connection {
    /// The buffer of received messages, and the state of exchanges.
    pub(super) fn parts(
        &mut self,
    ) -> (&mut Decoder, &mut HashMap<u32, usize>, &mut bool, Asked<'_>) {
        let Connection { decoder, streams, greeted, asked, their_ticks, answers, .. } = self;
        (decoder, streams, greeted, Asked { asked, their_ticks, answers })
    }
}

impl Asked<'_> {
    /// The server's counter, which precedes its response.
    pub(super) fn ticks(&mut self, asked_ns: i64, clock_kind: u32, ticks: [u64; 2]) {
        let is_asked = self.asked.is_some_and(|(_, asked)| asked.ns == asked_ns);
        let kind = ClockKind::from_word(clock_kind).filter(|_| is_asked && ticks[0] <= ticks[1]);
        *self.their_ticks = kind.map(|kind| (kind, ticks));
    }

    /// The response; `None` if it is useless: a clock was stepped, or the peer is lying.
    pub(super) fn answer(
        &mut self,
        asked_ns: i64,
        [received_ns, sent_ns]: [i64; 2],
        now: Moment,
    ) -> Option<Told> {
        *self.answers = self.answers.saturating_add(1);
        let exchange = Exchange { asked_ns, received_ns, sent_ns, answered_ns: now.ns };
        let relation = exchange.relation()?;
        let ticks = self.their_ticks.take();
        let asked = self.asked.filter(|(_, asked)| asked.ns == asked_ns);
        let reading = asked.zip(ticks).map(|((_, asked), (kind, [received, sent]))| {
            let ticks = [asked.ticks, received, sent, now.ticks];
            (kind, Reading { ticks, error_ns: relation.error_ns })
        });
        Some(Told { relation, reading })
    }
}

fn connect(options: &ReceiveOptions) -> Result<Wire, Error> {
    let address = options.from.to_string();
    let error = |cause| Error::Address { action: "connect", address: address.clone(), cause };
    let address = match &options.from {
        ReceiveFrom::StandardInput => {
            let stdin = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3);
            return Ok(Wire::Pipe(stdin.map_err(|cause| error(cause.into()))?));
        }
        ReceiveFrom::Tcp(address) => address,
    };
    let addresses: Vec<_> = address.to_socket_addrs().map_err(error)?.collect();
    let Some(trust) = &options.trust else {
        // The token would be readable on the network.
        if addresses.iter().any(|one| !one.ip().is_loopback()) {
            return Err(Error::NeedsTrust(address.clone()));
        }
        return first(&addresses).and_then(Wire::socket).map_err(error);
    };
    let config = tls::client(trust)?;
    let no_name = || Error::Live {
        address: address.clone(),
        reason: "no certificate can be of such a name".to_owned(),
    };
    let name = tls::server_name(address, trust).ok_or_else(no_name)?;
    let stream = first(&addresses).map_err(error)?;
    let mut wire = Wire::to_server(stream, config, name).map_err(error)?;
    let patience = Patience { time: CONNECT_TIME, look: CONNECT_TIME, is_over: &|| false };
    wire.handshake(&patience, false).map_err(|cause| match cause.kind() {
        io::ErrorKind::InvalidData => Error::Live {
            address: address.clone(),
            reason: format!("no encrypted connection: {cause}"),
        },
        _ => error(cause),
    })?;
    Ok(wire)
}

/// Connects to the first responding address of a name.
fn first(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for one in addresses {
        match TcpStream::connect_timeout(one, CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}
