// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads tables of events: parts of a recording as Arrow columns.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use lateralis_model::role::PHASE;
use lateralis_model::{
    ColumnBatch, ColumnRequest, Event, Field, Interval, Leaf, Slot, Source, Want, Wanted, Writer,
    leaves,
};
use lateralis_units::Nanos;

use super::build::{Builder, Holds, TooLong};
use super::opened::Opened;
use super::shape::{COMMON, Common, Variant};
use super::weighed::{self, Alike};
use super::{BATCH_ROWS, Scan, StoreError};
use crate::tail::See;

mod by_column;
mod by_event;
mod cells;
mod told;

pub(super) use cells::common_cell;
pub(super) use told::Told;

/// Approximate size in bytes above which a batch is delivered before it has all its rows.
const BATCH_BYTES: usize = 16 << 20;

/// Content of a projected column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shows {
    Common(Common),
    /// The column with this number after the common ones.
    Field(usize),
}

/// A class that is being read.
pub(super) struct Reading<'s> {
    leaves: Vec<Leaf<'s>>,
    pub(super) told: Told,
    name: &'s str,
    phase: Option<&'s str>,
    /// Projected columns of each leaf.
    shown: Vec<Vec<usize>>,
    /// Name of the recording of its stream.
    label: Option<&'s str>,
    /// Its number among the classes being read.
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
    /// Combined rows, if requested and possible.
    pub(super) alike: Option<Alike>,
    /// Number of events that each row of the batch represents, if requested.
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

/// Properties of a row besides its fields.
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

/// Feeds events, until the callback breaks.
pub type Feed<'f> = dyn FnMut(&mut See<'_>) + 'f;

impl<'s> Scanner<'s> {
    /// For the classes of a table; `schema` and `holds` are for all its columns.
    pub fn new(
        table: &'s str,
        opened: &'s Opened,
        (schema, holds): (&SchemaRef, &[Holds]),
        variants: impl Iterator<Item = &'s Variant>,
        has_class: bool,
        scan: &'s Scan,
        see: &'s mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Self {
        let commons = if has_class { COMMON.len() } else { COMMON.len() - 3 };
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
            let told = Told::of(&class.name, &leaves);
            let environment = trace.environment_of(variant.stream_class);
            let label = environment.iter().find(|(name, _)| name == "genode.label");
            let label = label.and_then(|(_, value)| value.as_text());
            readings[variant.stream_class as usize][variant.class as usize] = Some(Reading {
                leaves,
                told,
                name: &class.name,
                phase: class.attribute(PHASE),
                shown,
                label,
                number,
            });
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

    /// Reads some parts. Returns the damage found.
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
        if let Some(by) = self.count_by() {
            wanted = wanted.or_counted(by);
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

    /// Reads events from a feed, each with the number of its packet.
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

    /// Reads the events that `contains` selects, in the order of time. Returns the damage found on the way.
    pub fn run_selected(
        mut self,
        contains: &dyn Fn(&Event<'_>) -> bool,
    ) -> Result<Vec<lateralis_model::Damage>, StoreError> {
        if self.left == 0 {
            return Ok(Vec::new());
        }
        let source = &self.opened.recording.source;
        let mut numbers: HashMap<(u32, u32, u64), u64> = HashMap::new();
        if self.shows.iter().any(|show| matches!(show, Shows::Common(Common::Packet))) {
            let _ = source.packets(&mut |stream, number, packet, _| {
                numbers.insert((stream.0, packet.file, packet.offset_bytes), number);
                ControlFlow::Continue(())
            });
        }
        let mut events = source.events_in(self.scan.interval);
        while events.advance() {
            let event = events.event();
            if !contains(&event) {
                continue;
            }
            let place = (event.stream.0, event.packet.file, event.packet.offset_bytes);
            let of_stream = self.opened.cpus.get(event.stream.0 as usize).copied().flatten();
            let cpu = event.packet.cpu.map(|cpu| cpu.0).or(of_stream);
            let flow = self.event(&event, numbers.get(&place).copied(), cpu);
            if self.ended(flow).is_break() {
                break;
            }
        }
        if self.error.is_none() && self.rows > 0 {
            let _ = self.flush();
        }
        self.error.map_or_else(|| Ok(events.damage()), Err)
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
            (0, 0) if batch.counted_at().is_none() => return ControlFlow::Continue(()),
            (_, 0) if self.alike.is_some() => self.by_step(batch),
            (1, 0) if self.has_small_columns(batch) => self.by_column(batch),
            (_, 0) if self.scan.any_order && self.has_small_columns(batch) => self.by_column(batch),
            _ => self.by_event(batch),
        };
        self.ended(flow)
    }

    /// Stores the reason for ending.
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

    /// Rows were added.
    pub(super) fn grown(&mut self, rows: usize) -> Shown {
        self.rows += rows;
        self.left -= rows;
        if let Some(weights) = &mut self.weights {
            // Rows added one by one represent one event each.
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

pub(super) fn is_inside(interval: Interval, time: Nanos) -> bool {
    interval.begin.is_none_or(|begin| begin <= time) && interval.end.is_none_or(|end| time <= end)
}

pub(super) fn reading<'r, 's>(
    readings: &'r [Vec<Option<Reading<'s>>>],
    stream_class: u32,
    class: u32,
) -> Option<&'r Reading<'s>> {
    readings.get(stream_class as usize)?.get(class as usize)?.as_ref()
}
