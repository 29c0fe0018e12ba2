// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as columns: of selected classes, of parts of a trace, only the requested fields.
//!
//! ```text
//! Source::parts ──► pieces that can be read alone, with their time and processor
//! Wanted ─────────► what to decode of which class
//! Source::columns ► batches: of each class one array per field, and the events
//!                   that have none as rows, all in the order of the stream
//! ```

use std::borrow::Cow;
use std::ops::Range;

use lateralis_units::{CpuId, Nanos};

use crate::{CountBy, Event, Fields, Interval, Packet, Scalar, Slot, StreamIndex, Trace, Writer};

/// A piece of a trace that can be read without those before it: some packets of one
/// stream, some events, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartSummary {
    /// The stream, where all its events are of one.
    pub stream: Option<StreamIndex>,
    /// Index of that stream's class in the trace.
    pub stream_class: Option<u32>,
    /// When its events happened; an end that is not known is `None`.
    pub interval: Interval,
    /// The processor all its events happened on, where there is one.
    pub cpu: Option<CpuId>,
    /// Bytes to read; 0 if the format does not specify it.
    pub bytes: u64,
    /// Number of events, where it is known without reading them.
    pub events: Option<u64>,
}

/// What [`Source::columns`](crate::Source::columns) shall read.
#[derive(Clone, Copy)]
pub struct ColumnRequest<'a> {
    /// Which of [`Source::parts`](crate::Source::parts), by index, in this order. An
    /// index that is none is passed over.
    pub parts: &'a [usize],
    /// Events outside may be omitted; those on either end are inside. Delivered events may still be
    /// outside, because single events are not examined for it.
    pub interval: Interval,
    /// What to decode of which class.
    pub wanted: &'a Wanted,
}

/// What to decode of the events of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Want {
    /// Only their number.
    Count,
    /// When they happened.
    Times,
    /// The above, and the columns for which this is true; columns beyond its end are not requested.
    /// One entry per column, as [`leaves`] counts them. A class whose events are rows is decoded
    /// completely.
    Columns(Vec<bool>),
    /// Everything.
    #[default]
    All,
}

/// What to decode of all classes of a trace.
#[derive(Debug, Clone)]
pub struct Wanted {
    classes: Vec<Vec<Want>>,
    /// By stream class.
    in_order: Vec<Option<Vec<usize>>>,
    counted: Option<CountBy>,
}

impl Wanted {
    fn of(trace: &Trace, want: &Want) -> Self {
        let of_stream = |stream: &crate::StreamClass| {
            stream.event_classes.iter().map(|_| want.clone()).collect()
        };
        let classes = trace.stream_classes.iter().map(of_stream).collect();
        Self { classes, in_order: Vec::new(), counted: None }
    }

    /// Every field of every event.
    #[must_use]
    pub fn everything(trace: &Trace) -> Self {
        Self::of(trace, &Want::All)
    }

    /// The times of all events.
    #[must_use]
    pub fn times(trace: &Trace) -> Self {
        Self::of(trace, &Want::Times)
    }

    /// Only how many events of each class there are.
    #[must_use]
    pub fn counts(trace: &Trace) -> Self {
        Self::of(trace, &Want::Count)
    }

    /// Changes what is wanted of one class. An index that the trace does not
    /// have changes nothing.
    #[must_use]
    pub fn with(mut self, stream_class: u32, event_class: u32, want: Want) -> Self {
        let stream = self.classes.get_mut(stream_class as usize);
        if let Some(entry) = stream.and_then(|stream| stream.get_mut(event_class as usize)) {
            *entry = want;
        }
        self
    }

    /// Allows batches [in the order of the stream](ColumnBatch::times_in_order), with these
    /// columns, that are alike in all classes: so are those of the common context. All that is
    /// wanted of any class must be among them, for such batches have no others.
    #[must_use]
    pub fn in_order(mut self, stream_class: u32, columns: Vec<usize>) -> Self {
        let index = stream_class as usize;
        if index < self.classes.len() {
            self.in_order.resize(self.in_order.len().max(index + 1), None);
            self.in_order[index] = Some(columns);
        }
        self
    }

    /// The columns that batches of a stream class may have in its order, if they may.
    #[must_use]
    pub fn columns_in_order(&self, stream_class: u32) -> Option<&[usize]> {
        self.in_order.get(stream_class as usize)?.as_deref()
    }

    /// Allows batches whose events are only [counted](ColumnBatch::counted_at), if only the times
    /// of events are requested. Without [`CountBy::class`] all events of a stream class are
    /// reported as of one class, if all are requested.
    #[must_use]
    pub fn or_counted(mut self, by: CountBy) -> Self {
        self.counted = Some(by);
        self
    }

    /// How the events of a stream class may be counted, if they may.
    #[must_use]
    pub fn count_by(&self, stream_class: u32) -> Option<CountBy> {
        let classes = self.classes(stream_class);
        let is_least = |want: &Want| matches!(want, Want::Count | Want::Times);
        let by = self.counted.filter(|_| classes.iter().all(is_least))?;
        Some(CountBy { class: by.class || classes.contains(&Want::Count), ..by })
    }

    /// What is wanted of the classes of a stream class; empty if there is none.
    #[must_use]
    pub fn classes(&self, stream_class: u32) -> &[Want] {
        self.classes.get(stream_class as usize).map_or(&[], Vec::as_slice)
    }

    /// What is wanted of some of the stream classes, counted from the first of them; not in
    /// order, nor only counted.
    #[must_use]
    pub fn of_stream_classes(&self, stream_classes: Range<usize>) -> Self {
        let end = stream_classes.end.min(self.classes.len());
        let classes = self.classes.get(stream_classes.start.min(end)..end);
        let classes = classes.unwrap_or(&[]).to_vec();
        Self { classes, in_order: Vec::new(), counted: None }
    }
}

/// Where an event of a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The next one in the columns of this class.
    Columns(u32),
    /// The next row, which is of this class.
    Row(u32),
}

/// Where each event of a batch is, in the order of the stream.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a>(&'a [u32]);

impl<'a> Places<'a> {
    /// Marks an entry as an event that is a row; the other bits are its class.
    pub const ROW: u32 = 1 << 31;

    /// Places that are written as classes, with [`Places::ROW`] or without.
    #[must_use]
    pub fn new(entries: &'a [u32]) -> Self {
        Self(entries)
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The classes of some of them, one after the other.
    pub fn part(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.0.get(range).unwrap_or_default().iter().map(|&entry| entry & !Self::ROW)
    }

    /// One after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Place> + use<'a> {
        self.0.iter().map(|&entry| match entry & Self::ROW {
            0 => Place::Columns(entry),
            _ => Place::Row(entry & !Self::ROW),
        })
    }
}

/// Some events of one packet, lent while they are shown.
pub trait ColumnBatch {
    /// The stream.
    fn stream(&self) -> StreamIndex;

    /// Index of its class in the trace.
    fn stream_class(&self) -> u32;

    /// The packet.
    fn packet(&self) -> &Packet;

    /// Number of the packet in its stream, from 0; `None` where the format has none.
    fn packet_number(&self) -> Option<u64>;

    /// The packet's own fields.
    fn packet_context(&self) -> Option<Fields<'_>>;

    /// The bytes into which spans and lists point.
    fn bytes(&self) -> &[u8];

    /// Reports the number of events of each class, regardless of the request.
    fn counts(&self, see: &mut dyn FnMut(u32, u64));

    /// The time of one of the events, if they are only counted, as [`Wanted::or_counted`] allows:
    /// no other event needs to be distinguished from it. The batch then has no columns and no rows.
    fn counted_at(&self) -> Option<Nanos> {
        None
    }

    /// Where each wanted event is: those of which more than the number is wanted.
    fn order(&self) -> Places<'_>;

    /// The times of all events in [`ColumnBatch::order`], if they and
    /// [`ColumnBatch::column_in_order`] are the only content: the batch then has no classes with
    /// columns, and no rows. `None` unless [`Wanted::in_order`] allows it, and if it is not
    /// possible.
    fn times_in_order(&self) -> Option<&[Nanos]> {
        None
    }

    /// One of the columns listed in [`Wanted::in_order`], an entry for each event in the order;
    /// skipped unless there are [`ColumnBatch::times_in_order`].
    fn column_in_order(&self, _index: usize) -> Column<'_> {
        Column::Skipped
    }

    /// Writer threads of the events that have columns, if the stream contains them: from this
    /// position in the order, this thread, up to the next entry.
    fn writers(&self) -> &[(u32, Writer)];

    /// Number of classes that have columns here.
    fn class_count(&self) -> usize;

    /// One of them, by ascending class index.
    ///
    /// # Panics
    /// If the index is out of range.
    fn class(&self, index: usize) -> ClassBatch<'_>;

    /// A column of one of them: as many as it has leaves ([`leaves`]).
    ///
    /// # Panics
    /// If an index of a class or column is out of range.
    fn column(&self, class: usize, column: usize) -> Column<'_>;

    /// Number of events that are rows.
    fn row_count(&self) -> usize;

    /// One of them, in their order.
    ///
    /// # Panics
    /// If the index is out of range.
    fn row(&self, index: usize) -> Event<'_>;
}

/// The events of one class in a batch.
#[derive(Debug, Clone, Copy)]
pub struct ClassBatch<'a> {
    /// Index of the class in its stream class.
    pub class: u32,
    /// Readings of the stream's clock; worthless in a stream without one.
    pub ticks: &'a [u64],
    /// The same on the time line; 0 in a stream without clock.
    pub times: &'a [Nanos],
    /// Number of columns.
    pub columns: usize,
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
    /// The column was not requested.
    Skipped,
}

impl Column<'_> {
    /// The value of one event as in a row; `None` in a skipped column and beyond the last event.
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

/// Pieces of the packet.
#[derive(Debug, Clone, Copy)]
pub struct Spans<'b> {
    starts: &'b [u64],
    lengths: &'b [u32],
    bytes: &'b [u8],
}

impl<'b> Spans<'b> {
    /// Pieces of `bytes` with the given starts and lengths; equally many of both.
    #[must_use]
    pub fn new(starts: &'b [u64], lengths: &'b [u32], bytes: &'b [u8]) -> Self {
        let count = starts.len().min(lengths.len());
        Self { starts: &starts[..count], lengths: &lengths[..count], bytes }
    }

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

    /// Where each begins in [`Spans::bytes`].
    #[must_use]
    pub fn starts(&self) -> &'b [u64] {
        self.starts
    }

    /// How long each is; where that is beyond the bytes, it is empty.
    #[must_use]
    pub fn lengths(&self) -> &'b [u32] {
        self.lengths
    }

    /// The bytes they are pieces of.
    #[must_use]
    pub fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The bytes of one entry; empty beyond the last.
    #[must_use]
    pub fn get(&self, index: usize) -> &'b [u8] {
        let (Some(&start), Some(&length)) = (self.starts.get(index), self.lengths.get(index))
        else {
            return &[];
        };
        let start = start as usize;
        self.bytes.get(start..start + length as usize).unwrap_or(&[])
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

impl<'b> Lists<'b> {
    /// Arrays that begin at these bits, with these numbers of elements.
    #[must_use]
    pub fn new(starts_bits: &'b [u64], counts: &'b [u32]) -> Self {
        let count = starts_bits.len().min(counts.len());
        Self { starts: &starts_bits[..count], counts: &counts[..count] }
    }

    /// Number of elements of each.
    #[must_use]
    pub fn counts(&self) -> &'b [u32] {
        self.counts
    }

    /// Bit of the packet at which each begins. The field's class says how the
    /// elements lie ([`FieldKind::Array`](crate::FieldKind)'s `packed`).
    #[must_use]
    pub fn starts_bits(&self) -> &'b [u64] {
        self.starts
    }

    /// The elements of one array, that lie so, in `bytes`.
    pub fn elements<'a>(
        &self,
        index: usize,
        scalar: Scalar,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = Slot> + use<'a> {
        let start = self.starts.get(index).copied().unwrap_or(0);
        let count = self.counts.get(index).copied().unwrap_or(0);
        (0..u64::from(count)).map(move |element| {
            let raw = scalar.raw(bytes, start + element * scalar.stride_bits()).unwrap_or(0);
            Slot::from_raw(raw, scalar.bits, scalar.kind)
        })
    }
}

/// One event as a batch: what formats without columns show.
pub(crate) struct OneRow<'a> {
    event: &'a Event<'a>,
    entry: [u32; 1],
    kept: usize,
    packet_number: Option<u64>,
}

impl<'a> OneRow<'a> {
    pub fn new(event: &'a Event<'a>, wanted: &Wanted) -> Self {
        let wants = wanted.classes(event.stream_class_index);
        let is_counted = wants.get(event.class_index as usize) == Some(&Want::Count);
        Self {
            event,
            entry: [event.class_index | Places::ROW],
            kept: usize::from(!is_counted),
            packet_number: None,
        }
    }
}

impl ColumnBatch for OneRow<'_> {
    fn stream(&self) -> StreamIndex {
        self.event.stream
    }

    fn stream_class(&self) -> u32 {
        self.event.stream_class_index
    }

    fn packet(&self) -> &Packet {
        self.event.packet
    }

    fn packet_number(&self) -> Option<u64> {
        self.packet_number
    }

    fn packet_context(&self) -> Option<Fields<'_>> {
        self.event.packet_context()
    }

    fn bytes(&self) -> &[u8] {
        self.event.bytes
    }

    fn counts(&self, see: &mut dyn FnMut(u32, u64)) {
        see(self.event.class_index, 1);
    }

    fn order(&self) -> Places<'_> {
        Places(&self.entry[..self.kept])
    }

    fn writers(&self) -> &[(u32, Writer)] {
        &[]
    }

    fn class_count(&self) -> usize {
        0
    }

    fn class(&self, index: usize) -> ClassBatch<'_> {
        panic!("columns:class: {index} of 0")
    }

    fn column(&self, class: usize, _: usize) -> Column<'_> {
        panic!("columns:class: {class} of 0")
    }

    fn row_count(&self) -> usize {
        self.kept
    }

    fn row(&self, index: usize) -> Event<'_> {
        assert!(index < self.kept, "columns:row: {index} of {}", self.kept);
        *self.event
    }
}

/// The fields of an event that are a column of their own, each with the way to it, in
/// the order of the columns: those of common context, own context and payload. An
/// event that has more slots than these, because of a variant, an optional field or
/// elements of variable size, is always a row.
#[must_use]
pub fn leaves<'t>(
    stream_class: &'t crate::StreamClass,
    class: &'t crate::EventClass,
) -> Vec<Leaf<'t>> {
    let mut found = Vec::new();
    let scopes = [&stream_class.common_context, &class.context, &class.payload];
    for (scope, structure) in [Scope::Common, Scope::Own, Scope::Payload].into_iter().zip(scopes) {
        if let Some(structure) = structure {
            below(scope, structure, "", &mut found);
        }
    }
    found
}

/// Which struct of an event a field is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The context that all events of its stream have.
    Common,
    /// The context of its class.
    Own,
    /// Its own fields.
    Payload,
}

/// A field that is no struct.
#[derive(Debug, Clone)]
pub struct Leaf<'t> {
    /// Whose it is.
    pub scope: Scope,
    /// Names of the structs it lies in and its own, with dots between.
    pub name: Cow<'t, str>,
    /// What it holds.
    pub class: &'t crate::FieldClass,
}

fn below<'t>(scope: Scope, class: &'t crate::FieldClass, path: &str, found: &mut Vec<Leaf<'t>>) {
    for member in class.members() {
        let name = match path {
            "" => Cow::Borrowed(member.name.as_str()),
            path => Cow::Owned(format!("{path}.{}", member.name)),
        };
        match &member.class.kind {
            crate::FieldKind::Struct(_) => below(scope, &member.class, &name, found),
            _ => found.push(Leaf { scope, name, class: &member.class }),
        }
    }
}
