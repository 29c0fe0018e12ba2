// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares a recording of Lateralis with the information left by its recorder: `report.json`, and the
//! index of its packets.
//!
//! ```text
//! report.json ─ packets, bytes, events of each file ─┐
//! index/FILE.idx ─ each packet ──────────────────────┼─► missing data: damage, losses, faults
//! stream files ─ packets found ──────────────────────┘
//! ```
//!
//! Neither is trusted: both can add damage and losses, but remove no event. A recording in progress, or
//! whose recorder was killed, has no final report; its index lists packets that were written before. A
//! trace without either is not compared.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use lateralis_ctf::index::{ENTRY_BYTES, Entry};
use lateralis_ctf::{Findings, Reader};
use lateralis_model::{Damage, DamageReason, Interval, Loss, LossCause, StreamIndex};
use lateralis_units::{Nanos, Ticks};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Supported version of `report.json`.
const REPORT_VERSION: u64 = 1;

/// Largest number of losses from one report: intervals times streams.
const LOSSES_MAX: usize = 100_000;

/// Largest number of items of a list in a report that are examined.
const ITEMS_MAX: usize = 200_000;

/// Largest number of unrecorded programs that are named.
const NOT_RECORDED_MAX: usize = 1000;

/// Largest number of remarks from one list of a report.
const SENTENCES_MAX: usize = 100;

/// The part of a report that is compared. Everything is optional: older versions have less.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Report {
    report_version: u64,
    complete: bool,
    trace_uuid: String,
    #[serde(deserialize_with = "bounded")]
    streams: Vec<ReportedStream>,
    totals: Totals,
    #[serde(deserialize_with = "bounded")]
    areas: Vec<Area>,
    #[serde(deserialize_with = "bounded")]
    problems: Vec<String>,
    #[serde(deserialize_with = "bounded")]
    unrecorded: Vec<Unrecorded>,
    #[serde(deserialize_with = "bounded")]
    switched: Vec<Switched>,
    #[serde(deserialize_with = "bounded")]
    not_recorded: Vec<NotRecorded>,
    not_recorded_total: u64,
    made_chunks: u64,
    removed_chunks: u64,
}

/// The list of windows in a folder, the part of `kept.json` that is compared.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Kept {
    #[serde(deserialize_with = "bounded")]
    windows: Vec<KeptWindow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeptWindow {
    name: String,
    events: u64,
    bytes: u64,
    removed: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedStream {
    area_id: String,
    #[serde(deserialize_with = "bounded")]
    files: Vec<String>,
    packets: u64,
    bytes: u64,
    events: u64,
    internal_events: u64,
    not_written: u64,
    unreadable: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Totals {
    not_written: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Area {
    lost_schemas: u64,
}

/// An interval in which nothing was recorded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unrecorded {
    cause: String,
    from_ns: i64,
    to_ns: Option<i64>,
    reason: Option<String>,
}

/// Times at which an event started and stopped the events of an area.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Switched {
    area_id: String,
    started_ns: Option<i64>,
    stopped_ns: Option<i64>,
}

/// A program that was not recorded at all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NotRecorded {
    program: String,
    pid: Option<u32>,
    detail: String,
    count: u64,
}

/// Reads the first [`ITEMS_MAX`] items of a list: a few bytes of text take many bytes of memory.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Items<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while items.len() < ITEMS_MAX {
                match list.next_element()? {
                    Some(item) => items.push(item),
                    None => return Ok(items),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(items)
        }
    }
    from.deserialize_seq(Items(PhantomData))
}

impl Report {
    /// Parses a report; the error is a sentence.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|cause| {
            format!("report.json is damaged ({cause}): what it says about losses is not known")
        })
    }
}

impl Kept {
    /// Parses a list; the error is a sentence.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|cause| {
            format!("kept.json is damaged ({cause}): whether windows are missing is not known")
        })
    }
}

/// Contents of the index of one stream file.
#[derive(Debug, Default, Clone, Copy)]
pub struct Indexed {
    /// Number of packets.
    pub packets: u64,
    /// Number of packets that end beyond the end of the file.
    beyond: u64,
    /// End of the last packet in the file.
    end_bytes: u64,
    /// The latest end of a packet beyond the end of the file.
    last: Option<Ticks>,
    /// Number of entries that contradict the headers of their packets.
    contradicts: u64,
}

/// A packet as its header describes it.
#[derive(Debug, Clone, Copy)]
struct Header {
    offset_bytes: u64,
    size_bytes: u64,
    begin: Option<Ticks>,
    end: Option<Ticks>,
}

/// A stream file of a trace.
#[derive(Debug)]
pub struct FileFacts {
    stream: Option<StreamIndex>,
    /// Size of the file in bytes.
    length: u64,
    packets: Vec<Header>,
}

/// The stream files of an opened trace, by name.
///
/// Cost: linear in the number of packets.
pub fn files_of(reader: &Reader) -> BTreeMap<String, FileFacts> {
    let mut of_number: Vec<FileFacts> = reader
        .files()
        .iter()
        .map(|file| FileFacts {
            stream: None,
            length: (*file.bytes).as_ref().len() as u64,
            packets: Vec::new(),
        })
        .collect();
    for (number, stream) in (0..).zip(reader.streams()) {
        for found in &stream.packets {
            let packet = &found.packet;
            let Some(file) = of_number.get_mut(packet.file as usize) else { continue };
            file.stream = Some(StreamIndex(number));
            file.packets.push(Header {
                offset_bytes: packet.offset_bytes,
                size_bytes: packet.size_bytes,
                begin: packet.begin,
                end: packet.end,
            });
        }
    }
    for file in &mut of_number {
        file.packets.sort_unstable_by_key(|packet| packet.offset_bytes);
    }
    reader.files().iter().map(|file| file.name.clone()).zip(of_number).collect()
}

impl FileFacts {
    /// The stream that its packets belong to; `None` if it has none.
    pub fn stream(&self) -> Option<StreamIndex> {
        self.stream
    }
}

impl Indexed {
    /// Adds an entry; `file` is its stream file, if that exists.
    pub fn add(&mut self, bytes: &[u8; ENTRY_BYTES], file: Option<&FileFacts>) {
        let entry = Entry::from_bytes(bytes);
        self.packets += 1;
        let size_bytes = entry.packet_bits / 8;
        let end = entry.offset_bytes.saturating_add(size_bytes);
        self.end_bytes = self.end_bytes.max(end);
        if end > file.map_or(0, |file| file.length) {
            self.beyond += 1;
            self.last = self.last.max(Some(Ticks(entry.timestamp_end)));
        }
        let packets = file.map_or(&[][..], |file| &file.packets);
        let place = packets.binary_search_by_key(&entry.offset_bytes, |packet| packet.offset_bytes);
        if let Ok(place) = place {
            let packet = &packets[place];
            let same = packet.size_bytes == size_bytes
                && packet.begin == Some(Ticks(entry.timestamp_begin))
                && packet.end == Some(Ticks(entry.timestamp_end));
            self.contradicts += u64::from(!same && end <= file.map_or(0, |file| file.length));
        }
    }
}

/// The index of a stream file, as far as it could be read.
#[derive(Debug)]
pub enum IndexFacts {
    /// It does not exist.
    Absent,
    /// It is not an index, or too long to be compared.
    Unreadable(String),
    /// Its contents.
    Read(Indexed),
}

/// A stream file that the report or the index names.
#[derive(Debug)]
pub struct Expected<'a> {
    /// Its path relative to the directory of the trace.
    pub name: &'a str,
    /// The file.
    pub file: Option<&'a FileFacts>,
    /// Its size after report and index were read: it may have grown since it was opened.
    pub length_now: u64,
    /// Its index.
    pub index: IndexFacts,
}

/// Comparison of a report and indexes with a trace, or a part of it.
pub struct Comparison<'a> {
    reader: &'a Reader,
    report: Option<&'a Report>,
    findings: Findings,
    /// Streams of the part of the trace that the report covers.
    streams: Vec<StreamIndex>,
    /// Its directory relative to that of the trace.
    prefix: PathBuf,
}

impl<'a> Comparison<'a> {
    /// A comparison with the report of a trace, if there is one and it belongs to this trace.
    pub fn new(reader: &'a Reader, report: Option<&'a Report>) -> Self {
        let mut findings = Findings::default();
        let uuid = reader.trace().uuid.map(|uuid| uuid.to_string());
        let report = report.filter(|report| {
            let is_known = report.report_version == REPORT_VERSION;
            let is_own = uuid.as_ref().is_none_or(|uuid| *uuid == report.trace_uuid);
            if !is_known {
                let version = report.report_version;
                findings.faults.push(format!(
                    "report.json has version {version}, {REPORT_VERSION} is understood: the recording \
                     is not compared with it"
                ));
            } else if !is_own {
                findings.remarks.push(
                    "report.json is of another trace (another UUID): the recording is not compared \
                     with it"
                        .to_owned(),
                );
            }
            is_known && is_own
        });
        Self { reader, report, findings, streams: Vec::new(), prefix: PathBuf::new() }
    }

    /// Compares the files of the trace, and those that only the index names.
    ///
    /// Cost: linear in streams; for a truncated file, a pass over its events.
    pub fn files(&mut self, expected: &[Expected<'_>], prefix: &Path) {
        prefix.clone_into(&mut self.prefix);
        let streams = expected.iter().filter_map(|one| one.file?.stream);
        self.streams = streams.collect();
        self.streams.sort_unstable();
        self.streams.dedup();
        let by_name: BTreeMap<&str, &Expected<'_>> =
            expected.iter().map(|one| (one.name, one)).collect();
        let mut reported: BTreeMap<&str, &ReportedStream> = BTreeMap::new();
        for stream in self.report.iter().flat_map(|report| &report.streams) {
            for file in &stream.files {
                if let Some(name) = file.strip_prefix("ctf/").filter(|_| !stream.unreadable) {
                    reported.insert(name, stream);
                }
            }
        }
        for one in expected {
            self.file(one, reported.get(one.name).copied());
        }
        let report = self.report;
        for stream in report.iter().flat_map(|report| &report.streams) {
            let names = stream.files.iter().filter_map(|file| file.strip_prefix("ctf/"));
            for name in names.filter(|name| !by_name.contains_key(name)) {
                let nothing =
                    Expected { name, file: None, length_now: 0, index: IndexFacts::Absent };
                self.file(&nothing, Some(stream));
            }
        }
    }

    fn file(&mut self, one: &Expected<'_>, reported: Option<&ReportedStream>) {
        // For a stream in several files only the sums are known; the index has the rest.
        let alone = reported.filter(|stream| stream.files.len() == 1);
        let length = one.file.map_or(0, |file| file.length).max(one.length_now);
        let found = one.file.map_or(0, |file| file.packets.len() as u64);
        let indexed = match &one.index {
            IndexFacts::Read(indexed) => *indexed,
            IndexFacts::Absent | IndexFacts::Unreadable(_) => Indexed::default(),
        };
        let end_bytes = alone.map_or(0, |stream| stream.bytes).max(indexed.end_bytes);
        if end_bytes > length {
            let packets = match alone {
                Some(stream) => Some(stream.packets.max(indexed.packets).saturating_sub(found)),
                None if indexed.packets > 0 => Some(indexed.packets.saturating_sub(found)),
                None => None,
            };
            let events = alone.and_then(|stream| {
                let written = stream.events.saturating_add(stream.internal_events);
                Some(written.saturating_sub(self.events_in(one)?))
            });
            if packets != Some(0) {
                self.missing(one, (length, end_bytes), packets, events, indexed.last);
            }
        } else if one.file.is_none() && reported.is_some() {
            self.missing(one, (0, 0), None, None, None);
        }
        if let Some(stream) = alone.filter(|stream| stream.bytes < length) {
            self.findings.remarks.push(format!(
                "{}: the file has {} bytes more than its recorder reported",
                one.name,
                length - stream.bytes
            ));
        }
        self.index(one, &indexed, found);
    }

    /// Name of a file in the reader.
    fn full_name(&self, name: &str) -> String {
        self.prefix.join(name).to_string_lossy().into_owned()
    }

    fn index(&mut self, one: &Expected<'_>, indexed: &Indexed, found: u64) {
        // During recording an index lags, or its last entry is incomplete; without a report it is unknown
        // whether there should be one.
        if !self.report.is_some_and(|report| report.complete) {
            return;
        }
        let mut fault = |sentence: String| {
            let events = "events are read without it, other readers may fail";
            self.findings.faults.push(format!("index/{}.idx: {sentence}: {events}", one.name));
        };
        match &one.index {
            IndexFacts::Unreadable(cause) => fault(cause.clone()),
            IndexFacts::Absent if found > 0 => {
                fault("the packet index is missing".to_owned());
            }
            IndexFacts::Read(_) if indexed.contradicts > 0 => {
                fault(format!("{} of its packets are others in the file", indexed.contradicts));
            }
            IndexFacts::Read(_) if indexed.packets < found => {
                let (named, found) = (indexed.packets, found);
                fault(format!("it has {named} packets, the file {found}"));
            }
            _ => {}
        }
    }

    /// Number of events in a file; `None` if damage hides some.
    fn events_in(&self, one: &Expected<'_>) -> Option<u64> {
        let Some(file) = one.file else { return Some(0) };
        let name = self.full_name(one.name);
        let hides = |damage: &Damage| {
            let is_cut = matches!(damage.reason, DamageReason::Truncated { .. });
            damage.file == name && !is_cut && damage.reason != DamageReason::OutOfOrder
        };
        if self.reader.damage().iter().any(hides) {
            return None;
        }
        let Some(stream) = file.stream else { return Some(0) };
        let of_name = |file: &lateralis_ctf::StreamFile| file.name == name;
        let number = self.reader.files().iter().position(of_name)? as u32;
        let mut cursor = self.reader.cursor(stream);
        let mut count = 0;
        while cursor.advance() {
            count += u64::from(cursor.event().packet.file == number);
        }
        Some(count)
    }

    fn missing(
        &mut self,
        one: &Expected<'_>,
        (begin_bytes, end_bytes): (u64, u64),
        packets: Option<u64>,
        events: Option<u64>,
        last: Option<Ticks>,
    ) {
        let class = one.file.and_then(|file| file.stream);
        let class = class.and_then(|stream| self.reader.streams().get(stream.0 as usize));
        // Streams of Lateralis have one clock.
        let class = class.map_or(0, |stream| stream.class);
        let nanos = |ticks: Option<Ticks>| self.reader.nanos(class, ticks?);
        let before = one.file.and_then(|file| file.packets.last());
        let begin = nanos(before.and_then(|packet| packet.end));
        let end = nanos(last).filter(|end| begin.is_none_or(|begin| begin <= *end));
        self.findings.damage.push(Damage {
            file: self.full_name(one.name),
            begin_bytes,
            end_bytes,
            reason: DamageReason::Missing { packets, events },
            interval: Interval { begin, end },
        });
    }

    /// Converts the report's unrecorded data into losses and remarks. `stream_of` returns the stream of a
    /// file.
    pub fn losses(&mut self, stream_of: &dyn Fn(&str) -> Option<StreamIndex>) {
        let Some(report) = self.report else { return };
        let span = self.reader.interval();
        // If the recorder still had room for it, packets contain the number of unwritten events.
        let mut in_packets: BTreeMap<StreamIndex, u64> = BTreeMap::new();
        for loss in self.reader.losses().iter().filter(|it| it.cause == LossCause::NotWritten) {
            let sum = in_packets.entry(loss.stream).or_insert(0);
            *sum = sum.saturating_add(loss.count.unwrap_or(0));
        }
        let ended = report.unrecorded.iter().find(|one| one.cause == "ended");
        let until = ended.and_then(|one| one.to_ns).map(Nanos).or(span.end);
        let mut not_written = 0u64;
        for stream in &report.streams {
            not_written = not_written.saturating_add(stream.not_written);
            let own = stream.files.iter().find_map(|file| stream_of(file.strip_prefix("ctf/")?));
            let known = own.and_then(|own| in_packets.get(&own)).copied().unwrap_or(0);
            let rest = stream.not_written.saturating_sub(known);
            let Some(stream) = own.or(self.streams.first().copied()) else { continue };
            if rest > 0 && self.findings.losses.len() < LOSSES_MAX {
                let summary = self.reader.streams().get(stream.0 as usize);
                let last = summary.and_then(|stream| {
                    let last = stream.packets.last()?;
                    self.reader.nanos(stream.class, last.packet.end?)
                });
                let interval = Interval { begin: last, end: until.max(last) }.ordered();
                self.findings.losses.push(Loss {
                    stream,
                    cause: LossCause::NotWritten,
                    count: Some(rest),
                    interval,
                });
            }
        }
        not_written = not_written.max(report.totals.not_written);
        for one in &report.unrecorded {
            let cause = match one.cause.as_str() {
                "stopped" => LossCause::Stopped,
                "ended" => LossCause::Ended,
                _ => LossCause::Discarded,
            };
            let (begin, end) = (Some(Nanos(one.from_ns)), one.to_ns.map(Nanos));
            let interval = Interval { begin, end }.ordered();
            for stream in &self.streams {
                if self.findings.losses.len() >= LOSSES_MAX {
                    break;
                }
                self.findings.losses.push(Loss { stream: *stream, cause, count: None, interval });
            }
        }
        self.switched(report, stream_of);
        if report.areas.iter().any(|area| area.lost_schemas > 0) {
            let losses = self.streams.iter().map(|stream| Loss {
                stream: *stream,
                cause: LossCause::NoPlace,
                count: None,
                interval: span,
            });
            self.findings.losses.extend(losses.take(LOSSES_MAX));
        }
        self.sentences(report, not_written);
    }

    /// Adds the events before `--start-on` and after `--stop-on`.
    fn switched(&mut self, report: &Report, stream_of: &dyn Fn(&str) -> Option<StreamIndex>) {
        let never = report.switched.iter().filter(|one| one.started_ns.is_none()).count();
        if never > 0 {
            let programs = match never {
                1 => "1 program".to_owned(),
                count => format!("{count} programs"),
            };
            self.findings.remarks.push(format!(
                "{programs} had no event that --start-on names: nothing of them was recorded"
            ));
        }
        for one in &report.switched {
            let before = Interval { begin: None, end: one.started_ns.map(Nanos) };
            let after = one.stopped_ns.map(|at| Interval { begin: Some(Nanos(at)), end: None });
            let streams = report.streams.iter().filter(|stream| stream.area_id == one.area_id);
            let file = |stream: &ReportedStream| {
                stream.files.iter().find_map(|file| stream_of(file.strip_prefix("ctf/")?))
            };
            let streams: Vec<StreamIndex> = streams.filter_map(file).collect();
            for interval in std::iter::once(before).chain(after) {
                let room = LOSSES_MAX.saturating_sub(self.findings.losses.len());
                let losses = streams.iter().take(room).map(|stream| Loss {
                    stream: *stream,
                    cause: LossCause::Stopped,
                    count: None,
                    interval,
                });
                self.findings.losses.extend(losses);
            }
        }
    }

    fn sentences(&mut self, report: &Report, not_written: u64) {
        let faults = &mut self.findings.faults;
        let events = |count: u64| match count {
            1 => "1 event".to_owned(),
            count => format!("{count} events"),
        };
        let ended = report.unrecorded.iter().find(|one| one.cause == "ended");
        let because = |reason: Option<&String>| {
            reason.or(report.problems.first()).map_or(String::new(), |it| format!(": {it}"))
        };
        if let Some(one) = ended {
            let went_on = match one.to_ns {
                Some(to) => {
                    let seconds = to.saturating_sub(one.from_ns).max(0) as f64 / 1e9;
                    format!("the programs went on for {seconds:.3} s")
                }
                None => "the programs went on".to_owned(),
            };
            let lost = match not_written {
                0 => String::new(),
                count => format!(", {} could not be written", events(count)),
            };
            let because = because(one.reason.as_ref());
            faults.push(format!(
                "the recording ended early, {went_on} without being recorded{lost}{because}"
            ));
        } else if not_written > 0 {
            let (count, because) = (events(not_written), because(None));
            faults.push(format!("{count} could not be written{because}"));
        }
        add_not_recorded(faults, report);
        if report.areas.iter().any(|area| area.lost_schemas > 0) {
            let tables = "some schemas, processes or format strings found no place in the tables of \
                          their program: events are missing, see report.json";
            self.findings.remarks.push(tables.to_owned());
        }
    }

    /// A stream file with packets without a meaning, under `unreadable/`: its length, if it exists.
    pub fn unreadable(&mut self, length_of: &dyn Fn(&str) -> Option<u64>) {
        let streams = self.report.iter().flat_map(|report| &report.streams);
        for stream in streams.filter(|stream| stream.files.len() == 1) {
            let Some(name) = stream.files[0].strip_prefix("unreadable/") else { continue };
            let length = length_of(name).unwrap_or(0);
            if length < stream.bytes {
                self.findings.damage.push(Damage {
                    file: format!("unreadable/{name}"),
                    begin_bytes: length,
                    end_bytes: stream.bytes,
                    reason: DamageReason::Missing { packets: None, events: None },
                    interval: Interval::default(),
                });
            }
        }
    }

    /// Adds a reason why the trace is incomplete.
    pub fn fault(&mut self, sentence: String) {
        self.findings.faults.push(sentence);
    }

    /// All findings.
    pub fn finish(self) -> Findings {
        self.findings
    }
}

/// A recording that a folder should contain, but does not.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingRecording {
    /// Its folder.
    pub name: String,
    /// Bytes of its stream files; 0 if unknown.
    pub bytes: u64,
    /// Events in it; `None` if unknown.
    pub events: Option<u64>,
}

/// Compares a folder of recordings with its own report and list: what is missing, with at most
/// [`SENTENCES_MAX`] recordings. `is_there` checks whether one exists.
pub fn folder(
    report: Option<&Report>,
    kept: Option<&Kept>,
    is_there: &dyn Fn(&str) -> bool,
) -> (Findings, Vec<MissingRecording>) {
    let mut findings = Findings::default();
    let mut missing = Vec::new();
    if let Some(report) = report.filter(|report| report.report_version == REPORT_VERSION) {
        add_not_recorded(&mut findings.faults, report);
        let (made, removed) = (report.made_chunks, report.removed_chunks);
        if removed > 0 {
            let sentence =
                format!("{removed} of {made} pieces were removed, the oldest: --keep-chunks");
            findings.remarks.push(sentence);
        }
        for number in removed.saturating_add(1)..=made {
            let name = format!("chunk-{number:06}");
            if missing.len() >= SENTENCES_MAX {
                break;
            }
            if !is_there(&name) {
                missing.push(MissingRecording { name, bytes: 0, events: None });
            }
        }
    }
    let windows = kept.iter().flat_map(|kept| &kept.windows).filter(|window| !window.removed);
    for window in windows.filter(|window| !is_there(&window.name)).take(SENTENCES_MAX) {
        let (name, events) = (window.name.clone(), Some(window.events));
        missing.push(MissingRecording { name, bytes: window.bytes, events });
    }
    (findings, missing)
}

/// Adds a remark for each reason for which programs were not recorded, with some of their names.
fn add_not_recorded(faults: &mut Vec<String>, report: &Report) {
    const NAMES: usize = 10;
    let mut of_detail: BTreeMap<&str, Vec<&NotRecorded>> = BTreeMap::new();
    for one in report.not_recorded.iter().take(NOT_RECORDED_MAX) {
        of_detail.entry(&one.detail).or_default().push(one);
    }
    for (detail, programs) in of_detail.iter().take(SENTENCES_MAX) {
        let named = |one: &&NotRecorded| match (one.count, one.pid) {
            (0 | 1, Some(pid)) => format!("{} (pid {pid})", one.program),
            (0 | 1, None) => one.program.clone(),
            (count, _) => format!("{} ({count} times)", one.program),
        };
        let mut names: Vec<String> = programs.iter().take(NAMES).map(named).collect();
        if programs.len() > NAMES {
            names.push(format!("{} more", programs.len() - NAMES));
        }
        faults.push(format!("not recorded: {}: {detail}", names.join(", ")));
    }
    let listed =
        report.not_recorded.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count.max(1)));
    let more = report.not_recorded_total.saturating_sub(listed);
    if more > 0 {
        faults.push(format!("not recorded: {more} more programs, which report.json does not name"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_a_report_are_bounded_and_what_is_unknown_is_passed_over() {
        let many = "{},".repeat(ITEMS_MAX + 1);
        let text = format!(
            "{{\"streams\":[{}],\"other\":[1,{{}}],\"report_version\":1}}",
            many.trim_end_matches(',')
        );
        let report = Report::read(text.as_bytes()).unwrap();
        assert_eq!((report.streams.len(), report.report_version), (ITEMS_MAX, 1));
        for damaged in ["", "{", "7", "{\"streams\":{}}", "{\"complete\":7}"] {
            let sentence = Report::read(damaged.as_bytes()).unwrap_err();
            assert!(sentence.starts_with("report.json is damaged"), "{damaged}: {sentence}");
        }
    }

    #[test]
    fn of_a_folder_the_pieces_that_are_gone_are_known_by_its_report_or_list() {
        let report = Report {
            report_version: REPORT_VERSION,
            made_chunks: 5,
            removed_chunks: 2,
            ..Report::default()
        };
        let is_there = |name: &str| name != "chunk-000004" && name != "spike-0002";
        let (findings, missing) = folder(Some(&report), None, &is_there);
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].name, "chunk-000004");
        assert!(findings.remarks[0].starts_with("2 of 5 pieces were removed"));
        let kept = br#"{"windows":[{"name":"spike-0001","events":1},
            {"name":"spike-0002","events":7,"bytes":9},{"name":"spike-0002","removed":true}]}"#;
        let (_, missing) = folder(None, Some(&Kept::read(kept).unwrap()), &is_there);
        let expected =
            MissingRecording { name: "spike-0002".to_owned(), bytes: 9, events: Some(7) };
        assert_eq!(missing, [expected]);
        // A report may contain any number.
        let report = Report { made_chunks: u64::MAX, removed_chunks: 0, ..report };
        assert_eq!(folder(Some(&report), None, &|_| false).1.len(), SENTENCES_MAX);
    }
}
