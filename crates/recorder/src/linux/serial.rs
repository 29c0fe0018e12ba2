// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records the output of a machine without an operating system on a line (`spec/serial.md`): from a serial
//! device, a socket, or a file that the line was saved to.
//!
//! ```text
//! line ─ opens, reads ─▶ crate::serial: frames to packets ─▶ parts ─ a recording for each run
//! ```

mod line;
mod parts;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lateralis_ring::small::SmallArea;

use super::mapping::Mapping;
use super::recover::{holds_area, map};
use super::recover_small::{RecoverTexts, TextFiles, small_areas_in};
use super::{clocks, signals};
use crate::error::Error;
use crate::options::CtfVersion;
use crate::report::{Origin, Report};
use crate::serial::{Consumer, Hello, LineCounts, Receiver, RunEnd};
use crate::small::ProgramImage;

pub use line::SerialFrom;
use line::{Line, Read};
use parts::{Arrival, Parts};

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Maximum wait for bytes: time between two checks for signals.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two attempts to reopen a lost line.
const RETRY_PERIOD: Duration = Duration::from_millis(200);

/// Options for recording from a line.
#[derive(Debug, Clone)]
pub struct SerialOptions {
    /// The line.
    pub from: SerialFrom,
    /// Bits per second of a serial device; irrelevant for sockets.
    pub baud: u32,
    /// Directory to be created. Each further run gets one next to it: `NAME-2`.
    pub output: PathBuf,
    /// Files with the schemas of events.
    pub texts: RecoverTexts,
    /// Version of the metadata.
    pub ctf_version: CtfVersion,
    /// How long to try to reopen a lost line.
    pub retry: Duration,
    /// Maximum duration.
    pub duration: Option<Duration>,
    /// Maximum size of stream files of a run in bytes.
    pub max_disk_bytes: Option<u64>,
}

/// Progress of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SerialProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Bytes received.
    pub bytes: u64,
    /// Counts of frames.
    pub line: LineCounts,
    /// Events written.
    pub events: u64,
    /// Runs started.
    pub runs: u64,
    /// Whether the line is open.
    pub is_connected: bool,
}

/// A run of the program, in a recording of its own.
#[derive(Debug, Clone)]
pub struct SerialPart {
    /// Its directory.
    pub output: PathBuf,
    /// Content of its `report.json`.
    pub report: Report,
}

/// Result of the recording.
#[derive(Debug, Clone)]
pub struct SerialSummary {
    /// The runs, in the order of their start.
    pub parts: Vec<SerialPart>,
    /// Counts of frames of all runs.
    pub line: LineCounts,
    /// Bytes received.
    pub bytes: u64,
    /// Number of times that the line was opened.
    pub connections: u64,
    /// Problems that are in no report.
    pub problems: Vec<String>,
}

/// Records until the end of the line, a signal, or one of the limits. A lost line is reopened
/// every 200 ms for [`SerialOptions::retry`]; one that ended after its programs announced their end
/// is not.
///
/// Errors: the line cannot be opened, the directory cannot be created, or no event of the first program can
/// be named.
pub fn record_serial(
    options: &SerialOptions,
    progress: &mut dyn FnMut(&SerialProgress),
) -> Result<SerialSummary, Error> {
    signals::catch_endings();
    let signals_before = signals::interrupts() + signals::terminations();
    let began = Instant::now();
    let is_ended = || {
        let is_late = options.duration.is_some_and(|most| began.elapsed() >= most);
        is_late || signals::interrupts() + signals::terminations() != signals_before
    };
    let texts = TextFiles::open(&options.texts)?;
    let mut line = Some(Line::open(&options.from, options.baud)?);
    let place = options.from.to_string();
    let mut parts =
        Parts::new(&options.output, options.ctf_version, Origin::Recorded, &texts, &place);
    parts.make_first(options.max_disk_bytes)?;
    let mut receiver = Receiver::default();
    let mut buffer = vec![0; READ_BYTES];
    let (mut connections, mut broken_at) = (1, None);
    let (mut last_read, mut last_progress) = (Instant::now(), Instant::now());
    while !is_ended() && !parts.is_over() {
        match line.as_mut().map(|line| line.read(&mut buffer, LOOK)) {
            Some(Read::Bytes(count)) => {
                let window_ns = u64::try_from(last_read.elapsed().as_nanos()).unwrap_or(u64::MAX);
                last_read = Instant::now();
                parts.arrived = Some(Arrival { realtime_ns: clocks::utc_ns(), window_ns });
                receiver.feed(&buffer[..count], &mut parts);
                broken_at = None;
            }
            Some(Read::Nothing) => last_read = Instant::now(),
            Some(Read::Ended) => {
                receiver.interrupt(&mut parts);
                let returns = line.as_ref().is_some_and(Line::may_return);
                line = None;
                if !returns || receiver.is_over() {
                    break;
                }
            }
            None => {
                let since = broken_at.get_or_insert_with(Instant::now).elapsed();
                if since >= options.retry {
                    parts.problem(format!(
                        "The line went away and did not come back: line={place}, waited={} s",
                        options.retry.as_secs_f64()
                    ));
                    break;
                }
                std::thread::sleep(RETRY_PERIOD.min(options.retry.saturating_sub(since)));
                line = Line::open(&options.from, options.baud).ok();
                connections += u64::from(line.is_some());
                last_read = Instant::now();
            }
        }
        if last_progress.elapsed() >= LOOK {
            last_progress = Instant::now();
            progress(&SerialProgress {
                elapsed: began.elapsed(),
                bytes: receiver.bytes(),
                line: receiver.line(),
                events: parts.events(),
                runs: parts.count(),
                is_connected: line.is_some(),
            });
        }
    }
    receiver.end(&mut parts);
    summary(&receiver, parts, connections)
}

fn summary(
    receiver: &Receiver,
    parts: Parts<'_>,
    connections: u64,
) -> Result<SerialSummary, Error> {
    let (parts, problems) = parts.end()?;
    let (line, bytes) = (receiver.line(), receiver.bytes());
    Ok(SerialSummary { parts, line, bytes, connections, problems })
}

/// Makes a recording of a file that a line was saved to; `None` if it is something else.
/// `path` is not changed. A file with readable areas is a memory image, whatever else it contains.
///
/// Errors: like [`record_serial`].
pub fn recover_serial(
    path: &Path,
    output: &Path,
    ctf_version: CtfVersion,
    texts: &RecoverTexts,
) -> Result<Option<SerialSummary>, Error> {
    if !path.is_file() || holds_area(path)? {
        return Ok(None);
    }
    let Some(mapping) = map(path)? else { return Ok(None) };
    if holds_small_area(path, &mapping)? || !holds_line(mapping.bytes()) {
        return Ok(None);
    }
    let texts = TextFiles::open(texts)?;
    let place = path.display().to_string();
    let mut parts = Parts::new(output, ctf_version, Origin::Recovered, &texts, &place);
    parts.make_first(None)?;
    let mut receiver = Receiver::default();
    receiver.feed(mapping.bytes(), &mut parts);
    receiver.end(&mut parts);
    summary(&receiver, parts, 0).map(Some)
}

/// Each hello on a line contains the header of an area, but no area follows it.
fn holds_small_area(path: &Path, mapping: &Mapping) -> Result<bool, Error> {
    let is_area = |found: &lateralis_ring::Found| {
        let bytes = mapping.bytes().get(found.offset as usize..);
        bytes.is_some_and(|bytes| SmallArea::read(bytes, found.swapped).is_ok())
    };
    Ok(small_areas_in(path)?.iter().any(is_area))
}

/// Whether these bytes contain the introduction of a run.
fn holds_line(bytes: &[u8]) -> bool {
    struct Found(bool);
    impl Consumer for Found {
        fn begin(&mut self, _: u64, _: &Hello, _: &[&[u8]], _: bool) -> bool {
            self.0 = true;
            false
        }
        fn packet(
            &mut self,
            _: u64,
            _: &lateralis_ring::small::SmallPacketHeader,
            _: &[u8],
            _: lateralis_ring::LossCounts,
            _: u64,
        ) {
        }
        fn end(&mut self, _: u64, _: &RunEnd) {}
    }
    let (mut receiver, mut found) = (Receiver::default(), Found(false));
    for piece in bytes.chunks(READ_BYTES) {
        receiver.feed(piece, &mut found);
        if found.0 {
            return true;
        }
    }
    receiver.end(&mut found);
    found.0
}

/// The memory images of the given program files.
fn images(texts: &TextFiles) -> Vec<ProgramImage<'_>> {
    texts.programs().collect()
}
