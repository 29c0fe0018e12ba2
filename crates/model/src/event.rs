// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Something that happened, as a reader lends it.

use lateralis_units::{CpuId, Nanos, Ticks};

use crate::{EventClass, FieldClass, Fields, Slot, StreamClass};

/// Which stream of a reader, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamIndex(pub u32);

/// The thread that wrote a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Writer {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// One packet as its header and context describe it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packet {
    /// Index of the file in the reader's list.
    pub file: u32,
    /// Byte in the file where it begins.
    pub offset_bytes: u64,
    /// Its length in the file, padding included; what is missing at the end of
    /// a cut file is not counted.
    pub size_bytes: u64,
    /// Bits that hold header, context and events.
    pub content_bits: u64,
    /// Bit at which the first event may begin.
    pub events_offset_bits: u64,
    /// Clock at its beginning.
    pub begin: Option<Ticks>,
    /// Clock at its end.
    pub end: Option<Ticks>,
    /// Its number in the stream.
    pub sequence: Option<u64>,
    /// Events discarded in this stream up to its end, cumulative.
    pub discarded: Option<u64>,
    /// The processor that wrote it.
    pub cpu: Option<CpuId>,
}

/// Where the records of a packet were in the memory of the traced program. Packets of several
/// recordings with the same place are copies of the same records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RingPlace {
    /// Number of the area.
    pub area: u64,
    /// Number of the ring in it.
    pub ring: u32,
    /// Number of the packet in the ring, its low 32 bits.
    pub sequence: u32,
    /// First byte of the records in that packet.
    pub begin_bytes: u64,
    /// End of the records in that packet.
    pub end_bytes: u64,
    /// Lost events by cause since the ring was made, up to the packet; `None` if they count from a
    /// later moment.
    pub lost: Option<[u64; 4]>,
}

/// Packets that another recording of the same program holds as well.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The packets, by stream and number in it, ascending.
    pub packets: Vec<(StreamIndex, u64)>,
    /// Of the packets that remain, those whose loss counters count from other values than those of
    /// the packet before them: by stream and number, ascending.
    pub lost_before: Vec<((StreamIndex, u64), [u64; 4])>,
}

/// An event, lent until the reader's next step.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Where it comes from.
    pub stream: StreamIndex,
    /// Index of [`Event::stream_class`] in its trace.
    pub stream_class_index: u32,
    /// The kind of that stream.
    pub stream_class: &'a StreamClass,
    /// Index of [`Event::class`] in its stream class.
    pub class_index: u32,
    /// Its kind.
    pub class: &'a EventClass,
    /// The reading of the stream's clock; `None` in streams without time.
    pub ticks: Option<Ticks>,
    /// The same on the time line; 0 in streams without time.
    pub time: Nanos,
    /// The thread that wrote it, if the stream contains it and nothing before it was damaged.
    pub writer: Option<Writer>,
    /// The packet it lies in.
    pub packet: &'a Packet,
    /// The bytes of that packet.
    pub bytes: &'a [u8],
    /// Decoded values of the packet context.
    pub packet_slots: &'a [Slot],
    /// Decoded values of common context, own context and payload, in this order.
    pub slots: &'a [Slot],
}

impl<'a> Event<'a> {
    fn fields(&self, class: Option<&'a FieldClass>, slots: &'a [Slot]) -> Option<Fields<'a>> {
        class.map(|class| Fields::new(class, slots, self.bytes))
    }

    /// The packet's own fields.
    #[must_use]
    pub fn packet_context(&self) -> Option<Fields<'a>> {
        self.fields(self.stream_class.packet_context.as_ref(), self.packet_slots)
    }

    /// The fields every event of this stream carries.
    #[must_use]
    pub fn common_context(&self) -> Option<Fields<'a>> {
        self.fields(self.stream_class.common_context.as_ref(), self.slots)
    }

    /// The context of this kind of event.
    #[must_use]
    pub fn context(&self) -> Option<Fields<'a>> {
        let skipped = self.common_context().map_or(0, |fields| fields.slot_count());
        self.fields(self.class.context.as_ref(), &self.slots[skipped..])
    }

    /// The event's own fields.
    #[must_use]
    pub fn payload(&self) -> Option<Fields<'a>> {
        let mut skipped = self.common_context().map_or(0, |fields| fields.slot_count());
        if let Some(context) = self.context() {
            skipped += context.slot_count();
        }
        self.fields(self.class.payload.as_ref(), &self.slots[skipped..])
    }
}
