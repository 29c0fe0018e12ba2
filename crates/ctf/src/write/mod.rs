// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes a trace of any format as CTF 1.8 or CTF 2.
//!
//! ```text
//! Source ─ events ─► Stream (one packet each) ─ packets ─► Sink
//!            │                                              ▲
//!            └─ classes ─► layout ─ tsdl or json ─ metadata ┘
//! ```
//!
//! Both versions describe the same bytes, but for what CTF 1.8 has no word for.
//! Metadata comes last, when it is known which layouts the events needed.
//! Memory is bounded by streams times packet size, and by the classes.
//!
//! Packets of a source that has packets are kept; others end at [`Options::packet_bytes`], and
//! where a loss begins or ends, so that each loss is reported in its interval.
//!
//! ```
//! use lateralis_ctf::write::{self, Files, Options};
//! use lateralis_model::{EventClass, FieldClass, MemoryTrace, StreamClass};
//!
//! let mut builder = MemoryTrace::builder("an example", u64::MAX);
//! let class = builder.stream_class(StreamClass::default());
//! let stream = builder.stream(class, "cpu0", None);
//! let payload = Some(FieldClass::structure([("path", FieldClass::text())]));
//! let event = EventClass { name: "open".into(), payload, ..Default::default() };
//! let event = builder.event_class(class, event);
//! builder.event(stream, event, 0, None).text("/etc/hosts").end().unwrap();
//!
//! let mut files = Files::default();
//! let report = write::write(&builder.finish(), &mut files, &Options::default()).unwrap();
//! assert!(report.dropped.is_empty());
//! let copy = files.into_reader();
//! let mut events = copy.events();
//! let path = events.next_event().unwrap().payload().unwrap().get("path").unwrap();
//! assert_eq!(path.as_text().unwrap(), "/etc/hosts");
//! ```

mod classes;
mod described;
pub mod directory;
mod encode;
mod json;
mod layout;
mod leaves;
pub(crate) mod names;
mod recover;
mod roles;
mod sink;
mod stream;
mod time;
mod tsdl;
mod zeros;

use std::collections::BTreeSet;
use std::io;

use lateralis_model::{Damage, Dropped, EnvValue, Event, Loss, Source, Trace};

use classes::Classes;
use described::Described;
use encode::{Refused, Values};
pub use recover::recover;
pub use sink::{Files, Sink};
use stream::{Shared, Stream};

/// Which version to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// 1.8, which every reader knows.
    #[default]
    V1,
    /// 2, which can say more.
    V2,
}

/// How to write.
#[derive(Debug, Clone)]
pub struct Options {
    /// The version.
    pub version: Version,
    /// Size at which packets end, in bytes; a single event may be larger.
    pub packet_bytes: usize,
    /// Added to what the source says about itself.
    pub environment: Vec<(String, EnvValue)>,
}

impl Default for Options {
    /// CTF 1.8 in packets of 64 KiB.
    fn default() -> Self {
        Self { version: Version::default(), packet_bytes: 64 << 10, environment: Vec::new() }
    }
}

/// What was written.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What could not be kept.
    pub dropped: Dropped,
    /// Events written.
    pub events: u64,
    /// Packets written.
    pub packets: u64,
    /// What the source could not read; the copy does not have it.
    pub damage: Vec<Damage>,
}

/// Writes all of `source`.
///
/// Unreadable parts of the source are listed in [`Report::damage`], counted in [`Report::dropped`],
/// and noted in the environment of the copy as `damage_1` and so on: a copy never looks more
/// complete than its source.
///
/// Cost: linear in the events; memory as the module says.
///
/// # Errors
/// Those of the sink; what was written before stays as it is.
pub fn write(source: &dyn Source, sink: &mut dyn Sink, options: &Options) -> io::Result<Report> {
    let mut writer = Writer::new(source, options);
    let mut failed = None;
    let summaries = source.streams();
    let mut taken = BTreeSet::new();
    for (index, summary) in summaries.iter().enumerate() {
        sink.open(index as u32, &names::file(&summary.name, &mut taken))?;
    }
    let late = source.visit(&mut |event| {
        if failed.is_none() {
            failed = writer.event(event, sink).err();
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let mut report = Report { damage: source.damage().to_vec(), ..Report::default() };
    report.damage.extend(late);
    writer.finish(sink, options, report)
}

/// What is dropped where the first events of a stream knew no thread.
const NO_WRITER: &str = "threads of events, in streams that begin without";

/// Entries of the environment that say where the source was damaged; more are
/// summed up.
const DAMAGE_ENTRIES: usize = 256;

struct Writer<'a> {
    source: &'a dyn Source,
    classes: Classes<'a>,
    streams: Vec<Stream>,
    common: Common<'a>,
    lateralis: bool,
    events: u64,
    dropped: Dropped,
}

/// What all streams share.
struct Common<'a> {
    trace: &'a Trace,
    stream_id_bytes: usize,
    packet_bytes: usize,
}

impl Common<'_> {
    fn of<'c>(&'c self, classes: &'c Classes<'_>, class: usize) -> Shared<'c> {
        let written = &classes.streams[class];
        Shared {
            class: written,
            clock: written.clock.and_then(|clock| self.trace.clocks.get(clock)),
            uuid: self.trace.uuid.map(|uuid| uuid.0),
            stream_id_bytes: self.stream_id_bytes,
            packet_bytes: self.packet_bytes,
        }
    }
}

impl<'a> Writer<'a> {
    fn new(source: &'a dyn Source, options: &Options) -> Self {
        let mut dropped = Dropped::default();
        let classes = Classes::new(source, options.version, &mut dropped);
        let large = classes.streams.iter().any(|class| class.id > u64::from(u32::MAX));
        let streams = source.streams();
        let streams = streams.iter().enumerate().map(|(index, summary)| {
            let index = index as u32;
            let class = (summary.class as usize).min(classes.streams.len().saturating_sub(1));
            let of_stream = source.losses().iter().filter(|loss| loss.stream.0 == index);
            let (known, unknown): (Vec<Loss>, Vec<Loss>) =
                of_stream.cloned().partition(|loss| loss.count.is_some());
            unknown.iter().for_each(|_| dropped.note("losses of which nobody knows how many"));
            let clocked = classes.streams.get(class).is_some_and(|class| class.clock.is_some());
            Stream::new(class, index, summary.cpu.map(|cpu| cpu.0), known, clocked)
        });
        let streams = streams.collect();
        Self {
            source,
            classes,
            streams,
            common: Common {
                trace: source.trace(),
                stream_id_bytes: if large { 8 } else { 4 },
                packet_bytes: options.packet_bytes,
            },
            lateralis: is_lateralis(source),
            events: 0,
            dropped,
        }
    }

    fn event(&mut self, event: &Event<'_>, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(event.stream.0 as usize) else {
            self.dropped.note("events of streams that the source does not list");
            return Ok(());
        };
        if stream.cpu.is_none() {
            stream.cpu = event.packet.cpu.map(|cpu| cpu.0);
        }
        let class = stream.class;
        stream.before(event, &self.common.of(&self.classes, class), self.lateralis, sink)?;
        self.encode(event, class);
        Ok(())
    }

    fn encode(&mut self, event: &Event<'_>, class: usize) {
        let encoder = &mut self.streams[event.stream.0 as usize].encoder;
        let (length, odd) = (encoder.out.len(), encoder.odd());
        let source_class = event.class_index as usize;
        loop {
            let Some(plan) = self.classes.plan(class, source_class, &mut self.dropped) else {
                self.dropped.note("events of classes that the source does not list");
                return;
            };
            let written = &mut self.classes.streams[class];
            let planned = &mut written.events[plan];
            let ticks = event.ticks.map_or(0, |ticks| ticks.0);
            match (written.id_bits, written.time_bits) {
                (16, 48) => {
                    let header = ticks << 16 | planned.id & 0xffff;
                    encoder.out.extend_from_slice(&header.to_le_bytes());
                }
                (id_bits, time_bits) => {
                    let id = planned.id.to_le_bytes();
                    encoder.out.extend_from_slice(&id[..id_bits as usize / 8]);
                    let time = ticks.to_le_bytes();
                    encoder.out.extend_from_slice(&time[..time_bits as usize / 8]);
                }
            }
            let mut values = Values { slots: event.slots, bytes: event.bytes };
            let begin = encoder.out.len();
            if let Some(leaves) = &planned.leaves
                && encoder.leaves(leaves, &values).is_some()
            {
                if event.writer.is_some() && self.classes.lacks_writers[class] {
                    self.dropped.note(NO_WRITER);
                }
                planned.count += 1;
                self.events += 1;
                return;
            }
            encoder.take_back(begin, odd);
            let mut done = Ok(());
            if let Some(node) = &written.common_context {
                done = encoder.value(node, &mut values, 0);
            }
            if written.writers {
                let (pid, tid) =
                    event.writer.map_or((u32::MAX, u32::MAX), |writer| (writer.pid, writer.tid));
                encoder.out.extend_from_slice(&pid.to_le_bytes());
                encoder.out.extend_from_slice(&tid.to_le_bytes());
            } else if event.writer.is_some() && self.classes.lacks_writers[class] {
                self.dropped.note(NO_WRITER);
            }
            for node in [&planned.context, &planned.payload].into_iter().flatten() {
                done = done.and_then(|()| encoder.value(node, &mut values, 0));
            }
            match done {
                Ok(()) => {
                    planned.count += 1;
                    self.events += 1;
                    return;
                }
                Err(Refused::Site(site)) => {
                    encoder.take_back(length, odd);
                    self.classes.deny(class, source_class, plan, site);
                }
                Err(Refused::Values) => {
                    encoder.take_back(length, odd);
                    self.dropped.note("events whose values do not fit their class");
                    return;
                }
            }
        }
    }

    fn finish(
        mut self,
        sink: &mut dyn Sink,
        options: &Options,
        mut report: Report,
    ) -> io::Result<Report> {
        let begin = self.source.interval().begin;
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            if stream.class < self.classes.streams.len() {
                stream.finish(begin, &self.common.of(&self.classes, stream.class), sink)?;
            }
            report.packets += stream.packets;
            for (what, count) in stream.encoder.dropped.iter() {
                (0..count.min(1)).for_each(|_| self.dropped.note(what));
            }
        }
        self.classes.complete(&mut self.dropped);
        let mut environment = self.source.trace().environment.clone();
        environment.extend(options.environment.iter().cloned());
        for (index, damage) in report.damage.iter().enumerate() {
            self.dropped.note("bytes of the source that cannot be read");
            if index < DAMAGE_ENTRIES {
                let (name, text) = (format!("damage_{}", index + 1), damage_text(damage));
                environment.push((name, EnvValue::Text(text)));
            }
        }
        if report.damage.len() > DAMAGE_ENTRIES {
            let count = EnvValue::Integer(report.damage.len() as i128);
            environment.push(("damage_count".to_owned(), count));
        }
        let described = Described {
            trace: self.source.trace(),
            environment: self.classes.environment(self.source, environment, &mut self.dropped),
            clocks: self.classes.clocks.clone(),
            header: self.classes.header(self.common.stream_id_bytes),
            streams: &self.classes.streams,
        };
        let rest = match options.version {
            Version::V1 => tsdl::metadata(&described, sink)?,
            Version::V2 => json::metadata(&described, sink)?,
        };
        sink.metadata(&rest)?;
        sink.finish()?;
        report.events = self.events;
        report.dropped = self.dropped;
        Ok(report)
    }
}

/// Whether packets carry the counters and the checksum of Lateralis.
fn is_lateralis(source: &dyn Source) -> bool {
    let tracer = source.trace().env("tracer_name");
    tracer.and_then(EnvValue::as_text) == Some("lateralis")
}

/// Where, what, and when: the interval in nanoseconds, `?` where it is open.
fn damage_text(damage: &Damage) -> String {
    let end =
        |time: Option<lateralis_units::Nanos>| time.map_or("?".to_owned(), |time| time.to_string());
    format!("{damage} ({} to {})", end(damage.interval.begin), end(damage.interval.end))
}
