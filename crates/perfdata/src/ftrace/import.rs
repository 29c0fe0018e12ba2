// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From pages to events of the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use lateralis_model::{
    Builder, Clock, DamageReason, EnvValue, FieldClass, Interval, Loss, LossCause, MemoryTrace,
    StreamClass, StreamIndex, Writer,
};
use lateralis_units::{CpuId, Nanos, Ticks};

use super::options::Options;
use super::page::records;
use crate::notes::Notes;
use crate::row::Row;
use crate::tracepoint::Format;
use crate::tracing_data::TracingData;
use crate::wire::unsigned;

/// Threads that no name is known of, and the idle thread, as trace-cmd calls
/// them.
const UNKNOWN: &str = "<...>";
const IDLE: &str = "<idle>";

/// Pages of one CPU.
#[derive(Debug)]
pub struct PerCpu<'a> {
    /// Its number.
    pub cpu: u32,
    /// Where they lie in the file.
    pub offset: u64,
    /// They.
    pub pages: Cow<'a, [u8]>,
}

/// One buffer of the kernel: the main one has no name.
#[derive(Debug)]
pub struct Buffer<'a> {
    /// Name of its instance.
    pub name: String,
    /// `local`, `mono`, `x86-tsc`, …
    pub clock: String,
    /// Bytes of its pages.
    pub page_bytes: u32,
    /// Its CPUs.
    pub cpus: Vec<PerCpu<'a>>,
}

/// Streams that share a clock share their classes.
#[derive(Debug, Default)]
struct Group {
    class: u32,
    clock: Clock,
    events: HashMap<u16, Option<(u32, Rc<Format>)>>,
}

/// Puts the events of buffers into a trace.
pub struct Importer<'o> {
    builder: Builder,
    data: TracingData,
    options: &'o Options,
    notes: Notes,
    groups: BTreeMap<String, Group>,
    row: Row,
    full: bool,
}

impl<'o> Importer<'o> {
    /// Begins a trace of this format.
    pub fn new(
        format: &str,
        limit_bytes: u64,
        data: TracingData,
        options: &'o Options,
        notes: Notes,
    ) -> Self {
        let mut builder = MemoryTrace::builder(format, limit_bytes);
        let environment = &mut builder.describe().environment;
        environment.push(("domain".to_owned(), EnvValue::Text("kernel".to_owned())));
        environment.push(("tracer_name".to_owned(), EnvValue::Text("ftrace".to_owned())));
        environment.extend(options.environment.iter().cloned());
        for (&tid, name) in &data.cmdlines {
            builder.names().threads.insert(tid, name.clone());
        }
        Self {
            builder,
            data,
            options,
            notes,
            groups: BTreeMap::new(),
            row: Row::default(),
            full: false,
        }
    }

    /// Adds the events of a buffer.
    pub fn buffer(&mut self, buffer: &Buffer<'_>) {
        if buffer.cpus.is_empty() {
            return;
        }
        let mut group = match self.groups.remove(&buffer.clock) {
            Some(group) => group,
            None => self.group(&buffer.clock),
        };
        for cpu in &buffer.cpus {
            let name = match buffer.name.as_str() {
                "" => format!("cpu{}", cpu.cpu),
                name => format!("{name}/cpu{}", cpu.cpu),
            };
            let stream = self.builder.stream(group.class, &name, Some(CpuId(cpu.cpu)));
            self.pages(buffer, cpu, stream, &mut group);
        }
        self.groups.insert(buffer.clock.clone(), group);
    }

    fn group(&mut self, name: &str) -> Group {
        let date = self.options.date_nanos.unwrap_or(0);
        let mut clock = Clock::new(name, 0, 0, date);
        clock.description = "trace clock of the kernel".to_owned();
        clock.unix_epoch = self.options.date_nanos.is_some() || name == "tai";
        if name == "counter" {
            self.notes.remark("the clock counts events: times are numbers, not nanoseconds");
        } else if name == "x86-tsc" && self.options.tsc.is_none() {
            self.notes.remark("times are readings of the processor's counter, not nanoseconds");
        }
        let clock_index = self.builder.clock(clock.clone());
        let common = FieldClass::structure([
            ("cpu_id", FieldClass::unsigned(32, lateralis_model::Base::Decimal)),
            ("tid", FieldClass::signed(32)),
            ("comm", FieldClass::text()),
        ]);
        let class = self.builder.stream_class(StreamClass {
            name: Some("ftrace".to_owned()),
            clock: Some(clock_index),
            common_context: Some(common),
            ..StreamClass::default()
        });
        Group { class, clock, events: HashMap::new() }
    }

    fn pages(
        &mut self,
        buffer: &Buffer<'_>,
        cpu: &PerCpu<'_>,
        stream: StreamIndex,
        group: &mut Group,
    ) {
        let mut last: Option<Nanos> = None;
        let page_bytes = (buffer.page_bytes as usize).max(64);
        for (index, page) in cpu.pages.chunks(page_bytes).enumerate() {
            if self.full {
                return;
            }
            let place = cpu.offset + (index * page_bytes) as u64;
            let layout = self.data.layout;
            let time = |importer: &Self, group: &Group, stamp| {
                let ticks = importer.options.nanos(&buffer.clock, stamp);
                group.clock.nanos(Ticks(ticks))
            };
            let mut latest = None;
            let end = records(page, layout, |stamp, record, at| {
                latest = Some(stamp);
                let ticks = self.options.nanos(&buffer.clock, stamp);
                let at = place + at as u64;
                self.record(stream, group, cpu.cpu, ticks, record, at, last);
                !self.full
            });
            if let Some(count) = end.missed {
                let interval = Interval { begin: last, end: Some(time(self, group, end.begin)) };
                let cause = LossCause::Full;
                self.builder.loss(Loss { stream, cause, count, interval });
            }
            if let Some((at, reason)) = end.damage.filter(|_| !self.full) {
                let begin = place + at as u64;
                let known = latest.map(|stamp| time(self, group, stamp)).or(last);
                self.notes.damage(begin, place + page.len() as u64, reason, known);
            }
            last = latest.map(|stamp| time(self, group, stamp)).or(last);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn record(
        &mut self,
        stream: StreamIndex,
        group: &mut Group,
        cpu: u32,
        ticks: u64,
        record: &[u8],
        at: u64,
        last: Option<Nanos>,
    ) {
        let Self { builder, data, notes, row, .. } = self;
        let order = data.order;
        let damaged = |notes: &mut Notes, reason| {
            notes.damage(at, at + record.len() as u64, reason, last);
        };
        let id = record.get(..2).and_then(|bytes| unsigned(bytes, order));
        let Some(id) = id.map(|id| id as u16) else {
            return damaged(notes, DamageReason::FieldBeyondContent);
        };
        let class = group.events.entry(id).or_insert_with(|| {
            let format = data.catalog.class_of(id)?;
            let mut class = format.event_class();
            class.context = (!format.common.is_empty()).then(|| format.common_class());
            Some((builder.event_class(group.class, class), format))
        });
        let Some((class, format)) = class else {
            return damaged(notes, DamageReason::UnknownEventClass { id: u64::from(id) });
        };
        let thread = format.thread_offset.and_then(|offset| {
            record.get(offset..offset + 4).and_then(|bytes| unsigned(bytes, order))
        });
        let tid = thread.map(|tid| tid as u32);
        let comm = match tid {
            Some(0) => IDLE,
            Some(tid) => data.cmdlines.get(&tid).map_or(UNKNOWN, String::as_str),
            None => UNKNOWN,
        };
        let writer = tid.map(|tid| Writer { pid: tid, tid });
        row.clear();
        row.u64(u64::from(cpu));
        row.i64(tid.map_or(-1, |tid| i64::from(tid as i32)));
        row.bytes(comm.as_bytes());
        let decoded = format
            .decode_common(record, order, row)
            .and_then(|()| format.decode(record, order, row));
        let pending = builder.event(stream, *class, ticks, writer);
        match decoded.map(|()| pending.values(&row.slots, &row.bytes).end()) {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                self.full = true;
                let count = builder.len();
                notes.remark(format!(
                    "the first {count} events of the file take all the memory they may; the rest \
                     is left out"
                ));
            }
            Err(_) => damaged(notes, DamageReason::FieldBeyondContent),
        }
    }

    /// Ends the trace.
    pub fn finish(mut self) -> MemoryTrace {
        if !self.builder.is_empty() {
            self.notes
                .remark("processes are not recorded: each thread stands for a process of its own");
        }
        if self.data.catalog.len() == 0 {
            self.notes.remark("the file describes no events");
        }
        for remark in &self.options.remarks {
            self.notes.remark(remark.clone());
        }
        self.notes.finish(&mut self.builder);
        self.builder.finish()
    }
}
