// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A `perf.data` as a source of events.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lateralis_model::{
    Attribute, Base, Clock, Damage, EnvValue, Event, EventClass, Events, FieldClass, Interval,
    Loss, LossCause, Names, Packet, Source, StreamClass, StreamIndex, StreamSummary, Trace,
};
use lateralis_units::{CpuId, Nanos, Ticks};

use super::attr::{Attr, NOWHERE, TYPE_TRACEPOINT, sample};
use super::content::{Content, Merge, Part};
use super::events::{Comms, PerfEvents};
use super::features::Features;
use super::file::File;
use super::index::{Index, index};
use super::origin::{Origin, clock};
use super::records;
use super::seen::{STREAMS_MAX, Seen};
use super::{sample_class, sideband};
use crate::notes::Notes;
use crate::tracepoint::Format;
use crate::wire::Wire;

/// Number of the stream with the records of CPUs beyond [`STREAMS_MAX`].
const OTHER_CPUS: u32 = u32::MAX;

/// The class of an attribute's samples.
#[derive(Debug, Clone)]
pub(super) struct SampleClass {
    /// Index in the stream class.
    pub class: u32,
    /// Format of their raw data, if they are tracepoints.
    pub format: Option<Arc<Format>>,
}

pub(super) struct Stream {
    /// Index of the stream class.
    pub class: u32,
    name: String,
    /// Packet shared by all events.
    pub packet: Packet,
}

/// An opened `perf.data`. Opening has indexed the records; they are decoded while events are read.
///
/// Memory: 32 bytes for each run of records, decompressed records, and descriptions of events.
/// Decompressed records count against the limit passed to [`open`](super::open).
pub struct PerfTrace {
    pub(super) content: Content,
    pub(super) trace: Trace,
    pub(super) streams: Vec<Stream>,
    /// Streams by CPU, and without CPU.
    stream_of: HashMap<Option<u32>, u32>,
    small_streams: Vec<u32>,
    /// The stream without CPU: of all records if CPUs were not recorded.
    stream_of_none: Option<u32>,
    /// Stream classes without and with CPUs.
    pub(super) stream_classes: [Option<u32>; 2],
    /// By attribute, without and with CPU.
    pub(super) samples: Vec<[Option<SampleClass>; 2]>,
    /// By type, variant and CPU.
    pub(super) others: HashMap<(u32, bool, bool), u32>,
    /// Records before the first time describe the state at the start.
    pub(super) first: u64,
    last: u64,
    /// Times and places of records that rename threads, in order.
    pub(super) renamings: Vec<(u64, u64)>,
    names: Names,
    losses: Vec<Loss>,
    damage: Vec<Damage>,
    remarks: Vec<String>,
}

impl std::fmt::Debug for PerfTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self.content.runs.len();
        let name = self.content.parts.first().map(|part| &part.name);
        f.debug_struct("PerfTrace").field("name", &name).field("runs", &runs).finish()
    }
}

/// Indexes opened files; the first has the header.
pub fn open(mut file: File, mut parts: Vec<Part>, limit_bytes: u64, mut notes: Notes) -> PerfTrace {
    let index = index(&mut file, &mut parts, limit_bytes, &mut notes);
    let clock = clock(&file);
    notes.ticks_to_nanos(|ticks| clock.nanos(Ticks(ticks)));
    let Index { runs, cpus, first, mut seen, is_late } = index;
    let File { attrs, mut features, order, .. } = file;
    let last = runs.iter().map(|run| run.last).max().unwrap_or(0);
    let build_ids = std::mem::take(&mut features.build_ids);
    let content = Content { parts, build_ids, order, attrs, cpus, runs };
    if is_late {
        seen.again(&content);
    }
    let mut trace = PerfTrace {
        content,
        trace: Trace { clocks: vec![clock], ..Trace::default() },
        streams: Vec::new(),
        stream_of: HashMap::new(),
        small_streams: Vec::new(),
        stream_of_none: None,
        stream_classes: [None; 2],
        samples: Vec::new(),
        others: HashMap::new(),
        first,
        last,
        renamings: Vec::new(),
        names: Names::default(),
        losses: Vec::new(),
        damage: Vec::new(),
        remarks: Vec::new(),
    };
    trace.environment(&mut features);
    trace.all_streams(&seen);
    trace.all_classes(&seen, &mut features, &mut notes);
    trace.all_names(&mut seen, features);
    trace.all_losses(&seen);
    (trace.damage, trace.remarks) = notes.take();
    trace
}

impl PerfTrace {
    fn environment(&mut self, features: &mut Features) {
        let text = |text: &str| EnvValue::Text(text.to_owned());
        let environment = &mut self.trace.environment;
        environment.push(("domain".to_owned(), text("kernel")));
        environment.push(("sysname".to_owned(), text("Linux")));
        environment.push(("tracer_name".to_owned(), text("perf")));
        environment.append(&mut features.environment);
    }

    fn clock(&self) -> &Clock {
        &self.trace.clocks[0]
    }

    pub(super) fn nanos(&self, ticks: u64) -> Nanos {
        self.clock().nanos(Ticks(ticks))
    }

    fn all_streams(&mut self, seen: &Seen) {
        if seen.no_cpu || seen.lost_samples > 0 {
            self.stream("perf".to_owned(), None, None);
        }
        for cpu in seen.cpus().take(STREAMS_MAX - 2) {
            let id = (cpu != OTHER_CPUS).then_some(CpuId(cpu));
            self.stream(format!("cpu{cpu}"), Some(cpu), id);
        }
        if seen.is_crowded() && !self.stream_of.contains_key(&Some(OTHER_CPUS)) {
            self.stream("other CPUs".to_owned(), Some(OTHER_CPUS), None);
        }
        let small = |cpu: u32| self.stream_of.get(&Some(cpu)).map_or(u32::MAX, |stream| *stream);
        self.small_streams = (0..super::seen::SMALL_CPU as u32).map(small).collect();
        self.stream_of_none = self.stream_of.get(&None).copied();
    }

    fn stream(&mut self, name: String, cpu: Option<u32>, id: Option<CpuId>) {
        let class = self.stream_class(cpu.is_some());
        let packet = Packet { cpu: id, ..Packet::default() };
        self.stream_of.insert(cpu, self.streams.len() as u32);
        self.streams.push(Stream { class, name, packet });
    }

    /// The stream of a CPU.
    #[inline]
    pub(super) fn stream_of(&self, cpu: Option<u32>) -> Option<u32> {
        if cpu.is_none() {
            return self.stream_of_none;
        }
        if let Some(&stream) = cpu.and_then(|cpu| self.small_streams.get(cpu as usize))
            && stream != u32::MAX
        {
            return Some(stream);
        }
        let other = || self.stream_of.get(&Some(OTHER_CPUS)).filter(|_| cpu.is_some());
        self.stream_of.get(&cpu).or_else(other).copied()
    }

    fn stream_class(&mut self, with_cpu: bool) -> u32 {
        if let Some(class) = self.stream_classes[usize::from(with_cpu)] {
            return class;
        }
        let cpu = ("cpu_id", FieldClass::unsigned(32, Base::Decimal));
        let thread = [
            ("pid", FieldClass::signed(32)),
            ("tid", FieldClass::signed(32)),
            ("comm", FieldClass::text()),
        ];
        let common = with_cpu.then_some(cpu).into_iter().chain(thread);
        let class = self.trace.stream_classes.len() as u32;
        self.trace.stream_classes.push(StreamClass {
            id: u64::from(class),
            name: Some(if with_cpu { "perf" } else { "perf (no CPU)" }.to_owned()),
            clock: Some(0),
            common_context: Some(FieldClass::structure(common)),
            ..StreamClass::default()
        });
        self.stream_classes[usize::from(with_cpu)] = Some(class);
        class
    }

    fn event_class(&mut self, with_cpu: bool, mut class: EventClass) -> u32 {
        let stream_class = self.stream_class(with_cpu);
        let classes = &mut self.trace.stream_classes[stream_class as usize].event_classes;
        class.id = classes.len() as u64;
        classes.push(class);
        classes.len() as u32 - 1
    }

    fn all_classes(&mut self, seen: &Seen, features: &mut Features, notes: &mut Notes) {
        for (attr, seen) in seen.samples.iter().enumerate() {
            let mut classes = [const { None }; 2];
            for with_cpu in [false, true] {
                if !seen[usize::from(with_cpu)] {
                    continue;
                }
                let attr = &self.content.attrs.all[attr];
                let (class, format) = sample_event_class(attr, features, notes);
                let class = self.event_class(with_cpu, class);
                classes[usize::from(with_cpu)] = Some(SampleClass { class, format });
            }
            self.samples.push(classes);
        }
        for &(kind, variant, with_cpu) in &seen.others {
            let misc = sideband::misc_of(variant);
            let class = EventClass {
                name: sideband::name(kind, misc),
                payload: Some(sideband::class(kind, misc)),
                ..EventClass::default()
            };
            let class = self.event_class(with_cpu, class);
            self.others.insert((kind, variant, with_cpu), class);
        }
    }

    fn all_names(&mut self, seen: &mut Seen, features: Features) {
        self.renamings = std::mem::take(&mut seen.names);
        self.renamings.sort_unstable();
        let mut comms = Comms::default();
        let mut names = Names::default();
        for &(_, place) in &self.renamings {
            let Some(found) = self.content.record(place) else { continue };
            let Some(new) = comms.learn(&found.record, self.content.order) else { continue };
            let name = new.name.as_ref().to_owned();
            if new.pid == new.tid {
                names.processes.insert(new.pid, name.clone());
            }
            names.threads.insert(new.tid, name);
        }
        let known = features.tracing.map(|tracing| tracing.cmdlines).unwrap_or_default();
        for (tid, name) in known {
            names.threads.entry(tid).or_insert(name);
        }
        self.names = names;
    }

    fn all_losses(&mut self, seen: &Seen) {
        let mut lost = 0u64;
        let mut losses = Vec::new();
        // Time of the previous event in its stream.
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        // Losses of a hardware tracer that has not resumed, by the number of its event.
        let mut open: BTreeMap<u64, usize> = BTreeMap::new();
        let mut all = Merge::new(&self.content, |_| seen.lost || seen.incomplete_aux);
        let Content { attrs, cpus, order, .. } = &self.content;
        while let Some(found) = all.next() {
            let places = found.attr.ok().and_then(|attr| attrs.places.get(attr));
            let body = found.record.body;
            let cpu = match (found.record.kind, places) {
                (records::SAMPLE, None) | (records::LOST_SAMPLES, _) => continue,
                (records::SAMPLE, Some(places)) => {
                    Origin::of_sample(places, body, cpus, *order).cpu
                }
                (records::LOST, _) => {
                    Origin::at_end(&found.record, places, *order).and_then(|origin| origin.cpu)
                }
                _ => Origin::of_other(&found.record, places, *order).cpu,
            };
            let Some(stream) = self.stream_of(cpu) else { continue };
            let time = found.time.max(self.first);
            let before = last.insert(stream, time);
            if found.record.kind == records::AUX {
                // The event of each CPU or thread has its own number.
                let back = places.map_or(NOWHERE, |places| places.id.1);
                let at = (body.len() as u64).checked_sub(back.into());
                let id = at.and_then(|at| Wire::at(body, at, *order).u64()).unwrap_or(0);
                if let Some(loss) = open.remove(&id).and_then(|loss| losses.get_mut(loss)) {
                    end_loss(loss, self.nanos(time));
                }
                let flags = Wire::at(body, 16, *order).u64().unwrap_or(0);
                if flags & records::AUX_INCOMPLETE != 0 {
                    let is_full = flags & records::AUX_TRUNCATED != 0;
                    let cause = if is_full { LossCause::Full } else { LossCause::Discarded };
                    let begin = Some(self.nanos(before.unwrap_or(time)));
                    let (stream, interval) = (StreamIndex(stream), Interval { begin, end: None });
                    open.insert(id, losses.len());
                    losses.push(Loss { stream, cause, count: None, interval });
                }
            }
            if found.record.kind == records::LOST {
                let mut wire = Wire::at(body, 8, *order);
                let count = wire.u64();
                lost = lost.saturating_add(count.unwrap_or(0));
                let begin = before.map(|before| self.nanos(before));
                let end = (found.time > 0).then(|| self.nanos(time));
                let (stream, interval) = (StreamIndex(stream), Interval { begin, end }.ordered());
                losses.push(Loss { stream, cause: LossCause::Full, count, interval });
            }
        }
        for loss in open.into_values() {
            let end = self.nanos(self.last.max(self.first));
            losses.get_mut(loss).into_iter().for_each(|loss| end_loss(loss, end));
        }
        // LOST counts records of a buffer as they are lost; LOST_SAMPLES counts the same losses per
        // event, and those after the last LOST.
        if let (Some(count @ 1..), Some(stream)) =
            (seen.lost_samples.checked_sub(lost), self.stream_of(None))
        {
            let (stream, interval) = (StreamIndex(stream), Interval::default());
            let cause = LossCause::Discarded;
            losses.push(Loss { stream, cause, count: Some(count), interval });
        }
        self.losses = losses;
    }
}

fn end_loss(loss: &mut Loss, end: Nanos) {
    loss.interval = Interval { end: Some(end), ..loss.interval }.ordered();
}

/// The class of an attribute's samples, and the format of their raw data.
fn sample_event_class(
    attr: &Attr,
    features: &mut Features,
    notes: &mut Notes,
) -> (EventClass, Option<Arc<Format>>) {
    let tracing = features.tracing.as_mut();
    let find = |id: u64| {
        let id = u16::try_from(id).ok()?;
        tracing.and_then(|tracing| tracing.catalog.class_of(id))
    };
    let is_tracepoint = attr.kind == TYPE_TRACEPOINT;
    let format = is_tracepoint.then(|| find(attr.config)).flatten();
    let name = attr.event_name(|_| format.as_ref().map(|format| format.full_name()));
    let format = format.filter(|_| attr.has(sample::RAW));
    let members = sample_class::members(attr, format.is_none());
    let mut class = match &format {
        Some(format) => {
            let prefixed = members.into_iter().map(|(name, class)| (format!("perf_{name}"), class));
            let common = format.common_class();
            let common = common.members().iter();
            let common = common.map(|member| (member.name.clone(), member.class.clone()));
            EventClass {
                context: Some(FieldClass::structure(prefixed.chain(common))),
                ..format.event_class()
            }
        }
        None => {
            EventClass { payload: Some(FieldClass::structure(members)), ..EventClass::default() }
        }
    };
    class.name = name;
    for (name, mask, bit) in [
        ("perf.user_regs", attr.sample_regs_user, sample::REGS_USER),
        ("perf.intr_regs", attr.sample_regs_intr, sample::REGS_INTR),
        ("perf.branch_sample_type", attr.branch_sample_type, sample::BRANCH_STACK),
    ] {
        if attr.has(bit) {
            let value = format!("{mask:#x}");
            class.attributes.push(Attribute { name: name.to_owned(), value });
        }
    }
    if attr.sample_type & !sample::KNOWN != 0 {
        notes.remark(format!("samples of {} have fields that are not known here", class.name));
    }
    (class, format)
}

impl Source for PerfTrace {
    fn format(&self) -> &str {
        "perf.data"
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let summary = |stream: &Stream| StreamSummary {
            class: stream.class,
            name: stream.name.clone(),
            cpu: stream.packet.cpu,
            ..StreamSummary::default()
        };
        self.streams.iter().map(summary).collect()
    }

    fn interval(&self) -> Interval {
        let any = !self.content.runs.is_empty();
        let time = |ticks| any.then(|| self.nanos(ticks));
        Interval { begin: time(self.first), end: time(self.last.max(self.first)) }
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
        Box::new(PerfEvents::new(self, interval))
    }

    /// Like the default, without two virtual calls for each event.
    fn visit(&self, see: &mut dyn FnMut(&Event<'_>)) -> Vec<Damage> {
        let mut events = PerfEvents::new(self, Interval::default());
        while events.advance() {
            see(&events.event());
        }
        events.damage()
    }
}
