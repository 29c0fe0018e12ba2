// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace held in memory, and how importers make one.
//!
//! ```
//! use lateralis_model::{Clock, EventClass, FieldClass, MemoryTrace, Source, StreamClass};
//! let mut builder = MemoryTrace::builder("an example", u64::MAX);
//! let clock = builder.clock(Clock::new("monotonic", 1_000_000_000, 0, 0));
//! let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
//! let stream = builder.stream(class, "cpu0", None);
//! let event = builder.event_class(
//!     class,
//!     EventClass {
//!         name: "open".into(),
//!         payload: Some(FieldClass::structure([("path", FieldClass::text()), ("fd", FieldClass::i64())])),
//!         ..Default::default()
//!     },
//! );
//! builder.event(stream, event, 17, None).text("/etc/hosts").i64(3).end().unwrap();
//! let trace = builder.finish();
//! let mut events = trace.events();
//! let event = events.next_event().unwrap();
//! assert_eq!(event.payload().unwrap().get("path").unwrap().as_text().unwrap(), "/etc/hosts");
//! ```

use std::ops::ControlFlow;

use lateralis_units::{CpuId, Nanos, Ticks};

use crate::source::show_rows;
use crate::{
    Clock, ColumnBatch, ColumnRequest, Damage, Event, EventClass, Events, Interval, Loss, Names,
    Packet, PartSummary, Slot, Source, StreamClass, StreamIndex, StreamSummary, Trace, Writer,
};

/// Events of a part: enough that handing it out costs nothing beside it.
const PART_EVENTS: usize = 1 << 16;

/// The limit given to [`MemoryTrace::builder`] is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the events do not fit into the memory they may take")
    }
}

impl std::error::Error for Full {}

/// A trace whose events are all in memory.
#[derive(Debug, Default)]
pub struct MemoryTrace {
    format: String,
    trace: Trace,
    streams: Vec<MemoryStream>,
    records: Vec<Record>,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    losses: Vec<Loss>,
    damage: Vec<Damage>,
    remarks: Vec<String>,
    names: Names,
}

#[derive(Debug)]
struct MemoryStream {
    class: u32,
    name: String,
    packet: Packet,
}

/// 48 bytes an event.
#[derive(Debug, Clone, Copy)]
struct Record {
    time: Nanos,
    ticks: u64,
    /// Where its slots begin.
    slots: u64,
    stream: u32,
    class: u32,
    slot_count: u32,
    pid: u32,
    tid: u32,
    has_writer: bool,
}

impl MemoryTrace {
    /// Begins a trace of the format of this name, whose events may use this number of bytes of
    /// memory.
    #[must_use]
    pub fn builder(format: &str, limit_bytes: u64) -> Builder {
        Builder {
            trace: MemoryTrace { format: format.to_owned(), ..MemoryTrace::default() },
            limit_bytes,
        }
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it has no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records of an interval among some of them.
    fn within(records: &[Record], interval: Interval) -> &[Record] {
        let begin =
            interval.begin.map_or(0, |begin| records.partition_point(|record| record.time < begin));
        let end = interval
            .end
            .map_or(records.len(), |end| records.partition_point(|record| record.time <= end));
        &records[begin..end.max(begin)]
    }
}

impl Source for MemoryTrace {
    fn format(&self) -> &str {
        &self.format
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let summary = |stream: &MemoryStream| StreamSummary {
            class: stream.class,
            name: stream.name.clone(),
            cpu: stream.packet.cpu,
            ..StreamSummary::default()
        };
        self.streams.iter().map(summary).collect()
    }

    fn interval(&self) -> Interval {
        Interval {
            begin: self.records.first().map(|record| record.time),
            end: self.records.last().map(|record| record.time),
        }
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        let records = Self::within(&self.records, interval).iter();
        Box::new(MemoryEvents { trace: self, records, current: None })
    }

    fn parts(&self) -> Vec<PartSummary> {
        let summary = |records: &[Record]| PartSummary {
            interval: Interval {
                begin: records.first().map(|record| record.time),
                end: records.last().map(|record| record.time),
            },
            events: Some(records.len() as u64),
            ..PartSummary::default()
        };
        self.records.chunks(PART_EVENTS).map(summary).collect()
    }

    fn columns(
        &self,
        request: &ColumnRequest<'_>,
        see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
    ) -> Vec<Damage> {
        for &part in request.parts {
            let Some(records) = self.records.chunks(PART_EVENTS).nth(part) else { continue };
            let records = Self::within(records, request.interval).iter();
            let mut events = MemoryEvents { trace: self, records, current: None };
            if show_rows(&mut events, request, see).is_break() {
                break;
            }
        }
        Vec::new()
    }
}

struct MemoryEvents<'a> {
    trace: &'a MemoryTrace,
    records: std::slice::Iter<'a, Record>,
    current: Option<&'a Record>,
}

impl Events for MemoryEvents<'_> {
    fn advance(&mut self) -> bool {
        self.current = self.records.next();
        self.current.is_some()
    }

    fn event(&self) -> Event<'_> {
        let record = self.current.expect("memory:no-event: stepped to one before");
        let stream = &self.trace.streams[record.stream as usize];
        let class = &self.trace.trace.stream_classes[stream.class as usize];
        let slots = record.slots as usize;
        Event {
            stream: StreamIndex(record.stream),
            stream_class_index: stream.class,
            stream_class: class,
            class_index: record.class,
            class: &class.event_classes[record.class as usize],
            ticks: class.clock.map(|_| Ticks(record.ticks)),
            time: record.time,
            writer: record.has_writer.then_some(Writer { pid: record.pid, tid: record.tid }),
            packet: &stream.packet,
            bytes: &self.trace.bytes,
            packet_slots: &[],
            slots: &self.trace.slots[slots..slots + record.slot_count as usize],
        }
    }

    fn damage(&self) -> Vec<Damage> {
        Vec::new()
    }
}

/// Makes a [`MemoryTrace`]. Classes may be added at any time; events come in any
/// order and are sorted by time at the end, those of the same time in the order
/// in which they came.
#[derive(Debug)]
pub struct Builder {
    trace: MemoryTrace,
    limit_bytes: u64,
}

impl Builder {
    /// Name, UUID and environment of the trace.
    pub fn describe(&mut self) -> &mut Trace {
        &mut self.trace.trace
    }

    /// Names of processes and threads.
    pub fn names(&mut self) -> &mut Names {
        &mut self.trace.names
    }

    /// Adds a clock. Returns its index.
    pub fn clock(&mut self, clock: Clock) -> usize {
        self.trace.trace.clocks.push(clock);
        self.trace.trace.clocks.len() - 1
    }

    /// Adds a kind of stream. Returns its index.
    pub fn stream_class(&mut self, mut class: StreamClass) -> u32 {
        let index = self.trace.trace.stream_classes.len() as u32;
        class.id = u64::from(index);
        self.trace.trace.stream_classes.push(class);
        index
    }

    /// Adds a kind of event to a kind of stream. Returns its index there, which
    /// becomes its id too.
    pub fn event_class(&mut self, stream_class: u32, mut class: EventClass) -> u32 {
        let classes = &mut self.trace.trace.stream_classes[stream_class as usize].event_classes;
        let index = classes.len() as u32;
        class.id = u64::from(index);
        classes.push(class);
        index
    }

    /// Adds a stream of a kind, all of whose events happened on `cpu` if it is given.
    pub fn stream(&mut self, class: u32, name: &str, cpu: Option<CpuId>) -> StreamIndex {
        let packet = Packet { cpu, ..Packet::default() };
        self.trace.streams.push(MemoryStream { class, name: name.to_owned(), packet });
        StreamIndex(self.trace.streams.len() as u32 - 1)
    }

    /// Notes lost events.
    pub fn loss(&mut self, loss: Loss) {
        self.trace.losses.push(loss);
    }

    /// Notes bytes that cannot be read.
    pub fn damage(&mut self, damage: Damage) {
        self.trace.damage.push(damage);
    }

    /// Notes a sentence for the reader of the trace.
    pub fn remark(&mut self, remark: impl Into<String>) {
        self.trace.remarks.push(remark.into());
    }

    /// Begins an event of a class of its stream's class at `ticks` of that
    /// class's clock. Its values follow in the order of common context, own
    /// context and payload; [`Pending::end`] ends it.
    #[inline]
    pub fn event(
        &mut self,
        stream: StreamIndex,
        class: u32,
        ticks: u64,
        writer: Option<Writer>,
    ) -> Pending<'_> {
        let (slots, bytes) = (self.trace.slots.len(), self.trace.bytes.len());
        Pending { builder: self, stream, class, ticks, writer, slots, bytes }
    }

    /// Number of events so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trace.records.len()
    }

    /// Whether there is no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trace.records.is_empty()
    }

    /// Ends the trace.
    #[must_use]
    pub fn finish(mut self) -> MemoryTrace {
        self.trace.records.sort_by_key(|record| record.time);
        self.trace
    }
}

/// An event that is being added. Dropped before [`Pending::end`], it is not.
#[must_use = "an event counts only once it has ended"]
pub struct Pending<'b> {
    builder: &'b mut Builder,
    stream: StreamIndex,
    class: u32,
    ticks: u64,
    writer: Option<Writer>,
    slots: usize,
    bytes: usize,
}

impl Pending<'_> {
    #[inline]
    fn slot(self, slot: Slot) -> Self {
        self.builder.trace.slots.push(slot);
        self
    }

    /// An integer ≥ 0, bits, or 0 or 1 of a yes/no field.
    #[inline]
    pub fn u64(self, value: u64) -> Self {
        self.slot(Slot::Unsigned(value))
    }

    /// An integer.
    #[inline]
    pub fn i64(self, value: i64) -> Self {
        self.slot(Slot::Signed(value))
    }

    /// A floating point number.
    pub fn real(self, value: f64) -> Self {
        self.slot(Slot::Real(value))
    }

    /// Characters; of a text over 4 GiB only the first 4 GiB.
    #[inline]
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// Bytes of a blob or a text; at most 4 GiB.
    #[inline]
    pub fn bytes(self, value: &[u8]) -> Self {
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        let start = self.builder.trace.bytes.len() as u64;
        self.builder.trace.bytes.extend_from_slice(&value[..len as usize]);
        self.slot(Slot::Span { len, start })
    }

    /// An array follows, with this number of elements, added by `elements`.
    #[inline]
    pub fn array(self, count: u32, elements: impl FnOnce(Self) -> Self) -> Self {
        let at = self.builder.trace.slots.len();
        let pending = elements(self.slot(Slot::Elements { count, slots: 0 }));
        let used = (pending.builder.trace.slots.len() - at - 1) as u32;
        pending.builder.trace.slots[at] = Slot::Elements { count, slots: used };
        pending
    }

    /// Values that were decoded elsewhere: slots, whose spans and packed elements
    /// point into `bytes`, which are copied.
    pub fn values(self, slots: &[Slot], bytes: &[u8]) -> Self {
        let base = self.builder.trace.bytes.len() as u64;
        self.builder.trace.bytes.extend_from_slice(bytes);
        let moved = slots.iter().map(|slot| match *slot {
            Slot::Span { len, start } => Slot::Span { len, start: start + base },
            Slot::Packed { count, start_bits } => {
                Slot::Packed { count, start_bits: start_bits + base * 8 }
            }
            slot => slot,
        });
        self.builder.trace.slots.extend(moved);
        self
    }

    /// The option of a variant with this index follows; of an optional field, 0
    /// says that nothing does and 1 that it does.
    pub fn option(self, option: u32) -> Self {
        self.slot(Slot::Selected { option })
    }

    /// Adds the event.
    ///
    /// # Errors
    /// [`Full`] if the limit is reached; the event is then not added.
    #[inline]
    pub fn end(self) -> Result<(), Full> {
        let trace = &mut self.builder.trace;
        let taken = (trace.records.len() + 1) * size_of::<Record>()
            + trace.slots.len() * size_of::<Slot>()
            + trace.bytes.len();
        if taken as u64 > self.builder.limit_bytes {
            return Err(Full);
        }
        let class = trace.streams[self.stream.0 as usize].class as usize;
        let clock = trace.trace.stream_classes[class].clock;
        let clock = clock.and_then(|clock| trace.trace.clocks.get(clock));
        let writer = self.writer.unwrap_or(Writer { pid: 0, tid: 0 });
        trace.records.push(Record {
            time: clock.map_or(Nanos(0), |clock| clock.nanos(Ticks(self.ticks))),
            ticks: self.ticks,
            slots: self.slots as u64,
            stream: self.stream.0,
            class: self.class,
            slot_count: (trace.slots.len() - self.slots) as u32,
            pid: writer.pid,
            tid: writer.tid,
            has_writer: self.writer.is_some(),
        });
        // Kept: nothing is left to take back.
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.builder.trace.slots.truncate(self.slots);
        self.builder.trace.bytes.truncate(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldClass;

    fn simple() -> (Builder, StreamIndex, u32) {
        let mut builder = MemoryTrace::builder("test", 4096);
        let clock = builder.clock(Clock::new("c", 1000, 0, 0));
        let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
        let payload = FieldClass::structure([
            ("list", FieldClass::array(FieldClass::u64(), None)),
            ("maybe", FieldClass::optional(FieldClass::text())),
            ("last", FieldClass::u64()),
        ]);
        let event = EventClass { name: "e".into(), payload: Some(payload), ..Default::default() };
        let event = builder.event_class(class, event);
        let stream = builder.stream(class, "s", Some(CpuId(3)));
        (builder, stream, event)
    }

    #[test]
    fn events_come_sorted_with_all_their_values() {
        let (mut builder, stream, class) = simple();
        for (ticks, count) in [(5u64, 2u32), (3, 0), (5, 1)] {
            builder
                .event(stream, class, ticks, Some(Writer { pid: 1, tid: count }))
                .array(count, |p| (0..u64::from(count)).fold(p, |p, n| p.u64(n + 10)))
                .option(count % 2)
                .text("x")
                .u64(ticks)
                .end()
                .unwrap();
        }
        // An absent option has no value: this event was made wrongly, and reads as something.
        let trace = builder.finish();
        let mut events = trace.events();
        let mut seen = Vec::new();
        while let Some(event) = events.next_event() {
            assert_eq!(event.packet.cpu, Some(CpuId(3)));
            seen.push((event.time.0, event.writer.unwrap().tid));
        }
        assert_eq!(seen, [(3_000_000, 0), (5_000_000, 2), (5_000_000, 1)]);
        let part = Interval { begin: Some(Nanos(4_000_000)), end: None };
        let mut part = trace.events_in(part);
        assert_eq!(part.next_event().unwrap().writer.unwrap().tid, 2);
    }

    #[test]
    fn what_does_not_fit_or_does_not_end_leaves_nothing_behind() {
        let (mut builder, stream, class) = simple();
        let _ = builder.event(stream, class, 1, None).text("never ended");
        assert!(builder.trace.bytes.is_empty() && builder.trace.slots.is_empty());
        let large = "x".repeat(5000);
        let end = builder.event(stream, class, 1, None).array(0, |p| p).option(1).text(&large);
        assert_eq!(end.u64(1).end(), Err(Full));
        assert!(builder.trace.bytes.is_empty());
        builder.event(stream, class, 1, None).array(0, |p| p).option(0).u64(7).end().unwrap();
        let trace = builder.finish();
        let mut events = trace.events();
        let event = events.next_event().unwrap();
        assert_eq!(event.payload().unwrap().get("last").unwrap().as_u64(), Some(7));
    }
}
