// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A batch made of plain slices.

use lateralis_model::{
    ClassBatch, Column, ColumnBatch, Event, Fields, Packet, Places, StreamIndex, Writer,
};
use lateralis_units::Nanos;

/// Events of one class of the first stream, whose columns are slices. For callers whose columns come from
/// somewhere else than a trace.
pub struct Slices<'a> {
    class: u32,
    times: &'a [Nanos],
    columns: Vec<Column<'a>>,
    order: Vec<u32>,
    packet: Packet,
}

impl<'a> Slices<'a> {
    /// Events of the class with this index in its stream class, at these times; for each leaf of the
    /// class a column of the same length, or [`Column::Skipped`].
    #[must_use]
    pub fn new(class: u32, times: &'a [Nanos], columns: Vec<Column<'a>>) -> Self {
        Self { class, times, columns, order: vec![class; times.len()], packet: Packet::default() }
    }
}

impl ColumnBatch for Slices<'_> {
    fn stream(&self) -> StreamIndex {
        StreamIndex(0)
    }

    fn stream_class(&self) -> u32 {
        0
    }

    fn packet(&self) -> &Packet {
        &self.packet
    }

    fn packet_number(&self) -> Option<u64> {
        None
    }

    fn packet_context(&self) -> Option<Fields<'_>> {
        None
    }

    fn bytes(&self) -> &[u8] {
        let spans = self.columns.iter().find_map(|column| match column {
            Column::Spans(spans) => Some(spans.bytes()),
            _ => None,
        });
        spans.unwrap_or(&[])
    }

    fn counts(&self, see: &mut dyn FnMut(u32, u64)) {
        see(self.class, self.times.len() as u64);
    }

    fn order(&self) -> Places<'_> {
        Places::new(&self.order)
    }

    fn writers(&self) -> &[(u32, Writer)] {
        &[]
    }

    fn class_count(&self) -> usize {
        1
    }

    fn class(&self, index: usize) -> ClassBatch<'_> {
        assert!(index == 0, "slices:class: {index} of 1");
        let columns = self.columns.len();
        ClassBatch { class: self.class, ticks: &[], times: self.times, columns }
    }

    fn column(&self, class: usize, column: usize) -> Column<'_> {
        assert!(class == 0, "slices:class: {class} of 1");
        self.columns[column]
    }

    fn row_count(&self) -> usize {
        0
    }

    fn row(&self, index: usize) -> Event<'_> {
        panic!("slices:row: {index} of 0")
    }
}
