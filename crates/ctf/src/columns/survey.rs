// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counting through columns: when events happened and who wrote them, and only
//! few of them whole.

use lateralis_model::{Damage, Event, Look, Place, Seen, Slot, Want, Wanted, Writer};

use super::{Batch, Counted};
use crate::reader::Reader;

/// See [`lateralis_model::Source::survey`].
pub fn survey(
    reader: &Reader,
    look: &dyn Fn(u32, u32) -> Look,
    see: &mut dyn FnMut(Seen<'_>),
) -> Vec<Damage> {
    let whole = |stream, event| look(stream, event) == Look::Whole;
    let mut wanted = Wanted::times(reader.trace());
    for (stream, class) in (0..).zip(&reader.trace().stream_classes) {
        let events = 0..class.event_classes.len() as u32;
        // If some events need the detailed path, or events contain the writer of the following
        // ones, their order is needed.
        let plans = &reader.plan().streams[stream as usize].events;
        let names_writers = plans.iter().flatten().any(|plan| plan.names_writer);
        let only_ends = events.clone().all(|event| look(stream, event) == Look::Ends);
        for event in events {
            if only_ends && !names_writers {
                wanted = wanted.with(stream, event, Want::Count);
            } else if whole(stream, event) {
                wanted = wanted.with(stream, event, Want::All);
            }
        }
    }
    let (mut slots, mut written) = (Vec::new(), Vec::new());
    let mut batches = reader.batches(&wanted);
    while let Some(batch) = batches.next_batch() {
        let is_whole = |class| whole(batch.stream_class, class);
        times(batch, &is_whole, &mut slots, see);
        let (stream, stream_class) = (batch.stream, batch.stream_class);
        batch.counted().for_each(|(class, Counted { count, first, last })| {
            see(Seen::Ends { stream, stream_class, class, count, first, last });
        });
        batch.rows().for_each(|event| see(Seen::Event(&event)));
        if !batch.writers.is_empty() {
            writers(batch, &mut written, see);
        }
    }
    batches.take_damage()
}

/// What has columns, class after class.
fn times(
    batch: &Batch<'_>,
    is_whole: &dyn Fn(u32) -> bool,
    slots: &mut Vec<Slot>,
    see: &mut dyn FnMut(Seen<'_>),
) {
    let (stream, stream_class_index) = (batch.stream, batch.stream_class);
    let stream_class = &batch.reader.trace().stream_classes[stream_class_index as usize];
    for part in batch.classes() {
        let (class_index, times) = (part.class_index(), part.times());
        if !is_whole(class_index) {
            let (stream_class, class) = (stream_class_index, class_index);
            see(Seen::Times { stream, stream_class, class, times });
            continue;
        }
        for (at, (&time, &ticks)) in times.iter().zip(part.ticks()).enumerate() {
            slots.clear();
            slots.extend((0..part.columns()).filter_map(|column| part.column(column).slot(at)));
            see(Seen::Event(&Event {
                stream,
                stream_class_index,
                stream_class,
                class_index,
                class: &stream_class.event_classes[class_index as usize],
                ticks: stream_class.clock.map(|_| lateralis_units::Ticks(ticks)),
                time,
                writer: None,
                packet: batch.packet,
                bytes: batch.bytes,
                packet_slots: &batch.packet_slots,
                slots,
            }));
        }
    }
}

/// How many events of each class each thread wrote, those shown whole included: out of columns they have no
/// writer. A thread writes many in a row.
fn writers(batch: &Batch<'_>, counts: &mut Vec<u64>, see: &mut dyn FnMut(Seen<'_>)) {
    let mut report = |writer: Option<Writer>, counts: &mut Vec<u64>| {
        for (class, count) in (0..).zip(counts) {
            let count = std::mem::take(count);
            if let (Some(writer), 1..) = (writer, count) {
                see(Seen::Written { stream_class: batch.stream_class, class, writer, count });
            }
        }
    };
    let mut entries = batch.writers.iter().peekable();
    let mut writer = None;
    for (at, place) in (0..).zip(batch.order().iter()) {
        while let Some(&(_, next)) = entries.next_if(|(from, _)| *from <= at) {
            if writer != Some(next) {
                report(writer, counts);
                writer = Some(next);
            }
        }
        let Place::Columns(class) = place else { continue };
        let class = class as usize;
        if counts.len() <= class {
            counts.resize(class + 1, 0);
        }
        counts[class] += 1;
    }
    report(writer, counts);
}
