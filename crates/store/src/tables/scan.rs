// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads tables of events: parts of a recording as columns of Arrow.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use lateralis_model::{
    Column, ColumnBatch, ColumnRequest, Event, Field, FieldKind, Fields, Interval, Leaf, Place,
    Scope, Slot, Source, StreamIndex, Value, Want, Wanted, Writer, leaves,
};
use lateralis_units::Nanos;

use super::build::{Builder, Chosen, Holds, TooLong};
use super::opened::Opened;
use super::owners::Writers;
use super::shape::{COMMON, Common, Variant};
use super::weighed::{self, Alike};
use super::{BATCH_ROWS, Scan, StoreError, json};
use crate::tail::See;

/// Bytes of a batch, about, above which it is shown before it has all its rows.
const BATCH_BYTES: usize = 16 << 20;

/// What a projected column shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shows {
    Common(Common),
    /// The column with this number behind the common ones.
    Field(usize),
}

/// Where a class tells the thread, the process, the processor and a name: leaves.
#[derive(Debug, Default)]
pub(super) struct Told {
    tid: Option<usize>,
    pid: Option<usize>,
    pub(super) cpu: Option<usize>,
    command: Option<usize>,
}

const TID_FIELDS: [&str; 4] = ["tid", "vtid", "_tid", "_vtid"];
const PID_FIELDS: [&str; 4] = ["pid", "vpid", "_pid", "_vpid"];
const CPU_FIELDS: [&str; 2] = ["cpu_id", "_cpu_id"];
const COMMAND_FIELDS: [&str; 4] = ["comm", "procname", "_procname", "thread_name"];

impl Told {
    fn of(leaves: &[Leaf<'_>]) -> Self {
        let at = |scope: Scope, names: &[&str]| {
            names.iter().find_map(|name| {
                leaves.iter().position(|leaf| leaf.scope == scope && leaf.name == *name)
            })
        };
        let context = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| at(Scope::Own, &[name]).or_else(|| at(Scope::Common, &[name])))
        };
        Self {
            tid: context(&TID_FIELDS),
            pid: context(&PID_FIELDS),
            cpu: at(Scope::Common, &CPU_FIELDS),
            command: context(&COMMAND_FIELDS),
        }
    }
}

/// A class that is read.
pub(super) struct Reading<'s> {
    leaves: Vec<Leaf<'s>>,
    pub(super) told: Told,
    name: &'s str,
    /// Of each leaf the projected columns that show it.
    shown: Vec<Vec<usize>>,
    /// Of the component that its stream stands for.
    label: Option<&'s str>,
    /// Its number among those that are read.
    pub(super) number: u64,
}

/// Reads some parts of one recording.
pub struct Scanner<'s> {
    pub(super) opened: &'s Opened,
    schema: SchemaRef,
    pub(super) shows: Vec<Shows>,
    pub(super) builders: Vec<Builder>,
    /// By stream class and class.
    pub(super) readings: Vec<Vec<Option<Reading<'s>>>>,
    pub(super) scan: &'s Scan,
    pub(super) rows: usize,
    pub(super) left: usize,
    /// Whether events need only be counted.
    counts: bool,
    /// Rows that are alike, put together, where that is asked for and can be.
    pub(super) alike: Option<Alike>,
    /// How many events each row of the batch stands for, where that is asked for.
    pub(super) weights: Option<Vec<i64>>,
    needs_writer: bool,
    needs_names: bool,
    needs_json: bool,
    see: &'s mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    /// Scratch.
    chosen: Vec<u32>,
    who: Vec<Option<Writer>>,
    slots: Vec<Slot>,
    text: String,
    error: Option<StoreError>,
    table: &'s str,
}

/// Of a row what is no field.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) time: Nanos,
    pub(super) stream: u32,
    pub(super) cpu: Option<u32>,
    pub(super) writer: Option<Writer>,
    pub(super) packet: Option<u64>,
    pub(super) command: Option<Field<'a>>,
}

pub(super) type Shown = ControlFlow<()>;

/// Shows events, until it is told that these are enough.
pub type Feed<'f> = dyn FnMut(&mut See<'_>) + 'f;

impl<'s> Scanner<'s> {
    /// Of the classes of a table; `schema` and `holds` are of all its columns.
    pub fn new(
        table: &'s str,
        opened: &'s Opened,
        (schema, holds): (&SchemaRef, &[Holds]),
        variants: impl Iterator<Item = &'s Variant>,
        has_class: bool,
        scan: &'s Scan,
        see: &'s mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Self {
        let commons = if has_class { COMMON.len() } else { COMMON.len() - 2 };
        let columns: Vec<usize> = match &scan.columns {
            Some(columns) => columns.iter().copied().filter(|c| *c < holds.len()).collect(),
            None => (0..holds.len()).collect(),
        };
        let show = |&column: &usize| match column.checked_sub(commons) {
            None => Shows::Common(COMMON[column]),
            Some(field) => Shows::Field(field),
        };
        let shows: Vec<Shows> = columns.iter().map(show).collect();
        let has = |test: fn(Common) -> bool| {
            shows.iter().any(|show| matches!(show, Shows::Common(common) if test(*common)))
        };
        let trace = opened.recording.source.trace();
        let mut readings: Vec<Vec<Option<Reading<'s>>>> = trace
            .stream_classes
            .iter()
            .map(|class| class.event_classes.iter().map(|_| None).collect())
            .collect();
        for (number, variant) in (0..).zip(variants) {
            let stream = &trace.stream_classes[variant.stream_class as usize];
            let class = &stream.event_classes[variant.class as usize];
            let leaves = leaves(stream, class);
            let mut shown = vec![Vec::new(); leaves.len()];
            for (place, show) in shows.iter().enumerate() {
                if let Shows::Field(field) = show
                    && let Some(Some(leaf)) = variant.leaves.get(*field)
                {
                    shown[*leaf].push(place);
                }
            }
            let told = Told::of(&leaves);
            let environment = trace.environment_of(variant.stream_class);
            let label = environment.iter().find(|(name, _)| name == "genode.label");
            let label = label.and_then(|(_, value)| value.as_text());
            readings[variant.stream_class as usize][variant.class as usize] =
                Some(Reading { leaves, told, name: &class.name, shown, label, number });
        }
        let schema = match schema.project(&columns) {
            Ok(schema) if scan.weighs.is_some() => Arc::new(weighed::schema(&schema)),
            Ok(schema) => Arc::new(schema),
            // Every column is one of the schema.
            Err(_) => Arc::clone(schema),
        };
        Self {
            opened,
            schema,
            builders: columns.iter().map(|&column| Builder::new(&holds[column])).collect(),
            readings,
            rows: 0,
            counts: false,
            alike: None,
            weights: scan.weighs.is_some().then(Vec::new),
            left: scan.limit.unwrap_or(usize::MAX),
            needs_writer: has(Common::needs_writer),
            needs_names: has(Common::needs_names),
            needs_json: has(|common| common == Common::Fields),
            shows,
            scan,
            see,
            chosen: Vec::new(),
            who: Vec::new(),
            slots: Vec::new(),
            text: String::new(),
            error: None,
            table,
        }
    }

    /// Reads some parts. Gives the damage found on the way.
    pub fn run(mut self, parts: &[usize]) -> Result<Vec<lateralis_model::Damage>, StoreError> {
        if self.left == 0 {
            return Ok(Vec::new());
        }
        let source = &self.opened.recording.source;
        let mut wanted = Wanted::counts(source.trace());
        self.counts = self.has_rows_alike();
        self.alike = self.puts_together().then(|| {
            let step = self.scan.weighs.unwrap_or_default();
            Alike::new(&self.shows, step)
        });
        for (stream, classes) in (0..).zip(&self.readings) {
            for (index, reading) in (0..).zip(classes) {
                if let (Some(reading), false) = (reading, self.counts) {
                    wanted = wanted.with(stream, index, self.want(reading));
                }
            }
        }
        let request = ColumnRequest { parts, interval: self.scan.interval, wanted: &wanted };
        let damage = source.columns(&request, &mut |batch| self.batch(batch));
        if self.error.is_none() && self.left > 0 {
            let flow = self.show_alike();
            let _ = self.ended(flow);
        }
        if self.error.is_none() && self.rows > 0 {
            let _ = self.flush();
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(damage),
        }
    }

    /// Reads events that are shown to it, each with the number of its packet.
    pub fn run_events(mut self, feed: &mut Feed<'_>) -> Result<(), StoreError> {
        if self.left == 0 {
            return Ok(());
        }
        feed(&mut |event, packet| {
            let of_stream = self.opened.cpus.get(event.stream.0 as usize).copied().flatten();
            let cpu = event.packet.cpu.map(|cpu| cpu.0).or(of_stream);
            let flow = self.event(event, Some(packet), cpu);
            self.ended(flow)
        });
        if self.error.is_none() && self.rows > 0 {
            let _ = self.flush();
        }
        self.error.map_or(Ok(()), Err)
    }

    fn want(&self, reading: &Reading<'_>) -> Want {
        if self.needs_json {
            return Want::All;
        }
        let told = &reading.told;
        let mut columns: Vec<bool> = reading.shown.iter().map(|shown| !shown.is_empty()).collect();
        let mut also = |leaf: Option<usize>, needed: bool| {
            if let (Some(leaf), true) = (leaf, needed) {
                columns[leaf] = true;
            }
        };
        also(told.tid, self.needs_writer);
        also(told.pid, self.needs_writer);
        also(told.command, self.needs_names);
        also(told.cpu, true);
        if columns.contains(&true) { Want::Columns(columns) } else { Want::Times }
    }

    fn batch(&mut self, batch: &dyn ColumnBatch) -> Shown {
        let flow = match (batch.class_count(), batch.row_count()) {
            _ if self.counts && self.alike.is_some() => self.by_counts(batch),
            _ if self.counts => self.by_count(batch),
            (0, 0) => return ControlFlow::Continue(()),
            (_, 0) if self.alike.is_some() => self.by_step(batch),
            (1, 0) if self.has_small_columns(batch) => self.by_column(batch),
            (_, 0) if self.scan.any_order && self.has_small_columns(batch) => self.by_column(batch),
            _ => self.by_event(batch),
        };
        self.ended(flow)
    }

    /// Keeps why it must end.
    fn ended(&mut self, flow: Result<Shown, TooLong>) -> Shown {
        flow.unwrap_or_else(|TooLong| {
            self.error = Some(StoreError::TooLong { table: self.table.to_owned() });
            ControlFlow::Break(())
        })
    }

    pub(super) fn stream_cpu(&self, batch: &dyn ColumnBatch) -> Option<u32> {
        let packet = batch.packet().cpu.map(|cpu| cpu.0);
        packet.or_else(|| self.opened.cpus.get(batch.stream().0 as usize).copied().flatten())
    }

    pub(super) fn passes(&self, time: Nanos, cpu: Option<u32>) -> bool {
        is_inside(self.scan.interval, time)
            && self.scan.cpus.as_ref().is_none_or(|cpus| cpu.is_some_and(|cpu| cpus.contains(&cpu)))
    }

    /// Whether the events of a batch can be added by whole columns, class after class.
    fn has_small_columns(&self, batch: &dyn ColumnBatch) -> bool {
        let is_told_cpu = self.stream_cpu(batch).is_none();
        let can = |index: usize| {
            let class = batch.class(index);
            let reading = reading(&self.readings, batch.stream_class(), class.class);
            let tells = reading.is_some_and(|reading| reading.told.cpu.is_some());
            !(is_told_cpu && tells) && is_small(batch, index, class.columns)
        };
        !self.needs_json && (0..batch.class_count()).all(can)
    }

    /// A batch in which all events have columns, class after class.
    fn by_column(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
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

    /// The events of one class of a batch; `places` are theirs in the order of the batch, if it
    /// is not of this class alone.
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

    /// Who wrote each event of a class of a batch.
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
        let number = |leaf: Option<usize>, event: usize| {
            leaf.and_then(|leaf| slot_number(batch.column(index, leaf).slot(event)?))
        };
        let opened = self.opened;
        self.who.extend((0..class.times.len()).map(|event| {
            let place = places.and_then(|places| places.get(event).copied());
            writers.at(place.unwrap_or(event as u32)).or_else(|| {
                told_writer(
                    opened,
                    number(reading.told.tid, event),
                    number(reading.told.pid, event),
                    (cpu, class.times[event]),
                )
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
                    // Of all events of one class in one packet it is the same.
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

    /// A batch of several classes, or of rows: one event after the other.
    fn by_event(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
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

    /// Whether an event may pass, before its fields are looked at.
    fn passes_early(&self, time: Nanos, cpu: Option<u32>) -> bool {
        match cpu {
            Some(_) => self.passes(time, cpu),
            None => is_inside(self.scan.interval, time),
        }
    }

    /// Whether fields of the events of a class must be looked at; `cpu` is that of its stream.
    fn looks_into(&self, reading: &Reading<'_>, cpu: Option<u32>) -> bool {
        let told = &reading.told;
        reading.shown.iter().any(|shown| !shown.is_empty())
            || (told.cpu.is_some() && cpu.is_none())
            || (self.needs_writer && (told.tid.is_some() || told.pid.is_some()))
            || (self.needs_names && told.command.is_some())
    }

    /// Adds one event.
    fn event(
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
        let cpu = cpu.or_else(|| number(told.cpu));
        if !self.passes(event.time, cpu) {
            return Ok(ControlFlow::Continue(()));
        }
        let writer = match self.needs_writer {
            true => event.writer.or_else(|| {
                told_writer(self.opened, number(told.tid), number(told.pid), (cpu, event.time))
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

    /// So many rows were added.
    pub(super) fn grown(&mut self, rows: usize) -> Shown {
        self.rows += rows;
        self.left -= rows;
        if let Some(weights) = &mut self.weights {
            // Those that came one by one stand for themselves.
            weights.resize(self.rows, 1);
        }
        let bytes = || self.builders.iter().map(Builder::bytes).sum::<usize>();
        if self.rows >= BATCH_ROWS || self.left == 0 || bytes() > BATCH_BYTES {
            self.flush()?;
        }
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn flush(&mut self) -> Shown {
        if self.rows == 0 {
            return ControlFlow::Continue(());
        }
        let mut arrays: Vec<ArrayRef> = self.builders.iter_mut().map(Builder::finish).collect();
        if let Some(weights) = &mut self.weights {
            arrays.push(Arc::new(Int64Array::from(std::mem::take(weights))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        match batch {
            Ok(batch) => (self.see)(batch),
            Err(error) => {
                let (table, reason) = (self.table.to_owned(), error.to_string());
                self.error = Some(StoreError::Arrow { table, reason });
                ControlFlow::Break(())
            }
        }
    }
}

/// Whether texts and lists of a class of a batch are few bytes, so that whole columns can be
/// added.
fn is_small(batch: &dyn ColumnBatch, index: usize, columns: usize) -> bool {
    let bytes = |column| match batch.column(index, column) {
        Column::Spans(spans) => spans.iter().map(|span| span.len() as u64).sum(),
        Column::Lists(lists) => lists.counts().iter().map(|&count| u64::from(count) * 8).sum(),
        _ => 0u64,
    };
    (0..columns).map(bytes).sum::<u64>() <= BATCH_BYTES as u64
}

fn is_inside(interval: Interval, time: Nanos) -> bool {
    interval.begin.is_none_or(|begin| begin <= time) && interval.end.is_none_or(|end| time <= end)
}

/// Of each class of a batch the places of its events in the order of the stream.
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

pub(super) fn reading<'r, 's>(
    readings: &'r [Vec<Option<Reading<'s>>>],
    stream_class: u32,
    class: u32,
) -> Option<&'r Reading<'s>> {
    readings.get(stream_class as usize)?.get(class as usize)?.as_ref()
}

fn slot_number(slot: Slot) -> Option<u32> {
    match slot {
        Slot::Unsigned(value) => Some(value as u32),
        Slot::Signed(value) => Some(value as u32),
        _ => None,
    }
}

/// The thread as contexts tell it, else the one that runs on the processor.
fn told_writer(
    opened: &Opened,
    tid: Option<u32>,
    pid: Option<u32>,
    (cpu, time): (Option<u32>, Nanos),
) -> Option<Writer> {
    match tid {
        Some(tid) => Some(Writer { pid: pid.unwrap_or_else(|| opened.owners().pid(tid)), tid }),
        None => opened.owners().running(cpu?, time),
    }
}

/// Adds what a row says besides its fields.
pub(super) fn common_cell(
    builder: &mut Builder,
    common: Common,
    opened: &Opened,
    reading: &Reading<'_>,
    about: &About<'_>,
) -> Result<(), TooLong> {
    let (pid, tid) = match about.writer {
        Some(writer) => (Some(writer.pid), Some(writer.tid)),
        None => (None, None),
    };
    let process = || pid.and_then(|pid| opened.owners().process(pid));
    let thread = || tid.and_then(|tid| opened.owners().thread(tid));
    match common {
        Common::Time => builder.int(about.time.0),
        Common::Recording => {
            return builder.text(opened.label_of(StreamIndex(about.stream)));
        }
        Common::Stream => builder.int(i64::from(about.stream)),
        Common::Cpu => builder.int(about.cpu.map(i64::from)),
        Common::Pid => builder.int(about.writer.map(|writer| i64::from(writer.pid))),
        Common::Tid => builder.int(about.writer.map(|writer| i64::from(writer.tid))),
        Common::Packet => builder.int(about.packet.map(|packet| packet as i64)),
        Common::Process => return named(builder, pid, &process, about),
        Common::Thread => return named(builder, tid, &thread, about),
        Common::Application => {
            return match reading.label {
                Some(label) => builder.text(label),
                None => named(builder, pid, &process, about),
            };
        }
        Common::Class => {
            return builder.word_of(reading.number, || Some(Cow::Borrowed(reading.name)));
        }
        Common::Fields => builder.null(),
    }
    Ok(())
}

/// Adds the name of a process or thread: as it was told, else the event's own word for it.
fn named<'o>(
    builder: &mut Builder,
    number: Option<u32>,
    name: &dyn Fn() -> Option<&'o str>,
    about: &About<'_>,
) -> Result<(), TooLong> {
    match (number, about.command) {
        // The event's own word may differ each time.
        (_, Some(command)) => match name() {
            Some(name) => builder.text(name),
            None => builder.text(command.as_text().as_deref()),
        },
        (Some(number), None) => builder.word_of(number.into(), || name().map(Cow::Borrowed)),
        (None, None) => {
            builder.null();
            Ok(())
        }
    }
}

/// Shows the leaves of an event, numbered as [`leaves`] does.
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
