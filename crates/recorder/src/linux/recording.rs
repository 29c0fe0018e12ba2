// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording in progress: the directory, the stream classes, the clock, and
//! data of areas and processes that have ended.
//!
//! ```text
//! identity ─ description of the machine  ending ─ the last report
//! writers ─ separate recordings for programs matched by policies
//! ```

mod ending;
mod identity;
mod writers;

pub(super) use ending::sum;
pub(super) use identity::random_uuid;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_model::{EXTENT, EXTENT_PART};
use lateralis_pleco::Schema;
use lateralis_ring::ClockKind;

use super::clocks;
use super::cores;
use super::keep::{Chunks, Introduced, Keeper, Writer};
use super::output::{AppendError, Folder, Output, StreamFile};
use super::rules::Rules;
use crate::classes::ClassTable;
use crate::clock::{ClockModel, ClockSample, FrequencySource};
use crate::core_offsets::CoreOffset;
use crate::error::Error;
use crate::metadata::{clock_name, metadata, uuid_text};
use crate::options::CtfVersion;
use crate::report::{self, Origin, REPORT_VERSION, Report, UnrecordedCause};
use crate::stream::{PREFIX_BYTES, RingStream, SealContext, Sealed};

/// Maximum number of problems in the report.
const PROBLEMS_MAX: usize = 100;
/// Maximum number of gaps in the report.
const GAPS_MAX: usize = 1000;
/// Maximum number of schema texts whose compilation is cached.
const SCHEMAS_MAX: usize = 4096;

/// The clock of a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordingClock {
    pub(super) kind: ClockKind,
    /// `None`: this machine's, which may still be being measured.
    frequency: Option<(u64, FrequencySource)>,
    start: ClockSample,
    end: Option<ClockSample>,
    /// The samples were taken on this machine now; otherwise they come from an area.
    live: bool,
}

impl RecordingClock {
    /// Ticks per second, and the source of the value. Cost: that of [`clocks::frequency`].
    pub(super) fn frequency(&self) -> (u64, FrequencySource) {
        self.frequency.unwrap_or_else(|| clocks::frequency(self.kind))
    }

    /// Like `frequency`, without waiting, for the end of a recording. If the recording ends during the
    /// measurement, which takes about 10 ms, the frequency is measured from the beginning to now. The error
    /// in nanoseconds, from reading both clocks, is that of a longer measurement, as is that of the recorded
    /// times.
    fn frequency_by_now(&self) -> (u64, FrequencySource) {
        let counted = || clocks::frequency_so_far(self.kind);
        self.frequency.or_else(counted).unwrap_or_else(|| clocks::frequency(self.kind))
    }
}

/// An interval without recording, in clock readings.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    cause: UnrecordedCause,
    from: u64,
    /// `None` while it lasts.
    to: Option<u64>,
    reason: Option<String>,
}

/// Data of a stream or area, converted to a report at the end because times need the final clock.
pub(super) type Finish = Box<dyn FnOnce(&ClockModel) -> FinishedArea + Send>;

/// The report of an area or a source.
#[derive(Debug, Default)]
pub(super) struct FinishedArea {
    pub(super) area: Option<report::Area>,
    pub(super) source: Option<report::Source>,
    pub(super) processes: Vec<report::Process>,
    pub(super) streams: Vec<report::Stream>,
    pub(super) events: BTreeMap<String, u64>,
}

/// The file for a stream's packets, created with the first of them.
#[derive(Debug)]
pub(super) struct StreamTarget {
    name: String,
    pub(super) folder: Folder,
    file: Option<StreamFile>,
    /// Relative paths of all files so far.
    pub(super) paths: Vec<String>,
    /// The separate recording that gets the packets instead.
    pub(super) writer: Option<usize>,
}

impl StreamTarget {
    /// A stream of the trace, with this name.
    pub(super) fn new(name: String) -> StreamTarget {
        StreamTarget { name, folder: Folder::Ctf, file: None, paths: Vec::new(), writer: None }
    }
}

/// A recording in progress.
pub(super) struct Recording {
    pub(super) output: Output,
    pub(super) uuid: [u8; 16],
    pub(super) classes: ClassTable,
    pub(super) swapped: bool,
    pub(super) clock: Option<RecordingClock>,
    /// The cores of this machine are compared.
    has_cores: bool,
    /// Core offsets of another machine, measured by its program.
    pub(super) core_offsets: Vec<CoreOffset>,
    /// Scratch for one packet with its prefix.
    pub(super) buffer: Vec<u8>,
    ctf_version: CtfVersion,
    metadata_version: Option<u64>,
    /// The metadata contains a provisional clock frequency.
    is_clock_provisional: bool,
    environment: Vec<(String, String)>,
    /// Of this boot; data of a crash may be of another.
    clock_uuid: Option<[u8; 16]>,
    compiled: HashMap<Vec<u8>, Option<(Arc<Schema>, u64)>>,
    finished: Vec<Finish>,
    problems: Vec<String>,
    problem_count: usize,
    began: Instant,
    pub(super) origin: Origin,
    pub(super) command: Option<report::Command>,
    /// Writing failed or the cap is reached: nothing more is written.
    pub(super) output_ended: bool,
    /// Gaps in the recording.
    pub(super) gaps: Vec<Gap>,
    /// Programs that were not recorded.
    not_recorded: Vec<report::NotRecorded>,
    not_recorded_total: u64,
    /// Number of chunks created, and of those removed for newer ones.
    pub(super) made_chunks: u64,
    pub(super) removed_chunks: u64,
    /// The window, if this recording is one.
    pub(super) kept: Option<report::KeptWindow>,
    /// Cost of flushes.
    pub(super) flushes: Option<report::Flushes>,
    /// Ticks at which events started and stopped areas, by area.
    switches: Vec<(u64, Option<u64>, Option<u64>)>,
    /// Conditions, and their actions.
    pub(super) rules: Option<Box<Rules>>,
    /// Firings, if known.
    pub(super) triggers: Option<report::Triggers>,
    /// Also gets the packets, or gets them instead of the directory.
    pub(super) keeper: Option<Box<Keeper>>,
    /// Also gets the packets, if the recording is made in chunks.
    pub(super) chunks: Option<Box<Chunks>>,
    /// Separate recordings for programs matched by policies.
    writers: Vec<Writer>,
    /// Data at the start of each part.
    pub(super) introduced: Vec<Introduced>,
    /// Results of the separate recordings.
    outputs: Vec<report::PolicyOutput>,
}

impl Recording {
    pub(super) fn new(output: Output, ctf_version: CtfVersion, origin: Origin) -> Recording {
        Recording {
            output,
            uuid: random_uuid(),
            classes: ClassTable::default(),
            swapped: false,
            clock: None,
            has_cores: false,
            core_offsets: Vec::new(),
            buffer: vec![0; PREFIX_BYTES + (64 << 10)],
            ctf_version,
            metadata_version: None,
            is_clock_provisional: false,
            environment: identity::environment(origin),
            clock_uuid: (origin != Origin::Recovered).then(clocks::boot_uuid).flatten(),
            compiled: HashMap::new(),
            finished: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            began: Instant::now(),
            origin,
            command: None,
            output_ended: false,
            gaps: Vec::new(),
            not_recorded: Vec::new(),
            not_recorded_total: 0,
            made_chunks: 0,
            removed_chunks: 0,
            kept: None,
            flushes: None,
            switches: Vec::new(),
            rules: None,
            triggers: None,
            keeper: None,
            chunks: None,
            writers: Vec::new(),
            introduced: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Another recording with the same clock and stream classes, in a directory of its own.
    pub(super) fn part(&self, output: Output) -> Recording {
        let mut part = Recording::new(output, self.ctf_version, Origin::Snapshot);
        part.classes = self.classes.clone();
        part.clock = self.clock;
        part.has_cores = self.has_cores;
        part.command = self.command.clone();
        // The scope of the kernel's events is the same.
        part.environment.clone_from(&self.environment);
        part.gaps = self.gaps.iter().filter(|gap| gap.to.is_none()).cloned().collect();
        part
    }

    /// Start time of the recording.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Adds a problem to the report, unless it is already
    /// there.
    pub(super) fn problem(&mut self, text: String) {
        if self.problems.contains(&text) {
            return;
        }
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        }
    }

    /// Enlarges the buffer for packets of this size.
    pub(super) fn reserve(&mut self, packet_bytes: u64) {
        let bytes = PREFIX_BYTES + packet_bytes as usize;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
    }

    /// Uses this machine's clock of that kind, unless the recording has a clock.
    pub(super) fn use_live_clock(&mut self, kind: ClockKind) -> RecordingClock {
        let has_cores = &mut self.has_cores;
        *self.clock.get_or_insert_with(|| {
            if kind == clocks::native_kind() && kind != ClockKind::MonotonicNs {
                cores::begin();
                *has_cores = true;
            }
            let start = clocks::sample(kind);
            RecordingClock { kind, frequency: None, start, end: None, live: true }
        })
    }

    /// Uses a clock that is known only from an area, unless the recording has one.
    pub(super) fn use_dead_clock(
        &mut self,
        kind: ClockKind,
        frequency: (u64, FrequencySource),
        start: ClockSample,
    ) -> RecordingClock {
        *self.clock.get_or_insert(RecordingClock {
            kind,
            frequency: Some(frequency),
            start,
            end: None,
            live: false,
        })
    }

    /// Current time of the clock; the maximum for a foreign clock.
    pub(super) fn now(&self) -> u64 {
        match &self.clock {
            Some(clock) if clock.live => clocks::now_ticks(clock.kind),
            _ => u64::MAX,
        }
    }

    pub(super) fn clock_model(&self) -> Option<ClockModel> {
        let clock = self.clock.as_ref()?;
        let (frequency_hz, source) = clock.frequency();
        Some(ClockModel::fit(clock.kind, frequency_hz, source, &clock.start, clock.end.as_ref()))
    }

    /// Converts a duration to ticks of the clock.
    pub(super) fn clock_ticks(&self, duration: Duration) -> u64 {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.clock_model().map_or(0, |model| model.ticks(ns))
    }

    /// Adds a schema that programs are going to register, so that it is not compiled again.
    pub(super) fn expect_schema(&mut self, schema: &Arc<Schema>) {
        let text = schema.canonical_text().as_bytes().to_vec();
        self.compiled.insert(text, Some((Arc::clone(schema), schema.hash())));
    }

    /// Compiles a schema text, once per distinct text; also returns its hash.
    pub(super) fn compile(&mut self, text: &[u8]) -> Option<(Arc<Schema>, u64)> {
        if let Some(known) = self.compiled.get(text) {
            return known.clone();
        }
        let compiled = lateralis_pleco::compile("schema.pleco", text).schema;
        let compiled = compiled.map(|schema| {
            let hash = schema.hash();
            (Arc::new(schema), hash)
        });
        if self.compiled.len() < SCHEMAS_MAX {
            self.compiled.insert(text.to_owned(), compiled.clone());
        }
        compiled
    }

    /// Writes the metadata before anything is recorded, possibly with a provisional clock frequency;
    /// it is then rewritten as soon as something is recorded.
    pub(super) fn write_first_metadata(&mut self) -> Result<(), Error> {
        if self.write_metadata_so_far()? {
            self.metadata_version = None;
            return Ok(());
        }
        self.write_metadata_if_due()
    }

    /// Writes metadata if stream classes were added since the last write, or the clock is known better.
    ///
    /// It does not wait for a clock that is still being measured, about 10 ms, because started programs
    /// write faster than that. The provisional frequency is replaced later.
    pub(super) fn write_metadata_if_due(&mut self) -> Result<(), Error> {
        let is_current = self.metadata_version == Some(self.classes.version());
        if is_current && !(self.is_clock_provisional && clocks::is_frequency_known()) {
            return Ok(());
        }
        // A follower uses the first clock that it receives.
        if self.output.live().is_none() && self.write_metadata_so_far()? {
            self.is_clock_provisional = true;
            return Ok(());
        }
        self.is_clock_provisional = false;
        self.write_metadata()
    }

    /// Rewrites the metadata as soon as the frequency has been measured. Cost otherwise: one check.
    pub(super) fn improve_clock(&mut self) {
        let is_due = self.is_clock_provisional && clocks::is_frequency_known();
        if is_due
            && !self.output_ended
            && let Err(error) = self.write_metadata_if_due()
        {
            self.problem(error.to_string());
            self.output_ended = true;
        }
    }

    /// Writes metadata with a provisional frequency if the clock is still being measured. False: it is known.
    fn write_metadata_so_far(&mut self) -> Result<bool, Error> {
        let unknown = self.clock.filter(|clock| clock.live && clock.frequency.is_none());
        let so_far = unknown.and_then(|clock| {
            let frequency = Some(clocks::frequency_so_far(clock.kind)?);
            Some(RecordingClock { frequency, ..clock })
        });
        if so_far.is_none() {
            return Ok(false);
        }
        self.clock = so_far;
        let written = self.write_metadata();
        self.clock = unknown;
        written.map(|()| true)
    }

    /// Adds to the environment of the trace, before its metadata is first written.
    pub(super) fn describe(&mut self, more: Vec<(String, String)>) {
        self.environment.extend(more);
    }

    /// Marks it as a part of a larger recording.
    pub(super) fn describe_as_part(&mut self) {
        self.environment.push((EXTENT.to_owned(), EXTENT_PART.to_owned()));
    }

    fn write_metadata(&mut self) -> Result<(), Error> {
        if self.clock.is_none() {
            return Ok(());
        }
        // `lat recover` needs this report if the recorder is killed, so it precedes the packets.
        self.write_progress_report()?;
        self.write_metadata_alone()
    }

    /// Writes only the metadata: the report that `lat recover` needs exists already, or is written next.
    fn write_metadata_alone(&mut self) -> Result<(), Error> {
        let Some(clock) = self.clock_model() else { return Ok(()) };
        let text = metadata(
            self.uuid,
            self.ctf_version,
            self.swapped,
            &self.classes,
            &clock,
            self.clock_uuid,
            &self.environment,
        );
        self.output.write_metadata(&text)?;
        self.metadata_version = Some(self.classes.version());
        Ok(())
    }

    /// Writes a packet, and before it the metadata that describes it. Returns false on failure; then nothing
    /// more is ever written.
    pub(super) fn write_packet(
        &mut self,
        target: &mut StreamTarget,
        packet: &[u8],
        sealed: &Sealed,
    ) -> bool {
        if self.output_ended {
            return false;
        }
        // Unreadable packets are stored outside of the parts, as they have no time.
        if target.folder == Folder::Ctf {
            if let Some(rules) = &mut self.rules {
                rules.take(&self.classes, &target.name, packet);
            }
            if let Some(keeper) = &mut self.keeper {
                keeper.take(&target.name, packet);
                if keeper.is_alone() {
                    return true;
                }
            }
            if let Some(writer) = target.writer {
                return self.write_elsewhere(writer, &target.name, packet);
            }
            if let Some(mut chunks) = self.chunks.take() {
                let is_written = chunks.take(self, &target.name, packet);
                self.chunks = Some(chunks);
                self.output_ended |= !is_written;
                return is_written;
            }
        }
        if let Err(error) = self.write_metadata_if_due() {
            self.problem(error.to_string());
            self.output_ended = true;
            return false;
        }
        let file = *target.file.get_or_insert_with(|| {
            let file = self.output.add_stream(target.folder, &target.name);
            target.paths.push(self.output.stream_path(file));
            file
        });
        let events = (target.folder == Folder::Ctf).then_some(sealed.events);
        match self.output.append_counted(file, packet, sealed.index, events) {
            Ok(()) => return true,
            Err(AppendError::Cap) => {
                self.problem("Cannot record further: the cap on disk space is reached".to_owned());
            }
            Err(AppendError::Write(cause)) => {
                let path = self.output.stream_path(file);
                self.problem(format!("Cannot write: path={path}, cause={cause}"));
            }
        }
        self.output_ended = true;
        false
    }

    /// Appends to the file of a stream a packet with the number of events that were not written, if there
    /// are any and there is room. Context: nothing else of the stream will be written.
    pub(super) fn count_not_written(
        &mut self,
        stream: &mut RingStream,
        target: &mut StreamTarget,
        context: &SealContext<'_>,
    ) {
        let is_alone = self.keeper.is_none() && self.chunks.is_none() && target.writer.is_none();
        let is_described = self.metadata_version == Some(self.classes.version());
        let Some(before) = stream.clone_if(|totals| totals.not_written > 0) else { return };
        let mut packet = vec![0; PREFIX_BYTES];
        let Some(sealed) = stream.seal_not_written(context, &mut packet) else { return };
        let mut is_written = false;
        if is_alone && is_described {
            self.output.use_reserve();
            let file = *target.file.get_or_insert_with(|| {
                let file = self.output.add_stream(target.folder, &target.name);
                target.paths.push(self.output.stream_path(file));
                file
            });
            let packet = &packet[sealed.bytes.clone()];
            is_written = self.output.append_last(file, packet, sealed.index).is_ok();
        }
        if !is_written {
            *stream = before;
        }
    }

    /// Starts a gap at this clock time.
    pub(super) fn begin_gap(&mut self, cause: UnrecordedCause, from: u64) {
        let is_open = |gap: &Gap| gap.cause == cause && gap.to.is_none();
        if self.gaps.len() < GAPS_MAX && !self.gaps.iter().any(is_open) {
            let reason = self.problems.last().cloned().filter(|_| cause == UnrecordedCause::Ended);
            self.gaps.push(Gap { cause, from, to: None, reason });
        }
    }

    /// Ends a gap at this clock time.
    pub(super) fn end_gap(&mut self, cause: UnrecordedCause, to: u64) {
        let is_open = |gap: &&mut Gap| gap.cause == cause && gap.to.is_none();
        if let Some(gap) = self.gaps.iter_mut().find(is_open) {
            gap.to = Some(to.max(gap.from));
        }
    }

    /// Adds a program that is not recorded, once.
    pub(super) fn not_recorded(&mut self, program: report::NotRecorded) {
        let is_known = self.not_recorded.iter().any(|known| {
            known.program == program.program
                && known.reason == program.reason
                && known.pid.is_none_or(|pid| Some(pid) == program.pid)
        });
        if is_known {
            return;
        }
        self.not_recorded_total = self.not_recorded_total.saturating_add(program.count);
        if self.not_recorded.len() < PROBLEMS_MAX {
            self.not_recorded.push(program);
        }
    }

    /// Whether a program is known that is not recorded.
    pub(super) fn misses_programs(&self) -> bool {
        !self.not_recorded.is_empty()
    }

    fn unrecorded(&self) -> Vec<report::Unrecorded> {
        let Some(model) = self.clock_model() else { return Vec::new() };
        let gaps = self.gaps.iter().map(|gap| report::Unrecorded {
            cause: gap.cause,
            from_ns: model.utc_ns(gap.from),
            to_ns: gap.to.map(|to| model.utc_ns(to)),
            reason: gap.reason.clone(),
        });
        gaps.collect()
    }

    /// Closes the file of a stream; a later packet goes to a new one.
    pub(super) fn close_stream(&mut self, target: &mut StreamTarget) {
        if let Some(file) = target.file.take()
            && let Err(error) = self.output.close(file)
        {
            self.problem(error.to_string());
        }
    }

    /// Adds the data of a finished area.
    pub(super) fn finish_area(&mut self, finish: Finish) {
        self.finished.push(finish);
    }

    /// Writes the current `report.json`: a recording in progress has `"complete": false`.
    pub(super) fn write_progress_report(&mut self) -> Result<(), Error> {
        let report = self.empty_report(false);
        self.output.write_report(&report.to_json())
    }

    /// Stores the times at which events started and stopped an area.
    pub(super) fn note_switch(&mut self, area_id: u64, times: (Option<u64>, Option<u64>)) {
        if self.switches.len() < PROBLEMS_MAX {
            self.switches.push((area_id, times.0, times.1));
        }
    }

    fn switched(&self) -> Vec<report::Switched> {
        let Some(model) = self.clock_model() else { return Vec::new() };
        let switches = self.switches.iter().map(|(area_id, started, stopped)| report::Switched {
            area_id: format!("{area_id:016x}"),
            started_ns: started.map(|at| model.utc_ns(at)),
            stopped_ns: stopped.map(|at| model.utc_ns(at)),
        });
        switches.collect()
    }

    fn empty_report(&self, complete: bool) -> Report {
        let clock = self.clock_model().map(|model| report::Clock {
            kind: clock_name(model.kind).to_owned(),
            frequency_hz: model.frequency_hz,
            frequency_source: model.source,
            offset_s: model.offset_s,
            offset_ticks: model.offset_ticks,
            error_ns: model.error_ns,
            start: self.clock.map(|clock| clock.start),
            end: self.clock.and_then(|clock| clock.end),
            cores: if self.has_cores { cores::so_far() } else { self.core_offsets.clone() },
        });
        let mut problems = self.problems.clone();
        if self.problem_count > problems.len() {
            problems.push(format!("{} more problems", self.problem_count - problems.len()));
        }
        Report {
            report_version: REPORT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete,
            origin: self.origin,
            trace_uuid: uuid_text(&self.uuid),
            command: self.command.clone(),
            processes: Vec::new(),
            clock,
            streams: Vec::new(),
            areas: Vec::new(),
            sources: Vec::new(),
            totals: report::Totals::default(),
            events: BTreeMap::new(),
            problems,
            throughput: report::Throughput::default(),
            stream_classes: self.classes.classes().iter().map(identity::class_report).collect(),
            byte_order: if cfg!(target_endian = "little") != self.swapped {
                report::ByteOrder::Little
            } else {
                report::ByteOrder::Big
            },
            live: None,
            received: None,
            kept: self.kept.clone(),
            switched: self.switched(),
            triggers: self.triggers.clone(),
            flushes: self.flushes,
            outputs: self.outputs.clone(),
            unrecorded: self.unrecorded(),
            not_recorded: self.not_recorded.clone(),
            not_recorded_total: self.not_recorded_total,
            made_chunks: self.made_chunks,
            removed_chunks: self.removed_chunks,
        }
    }
}
