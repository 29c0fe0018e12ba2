// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches as every format has them, and the pieces of a trace that they are asked of.

use std::ops::ControlFlow;

use lateralis_model::{
    ClassBatch, Column, ColumnBatch, ColumnRequest, Damage, Event, Fields, Interval, Packet,
    PartSummary, Places, StreamIndex, Want, Wanted, Writer,
};
use lateralis_units::Ticks;

use super::batches::{Batches, Unit};
use super::{Batch, ClassColumns};
use crate::reader::{Reader, Stream};

impl ColumnBatch for Batch<'_> {
    fn stream(&self) -> StreamIndex {
        self.stream
    }

    fn stream_class(&self) -> u32 {
        self.stream_class
    }

    fn packet(&self) -> &Packet {
        self.packet
    }

    fn packet_number(&self) -> Option<u64> {
        Some(self.packet_number)
    }

    fn packet_context(&self) -> Option<Fields<'_>> {
        Batch::packet_context(self)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn counts(&self, see: &mut dyn FnMut(u32, u64)) {
        Batch::counts(self).for_each(|(class, count)| see(class, count));
    }

    fn counted_at(&self) -> Option<lateralis_units::Nanos> {
        self.counted_at
    }

    fn order(&self) -> Places<'_> {
        Batch::order(self)
    }

    fn times_in_order(&self) -> Option<&[lateralis_units::Nanos]> {
        Batch::times_in_order(self)
    }

    fn column_in_order(&self, index: usize) -> Column<'_> {
        Batch::column_in_order(self, index)
    }

    fn writers(&self) -> &[(u32, Writer)] {
        &self.writers
    }

    fn class_count(&self) -> usize {
        self.parts.len()
    }

    fn class(&self, index: usize) -> ClassBatch<'_> {
        let columns = ClassColumns { batch: self, part: &self.parts[index] };
        ClassBatch {
            class: columns.class_index(),
            ticks: columns.ticks(),
            times: columns.times(),
            columns: columns.columns(),
        }
    }

    fn column(&self, class: usize, column: usize) -> Column<'_> {
        ClassColumns { batch: self, part: &self.parts[class] }.column(column)
    }

    fn row_count(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize) -> Event<'_> {
        self.event_of(&self.rows[index])
    }
}

/// See [`lateralis_model::Source::parts`].
pub fn parts(reader: &Reader) -> Vec<PartSummary> {
    let part = |unit: &Unit| {
        let stream = &reader.streams()[unit.stream.0 as usize];
        let packets = &stream.packets[unit.packets.clone()];
        let times = unit.packets.clone().map(|number| covered(reader, stream, number));
        let first = packets.first().and_then(|found| found.packet.cpu);
        let mut begin = times.clone().map(|interval| interval.begin);
        let mut end = times.map(|interval| interval.end);
        PartSummary {
            stream: Some(unit.stream),
            stream_class: Some(stream.class),
            interval: Interval {
                begin: begin.try_fold(None, least).flatten(),
                end: end.try_fold(None, greatest).flatten(),
            },
            cpu: first.filter(|_| packets.iter().all(|found| found.packet.cpu == first)),
            bytes: packets.iter().map(|found| found.packet.size_bytes).sum(),
            events: None,
        }
    };
    reader.units().iter().map(part).collect()
}

type Time = Option<lateralis_units::Nanos>;

/// The earlier time; nothing at all if one of them is not known.
fn least(so_far: Time, next: Time) -> Option<Time> {
    next.map(|next| Some(so_far.map_or(next, |time| time.min(next))))
}

fn greatest(so_far: Time, next: Time) -> Option<Time> {
    next.map(|next| Some(so_far.map_or(next, |time| time.max(next))))
}

/// The time that a packet covers: up to the end that it contains, from the start that it contains
/// or the end of the previous one. Some writers start a packet later than its first event [barectf
/// 2], so the start of the first packet of a stream is unknown.
fn covered(reader: &Reader, stream: &Stream, number: usize) -> Interval {
    let nanos = |ticks: Option<Ticks>| reader.nanos(stream.class, ticks?);
    let packet = &stream.packets[number].packet;
    let before = number.checked_sub(1).and_then(|before| stream.packets.get(before));
    let before = before.and_then(|before| nanos(before.packet.end));
    let begin = nanos(packet.begin).zip(before).map(|(begin, before)| begin.min(before));
    Interval { begin, end: nanos(packet.end) }
}

/// See [`lateralis_model::Source::columns`].
pub fn columns(
    reader: &Reader,
    request: &ColumnRequest<'_>,
    see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
) -> Vec<Damage> {
    let filled;
    let wanted = match fits(reader, request.wanted) {
        true => request.wanted,
        false => {
            filled = fill(reader, request.wanted);
            &filled
        }
    };
    let units = reader.units();
    let chosen = request.parts.iter().filter_map(|&part| units.get(part));
    let mut pieces = Vec::new();
    for unit in chosen {
        inside(reader, unit, request.interval, &mut pieces);
    }
    let mut batches = Batches::of_units(reader, wanted, pieces);
    while let Some(batch) = batches.next_batch() {
        if see(batch).is_break() {
            batches.leave();
            break;
        }
    }
    batches.take_damage()
}

/// Whether something is said of every class.
fn fits(reader: &Reader, wanted: &Wanted) -> bool {
    let classes = &reader.trace().stream_classes;
    (0..)
        .zip(classes)
        .all(|(index, class)| wanted.classes(index).len() == class.event_classes.len())
}

/// The same where nothing is wanted of classes of which nothing is said.
fn fill(reader: &Reader, wanted: &Wanted) -> Wanted {
    let mut filled = Wanted::counts(reader.trace());
    for stream in 0..reader.trace().stream_classes.len() as u32 {
        for (event, want) in (0..).zip(wanted.classes(stream)).filter(|(_, w)| **w != Want::Count) {
            filled = filled.with(stream, event, want.clone());
        }
    }
    filled
}

/// The packets of a unit that an interval touches. A packet that does not contain its start needs
/// the previous one.
fn inside(reader: &Reader, unit: &Unit, interval: Interval, pieces: &mut Vec<Unit>) {
    if interval == Interval::default() {
        return pieces.push(unit.clone());
    }
    let stream = &reader.streams()[unit.stream.0 as usize];
    let packets = &stream.packets[unit.packets.clone()];
    let touches = |number: usize| {
        let covered = covered(reader, stream, number);
        let before = covered.end.zip(interval.begin).is_some_and(|(end, begin)| end < begin);
        let after = covered.begin.zip(interval.end).is_some_and(|(begin, end)| begin > end);
        !before && !after
    };
    let mut needed = false;
    let mut piece: Option<Unit> = None;
    let mut found = Vec::new();
    for (index, packet) in packets.iter().enumerate().rev() {
        let number = unit.packets.start + index;
        if needed || touches(number) {
            let end = piece.as_ref().map_or(number + 1, |piece| piece.packets.end);
            piece = Some(Unit { stream: unit.stream, packets: number..end });
            needed = packet.packet.begin.is_none();
        } else {
            found.extend(piece.take());
        }
    }
    found.extend(piece);
    pieces.extend(found.into_iter().rev());
}
