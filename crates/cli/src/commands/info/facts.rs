// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `lat info` says, before it is said.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lateralis_analysis::{LossTotal, Tally, total_by_cause, total_by_stream};
use lateralis_model::{
    ColumnBatch, Damage, Event, Interval, Look, Place, Seen, Source, StreamIndex, Trace, Writer,
};
use lateralis_semantics::Extent;
use lateralis_traces::{Part, Tie};
use lateralis_units::Nanos;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::beyond;
use crate::contradictions;
use crate::output::JSON_VERSION;
use crate::selection::Selection;
use lateralis_store::Recording;
use lateralis_store::facts::{Facts as Meaning, Threads};

/// Events of the tracer about itself.
const INTERNAL: &str = "lateralis:";
const PROCESS_EVENT: &str = "lateralis:PROCESS";
const THREAD_NAME_EVENT: &str = "lateralis:THREAD_NAME";

fn class_name(trace: &Trace, stream: u32, class: u32) -> &str {
    let stream = trace.stream_classes.get(stream as usize);
    let class = stream.and_then(|stream| stream.event_classes.get(class as usize));
    class.map_or("", |class| class.name.as_str())
}

/// One process that the trace names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcessFacts {
    /// The process that made it.
    pub parent_pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Threads that wrote events.
    pub threads: BTreeMap<u32, ThreadFacts>,
}

/// One thread that wrote.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Its name, where the trace tells.
    pub name: String,
    /// Events it wrote, bookkeeping not counted.
    pub events: u64,
}

/// The facts as JSON. Traces have tens of thousands of classes, so these are told while they are
/// written, one by one.
struct Document<'a> {
    facts: Value,
    classes: &'a BTreeMap<String, Tally>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = self.facts.as_object().into_iter().flatten();
        serializer.collect_map(known.map(|(key, value)| match key.as_str() {
            "events" => (key, Told::Classes(self.classes)),
            _ => (key, Told::Value(value)),
        }))
    }
}

enum Told<'a> {
    Value(&'a Value),
    Classes(&'a BTreeMap<String, Tally>),
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = |time: Option<Nanos>| time.map(|time| time.0);
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Classes(classes) => {
                serializer.collect_seq(classes.iter().map(|(name, tally)| {
                    json!({
                        "name": name,
                        "count": tally.count,
                        "first_ns": nanos(tally.first),
                        "last_ns": nanos(tally.last),
                    })
                }))
            }
        }
    }
}

/// Everything `lat info` says.
#[derive(Debug, Default)]
pub struct Facts {
    /// All events.
    pub total: Tally,
    /// From the beginning to the end.
    pub extent: Extent,
    /// Events of the tracer about itself, in `total` too.
    pub internal: u64,
    /// Events by stream.
    pub streams: Vec<Tally>,
    /// By name.
    pub classes: BTreeMap<String, Tally>,
    /// By process id.
    pub processes: BTreeMap<u32, ProcessFacts>,
    /// Losses by cause.
    pub losses: Vec<LossTotal>,
    /// Losses by stream and cause.
    pub stream_losses: Vec<LossTotal>,
    /// What cannot be read.
    pub damage: Vec<Damage>,
    /// Where switches contradict each other.
    pub contradictions: contradictions::Found,
    /// Events whose times may be beyond the timeline.
    pub times_beyond: u64,
}

impl Facts {
    /// Reads the chosen events.
    ///
    /// Cost: one pass, where the trace has switches in the order of time, and another if it finds damage that
    /// opening did not; memory by classes, streams and threads, not by events.
    pub fn of(recording: &Recording, selection: &Selection<'_>) -> Self {
        let known = recording.all_damage(Vec::new());
        let (facts, has_found_damage) = Self::pass(recording, selection, &known);
        match has_found_damage && facts.contradictions.all.count() > 0 {
            // What is missing may explain them.
            true => Self::pass(recording, selection, &facts.damage).0,
            false => facts,
        }
    }

    fn pass(recording: &Recording, selection: &Selection<'_>, known: &[Damage]) -> (Self, bool) {
        let source = &recording.source;
        let trace = source.trace();
        let mut facts = Self {
            losses: total_by_cause(source.losses()),
            stream_losses: total_by_stream(source.losses()),
            ..Self::default()
        };
        facts.streams.resize_with(recording.streams.len(), Tally::default);
        let mut classes: Vec<Vec<Tally>> = trace
            .stream_classes
            .iter()
            .map(|stream| vec![Tally::default(); stream.event_classes.len()])
            .collect();
        let meaning = Meaning::new(&recording.annotated(), &recording.streams);
        let look = |stream, class| match class_name(trace, stream, class) {
            PROCESS_EVENT | THREAD_NAME_EVENT => Look::Whole,
            // They may end after the last event.
            _ if meaning.has_wholes(stream, class) => Look::Whole,
            _ => Look::Ends,
        };
        let mut search = contradictions::Search::new(recording, selection, recording.gaps(known));
        let is_whole = selection.interval() == Interval::default() && selection.is_everything();
        let inside = match &mut search {
            Some(search) if is_whole && search.has_columns(source) => {
                let wants = |stream, class| look(stream, class) == Look::Whole;
                let mut kept = Self::default();
                let counted = Mutex::new((&mut facts, &mut classes));
                let see = |batch: &dyn ColumnBatch, _: Option<u32>| {
                    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
                    let (facts, classes) = &mut *counted;
                    facts.batch(trace, classes, batch);
                };
                let inside = search.columns(recording, wants, &see, &mut |event| {
                    if wants(event.stream_class_index, event.class_index) {
                        kept.extent.reach(meaning.end_of(event));
                        kept.names(event);
                    }
                });
                facts.add_names(kept);
                inside
            }
            Some(search) => {
                let mut events = source.events_in(selection.interval());
                while !selection.has_failed()
                    && let Some(event) = events.next_event()
                {
                    let is_chosen = selection.contains(&event);
                    search.event(&event, is_chosen);
                    if is_chosen {
                        facts.event(&mut classes, &meaning, &event);
                    }
                }
                events.damage()
            }
            // Counts need no order of time, and few events tell more than when they were.
            None => selection.survey(source, &look, &mut |seen| match seen {
                Seen::Event(event) => facts.event(&mut classes, &meaning, event),
                Seen::Times { stream, stream_class, class, times } => {
                    facts.add(&mut classes, (stream, stream_class, class), Tally::of(times));
                }
                Seen::Ends { stream, stream_class, class, count, first, last } => {
                    let tally = Tally { count, first: Some(first), last: Some(last) };
                    facts.add(&mut classes, (stream, stream_class, class), tally);
                }
                Seen::Written { stream_class, class, writer, count } => {
                    facts.written(class_name(trace, stream_class, class), writer, count);
                }
            }),
        };
        for (pid, name) in &recording.names.processes {
            let process = facts.processes.entry(*pid).or_default();
            if process.name.is_empty() {
                process.name.clone_from(name);
            }
        }
        for process in facts.processes.values_mut() {
            for (tid, thread) in &mut process.threads {
                if let (true, Some(name)) =
                    (thread.name.is_empty(), recording.names.threads.get(tid))
                {
                    thread.name.clone_from(name);
                }
            }
        }
        for (stream, tallies) in trace.stream_classes.iter().zip(&classes) {
            for (class, tally) in stream.event_classes.iter().zip(tallies) {
                facts.class(&class.name, tally);
            }
        }
        if let (Some(first), Some(last)) = (facts.total.first, facts.total.last) {
            facts.extent.add_events(first, last);
        }
        facts.extent = facts.extent.until(selection.interval().end);
        let has_found_damage = !inside.is_empty();
        facts.damage = recording.all_damage(inside);
        if let (Some(search), Some(end)) = (search, facts.extent.end()) {
            facts.contradictions = search.finish(end);
        }
        facts.times_beyond = beyond::count(recording, facts.total.first, facts.total.last);
        (facts, has_found_damage)
    }

    /// Counts events of one class.
    fn add(
        &mut self,
        classes: &mut [Vec<Tally>],
        (stream, stream_class, class): (StreamIndex, u32, u32),
        tally: Tally,
    ) {
        self.streams[stream.0 as usize].merge(&tally);
        classes[stream_class as usize][class as usize].merge(&tally);
    }

    fn event(&mut self, classes: &mut [Vec<Tally>], meaning: &Meaning, event: &Event<'_>) {
        self.streams[event.stream.0 as usize].add(event.time);
        let class = event.class_index as usize;
        classes[event.stream_class_index as usize][class].add(event.time);
        self.extent.reach(meaning.end_of(event));
        self.names(event);
        if let Some(writer) = event.writer {
            self.written(&event.class.name, writer, 1);
        }
    }

    /// Counts the events of a batch.
    fn batch(&mut self, trace: &Trace, classes: &mut [Vec<Tally>], batch: &dyn ColumnBatch) {
        let (stream, stream_class) = (batch.stream(), batch.stream_class());
        for class in (0..batch.class_count()).map(|index| batch.class(index)) {
            let at = (stream, stream_class, class.class);
            self.add(classes, at, Tally::of(class.times));
        }
        for event in (0..batch.row_count()).map(|index| batch.row(index)) {
            let tally = Tally::of(&[event.time]);
            self.add(classes, (stream, stream_class, event.class_index), tally);
            if let Some(writer) = event.writer {
                self.written(&event.class.name, writer, 1);
            }
        }
        if batch.writers().is_empty() {
            return;
        }
        let mut writers = batch.writers().iter().peekable();
        let (mut writer, mut counts) = (None, Vec::<u64>::new());
        let report = |facts: &mut Self, writer: Option<Writer>, counts: &mut Vec<u64>| {
            for (class, count) in (0..).zip(counts.drain(..)).filter(|(_, count)| *count > 0) {
                if let Some(writer) = writer {
                    facts.written(class_name(trace, stream_class, class), writer, count);
                }
            }
        };
        for (at, place) in (0..).zip(batch.order().iter()) {
            while let Some((_, next)) = writers.next_if(|(from, _)| *from <= at) {
                report(self, writer, &mut counts);
                writer = Some(*next);
            }
            let Place::Columns(class) = place else { continue };
            let class = class as usize;
            if counts.len() <= class {
                counts.resize(class + 1, 0);
            }
            counts[class] += 1;
        }
        report(self, writer, &mut counts);
    }

    /// Names and ends from single events.
    fn add_names(&mut self, told: Self) {
        if let Some(end) = told.extent.end() {
            self.extent.reach(end);
        }
        for (pid, of) in told.processes {
            let process = self.processes.entry(pid).or_default();
            process.parent_pid = of.parent_pid.or(process.parent_pid);
            if !of.name.is_empty() {
                process.name = of.name;
            }
            for (tid, thread) in of.threads {
                process.threads.entry(tid).or_default().name = thread.name;
            }
        }
    }

    fn class(&mut self, name: &str, tally: &Tally) {
        if tally.count == 0 {
            return;
        }
        if name.starts_with(INTERNAL) {
            self.internal += tally.count;
        }
        for sum in [&mut self.total, self.classes.entry(name.to_owned()).or_default()] {
            sum.merge(tally);
        }
    }

    /// Takes the names in an event of the tracer about itself.
    fn names(&mut self, event: &Event<'_>) {
        let number = |name| {
            let value = event.payload()?.get(name)?.as_u64()?;
            u32::try_from(value).ok()
        };
        let text = |name| Some(event.payload()?.get(name)?.as_text()?.into_owned());
        match event.class.name.as_str() {
            PROCESS_EVENT => {
                let Some(pid) = number("pid") else { return };
                let process = self.processes.entry(pid).or_default();
                process.parent_pid = number("parent_pid");
                process.name = text("name").unwrap_or_default();
            }
            THREAD_NAME_EVENT => {
                let (Some(pid), Some(tid)) = (number("pid"), number("tid")) else {
                    return;
                };
                let thread = self.processes.entry(pid).or_default().threads.entry(tid).or_default();
                thread.name = text("name").unwrap_or_default();
            }
            _ => {}
        }
    }

    /// A thread wrote so many events of this name.
    fn written(&mut self, name: &str, writer: Writer, count: u64) {
        if !name.starts_with(INTERNAL) {
            let process = self.processes.entry(writer.pid).or_default();
            process.threads.entry(writer.tid).or_default().events += count;
        }
    }

    /// The same as JSON; times in nanoseconds, sizes in bytes.
    pub fn document(&self, recording: &Recording) -> impl Serialize + '_ {
        let trace = recording.source.trace();
        let nanos = |time: Option<Nanos>| time.map(|time| time.0);
        let streams: Vec<Value> = recording
            .streams
            .iter()
            .zip(&self.streams)
            .map(|(stream, events)| {
                json!({
                    "name": stream.name,
                    "class": trace.stream_classes[stream.class as usize].id,
                    "cpu": stream.cpu.map(|cpu| cpu.0),
                    "packets": stream.packets,
                    "bytes": stream.bytes,
                    "events": events.count,
                    "first_ns": nanos(events.first),
                    "last_ns": nanos(events.last),
                })
            })
            .collect();
        let clocks: Vec<Value> = trace
            .clocks
            .iter()
            .map(|clock| {
                json!({
                    "name": clock.name,
                    "description": clock.description,
                    "frequency_hz": clock.frequency(),
                    "precision_ticks": clock.precision,
                    "offset_s": clock.offset_seconds(),
                    "offset_ticks": clock.offset_ticks(),
                    "unix_epoch": clock.unix_epoch,
                })
            })
            .collect();
        let parts = recording.source.parts().iter().zip(ties(recording));
        let parts: Vec<Value> = parts.map(part).collect();
        let mut facts = json!({
            "version": JSON_VERSION,
            "trace": recording.path.display().to_string(),
            "format": recording.source.format(),
            "traces": parts,
            "uuid": trace.uuid.map(|uuid| uuid.to_string()),
            "environment": environment(recording),
            "clocks": clocks,
            "events_total": self.total.count,
            "events_internal": self.internal,
            "first_ns": nanos(self.extent.begin()),
            "last_ns": nanos(self.extent.end()),
            "duration_ns": self.extent.nanos(),
            "times_beyond": self.times_beyond,
            "streams": null,
            // As they are written: see `Document`.
            "events": null,
            "processes": self.processes_json(),
            "losses": self.stream_losses.iter().map(|total| loss(recording, total)).collect::<Vec<_>>(),
            "damage": self.damage.iter().map(damage).collect::<Vec<_>>(),
            "contradictions": contradictions::json(
                &self.contradictions.all,
                |tid| thread_name(recording, self.contradictions.threads(), tid),
            ),
            "faults": recording.source.faults(),
            "remarks": recording.source.remarks(),
        });
        // Moved, not copied: there may be very many.
        facts["streams"] = Value::Array(streams);
        Document { facts, classes: &self.classes }
    }

    fn processes_json(&self) -> Vec<Value> {
        let threads = |process: &ProcessFacts| -> Vec<Value> {
            let thread = |(tid, thread): (&u32, &ThreadFacts)| {
                let name = &thread.name;
                json!({ "tid": tid, "name": name, "events": thread.events })
            };
            process.threads.iter().map(thread).collect()
        };
        let process = |(pid, process): (&u32, &ProcessFacts)| {
            json!({
                "pid": pid,
                "parent_pid": process.parent_pid,
                "name": process.name,
                "threads": threads(process),
            })
        };
        self.processes.iter().map(process).collect()
    }
}

/// The name of a thread, by its events or by the trace.
pub fn thread_name<'a>(
    recording: &'a Recording,
    threads: &'a Threads,
    tid: u32,
) -> Option<&'a str> {
    let told = threads.get(tid).and_then(|thread| thread.name.as_ref());
    told.or_else(|| recording.names.threads.get(&tid)).map(String::as_str)
}

/// The environment without the texts of schemas, which are long.
pub fn environment(recording: &Recording) -> BTreeMap<String, Value> {
    let entries = recording.source.trace().environment.iter();
    let short = entries.filter(|(name, _)| !name.starts_with("lateralis_schema_"));
    short
        .map(|(name, value)| {
            let value = match value {
                lateralis_model::EnvValue::Text(text) => json!(text),
                lateralis_model::EnvValue::Integer(number) => match i64::try_from(*number) {
                    Ok(number) => json!(number),
                    Err(_) => json!(number.to_string()),
                },
            };
            (name.clone(), value)
        })
        .collect()
}

fn part((part, tie): (&Part, Option<Tie>)) -> Value {
    json!({
        "place": part.place,
        "format": part.source.format(),
        "clock_relation": tie.map(|tie| tie.relation.name()),
        "clock_error_ns": tie.and_then(|tie| tie.error_ns),
    })
}

/// How the clock of each trace relates to the first that there is; `None` for that one and
/// where there is none.
pub fn ties(recording: &Recording) -> impl Iterator<Item = Option<Tie>> + '_ {
    let bases = recording.source.bases();
    let first = bases.iter().position(Option::is_some);
    bases.iter().enumerate().map(move |(index, base)| {
        let first = first.filter(|&first| first != index)?;
        Some(bases[first].as_ref()?.tie(base.as_ref()?))
    })
}

fn loss(recording: &Recording, total: &LossTotal) -> Value {
    let stream = total.stream.and_then(|index| recording.streams.get(index.0 as usize));
    json!({
        "stream": stream.map(|stream| stream.name.as_str()),
        "cause": total.cause.name(),
        "count": total.count,
        "is_lower_bound": total.is_lower_bound,
        "from_ns": total.interval.begin.map(|time| time.0),
        "to_ns": total.interval.end.map(|time| time.0),
    })
}

fn damage(damage: &Damage) -> Value {
    json!({
        "file": damage.file,
        "begin_bytes": damage.begin_bytes,
        "end_bytes": damage.end_bytes,
        "reason": damage.reason.to_string(),
        "from_ns": damage.interval.begin.map(|time| time.0),
        "to_ns": damage.interval.end.map(|time| time.0),
    })
}
