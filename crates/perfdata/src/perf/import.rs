// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The second pass: from records to events of the model.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use lateralis_model::{
    Attribute, Builder, DamageReason, EnvValue, EventClass, FieldClass, Interval, Loss, LossCause,
    MemoryTrace, Pending, StreamClass, StreamIndex, Writer,
};
use lateralis_units::{CpuId, Nanos};

use super::attr::{TYPE_TRACEPOINT, sample};
use super::file::File;
use super::index::{Entry, Index, attr_of, index};
use super::origin::{Origin, clock};
use super::records::{self, Record};
use super::sample::Sample;
use super::{sample_class, sideband};
use crate::notes::Notes;
use crate::tracepoint::Format;
use crate::wire::{Wire, text};

/// Records of CPUs beyond this many share one stream: a damaged file could name
/// a new one in each record.
const STREAMS_MAX: usize = 4096;
/// Threads whose names are remembered without a search.
const RECENT: usize = 64;
/// What perf calls the idle threads.
const IDLE: &str = "swapper";

/// The class of an attribute's samples.
#[derive(Debug, Clone)]
struct SampleClass {
    class: u32,
    format: Option<Rc<Format>>,
}

struct Importer<'a> {
    file: File<'a>,
    builder: Builder,
    notes: Notes,
    clock: usize,
    /// Stream classes without and with CPUs.
    stream_classes: [Option<u32>; 2],
    streams: BTreeMap<Option<u32>, (StreamIndex, u64)>,
    /// By attribute, without and with CPU.
    samples: Vec<[Option<SampleClass>; 2]>,
    /// By type, variant and CPU.
    others: HashMap<(u32, bool, bool), u32>,
    comms: HashMap<u32, Rc<str>>,
    /// Names of the last threads, by their last digits.
    recent: [Option<(u32, Rc<str>)>; RECENT],
    unnamed: Rc<str>,
    lost: u64,
    lost_samples: u64,
    truncated_aux: u64,
}

/// Reads all events of an opened file.
pub fn import(mut file: File<'_>, limit_bytes: u64, mut notes: Notes) -> MemoryTrace {
    let index = index(&mut file, limit_bytes, &mut notes);
    let mut builder = MemoryTrace::builder("perf.data", limit_bytes);
    let clock = builder.clock(clock(&file));
    let mut importer = Importer {
        builder,
        notes,
        clock,
        stream_classes: [None; 2],
        streams: BTreeMap::new(),
        samples: vec![[const { None }; 2]; file.attrs.all.len()],
        others: HashMap::new(),
        comms: HashMap::from([(0, Rc::from(IDLE))]),
        recent: [const { None }; RECENT],
        unnamed: Rc::from(""),
        lost: 0,
        lost_samples: 0,
        truncated_aux: 0,
        file,
    };
    importer.environment();
    importer.all(&index);
    importer.finish()
}

impl Importer<'_> {
    fn environment(&mut self) {
        let text = |text: &str| EnvValue::Text(text.to_owned());
        let environment = &mut self.builder.describe().environment;
        environment.push(("domain".to_owned(), text("kernel")));
        environment.push(("sysname".to_owned(), text("Linux")));
        environment.push(("tracer_name".to_owned(), text("perf")));
        environment.append(&mut self.file.features.environment);
    }

    fn all(&mut self, index: &Index) {
        // What stands before the first time is the state at the beginning.
        let first = index.entries.iter().find(|entry| entry.time > 0);
        let first = first.map_or(0, |entry| entry.time);
        let build_ids = std::mem::take(&mut self.file.features.build_ids);
        let mut at = 0;
        while let Some(record) = Record::at(&build_ids, at, self.file.order) {
            at += record.size();
            let named = Record { kind: records::BUILD_ID, ..record };
            if self.sideband(&named, None, first, 0).is_err() {
                return;
            }
        }
        for &entry in &index.entries {
            let Some((record, place)) = index.record(&self.file, entry) else { continue };
            let time = entry.time.max(first);
            if self.one(index, &record, entry, time, place).is_err() {
                let count = self.builder.len();
                self.notes.remark(format!(
                    "the first {count} events take all the memory they may; the rest is left out"
                ));
                return;
            }
        }
    }

    /// Takes one record.
    fn one(
        &mut self,
        index: &Index,
        record: &Record<'_>,
        entry: Entry,
        time: u64,
        place: u64,
    ) -> Result<(), lateralis_model::Full> {
        let attr = match attr_of(&self.file.attrs, record, &self.file) {
            Ok(attr) => Some(attr),
            Err(id) if record.kind == records::SAMPLE => {
                self.bad(record, place, DamageReason::UnknownEventClass { id }, time);
                return Ok(());
            }
            Err(_) => None,
        };
        if let (records::SAMPLE, Some(attr)) = (record.kind, attr) {
            return self.sample(index, record, attr, time, place);
        }
        match record.kind {
            records::LOST | records::LOST_SAMPLES => {
                self.loss(record, attr, time, entry.time > 0);
                Ok(())
            }
            _ => self.sideband(record, attr, time, place),
        }
    }

    fn bad(&mut self, record: &Record<'_>, place: u64, reason: DamageReason, time: u64) {
        let time = Some(self.nanos(time));
        self.notes.damage(place, place + record.size(), reason, time);
    }

    fn nanos(&mut self, time: u64) -> Nanos {
        let clock = &self.builder.describe().clocks[self.clock];
        clock.nanos(lateralis_units::Ticks(time))
    }

    fn stream_class(&mut self, with_cpu: bool) -> u32 {
        if let Some(class) = self.stream_classes[usize::from(with_cpu)] {
            return class;
        }
        let cpu = ("cpu_id", FieldClass::unsigned(32, lateralis_model::Base::Decimal));
        let thread = [
            ("pid", FieldClass::signed(32)),
            ("tid", FieldClass::signed(32)),
            ("comm", FieldClass::text()),
        ];
        let common = with_cpu.then_some(cpu).into_iter().chain(thread);
        let class = self.builder.stream_class(StreamClass {
            name: Some(if with_cpu { "perf" } else { "perf (no CPU)" }.to_owned()),
            clock: Some(self.clock),
            common_context: Some(FieldClass::structure(common)),
            ..StreamClass::default()
        });
        self.stream_classes[usize::from(with_cpu)] = Some(class);
        class
    }

    /// The stream of a CPU, and the time of the event before in it.
    fn stream(&mut self, cpu: Option<u32>, time: u64) -> (StreamIndex, Option<u64>) {
        let full = self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&cpu);
        let crowded = full && cpu.is_some();
        let cpu = if crowded { Some(u32::MAX) } else { cpu };
        if let Some((stream, last)) = self.streams.get_mut(&cpu) {
            return (*stream, Some(std::mem::replace(last, time)));
        }
        let class = self.stream_class(cpu.is_some());
        let (name, id) = match cpu {
            Some(u32::MAX) => ("other CPUs".to_owned(), None),
            Some(cpu) => (format!("cpu{cpu}"), Some(CpuId(cpu))),
            None => ("perf".to_owned(), None),
        };
        let stream = self.builder.stream(class, &name, id);
        self.streams.insert(cpu, (stream, time));
        (stream, None)
    }

    /// Begins an event with its common context.
    fn begin(&mut self, stream: StreamIndex, class: u32, time: u64, origin: Origin) -> Pending<'_> {
        let recent = &mut self.recent[origin.tid as usize % RECENT];
        let comm: &str = match (origin.pid, &recent) {
            (None, _) => "",
            (Some(_), Some((tid, _))) if *tid == origin.tid => {
                recent.as_ref().map_or("", |(_, comm)| comm)
            }
            _ => {
                let comm = self.comms.get(&origin.tid).unwrap_or(&self.unnamed);
                &recent.insert((origin.tid, Rc::clone(comm))).1
            }
        };
        let number = |value: Option<u32>| value.map_or(-1, |value| i64::from(value as i32));
        // A thread that is gone has no number any more.
        let known = origin.pid.filter(|&pid| pid != u32::MAX && origin.tid != u32::MAX);
        let writer = known.map(|pid| Writer { pid, tid: origin.tid });
        let pending = self.builder.event(stream, class, time, writer);
        let pending = match origin.cpu {
            Some(cpu) => pending.u64(u64::from(cpu)),
            None => pending,
        };
        pending.i64(number(origin.pid)).i64(number(origin.pid.map(|_| origin.tid))).text(comm)
    }

    fn sample(
        &mut self,
        index: &Index,
        record: &Record<'_>,
        attr_index: usize,
        time: u64,
        place: u64,
    ) -> Result<(), lateralis_model::Full> {
        let order = self.file.order;
        let Some(values) = Sample::parse(&self.file.attrs.all[attr_index], record.body, order)
        else {
            self.bad(record, place, DamageReason::FieldBeyondContent, time);
            return Ok(());
        };
        let with_tid = self.file.attrs.all[attr_index].has(sample::TID);
        let origin = Origin {
            pid: with_tid.then_some(values.pid),
            tid: values.tid,
            cpu: values.cpu.or_else(|| index.cpus.get(&values.id).copied()),
        };
        let (stream, _) = self.stream(origin.cpu, time);
        let SampleClass { class, format } = self.sample_class(attr_index, origin.cpu.is_some());
        let attr = std::mem::take(&mut self.file.attrs.all[attr_index]);
        let pending = self.begin(stream, class, time, origin);
        let pending =
            sample_class::values(&attr, format.is_none(), record.misc, &values, order, pending);
        let decoded = match &format {
            None => Ok(pending),
            Some(format) => format
                .decode_common(values.raw, order, pending)
                .and_then(|pending| format.decode(values.raw, order, pending)),
        };
        let ended = decoded.map(Pending::end);
        self.file.attrs.all[attr_index] = attr;
        match ended {
            Ok(ended) => ended,
            Err(_) => {
                self.bad(record, place, DamageReason::FieldBeyondContent, time);
                Ok(())
            }
        }
    }

    fn sample_class(&mut self, attr_index: usize, with_cpu: bool) -> SampleClass {
        if let Some(class) = &self.samples[attr_index][usize::from(with_cpu)] {
            return class.clone();
        }
        let stream_class = self.stream_class(with_cpu);
        let attr = &self.file.attrs.all[attr_index];
        let tracing = self.file.features.tracing.as_mut();
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
                let prefixed =
                    members.into_iter().map(|(name, class)| (format!("perf_{name}"), class));
                let common = format.common_class();
                let common = common.members().iter();
                let common = common.map(|member| (member.name.clone(), member.class.clone()));
                EventClass {
                    context: Some(FieldClass::structure(prefixed.chain(common))),
                    ..format.event_class()
                }
            }
            None => EventClass {
                payload: Some(FieldClass::structure(members)),
                ..EventClass::default()
            },
        };
        class.name = name;
        for (name, mask, bit) in [
            ("perf.user_regs", attr.sample_regs_user, sample::REGS_USER),
            ("perf.intr_regs", attr.sample_regs_intr, sample::REGS_INTR),
        ] {
            if attr.has(bit) {
                let value = format!("{mask:#x}");
                class.attributes.push(Attribute { name: name.to_owned(), value });
            }
        }
        if attr.sample_type & !sample::KNOWN != 0 {
            self.notes
                .remark(format!("samples of {} have fields that are not known here", class.name));
        }
        let class = SampleClass { class: self.builder.event_class(stream_class, class), format };
        self.samples[attr_index][usize::from(with_cpu)] = Some(class.clone());
        class
    }

    fn at_end(&self, record: &Record<'_>, attr: Option<usize>) -> Option<Origin> {
        let attr = self.file.attrs.all.get(attr?)?;
        Origin::at_end(record, attr, self.file.order)
    }

    fn sideband(
        &mut self,
        record: &Record<'_>,
        attr: Option<usize>,
        time: u64,
        place: u64,
    ) -> Result<(), lateralis_model::Full> {
        let order = self.file.order;
        let trailer = match attr.and_then(|attr| self.file.attrs.all.get(attr)) {
            Some(attr) if record.kind < 64 => attr.trailer_bytes(),
            _ => 0,
        };
        let Some(length) = record.body.len().checked_sub(trailer) else {
            self.bad(record, place, DamageReason::FieldBeyondContent, time);
            return Ok(());
        };
        let body = &record.body[..length];
        let told = if record.kind < 64 { self.at_end(record, attr) } else { None };
        let origin = told.unwrap_or_else(|| Origin::own(record.kind, body, order));
        self.learn(record.kind, body);
        let (stream, _) = self.stream(origin.cpu, time);
        let key = (record.kind, sideband::variant(record.kind, record.misc), origin.cpu.is_some());
        let class = match self.others.get(&key) {
            Some(&class) => class,
            None => {
                let stream_class = self.stream_class(key.2);
                let class = EventClass {
                    name: sideband::name(record.kind, record.misc),
                    payload: Some(sideband::class(record.kind, record.misc)),
                    ..EventClass::default()
                };
                let class = self.builder.event_class(stream_class, class);
                self.others.insert(key, class);
                class
            }
        };
        if record.kind == records::AUX {
            let flags = Wire::at(body, 16, order).u64().unwrap_or(0);
            self.truncated_aux += flags & 1;
        }
        let behind = place + record.size();
        let pending = self.begin(stream, class, time, origin);
        let values = sideband::values(record, Wire::new(body, order), behind, pending);
        match values.map(Pending::end) {
            Some(ended) => ended,
            None => {
                self.bad(record, place, DamageReason::FieldBeyondContent, time);
                Ok(())
            }
        }
    }

    /// Names of threads change with the records that tell them.
    fn learn(&mut self, kind: u32, body: &[u8]) {
        let mut wire = Wire::new(body, self.file.order);
        let four = [wire.u32(), wire.u32(), wire.u32(), wire.u32()];
        match (kind, four) {
            (records::COMM, [Some(pid), Some(tid), ..]) => {
                let comm = text(&body[8..]);
                let names = self.builder.names();
                names.threads.insert(tid, comm.clone());
                if pid == tid {
                    names.processes.insert(pid, comm.clone());
                }
                self.recent = [const { None }; RECENT];
                self.comms.insert(tid, comm.into());
            }
            (records::FORK, [Some(pid), _, Some(tid), Some(parent)]) => {
                if let Some(comm) = self.comms.get(&parent).cloned() {
                    let names = self.builder.names();
                    names.threads.insert(tid, comm.as_ref().to_owned());
                    if pid == tid {
                        names.processes.insert(pid, comm.as_ref().to_owned());
                    }
                    self.recent = [const { None }; RECENT];
                    self.comms.insert(tid, comm);
                }
            }
            _ => {}
        }
    }

    fn loss(&mut self, record: &Record<'_>, attr: Option<usize>, time: u64, timed: bool) {
        let mut wire = Wire::new(record.body, self.file.order);
        let first = wire.u64().unwrap_or(0);
        if record.kind == records::LOST_SAMPLES {
            // Told again by LOST: counted at the end.
            self.lost_samples = self.lost_samples.saturating_add(first);
            return;
        }
        let count = wire.u64();
        self.lost = self.lost.saturating_add(count.unwrap_or(0));
        let cpu = self.at_end(record, attr).and_then(|origin| origin.cpu);
        let (stream, last) = self.stream(cpu, time);
        let begin = last.map(|last| self.nanos(last));
        let end = timed.then(|| self.nanos(time));
        let interval = Interval { begin, end };
        self.builder.loss(Loss { stream, cause: LossCause::Full, count, interval });
    }

    fn finish(mut self) -> MemoryTrace {
        // LOST counts records of a buffer as they are lost; LOST_SAMPLES counts
        // those of an event, the same ones, and those after the last LOST.
        if let Some(count @ 1..) = self.lost_samples.checked_sub(self.lost) {
            let (stream, _) = self.stream(None, 0);
            let interval = Interval::default();
            let cause = LossCause::Discarded;
            self.builder.loss(Loss { stream, cause, count: Some(count), interval });
        }
        if self.truncated_aux > 0 {
            self.notes.remark(format!(
                "output of a hardware tracer was lost at {} places: events aux with the flag \
                 truncated",
                self.truncated_aux
            ));
        }
        if let Some(tracing) = &mut self.file.features.tracing {
            for (tid, name) in std::mem::take(&mut tracing.cmdlines) {
                self.builder.names().threads.entry(tid).or_insert(name);
            }
        }
        self.notes.finish(&mut self.builder);
        self.builder.finish()
    }
}
