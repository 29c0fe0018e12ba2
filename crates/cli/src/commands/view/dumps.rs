// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a bfscope: dumps as they come. A text tells of its cores one behind the other, so each
//! dump is looked at together with all before it, and shown whole.

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

/// In front of the address of a bfscope.
const BFSCOPE: &str = "bfscope://";
/// Without a byte for so long a dump is whole: nothing else says so, for lengths are not believed.
const SILENCE: Duration = Duration::from_millis(100);
/// Between two looks at all dumps, at least; and so many times as long as a look takes, so that dumps
/// that get long take a quarter of a processor and no more.
const SOONEST: Duration = Duration::from_millis(500);
const PAUSES: u32 = 3;
/// Bytes of dumps at most: they are in memory while they are read.
const BYTES_MAX: u64 = 1 << 30;
/// Somebody who says nothing for so long is asked whether he is there, so often, each time so much
/// later: a machine that was switched off says no goodbye.
const ASKED_AFTER: Duration = Duration::from_secs(10);
const ASKED: u32 = 3;
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// So long an address may take to answer; and between two tries to reach it again.
const ANSWER: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// Without a dump in so many bytes, or in a line so long, it is something else that is sent.
const FOREIGN_BYTES: u64 = 1 << 20;

/// A bfscope that is listened to.
pub struct Dumped {
    address: String,
    stream: TcpStream,
    /// Where its dumps are, in a folder of their own.
    path: PathBuf,
    _folder: TemporaryFolder,
    file: File,
    dumps: Dumps,
    /// Dumps that began before those, and the last byte that came.
    before: u64,
    last: u8,
    /// A line that has not ended.
    held: Vec<u8>,
    bytes: u64,
    options: TraceOptions,
    host: Arc<Host>,
    /// When all was looked at last, and how long that took.
    shown: Option<(Instant, Duration)>,
    /// Whether more has come since.
    has_more: bool,
    /// Whether there is anything to be seen.
    is_seen: bool,
}

impl Dumped {
    /// Begins to listen, if what is given is a bfscope.
    ///
    /// Errors: nobody is there, or more is given than one; there is no room for the dumps.
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

    /// Shows dumps until the bfscope ends, and goes on serving what came.
    ///
    /// Errors: what it sends are no dumps, or cannot be kept.
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

    /// Takes what comes, over another connection where one breaks. `None`: somebody has asked this to
    /// end. Else why nothing more comes, if that is not because the bfscope has ended.
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
                // A dump is whole, as far as anybody can tell.
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

    /// What was held back is text where a line has ended: a length has no end of a line in it.
    fn pause(&mut self) {
        if self.last == b'\n' {
            self.end_dump();
        }
    }

    /// What comes next begins anew.
    fn end_dump(&mut self) {
        let mut done = std::mem::take(&mut self.dumps);
        done.end();
        self.before += done.count();
        self.held.extend(done.take());
    }

    /// The connection broke: waits until there is another. False if somebody asks this to end first.
    fn connect_again(&mut self, cause: &io::Error) -> Result<bool, CliError> {
        let since = Instant::now();
        let why = format!("the connection to the bfscope broke ({cause}): it is tried again");
        self.host.say(json!({ "event": "disconnected", "why": why }));
        // Of a line that broke off only its beginning is known.
        self.end_dump();
        if !self.held.is_empty() {
            self.held.push(b'\n');
        }
        self.last = b'\n';
        self.keep(true)?;
        while !is_asked_to_end() {
            if let Ok(stream) = connect(&self.address) {
                self.stream = stream;
                // A bfscope numbers nothing: who was away cannot know how much there was.
                let seconds = since.elapsed().as_secs_f64();
                let told = json!({ "event": "missed", "seconds": seconds, "packets": null, "events": null });
                self.host.say(told);
                return Ok(true);
            }
            sleep(TRY_AGAIN);
        }
        Ok(false)
    }

    /// Dumps that have begun.
    fn count(&self) -> u64 {
        self.before + self.dumps.count()
    }

    fn foreign(&self, what: String) -> CliError {
        let advice = format!("{what}: a recorder of lat is named by HOST:PORT alone");
        CliError::new("this is no bfscope", &self.address, advice)
    }

    /// Writes the lines that have come, and what is left where nothing follows.
    fn keep(&mut self, is_all: bool) -> Result<(), CliError> {
        self.held.extend(self.dumps.take());
        let whole = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let whole = if is_all { self.held.len() } else { whole };
        let written = self.file.write_all(&self.held[..whole]);
        written.map_err(|cause| CliError::at_path("cannot write", &self.path, &cause))?;
        self.held.drain(..whole);
        self.bytes += whole as u64;
        self.has_more |= whole > 0;
        // Who never pauses is shown as well.
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

    /// Shows all that came.
    ///
    /// Errors: it cannot be read; while more may come, only if it is nothing of the kind.
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
            // The first one may have come in part; of later ones what was seen stays.
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
