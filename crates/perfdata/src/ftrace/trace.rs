// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An opened `trace.dat`, or pages of tracefs, as a source of events.
//!
//! Opening walks the records of all pages to find the event classes, damage and losses, and runs of pages
//! that are in time order. Values are decoded while events are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use lateralis_model::{
    Base, Clock, Damage, DamageReason, EnvValue, Events, FieldClass, Interval, Loss, LossCause,
    Names, Packet, Source, StreamClass, StreamIndex, StreamSummary, Trace,
};
use lateralis_units::{CpuId, Nanos, Ticks};

use super::events::FtraceEvents;
use super::options::Options;
use super::page::records;
use super::pages::{Content, Pages};
use crate::notes::Notes;
use crate::perf::Bytes;
use crate::tracepoint::Format;
use crate::tracing_data::TracingData;
use crate::wire::unsigned;

/// Largest number of runs of a CPU; beyond it they are joined regardless of their times: a hostile file
/// could make each page a run.
const RUNS_MAX: usize = 1 << 16;
/// Likewise if reading a run takes memory.
const PACKED_RUNS_MAX: usize = 4;

/// Pages of one CPU.
#[derive(Debug)]
pub(super) struct PerCpu {
    /// Its number.
    pub cpu: u32,
    /// Index of the file that contains them.
    pub file: usize,
    /// Their position.
    pub content: Content,
}

/// One buffer of the kernel: the main one has no name.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Name of its instance.
    pub name: String,
    /// `local`, `mono`, `x86-tsc`, …
    pub clock: String,
    /// Bytes of its pages.
    pub page_bytes: u32,
    /// Its CPUs.
    pub cpus: Vec<PerCpu>,
}

/// Streams that share a clock share their classes.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Index of the stream class.
    pub class: u32,
    /// Its name in the kernel.
    pub name: String,
    /// Clock of all its times.
    pub clock: Clock,
    /// Index into `classes` by event id; [`UNSEEN`] if the event does not occur, [`UNKNOWN`] if it has no
    /// description.
    ids: Vec<u32>,
    /// Index and format of the event classes.
    classes: Vec<(u32, Arc<Format>)>,
}

const UNSEEN: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX - 1;

impl Group {
    /// Class and format of the events with an id.
    #[inline]
    pub fn event(&self, id: u16) -> Option<&(u32, Arc<Format>)> {
        self.classes.get(*self.ids.get(usize::from(id))? as usize)
    }

    /// Whether events with an id have a description; `describe` is called once per id.
    #[inline]
    fn learn(&mut self, id: u16, describe: impl FnOnce() -> Option<(u32, Arc<Format>)>) -> bool {
        let at = usize::from(id);
        if self.ids.len() <= at {
            self.ids.resize(at + 1, UNSEEN);
        }
        if self.ids[at] == UNSEEN {
            self.ids[at] = match describe() {
                Some(class) => {
                    self.classes.push(class);
                    self.classes.len() as u32 - 1
                }
                None => UNKNOWN,
            };
        }
        self.ids[at] != UNKNOWN
    }
}

/// Pages of a CPU, with the properties shared by all their events.
pub(super) struct Stream {
    /// Index of its group.
    pub group: usize,
    name: String,
    /// Packet shared by all events.
    pub packet: Packet,
    pub cpu: u32,
    pub file: usize,
    pub content: Content,
    pub page_bytes: u32,
}

/// Consecutive pages in time order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Index of the stream.
    pub stream: u32,
    /// Number of its first page.
    pub begin: u32,
    /// Number of the page after its last.
    pub end: u32,
    /// Time of its first event, in ticks.
    pub first: u64,
    /// The latest time of its events.
    pub last: u64,
}

/// An opened `trace.dat`, or pages of tracefs.
///
/// Memory: event descriptions, 32 bytes for each run of pages, and while events are read one decompressed
/// chunk for each CPU.
pub struct FtraceTrace {
    format: String,
    pub(super) files: Vec<Bytes>,
    pub(super) data: TracingData,
    pub(super) options: Options,
    pub(super) trace: Trace,
    pub(super) groups: Vec<Group>,
    pub(super) streams: Vec<Stream>,
    /// In the order of their first times.
    pub(super) runs: Vec<Run>,
    /// Whether no run has times that go back.
    ordered: bool,
    pub(super) name: String,
    names: Names,
    losses: Vec<Loss>,
    damage: Vec<Damage>,
    remarks: Vec<String>,
}

impl std::fmt::Debug for FtraceTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self.runs.len();
        f.debug_struct("FtraceTrace").field("name", &self.name).field("runs", &runs).finish()
    }
}

/// Results of walking the pages of one CPU.
#[derive(Default)]
struct Walked {
    runs: Vec<Run>,
    first: Option<u64>,
    last: u64,
    events: u64,
    disordered: bool,
}

impl FtraceTrace {
    /// Walks the pages of all buffers. Decompressed chunks take at most `limit_bytes` while events are
    /// read.
    pub(super) fn open(
        format: &str,
        name: &str,
        files: Vec<Bytes>,
        buffers: Vec<Buffer>,
        (data, options): (TracingData, Options),
        mut notes: Notes,
        limit_bytes: u64,
    ) -> Self {
        let mut trace = Self {
            format: format.to_owned(),
            files,
            data,
            options,
            trace: Trace::default(),
            groups: Vec::new(),
            streams: Vec::new(),
            runs: Vec::new(),
            ordered: true,
            name: name.to_owned(),
            names: Names::default(),
            losses: Vec::new(),
            damage: Vec::new(),
            remarks: Vec::new(),
        };
        trace.describe();
        let mut events = 0;
        let mut left_bytes = limit_bytes;
        for buffer in buffers {
            let group = match buffer.cpus.is_empty() {
                true => continue,
                false => trace.group(&buffer.clock, &mut notes),
            };
            for cpu in buffer.cpus {
                let memory = cpu.content.memory_bytes() * PACKED_RUNS_MAX as u64;
                let Some(left) = left_bytes.checked_sub(memory) else {
                    notes.remark(
                        "reading the compressed pages of all CPUs takes more memory than it may; \
                         some CPUs are left out",
                    );
                    continue;
                };
                left_bytes = left;
                events += trace.stream(&buffer.name, buffer.page_bytes, group, cpu, &mut notes);
            }
        }
        trace.runs.sort_by_key(|run| (run.first, run.stream, run.begin));
        if events > 0 {
            notes.remark("processes are not recorded: each thread stands for a process of its own");
        }
        if trace.data.catalog.len() == 0 {
            notes.remark("the file describes no events");
        }
        for remark in &trace.options.remarks {
            notes.remark(remark.clone());
        }
        (trace.damage, trace.remarks) = notes.take();
        trace
    }

    fn describe(&mut self) {
        let environment = &mut self.trace.environment;
        environment.push(("domain".to_owned(), EnvValue::Text("kernel".to_owned())));
        environment.push(("tracer_name".to_owned(), EnvValue::Text("ftrace".to_owned())));
        environment.extend(self.options.environment.iter().cloned());
        let names = self.data.cmdlines.iter().map(|(tid, name)| (*tid, name.clone()));
        self.names.threads = names.collect::<BTreeMap<_, _>>();
    }

    /// The group with a clock.
    fn group(&mut self, name: &str, notes: &mut Notes) -> usize {
        if let Some(group) = self.groups.iter().position(|group| group.name == name) {
            return group;
        }
        let date = self.options.date_nanos.unwrap_or(0);
        let mut clock = Clock::new(name, 0, 0, date);
        clock.description = "trace clock of the kernel".to_owned();
        clock.unix_epoch = self.options.date_nanos.is_some() || name == "tai";
        if name == "counter" {
            notes.remark("the clock counts events: times are numbers, not nanoseconds");
        } else if name == "x86-tsc" && self.options.tsc.is_none() {
            notes.remark("times are readings of the processor's counter, not nanoseconds");
        }
        self.trace.clocks.push(clock.clone());
        let common = FieldClass::structure([
            ("cpu_id", FieldClass::unsigned(32, Base::Decimal)),
            ("tid", FieldClass::signed(32)),
            ("comm", FieldClass::text()),
        ]);
        let class = self.trace.stream_classes.len() as u32;
        self.trace.stream_classes.push(StreamClass {
            id: u64::from(class),
            name: Some("ftrace".to_owned()),
            clock: Some(self.trace.clocks.len() - 1),
            common_context: Some(common),
            ..StreamClass::default()
        });
        let name = name.to_owned();
        self.groups.push(Group { class, name, clock, ..Group::default() });
        self.groups.len() - 1
    }

    /// Adds the stream of a CPU. Returns the number of its events.
    fn stream(
        &mut self,
        buffer: &str,
        page_bytes: u32,
        group: usize,
        cpu: PerCpu,
        notes: &mut Notes,
    ) -> u64 {
        let name = match buffer {
            "" => format!("cpu{}", cpu.cpu),
            name => format!("{name}/cpu{}", cpu.cpu),
        };
        let packet = Packet { cpu: Some(CpuId(cpu.cpu)), ..Packet::default() };
        let PerCpu { cpu, file, content } = cpu;
        let page_bytes = page_bytes.max(64);
        let stream = Stream { group, name, packet, cpu, file, content, page_bytes };
        let bytes = self.files[stream.file].clone();
        let mut walked = Walked::default();
        let mut pages = Pages::new((*bytes).as_ref(), &stream.content, page_bytes);
        let mut number = 0;
        while let Some(page) = pages.page(number) {
            self.page(number, page.bytes(), &stream, &mut walked, notes);
            let Some(next) = number.checked_add(1) else { break };
            number = next;
        }
        for chunk in &pages.damaged {
            let rule = "compressed bytes";
            let (begin, end) = (chunk.begin as u64, chunk.end as u64);
            notes.damage(begin, end, DamageReason::BadValue { rule }, None);
        }
        let most = match stream.content {
            Content::Plain(..) => RUNS_MAX,
            Content::Packed(..) => PACKED_RUNS_MAX,
        };
        if let (true, Some(first)) = (walked.runs.len() > most, walked.first) {
            let last = walked.runs.iter().map(|run| run.last).max().unwrap_or(first);
            let stream = self.streams.len() as u32;
            walked.runs = vec![Run { stream, begin: 0, end: number, first, last }];
            walked.disordered = true;
        }
        self.ordered &= !walked.disordered;
        if walked.disordered {
            let begin = stream.content.in_file(0).0;
            let end = stream.content.in_file(stream.content.bytes().saturating_sub(1)).1;
            notes.damage(begin, end.max(begin), DamageReason::BadTime, None);
        }
        self.runs.append(&mut walked.runs);
        self.streams.push(stream);
        walked.events
    }

    /// Adds a page to the index.
    fn page(
        &mut self,
        number: u32,
        page: &[u8],
        stream: &Stream,
        walked: &mut Walked,
        notes: &mut Notes,
    ) {
        let Self { data, options, groups, trace, losses, streams, .. } = self;
        let (layout, order) = (data.layout, data.order);
        let group = &mut groups[stream.group];
        let (clock, clock_name) = (group.clock.clone(), group.name.clone());
        let stream_class = group.class;
        let nanos = |ticks: u64| clock.nanos(Ticks(ticks));
        let place = u64::from(number) * u64::from(stream.page_bytes);
        let before = walked.first.map(|_| nanos(walked.last));
        let (mut first, mut last) = (None, 0);
        let end = records(page, layout, |stamp, record, at| {
            let ticks = options.nanos(&clock_name, stamp);
            let id = record.get(..2).and_then(|bytes| unsigned(bytes, order));
            let reason = match id.map(|id| id as u16) {
                None => Some(DamageReason::FieldBeyondContent),
                Some(id) => {
                    let is_known = group.learn(id, || {
                        let format = data.catalog.class_of(id)?;
                        let classes =
                            &mut trace.stream_classes[stream_class as usize].event_classes;
                        let mut class = format.event_class();
                        let common = !format.common.is_empty();
                        class.context = common.then(|| format.common_class());
                        class.id = classes.len() as u64;
                        classes.push(class);
                        Some((classes.len() as u32 - 1, format))
                    });
                    let id = u64::from(id);
                    (!is_known).then_some(DamageReason::UnknownEventClass { id })
                }
            };
            if let Some(reason) = reason {
                let (begin, end) = stream.content.in_file(place + at as u64);
                let end = if begin == end { end + record.len() as u64 } else { end };
                notes.damage(begin, end, reason, before);
            } else {
                walked.events += 1;
            }
            walked.disordered |= first.is_some() && ticks < last;
            first.get_or_insert(ticks);
            last = last.max(ticks);
            true
        });
        let begin = options.nanos(&clock_name, end.begin);
        if let Some(count) = end.missed {
            let interval = Interval { begin: before, end: Some(nanos(begin)) }.ordered();
            let stream = StreamIndex(streams.len() as u32);
            losses.push(Loss { stream, cause: LossCause::Full, count, interval });
        }
        if let Some((at, reason)) = end.damage {
            let known = first.map(|_| nanos(last)).or(before);
            let (from, to) = stream.content.in_file(place + at as u64);
            let to = if from == to { to - at as u64 + page.len() as u64 } else { to };
            notes.damage(from, to, reason, known);
        }
        let Some(first) = first else { return };
        walked.first.get_or_insert(first);
        walked.last = last;
        match walked.runs.last_mut() {
            Some(run) if run.last <= begin && run.last <= first => {
                (run.end, run.last) = (number + 1, last);
            }
            _ => {
                let stream = streams.len() as u32;
                walked.runs.push(Run { stream, begin: number, end: number + 1, first, last });
            }
        }
    }

    /// Whether events come in time order.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// A time stamp in ticks of the stream's clock.
    #[inline]
    pub(super) fn ticks(&self, stream: &Stream, stamp: u64) -> u64 {
        self.options.nanos(&self.groups[stream.group].name, stamp)
    }

    /// Time of a time stamp.
    #[inline]
    pub(super) fn nanos(&self, stream: &Stream, ticks: u64) -> Nanos {
        self.groups[stream.group].clock.nanos(Ticks(ticks))
    }
}

impl Source for FtraceTrace {
    fn format(&self) -> &str {
        &self.format
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let summary = |stream: &Stream| StreamSummary {
            class: self.groups[stream.group].class,
            name: stream.name.clone(),
            packets: stream.content.bytes().div_ceil(u64::from(stream.page_bytes)),
            bytes: stream.content.bytes(),
            cpu: stream.packet.cpu,
        };
        self.streams.iter().map(summary).collect()
    }

    fn interval(&self) -> Interval {
        let time = |run: &Run, ticks| self.nanos(&self.streams[run.stream as usize], ticks);
        Interval {
            begin: self.runs.iter().map(|run| time(run, run.first)).min(),
            end: self.runs.iter().map(|run| time(run, run.last)).max(),
        }
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        Box::new(FtraceEvents::new(self, interval))
    }
}
