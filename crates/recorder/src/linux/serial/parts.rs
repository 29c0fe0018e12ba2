// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording for each run of a program that sends over a line: the clock of each run restarts, and its
//! schemas may differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_ring::LossCounts;
use lateralis_ring::small::{SmallPacketHeader, SmallSchema};

use super::super::output::Output;
use super::super::recording::Recording;
use super::super::recover_small::TextFiles;
use super::super::small_part::{PartPacket, SmallPart};
use super::{SerialPart, images};
use crate::classes::RegisteredSchema;
use crate::clock::ClockSample;
use crate::error::Error;
use crate::options::CtfVersion;
use crate::report::Origin;
use crate::serial::{Consumer, Hello, RunEnd};
use crate::small::schemas_of;

/// Maximum number of recorded runs, so that a program that repeatedly fails at its start does not fill the
/// disk with directories.
const PARTS_MAX: u64 = 100;
/// Maximum number appended to the names of directories.
const NUMBER_MAX: u64 = 10_000;
/// Maximum number of problems kept.
const PROBLEMS_MAX: usize = 100;

/// Arrival time of bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// UTC after they were read, nanoseconds since 1970.
    pub(super) realtime_ns: i64,
    /// They arrived at most this long before.
    pub(super) window_ns: u64,
}

struct Part {
    recording: Recording,
    small: SmallPart,
    output: PathBuf,
    order: u64,
}

/// The runs of a line.
pub(super) struct Parts<'a> {
    output: PathBuf,
    ctf_version: CtfVersion,
    origin: Origin,
    texts: &'a TextFiles,
    place: &'a str,
    max_disk_bytes: Option<u64>,
    /// Arrival time of the bytes being processed; `None`: long ago.
    pub(super) arrived: Option<Arrival>,
    /// Arrival times of the introductions of runs.
    introduced: BTreeMap<u64, Option<Arrival>>,
    /// Created before anything arrives.
    first: Option<Output>,
    open: BTreeMap<u64, Part>,
    /// Runs that are not recorded, as already reported.
    refused: BTreeSet<u64>,
    done: Vec<(u64, SerialPart)>,
    count: u64,
    /// Number appended to the name of the newest directory.
    number: u64,
    done_events: u64,
    /// Why the first run is not recorded.
    failed: Option<Error>,
    problems: Vec<String>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        output: &Path,
        ctf_version: CtfVersion,
        origin: Origin,
        texts: &'a TextFiles,
        place: &'a str,
    ) -> Parts<'a> {
        Parts {
            output: output.to_owned(),
            ctf_version,
            origin,
            texts,
            place,
            max_disk_bytes: None,
            arrived: None,
            introduced: BTreeMap::new(),
            first: None,
            open: BTreeMap::new(),
            refused: BTreeSet::new(),
            done: Vec::new(),
            count: 0,
            number: 1,
            done_events: 0,
            failed: None,
            problems: Vec::new(),
        }
    }

    /// Creates the directory of the first run.
    ///
    /// Errors: it already exists, or cannot be created.
    pub(super) fn make_first(&mut self, max_disk_bytes: Option<u64>) -> Result<(), Error> {
        self.max_disk_bytes = max_disk_bytes;
        self.first = Some(Output::create(&self.output, max_disk_bytes)?);
        Ok(())
    }

    /// Whether to stop: no event of the first run can be named, or the disk is full.
    pub(super) fn is_over(&self) -> bool {
        (self.count == 0 && self.failed.is_some())
            || self.open.values().any(|part| part.recording.output_ended)
    }

    /// Events written so far.
    pub(super) fn events(&self) -> u64 {
        self.done_events + self.open.values().map(|part| part.small.events()).sum::<u64>()
    }

    /// Runs started.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a problem to the report of a run, if there is one.
    pub(super) fn problem(&mut self, text: String) {
        match self.open.values_mut().next_back() {
            Some(part) => part.recording.problem(text),
            None if self.problems.len() >= PROBLEMS_MAX || self.problems.contains(&text) => {}
            None => self.problems.push(text),
        }
    }

    /// Returns the recordings, and the problems that are in none of their reports.
    ///
    /// Errors: no event of the first run could be named, or nothing recordable arrived.
    pub(super) fn end(mut self) -> Result<(Vec<SerialPart>, Vec<String>), Error> {
        if self.count == 0 {
            if let Some(first) = self.first.take() {
                // Leaves nothing that looks like a recording.
                let root = first.root().to_owned();
                drop(first);
                let _ = std::fs::remove_dir_all(root);
            }
            let nothing = || Error::Line {
                place: self.place.to_owned(),
                cause: std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    "no program introduced itself",
                ),
            };
            return Err(self.failed.take().unwrap_or_else(nothing));
        }
        self.problems.extend(self.failed.take().map(|error| error.to_string()));
        self.done.sort_by_key(|(order, _)| *order);
        Ok((self.done.into_iter().map(|(_, part)| part).collect(), self.problems))
    }

    /// Number of schemas whose texts are known without the line.
    fn known_schemas(&self, schemas: &[SmallSchema]) -> usize {
        let images = images(self.texts);
        schemas_of(schemas, &images, &self.texts.schemas, compile).0.len()
    }

    fn next_output(&mut self) -> Result<Output, Error> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => loop {
                self.number += 1;
                let mut name = self.output.clone().into_os_string();
                name.push(format!("-{}", self.number));
                match Output::create(Path::new(&name), self.max_disk_bytes) {
                    // It belongs to an earlier recording: try the next one.
                    Err(Error::OutputExists(_)) if self.number < NUMBER_MAX => {}
                    made => break made,
                }
            },
        }
    }

    /// Starts the recording of a run; `texts` are schema texts that arrived over the line.
    fn begin_part(&mut self, run: u64, hello: &Hello, texts: &[&[u8]]) -> Result<(), Error> {
        let mut known = self.texts.schemas.clone();
        known.extend(texts.iter().filter_map(|text| {
            let (schema, hash) = compile(text)?;
            Some(RegisteredSchema { base_id: 0, schema, hash })
        }));
        let images = images(self.texts);
        let place = Path::new(self.place);
        // Before a directory is created: a run without known schemas gets none.
        let (registered, problems) = schemas_of(&hello.schemas, &images, &known, compile);
        if registered.is_empty() && !hello.schemas.is_empty() {
            let reason = problems.into_iter().next().unwrap_or_default();
            return Err(Error::NoSchemaText { path: place.to_owned(), reason });
        }
        let output = self.next_output()?;
        let root = output.root().to_owned();
        let mut recording = Recording::new(output, self.ctf_version, self.origin);
        let arrival = self.introduced.get(&run).copied().flatten();
        let start = arrival.map_or(ClockSample::default(), |arrival| ClockSample {
            ticks: hello.clock,
            realtime_ns: arrival.realtime_ns,
            window_ticks: ticks(arrival.window_ns, hello.header.clock_hz),
            ..ClockSample::default()
        });
        let about = (&hello.header, &hello.schemas[..]);
        let names = (&images[..], &known[..]);
        let small = SmallPart::begin(&mut recording, about, names, start, place)?;
        let order = self.count;
        self.count += 1;
        self.open.insert(run, Part { recording, small, output: root, order });
        Ok(())
    }
}

fn compile(text: &[u8]) -> Option<(Arc<lateralis_pleco::Schema>, u64)> {
    let schema = lateralis_pleco::compile("schema.pleco", text).schema?;
    let hash = schema.hash();
    Some((Arc::new(schema), hash))
}

/// Converts nanoseconds to ticks of a clock; without a known frequency its unit is the nanosecond.
fn ticks(ns: u64, hz: u64) -> u64 {
    let hz = if hz == 0 { 1_000_000_000 } else { hz };
    u64::try_from(u128::from(ns) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX)
}

impl Consumer for Parts<'_> {
    fn begin(&mut self, run: u64, hello: &Hello, texts: &[&[u8]], last_chance: bool) -> bool {
        if self.refused.contains(&run) {
            return false;
        }
        let arrived = self.arrived;
        let is_new = !self.introduced.contains_key(&run);
        self.introduced.entry(run).or_insert(arrived);
        let all_came = texts.len() == hello.schemas.len();
        let may_wait = hello.has_texts && !last_chance && !all_came;
        if may_wait && (!is_new || self.known_schemas(&hello.schemas) < hello.schemas.len()) {
            return false;
        }
        if self.count >= PARTS_MAX {
            self.problem(format!("Runs after the first {PARTS_MAX} are not recorded"));
        } else {
            match self.begin_part(run, hello, texts) {
                Ok(()) => return true,
                Err(error) if self.count == 0 && self.failed.is_none() => self.failed = Some(error),
                Err(error) => self.problem(error.to_string()),
            }
        }
        self.refused.insert(run);
        false
    }

    fn packet(
        &mut self,
        run: u64,
        packet: &SmallPacketHeader,
        records: &[u8],
        lost: LossCounts,
        missing: u64,
    ) {
        let Some(Part { recording, small, .. }) = self.open.get_mut(&run) else { return };
        small.ring(packet.core).skip_packets(missing);
        let (sequence, begin) = (packet.sequence, packet.begin);
        let packet_of = PartPacket { sequence, begin, lost, is_open: false };
        small.packet(recording, packet.core, &packet_of, records);
    }

    fn end(&mut self, run: u64, end: &RunEnd) {
        self.introduced.remove(&run);
        let Some(part) = self.open.remove(&run) else {
            if !self.refused.remove(&run) && end.line.packets > 0 {
                self.problem(format!(
                    "Cannot name the events of a run: packets={}, its introduction did not arrive",
                    end.line.packets
                ));
            }
            return;
        };
        let Part { mut recording, mut small, output, order } = part;
        for (core, missing) in &end.missing_at_end {
            small.ring(*core).skip_packets(*missing);
        }
        let mut lost = BTreeMap::new();
        for (core, counters) in &end.counters {
            lost.insert(*core, counters.lost);
            if counters.clock_backward != 0 {
                recording.problem(format!(
                    "The clock ran backwards {} times between packets: core={core}",
                    counters.clock_backward
                ));
            }
        }
        let line = &end.line;
        if line.unusable != 0 {
            recording.problem(format!(
                "Frames that arrived whole are of no use: frames={}, contradictory or of a newer sender",
                line.unusable
            ));
        }
        let counts = [
            ("frames_sent", line.sent),
            ("frames_before", line.before),
            ("frames_received", line.received),
            ("frames_damaged", line.damaged),
            ("frames_lost", line.lost),
            ("packets_received", line.packets),
            ("packets_missing", line.missing_packets),
        ];
        let mut details: Vec<(&str, String)> =
            counts.iter().map(|(name, count)| (*name, count.to_string())).collect();
        details.push(("line", self.place.to_owned()));
        small.finish(&mut recording, &lost, ("serial", details));
        match recording.end() {
            Ok(report) => {
                self.done_events += report.totals.events;
                self.done.push((order, SerialPart { output, report }));
            }
            Err(error) => self.problem(error.to_string()),
        }
    }
}
