// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Genode: what the streams of its trace recorder mean.
//!
//! The recorder writes CTF, which another crate reads: a directory for each run,
//! below it the label of each component as directories, in there a file for each
//! thread and a copy of the metadata. The identity in the metadata is the same for
//! every trace, so streams belong together by where they lie.
//!
//! Each packet contains label, thread, priority and position of its thread: [`gather`] makes one
//! trace of all streams of a run, a process for each label and a thread for each stream, with these
//! events:
//!
//! | event | role | component is |
//! |---|---|---|
//! | `rpc:call`, `rpc:returned` | begin, end `rpc` of the thread | await_reply, ready |
//! | `rpc:dispatch`, `rpc:reply` | begin, end `dispatch` of the thread | ready, await_rpc |
//! | `signal:submit`, `signal:receive` | –: nothing says which belong together | –, ready |
//! | `checkpoint:START`, `END` | begin, end `checkpoint` key `name` | |
//! | `checkpoint:OBJ_NEW`, `OBJ_DEL` | begin, end `object` key `addr` | |
//! | `checkpoint:OBJ_STATE`, `EXCEPTION`, `FAILURE` | – | |
//! | `checkpoint NAME` | counter `data` | |
//!
//! Checkpoints without a type contain a value, of a queue for instance: each name is a class of its
//! own, so that each is a counter of its own. Beyond 256 names they share `checkpoint`. Each class
//! records the recorder's name of its events and the positions of label and thread, so that
//! analyses written for the recorder's names still apply.
//!
//! The states are those of Genode's own analysis for Trace Compass. [`annotate`]
//! adds what can be said of whole classes to a single stream.
//!
//! Sources: `gems/src/app/trace_recorder`, `base/trace/events.h` and
//! `gems/include/trace_recorder` of Genode.

use std::collections::BTreeMap;

use lateralis_model::original::Original;
use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Base, Builder, Clock, EnvValue, Event, EventClass, FieldClass, FieldKind, Fields,
    Full, IntegerClass, Label, MemoryTrace, Range, Source, StreamClass, StreamIndex, Trace, Writer,
};
use lateralis_units::CpuId;

/// Kinds of checkpoints by number.
const CHECKPOINTS: [(u64, &str); 8] = [
    (0x00, "UNDEF"),
    (0x01, "START"),
    (0x02, "END"),
    (0x10, "OBJ_NEW"),
    (0x11, "OBJ_DEL"),
    (0x12, "OBJ_STATE"),
    (0xfe, "EXCEPTION"),
    (0xff, "FAILURE"),
];

/// A component and one of its threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// `init -> runtime -> nic_router`
    pub label: String,
    /// `ep`
    pub thread: String,
}

impl Place {
    /// From the path of a stream below the directory of its run,
    /// `init/runtime/nic_router/ep`.
    #[must_use]
    pub fn from_path(path: &str) -> Self {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let thread = parts.pop().unwrap_or_default().to_owned();
        Self { label: parts.join(" -> "), thread }
    }
}

/// Whether a trace is one of the recorder: it describes its events.
#[must_use]
pub fn is_genode(trace: &Trace) -> bool {
    let has = |name: &str| {
        let mut classes = trace.stream_classes.iter().flat_map(|class| &class.event_classes);
        classes.any(|class| class.name == name)
    };
    has("Rpc_call") && has("Rpc_dispatch") && has("Checkpoint")
}

/// Adds to a stream of the recorder what its path and its classes say: component
/// and thread as `genode.label` and `genode.thread` of the environment, the roles
/// of calls, and the names of the kinds of checkpoints.
///
/// `path` is that of the stream below the directory of its run. Checkpoints are all of one class,
/// so their role is that of a counter; [`gather`] separates them.
pub fn annotate(trace: &mut Trace, path: &str) {
    let place = Place::from_path(path);
    for (key, value) in [("genode.label", place.label), ("genode.thread", place.thread)] {
        trace.environment.retain(|(known, _)| known != key);
        trace.environment.push((key.to_owned(), EnvValue::Text(value)));
    }
    let classes = trace.stream_classes.iter_mut().flat_map(|class| &mut class.event_classes);
    for class in classes {
        let role = match class.name.as_str() {
            "Rpc_call" => "begin rpc",
            "Rpc_returned" => "end rpc",
            "Rpc_dispatch" => "begin dispatch",
            "Rpc_reply" => "end dispatch",
            "Checkpoint" => {
                label_types(class);
                "counter data"
            }
            _ => continue,
        };
        let role = Attribute { name: ATTRIBUTE.to_owned(), value: role.to_owned() };
        if !class.attributes.contains(&role) {
            class.attributes.push(role);
        }
    }
}

fn label_types(class: &mut EventClass) {
    let Some(FieldClass { kind: FieldKind::Struct(members), .. }) = &mut class.payload else {
        return;
    };
    for member in members.iter_mut().filter(|member| member.name == "type") {
        if let FieldKind::Unsigned(integer) = &mut member.class.kind {
            integer.labels = type_labels();
        }
    }
}

fn type_labels() -> Vec<Label> {
    let label = |(value, name): (u64, &str)| Label {
        name: name.to_owned(),
        ranges: vec![Range { low: value.into(), high: value.into() }],
    };
    CHECKPOINTS.into_iter().map(label).collect()
}

/// What has been gathered, and what of it was not of the recorder.
const CLASSES: [(&str, Option<&str>, Payload); 15] = [
    ("rpc:call", Some("begin rpc"), Payload::Call),
    ("rpc:returned", Some("end rpc"), Payload::Call),
    ("rpc:dispatch", Some("begin dispatch"), Payload::Call),
    ("rpc:reply", Some("end dispatch"), Payload::Call),
    ("signal:submit", None, Payload::Submit),
    ("signal:receive", None, Payload::Receive),
    ("checkpoint", Some("counter data"), Payload::Checkpoint),
    ("checkpoint:START", Some("begin checkpoint key name"), Payload::Checkpoint),
    ("checkpoint:END", Some("end checkpoint key name"), Payload::Checkpoint),
    ("checkpoint:OBJ_NEW", Some("begin object key addr"), Payload::Checkpoint),
    ("checkpoint:OBJ_DEL", Some("end object key addr"), Payload::Checkpoint),
    ("checkpoint:OBJ_STATE", None, Payload::Checkpoint),
    ("checkpoint:EXCEPTION", None, Payload::Checkpoint),
    ("checkpoint:FAILURE", None, Payload::Checkpoint),
    ("other", None, Payload::Other),
];
const FIRST_CHECKPOINT: u32 = 6;
const OTHER: u32 = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Call,
    Submit,
    Receive,
    Checkpoint,
    Other,
}

impl Payload {
    fn class(self) -> FieldClass {
        let hexadecimal = |bits| FieldClass::unsigned(bits, Base::Hexadecimal);
        let kind = IntegerClass { bits: 8, base: Base::Decimal, labels: type_labels() };
        let (name, text) = ("name", FieldClass::text());
        let number = || ("number", FieldClass::unsigned(32, Base::Decimal));
        match self {
            Self::Call => FieldClass::structure([(name, text), ("state", FieldClass::text())]),
            Self::Submit => FieldClass::structure([number()]),
            Self::Receive => FieldClass::structure([
                number(),
                ("context", hexadecimal(64)),
                ("state", FieldClass::text()),
            ]),
            Self::Checkpoint => FieldClass::structure([
                ("data", FieldClass::unsigned(32, Base::Decimal)),
                ("addr", hexadecimal(64)),
                ("type", FieldClass::new(FieldKind::Unsigned(kind))),
                (name, text),
            ]),
            Self::Other => FieldClass::structure([(name, text)]),
        }
    }
}

/// One trace of all streams of a run: each is given with its path below the directory of the run,
/// which is used if its packets do not contain label and thread. Events may use `limit_bytes` of
/// memory; if they do not fit, a remark is added. Losses, damage and remarks of the streams are
/// kept.
///
/// Cost: one pass over all events.
#[must_use]
pub fn gather(streams: &[(&str, &dyn Source)], limit_bytes: u64) -> MemoryTrace {
    let mut gathered = Gathered {
        builder: MemoryTrace::builder("Genode CTF", limit_bytes),
        stream_classes: Vec::new(),
        streams: BTreeMap::new(),
        labels: BTreeMap::new(),
        checkpoints: BTreeMap::new(),
    };
    for (path, source) in streams {
        for remark in source.remarks() {
            gathered.builder.remark(format!("{path}: {remark}"));
        }
        if gathered.source(path, *source).is_err() {
            let remark = format!("{path}: the limit of memory is reached; the rest is not read");
            gathered.builder.remark(remark);
            break;
        }
    }
    gathered.builder.finish()
}

/// Frequency, offset in seconds and in ticks of a clock.
type ClockKey = Option<(u64, i64, i64)>;

/// Names of checkpoints with a class of their own.
const NAMES: usize = 256;

/// A packet may contain any name: more threads than this are hostile.
const THREADS: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Thread {
    stream: StreamIndex,
    stream_class: u32,
    writer: Writer,
}

struct Gathered {
    builder: Builder,
    /// By frequency and offsets of the clock; `None` where there is no clock.
    stream_classes: Vec<(ClockKey, u32)>,
    /// By class of stream.
    streams: BTreeMap<(u32, Place), Thread>,
    labels: BTreeMap<String, u32>,
    /// Classes of checkpoints without a type, by class of stream and name.
    checkpoints: BTreeMap<(u32, String), u32>,
}

impl Gathered {
    fn source(&mut self, path: &str, source: &dyn Source) -> Result<(), Full> {
        let from_path = Place::from_path(path);
        let mut of_source: BTreeMap<StreamIndex, StreamIndex> = BTreeMap::new();
        let mut events = source.events();
        let mut added = Ok(());
        while let Some(event) = events.next_event() {
            added = self.thread(source.trace(), &event, &from_path).and_then(|thread| {
                of_source.insert(event.stream, thread.stream);
                self.event(&event, thread)
            });
            if added.is_err() {
                break;
            }
        }
        for damage in source.damage().iter().cloned().chain(events.damage()) {
            self.builder.damage(lateralis_model::Damage {
                file: format!("{path}: {}", damage.file),
                ..damage
            });
        }
        for loss in source.losses() {
            // A stream without an event has no thread here.
            if let Some(stream) = of_source.get(&loss.stream) {
                self.builder.loss(lateralis_model::Loss { stream: *stream, ..loss.clone() });
            } else {
                self.builder.remark(format!("{path}: events were lost: {}", loss.cause));
            }
        }
        added
    }

    fn stream_class(&mut self, clock: Option<&Clock>) -> u32 {
        let key = clock.map(|c| (c.frequency(), c.offset_seconds(), c.offset_ticks()));
        if let Some((_, class)) = self.stream_classes.iter().find(|(known, _)| *known == key) {
            return *class;
        }
        let clock = clock.map(|clock| self.builder.clock(clock.clone()));
        let fields = ["cpu_id", "pid", "tid"];
        let fields = fields.map(|name| (name, FieldClass::unsigned(32, Base::Decimal)));
        let class = self.builder.stream_class(StreamClass {
            name: Some("thread".to_owned()),
            clock,
            common_context: Some(FieldClass::structure(fields)),
            ..StreamClass::default()
        });
        for (name, role, payload) in CLASSES {
            self.builder.event_class(class, event_class(name, role, payload));
        }
        self.stream_classes.push((key, class));
        class
    }

    /// The class of a checkpoint without a type.
    fn checkpoint(&mut self, stream_class: u32, name: String) -> u32 {
        let key = (stream_class, name);
        if let Some(class) = self.checkpoints.get(&key) {
            return *class;
        }
        if key.1.is_empty() || self.checkpoints.len() >= NAMES {
            return FIRST_CHECKPOINT;
        }
        let (_, role, payload) = CLASSES[FIRST_CHECKPOINT as usize];
        let class = event_class(&format!("checkpoint {}", key.1), role, payload);
        let class = self.builder.event_class(stream_class, class);
        self.checkpoints.insert(key, class);
        class
    }

    fn thread(
        &mut self,
        trace: &Trace,
        event: &Event<'_>,
        from_path: &Place,
    ) -> Result<Thread, Full> {
        let context = event.packet_context();
        let text = |name: &str, instead: &str| match text(context, name) {
            told if told.is_empty() => instead.to_owned(),
            told => told,
        };
        let place = Place {
            label: text("session_label", &from_path.label),
            thread: text("thread_name", &from_path.thread),
        };
        let clock = event.stream_class.clock.and_then(|clock| trace.clocks.get(clock));
        let class = self.stream_class(clock);
        let key = (class, place);
        if let Some(thread) = self.streams.get(&key) {
            return Ok(*thread);
        }
        if self.streams.len() >= THREADS {
            return Err(Full);
        }
        let place = &key.1;
        let next = self.labels.len() as u32 + 1;
        let pid = *self.labels.entry(place.label.clone()).or_insert(next);
        let tid = self.streams.len() as u32 + 1;
        let names = self.builder.names();
        names.processes.insert(pid, place.label.clone());
        names.threads.insert(tid, place.thread.clone());
        let cpu = number(context, "xpos").map(|cpu| CpuId(cpu as u32));
        let name = format!("{} -> {}", place.label, place.thread);
        let stream = self.builder.stream(class, &name, cpu);
        let thread = Thread { stream, stream_class: class, writer: Writer { pid, tid } };
        self.streams.insert(key, thread);
        Ok(thread)
    }

    fn event(&mut self, event: &Event<'_>, thread: Thread) -> Result<(), Full> {
        let payload = event.payload();
        let (class, state) = match event.class.name.as_str() {
            "Rpc_call" => (0, "await_reply"),
            "Rpc_returned" => (1, "ready"),
            "Rpc_dispatch" => (2, "ready"),
            "Rpc_reply" => (3, "await_rpc"),
            "Signal_submit" => (4, ""),
            "Signal_receive" => (5, "ready"),
            "Checkpoint" => {
                let kind = number(payload, "type").unwrap_or(0);
                let known = CHECKPOINTS.iter().position(|(number, _)| *number == kind);
                (FIRST_CHECKPOINT + known.unwrap_or(0) as u32, "")
            }
            _ => (OTHER, ""),
        };
        let (_, _, shape) = CLASSES[class as usize];
        let class = match class {
            FIRST_CHECKPOINT => self.checkpoint(thread.stream_class, text(payload, "name")),
            class => class,
        };
        let cpu = number(event.packet_context(), "xpos").unwrap_or(0);
        let Writer { pid, tid } = thread.writer;
        let ticks = event.ticks.map_or(0, |ticks| ticks.0);
        let pending = self.builder.event(thread.stream, class, ticks, Some(thread.writer));
        let pending = pending.u64(cpu).u64(pid.into()).u64(tid.into());
        let number = |name: &str| number(payload, name).unwrap_or(0);
        let pending = match shape {
            Payload::Call => pending.text(&text(payload, "name")).text(state),
            Payload::Submit => pending.u64(number("number")),
            Payload::Receive => pending.u64(number("number")).u64(number("context")).text(state),
            Payload::Checkpoint => {
                let pending = pending.u64(number("data")).u64(number("addr"));
                pending.u64(number("type")).text(&text(payload, "name"))
            }
            Payload::Other => pending.text(&event.class.name),
        };
        pending.end()
    }
}

/// A class with its roles, and what the recorder calls it.
fn event_class(name: &str, role: Option<&str>, payload: Payload) -> EventClass {
    let mut roles: Vec<&str> = role.into_iter().collect();
    if matches!(payload, Payload::Call | Payload::Receive) {
        roles.push("state component state");
    }
    let role = |role: &str| Attribute { name: ATTRIBUTE.to_owned(), value: role.to_owned() };
    let mut attributes: Vec<Attribute> = roles.into_iter().map(role).collect();
    let original = match name {
        "rpc:call" => Some("Rpc_call"),
        "rpc:returned" => Some("Rpc_returned"),
        "rpc:dispatch" => Some("Rpc_dispatch"),
        "rpc:reply" => Some("Rpc_reply"),
        "signal:submit" => Some("Signal_submit"),
        "signal:receive" => Some("Signal_receive"),
        _ if payload == Payload::Checkpoint => Some("Checkpoint"),
        _ => None,
    };
    let original = original.map(|name| Original::Event(name.to_owned()));
    let process = Original::Process("context.session_label".to_owned());
    let thread = Original::Thread("context.thread_name".to_owned());
    let all = original.into_iter().chain([process, thread]);
    attributes.extend(all.map(|original| original.attribute()));
    EventClass {
        name: name.to_owned(),
        payload: Some(payload.class()),
        attributes,
        ..EventClass::default()
    }
}

fn number(fields: Option<Fields<'_>>, name: &str) -> Option<u64> {
    fields?.get(name)?.as_u64()
}

fn text(fields: Option<Fields<'_>>, name: &str) -> String {
    let field = fields.and_then(|fields| fields.get(name));
    field.and_then(|field| field.as_text()).map(|text| text.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::role::Role;

    #[test]
    fn paths_are_labels_and_threads() {
        let place = Place::from_path("init/runtime/nic_router/ep");
        assert_eq!(place.label, "init -> runtime -> nic_router");
        assert_eq!(place.thread, "ep");
        assert_eq!(Place::from_path("ep").label, "");
    }

    #[test]
    fn every_role_is_a_clause() {
        for role in CLASSES.iter().filter_map(|(_, role, _)| *role) {
            assert!(Role::parse(role).is_some(), "{role}");
        }
        let first = CLASSES[FIRST_CHECKPOINT as usize..].iter().map(|(name, ..)| *name);
        let named = CHECKPOINTS.iter().map(|(_, name)| format!("checkpoint:{name}"));
        for (index, (class, name)) in first.zip(named).enumerate() {
            assert!(class == name || index == 0, "{class} {name}");
        }
    }
}
