// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace in memory: metadata, files, and the index of their packets.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use lateralis_model::{
    Clock, ColumnBatch, ColumnRequest, Damage, DamageReason, Event, Events, Interval, Look, Loss,
    Names, Packet, PartSummary, Repeated, RingPlace, Seen, Source, StreamIndex, StreamSummary,
    Trace, Wanted, progress,
};
use lateralis_units::{Nanos, Ticks};

use crate::chunks;
use crate::columns::{self, Batches, Parallel, Spare, Unit};
use crate::cursor::Cursor;
use crate::losses::{self, Before};
use crate::merge::Merge;
use crate::metadata::{self, Diagnostic, TraceClass};
use crate::order;
use crate::packets::{Found, Scanner};
use crate::plan::{self, Plan};
use crate::wraps;

/// A stream file: its name for messages, and its bytes, mapped or read.
pub struct StreamFile {
    /// Name relative to the trace.
    pub name: String,
    /// Content.
    pub bytes: Box<dyn Bytes>,
}

/// Content of a file.
pub trait Bytes: AsRef<[u8]> + Send + Sync {
    /// These have been read and may leave memory; reading them again brings them back.
    fn release(&self, range: Range<usize>) {
        let _ = range;
    }

    /// Copies the bytes from `offset` on, if that is cheaper than accessing them in place; returns
    /// the number of bytes of `into` that are filled. 0: access them in place.
    fn copy_from(&self, offset: u64, into: &mut [u8]) -> usize {
        let _ = (offset, into);
        0
    }
}

impl Bytes for Vec<u8> {}
impl Bytes for &'static [u8] {}

/// Traces up to this size stay in memory once read: who reads them again finds them there.
const KEPT_BYTES: u64 = 1 << 30;

fn is_large(files: &[StreamFile]) -> bool {
    files.iter().map(|file| (*file.bytes).as_ref().len() as u64).sum::<u64>() > KEPT_BYTES
}

/// One stream: packets in the order of time, perhaps from several files.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Index into the stream classes of the model.
    pub class: u32,
    /// Its number among the streams of that class, if the trace contains it.
    pub id: Option<u64>,
    /// Name of its first file.
    pub name: String,
    /// Its packets.
    pub packets: Vec<Found>,
    /// Of packets whose predecessor was dropped, by number: what was before.
    pub befores: BTreeMap<usize, Before>,
}

/// What other files than those of a trace say about it: the report of its recorder, the index of
/// its packets.
#[derive(Debug, Default)]
pub struct Findings {
    /// Events that were not recorded.
    pub losses: Vec<Loss>,
    /// Packets that are missing.
    pub damage: Vec<Damage>,
    /// Sentences on why the trace is incomplete.
    pub faults: Vec<String>,
    /// Everything else worth a sentence.
    pub remarks: Vec<String>,
}

/// A trace, ready to be read.
pub struct Reader {
    class: TraceClass,
    model: Trace,
    plan: Plan,
    files: Vec<StreamFile>,
    streams: Vec<Stream>,
    damage: Vec<Damage>,
    losses: Vec<Loss>,
    /// What is known from beside the trace.
    findings: Findings,
    diagnostics: Vec<Diagnostic>,
    names: Names,
    /// Pieces that can be read alone, computed on the first request.
    units: OnceLock<Vec<Unit>>,
    /// Memory of batches that are read no more.
    spare: Spare,
    is_large: bool,
}

/// The message about a packet that is after a later one.
fn disorder(found: &Found, clock: Option<&Clock>, files: &[StreamFile]) -> Damage {
    let Packet { file, offset_bytes, size_bytes, begin, end, .. } = found.packet;
    let nanos = |ticks: Option<Ticks>| Some(clock?.nanos(ticks?));
    Damage {
        file: files[file as usize].name.clone(),
        begin_bytes: offset_bytes,
        end_bytes: offset_bytes + size_bytes,
        reason: DamageReason::OutOfOrder,
        interval: Interval { begin: nanos(begin), end: nanos(end) }.ordered(),
    }
}

/// The order of streams, in which events of the same time are delivered: by class and id, then by CPU, begin
/// and number of their first packets, then by the bytes of these. Names of files do not matter unless first
/// packets are equal.
fn compare(a: &Stream, b: &Stream, files: &[StreamFile]) -> Ordering {
    let key = |stream: &Stream| {
        let first = stream.packets.first().map(|found| &found.packet);
        let of = |first: &Packet| (first.cpu, first.begin, first.sequence);
        (stream.class, stream.id, first.map(of))
    };
    let bytes = |stream: &Stream| {
        let first = &stream.packets.first()?.packet;
        let bytes = (*files.get(first.file as usize)?.bytes).as_ref();
        let from = usize::try_from(first.offset_bytes).ok()?;
        let until = from.saturating_add(usize::try_from(first.size_bytes).ok()?).min(bytes.len());
        bytes.get(from..until)
    };
    key(a).cmp(&key(b)).then_with(|| bytes(a).cmp(&bytes(b))).then_with(|| a.name.cmp(&b.name))
}

impl Reader {
    /// Reads the metadata and the headers of all packets. Nothing is refused:
    /// faults of the metadata are in [`Reader::diagnostics`], bytes that are no
    /// packet in [`Reader::damage`].
    ///
    /// Cost: linear in metadata and number of packets, not in events.
    #[must_use]
    pub fn new(metadata: &[u8], files: Vec<StreamFile>) -> Self {
        Self::read(metadata, files, None)
    }

    /// Variant for packets that begin at or after a byte of their file, by its name, while the
    /// files grow: an incomplete packet at the end is omitted, and is not damage.
    #[must_use]
    pub fn behind(metadata: &[u8], files: Vec<StreamFile>, marks: &BTreeMap<String, u64>) -> Self {
        Self::read(metadata, files, Some(marks))
    }

    fn read(
        metadata: &[u8],
        files: Vec<StreamFile>,
        marks: Option<&BTreeMap<String, u64>>,
    ) -> Self {
        let (mut class, mut diagnostics) = metadata::parse(metadata);
        let plan = plan::compile(&class, &mut diagnostics);
        let mut model = metadata::describe(&mut class);
        let names = metadata::names(&mut model.environment);
        let mut damage = Vec::new();
        let mut groups: BTreeMap<(u32, Option<u64>, u32), Vec<Vec<Found>>> = BTreeMap::new();
        let mut scanner = Scanner::new(&class, &model, &plan);
        let is_large = is_large(&files);
        for (index, file) in files.iter().enumerate() {
            let index = index as u32;
            let bytes = (*file.bytes).as_ref();
            let from = marks.and_then(|marks| marks.get(&file.name)).copied().unwrap_or(0);
            let mut scan = scanner.scan(index, file, from);
            if marks.is_some() {
                scan.leave_unfinished(bytes.len() as u64);
            }
            damage.append(&mut scan.damage);
            if is_large {
                // The kernel maps the pages around each packet's first along with it.
                file.bytes.release(0..(*file.bytes).as_ref().len());
            }
            if let (Some(found), Some(expected)) = (scan.foreign, class.uuid) {
                let name = &file.name;
                let message = format!("{name}: packets carry the UUID {found}, not {expected}");
                diagnostics.push(Diagnostic::new(0, 0, message));
            }
            // Without an id, streams are as many as files.
            let key = |found: &Found| {
                let file = if found.stream_id.is_some() { 0 } else { index };
                (found.class, found.stream_id, file)
            };
            let mut of_file: BTreeMap<(u32, Option<u64>, u32), Vec<Found>> = BTreeMap::new();
            match scan.packets.first().map(key) {
                Some(first) if scan.packets.iter().all(|found| key(found) == first) => {
                    of_file.insert(first, scan.packets);
                }
                _ => scan
                    .packets
                    .into_iter()
                    .for_each(|found| of_file.entry(key(&found)).or_default().push(found)),
            }
            for (key, packets) in of_file {
                groups.entry(key).or_default().push(packets);
            }
        }
        let mut streams: Vec<Stream> = groups
            .into_iter()
            .map(|((class, id, _), parts)| {
                let mut packets = chunks::join(parts, &files);
                let name = files[packets[0].packet.file as usize].name.clone();
                let clock = model.stream_classes.get(class as usize).and_then(|class| class.clock);
                let clock = clock.and_then(|clock| model.clocks.get(clock));
                order::put_in_order(&mut packets, |found| {
                    damage.push(disorder(found, clock, &files));
                });
                Stream { class, id, name, packets, befores: BTreeMap::new() }
            })
            .collect();
        streams.sort_by(|a, b| compare(a, b, &files));
        let losses = Vec::new();
        let mut reader = Self {
            class,
            model,
            plan,
            files,
            streams,
            damage,
            losses,
            findings: Findings::default(),
            diagnostics,
            names,
            units: OnceLock::new(),
            spare: Spare::default(),
            is_large,
        };
        reader.count_losses();
        if marks.is_none() {
            reader.findings.remarks = wraps::doubtful(&reader);
        }
        reader
    }

    fn count_losses(&mut self) {
        let mut losses = Vec::new();
        let lateralis = self.class.is_lateralis();
        for (index, stream) in self.streams.iter().enumerate() {
            let index = StreamIndex(index as u32);
            let nanos = |ticks: Option<Ticks>| self.nanos(stream.class, ticks?);
            let (packets, befores) = (&stream.packets, &stream.befores);
            losses::count(index, packets, befores, lateralis, &nanos, &mut losses);
        }
        losses.extend(self.findings.losses.iter().cloned());
        self.losses = losses;
    }

    /// Adds what was found out about the trace from other files than its own. Times are on its
    /// time line.
    pub fn add_findings(&mut self, findings: Findings) {
        self.damage.extend(findings.damage);
        self.findings.losses.extend(findings.losses);
        self.findings.faults.extend(findings.faults);
        self.findings.remarks.extend(findings.remarks);
        self.count_losses();
    }

    /// Ticks of a stream class on the time line, if it has a clock.
    #[must_use]
    pub fn nanos(&self, stream_class: u32, ticks: Ticks) -> Option<Nanos> {
        let class = self.model.stream_classes.get(stream_class as usize)?;
        Some(self.model.clocks.get(class.clock?)?.nanos(ticks))
    }

    /// What can happen in the trace.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.model
    }

    /// The metadata with its layouts, but for the event classes, which are given up
    /// once they are compiled.
    #[must_use]
    pub fn trace_class(&self) -> &TraceClass {
        &self.class
    }

    /// Faults of the metadata.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Bytes that are no packet, or of a packet that is damaged as a whole.
    /// Damage inside packets is found while reading events
    /// ([`Merge::damage`]).
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Whether something outside the packets that could be read may be missing
    /// at the end of a stream.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.damage.iter().any(|d| matches!(d.reason, DamageReason::Truncated { .. }))
    }

    /// Losses that the producer counted.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The streams, in the order in which their events of the same time are delivered.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[StreamFile] {
        &self.files
    }

    /// First and last time that packets claim to cover; exact times need the events.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let mut interval = Interval::default();
        for stream in &self.streams {
            let nanos = |ticks: Option<Ticks>| self.nanos(stream.class, ticks?);
            for found in &stream.packets {
                if let Some(begin) = nanos(found.packet.begin) {
                    interval.begin = Some(interval.begin.map_or(begin, |first| first.min(begin)));
                }
                if let Some(end) = nanos(found.packet.end) {
                    interval.end = Some(interval.end.map_or(end, |last| last.max(end)));
                }
            }
        }
        interval
    }

    /// All events of one stream, in its order.
    #[must_use]
    pub fn cursor(&self, stream: StreamIndex) -> Cursor<'_> {
        Cursor::new(self, stream)
    }

    /// All events of all streams in the order of time.
    #[must_use]
    pub fn events(&self) -> Merge<'_> {
        Merge::new(self, Interval::default())
    }

    /// The events of an interval, both ends included, in the order of time.
    ///
    /// Cost: packets that end before it or begin after it are not read.
    #[must_use]
    pub fn events_in(&self, interval: Interval) -> Merge<'_> {
        Merge::new(self, interval)
    }

    /// All events as columns, stream after stream. The fastest way to read all events.
    #[must_use]
    pub fn batches<'w>(&self, wanted: &'w Wanted) -> Batches<'_, 'w> {
        Batches::new(self, wanted)
    }

    /// Variant with a given number of threads.
    #[must_use]
    pub fn parallel<'w>(&self, wanted: &'w Wanted, threads: NonZeroUsize) -> Parallel<'_, 'w> {
        Parallel::new(self, wanted, threads)
    }

    /// Some packets have been read. Of large traces, what is mapped would otherwise count as
    /// memory of this process until the kernel needs it.
    pub(crate) fn release(&self, unit: &Unit) {
        let Some(stream) = self.streams.get(unit.stream.0 as usize) else { return };
        let packets = stream.packets.get(unit.packets.clone()).unwrap_or(&[]);
        if self.is_large {
            // Packets of a unit are consecutive, except those of rotated files.
            for run in packets.chunk_by(|a, b| a.packet.file == b.packet.file) {
                // In a reordered stream the first may be after the last.
                let begin = run.iter().map(|found| found.packet.offset_bytes).min().unwrap_or(0);
                let end =
                    run.iter().map(|found| found.packet.offset_bytes + found.packet.size_bytes);
                let end = end.max().unwrap_or(begin);
                self.release_bytes(run[0].packet.file, begin..end);
            }
        }
    }

    /// Some bytes of a file have been read.
    pub(crate) fn release_bytes(&self, file: u32, range: Range<u64>) {
        progress::pass(range.end.saturating_sub(range.start));
        if let Some(file) = self.files.get(file as usize).filter(|_| self.is_large) {
            file.bytes.release(range.start as usize..range.end as usize);
        }
    }

    /// The pieces that can be read alone, in the order of the streams.
    pub(crate) fn units(&self) -> &[Unit] {
        self.units.get_or_init(|| columns::parts_of(self))
    }

    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Source for Reader {
    fn format(&self) -> &str {
        if self.class.major_version == 2 { "CTF 2" } else { "CTF 1.8" }
    }

    fn trace(&self) -> &Trace {
        &self.model
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let summary = |stream: &Stream| StreamSummary {
            class: stream.class,
            name: stream.name.clone(),
            packets: stream.packets.len() as u64,
            bytes: stream.packets.iter().map(|found| found.packet.size_bytes).sum(),
            cpu: stream.packets.first().and_then(|found| found.packet.cpu),
        };
        self.streams.iter().map(summary).collect()
    }

    fn interval(&self) -> Interval {
        Reader::interval(self)
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn faults(&self) -> Vec<String> {
        let metadata = self.diagnostics.iter().map(|fault| format!("metadata: {fault}"));
        metadata.chain(self.findings.faults.iter().cloned()).collect()
    }

    fn remarks(&self) -> Vec<String> {
        // Where it is known that the file had packets, that is damage.
        let is_damaged = |file: &&StreamFile| self.damage.iter().any(|it| it.file == file.name);
        let empty = self.files.iter().filter(|file| (*file.bytes).as_ref().is_empty());
        let empty = empty.filter(|file| !is_damaged(file));
        let empty = empty.map(|file| format!("{}: the stream file is empty", file.name));
        empty.chain(self.findings.remarks.iter().cloned()).collect()
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn set_clock(&mut self, index: usize, clock: &Clock) -> bool {
        let Some(own) = self.model.clocks.get_mut(index) else { return false };
        let before = std::mem::replace(own, clock.clone());
        let retimed = |time: Nanos| clock.nanos(before.ticks(time));
        // Which clock the time of a damaged place is by is known where there is only one.
        if self.model.clocks.len() == 1 {
            for damage in &mut self.damage {
                let Interval { begin, end } = damage.interval;
                damage.interval = Interval { begin: begin.map(retimed), end: end.map(retimed) };
            }
            for loss in &mut self.findings.losses {
                let Interval { begin, end } = loss.interval;
                loss.interval = Interval { begin: begin.map(retimed), end: end.map(retimed) };
            }
        }
        self.units = OnceLock::new();
        self.count_losses();
        true
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        Box::new(Reader::events_in(self, interval))
    }

    fn survey(
        &self,
        look: &dyn Fn(u32, u32) -> Look,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Vec<Damage> {
        crate::columns::survey(self, look, see)
    }

    fn has_columns(&self) -> bool {
        true
    }

    fn parts(&self) -> Vec<PartSummary> {
        columns::parts(self)
    }

    fn packets(
        &self,
        see: &mut dyn FnMut(StreamIndex, u64, &Packet, Interval) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (index, stream) in (0..).zip(&self.streams) {
            let nanos = |ticks: Option<Ticks>| self.nanos(stream.class, ticks?);
            for (number, found) in (0..).zip(&stream.packets) {
                let packet = &found.packet;
                let interval = Interval { begin: nanos(packet.begin), end: nanos(packet.end) };
                see(StreamIndex(index), number, packet, interval)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn columns(
        &self,
        request: &ColumnRequest<'_>,
        see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
    ) -> Vec<Damage> {
        columns::columns(self, request, see)
    }

    fn ring_places(&self, see: &mut dyn FnMut(StreamIndex, u64, &RingPlace)) {
        for (index, stream) in (0..).zip(&self.streams) {
            for (number, found) in (0..).zip(&stream.packets) {
                if let Some(place) = &found.place {
                    see(StreamIndex(index), number, place);
                }
            }
        }
    }

    fn drop_repeated(&mut self, repeated: &Repeated) {
        for (index, stream) in (0..).zip(&mut self.streams) {
            let key = |number: usize| (StreamIndex(index), number as u64);
            let is_dropped = |number| repeated.packets.binary_search(&key(number)).is_ok();
            let mut befores = BTreeMap::new();
            let mut kept = Vec::with_capacity(stream.packets.len());
            let mut dropped: Option<Found> = None;
            for (number, found) in std::mem::take(&mut stream.packets).into_iter().enumerate() {
                if is_dropped(number) {
                    dropped = Some(found);
                    continue;
                }
                let mut before = stream.befores.get(&number).copied();
                if let Some(dropped) = dropped.take() {
                    let packet = &dropped.packet;
                    let (sequence, discarded) = (packet.sequence, packet.discarded);
                    before = Some(Before { sequence, discarded, lost: dropped.lost });
                }
                let told = repeated.lost_before.binary_search_by_key(&key(number), |it| it.0);
                if let Ok(told) = told {
                    let lost = repeated.lost_before[told].1;
                    let before = before.get_or_insert_default();
                    before.discarded = Some(lost.iter().fold(0, |sum, it| sum.saturating_add(*it)));
                    before.lost = Some(lost);
                }
                if let Some(before) = before {
                    befores.insert(kept.len(), before);
                }
                kept.push(found);
            }
            (stream.packets, stream.befores) = (kept, befores);
        }
        self.units = OnceLock::new();
        self.count_losses();
    }

    fn visit(&self, see: &mut dyn FnMut(&Event<'_>)) -> Vec<Damage> {
        let mut damage = Vec::new();
        for index in 0..self.streams.len() {
            let mut cursor = self.cursor(StreamIndex(index as u32));
            while cursor.advance() {
                see(&cursor.event());
            }
            damage.extend_from_slice(cursor.damage());
        }
        damage
    }
}

impl Events for Merge<'_> {
    fn advance(&mut self) -> bool {
        Merge::advance(self)
    }

    fn event(&self) -> Event<'_> {
        Merge::event(self)
    }

    fn damage(&self) -> Vec<Damage> {
        Merge::damage(self).cloned().collect()
    }
}
