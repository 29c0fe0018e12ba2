// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns of one of several traces, with the numbers of the joined one.

use lateralis_model::{
    ClassBatch, Column, ColumnBatch, Event, Fields, Packet, Places, StreamIndex, Trace, Writer,
};

use super::{Part, shifted};

/// A batch with the numbers and classes of the joined trace.
pub struct Shifted<'a> {
    pub batch: &'a dyn ColumnBatch,
    pub part: &'a Part,
    pub trace: &'a Trace,
    /// Its packet and its writers, if their numbers differ among those of all machines.
    packet: Option<Packet>,
    writers: Option<Vec<(u32, Writer)>>,
}

impl<'a> Shifted<'a> {
    /// A batch of one of the traces.
    pub fn new(batch: &'a dyn ColumnBatch, part: &'a Part, trace: &'a Trace) -> Self {
        let host = part.host;
        let writer = |(at, writer): &(u32, Writer)| (*at, host.writer(*writer));
        let writers = || batch.writers().iter().map(writer).collect();
        let writers = (!host.is_first()).then(writers);
        Self { batch, part, trace, packet: part.packet(batch.packet()), writers }
    }
}

impl ColumnBatch for Shifted<'_> {
    fn stream(&self) -> StreamIndex {
        StreamIndex(self.batch.stream().0 + self.part.first_stream)
    }

    fn stream_class(&self) -> u32 {
        self.batch.stream_class() + self.part.first_stream_class
    }

    fn packet(&self) -> &Packet {
        self.packet.as_ref().unwrap_or_else(|| self.batch.packet())
    }

    fn packet_number(&self) -> Option<u64> {
        self.batch.packet_number()
    }

    fn packet_context(&self) -> Option<Fields<'_>> {
        self.batch.packet_context()
    }

    fn bytes(&self) -> &[u8] {
        self.batch.bytes()
    }

    fn counts(&self, see: &mut dyn FnMut(u32, u64)) {
        self.batch.counts(see);
    }

    fn order(&self) -> Places<'_> {
        self.batch.order()
    }

    fn writers(&self) -> &[(u32, Writer)] {
        self.writers.as_deref().unwrap_or_else(|| self.batch.writers())
    }

    fn class_count(&self) -> usize {
        self.batch.class_count()
    }

    fn class(&self, index: usize) -> ClassBatch<'_> {
        self.batch.class(index)
    }

    fn column(&self, class: usize, column: usize) -> Column<'_> {
        self.batch.column(class, column)
    }

    fn row_count(&self) -> usize {
        self.batch.row_count()
    }

    fn row(&self, index: usize) -> Event<'_> {
        let mut event = shifted(self.batch.row(index), self.part, self.trace);
        event.packet = self.packet.as_ref().unwrap_or(event.packet);
        event
    }
}
