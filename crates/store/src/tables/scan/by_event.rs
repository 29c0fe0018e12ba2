// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Adds batches of several classes, or of rows, event by event.

use std::ops::ControlFlow;

use lateralis_model::{ColumnBatch, Event, Field, FieldKind, Fields, Place, Slot, Source, Value};
use lateralis_units::Nanos;

use super::told::{settled, told_writer};
use super::{About, Reading, Scanner, Shown, Shows, common_cell, is_inside, reading};
use crate::tables::build::TooLong;
use crate::tables::json;
use crate::tables::owners::Writers;
use crate::tables::shape::Common;

impl Scanner<'_> {
    /// A batch of several classes, or of rows: event by event.
    pub(super) fn by_event(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
        let mut next = vec![0; batch.class_count()];
        let mut rows = 0;
        let mut writers = Writers::new(batch);
        let fixed = self.stream_cpu(batch);
        let stream_class = batch.stream_class();
        let trace = self.opened.recording.source.trace();
        let Some(stream) = trace.stream_classes.get(stream_class as usize) else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut places = vec![usize::MAX; stream.event_classes.len()];
        for index in 0..next.len() {
            places[batch.class(index).class as usize] = index;
        }
        let looks = |index: usize| {
            let reading = reading(&self.readings, stream_class, batch.class(index).class);
            reading.is_some_and(|reading| self.needs_json || self.looks_into(reading, fixed))
        };
        let looks: Vec<bool> = (0..next.len()).map(looks).collect();
        let mut slots = std::mem::take(&mut self.slots);
        for (at, place) in (0..).zip(batch.order().iter()) {
            let of_run = writers.at(at);
            let flow = match place {
                Place::Row(_) => {
                    let event = batch.row(rows);
                    rows += 1;
                    self.event(&event, batch.packet_number(), fixed)?
                }
                Place::Columns(class_index) => {
                    let index = places[class_index as usize];
                    let (class, event) = (batch.class(index), next[index]);
                    next[index] += 1;
                    if !self.passes_early(class.times[event], fixed) {
                        continue;
                    }
                    slots.clear();
                    if looks[index] {
                        slots.extend((0..class.columns).map(|column| {
                            batch.column(index, column).slot(event).unwrap_or(Slot::Unsigned(0))
                        }));
                    }
                    let event = Event {
                        stream: batch.stream(),
                        stream_class_index: stream_class,
                        stream_class: stream,
                        class_index,
                        class: &stream.event_classes[class_index as usize],
                        ticks: None,
                        time: class.times[event],
                        writer: of_run,
                        packet: batch.packet(),
                        bytes: batch.bytes(),
                        packet_slots: &[],
                        slots: &slots,
                    };
                    self.event(&event, batch.packet_number(), fixed)?
                }
            };
            if flow.is_break() {
                self.slots = slots;
                return Ok(flow);
            }
        }
        self.slots = slots;
        Ok(ControlFlow::Continue(()))
    }

    /// Whether an event may be selected, before its fields are read.
    fn passes_early(&self, time: Nanos, cpu: Option<u32>) -> bool {
        match cpu {
            Some(_) => self.passes(time, cpu),
            None => is_inside(self.scan.interval, time),
        }
    }

    /// Whether fields of the events of a class must be read; `cpu` is that of its stream.
    fn looks_into(&self, reading: &Reading<'_>, cpu: Option<u32>) -> bool {
        let told = &reading.told;
        reading.shown.iter().any(|shown| !shown.is_empty())
            || (told.cpu.is_some() && cpu.is_none())
            || (self.needs_writer && (told.tid.is_some() || told.pid.is_some()))
            || (self.needs_names && told.command.is_some())
    }

    /// Adds one event.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        packet: Option<u64>,
        cpu: Option<u32>,
    ) -> Result<Shown, TooLong> {
        let found = reading(&self.readings, event.stream_class_index, event.class_index);
        let Some(reading) = found else { return Ok(ControlFlow::Continue(())) };
        let told = &reading.told;
        let mut fields: Vec<Option<Field<'_>>> = Vec::new();
        if self.looks_into(reading, cpu) {
            fields.resize(reading.leaves.len(), None);
            each_leaf(event, &mut |leaf, field| {
                if let Some(place) = fields.get_mut(leaf) {
                    *place = Some(field);
                }
            });
        }
        let number = |leaf: Option<usize>| {
            let field = fields.get(leaf?).copied().flatten()?;
            field.as_u64().map(|number| number as u32)
        };
        let host = event.stream_class.host;
        let cpu = cpu.or_else(|| number(told.cpu).map(|cpu| host.cpu(cpu)));
        let thread = |leaf: Option<usize>| number(leaf).map(|number| host.thread(number));
        if !self.passes(event.time, cpu) {
            return Ok(ControlFlow::Continue(()));
        }
        let writer = match self.needs_writer {
            true => event.writer.map(|writer| settled(self.opened, writer)).or_else(|| {
                let thread = (thread(told.tid), thread(told.pid));
                told_writer(self.opened, told, thread, (cpu, event.time))
            }),
            false => None,
        };
        let about = About {
            time: event.time,
            stream: event.stream.0,
            cpu,
            writer,
            packet,
            command: told.command.and_then(|leaf| fields.get(leaf).copied().flatten()),
        };
        let mut done = [false; 64];
        let mut many = Vec::new();
        let done = match done.get_mut(..self.builders.len()) {
            Some(done) => done,
            None => {
                many.resize(self.builders.len(), false);
                many.as_mut_slice()
            }
        };
        for (leaf, shown) in reading.shown.iter().enumerate() {
            let field = fields.get(leaf).copied().flatten();
            for &place in shown {
                if let Some(field) = field {
                    self.builders[place].field(field)?;
                    done[place] = true;
                }
            }
        }
        for (place, show) in self.shows.iter().enumerate() {
            match *show {
                Shows::Field(_) if !done[place] => self.builders[place].null(),
                Shows::Field(_) => {}
                Shows::Common(Common::Fields) => {
                    self.text.clear();
                    json::event(&mut self.text, event);
                    self.builders[place].text(self.text.as_str())?;
                }
                Shows::Common(common) => {
                    let builder = &mut self.builders[place];
                    common_cell(builder, common, self.opened, reading, &about)?;
                }
            }
        }
        Ok(self.grown(1))
    }
}

/// Visits the leaves of an event, numbered as by [`leaves`].
fn each_leaf<'a>(event: &Event<'a>, see: &mut dyn FnMut(usize, Field<'a>)) {
    fn below<'a>(fields: Fields<'a>, next: &mut usize, see: &mut dyn FnMut(usize, Field<'a>)) {
        for (member, field) in fields {
            match (&member.class.kind, field.value()) {
                (FieldKind::Struct(_), Value::Struct(inner)) => below(inner, next, see),
                _ => {
                    see(*next, field);
                    *next += 1;
                }
            }
        }
    }
    let mut next = 0;
    for fields in [event.common_context(), event.context(), event.payload()].into_iter().flatten() {
        below(fields, &mut next, see);
    }
}
