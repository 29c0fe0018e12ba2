// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One client, served by a separate thread. A client can delay no other one.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_live::{
    Behind, Count, Cursor, Decoder, Folder, Item, Message, Preamble, REQUEST_BYTES_MAX, Request,
    StreamCount, same_token,
};
use lateralis_peers::Place;
use lateralis_ring::abi;

use super::bell::Bell;
use super::pace::Pace;
use super::received_files::packet_bytes;
use super::secure::Patience;
use super::server::{Shared, stage};
use super::wire::{Wire, is_later};
use crate::linux::clocks::{native_kind, native_word, now_ticks, utc_ns};
use crate::report;

/// Time limit for a client's request.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Time limit for sending a rejection, or the last frames.
const LAST_TIME: Duration = Duration::from_secs(1);
/// Time between two checks whether the recording has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes read from files between two checks of the window.
const CATCH_UP_BYTES: u64 = 16 << 20;
/// Maximum number of unanswered clock requests; the oldest are dropped.
const ASKED_MAX: usize = 16;

/// Starts serving a client, which holds a slot among those that have not sent a valid request yet. A follower
/// without a connection holds none. Errors: no thread could be created.
pub(super) fn begin(shared: &Arc<Shared>, wire: Wire, place: Option<Place>) -> io::Result<()> {
    let bell = shared.add_bell()?;
    let own = shared.clone();
    let serve = move || {
        let mut client = Client {
            peer: wire.peer(),
            pace: own.add_pace(),
            wire,
            decoder: Decoder::new(REQUEST_BYTES_MAX),
            asked: Vec::new(),
            bell,
            shared: own,
            out: Vec::new(),
            place,
            entered: false,
            greeted: false,
            drained: false,
        };
        // A failed connection is in the report, if it caused losses.
        let _ = client.serve();
        client.shared.remove_bell(&client.bell);
        client.shared.remove_pace(&client.pace);
        if client.entered {
            client.shared.leave();
        }
    };
    let thread = std::thread::Builder::new().name("live-client".to_owned());
    thread.spawn(serve).map(drop)
}

struct Client {
    peer: String,
    /// Progress of its connection.
    pace: Arc<Pace>,
    wire: Wire,
    decoder: Decoder,
    /// Clock requests: the client's time, and the time of receipt here, by UTC and by the counter.
    asked: Vec<(i64, i64, u64)>,
    bell: Arc<Bell>,
    shared: Arc<Shared>,
    out: Vec<u8>,
    /// Held until the client is authorised.
    place: Option<Place>,
    /// Whether it counts as a client.
    entered: bool,
    /// It has sent its request; only clock requests follow.
    greeted: bool,
    /// It has received all packets; only short frames follow.
    drained: bool,
}

/// Reports a served client on drop, however it ends.
struct Serving<'a> {
    client: &'a mut Client,
    cursor: Cursor,
    told: Cell<bool>,
}

impl Client {
    fn serve(&mut self) -> io::Result<()> {
        let one_way = self.wire.is_pipe();
        let handshake = self.handshake();
        let preamble = Preamble { one_way, needs_token: self.shared.token.is_some() };
        self.out.extend(preamble.encode());
        if let Err(error) = handshake {
            self.shared.refuse();
            if error.kind() == io::ErrorKind::Unsupported {
                return self.refuse("this address is encrypted: give --fingerprint or --tls-ca");
            }
            return Err(error);
        }
        self.send(Some(Instant::now() + REQUEST_TIME))?;
        let request = if one_way { Request::default() } else { self.request()? };
        let token = self.shared.token.clone().unwrap_or_default();
        if !one_way && !same_token(&token, &request.token) {
            self.shared.refuse();
            // Delays attempts to guess the token.
            std::thread::sleep(LAST_TIME / 2);
            return self.refuse("the token is wrong: give it with --token");
        }
        self.place = None;
        self.entered = self.shared.enter();
        if !self.entered {
            self.shared.leave();
            self.shared.refuse();
            return self.refuse("too many clients are connected: wait until one has left");
        }
        self.greeted = true;
        self.pace.is_client();
        let known = request.uuid == self.shared.uuid;
        let has = if known { request.has } else { Vec::new() };
        let from_start = self.shared.root.is_some();
        Message::Recording { uuid: self.shared.uuid, from_start }.encode(&mut self.out);
        self.shared.begin_serving();
        let cursor = Cursor::new(has, from_start);
        let mut serving = Serving { client: self, cursor, told: Cell::new(false) };
        serving.client.send(None).and_then(|()| serving.run())
    }

    fn handshake(&mut self) -> io::Result<()> {
        let shared = &self.shared;
        let is_over = || shared.stage() != stage::OPEN;
        let patience = Patience { time: REQUEST_TIME, look: LOOK, is_over: &is_over };
        self.wire.handshake(&patience, true)
    }

    fn refuse(&mut self, reason: &str) -> io::Result<()> {
        Message::Refused(reason).encode(&mut self.out);
        self.send(Some(Instant::now() + LAST_TIME))?;
        self.wire.end_writing();
        // Lets the client read it before the connection is reset.
        self.wait_for_the_end(LAST_TIME);
        Ok(())
    }

    /// For a socket: sent data are lost if it is closed with unread input.
    fn wait_for_the_end(&mut self, time: Duration) {
        if self.wire.is_pipe() {
            return;
        }
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let mut rest = [0; 256];
            let ready = self.wire.wait(true, false, None, left);
            if ready.reads && matches!(self.wire.read_some(&mut rest), Ok(0)) {
                return;
            }
        }
    }

    fn request(&mut self) -> io::Result<Request> {
        let until = Instant::now() + REQUEST_TIME;
        loop {
            match self.decoder.next_message() {
                Ok(Some(Message::Request(request))) => return Ok(request),
                Ok(Some(Message::ClockAsk { asked_ns })) => self.asked_for_the_time(asked_ns),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            let left = until.checked_duration_since(Instant::now());
            let left = left.ok_or(io::ErrorKind::TimedOut)?;
            if self.shared.stage() != stage::OPEN {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if self.wire.wait(true, false, None, left.min(LOOK)).reads {
                self.read()?;
            }
        }
    }

    /// Reads the client's messages; its clock requests are answered with the next frame.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match self.wire.read_some(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.decoder.feed(&buffer[..bytes]);
                Ok(())
            }
            Err(error) if is_later(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        self.read()?;
        loop {
            match self.decoder.next_message() {
                Ok(Some(Message::ClockAsk { asked_ns })) => self.asked_for_the_time(asked_ns),
                Ok(Some(Message::FlushEvery { period_ms })) => self.pace.wants_flushes(period_ms),
                Ok(None) => return Ok(()),
                Ok(Some(_)) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Sends the content of `out`, and empties it. Without a time limit, until the recording is about to
    /// end.
    fn send(&mut self, until: Option<Instant>) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.out);
        let sent = self.send_bytes(&out, until);
        out.clear();
        self.out = out;
        sent
    }

    fn send_bytes(&mut self, mut bytes: &[u8], until: Option<Instant>) -> io::Result<()> {
        // Data held back are not sent: without this they would be missing in the count of dropped packets.
        while !bytes.is_empty() || self.wire.holds_back() {
            let late = match until {
                Some(until) => Instant::now() >= until,
                None if self.drained => self.shared.stage() == stage::CLOSED,
                None => self.shared.stage() != stage::OPEN,
            };
            if late || self.pace.is_given_up() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let reads = self.greeted && !self.wire.is_pipe();
            let ready = self.wire.wait(reads, true, None, LOOK);
            if ready.reads {
                self.listen()?;
            }
            match (ready.took, ready.writes) {
                (true, _) => self.pace.takes_something(),
                (false, false) => self.pace.takes_nothing(),
                (false, true) => {}
            }
            if !ready.writes || bytes.is_empty() {
                continue;
            }
            match self.wire.write_some(bytes) {
                Ok(sent) => {
                    self.pace.takes_something();
                    bytes = &bytes[sent..];
                }
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn asked_for_the_time(&mut self, asked_ns: i64) {
        if self.asked.len() < ASKED_MAX {
            self.asked.push((asked_ns, utc_ns(), now_ticks(native_kind())));
        }
    }

    fn answer_clock(&mut self) {
        for (asked_ns, received_ns, received_ticks) in std::mem::take(&mut self.asked) {
            let (sent_ns, sent_ticks) = (utc_ns(), now_ticks(native_kind()));
            let clock_kind = native_word();
            Message::ClockTicks { asked_ns, clock_kind, received_ticks, sent_ticks }
                .encode(&mut self.out);
            Message::ClockAnswer { asked_ns, received_ns, sent_ns }.encode(&mut self.out);
        }
    }
}

impl Serving<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let now = self.client.shared.stage();
            if now != stage::OPEN && !self.told.get() {
                // Too late for the rest. Data in the connection may still arrive.
                self.tell(true, true);
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.client.bell.arm();
            let shared = self.client.shared.clone();
            let (item, drained) = {
                let window = shared.window();
                let item = window.next(&mut self.cursor);
                let drained = item.is_none() && window.is_drained(&self.cursor);
                (item, drained)
            };
            let late = (now != stage::OPEN).then(|| Instant::now() + LAST_TIME);
            match item {
                Some(Item::End) => {
                    Message::End { complete: true }.encode(&mut self.client.out);
                    self.client.send(late.or_else(|| Some(Instant::now() + LAST_TIME)))?;
                    self.client.wire.end_writing();
                    self.client.wait_for_the_end(LAST_TIME);
                    return Ok(());
                }
                Some(item) => self.send_item(item, late)?,
                None => {
                    if drained && !self.told.get() {
                        self.client.drained = true;
                        self.tell(true, false);
                    }
                    self.client.answer_clock();
                    self.client.send(late)?;
                    let reads = !self.client.wire.is_pipe();
                    let bell = self.client.bell.clone();
                    let ready = self.client.wire.wait(reads, false, Some(bell.fd()), LOOK);
                    if ready.reads {
                        self.client.listen()?;
                    } else if ready.over {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
            }
        }
    }

    fn send_item(&mut self, item: Item, until: Option<Instant>) -> io::Result<()> {
        let out = &mut self.client.out;
        match item {
            Item::Metadata(text) => Message::Metadata(&text).encode(out),
            Item::Report(text) => Message::Report(&text).encode(out),
            Item::Stream { stream, class, folder, name } => {
                Message::Stream { stream, class, folder, name: &name }.encode(out);
            }
            Item::Dropped { stream, first, count } => {
                Message::Dropped { stream, first, count }.encode(out);
            }
            Item::Flushed { count, utc_ns } => Message::Flushed { count, utc_ns }.encode(out),
            Item::Packet { stream, number, offset_bytes, bytes } => {
                out.extend(Message::packet_head(stream, number, offset_bytes, &bytes));
                out.extend_from_slice(&bytes);
                self.client.answer_clock();
                return self.client.send(until).inspect_err(|_| self.cursor.take_back());
            }
            Item::Behind(behind) => return self.catch_up(&behind),
            Item::End => {}
        }
        self.client.answer_clock();
        self.client.send(until)
    }

    /// Sends packets from a stream file.
    fn catch_up(&mut self, behind: &Behind) -> io::Result<()> {
        let folder = match behind.folder {
            Folder::Ctf => "ctf",
            Folder::Unreadable => "unreadable",
        };
        let root = self.client.shared.root.clone();
        let file = root.and_then(|root| File::open(root.join(folder).join(&*behind.name)).ok());
        let (mut packets, mut at) = (0, behind.offset_bytes);
        let mut sent = Ok(());
        let mut readable = file.is_some();
        while let Some(file) = &file {
            let enough = at - behind.offset_bytes >= CATCH_UP_BYTES;
            if enough || packets == behind.packets || sent.is_err() {
                break;
            }
            let Some(bytes) = packet_at(file, at, behind.end_bytes) else {
                readable = false;
                break;
            };
            let number = behind.first + packets;
            let head = Message::packet_head(behind.stream, number, at, &bytes);
            self.client.out.extend(head);
            self.client.out.extend(&bytes);
            self.client.answer_clock();
            sent = self.client.send(None);
            if sent.is_ok() {
                packets += 1;
                at += bytes.len() as u64;
            }
        }
        self.cursor.caught_up(behind, packets, at, readable);
        sent
    }

    /// Reports the client's result; only the first call counts.
    fn tell(&self, stayed: bool, rest: bool) {
        if self.told.replace(true) {
            return;
        }
        let dropped_of = self.cursor.dropped(&self.client.shared.window(), rest);
        let dropped = dropped_of.iter().fold(Count::default(), |sum, one| sum.plus(one.count));
        self.client.shared.report(report::LiveClient {
            peer: self.client.peer.clone(),
            stayed,
            sent: self.cursor.sent().into(),
            dropped: dropped.into(),
            dropped_of: dropped_of.into_iter().map(Into::into).collect(),
        });
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // A client that disconnected loses nothing: it reconnects, or does not need the rest.
        let stayed = self.client.shared.stage() != stage::OPEN;
        self.tell(stayed, stayed);
    }
}

fn packet_at(file: &File, at: u64, end: u64) -> Option<Vec<u8>> {
    let mut head = [0; abi::PACKET_HEADER_BYTES as usize];
    file.read_exact_at(&mut head, at).ok()?;
    let bytes = packet_bytes(&head)?;
    if at.checked_add(bytes)? > end {
        return None;
    }
    let mut packet = vec![0; usize::try_from(bytes).ok()?];
    file.read_exact_at(&mut packet, at).ok()?;
    Some(packet)
}

impl From<Count> for report::LiveCount {
    fn from(count: Count) -> report::LiveCount {
        report::LiveCount { packets: count.packets, bytes: count.bytes, events: count.events }
    }
}

impl From<StreamCount> for report::LiveStreamCount {
    fn from(one: StreamCount) -> report::LiveStreamCount {
        let folder = match one.folder {
            Folder::Ctf => "ctf",
            Folder::Unreadable => "unreadable",
        };
        let file = format!("{folder}/{}", one.name);
        report::LiveStreamCount { file, count: one.count.into() }
    }
}
