// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a bfscope: shows dumps as they arrive. A dump lists its cores one after the other, so each
//! dump is read together with all earlier ones, and shown only when it is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lateralis_files::TemporaryFolder;
use lateralis_recorder::linux::live::bfscope::Dumps;
use lateralis_recorder::linux::live::{is_asked_to_end, notice_endings};
use lateralis_traces::OpenOptions as TraceOptions;
use lateralis_view::{Host, Opening};
use rustix::net::sockopt;
use serde_json::json;

use super::ViewArgs;
use super::sections::StatsSections;
use crate::error::CliError;
use crate::exit::ExitStatus;

/// Prefix of the address of a bfscope.
const BFSCOPE: &str = "bfscope://";
/// A dump is taken as complete after this time without a byte. Nothing else marks its end, because length
/// prefixes are not trusted.
const SILENCE: Duration = Duration::from_millis(100);
/// Shortest interval between readings of all dumps. The interval is also at least `PAUSES` times the duration
/// of the last reading, so that long dumps take at most a quarter of a CPU.
const SOONEST: Duration = Duration::from_millis(500);
const PAUSES: u32 = 3;
/// Size limit of all dumps, in bytes: they are in memory while they are read.
const BYTES_MAX: u64 = 1 << 30;
/// TCP keepalive: idle time before the first probe, number of probes, and time between them. They detect a
/// machine that was switched off without closing the connection.
const ASKED_AFTER: Duration = Duration::from_secs(10);
const ASKED: u32 = 3;
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// Time limit of a connection attempt, and interval between attempts to reconnect.
const ANSWER: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// The data is not a dump if this many bytes contain none, or if a line is this long.
const FOREIGN_BYTES: u64 = 1 << 20;

/// A connected bfscope.
pub struct Dumped {
    address: String,
    stream: TcpStream,
    /// File of the dumps, in a private folder.
    path: PathBuf,
    _folder: TemporaryFolder,
    file: File,
    dumps: Dumps,
    /// Number of dumps before the current text, and the last byte received.
    before: u64,
    last: u8,
    /// A line without its end.
    held: Vec<u8>,
    bytes: u64,
    options: TraceOptions,
    host: Arc<Host>,
    /// Time and duration of the last reading of all dumps.
    shown: Option<(Instant, Duration)>,
    /// Whether more data has arrived since.
    has_more: bool,
    /// Whether a session is shown.
    is_seen: bool,
}

impl Dumped {
    /// Connects if the argument is the address of a bfscope.
    ///
    /// Errors: no connection, more than one trace is given, or no space for the dumps.
    pub fn begin(
        args: &ViewArgs,
        options: &TraceOptions,
        host: &Arc<Host>,
    ) -> Result<Option<Self>, CliError> {
        let told = |path: &PathBuf| path.to_str()?.strip_prefix(BFSCOPE).map(str::to_owned);
        let traces = &args.inputs.traces;
        let Some(address) = traces.iter().find_map(told) else { return Ok(None) };
        if traces.len() > 1 {
            let advice = "look at one bfscope at a time";
            return Err(CliError::new("cannot follow", "several traces", advice));
        }
        let error = |cause: io::Error| {
            let advice =
                format!("{cause}: write it as {BFSCOPE}HOST:PORT, usually port 6666 or 666");
            CliError::new("cannot connect", &address, advice)
        };
        let stream = connect(&address).map_err(error)?;
        notice_endings();
        let folder = TemporaryFolder::new("lat-dumps-").map_err(|cause| {
            CliError::at_path("cannot make a folder", &std::env::temp_dir(), &cause)
        })?;
        let path = folder.path().join("dump.trc");
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|cause| CliError::at_path("cannot make", &path, &cause))?;
        host.progress("waiting for the first dump", 0, None);
        Ok(Some(Self {
            address,
            stream,
            path,
            _folder: folder,
            file,
            dumps: Dumps::default(),
            before: 0,
            last: b'\n',
            held: Vec::new(),
            bytes: 0,
            options: options.clone(),
            host: Arc::clone(host),
            shown: None,
            has_more: false,
            is_seen: false,
        }))
    }

    /// Shows dumps until the bfscope ends, and continues to serve them.
    ///
    /// Errors: the data are not dumps, or cannot be stored.
    pub fn run(mut self) -> Result<ExitStatus, CliError> {
        let ended = self.listen()?;
        if let Some(why) = ended {
            self.dumps.end();
            self.keep(true)?;
            self.show(false)?;
            let is_complete = why.is_none();
            self.host.say(json!({ "event": "ended", "complete": is_complete, "why": why }));
            while !is_asked_to_end() {
                sleep(SILENCE);
            }
        }
        Ok(ExitStatus::Fine)
    }

    /// Receives data, and reconnects if the connection breaks. Returns `None` if the user requested the end,
    /// `Some(None)` if the bfscope has ended, and else the reason why no more data is received.
    fn listen(&mut self) -> Result<Option<Option<String>>, CliError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if is_asked_to_end() {
                return Ok(None);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Some(None)),
                Ok(read) => {
                    self.last = buffer[read - 1];
                    self.dumps.feed(&buffer[..read]);
                    self.keep(false)?;
                }
                // As far as can be known, a dump is complete.
                Err(cause) if is_later(&cause) => {
                    self.pause();
                    self.keep(false)?;
                    if self.has_more && self.is_due() {
                        self.show(true)?;
                    }
                }
                Err(cause) => {
                    if !self.connect_again(&cause)? {
                        return Ok(None);
                    }
                }
            }
            if self.bytes > BYTES_MAX {
                let why = "a gigabyte of dumps is here: record them with lat record --connect";
                return Ok(Some(Some(why.to_owned())));
            }
            if self.held.len() as u64 > FOREIGN_BYTES {
                return Err(self.foreign("a line that does not end".to_owned()));
            }
            if self.count() == 0 && self.bytes > FOREIGN_BYTES {
                return Err(self.foreign("no dump in what came".to_owned()));
            }
        }
    }

    /// Data held back is text if a line has ended: a length contains no line feed.
    fn pause(&mut self) {
        if self.last == b'\n' {
            self.end_dump();
        }
    }

    /// Starts a new dump with the next data.
    fn end_dump(&mut self) {
        let mut done = std::mem::take(&mut self.dumps);
        done.end();
        self.before += done.count();
        self.held.extend(done.take());
    }

    /// Reconnects after the connection broke. Returns false if the user requests the end first.
    fn connect_again(&mut self, cause: &io::Error) -> Result<bool, CliError> {
        let since = Instant::now();
        let why = format!("the connection to the bfscope broke ({cause}): it is tried again");
        self.host.say(json!({ "event": "disconnected", "why": why }));
        // Only the start of an interrupted line is known.
        self.end_dump();
        if !self.held.is_empty() {
            self.held.push(b'\n');
        }
        self.last = b'\n';
        self.keep(true)?;
        while !is_asked_to_end() {
            if let Ok(stream) = connect(&self.address) {
                self.stream = stream;
                // A bfscope has no packet numbers, so the number of missed packets is unknown.
                let seconds = since.elapsed().as_secs_f64();
                let told = json!({ "event": "missed", "seconds": seconds, "packets": null, "events": null });
                self.host.say(told);
                return Ok(true);
            }
            sleep(TRY_AGAIN);
        }
        Ok(false)
    }

    /// Number of dumps that have begun.
    fn count(&self) -> u64 {
        self.before + self.dumps.count()
    }

    fn foreign(&self, what: String) -> CliError {
        let advice = format!("{what}: a recorder of lat is named by HOST:PORT alone");
        CliError::new("this is no bfscope", &self.address, advice)
    }

    /// Writes the complete lines received, and with `is_all` also the incomplete rest.
    fn keep(&mut self, is_all: bool) -> Result<(), CliError> {
        self.held.extend(self.dumps.take());
        let whole = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let whole = if is_all { self.held.len() } else { whole };
        let written = self.file.write_all(&self.held[..whole]);
        written.map_err(|cause| CliError::at_path("cannot write", &self.path, &cause))?;
        self.held.drain(..whole);
        self.bytes += whole as u64;
        self.has_more |= whole > 0;
        // A sender that never pauses is shown as well.
        if self.has_more && self.shown.is_some() && self.is_due() && !is_all {
            self.show(true)?;
        }
        Ok(())
    }

    fn is_due(&self) -> bool {
        let is_over =
            |(at, took): &(Instant, Duration)| at.elapsed() >= SOONEST.max(*took * PAUSES);
        self.shown.as_ref().is_none_or(is_over)
    }

    /// Shows all data received.
    ///
    /// Errors: it cannot be read. While more data may come, only if it is not a dump at all.
    fn show(&mut self, goes_on: bool) -> Result<(), CliError> {
        if self.count() == 0 {
            return if goes_on { Ok(()) } else { Err(self.foreign("it sent no dump".to_owned())) };
        }
        let begun = Instant::now();
        let opening = Opening::new(std::slice::from_ref(&self.path), &self.options);
        let opening = opening.map(|of| of.with_sections(Some(Arc::new(StatsSections))));
        let session = opening.map_err(|error| error.to_string()).and_then(|opening| {
            opening.in_memory().index(&mut |_, _| {}).map_err(|error| error.to_string())
        });
        match session {
            Ok(session) => {
                let session = if goes_on { session.going_on() } else { session };
                self.host.show(Arc::new(session));
                if self.is_seen {
                    self.host.say(json!({ "event": "replaced" }));
                }
                self.is_seen = true;
            }
            // The first dump may be incomplete so far; if a later one cannot be read, the session already
            // shown stays.
            Err(error) if !goes_on && !self.is_seen => return Err(self.foreign(error)),
            Err(_) => {}
        }
        self.shown = Some((Instant::now(), begun.elapsed()));
        self.has_more = false;
        Ok(())
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ANSWER) {
            Ok(stream) => {
                stream.set_read_timeout(Some(SILENCE))?;
                sockopt::set_tcp_keepidle(&stream, ASKED_AFTER)?;
                sockopt::set_tcp_keepintvl(&stream, ASKED_EVERY)?;
                sockopt::set_tcp_keepcnt(&stream, ASKED)?;
                sockopt::set_socket_keepalive(&stream, true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn is_later(cause: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(cause.kind(), Interrupted | TimedOut | WouldBlock)
}
