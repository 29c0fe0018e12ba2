// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Adds batches whose events have columns, class by class.

use std::ops::ControlFlow;

use lateralis_model::{Column, ColumnBatch, Field, Interval, Place};

use super::told::{settled, slot_number, told_writer};
use super::{About, BATCH_BYTES, Scanner, Shown, Shows, common_cell, reading};
use crate::BATCH_ROWS;
use crate::tables::build::{Chosen, TooLong};
use crate::tables::owners::Writers;
use crate::tables::shape::Common;

impl Scanner<'_> {
    /// Whether the events of a batch can be added by whole columns, class by class.
    pub(super) fn has_small_columns(&self, batch: &dyn ColumnBatch) -> bool {
        let is_told_cpu = self.stream_cpu(batch).is_none();
        let can = |index: usize| {
            let class = batch.class(index);
            let reading = reading(&self.readings, batch.stream_class(), class.class);
            let tells = reading.is_some_and(|reading| reading.told.cpu.is_some());
            !(is_told_cpu && tells) && is_small(batch, index, class.columns)
        };
        !self.needs_json && (0..batch.class_count()).all(can)
    }

    /// A batch in which all events have columns, class by class.
    pub(super) fn by_column(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
        let places = match batch.class_count() {
            2.. if self.needs_writer && !batch.writers().is_empty() => places_of(batch),
            _ => Vec::new(),
        };
        for index in 0..batch.class_count() {
            let flow = self.class(batch, index, places.get(index).map(Vec::as_slice))?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Events of one class of a batch; `places` are their positions in the order of the batch, if that
    /// has other classes as well.
    fn class(
        &mut self,
        batch: &dyn ColumnBatch,
        index: usize,
        places: Option<&[u32]>,
    ) -> Result<Shown, TooLong> {
        let class = batch.class(index);
        if reading(&self.readings, batch.stream_class(), class.class).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        let fixed = self.stream_cpu(batch);
        let count = class.times.len();
        let everything = self.scan.interval == Interval::default() && self.scan.cpus.is_none();
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        if !everything {
            let passing = (0..count).filter(|&event| self.passes(class.times[event], fixed));
            chosen.extend(passing.map(|event| event as u32));
        }
        let total = if everything { count } else { chosen.len() };
        if self.needs_writer && total > 0 {
            self.find_writers(batch, index, places, fixed);
        }
        let mut from = 0;
        let mut flow = ControlFlow::Continue(());
        while from < total && flow.is_continue() {
            let room = (BATCH_ROWS - self.rows).min(self.left).min(total - from);
            let piece = match everything {
                true => Chosen::Range(from..from + room),
                false => Chosen::These(&chosen[from..from + room]),
            };
            self.append(batch, index, fixed, &piece)?;
            from += room;
            flow = self.grown(room);
        }
        self.chosen = chosen;
        Ok(flow)
    }

    /// Writers of the events of a class of a batch.
    fn find_writers(
        &mut self,
        batch: &dyn ColumnBatch,
        index: usize,
        places: Option<&[u32]>,
        cpu: Option<u32>,
    ) {
        let class = batch.class(index);
        let Some(reading) = reading(&self.readings, batch.stream_class(), class.class) else {
            return;
        };
        self.who.clear();
        let mut writers = Writers::new(batch);
        let opened = self.opened;
        let host = opened.annotated().host_of(batch.stream_class());
        let number = |leaf: Option<usize>, event: usize| {
            let number = slot_number(batch.column(index, leaf?).slot(event)?);
            number.map(|number| host.thread(number))
        };
        self.who.extend((0..class.times.len()).map(|event| {
            let place = places.and_then(|places| places.get(event).copied());
            let writer = writers.at(place.unwrap_or(event as u32));
            writer.map(|writer| settled(opened, writer)).or_else(|| {
                let told = &reading.told;
                let thread = (number(told.tid, event), number(told.pid, event));
                told_writer(opened, told, thread, (cpu, class.times[event]))
            })
        }));
    }

    /// Adds some events of one class of a batch.
    fn append(
        &mut self,
        batch: &dyn ColumnBatch,
        index: usize,
        cpu: Option<u32>,
        piece: &Chosen<'_>,
    ) -> Result<(), TooLong> {
        let class = batch.class(index);
        let Some(reading) = reading(&self.readings, batch.stream_class(), class.class) else {
            return Ok(());
        };
        let command = reading.told.command.filter(|_| self.needs_names);
        let about = |event: usize| About {
            time: class.times[event],
            stream: batch.stream().0,
            cpu,
            writer: self.who.get(event).copied().flatten(),
            packet: batch.packet_number(),
            command: None,
        };
        for (show, builder) in self.shows.iter().zip(&mut self.builders) {
            let Shows::Common(common) = *show else { continue };
            let Some(first) = piece.first() else { continue };
            match common {
                Common::Time => piece.ints(builder, |event| class.times[event].0),
                Common::Tid if !self.who.is_empty() => {
                    piece.each(|event| builder.int(about(event).writer.map(|w| i64::from(w.tid))));
                }
                _ if !common.needs_writer() => {
                    // The same for all events of one class in one packet.
                    common_cell(builder, common, self.opened, reading, &about(first))?;
                    builder.repeat_last(piece.len() - 1)?;
                }
                _ => {
                    let mut result = Ok(());
                    piece.each(|event| {
                        if result.is_ok() {
                            let slot =
                                command.and_then(|leaf| batch.column(index, leaf).slot(event));
                            let slot = slot.as_slice();
                            let command = command.filter(|_| !slot.is_empty()).map(|leaf| {
                                Field::new(reading.leaves[leaf].class, slot, batch.bytes())
                            });
                            let about = About { command, ..about(event) };
                            result = common_cell(builder, common, self.opened, reading, &about);
                        }
                    });
                    result?;
                }
            }
        }
        let mut done = vec![false; self.builders.len()];
        for (leaf, shown) in reading.shown.iter().enumerate() {
            for &place in shown {
                let (class, column) = (reading.leaves[leaf].class, batch.column(index, leaf));
                self.builders[place].column(class, &column, piece, batch.bytes())?;
                done[place] = true;
            }
        }
        for (place, show) in self.shows.iter().enumerate() {
            if matches!(show, Shows::Field(_)) && !done[place] {
                (0..piece.len()).for_each(|_| self.builders[place].null());
            }
        }
        Ok(())
    }
}

/// Whether texts and lists of a class of a batch are small, so that whole columns can be added.
fn is_small(batch: &dyn ColumnBatch, index: usize, columns: usize) -> bool {
    let bytes = |column| match batch.column(index, column) {
        Column::Spans(spans) => spans.iter().map(|span| span.len() as u64).sum(),
        Column::Lists(lists) => lists.counts().iter().map(|&count| u64::from(count) * 8).sum(),
        _ => 0u64,
    };
    (0..columns).map(bytes).sum::<u64>() <= BATCH_BYTES as u64
}

/// Positions of the events of each class of a batch in stream order.
fn places_of(batch: &dyn ColumnBatch) -> Vec<Vec<u32>> {
    let classes: Vec<u32> =
        (0..batch.class_count()).map(|index| batch.class(index).class).collect();
    let mut places = vec![Vec::new(); classes.len()];
    for (at, place) in (0..).zip(batch.order().iter()) {
        // By ascending class.
        if let Place::Columns(class) = place
            && let Ok(index) = classes.binary_search(&class)
        {
            places[index].push(at);
        }
    }
    places
}
