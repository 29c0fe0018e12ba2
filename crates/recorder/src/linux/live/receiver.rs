// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The received data of a client: the directory, its files, its report.

use std::time::{Duration, Instant};

use lateralis_live::{Count, Message, Relation};
use lateralis_ring::ClockKind;

use super::connection::{Connection, Moment, Told};
use super::receive::{ReceiveOptions, ReceiveProgress, ReceiveSummary};
use super::received_clock;
use super::received_files::{self, Received};
use super::recount::{path_of, recount};
use super::wire::is_later;
use crate::clock::ClockModel;
use crate::error::Error;
use crate::exchanges::Readings;
use crate::linux::output::{AppendError, Output, refuse_of_another};
use crate::linux::recover_recording::parse_uuid;
use crate::metadata::uuid_text;
use crate::report::{self, Report};

/// Bytes per read.
const READ_BYTES: usize = 256 << 10;
/// Time between two checks for signals.
pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) enum Over {
    Yes,
    /// The connection ended, but not the recording.
    Broken,
}

pub(super) struct Receiver {
    pub(super) options: ReceiveOptions,
    began: Instant,
    pub(super) output: Option<Output>,
    uuid: [u8; 16],
    files: Vec<Received>,
    /// The server's latest report.
    report: Option<Report>,
    pub(super) problems: Vec<String>,
    connections: u64,
    relation: Option<Relation>,
    /// Readings of counters, and the kind of the server's counter.
    readings: Readings,
    their_clock: Option<ClockKind>,
    own_clock: Option<ClockModel>,
    /// The server's report has arrived, now or before.
    has_report: bool,
    pub(super) progress: ReceiveProgress,
    pub(super) ended: bool,
}

impl Receiver {
    pub(super) fn new(options: ReceiveOptions) -> Result<Receiver, Error> {
        let mut receiver = Receiver {
            began: Instant::now(),
            output: None,
            uuid: [0; 16],
            files: Vec::new(),
            report: None,
            problems: Vec::new(),
            connections: 0,
            relation: None,
            readings: Readings::default(),
            their_clock: None,
            own_clock: None,
            has_report: false,
            progress: ReceiveProgress::default(),
            ended: false,
            options,
        };
        let root = receiver.options.output.clone();
        refuse_of_another(&root)?;
        let Ok(text) = std::fs::read_to_string(root.join("report.json")) else {
            received_files::clear_begun(&root);
            return Ok(receiver);
        };
        let exists = || Error::OutputExists(root.clone());
        let report = Report::from_json(&text).map_err(|_| exists())?;
        let uuid = parse_uuid(&report.trace_uuid).ok_or_else(exists)?;
        // Only a partly received recording can be continued.
        if report.complete || report.received.is_none() {
            return Err(exists());
        }
        let most = receiver.options.max_disk_bytes;
        let (output, files) = received_files::resume(&root, &report, &uuid, most)?;
        receiver.has_report = report.clock.is_some() || !report.stream_classes.is_empty();
        let before = report.received.clone().unwrap_or_default();
        receiver.connections = before.connections;
        if let Some((kind, readings)) = received_clock::before(before.exchanges.as_ref()) {
            (receiver.their_clock, receiver.readings) = (Some(kind), readings);
            receiver.own_clock = Some(received_clock::own());
        }
        receiver.output = Some(output);
        (receiver.uuid, receiver.files, receiver.report) = (uuid, files, Some(report));
        Ok(receiver)
    }

    pub(super) fn address(&self) -> String {
        self.options.from.to_string()
    }

    pub(super) fn live_error(&self, reason: impl Into<String>) -> Error {
        Error::Live { address: self.address(), reason: reason.into() }
    }

    pub(super) fn problem(&mut self, text: String) {
        if self.problems.len() < 100 && !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    pub(super) fn is_late(&self) -> bool {
        self.options.duration.is_some_and(|most| self.began.elapsed() >= most)
    }

    /// Whether a retry may succeed: the server was not reachable, or sent invalid data.
    pub(super) fn may_try_again(&self, error: &Error) -> bool {
        !self.ended && matches!(error, Error::Address { .. })
    }

    pub(super) fn connect(&mut self) -> Result<Connection, Error> {
        let has = self.files.iter().map(Received::has).collect();
        Connection::open(&self.options, self.uuid, has)
    }

    pub(super) fn follow(
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
            let ready = connection.wire.wait(true, writes, None, connection.pause(LOOK));
            if ready.writes {
                match connection.wire.write_some(&connection.out) {
                    Ok(sent) => drop(connection.out.drain(..sent)),
                    Err(error) if is_later(&error) => {}
                    // Data that it sent before may explain the failure.
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
                        let now = Moment::now();
                        connection.decoder.feed(&buffer[..bytes]);
                        if let Some(over) = self.take(connection, now)? {
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

    /// Processes all messages received so far.
    pub(super) fn take(
        &mut self,
        connection: &mut Connection,
        now: Moment,
    ) -> Result<Option<Over>, Error> {
        let (decoder, streams, greeted, mut asked) = connection.parts();
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
                Message::ClockTicks { asked_ns, clock_kind, received_ticks, sent_ticks } => {
                    asked.ticks(asked_ns, clock_kind, [received_ticks, sent_ticks]);
                }
                Message::ClockAnswer { asked_ns, received_ns, sent_ns } => {
                    if let Some(told) = asked.answer(asked_ns, [received_ns, sent_ns], now) {
                        self.learn(told);
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

    pub(super) fn begin(&mut self, uuid: [u8; 16]) -> Result<(), Error> {
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
        // If the client is killed before the server's first report, it later continues from this one.
        self.report = Some(Report::of_received(uuid_text(&uuid)));
        self.write_report(false)
    }

    pub(super) fn add_file(&mut self, folder: lateralis_live::Folder, name: &str) -> usize {
        // Names are unique, so none gets a number.
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

    pub(super) fn metadata(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = std::str::from_utf8(text).map_err(|_| self.live_error("metadata is no text"))?;
        self.output.as_ref().map_or(Ok(()), |output| output.write_metadata(text))
    }

    pub(super) fn take_report(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = String::from_utf8_lossy(text);
        let report =
            Report::from_json(&text).map_err(|_| self.live_error("its report is no report"))?;
        if report.trace_uuid != uuid_text(&self.uuid) {
            return Err(self.live_error("its report is of another recording"));
        }
        self.report = Some(report);
        self.has_report = true;
        self.write_report(false)
    }

    /// Adds the result of a clock exchange.
    fn learn(&mut self, told: Told) {
        let new = told.relation;
        self.relation = Some(self.relation.map_or(new, |old| old.better(new)));
        if let Some((kind, reading)) = told.reading {
            if self.their_clock.replace(kind).is_some_and(|before| before != kind) {
                self.readings = Readings::default();
            }
            self.readings.add(reading);
            self.own_clock.get_or_insert_with(received_clock::own);
        }
    }

    pub(super) fn packet(
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

    pub(super) fn dropped(
        &mut self,
        index: Option<usize>,
        first: u64,
        count: Count,
    ) -> Result<(), Error> {
        let file = index.and_then(|index| self.files.get_mut(index));
        let Some(file) = file.filter(|file| file.next == first) else {
            return Err(self.live_error("packets were dropped that do not come next"));
        };
        file.next = file.next.saturating_add(count.packets);
        file.offset_bytes = file.offset_bytes.saturating_add(count.bytes);
        file.dropped = file.dropped.plus(count);
        self.progress.dropped = self.progress.dropped.plus(count);
        // Before the packets after the gap, so that a restarted client can determine its size.
        self.write_report(false)
    }

    pub(super) fn write_report(&mut self, last: bool) -> Result<(), Error> {
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
            exchanges: received_clock::told(
                self.their_clock,
                &self.readings,
                self.own_clock.as_ref(),
            ),
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

    pub(super) fn end(mut self) -> Result<ReceiveSummary, Error> {
        self.write_report(true)?;
        let nothing = || self.live_error("it ended before its report");
        let report = self.report.clone().filter(|_| self.has_report).ok_or_else(nothing)?;
        let output = self.output.as_ref().map_or(&self.options.output as _, |o| o.root());
        Ok(ReceiveSummary { output: output.to_owned(), report, progress: self.progress })
    }
}
