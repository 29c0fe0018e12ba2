// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes records one by one, in time order.

use std::collections::HashMap;
use std::sync::Arc;

use lateralis_model::{
    ByteOrder, Damage, DamageReason, Event, Events, Interval, StreamIndex, Writer,
};
use lateralis_units::{Nanos, Ticks};

use super::attr::{Attr, NOWHERE, Places, sample};
use super::content::{Found, Merge, word};
use super::origin::Origin;
use super::records::{self, Record};
use super::sample::Sample;
use super::trace::{PerfTrace, SampleClass};
use super::{sample_class, sideband};
use crate::notes::Notes;
use crate::row::Row;
use crate::wire::{Wire, text};

/// Threads whose names are found without a search.
const RECENT: usize = 64;
/// Name of the idle threads in perf.
const IDLE: &str = "swapper";

/// A thread was renamed.
pub struct Renamed {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its new name.
    pub name: Arc<str>,
}

/// Names of threads at a time.
pub struct Comms {
    all: HashMap<u32, Arc<str>>,
    /// Names of recent threads, by the low digits of the id.
    recent: [Option<(u32, Arc<str>)>; RECENT],
    unnamed: Arc<str>,
}

impl Default for Comms {
    fn default() -> Self {
        let all = HashMap::from([(0, Arc::from(IDLE))]);
        Self { all, recent: [const { None }; RECENT], unnamed: Arc::from("") }
    }
}

impl Comms {
    /// Name of a thread; empty if unknown.
    #[inline]
    fn of(&mut self, tid: u32) -> &str {
        let slot = &mut self.recent[tid as usize % RECENT];
        if !matches!(slot, Some((known, _)) if *known == tid) {
            let comm = self.all.get(&tid).unwrap_or(&self.unnamed);
            *slot = Some((tid, Arc::clone(comm)));
        }
        slot.as_ref().map_or("", |(_, comm)| comm)
    }

    /// Updates thread names from records that contain them.
    pub fn learn(&mut self, record: &Record<'_>, order: ByteOrder) -> Option<Renamed> {
        let mut wire = Wire::new(record.body, order);
        let (pid, second) = (wire.u32()?, wire.u32()?);
        let (tid, name) = match record.kind {
            records::COMM => (second, Arc::from(text(&record.body[8..]))),
            records::FORK => {
                let (tid, parent) = (wire.u32()?, wire.u32()?);
                (tid, Arc::clone(self.all.get(&parent)?))
            }
            _ => return None,
        };
        self.recent[tid as usize % RECENT] = None;
        self.all.insert(tid, Arc::clone(&name));
        Some(Renamed { pid, tid, name })
    }
}

/// Properties of the current event besides its values.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    stream: u32,
    class: u32,
    ticks: u64,
    time: Nanos,
    writer: Option<Writer>,
}

/// The events of a [`PerfTrace`].
pub struct PerfEvents<'a> {
    trace: &'a PerfTrace,
    merge: Merge<'a>,
    interval: Interval,
    comms: Comms,
    head: Head,
    row: Row,
    notes: Notes,
}

impl<'a> PerfEvents<'a> {
    /// Events of an interval.
    pub fn new(trace: &'a PerfTrace, interval: Interval) -> Self {
        let before = move |ticks: u64| {
            interval.begin.is_some_and(|begin| trace.nanos(ticks.max(trace.first)) < begin)
        };
        let mut comms = Comms::default();
        for &(time, place) in &trace.renamings {
            if !before(time) {
                break;
            }
            if let Some(found) = trace.content.record(place) {
                comms.learn(&found.record, trace.content.order);
            }
        }
        Self {
            trace,
            merge: Merge::new(&trace.content, move |run| !before(run.last)),
            interval,
            comms,
            head: Head::default(),
            row: Row::default(),
            notes: Notes::new(""),
        }
    }

    /// Decodes a record; `None` if it is not, or cannot be, an event.
    #[inline]
    fn decode(&mut self, found: &Found<'_>) -> Option<()> {
        match (found.record.kind, found.attr) {
            (records::SAMPLE, Ok(attr)) => {
                let known = self.sample(found, attr);
                if known.is_none() {
                    self.bad(found, DamageReason::FieldBeyondContent);
                }
                known
            }
            (records::SAMPLE, Err(id)) => {
                self.bad(found, DamageReason::UnknownEventClass { id });
                None
            }
            (records::LOST | records::LOST_SAMPLES, _) => None,
            _ => {
                let known = self.sideband(found);
                if known.is_none() {
                    self.bad(found, DamageReason::FieldBeyondContent);
                }
                known
            }
        }
    }

    #[cold]
    fn bad(&mut self, found: &Found<'_>, reason: DamageReason) {
        let content = &self.trace.content;
        let begin = content.byte_of(found.place);
        let end = begin + found.record.size();
        self.notes.in_file(content.file_of(found.place));
        self.notes.damage(begin, end, reason, Some(self.head.time));
    }

    /// Sets the common context, and the properties of every event in the model.
    #[inline]
    fn begin(&mut self, origin: Origin, class: u32) -> Option<()> {
        self.head.stream = self.trace.stream_of(origin.cpu)?;
        self.head.class = class;
        self.row.clear();
        if let Some(cpu) = origin.cpu {
            self.row.u64(u64::from(cpu));
        }
        let Some(pid) = origin.pid else {
            self.head.writer = None;
            self.row.i64(-1);
            self.row.i64(-1);
            self.row.bytes(&[]);
            return Some(());
        };
        let tid = origin.tid;
        // A thread that has ended has no id.
        let known = pid != u32::MAX && tid != u32::MAX;
        self.head.writer = known.then_some(Writer { pid, tid });
        self.row.i64(i64::from(pid as i32));
        self.row.i64(i64::from(tid as i32));
        self.row.bytes(self.comms.of(tid).as_bytes());
        Some(())
    }

    #[inline]
    fn sample(&mut self, found: &Found<'_>, attr: usize) -> Option<()> {
        let trace = self.trace;
        let content = &trace.content;
        let (body, order) = (found.record.body, content.order);
        let places = content.attrs.places.get(attr)?;
        let origin = Origin::of_sample(places, body, &content.cpus, order);
        let classes = trace.samples.get(attr)?;
        let SampleClass { class, format } = classes[usize::from(origin.cpu.is_some())].as_ref()?;
        self.begin(origin, *class)?;
        let attr = &content.attrs.all[attr];
        let is_raw = format.is_none();
        let raw = if places.is_plain {
            plain(attr, places, is_raw, &found.record, order, &mut self.row)?
        } else {
            let values = Sample::parse(attr, body, order)?;
            sample_class::values(attr, is_raw, found.record.misc, &values, order, &mut self.row);
            values.raw
        };
        if let Some(format) = format {
            format.decode_common(raw, order, &mut self.row).ok()?;
            format.decode(raw, order, &mut self.row).ok()?;
        }
        Some(())
    }

    fn sideband(&mut self, found: &Found<'_>) -> Option<()> {
        let trace = self.trace;
        let content = &trace.content;
        let (record, order) = (&found.record, content.order);
        let attr = found.attr.ok();
        let trailer = match attr.and_then(|attr| content.attrs.all.get(attr)) {
            Some(attr) if record.kind < records::USER => attr.trailer_bytes(),
            _ => 0,
        };
        let body = &record.body[..record.body.len().checked_sub(trailer)?];
        let places = attr.and_then(|attr| content.attrs.places.get(attr));
        let origin = Origin::of_other(record, places, order);
        if matches!(record.kind, records::COMM | records::FORK) {
            self.comms.learn(record, order);
        }
        let variant = sideband::variant(record.kind, record.misc);
        let class = trace.others.get(&(record.kind, variant, origin.cpu.is_some()))?;
        self.begin(origin, *class)?;
        let beside = content.beside(found.place, record);
        sideband::values(record, body, order, beside, &mut self.row)
    }
}

/// Adds the values of a sample that has only fields at fixed offsets, a call chain and raw data. Returns
/// the raw data; `None` if the sample is too short.
#[inline]
fn plain<'r>(
    attr: &Attr,
    places: &Places,
    is_raw: bool,
    record: &Record<'r>,
    order: ByteOrder,
    row: &mut Row,
) -> Option<&'r [u8]> {
    let body = record.body;
    row.u64(u64::from(record.misc & 7));
    for at in places.words {
        if at != NOWHERE {
            row.u64(word(body, at, order)?);
        }
    }
    let mut wire = Wire::at(body, u64::from(places.fixed_bytes), order);
    if wire.position() < places.fixed_bytes as usize {
        return None;
    }
    if attr.has(sample::CALLCHAIN) {
        let count = wire.u64()?;
        row.integers(wire.take64(count.checked_mul(8)?)?, 8, order);
    }
    if !attr.has(sample::RAW) {
        return Some(&[]);
    }
    let size = wire.u32()?;
    let raw = wire.take(size as usize)?;
    if is_raw {
        row.bytes(raw);
    }
    Some(raw)
}

impl Events for PerfEvents<'_> {
    fn advance(&mut self) -> bool {
        while let Some(found) = self.merge.next() {
            self.head.ticks = found.time.max(self.trace.first);
            self.head.time = self.trace.nanos(self.head.ticks);
            if self.interval.begin.is_some_and(|begin| self.head.time < begin) {
                continue;
            }
            if self.interval.end.is_some_and(|end| self.head.time > end) {
                return false;
            }
            if self.decode(&found).is_some() {
                return true;
            }
        }
        false
    }

    #[inline]
    fn event(&self) -> Event<'_> {
        let stream = &self.trace.streams[self.head.stream as usize];
        let class = &self.trace.trace.stream_classes[stream.class as usize];
        Event {
            stream: StreamIndex(self.head.stream),
            stream_class_index: stream.class,
            stream_class: class,
            class_index: self.head.class,
            class: &class.event_classes[self.head.class as usize],
            ticks: Some(Ticks(self.head.ticks)),
            time: self.head.time,
            writer: self.head.writer,
            packet: &stream.packet,
            bytes: &self.row.bytes,
            packet_slots: &[],
            slots: &self.row.slots,
        }
    }

    fn time(&self) -> Nanos {
        self.head.time
    }

    fn damage(&self) -> Vec<Damage> {
        self.notes.damage_list().to_vec()
    }
}
