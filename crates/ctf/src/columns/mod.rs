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
//! left out, and memory is that of one batch.
//!
//! ## Example
//!
//! ```
//! use lateralis_ctf::{Column, Reader, StreamFile, Wanted};
//!
//! let metadata = b"/* CTF 1.8 */
//!     trace { major = 1; minor = 8; byte_order = le; };
//!     typealias integer { size = 8; align = 8; } := u8;
//!     event { name = pair; fields := struct { u8 a; u8 b; }; };";
//! let file = StreamFile { name: "stream".into(), bytes: Box::new(vec![1u8, 2, 3, 4]) };
//! let reader = Reader::new(metadata, vec![file]);
//! let wanted = Wanted::everything(&reader);
//! let mut batches = reader.batches(&wanted);
//! let batch = batches.next_batch().unwrap();
//! let pair = batch.classes().next().unwrap();
//! let Column::Unsigned(b) = pair.column(1) else { panic!() };
//! assert_eq!((pair.len(), b), (2, &[2, 4][..]));
//! ```

mod batches;
mod buckets;
mod gather;
mod parallel;
mod survey;
mod walk;
mod wanted;

use lateralis_model::{Event, Fields, Packet, Slot, StreamIndex, Writer};
use lateralis_units::{Nanos, Ticks};

pub use batches::Batches;
use buckets::{Bucket, Buckets};
pub use parallel::Parallel;
pub(crate) use survey::survey;
pub use wanted::{Want, Wanted};

use crate::reader::Reader;

/// Events of a batch at most: their columns fit the second-level cache.
pub const BATCH_EVENTS: usize = 4096;

/// Marks an entry of [`Batch::order`] as an event that is a row.
const IS_ROW: u32 = 1 << 31;

/// Some events of one packet. Its memory is used again for the next.
pub struct Batch<'r> {
    reader: &'r Reader,
    stream: StreamIndex,
    stream_class: u32,
    packet: &'r Packet,
    packet_slots: Vec<Slot>,
    bytes: &'r [u8],
    /// Classes that happened, in the order of their first event.
    seen: Vec<u32>,
    /// As long as the longest batch; the first `ordered` are set.
    order: Vec<u32>,
    ordered: usize,
    buckets: Buckets,
    rows: Vec<Row>,
    row_slots: Vec<Slot>,
    writers: Vec<(u32, Writer)>,
    parts: Vec<Part>,
    gathered: gather::Gathered,
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

/// Where an event of a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The next one in the columns of this class.
    Columns(u32),
    /// The next row, which is of this class.
    Row(u32),
}

impl<'r> Batch<'r> {
    fn new(reader: &'r Reader) -> Self {
        static NO_PACKET: Packet = crate::cursor::NO_PACKET;
        Self {
            reader,
            stream: StreamIndex(0),
            stream_class: 0,
            packet: &NO_PACKET,
            packet_slots: Vec::new(),
            bytes: &[],
            seen: Vec::new(),
            order: vec![0; BATCH_EVENTS],
            ordered: 0,
            buckets: Buckets::default(),
            rows: Vec::new(),
            row_slots: Vec::new(),
            writers: Vec::new(),
            parts: Vec::new(),
            gathered: gather::Gathered::default(),
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

    /// How many events of each class happened, whatever was wanted of them:
    /// class index and number, classes in the order of their first event.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.seen.iter().map(|&class| (class, self.buckets.classes[class as usize].count()))
    }

    /// Number of events, whatever was wanted of them.
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
    pub fn order(&self) -> impl ExactSizeIterator<Item = Place> + '_ {
        self.order[..self.ordered].iter().map(|&entry| match entry & IS_ROW {
            0 => Place::Columns(entry),
            _ => Place::Row(entry & !IS_ROW),
        })
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
        self.rows.iter().map(|row| {
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
        })
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
    /// If there are not so many.
    #[must_use]
    pub fn column(&self, index: usize) -> Column<'b> {
        assert!(index < self.columns(), "columns:index: {index} of {}", self.columns());
        let index = self.part.first_column as usize + index;
        self.batch.gathered.column(index, self.len(), self.batch.bytes)
    }
}

/// The values of one field, one per event. Names and classes of the fields are
/// those of the model, in the same order.
#[derive(Debug, Clone, Copy)]
pub enum Column<'b> {
    /// Integers ≥ 0, bits, and 0 or 1 of yes/no fields.
    Unsigned(&'b [u64]),
    /// Integers.
    Signed(&'b [i64]),
    /// Floating point numbers.
    Real(&'b [f64]),
    /// Texts without terminator, or blobs.
    Spans(Spans<'b>),
    /// Arrays of scalars.
    Lists(Lists<'b>),
    /// Nobody wanted it.
    Skipped,
}

/// Pieces of the packet.
#[derive(Debug, Clone, Copy)]
pub struct Spans<'b> {
    starts: &'b [u64],
    lengths: &'b [u32],
    bytes: &'b [u8],
}

impl<'b> Spans<'b> {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The bytes of each, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'b [u8]> + use<'b> {
        let bytes = self.bytes;
        let places = self.starts.iter().zip(self.lengths);
        places.map(move |(&start, &length)| {
            let start = start as usize;
            bytes.get(start..start + length as usize).unwrap_or(&[])
        })
    }

    /// Appends the bytes of all to `data`, and to `offsets` where each ends:
    /// as Arrow's variable-size binary layout has them. `offsets` begins with one
    /// entry, the length of `data` so far.
    ///
    /// # Errors
    /// [`TooLong`] if `data` would exceed 2 GiB; nothing is then appended.
    pub fn append_to(&self, offsets: &mut Vec<i32>, data: &mut Vec<u8>) -> Result<(), TooLong> {
        let total: u64 = self.lengths.iter().map(|&length| u64::from(length)).sum();
        if total + data.len() as u64 > i32::MAX as u64 {
            return Err(TooLong);
        }
        if offsets.is_empty() {
            offsets.push(data.len() as i32);
        }
        for span in self.iter() {
            data.extend_from_slice(span);
            offsets.push(data.len() as i32);
        }
        Ok(())
    }
}

/// More bytes than 32 bits can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Arrays of scalars, still in the packet.
#[derive(Debug, Clone, Copy)]
pub struct Lists<'b> {
    starts: &'b [u64],
    counts: &'b [u32],
}

impl Lists<'_> {
    /// Number of elements of each.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        self.counts
    }

    /// Bit of the packet at which each begins. The field's class says how the
    /// elements lie ([`FieldKind::Array`](lateralis_model::FieldKind)'s
    /// `packed`).
    #[must_use]
    pub fn starts_bits(&self) -> &[u64] {
        self.starts
    }
}

impl Column<'_> {
    /// The value of one event as a row holds it; `None` in a skipped column and
    /// behind the last event.
    #[must_use]
    pub fn slot(&self, event: usize) -> Option<Slot> {
        Some(match self {
            Self::Unsigned(values) => Slot::Unsigned(*values.get(event)?),
            Self::Signed(values) => Slot::Signed(*values.get(event)?),
            Self::Real(values) => Slot::Real(*values.get(event)?),
            Self::Spans(spans) => {
                Slot::Span { len: *spans.lengths.get(event)?, start: spans.starts[event] }
            }
            Self::Lists(lists) => {
                Slot::Packed { count: *lists.counts.get(event)?, start_bits: lists.starts[event] }
            }
            Self::Skipped => return None,
        })
    }
}
