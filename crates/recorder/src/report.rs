// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `report.json`: description of a recording. Documented for readers in
//! `docs/reference/report-json.md`; a test compares the two.

mod kept;
mod triggers;

use std::collections::BTreeMap;

use lateralis_ring::LossCounts;
use serde::{Deserialize, Serialize};

use crate::clock::{ClockSample, FrequencySource};
pub use crate::core_offsets::CoreOffset;
pub use crate::exchanges::Exchanges;

pub use kept::{KEPT_VERSION, KeptList, KeptReason, KeptWindow, NotJudged};
pub use triggers::{Done, Fired, Outcome, TriggerRule, Triggers};

/// Version of the file format; increases when older readers would misinterpret it.
pub const REPORT_VERSION: u32 = 1;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub report_version: u32,
    /// Version of the tool that wrote it.
    pub tool_version: String,
    /// Everything was written: the recording ended properly.
    pub complete: bool,
    /// Origin of the recording.
    pub origin: Origin,
    /// UUID of the trace, 32 hexadecimal digits with hyphens.
    pub trace_uuid: String,
    /// The launched command.
    pub command: Option<Command>,
    /// Processes that were recorded, or should have been.
    pub processes: Vec<Process>,
    /// The clock; `None` if nothing was recorded.
    pub clock: Option<Clock>,
    /// One per ring with packets or losses.
    pub streams: Vec<Stream>,
    /// Losses without a ring, and other properties of an area as a whole.
    pub areas: Vec<Area>,
    /// Sources of events besides programs: the kernel, an interface.
    #[serde(default)]
    pub sources: Vec<Source>,
    /// Sums over the recording.
    pub totals: Totals,
    /// Events by `subsystem:EVENT`, over all streams.
    pub events: BTreeMap<String, u64>,
    /// Problems, one sentence each, at most 100.
    pub problems: Vec<String>,
    /// Throughput of the recording.
    pub throughput: Throughput,
    /// Meaning of the ids in the packets: sufficient to write the metadata again.
    pub stream_classes: Vec<StreamClass>,
    /// Byte order of the stream files.
    pub byte_order: ByteOrder,
    /// Clients that followed the recording; `None` if it was not live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// How this copy was received; `None` where the recording was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Received>,
    /// The window of time that it contains, and why it was saved; `None` for a complete recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptWindow>,
    /// When an event started and stopped the events of an area, at most 100 areas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switched: Vec<Switched>,
    /// Conditions and their actions; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Triggers>,
    /// Cost of periodically writing open packets; `None` if that was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<Flushes>,
    /// Separate recordings with the events of some policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<PolicyOutput>,
    /// Intervals in which nothing was recorded although programs may have run; at most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<Unrecorded>,
    /// Known programs that were not recorded; at most 100 entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<NotRecorded>,
    /// Number of all programs that were not recorded, including those without an entry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_recorded_total: u64,
    /// Number of chunks created; only for a recording in chunks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_chunks: u64,
    /// Number of chunks removed for newer ones: the oldest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed_chunks: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Cause of an interval without recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnrecordedCause {
    /// The recording was stopped (`lat stop`), and may have been started again.
    Stopped,
    /// The recording ended before the programs did: the disk was full, or a cap was reached.
    Ended,
}

/// An interval without recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unrecorded {
    /// The cause.
    pub cause: UnrecordedCause,
    /// Start of the interval, UTC nanoseconds since 1970.
    pub from_ns: i64,
    /// End of the interval, UTC nanoseconds since 1970; `None` while it lasts.
    pub to_ns: Option<i64>,
    /// Why it started, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a program was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRecordedReason {
    /// Its tracer has another version of the ABI than the recorder.
    OtherVersion,
    /// Its area is unreadable: a wrong magic number, a wrong layout.
    UnreadableArea,
    /// Its area has no rings, because there was no room for them.
    NoRoom,
    /// It should have created an area and did not: it has no access to the directory of areas, or is in
    /// another mount namespace or belongs to another user.
    NeverRegistered,
    /// The preload library cannot be loaded into it: it is static, or has another C library or
    /// architecture.
    CannotBePreloaded,
    /// Any reason that this version does not know.
    #[serde(other)]
    Other,
}

/// A program that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRecorded {
    /// Its path or name, or that of its area file.
    pub program: String,
    /// Its process id, if known.
    pub pid: Option<u32>,
    /// The reason.
    pub reason: NotRecordedReason,
    /// One sentence: the cause, and what to do.
    pub detail: String,
    /// Number of programs of this name with this reason.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

impl NotRecorded {
    /// Its name, with its process id or the number of programs.
    fn named(&self) -> String {
        match (self.count, self.pid) {
            (1, Some(pid)) => format!("{} ({pid})", self.program),
            (0 | 1, _) => self.program.clone(),
            (count, _) => format!("{} ({count} times)", self.program),
        }
    }
}

impl Report {
    /// Programs that were not recorded, grouped by detail: at most `most` of their
    /// names, and the detail.
    #[must_use]
    pub fn not_recorded_by_detail(&self, most: usize) -> Vec<(String, &str)> {
        let mut groups: Vec<(&str, Vec<&NotRecorded>)> = Vec::new();
        for one in &self.not_recorded {
            match groups.iter_mut().find(|(detail, _)| *detail == one.detail) {
                Some((_, group)) => group.push(one),
                None => groups.push((&one.detail, vec![one])),
            }
        }
        let names = |(detail, group): (_, Vec<&NotRecorded>)| {
            let mut names: Vec<String> = group.iter().take(most).map(|one| one.named()).collect();
            if let Some(more) = group.len().checked_sub(most).filter(|more| *more > 0) {
                names.push(format!("{more} more"));
            }
            (names.join(", "), detail)
        };
        groups.into_iter().map(names).collect()
    }
}

/// When an event started and stopped the events of an area.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switched {
    /// Id of the area.
    pub area_id: String,
    /// Time of the start, UTC nanoseconds since 1970; `None` if it was not started.
    pub started_ns: Option<i64>,
    /// Time of the stop; likewise.
    pub stopped_ns: Option<i64>,
}

/// Periodic writes of open packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flushes {
    /// Time between two flushes.
    pub period_ns: u64,
    /// Number of flushes.
    pub count: u64,
    /// Total duration, on the recorder's CPU: the program does not wait for them.
    pub total_ns: u64,
    /// Duration of the longest one.
    pub longest_ns: u64,
    /// Number of events of schemas that they wrote.
    pub events: u64,
}

/// A live recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Live {
    /// Address it listened on; `None` for a pipe.
    pub address: Option<String>,
    /// Of its certificate, if it encrypted: SHA-256 in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Bytes of packets that clients could lag.
    pub window_bytes: u64,
    /// Number of rejected connections.
    pub refused: u64,
    /// Clients, at most 1000, in the order of their disconnection.
    pub clients: Vec<LiveClient>,
}

/// A client of a live recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveClient {
    /// Its address; `pipe` for one.
    pub peer: String,
    /// Whether it was connected when the recording ended.
    pub stayed: bool,
    /// Packets handed to its connection.
    pub sent: LiveCount,
    /// Packets dropped because it lagged; for one that stayed, written = already present + sent + dropped.
    pub dropped: LiveCount,
    /// The dropped packets by stream file.
    pub dropped_of: Vec<LiveStreamCount>,
}

/// Counts for a part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCount {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of events of schemas in them; `None` if unknown.
    pub events: Option<u64>,
}

/// Counts for a stream file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStreamCount {
    /// Path of the file relative to the recording's directory.
    pub file: String,
    /// The counts.
    #[serde(flatten)]
    pub count: LiveCount,
}

/// A recording that was received from a live one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Received {
    /// Address of the server.
    pub from: String,
    /// Number of connections.
    pub connections: u64,
    /// Packets dropped by the server, by stream file. The totals do not include them.
    pub dropped_of: Vec<LiveStreamCount>,
    /// How the clock of the other machine relates to this one's.
    pub clock: Option<ReceivedClock>,
    /// Simultaneous readings of its counter and this machine's; `None` for a pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
}

/// UTC of the recording machine relative to UTC here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedClock {
    /// Theirs minus ours, nanoseconds.
    pub offset_ns: i64,
    /// Error bound, nanoseconds.
    pub error_ns: u64,
}

/// Byte order of the stream files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// One stream class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamClass {
    /// `stream_id` of its packets.
    pub id: u32,
    /// `per-cpu` or `per-thread`.
    pub ring_kind: String,
    /// Its schemas, without the internal one.
    pub schemas: Vec<ClassSchema>,
}

/// A schema of a stream class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassSchema {
    /// Id of its first event.
    pub base_id: u32,
    /// Its canonical text.
    pub text: String,
}

/// Origin of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Recorded live.
    Recorded,
    /// The contents of rings at one time.
    Snapshot,
    /// Made from the remains of a crash.
    Recovered,
}

/// The launched command and its exit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its words.
    pub arguments: Vec<String>,
    /// Exit status as in a shell: 128 + signal if a signal ended it. `None` while it is running.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A traced process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid where the recorder ran; from 1,000,000,000 on an id that the recorder assigned to a
    /// process of another PID namespace that had ended before it was searched for.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// Its pid in its own PID namespace, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_in_namespace: Option<u32>,
    /// The area it writes to, hexadecimal.
    pub area_id: String,
    /// Path of its program.
    pub exe: String,
    /// Name of its first thread.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Build id of its program, hexadecimal, if it has one that could be read.
    pub build_id: Option<String>,
    /// First seen, UTC nanoseconds since 1970.
    pub seen_ns: i64,
    /// Time by which it had ended, UTC nanoseconds since 1970.
    pub ended_ns: Option<i64>,
}

/// Conversion of ticks to UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `x86-tsc`, `aarch64-cntvct` or `monotonic-ns`.
    pub kind: String,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Source of the frequency.
    pub frequency_source: FrequencySource,
    /// UTC of tick 0, seconds since 1970.
    pub offset_s: i64,
    /// Additional ticks.
    pub offset_ticks: u64,
    /// Error bound against the system's UTC.
    pub error_ns: u64,
    /// Measured at the start.
    pub start: Option<ClockSample>,
    /// Measured at the end.
    pub end: Option<ClockSample>,
    /// Counters of cores relative to that of the first, at the start; empty if they could not be
    /// compared. For a machine without an operating system, from the exchanges recorded by its program; those
    /// times are already corrected by them.
    #[serde(default)]
    pub cores: Vec<CoreOffset>,
}

/// Lost events by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Losses {
    /// No free packet.
    pub full: u64,
    /// Record longer than a packet.
    pub too_big: u64,
    /// Gave up after 1000 restarts.
    pub contended: u64,
    /// No ring: nested too deep, or more threads than rings.
    pub no_ring: u64,
    /// Sum of all causes.
    pub total: u64,
}

impl From<LossCounts> for Losses {
    fn from(counts: LossCounts) -> Losses {
        Losses {
            full: counts.full,
            too_big: counts.too_big,
            contended: counts.contended,
            no_ring: counts.no_ring,
            total: counts.total(),
        }
    }
}

/// Losses between two packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossInterval {
    /// Start, UTC nanoseconds since 1970.
    pub from_ns: i64,
    /// End, likewise.
    pub to_ns: i64,
    /// Number of lost events.
    pub lost: Losses,
}

/// Damaged records of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Number of the packet in its stream file.
    pub packet_sequence: u64,
    /// Bytes left out.
    pub dropped_bytes: u64,
    /// The reason.
    pub reason: String,
}

/// One ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Paths relative to the recording's directory, in order of time; usually one.
    pub files: Vec<String>,
    /// Id of the area, hexadecimal.
    pub area_id: String,
    /// Number of the ring in the area.
    pub ring: u32,
    /// Number of the CPU, for per-CPU rings.
    pub cpu: Option<u32>,
    /// Packets written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events of schemas written.
    pub events: u64,
    /// Internal events written (writers, processes, names, marks).
    pub internal_events: u64,
    /// Lost events by cause.
    pub lost: Losses,
    /// Loss intervals; at most 1000, the last includes all later ones.
    pub intervals: Vec<LossInterval>,
    /// Packets overwritten before they were read; the number of their events is unknown.
    pub lost_packets: u64,
    /// Events read from the ring that could not be written to the file.
    pub not_written: u64,
    /// Packets with damage.
    pub damaged_packets: u64,
    /// At most 100 of them.
    pub damages: Vec<Damage>,
    /// Packets that began before the end of the previous one, or after they were read.
    pub backward_steps: u64,
    /// Events could not be counted, because a schema of the area does not compile. The packets are
    /// kept under `unreadable/`.
    pub unreadable: bool,
}

/// One area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// Its id, hexadecimal.
    pub area_id: String,
    /// Rings: `per-cpu` or `per-thread`.
    pub ring_kind: String,
    /// Mode at the end: `discard` or `overwrite`.
    pub mode: String,
    /// Bytes of a packet.
    pub packet_bytes: u64,
    /// Packets of a ring.
    pub packets_per_ring: u64,
    /// Events without a ring. They are part of the first stream's `no_ring`.
    pub lost_no_ring: u64,
    /// Schemas and processes that could not be registered.
    pub lost_schemas: u64,
    /// Names of its schemas.
    pub schemas: Vec<String>,
    /// Filters applied to its events, `EVENT: CONDITION`. Events rejected by a filter in the program are
    /// not counted.
    #[serde(default)]
    pub filters: Vec<String>,
    /// Recorded events that were dropped when they were read: by a filter that was not in the
    /// program yet, or of threads that no policy selects.
    #[serde(default)]
    pub left_out: u64,
    /// Those of them from threads of which a policy does not select all events.
    #[serde(default)]
    pub left_out_of_threads: u64,
    /// Events of its schemas that were always disabled.
    #[serde(default)]
    pub disabled: Vec<String>,
    /// Events that were disabled for part of the time.
    #[serde(default)]
    pub disabled_in_part: Vec<String>,
    /// The separate recording with its events, if its policy has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A separate recording for programs matched by policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyOutput {
    /// Its folder.
    pub path: String,
    /// Whether all of its events were written to it.
    pub complete: bool,
    /// Its sums, including losses.
    pub totals: Totals,
}

/// A source of events besides traced programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `kernel`, or the kind of another source.
    pub name: String,
    /// `area_id` of its streams, hexadecimal.
    pub area_id: String,
    /// Names of its schemas.
    pub schemas: Vec<String>,
    /// Facts about it, by name.
    pub details: BTreeMap<String, String>,
    /// Number of lost events, by the source's names of the causes. They are included in
    /// the losses of its streams.
    pub lost: BTreeMap<String, u64>,
}

/// Sums over the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Events of schemas in the trace.
    pub events: u64,
    /// Internal events in the trace.
    pub internal_events: u64,
    /// Packets in the trace.
    pub packets: u64,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// Lost events by cause.
    pub lost: Losses,
    /// Packets overwritten before they were read.
    pub lost_packets: u64,
    /// Events read but not written to a file.
    pub not_written: u64,
    /// Damaged packets.
    pub damaged_packets: u64,
}

/// Throughput of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Duration from start to end.
    pub elapsed_ns: u64,
    /// CPU time of the recorder itself.
    pub cpu_ns: u64,
    /// Peak memory of the recorder itself.
    pub peak_memory_bytes: u64,
    /// Events of schemas per second.
    pub events_per_s: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
}

impl Report {
    /// For a recording being received, before its own report has arrived.
    pub fn of_received(trace_uuid: String) -> Report {
        Report {
            report_version: REPORT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            origin: Origin::Recorded,
            trace_uuid,
            command: None,
            processes: Vec::new(),
            clock: None,
            streams: Vec::new(),
            areas: Vec::new(),
            sources: Vec::new(),
            totals: Totals::default(),
            events: BTreeMap::new(),
            problems: Vec::new(),
            throughput: Throughput::default(),
            stream_classes: Vec::new(),
            byte_order: ByteOrder::Little,
            live: None,
            received: None,
            kept: None,
            switched: Vec::new(),
            triggers: None,
            flushes: None,
            outputs: Vec::new(),
            unrecorded: Vec::new(),
            not_recorded: Vec::new(),
            not_recorded_total: 0,
            made_chunks: 0,
            removed_chunks: 0,
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Only maps with keys that are not text can fail to serialise; there are none.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Parses a file's text.
    pub fn from_json(text: &str) -> Result<Report, serde_json::Error> {
        serde_json::from_str(text)
    }
}
