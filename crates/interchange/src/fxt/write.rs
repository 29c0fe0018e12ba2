// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to FXT.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lateralis_model::role::Role;
use lateralis_model::{Base, Dropped, Event, Field, FieldKind, Loss, Source, Value};

use super::{MAGIC, PHASES};
use crate::json::{Enumerations, FieldWriter, field_label};
use crate::meaning::{Fnv, Level, Losing, Meaning, Owner, cpu, fields, note_trace};
use crate::picture::{Canvas, Flow, Lane, Mark, Place, draw, line_name, process_name};

/// Entries of the tables of strings and threads.
const MAX_STRINGS: usize = 0x7fff;
const MAX_THREADS: usize = 0xff;
/// Longest text in a record, so that several fit.
const MAX_TEXT: usize = 4000;
const MAX_NAME: usize = 1000;
/// Most arguments of an event, and bytes of them: a record has at most 4095 words.
const MAX_ARGUMENTS: usize = 15;
const MAX_ARGUMENT_BYTES: usize = 16_000;

/// Writes all events, names and losses.
///
/// Memory is bounded by classes and threads. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut writer = Records {
        out,
        source,
        dropped: Dropped::default(),
        strings: HashMap::new(),
        threads: HashMap::new(),
        known: HashSet::new(),
    };
    writer.words(&[MAGIC])?;
    // Provider 1, its name, and times in nanoseconds.
    let name = b"lateralis";
    writer.words(&[3 << 4 | 1 << 16 | 1 << 20 | (name.len() as u64) << 52])?;
    writer.out.write_all(&padded(name))?;
    writer.words(&[1 | 2 << 4, 1_000_000_000])?;
    draw(source, &mut writer, "FXT")?;
    note_trace(source, &mut writer.dropped, "FXT", true);
    Ok(writer.dropped)
}

struct Records<'w> {
    out: &'w mut dyn Write,
    source: &'w dyn Source,
    dropped: Dropped,
    strings: HashMap<String, u64>,
    threads: HashMap<(u32, u32), u64>,
    /// Processes and threads whose names are written.
    known: HashSet<(u32, Option<u32>)>,
}

/// Arguments of an event, ready to write.
#[derive(Default, Clone)]
pub struct Arguments {
    count: usize,
    bytes: Vec<u8>,
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.resize(bytes.len().next_multiple_of(8), 0);
    out
}

/// At most `limit` bytes, whole characters.
fn short(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Records<'_> {
    fn words(&mut self, words: &[u64]) -> io::Result<()> {
        words.iter().try_for_each(|word| self.out.write_all(&word.to_le_bytes()))
    }

    /// A reference to a name, which is written into the table if there is room; else
    /// the reference says that the text follows, and it is given too.
    fn name(&mut self, text: &str) -> io::Result<(u64, Vec<u8>)> {
        let text = short(text, MAX_NAME);
        if text.is_empty() {
            return Ok((0, Vec::new()));
        }
        if let Some(&index) = self.strings.get(text) {
            return Ok((index, Vec::new()));
        }
        if self.strings.len() >= MAX_STRINGS {
            return Ok((0x8000 | text.len() as u64, padded(text.as_bytes())));
        }
        let index = self.strings.len() as u64 + 1;
        self.strings.insert(text.to_owned(), index);
        let bytes = padded(text.as_bytes());
        let words = 1 + bytes.len() as u64 / 8;
        self.words(&[2 | words << 4 | index << 16 | (text.len() as u64) << 32])?;
        self.out.write_all(&bytes)?;
        Ok((index, Vec::new()))
    }

    /// A reference to a thread, with its ids where the table has no room.
    fn thread(&mut self, owner: Owner) -> io::Result<(u64, Vec<u8>)> {
        let (pid, tid) = owner.ids();
        self.names(owner)?;
        if let Some(&index) = self.threads.get(&(pid, tid)) {
            return Ok((index, Vec::new()));
        }
        if self.threads.len() >= MAX_THREADS {
            let ids = [u64::from(pid).to_le_bytes(), u64::from(tid).to_le_bytes()];
            return Ok((0, ids.concat()));
        }
        let index = self.threads.len() as u64 + 1;
        self.threads.insert((pid, tid), index);
        self.words(&[3 | 3 << 4 | index << 16, u64::from(pid), u64::from(tid)])?;
        Ok((index, Vec::new()))
    }

    fn names(&mut self, owner: Owner) -> io::Result<()> {
        let (pid, tid) = owner.ids();
        if self.known.insert((pid, None))
            && let Some(name) = process_name(self.source, pid)
        {
            self.kernel_object(1, pid, &name, None)?;
        }
        if self.known.insert((pid, Some(tid)))
            && let Some(name) = line_name(self.source, owner)
        {
            self.kernel_object(2, tid, &name, Some(pid))?;
        }
        Ok(())
    }

    fn kernel_object(
        &mut self,
        kind: u64,
        id: u32,
        name: &str,
        pid: Option<u32>,
    ) -> io::Result<()> {
        let (name, inline) = self.name(name)?;
        let mut argument = Vec::new();
        if let Some(pid) = pid {
            let (key, text) = self.name("process")?;
            let words = 2 + text.len() as u64 / 8;
            argument.extend_from_slice(&(8 | words << 4 | key << 16).to_le_bytes());
            argument.extend(text);
            argument.extend_from_slice(&u64::from(pid).to_le_bytes());
        }
        let words = 2 + (inline.len() + argument.len()) as u64 / 8;
        let count = u64::from(pid.is_some());
        self.words(&[7 | words << 4 | kind << 16 | name << 24 | count << 40, u64::from(id)])?;
        self.out.write_all(&inline)?;
        self.out.write_all(&argument)
    }

    /// Writes an event; `last` is the word after its arguments.
    fn put(
        &mut self,
        phase: u8,
        (name, category): (&str, &str),
        time: i64,
        owner: Owner,
        arguments: &Arguments,
        last: Option<u64>,
    ) -> io::Result<()> {
        let kind = PHASES.iter().position(|&other| other == phase).unwrap_or(0) as u64;
        let (thread, thread_ids) = self.thread(owner)?;
        let (category, category_text) = self.name(category)?;
        let (name, name_text) = self.name(name)?;
        if time < 0 {
            self.dropped.note("times before the origin of the clock (shown at 0)");
        }
        let parts = [&thread_ids, &category_text, &name_text, &arguments.bytes];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let words = 2 + bytes as u64 / 8 + u64::from(last.is_some());
        let count = arguments.count as u64;
        let header = 4 | words << 4 | kind << 16 | count << 20 | thread << 24;
        self.words(&[header | category << 32 | name << 48, time.max(0) as u64])?;
        for part in parts {
            self.out.write_all(part)?;
        }
        last.map_or(Ok(()), |last| self.words(&[last]))
    }

    /// A whole span, with the messages that leave or arrive at it.
    fn whole(
        &mut self,
        head: (&str, &str),
        time: i64,
        owner: Owner,
        arguments: &Arguments,
        end: u64,
        flows: &[Flow],
    ) -> io::Result<()> {
        self.put(b'X', head, time, owner, arguments, Some(end))?;
        self.flows(flows, &Place { time, owner, category: head.1 })
    }

    fn flows(&mut self, flows: &[Flow], place: &Place<'_>) -> io::Result<()> {
        for flow in flows {
            let phase = if flow.leaves { b's' } else { b'f' };
            let (head, none) = ((flow.name.as_str(), place.category), Arguments::default());
            self.put(phase, head, place.time, place.owner, &none, Some(flow.id))?;
        }
        Ok(())
    }

    /// Adds an argument: its type, the content of its first word, and the following bytes.
    fn argument(
        &mut self,
        out: &mut Arguments,
        name: &str,
        kind: u64,
        first: u64,
        rest: &[u8],
    ) -> io::Result<()> {
        let (name, text) = self.name(name)?;
        let words = 1 + (text.len() + rest.len()) as u64 / 8;
        out.bytes.extend_from_slice(&(kind | words << 4 | name << 16 | first << 32).to_le_bytes());
        out.bytes.extend(text);
        out.bytes.extend_from_slice(rest);
        out.count += 1;
        Ok(())
    }

    fn text(&mut self, out: &mut Arguments, name: &str, text: &str) -> io::Result<()> {
        if text.len() > MAX_TEXT {
            self.dropped.note("texts beyond 4000 bytes (cut in FXT)");
        }
        let text = short(text, MAX_TEXT);
        let bytes = padded(text.as_bytes());
        self.argument(out, name, 6, 0x8000 | text.len() as u64, &bytes)
    }

    fn field(
        &mut self,
        out: &mut Arguments,
        name: &str,
        field: Field<'_>,
        json: &mut FieldWriter,
    ) -> io::Result<()> {
        if let Some(label) = field_label(field) {
            json.lost.count(Losing::Number);
            return self.text(out, name, label);
        }
        match field.value() {
            Value::Bool(value) => self.argument(out, name, 9, u64::from(value), &[]),
            Value::Unsigned(value) => {
                let hex = matches!(&field.class().kind,
                    FieldKind::Unsigned(class) if class.base == Base::Hexadecimal);
                self.argument(out, name, if hex { 7 } else { 4 }, 0, &value.to_le_bytes())
            }
            Value::Bits(value) => self.argument(out, name, 7, 0, &value.to_le_bytes()),
            Value::Signed(value) => self.argument(out, name, 3, 0, &value.to_le_bytes()),
            Value::Real(value) => self.argument(out, name, 5, 0, &value.to_le_bytes()),
            Value::Text(text) => {
                let text = json.lost.text(text);
                self.text(out, name, &text)
            }
            Value::Optional(None) => self.argument(out, name, 0, 0, &[]),
            Value::Optional(Some(field)) => self.field(out, name, field, json),
            Value::Variant(_, field) => {
                json.lost.count(Losing::Choice);
                self.field(out, name, field, json)
            }
            Value::Bytes(bytes) => {
                json.lost.count(Losing::Blob);
                let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                self.text(out, name, &text)
            }
            Value::Struct(_) | Value::Array(_) => {
                self.dropped.note("the shape of nested fields (FXT gets JSON text)");
                let mut text = Vec::new();
                json.value(&mut text, field, Enumerations::Names);
                let text = String::from_utf8_lossy(&text).into_owned();
                self.text(out, name, &text)
            }
        }
    }
}

impl Canvas for Records<'_> {
    type Arguments = Arguments;

    fn arguments(&mut self, event: &Event<'_>, meaning: &mut Meaning) -> io::Result<Arguments> {
        // A duration is in the record itself.
        let duration = meaning.roles.iter().find_map(|role| match role {
            Role::Span { duration, .. } => Some(duration.as_str()),
            _ => None,
        });
        let json = &mut meaning.writer;
        let mut out = Arguments::default();
        if let Some(cpu) = cpu(event) {
            self.argument(&mut out, "cpu", 2, u64::from(cpu), &[])?;
        }
        let mut more = b"{".to_vec();
        let mut first = true;
        // Places stay free for the rest, the event's own name, and that of a machine.
        let places = MAX_ARGUMENTS - 3;
        for (member, field) in fields(event) {
            let known = duration == Some(member.name.as_str());
            if known || matches!(field.value(), Value::Optional(None)) {
                continue;
            }
            if out.count < places && out.bytes.len() < MAX_ARGUMENT_BYTES - MAX_TEXT {
                self.field(&mut out, &member.name, field, json)?;
            } else {
                self.dropped.note("fields beyond 12 of an event (FXT gets JSON text)");
                json.member(&mut more, &member.name, field, &mut first, Enumerations::Names);
            }
        }
        if !first {
            more.push(b'}');
            let text = String::from_utf8_lossy(&more).into_owned();
            self.text(&mut out, "more", &text)?;
        }
        Ok(out)
    }

    fn mark(
        &mut self,
        mark: &Mark,
        place: &Place<'_>,
        (name, event): (&str, Option<&str>),
        arguments: &Arguments,
        flows: &[Flow],
    ) -> io::Result<()> {
        let Place { time, owner, category } = *place;
        let head = (name, category);
        let mut arguments = arguments.clone();
        if let Some(event) = event {
            self.text(&mut arguments, "event", event)?;
        }
        let own = |lane: &Lane| (lane.index > 0).then_some(lane.span);
        match mark {
            Mark::Instant | Mark::Original(_) => {
                self.put(b'i', head, time, owner, &arguments, None)?;
            }
            Mark::Begin(lane) => {
                let id = own(lane);
                let phase = if id.is_some() { b'b' } else { b'B' };
                self.put(phase, head, time, owner, &arguments, id)?;
            }
            Mark::End(lane) => {
                let id = own(lane);
                let phase = if id.is_some() { b'e' } else { b'E' };
                self.put(phase, head, time, owner, &arguments, id)?;
            }
            Mark::Open(id) => self.put(b'b', head, time, owner, &arguments, Some(*id))?,
            Mark::Close(id, began) => {
                // Spans are joined within a process; which thread ends one is kept.
                let elsewhere = began.filter(|began| began.ids().0 != owner.ids().0);
                if elsewhere.is_some() {
                    self.dropped.note(
                        "in which other process a span ended (FXT gets that of its beginning)",
                    );
                }
                self.put(b'e', head, time, elsewhere.unwrap_or(owner), &arguments, Some(*id))?;
            }
            Mark::Whole(nanos, lane) => {
                let end = (time.max(0) as u64).saturating_add(*nanos);
                let Some(id) = own(lane) else {
                    return self.whole(head, time, owner, &arguments, end, flows);
                };
                self.put(b'b', head, time, owner, &arguments, Some(id))?;
                self.flows(flows, place)?;
                let end = i64::try_from(end).unwrap_or(i64::MAX);
                return self.put(b'e', head, end, owner, &Arguments::default(), Some(id));
            }
            Mark::Level(field, level, _) => {
                let mut value = Arguments::default();
                let (kind, bytes) = match *level {
                    Level::Integer(level) => match i64::try_from(level) {
                        Ok(level) => (3, level.to_le_bytes()),
                        Err(_) => (4, u64::try_from(level).unwrap_or(u64::MAX).to_le_bytes()),
                    },
                    Level::Real(level) => (5, level.to_le_bytes()),
                };
                self.argument(&mut value, field, kind, 0, &bytes)?;
                self.put(b'C', head, time, owner, &value, Some(0))?;
            }
            Mark::State(machine, before) => {
                let id = Some(Fnv::of_machine(machine, owner));
                if let Some(before) = before {
                    let head = (before.as_str(), category);
                    self.put(b'e', head, time, owner, &Arguments::default(), id)?;
                }
                self.text(&mut arguments, "machine", machine)?;
                self.put(b'b', head, time, owner, &arguments, id)?;
            }
        }
        self.flows(flows, place)
    }

    fn loss(&mut self, loss: &Loss, name: &str, time: i64) -> io::Result<()> {
        let mut arguments = Arguments::default();
        if let Some(count) = loss.count {
            self.argument(&mut arguments, "count", 4, 0, &count.to_le_bytes())?;
        }
        let owner = Owner::Stream(loss.stream.0);
        self.put(b'i', (name, "loss"), time, owner, &arguments, None)
    }

    fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }
}
