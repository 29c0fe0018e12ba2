// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Roles, names and owners of classes and events, for writers.

use std::borrow::Cow;

use lateralis_model::role::{KEY_CATEGORY, KEY_CPU, KEY_PROCESS, Keyed, Role};
use lateralis_model::{
    Dropped, Event, EventClass, Field, Member, Source, StreamClass, Text, Value,
    subsystem_and_event,
};

use crate::json::{FieldWriter, find};

/// What is known about the classes of a trace, found once.
///
/// Memory is bounded by the number of classes.
pub struct Meanings(Vec<Vec<Meaning>>);

/// What is known about one kind of event.
pub struct Meaning {
    /// Its clauses.
    pub roles: Vec<Role>,
    /// Its category: what the format says, else the subsystem before the colon.
    pub category: String,
    /// The context field with the event's own name.
    name_field: Option<String>,
    /// The phase that Chrome JSON gave it.
    pub chrome_phase: Option<u8>,
    /// Writes its fields.
    pub writer: FieldWriter,
}

impl Meanings {
    /// Looks at all classes.
    pub fn new(source: &dyn Source) -> Self {
        let of_stream =
            |stream: &StreamClass| stream.event_classes.iter().map(Meaning::new).collect();
        Self(source.trace().stream_classes.iter().map(of_stream).collect())
    }

    /// What the values of all classes lost on their way.
    pub fn lost(&self) -> Lost {
        let mut sum = Lost::default();
        for meaning in self.0.iter().flatten() {
            for (sum, count) in sum.0.iter_mut().zip(meaning.writer.lost.0) {
                *sum += count;
            }
        }
        sum
    }

    /// Whether some events begin spans of their thread, which others end.
    pub fn have_edges(&self) -> bool {
        let begins = |role: &Role| matches!(role, Role::Begin(keyed) if keyed.keys.is_empty());
        self.0.iter().flatten().any(|meaning| meaning.roles.iter().any(begins))
    }

    /// Of an event's class; `None` for a class that came after opening.
    pub fn of(&mut self, event: &Event<'_>) -> Option<&mut Meaning> {
        self.0.get_mut(event.stream_class_index as usize)?.get_mut(event.class_index as usize)
    }
}

impl Meaning {
    fn new(class: &EventClass) -> Self {
        let (subsystem, _) = subsystem_and_event(&class.name);
        let chrome = class.attribute(crate::CHROME_PHASE).map(str::as_bytes);
        Self {
            roles: Role::of(class).collect(),
            category: class.attribute(crate::CATEGORY).unwrap_or(subsystem).to_owned(),
            name_field: class.attribute(crate::NAME_FIELD).map(str::to_owned),
            chrome_phase: chrome.and_then(|phase| phase.first().copied()),
            writer: FieldWriter::new(class),
        }
    }

    /// The name of an event of this class.
    pub fn name<'e>(&self, event: &Event<'e>) -> Cow<'e, str> {
        let own = self.name_field.as_ref().and_then(|name| find(event, name)?.as_text());
        own.unwrap_or(Cow::Borrowed(&event.class.name))
    }
}

/// How often values lost something on their way into a format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lost([u64; 5]);

/// What a value can lose. The number is its place in [`Lost`].
#[derive(Debug, Clone, Copy)]
pub enum Losing {
    /// The type of a blob.
    Blob,
    /// That a text is a number which is none, or infinite.
    NotFinite,
    /// Characters that are none.
    Characters,
    /// Which option of a variant was chosen.
    Choice,
    /// The number after a name.
    Number,
}

impl Lost {
    /// Counts one.
    pub fn count(&mut self, what: Losing) {
        self.0[what as usize] += 1;
    }

    /// A text as UTF-8.
    pub fn text<'t>(&mut self, text: Text<'t>) -> Cow<'t, str> {
        let converted = text.to_str();
        let replaced = converted.contains(char::REPLACEMENT_CHARACTER);
        if matches!(converted, Cow::Owned(_)) && replaced {
            self.count(Losing::Characters);
        }
        converted
    }

    /// Reports them.
    pub fn note(&self, dropped: &mut Dropped, format: &str) {
        let sentences = [
            format!("the type of blobs ({format} gets hexadecimal text)"),
            format!("the type of infinite numbers and of NaN ({format} gets text)"),
            "bytes of texts that are no characters (replaced by U+FFFD)".to_owned(),
            "names of the chosen options of variants".to_owned(),
            format!("numbers that have names ({format} gets the name)"),
        ];
        for (sentence, count) in sentences.iter().zip(self.0) {
            dropped.note_many(sentence, count);
        }
    }
}

/// Notes what of a trace as a whole has no place in `format`.
pub fn note_trace(source: &dyn Source, dropped: &mut Dropped, format: &str, uuid: bool) {
    let trace = source.trace();
    if !trace.environment.is_empty() {
        dropped.note(&format!("the environment of the trace ({format} has no place for it)"));
    }
    if trace.name.is_some() || (uuid && trace.uuid.is_some()) {
        let what = if uuid { "name and UUID" } else { "the name" };
        dropped.note(&format!("{what} of the trace ({format} has no place for it)"));
    }
}

/// Whose line of a picture an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// A thread of a process.
    Thread {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
    },
    /// A processor.
    Cpu(u32),
    /// A stream.
    Stream(u32),
}

/// Ids that pictures need for what belongs to no process.
pub const NO_PROCESS: u32 = 0x7fff_ffff;

impl Owner {
    /// Owner of an event: its thread if the trace contains it, otherwise its CPU, otherwise its
    /// stream.
    pub fn of(event: &Event<'_>) -> Self {
        if let Some(writer) = event.writer {
            return Self::Thread { pid: writer.pid, tid: writer.tid };
        }
        let context = |name: &str| {
            let fields = event.common_context()?;
            let value = fields.get(name)?.as_u64()?;
            u32::try_from(value).ok().map(|number| event.stream_class.host.thread(number))
        };
        if let Some(tid) = context("tid").or_else(|| context("vtid")) {
            let pid = context("pid").or_else(|| context("vpid")).unwrap_or(tid);
            return Self::Thread { pid, tid };
        }
        match cpu(event) {
            Some(cpu) => Self::Cpu(cpu),
            None => Self::Stream(event.stream.0),
        }
    }

    /// Process and thread id; made up where there is none.
    pub fn ids(self) -> (u32, u32) {
        match self {
            Self::Thread { pid, tid } => (pid, tid),
            Self::Cpu(cpu) => (NO_PROCESS, cpu.saturating_add(1)),
            Self::Stream(stream) => (NO_PROCESS, NO_PROCESS.saturating_sub(stream)),
        }
    }
}

/// The CPU of an event, if the trace contains it.
pub fn cpu(event: &Event<'_>) -> Option<u32> {
    if let Some(cpu) = event.packet.cpu {
        return Some(cpu.0);
    }
    let value = event.common_context()?.get("cpu_id")?.as_u64()?;
    u32::try_from(value).ok().map(|cpu| event.stream_class.host.cpu(cpu))
}

/// The fields of an event in the order of common context, own context and payload, but
/// for those that every format has a place of its own for.
pub fn fields<'a>(event: &Event<'a>) -> impl Iterator<Item = (&'a Member, Field<'a>)> {
    let common = event.common_context().into_iter().flatten();
    let common = common.filter(|(member, _)| !is_place(&member.name));
    let own = [event.context(), event.payload()].into_iter().flatten().flatten();
    common.chain(own).filter(|(member, _)| !member.class.structural)
}

/// Whether a field of the common context says where the event happened.
pub fn is_place(name: &str) -> bool {
    matches!(name, "cpu_id" | "pid" | "tid")
}

/// A number for the name and key of a span or message: equal ones for equal keys.
/// 64 bits of FNV-1a, so two keys of one trace practically never meet.
pub fn key(event: &Event<'_>, keyed: &Keyed) -> u64 {
    let mut hash = Fnv::default();
    hash.bytes(keyed.name.as_bytes());
    for name in &keyed.keys {
        match (name.as_str(), find(event, name)) {
            (_, Some(field)) => hash.field(field),
            (KEY_PROCESS, None) => hash.bytes(&Owner::of(event).ids().0.to_le_bytes()),
            (KEY_CATEGORY, None) => {
                let of_class = event.class.attribute(crate::CATEGORY).unwrap_or_default();
                let own = find(event, "event.category").and_then(|field| field.as_text());
                hash.bytes(own.as_deref().unwrap_or(of_class).as_bytes());
            }
            (KEY_CPU, None) => hash.bytes(&cpu(event).unwrap_or(u32::MAX).to_le_bytes()),
            (_, None) => hash.bytes(b"?"),
        }
    }
    hash.0
}

/// A hash that is the same on every machine.
#[derive(Debug, Clone, Copy)]
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes and an end mark.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// A number for a machine of an owner.
    pub fn of_machine(machine: &str, owner: Owner) -> u64 {
        let (pid, tid) = owner.ids();
        let mut hash = Self::default();
        hash.bytes(machine.as_bytes());
        hash.bytes(&[pid.to_le_bytes(), tid.to_le_bytes()].concat());
        hash.0
    }

    fn field(&mut self, field: Field<'_>) {
        match field.value() {
            Value::Bool(value) => self.bytes(&u64::from(value).to_le_bytes()),
            Value::Unsigned(value) | Value::Bits(value) => self.bytes(&value.to_le_bytes()),
            Value::Signed(value) => self.bytes(&value.to_le_bytes()),
            Value::Real(value) => self.bytes(&value.to_bits().to_le_bytes()),
            Value::Text(text) => self.bytes(text.bytes),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Struct(fields) => fields.into_iter().for_each(|(_, field)| self.field(field)),
            Value::Array(elements) => elements.for_each(|field| self.field(field)),
            Value::Variant(_, field) | Value::Optional(Some(field)) => self.field(field),
            Value::Optional(None) => self.bytes(b""),
        }
    }
}

/// A level as a number, where the field is one.
pub fn level(field: Field<'_>) -> Option<Level> {
    match field.value() {
        Value::Bool(value) => Some(Level::Integer(i128::from(value))),
        Value::Unsigned(value) | Value::Bits(value) => Some(Level::Integer(i128::from(value))),
        Value::Signed(value) => Some(Level::Integer(i128::from(value))),
        Value::Real(value) => Some(Level::Real(value)),
        Value::Optional(Some(field)) | Value::Variant(_, field) => level(field),
        _ => None,
    }
}

/// The value of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// Whole.
    Integer(i128),
    /// Not whole.
    Real(f64),
}

/// A sentence for each kind of loss.
pub fn loss_text(loss: &lateralis_model::Loss) -> String {
    let unit = if loss.cause == lateralis_model::LossCause::Packets { "packets" } else { "events" };
    match loss.count {
        Some(count) => format!("lost: {count} {unit} ({})", loss.cause),
        None => format!("lost: {unit} ({})", loss.cause),
    }
}
