// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording while it is made: the directory, the stream classes, the clock, and what is
//! known about areas and processes that are gone already.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_pleco::Schema;
use lateralis_ring::{ClockKind, RingKind};

use super::clocks;
use super::cores;
use super::keep::{Chunks, Keeper};
use super::live::LiveServer;
use super::output::{AppendError, Folder, Output, StreamFile};
use super::rules::Rules;
use crate::classes::{ClassTable, StreamClassEntry};
use crate::clock::{ClockModel, ClockSample, FrequencySource, counted_hz, incidents};
use crate::core_offsets::CoreOffset;
use crate::error::Error;
use crate::metadata::{clock_name, metadata, uuid_text};
use crate::options::CtfVersion;
use crate::report::{self, Origin, REPORT_VERSION, Report};
use crate::stream::{PREFIX_BYTES, Sealed};

/// Most problems kept in the report.
const PROBLEMS_MAX: usize = 100;
/// Most schema texts whose compilation is remembered.
const SCHEMAS_MAX: usize = 4096;

/// Where the ticks of a recording come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordingClock {
    pub(super) kind: ClockKind,
    frequency_hz: u64,
    source: FrequencySource,
    start: ClockSample,
    end: Option<ClockSample>,
    /// The samples were taken on this machine now; else they come from an area.
    live: bool,
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
}

impl StreamTarget {
    /// Part of the trace, by this name.
    pub(super) fn new(name: String) -> StreamTarget {
        StreamTarget { name, folder: Folder::Ctf, file: None, paths: Vec::new() }
    }
}

/// See the module's description.
pub(super) struct Recording {
    pub(super) output: Output,
    pub(super) uuid: [u8; 16],
    pub(super) classes: ClassTable,
    pub(super) swapped: bool,
    pub(super) clock: Option<RecordingClock>,
    cores: Vec<CoreOffset>,
    /// Scratch for one packet with its prefix.
    pub(super) buffer: Vec<u8>,
    ctf_version: CtfVersion,
    metadata_version: Option<u64>,
    environment: Vec<(String, String)>,
    /// Of this boot; what a crash left may be of another.
    clock_uuid: Option<[u8; 16]>,
    compiled: HashMap<Vec<u8>, Option<Arc<Schema>>>,
    finished: Vec<Finish>,
    problems: Vec<String>,
    problem_count: usize,
    began: Instant,
    pub(super) origin: Origin,
    pub(super) command: Option<report::Command>,
    /// Writing failed or the cap is reached: nothing more is written.
    pub(super) output_ended: bool,
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
}

impl Recording {
    pub(super) fn new(output: Output, ctf_version: CtfVersion, origin: Origin) -> Recording {
        Recording {
            output,
            uuid: random_uuid(),
            classes: ClassTable::default(),
            swapped: false,
            clock: None,
            cores: Vec::new(),
            buffer: vec![0; PREFIX_BYTES + (64 << 10)],
            ctf_version,
            metadata_version: None,
            environment: environment(),
            clock_uuid: (origin != Origin::Recovered).then(clocks::boot_uuid).flatten(),
            compiled: HashMap::new(),
            finished: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            began: Instant::now(),
            origin,
            command: None,
            output_ended: false,
            kept: None,
            flushes: None,
            switches: Vec::new(),
            rules: None,
            triggers: None,
            keeper: None,
            chunks: None,
        }
    }

    /// Another recording of the same clock and the same stream classes, in a directory of its own.
    pub(super) fn part(&self, output: Output) -> Recording {
        let mut part = Recording::new(output, self.ctf_version, Origin::Snapshot);
        part.classes = self.classes.clone();
        part.clock = self.clock;
        part.command = self.command.clone();
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
        let cores = &mut self.cores;
        *self.clock.get_or_insert_with(|| {
            if kind == clocks::native_kind() && kind != ClockKind::MonotonicNs {
                *cores = cores::offsets();
            }
            let (frequency_hz, source) = clocks::frequency(kind);
            let start = clocks::sample(kind);
            RecordingClock { kind, frequency_hz, source, start, end: None, live: true }
        })
    }

    /// Takes a clock that is known only from what an area says, unless there is one.
    pub(super) fn use_dead_clock(
        &mut self,
        kind: ClockKind,
        frequency: (u64, FrequencySource),
        start: ClockSample,
    ) -> RecordingClock {
        let (frequency_hz, source) = frequency;
        *self.clock.get_or_insert(RecordingClock {
            kind,
            frequency_hz,
            source,
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
        Some(ClockModel::fit(
            clock.kind,
            clock.frequency_hz,
            clock.source,
            &clock.start,
            clock.end.as_ref(),
        ))
    }

    /// A duration in ticks of the clock.
    pub(super) fn clock_ticks(&self, duration: Duration) -> u64 {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.clock_model().map_or(0, |model| model.ticks(ns))
    }

    /// Compiles a schema text, once per distinct text.
    pub(super) fn compile(&mut self, text: &[u8]) -> Option<Arc<Schema>> {
        if let Some(known) = self.compiled.get(text) {
            return known.clone();
        }
        let compiled = lateralis_pleco::compile("schema.pleco", text).schema.map(Arc::new);
        if self.compiled.len() < SCHEMAS_MAX {
            self.compiled.insert(text.to_owned(), compiled.clone());
        }
        compiled
    }

    /// Writes metadata if stream classes were added since it was written.
    pub(super) fn write_metadata_if_due(&mut self) -> Result<(), Error> {
        if self.metadata_version == Some(self.classes.version()) {
            return Ok(());
        }
        self.write_metadata()
    }

    fn write_metadata(&mut self) -> Result<(), Error> {
        let Some(clock) = self.clock_model() else { return Ok(()) };
        // What `lat recover` needs if this recorder is killed stands there before the packets do.
        self.write_progress_report()?;
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
            cores: self.cores.clone(),
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
            stream_classes: self.classes.classes().iter().map(class_report).collect(),
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
        }
    }

    /// Ends the recording: measures the clock again, writes the final metadata, the indexes and
    /// the report. The report is `complete` if nothing was lost on the way to the files.
    pub(super) fn end(mut self) -> Result<Report, Error> {
        let mut happened = Vec::new();
        if let Some(clock) = &mut self.clock {
            if clock.live {
                let end = clocks::sample(clock.kind);
                if clock.source == FrequencySource::Calibrated {
                    clock.frequency_hz = counted_hz(&clock.start, &end, clock.frequency_hz);
                }
                clock.end = Some(end);
                happened = incidents(&clock.start, &end, clock.frequency_hz);
            }
        } else {
            // Nothing was traced: the trace is empty, but it is one.
            self.use_live_clock(clocks::native_kind());
        }
        happened.into_iter().for_each(|sentence| self.problem(sentence));
        self.output.use_reserve();
        if let Err(error) = self.write_metadata() {
            self.problem(error.to_string());
            self.output_ended = true;
        }
        if let Err(error) = self.output.write_indexes() {
            self.problem(error.to_string());
        }
        let complete = !self.output_ended;
        let finished = std::mem::take(&mut self.finished);
        let mut report = self.empty_report(complete);
        if let Some(model) = self.clock_model() {
            for finish in finished {
                let area = finish(&model);
                report.areas.extend(area.area);
                report.sources.extend(area.source);
                report.processes.extend(area.processes);
                report.streams.extend(area.streams);
                for (name, count) in area.events {
                    *report.events.entry(name).or_insert(0) += count;
                }
            }
        }
        sum(&mut report);
        let elapsed = self.began.elapsed();
        let (cpu_ns, peak_memory_bytes) = own_usage();
        let seconds = elapsed.as_secs_f64().max(1e-9);
        report.throughput = report::Throughput {
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns,
            peak_memory_bytes,
            events_per_s: (report.totals.events as f64 / seconds) as u64,
            bytes_per_s: (report.totals.bytes as f64 / seconds) as u64,
        };
        report.live = self.output.live().map(LiveServer::finish);
        self.output.write_last_report(&report.to_json())?;
        Ok(report)
    }
}

fn class_report(class: &StreamClassEntry) -> report::StreamClass {
    report::StreamClass {
        id: class.id,
        ring_kind: match class.kind {
            RingKind::PerCpu => "per-cpu".to_owned(),
            RingKind::PerThread => "per-thread".to_owned(),
        },
        schemas: class
            .schemas
            .values()
            .map(|entry| report::ClassSchema {
                base_id: entry.base_id,
                text: entry.schema.canonical_text(),
            })
            .collect(),
    }
}

/// Makes the totals of the streams.
pub(super) fn sum(report: &mut Report) {
    report.totals = report::Totals::default();
    let totals = &mut report.totals;
    for stream in &report.streams {
        totals.events += stream.events;
        totals.internal_events += stream.internal_events;
        totals.packets += stream.packets;
        totals.bytes += stream.bytes;
        totals.lost_packets = totals.lost_packets.saturating_add(stream.lost_packets);
        totals.not_written += stream.not_written;
        totals.damaged_packets += stream.damaged_packets;
        let lost = &mut totals.lost;
        lost.full = lost.full.saturating_add(stream.lost.full);
        lost.too_big = lost.too_big.saturating_add(stream.lost.too_big);
        lost.contended = lost.contended.saturating_add(stream.lost.contended);
        lost.no_ring = lost.no_ring.saturating_add(stream.lost.no_ring);
        lost.total = lost.total.saturating_add(stream.lost.total);
    }
}

/// CPU time and greatest memory of this process.
fn own_usage() -> (u64, u64) {
    // SAFETY: a zeroed rusage is valid, and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| {
        (time.tv_sec as u64).saturating_mul(1_000_000_000) + time.tv_usec as u64 * 1000
    };
    (ns(usage.ru_utime) + ns(usage.ru_stime), usage.ru_maxrss as u64 * 1024)
}

/// Facts about the machine for the trace's environment.
fn environment() -> Vec<(String, String)> {
    let system = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    vec![
        ("tracer_name".to_owned(), "lateralis".to_owned()),
        ("tracer_version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("domain".to_owned(), "ust".to_owned()),
        ("hostname".to_owned(), text(system.nodename())),
        ("kernel_release".to_owned(), text(system.release())),
        ("architecture".to_owned(), text(system.machine())),
    ]
}

/// A random UUID [RFC 9562 §5.4].
pub(super) fn random_uuid() -> [u8; 16] {
    let mut uuid = [0; 16];
    // SAFETY: writes at most the 16 bytes of `uuid`. Never short for so few bytes.
    let got = unsafe { libc::getrandom(uuid.as_mut_ptr().cast(), uuid.len(), 0) };
    if got != 16 {
        // Before the kernel's generator is ready: unique enough from time and number.
        uuid[..8].copy_from_slice(&clocks::utc_ns().to_ne_bytes());
        uuid[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
    }
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
