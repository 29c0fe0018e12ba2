// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes batches of packets.

use std::ops::Range;

use lateralis_model::{Damage, StreamIndex, Want, Wanted};

use super::gather::Marks;
use super::ways::Ways;
use super::{Batch, NO_PART, Part};
use crate::cursor::Cursor;
use crate::plan::Leaf;
use crate::reader::Reader;

/// Makes batches of streams, packet by packet, in the order of the streams.
pub struct Batches<'r, 'w> {
    reader: &'r Reader,
    wanted: &'w Wanted,
    /// What is still to come.
    units: std::vec::IntoIter<Unit>,
    cursor: Option<Cursor<'r>>,
    /// What the cursor reads.
    unit: Option<Unit>,
    /// Of the cursor's stream class.
    ways: Ways<'r>,
    batch: Batch<'r>,
    /// Whether an event of the stream could not be reported in order: then others cannot, either.
    is_disordered: bool,
    counted: CountedSoFar,
    damage: Vec<Damage>,
}

/// How many events were counted by steps of time, in how many batches.
#[derive(Default)]
struct CountedSoFar {
    events: usize,
    batches: usize,
}

impl CountedSoFar {
    /// Whether steps hold so few events that reporting them one by one is faster: a batch costs
    /// about as much as ten.
    fn are_few(&self) -> bool {
        self.batches >= 64 && self.events < self.batches * 10
    }
}

/// Packets of one stream that can be read without those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub stream: StreamIndex,
    pub packets: Range<usize>,
}

impl<'r, 'w> Batches<'r, 'w> {
    pub(crate) fn new(reader: &'r Reader, wanted: &'w Wanted) -> Self {
        let streams = reader.streams().iter().enumerate();
        let unit = |(index, stream): (usize, &crate::Stream)| Unit {
            stream: StreamIndex(index as u32),
            packets: 0..stream.packets.len(),
        };
        Self::of_units(reader, wanted, streams.map(unit).collect())
    }

    pub(super) fn of_units(reader: &'r Reader, wanted: &'w Wanted, units: Vec<Unit>) -> Self {
        Self {
            reader,
            wanted,
            units: units.into_iter(),
            cursor: None,
            unit: None,
            ways: Ways::default(),
            batch: Batch::new(reader),
            is_disordered: false,
            counted: CountedSoFar::default(),
            damage: Vec::new(),
        }
    }

    /// Reads these packets next, once what is at hand is read.
    pub(super) fn then(&mut self, unit: Unit) {
        self.units = vec![unit].into_iter();
    }

    /// The next batch; `None` after the last. Batches without events are omitted.
    ///
    /// Cost: proportional to the events of the batch and the wanted fields of
    /// them; no allocation once vectors have grown to the largest batch.
    pub fn next_batch(&mut self) -> Option<&Batch<'r>> {
        loop {
            let Some(cursor) = &mut self.cursor else {
                let unit = self.units.next()?;
                let class = self.reader.streams()[unit.stream.0 as usize].class;
                if self.ways.stream_class != Some(class) {
                    let plan = &self.reader.plan().streams[class as usize];
                    let may_count = !self.counted.are_few() && has_clock(self.reader, class);
                    self.ways = Ways::of(plan, class, self.wanted, may_count);
                }
                let packets = unit.packets.clone();
                self.cursor = Some(Cursor::of_packets(self.reader, unit.stream, packets));
                self.unit = Some(unit);
                continue;
            };
            if cursor.position >= cursor.end && !cursor.open_packet() {
                self.damage.append(&mut cursor.take_damage());
                self.cursor = None;
                if let Some(unit) = self.unit.take() {
                    self.reader.release(&unit);
                }
                continue;
            }
            self.batch.begin(cursor, &self.ways);
            let in_order = self.ways.in_order.as_deref().filter(|_| !self.is_disordered);
            if let Some(leaves) = in_order {
                self.is_disordered = !self.batch.walk_in_order(cursor, &self.ways);
                if !self.batch.is_empty() {
                    self.batch.finish_in_order(cursor, leaves);
                    return Some(&self.batch);
                }
                self.batch.begin(cursor, &self.ways);
            }
            if self.ways.keeps {
                self.batch.walk(cursor, &self.ways);
            } else {
                self.batch.count(cursor, &self.ways);
            }
            if self.batch.counted_at.is_some() {
                self.counted.batches += 1;
                self.counted.events += self.batch.len();
                if self.counted.are_few() {
                    let (class, plan) = (self.batch.stream_class, cursor.plan);
                    self.ways = Ways::of(plan, class, self.wanted, false);
                }
            }
            if !self.batch.is_empty() {
                let class = self.batch.stream_class;
                self.batch.finish(cursor, self.wanted.classes(class));
                return Some(&self.batch);
            }
        }
    }

    /// Damage inside the packets read so far, of streams that have ended.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Reads no further; what was found of the stream so far counts.
    pub(super) fn leave(&mut self) {
        self.units = Vec::new().into_iter();
        if let Some(cursor) = &mut self.cursor {
            self.damage.append(&mut cursor.take_damage());
        }
        self.cursor = None;
    }

    pub(super) fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }
}

fn has_clock(reader: &Reader, class: u32) -> bool {
    reader.trace().stream_classes[class as usize].clock.is_some()
}

impl<'r> Batch<'r> {
    fn begin(&mut self, cursor: &Cursor<'r>, ways: &Ways<'r>) {
        self.stream = cursor.index;
        self.stream_class = self.reader.streams()[cursor.index.0 as usize].class;
        self.packet = cursor.packet;
        self.packet_number = cursor.packet_number();
        self.bytes = cursor.bytes;
        self.clock = cursor.clock;
        self.is_counted = !ways.keeps;
        self.counted_at = None;
        self.packet_slots.clear();
        self.packet_slots.extend_from_slice(&cursor.packet_slots);
        self.judge();
        self.is_in_order = false;
        self.ordered = 0;
        self.buckets.begin(&self.seen, ways.classes.len());
        self.seen.clear();
        self.rows.clear();
        self.row_slots.clear();
        self.writers.clear();
        self.writers.extend(cursor.writer.map(|writer| (0, writer)));
        self.parts.clear();
        self.gathered.clear();
    }

    /// Reads the wanted columns of all events at once.
    fn finish_in_order(&mut self, cursor: &Cursor<'r>, leaves: &[&Leaf]) {
        (self.is_in_order, self.columns_in_order) = (true, leaves.len());
        self.gathered.times(&self.order_ticks[..self.ordered], cursor.clock);
        let mut marks = Marks::new(&self.order_starts[..self.ordered], 1, self.bytes);
        leaves.iter().for_each(|leaf| self.gathered.leaf(leaf, &mut marks));
    }

    /// Reads the wanted columns, class by class.
    fn finish(&mut self, cursor: &Cursor<'r>, wants: &[Want]) {
        let kept = |class: &&u32| self.buckets.classes[**class as usize].len() > 0;
        self.parts.extend(self.seen.iter().filter(kept).map(|&class| Part { class, ..NO_PART }));
        self.parts.sort_unstable_by_key(|part| part.class);
        for part in &mut self.parts {
            let bucket = &self.buckets.classes[part.class as usize];
            let event = cursor.plan.events[part.class as usize].as_ref();
            let Some(straight) = event.and_then(|event| event.straight.as_ref()) else {
                continue;
            };
            part.first_time = self.gathered.times.len() as u32;
            part.first_column = self.gathered.columns() as u32;
            part.columns = straight.leaves.len() as u32;
            self.gathered.times(bucket.ticks(), cursor.clock);
            let marks = match straight.fixed {
                Some(_) => bucket.starts(),
                None => bucket.marks(straight.marks as usize),
            };
            let mut marks = Marks::new(marks, straight.marks as usize, self.bytes);
            let want = &wants[part.class as usize];
            for (index, leaf) in straight.leaves.iter().enumerate() {
                let wanted = match want {
                    Want::Count | Want::Times => false,
                    Want::Columns(columns) => columns.get(index).copied().unwrap_or(false),
                    Want::All => true,
                };
                match wanted {
                    true => self.gathered.leaf(leaf, &mut marks),
                    false => self.gathered.skip(),
                }
            }
        }
    }
}
