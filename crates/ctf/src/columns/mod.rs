// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as columns: for each class the times of its events, and each of its
//! fields as one array.
//!
//! ```text
//! packet ─ walk ──► ticks and marks of each class, order    one pass, as little as
//!                                                           finds the next event
//!        ─ gather ► times, columns                          field by field, only what
//!                                                           is wanted
//! ```
//!
//! The unit is a packet, or [`BATCH_EVENTS`] events of one that holds more. An
//! event whose shape depends on its values (a variant, an optional field,
//! elements of variable size) has no columns: it is among the batch's
//! [rows](Batch::row), in its place in the [order](Batch::order). So nothing is
//! left out, and memory is that of one batch. What a batch says to others is said in
//! [`lateralis_model`]: every format may have batches.
//!
//! ## Example
//!
//! ```
//! use lateralis_ctf::{Reader, StreamFile};
//! use lateralis_model::{Column, Wanted};
//!
//! let metadata = b"/* CTF 1.8 */
//!     trace { major = 1; minor = 8; byte_order = le; };
//!     typealias integer { size = 8; align = 8; } := u8;
//!     event { name = pair; fields := struct { u8 a; u8 b; }; };";
//! let file = StreamFile { name: "stream".into(), bytes: Box::new(vec![1u8, 2, 3, 4]) };
//! let reader = Reader::new(metadata, vec![file]);
//! let wanted = Wanted::everything(reader.trace());
//! let mut batches = reader.batches(&wanted);
//! let batch = batches.next_batch().unwrap();
//! let pair = batch.classes().next().unwrap();
//! let Column::Unsigned(b) = pair.column(1) else { panic!() };
//! assert_eq!((pair.len(), b), (2, &[2, 4][..]));
//! ```

mod alike;
mod batches;
mod buckets;
mod count;
mod gather;
mod lanes;
mod memory;
mod parallel;
mod parts;
mod rhythm;
mod survey;
mod walk;
mod ways;

use lateralis_model::{Clock, Column, Event, Fields, Packet, Places, Slot, StreamIndex, Writer};
use lateralis_units::{Nanos, Ticks};

pub use batches::Batches;
pub(crate) use batches::Unit;
use buckets::{Bucket, Buckets};
pub(crate) use memory::Spare;
pub use parallel::Parallel;
pub(crate) use parallel::parts_of;
pub(crate) use parts::{columns, parts};
use rhythm::Rhythm;
pub(crate) use survey::survey;

use crate::reader::Reader;

/// Events of a batch at most: their columns fit the second-level cache.
pub const BATCH_EVENTS: usize = 4096;

/// Marks an entry of [`Batch::order`] as an event that is a row.
const IS_ROW: u32 = Places::ROW;

/// Some events of one packet. Its memory is used again for the next.
pub struct Batch<'r> {
    reader: &'r Reader,
    stream: StreamIndex,
    stream_class: u32,
    packet: &'r Packet,
    packet_number: u64,
    packet_slots: Vec<Slot>,
    bytes: &'r [u8],
    clock: Option<&'r Clock>,
    /// What the batch before lets expect of this one.
    rhythm: Rhythm,
    /// Whether only the numbers of events are wanted.
    is_counted: bool,
    /// Whether events are only reported in their order, and the columns in that case.
    is_in_order: bool,
    columns_in_order: usize,
    /// Classes that happened, in the order of their first event.
    seen: Vec<u32>,
    /// As long as the longest batch; the first `ordered` are set.
    order: Vec<u32>,
    ordered: usize,
    /// As long as that, of batches in order: readings of the clock, and where events begin.
    order_ticks: Vec<u64>,
    order_starts: Vec<u32>,
    buckets: Buckets,
    /// By id: what is being counted, and which ids they are.
    tallies: Vec<count::Tally>,
    tallied: Vec<u32>,
    /// For events counted by steps of time: the time of one of them, and the last reading of the
    /// clock that need not be distinguished from it.
    counted_at: Option<Nanos>,
    last_tick: u64,
    rows: Vec<Row>,
    row_slots: Vec<Slot>,
    writers: Vec<(u32, Writer)>,
    parts: Vec<Part>,
    gathered: gather::Gathered,
}

/// The events of one class in a batch, where nothing else is wanted of them.
pub(crate) struct Counted {
    pub count: u64,
    /// When the earliest happened, and the latest.
    pub first: Nanos,
    pub last: Nanos,
}

/// The events of one class in a batch.
#[derive(Clone, Copy)]
struct Part {
    class: u32,
    first_time: u32,
    first_column: u32,
    columns: u32,
}

const NO_PART: Part = Part { class: 0, first_time: 0, first_column: 0, columns: 0 };

struct Row {
    class: u32,
    ticks: Option<Ticks>,
    time: Nanos,
    writer: Option<Writer>,
    first_slot: u32,
    slots: u32,
}

impl<'r> Batch<'r> {
    fn new(reader: &'r Reader) -> Self {
        static NO_PACKET: Packet = crate::cursor::NO_PACKET;
        let memory = reader.spare().take();
        Self {
            reader,
            stream: StreamIndex(0),
            stream_class: 0,
            packet: &NO_PACKET,
            packet_number: 0,
            packet_slots: Vec::new(),
            bytes: &[],
            clock: None,
            rhythm: Rhythm::default(),
            is_counted: false,
            is_in_order: false,
            columns_in_order: 0,
            seen: Vec::new(),
            order: memory.order,
            ordered: 0,
            order_ticks: memory.order_ticks,
            order_starts: memory.order_starts,
            buckets: memory.buckets,
            tallies: Vec::new(),
            tallied: Vec::new(),
            counted_at: None,
            last_tick: u64::MAX,
            rows: Vec::new(),
            row_slots: Vec::new(),
            writers: Vec::new(),
            parts: Vec::new(),
            gathered: memory.gathered,
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamIndex {
        self.stream
    }

    /// Index of its class in the trace.
    #[must_use]
    pub fn stream_class(&self) -> u32 {
        self.stream_class
    }

    /// The packet.
    #[must_use]
    pub fn packet(&self) -> &'r Packet {
        self.packet
    }

    /// The bytes of that packet, into which spans and lists point.
    #[must_use]
    pub fn bytes(&self) -> &'r [u8] {
        self.bytes
    }

    /// The packet's own fields.
    #[must_use]
    pub fn packet_context(&self) -> Option<Fields<'_>> {
        let class = &self.reader.trace().stream_classes[self.stream_class as usize];
        let context = class.packet_context.as_ref()?;
        Some(Fields::new(context, &self.packet_slots, self.bytes))
    }

    /// Number of events of each class, regardless of the request: class index and number, classes
    /// in the order of their first event.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.seen.iter().map(|&class| (class, self.buckets.classes[class as usize].count()))
    }

    /// The classes, where nothing but the numbers of events is wanted of the stream.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (u32, Counted)> + '_ {
        let nanos = |ticks| self.clock.map_or(Nanos(0), |clock| clock.nanos(Ticks(ticks)));
        self.seen.iter().filter(|_| self.is_counted).map(move |&class| {
            let bucket = &self.buckets.classes[class as usize];
            let [first, last] = bucket.ends().map(nanos);
            (class, Counted { count: bucket.count(), first, last })
        })
    }

    /// Number of events, regardless of the request.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts().map(|(_, count)| count as usize).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Where each wanted event is, in the order of the stream.
    pub fn order(&self) -> Places<'_> {
        Places::new(&self.order[..self.ordered])
    }

    /// The times of all events in that order, if the batch was allowed to have nothing else.
    #[must_use]
    pub fn times_in_order(&self) -> Option<&[Nanos]> {
        self.is_in_order.then_some(self.gathered.times.as_slice())
    }

    /// A column of all events in that order, of those that were wanted so.
    #[must_use]
    pub fn column_in_order(&self, index: usize) -> Column<'_> {
        match self.is_in_order && index < self.columns_in_order {
            true => self.gathered.column(index, self.ordered, self.bytes),
            false => Column::Skipped,
        }
    }

    /// Who wrote the events, in traces of Lateralis: from this place in the order
    /// on, this thread, up to the next entry.
    #[must_use]
    pub fn writers(&self) -> &[(u32, Writer)] {
        &self.writers
    }

    /// The classes that have columns here, by ascending index.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = ClassColumns<'_>> {
        self.parts.iter().map(|part| ClassColumns { batch: self, part })
    }

    /// Number of events that are rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The events that have no columns, in their order. The writer of one is
    /// known if the packet has named it before.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Event<'_>> {
        self.rows.iter().map(|row| self.event_of(row))
    }

    fn event_of(&self, row: &Row) -> Event<'_> {
        let class = &self.reader.trace().stream_classes[self.stream_class as usize];
        let first = row.first_slot as usize;
        Event {
            stream: self.stream,
            stream_class_index: self.stream_class,
            stream_class: class,
            class_index: row.class,
            class: &class.event_classes[row.class as usize],
            ticks: row.ticks,
            time: row.time,
            writer: row.writer,
            packet: self.packet,
            bytes: self.bytes,
            packet_slots: &self.packet_slots,
            slots: &self.row_slots[first..first + row.slots as usize],
        }
    }
}

/// The events of one class in a batch, as columns.
#[derive(Clone, Copy)]
pub struct ClassColumns<'b> {
    batch: &'b Batch<'b>,
    part: &'b Part,
}

impl<'b> ClassColumns<'b> {
    /// Index of the class in its stream class.
    #[must_use]
    pub fn class_index(&self) -> u32 {
        self.part.class
    }

    fn bucket(&self) -> &'b Bucket {
        &self.batch.buckets.classes[self.part.class as usize]
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bucket().len()
    }

    /// Whether there is none; a class without events is not listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bucket().len() == 0
    }

    /// Readings of the stream's clock; worthless in a stream without one.
    #[must_use]
    pub fn ticks(&self) -> &'b [u64] {
        self.bucket().ticks()
    }

    /// The same on the time line; 0 in a stream without clock.
    #[must_use]
    pub fn times(&self) -> &'b [Nanos] {
        let first = self.part.first_time as usize;
        &self.batch.gathered.times[first..first + self.len()]
    }

    /// Number of columns: one per slot of a row, that is one per leaf of common
    /// context, own context and payload, an array being one.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.part.columns as usize
    }

    /// A column.
    ///
    /// # Panics
    /// If the index is out of range.
    #[must_use]
    pub fn column(&self, index: usize) -> Column<'b> {
        assert!(index < self.columns(), "columns:index: {index} of {}", self.columns());
        let index = self.part.first_column as usize + index;
        self.batch.gathered.column(index, self.len(), self.batch.bytes)
    }
}
