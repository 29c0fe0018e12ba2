// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording while it is made: the directory, the stream classes, the clock, and what is
//! known about areas and processes that are gone already.
//!
//! ```text
//! identity ─ what it says of itself      ending ─ the last report
//! writers ─ recordings beside it, for what policies match
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

/// Most problems kept in the report.
const PROBLEMS_MAX: usize = 100;
/// Most intervals without recording that are noted.
const GAPS_MAX: usize = 1000;
/// Most schema texts whose compilation is remembered.
const SCHEMAS_MAX: usize = 4096;

/// Where the ticks of a recording come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordingClock {
    pub(super) kind: ClockKind,
    /// `None`: this machine's, which may still be being counted.
    frequency: Option<(u64, FrequencySource)>,
    start: ClockSample,
    end: Option<ClockSample>,
    /// The samples were taken on this machine now; else they come from an area.
    live: bool,
}

impl RecordingClock {
    /// Ticks per second, and where that is known from. Cost: that of [`clocks::frequency`].
    pub(super) fn frequency(&self) -> (u64, FrequencySource) {
        self.frequency.unwrap_or_else(|| clocks::frequency(self.kind))
    }

    /// The same at the end of a recording, without waiting: of one that ends while the clock is being
    /// counted, which takes some 10 ms, it is counted from the beginning to now. Reading both clocks is off
    /// by as many nanoseconds as in a longer count, and so are the times of this recording.
    fn frequency_by_now(&self) -> (u64, FrequencySource) {
        let counted = || clocks::frequency_so_far(self.kind);
        self.frequency.or_else(counted).unwrap_or_else(|| clocks::frequency(self.kind))
    }
}

/// An interval in which nothing is recorded, in readings of the clock.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    cause: UnrecordedCause,
    from: u64,
    /// `None` while it goes on.
    to: Option<u64>,
    reason: Option<String>,
}

/// Facts about a stream or area, turned into a report at the end because times need the final clock.
pub(super) type Finish = Box<dyn FnOnce(&ClockModel) -> FinishedArea + Send>;

/// What an area or a source leaves in the report.
#[derive(Debug, Default)]
pub(super) struct FinishedArea {
    pub(super) area: Option<report::Area>,
    pub(super) source: Option<report::Source>,
    pub(super) processes: Vec<report::Process>,
    pub(super) streams: Vec<report::Stream>,
    pub(super) events: BTreeMap<String, u64>,
}

/// The file that a stream's packets go to, made with the first of them.
#[derive(Debug)]
pub(super) struct StreamTarget {
    name: String,
    pub(super) folder: Folder,
    file: Option<StreamFile>,
    /// Paths under the directory of all files so far.
    pub(super) paths: Vec<String>,
    /// The recording beside this one that gets them instead.
    pub(super) writer: Option<usize>,
}

impl StreamTarget {
    /// Part of the trace, by this name.
    pub(super) fn new(name: String) -> StreamTarget {
        StreamTarget { name, folder: Folder::Ctf, file: None, paths: Vec::new(), writer: None }
    }
}

/// See the module's description.
pub(super) struct Recording {
    pub(super) output: Output,
    pub(super) uuid: [u8; 16],
    pub(super) classes: ClassTable,
    pub(super) swapped: bool,
    pub(super) clock: Option<RecordingClock>,
    /// The cores of this machine are compared.
    has_cores: bool,
    /// Of another machine, what its program found.
    pub(super) core_offsets: Vec<CoreOffset>,
    /// Scratch for one packet with its prefix.
    pub(super) buffer: Vec<u8>,
    ctf_version: CtfVersion,
    metadata_version: Option<u64>,
    /// The metadata has a first count of the clock.
    is_clock_provisional: bool,
    environment: Vec<(String, String)>,
    /// Of this boot; what a crash left may be of another.
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
    /// Intervals in which nothing was recorded.
    pub(super) gaps: Vec<Gap>,
    /// Programs of which nothing was recorded.
    not_recorded: Vec<report::NotRecorded>,
    not_recorded_total: u64,
    /// Chunks that were made, and of these those that made room for newer ones.
    pub(super) made_chunks: u64,
    pub(super) removed_chunks: u64,
    /// The window that it is.
    pub(super) kept: Option<report::KeptWindow>,
    /// What flushing cost.
    pub(super) flushes: Option<report::Flushes>,
    /// When events started and stopped areas: which, ticks of both.
    switches: Vec<(u64, Option<u64>, Option<u64>)>,
    /// Conditions, and what is done when they fire.
    pub(super) rules: Option<Box<Rules>>,
    /// What fired, when that is known.
    pub(super) triggers: Option<report::Triggers>,
    /// Gets the packets, too, or instead of the directory.
    pub(super) keeper: Option<Box<Keeper>>,
    /// Gets them, too: the recording is made in pieces.
    pub(super) chunks: Option<Box<Chunks>>,
    /// Recordings beside this one, for what policies match.
    writers: Vec<Writer>,
    /// What each piece begins with.
    pub(super) introduced: Vec<Introduced>,
    /// What became of them.
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

    /// Another recording of the same clock and the same stream classes, in a directory of its own.
    pub(super) fn part(&self, output: Output) -> Recording {
        let mut part = Recording::new(output, self.ctf_version, Origin::Snapshot);
        part.classes = self.classes.clone();
        part.clock = self.clock;
        part.has_cores = self.has_cores;
        part.command = self.command.clone();
        // Whose events the kernel's are is the same.
        part.environment.clone_from(&self.environment);
        part.gaps = self.gaps.iter().filter(|gap| gap.to.is_none()).cloned().collect();
        part
    }

    /// Since the recording began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Notes something that went wrong, for the report. One that is there already is not noted
    /// again.
    pub(super) fn problem(&mut self, text: String) {
        if self.problems.contains(&text) {
            return;
        }
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        }
    }

    /// Makes the buffer long enough for packets of this size.
    pub(super) fn reserve(&mut self, packet_bytes: u64) {
        let bytes = PREFIX_BYTES + packet_bytes as usize;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
    }

    /// Takes this machine's clock of that kind, unless the recording has one.
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

    /// Takes a clock that is known only from what an area says, unless there is one.
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

    /// The clock's time now; the greatest for a clock that does not run here.
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

    /// A duration in ticks of the clock.
    pub(super) fn clock_ticks(&self, duration: Duration) -> u64 {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.clock_model().map_or(0, |model| model.ticks(ns))
    }

    /// Notes a schema that programs are going to register: it need not be compiled again.
    pub(super) fn expect_schema(&mut self, schema: &Arc<Schema>) {
        let text = schema.canonical_text().as_bytes().to_vec();
        self.compiled.insert(text, Some((Arc::clone(schema), schema.hash())));
    }

    /// Compiles a schema text, once per distinct text; with its hash.
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

    /// Writes the metadata before anything is recorded: with a clock that may have been counted for a moment
    /// only, and then again as soon as something is.
    pub(super) fn write_first_metadata(&mut self) -> Result<(), Error> {
        if self.write_metadata_so_far()? {
            self.metadata_version = None;
            return Ok(());
        }
        self.write_metadata_if_due()
    }

    /// Writes metadata if stream classes were added since it was written, or the clock is known better.
    ///
    /// While the clock is still being counted nobody waits for it, some 10 ms: programs that have started
    /// write faster than that. What the metadata says of it by then is written again.
    pub(super) fn write_metadata_if_due(&mut self) -> Result<(), Error> {
        let is_current = self.metadata_version == Some(self.classes.version());
        if is_current && !(self.is_clock_provisional && clocks::is_frequency_known()) {
            return Ok(());
        }
        // Who follows takes the first clock that comes.
        if self.output.live().is_none() && self.write_metadata_so_far()? {
            self.is_clock_provisional = true;
            return Ok(());
        }
        self.is_clock_provisional = false;
        self.write_metadata()
    }

    /// Writes the metadata again as soon as a clock that was being counted is known. Cost: a look, else.
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

    /// Writes metadata with a first count of a clock that is still being counted. False: it is known.
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

    /// Adds to the environment of the trace, before its metadata is written first.
    pub(super) fn describe(&mut self, more: Vec<(String, String)>) {
        self.environment.extend(more);
    }

    /// It is cut out of what was recorded.
    pub(super) fn describe_as_part(&mut self) {
        self.environment.push((EXTENT.to_owned(), EXTENT_PART.to_owned()));
    }

    fn write_metadata(&mut self) -> Result<(), Error> {
        if self.clock.is_none() {
            return Ok(());
        }
        // What `lat recover` needs if this recorder is killed stands there before the packets do.
        self.write_progress_report()?;
        self.write_metadata_alone()
    }

    /// Writes the metadata of a recording whose report says already what `lat recover` needs, or is written
    /// next.
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

    /// Writes a packet, and before it the metadata that describes it. False, and nothing more is
    /// ever written, if it could not be.
    pub(super) fn write_packet(
        &mut self,
        target: &mut StreamTarget,
        packet: &[u8],
        sealed: &Sealed,
    ) -> bool {
        if self.output_ended {
            return false;
        }
        // What cannot be read stands beside the pieces: it has no time.
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

    /// Adds to the file of a stream a packet that carries how many events were not written, if there
    /// are such and there is room for it. Context: nothing else of the stream will be written.
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

    /// Notes that from this clock time on nothing is recorded.
    pub(super) fn begin_gap(&mut self, cause: UnrecordedCause, from: u64) {
        let is_open = |gap: &Gap| gap.cause == cause && gap.to.is_none();
        if self.gaps.len() < GAPS_MAX && !self.gaps.iter().any(is_open) {
            let reason = self.problems.last().cloned().filter(|_| cause == UnrecordedCause::Ended);
            self.gaps.push(Gap { cause, from, to: None, reason });
        }
    }

    /// Notes that recording goes on at this clock time.
    pub(super) fn end_gap(&mut self, cause: UnrecordedCause, to: u64) {
        let is_open = |gap: &&mut Gap| gap.cause == cause && gap.to.is_none();
        if let Some(gap) = self.gaps.iter_mut().find(is_open) {
            gap.to = Some(to.max(gap.from));
        }
    }

    /// Notes a program of which nothing is recorded, once.
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

    /// Whether a program is known of which nothing is recorded.
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

    /// Takes what an area leaves behind.
    pub(super) fn finish_area(&mut self, finish: Finish) {
        self.finished.push(finish);
    }

    /// Writes `report.json` as of now: a recording in progress says `"complete": false`.
    pub(super) fn write_progress_report(&mut self) -> Result<(), Error> {
        let report = self.empty_report(false);
        self.output.write_report(&report.to_json())
    }

    /// Notes when events started and stopped an area.
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
