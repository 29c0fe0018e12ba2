// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client: writes what a live recording sends into a directory, which is then a recording.

use std::collections::HashMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lateralis_live::{
    BODY_BYTES_MAX, Count, Decoder, Exchange, Message, Preamble, Relation, Request,
};

use super::received_files::{self, Received};
use super::recount::{path_of, recount};
use super::wire::{Wire, is_later};
use crate::error::Error;
use crate::linux::clocks::utc_ns;
use crate::linux::output::{AppendError, Output};
use crate::linux::recover_recording::parse_uuid;
use crate::linux::signals;
use crate::metadata::uuid_text;
use crate::report::{self, Report};

/// Bytes taken from the system at once.
const READ_BYTES: usize = 256 << 10;
/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two clock exchanges; the first ones follow each other at once.
const CLOCK_PERIOD: Duration = Duration::from_secs(1);
const QUICK_EXCHANGES: u32 = 8;
/// Time for a connection to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time between two attempts to come back.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// Where a live recording comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiveFrom {
    /// `HOST:PORT`.
    Tcp(String),
    /// Standard input.
    StandardInput,
}

/// How to receive.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// From where.
    pub from: ReceiveFrom,
    /// Directory to be made, or one in which a part of the same recording is.
    pub output: PathBuf,
    /// What the server wants to hear.
    pub token: Option<String>,
    /// How long to try to come back after the connection broke.
    pub retry: Duration,
    /// Longest time.
    pub duration: Option<Duration>,
    /// Most bytes of stream files.
    pub max_disk_bytes: Option<u64>,
}

/// How it is going.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReceiveProgress {
    /// Since the start.
    pub elapsed: Duration,
    /// Packets received.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the server dropped.
    pub dropped: Count,
    /// Everything up to this moment is here, nanoseconds of UTC of the server.
    pub flushed_ns: Option<i64>,
    /// There is a connection.
    pub connected: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ReceiveSummary {
    /// The directory.
    pub output: PathBuf,
    /// What `report.json` says; not complete if the server did not end the recording.
    pub report: Report,
    /// Sums.
    pub progress: ReceiveProgress,
}

/// Receives until the recording ends, or a signal, or one of the limits.
///
/// Errors: nobody is there, refuses, or sends something else; the directory is of another
/// recording, or cannot be written.
pub fn receive(
    options: ReceiveOptions,
    progress: &mut dyn FnMut(&ReceiveProgress),
) -> Result<ReceiveSummary, Error> {
    signals::catch_endings();
    let signals_before = signals::interrupts() + signals::terminations();
    let mut receiver = Receiver::new(options)?;
    let mut last_progress = Instant::now();
    let mut broken_at: Option<Instant> = None;
    loop {
        let seen = receiver.progress.packets;
        let outcome = receiver.connect().and_then(|mut connection| {
            let mut over = || signals::interrupts() + signals::terminations() != signals_before;
            receiver.follow(&mut connection, &mut over, &mut |now| {
                if last_progress.elapsed() >= LOOK {
                    last_progress = Instant::now();
                    progress(now);
                }
            })
        });
        receiver.progress.connected = false;
        match outcome {
            Ok(Over::Yes) => break,
            Ok(Over::Broken) => {}
            // A first attempt that fails is an answer, a later one may be a server that restarts.
            Err(error) if receiver.output.is_none() || !receiver.may_try_again(&error) => {
                if receiver.output.is_none() {
                    return Err(error);
                }
                receiver.problem(error.to_string());
                break;
            }
            Err(_) => {}
        }
        if receiver.progress.packets != seen {
            broken_at = None;
        }
        let since = broken_at.get_or_insert_with(Instant::now).elapsed();
        let signalled = signals::interrupts() + signals::terminations() != signals_before;
        let pipe = receiver.options.from == ReceiveFrom::StandardInput;
        if pipe || signalled || receiver.is_late() || since >= receiver.options.retry {
            receiver.problem("the connection ended before the recording did".to_owned());
            break;
        }
        std::thread::sleep(RETRY_PERIOD);
    }
    receiver.end()
}

enum Over {
    Yes,
    /// The connection ended, the recording did not.
    Broken,
}

struct Connection {
    wire: Wire,
    decoder: Decoder,
    /// The server's numbers of streams.
    streams: HashMap<u32, usize>,
    out: Vec<u8>,
    asked_at: Option<Instant>,
    answers: u32,
    greeted: bool,
}

struct Receiver {
    options: ReceiveOptions,
    began: Instant,
    output: Option<Output>,
    uuid: [u8; 16],
    files: Vec<Received>,
    /// The server's newest report.
    report: Option<Report>,
    problems: Vec<String>,
    connections: u64,
    relation: Option<Relation>,
    progress: ReceiveProgress,
    ended: bool,
}

impl Receiver {
    fn new(options: ReceiveOptions) -> Result<Receiver, Error> {
        let mut receiver = Receiver {
            began: Instant::now(),
            output: None,
            uuid: [0; 16],
            files: Vec::new(),
            report: None,
            problems: Vec::new(),
            connections: 0,
            relation: None,
            progress: ReceiveProgress::default(),
            ended: false,
            options,
        };
        let root = receiver.options.output.clone();
        let Ok(text) = std::fs::read_to_string(root.join("report.json")) else {
            return Ok(receiver);
        };
        let exists = || Error::OutputExists(root.clone());
        let report = Report::from_json(&text).map_err(|_| exists())?;
        let uuid = parse_uuid(&report.trace_uuid).ok_or_else(exists)?;
        // Only what was received in part goes on.
        if report.complete || report.received.is_none() {
            return Err(exists());
        }
        let most = receiver.options.max_disk_bytes;
        let (output, files) = received_files::resume(&root, &report, &uuid, most)?;
        receiver.connections = report.received.as_ref().map_or(0, |before| before.connections);
        receiver.output = Some(output);
        (receiver.uuid, receiver.files, receiver.report) = (uuid, files, Some(report));
        Ok(receiver)
    }

    fn address(&self) -> String {
        match &self.options.from {
            ReceiveFrom::Tcp(address) => address.clone(),
            ReceiveFrom::StandardInput => "-".to_owned(),
        }
    }

    fn live_error(&self, reason: impl Into<String>) -> Error {
        Error::Live { address: self.address(), reason: reason.into() }
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < 100 && !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    fn is_late(&self) -> bool {
        self.options.duration.is_some_and(|most| self.began.elapsed() >= most)
    }

    /// Whether it may be better later: a server that is not there, or sent something broken.
    fn may_try_again(&self, error: &Error) -> bool {
        !self.ended && matches!(error, Error::Address { .. })
    }

    fn connect(&mut self) -> Result<Connection, Error> {
        let error = |cause| Error::Address { action: "connect", address: self.address(), cause };
        let wire = match &self.options.from {
            ReceiveFrom::StandardInput => {
                let stdin = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3);
                Wire::Pipe(stdin.map_err(|cause| error(cause.into()))?)
            }
            ReceiveFrom::Tcp(address) => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                let mut found = None;
                for one in address.to_socket_addrs().map_err(error)? {
                    match TcpStream::connect_timeout(&one, CONNECT_TIME) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(cause) => last = cause,
                    }
                }
                let stream = found.ok_or(last).map_err(error)?;
                Wire::socket(stream).map_err(error)?
            }
        };
        let mut connection = Connection {
            wire,
            decoder: Decoder::new(BODY_BYTES_MAX),
            streams: HashMap::new(),
            out: Vec::new(),
            asked_at: None,
            answers: 0,
            greeted: false,
        };
        if !connection.wire.is_pipe() {
            connection.out.extend(Preamble::default().encode());
            let token = self.options.token.clone().unwrap_or_default().into_bytes();
            let has = self.files.iter().map(Received::has).collect();
            Message::Request(Request { token, uuid: self.uuid, has }).encode(&mut connection.out);
        }
        Ok(connection)
    }

    fn follow(
        &mut self,
        connection: &mut Connection,
        over: &mut dyn FnMut() -> bool,
        progress: &mut dyn FnMut(&ReceiveProgress),
    ) -> Result<Over, Error> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if over() || self.is_late() {
                return Ok(Over::Yes);
            }
            connection.ask_for_the_time();
            let writes = !connection.out.is_empty();
            let ready = connection.wire.wait(true, writes, None, LOOK);
            if ready.writes {
                match connection.wire.write_some(&connection.out) {
                    Ok(sent) => drop(connection.out.drain(..sent)),
                    Err(error) if is_later(&error) => {}
                    // What it sent before may say why.
                    Err(_) => connection.out.clear(),
                }
            }
            if ready.reads {
                match connection.wire.read_some(&mut buffer) {
                    Ok(0) if connection.greeted => return Ok(Over::Broken),
                    Ok(0) => {
                        return Err(self.live_error("it ends before it has said what it is"));
                    }
                    Ok(bytes) => {
                        let answered_ns = utc_ns();
                        connection.decoder.feed(&buffer[..bytes]);
                        if let Some(over) = self.take(connection, answered_ns)? {
                            return Ok(over);
                        }
                    }
                    Err(error) if is_later(&error) => {}
                    Err(_) if connection.greeted => return Ok(Over::Broken),
                    Err(cause) => {
                        let address = self.address();
                        return Err(Error::Address { action: "read", address, cause });
                    }
                }
            }
            self.progress.elapsed = self.began.elapsed();
            progress(&self.progress);
        }
    }

    /// Takes all messages that are here.
    fn take(
        &mut self,
        connection: &mut Connection,
        answered_ns: i64,
    ) -> Result<Option<Over>, Error> {
        let Connection { decoder, streams, answers, greeted, .. } = connection;
        loop {
            let message = match decoder.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(None),
                Err(fault) => return Err(self.live_error(fault.to_string())),
            };
            let is_known = self.output.is_some() && *greeted;
            match message {
                Message::Recording { uuid, .. } if !*greeted => {
                    self.begin(uuid)?;
                    *greeted = true;
                }
                Message::Refused(reason) => return Err(self.live_error(reason)),
                Message::Metadata(text) if is_known => self.metadata(text)?,
                Message::Report(text) if is_known => self.take_report(text)?,
                Message::Stream { stream, folder, name, .. } if is_known => {
                    let known = self
                        .files
                        .iter()
                        .position(|file| file.folder == folder && file.name == name);
                    let index = match known {
                        Some(index) => index,
                        None => self.add_file(folder, name),
                    };
                    streams.insert(stream, index);
                }
                Message::Packet { stream, number, offset_bytes, bytes } if is_known => {
                    let index = streams.get(&stream).copied();
                    self.packet(index, number, offset_bytes, bytes)?;
                }
                Message::Dropped { stream, first, count } if is_known => {
                    self.dropped(streams.get(&stream).copied(), first, count)?;
                }
                Message::Flushed { utc_ns, .. } if is_known => {
                    self.progress.flushed_ns = Some(utc_ns);
                    if let Some(output) = &mut self.output {
                        output.write_indexes()?;
                    }
                }
                Message::ClockAnswer { asked_ns, received_ns, sent_ns } => {
                    *answers += 1;
                    let exchange = Exchange { asked_ns, received_ns, sent_ns, answered_ns };
                    if let Some(new) = exchange.relation() {
                        self.relation = Some(self.relation.map_or(new, |old| old.better(new)));
                    }
                }
                Message::End { complete } if is_known => {
                    self.ended = complete;
                    return Ok(Some(if complete { Over::Yes } else { Over::Broken }));
                }
                _ => return Err(self.live_error("it says what is not its turn to say")),
            }
        }
    }

    fn begin(&mut self, uuid: [u8; 16]) -> Result<(), Error> {
        self.connections += 1;
        self.progress.connected = true;
        if self.output.is_some() {
            if uuid != self.uuid {
                return Err(self.live_error("it is another recording than the one begun"));
            }
            return Ok(());
        }
        self.uuid = uuid;
        self.output = Some(Output::create(&self.options.output, self.options.max_disk_bytes)?);
        Ok(())
    }

    fn add_file(&mut self, folder: lateralis_live::Folder, name: &str) -> usize {
        // Names are different, so that none gets a number.
        if let Some(output) = &mut self.output {
            let file = output.add_stream(folder, name);
            self.files.push(Received {
                folder,
                name: name.to_owned(),
                file,
                next: 0,
                offset_bytes: 0,
                dropped: Count::default(),
            });
        }
        self.files.len() - 1
    }

    fn metadata(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = std::str::from_utf8(text).map_err(|_| self.live_error("metadata is no text"))?;
        self.output.as_ref().map_or(Ok(()), |output| output.write_metadata(text))
    }

    fn take_report(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = String::from_utf8_lossy(text);
        let report =
            Report::from_json(&text).map_err(|_| self.live_error("its report is no report"))?;
        if report.trace_uuid != uuid_text(&self.uuid) {
            return Err(self.live_error("its report is of another recording"));
        }
        self.report = Some(report);
        self.write_report(false)
    }

    fn packet(
        &mut self,
        index: Option<usize>,
        number: u64,
        offset_bytes: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut packet = bytes.to_vec();
        let entry = received_files::check(&mut packet, &self.uuid);
        let file = index.and_then(|index| self.files.get_mut(index));
        let expected = file.filter(|file| file.next == number && file.offset_bytes == offset_bytes);
        let (Some(file), Some(entry)) = (expected, entry) else {
            return Err(self.live_error("a packet is not the one that comes next, or is damaged"));
        };
        let Some(output) = &mut self.output else { return Ok(()) };
        match output.append(file.file, &packet, entry) {
            Ok(()) => {}
            Err(AppendError::Cap) => {
                return Err(self.live_error("the cap on disk space is reached"));
            }
            Err(AppendError::Write(cause)) => {
                return Err(Error::file("write", output.root().join(path_of(file)), cause));
            }
        }
        file.next += 1;
        file.offset_bytes += packet.len() as u64;
        self.progress.packets += 1;
        self.progress.bytes += packet.len() as u64;
        Ok(())
    }

    fn dropped(&mut self, index: Option<usize>, first: u64, count: Count) -> Result<(), Error> {
        let file = index.and_then(|index| self.files.get_mut(index));
        let Some(file) = file.filter(|file| file.next == first) else {
            return Err(self.live_error("packets were dropped that do not come next"));
        };
        file.next = file.next.saturating_add(count.packets);
        file.offset_bytes = file.offset_bytes.saturating_add(count.bytes);
        file.dropped = file.dropped.plus(count);
        self.progress.dropped = self.progress.dropped.plus(count);
        // Before the packets behind the gap: whoever comes back here finds out how large it is.
        self.write_report(false)
    }

    fn write_report(&mut self, last: bool) -> Result<(), Error> {
        let Some(mut report) = self.report.clone() else { return Ok(()) };
        let dropped = self.files.iter().filter(|file| file.dropped.packets > 0);
        report.received = Some(report::Received {
            from: self.address(),
            connections: self.connections,
            dropped_of: dropped
                .map(|file| report::LiveStreamCount {
                    file: path_of(file),
                    count: file.dropped.into(),
                })
                .collect(),
            clock: self.relation.map(|relation| report::ReceivedClock {
                offset_ns: relation.offset_ns,
                error_ns: relation.error_ns,
            }),
        });
        report.complete &= last && self.ended;
        report.problems.extend(self.problems.iter().cloned());
        let Some(output) = &mut self.output else { return Ok(()) };
        if last {
            output.write_indexes()?;
            if self.files.iter().any(|file| file.dropped.packets > 0) {
                recount(output.root(), &mut report, &self.files);
            }
        }
        output.write_report(&report.to_json())?;
        if last {
            self.report = Some(report);
        }
        Ok(())
    }

    fn end(mut self) -> Result<ReceiveSummary, Error> {
        self.write_report(true)?;
        let nothing = || self.live_error("it ended before its report");
        let report = self.report.clone().ok_or_else(nothing)?;
        let output = self.output.as_ref().map_or(&self.options.output as _, |o| o.root());
        Ok(ReceiveSummary { output: output.to_owned(), report, progress: self.progress })
    }
}

impl Connection {
    fn ask_for_the_time(&mut self) {
        // The next one when the last one has been answered, or lost.
        let pause = if self.answers < QUICK_EXCHANGES { LOOK } else { CLOCK_PERIOD };
        let due = self.asked_at.is_none_or(|at| at.elapsed() >= pause);
        // Behind the request: what is in front of it would make the way there longer.
        if self.greeted && !self.wire.is_pipe() && due && self.out.is_empty() {
            self.asked_at = Some(Instant::now());
            Message::ClockAsk { asked_ns: utc_ns() }.encode(&mut self.out);
        }
    }
}
