// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to FXT.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lateralis_model::role::Role;
use lateralis_model::{Base, Dropped, Event, Field, FieldKind, Source, Value};

use super::{MAGIC, PHASES};
use crate::json::{Enumerations, FieldWriter, field_label, find};
use crate::meaning::{Level, Meaning, Meanings, NO_PROCESS, Owner, cpu, key, level, loss_text};

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
    let mut meanings = Meanings::new(source);
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
    let mut last = 0;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        last = event.time.0;
        if let Some(meaning) = meanings.of(&event) {
            writer.event(&event, meaning)?;
        }
    }
    for loss in source.losses() {
        let time = loss.interval.end.or(loss.interval.begin).map_or(last, |time| time.0);
        let owner = Owner::Stream(loss.stream.0);
        writer.put(b'i', (&loss_text(loss), "loss"), time, owner, &Arguments::default(), None)?;
    }
    if !source.trace().environment.is_empty() {
        writer.dropped.note("the environment of the trace (FXT has no place for it)");
    }
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

#[derive(Default, Clone)]
struct Arguments {
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
        if self.known.insert((pid, None)) {
            let name = match self.source.names().processes.get(&pid) {
                Some(name) => Some(name.clone()),
                None => (pid == NO_PROCESS).then(|| "no process".to_owned()),
            };
            if let Some(name) = name {
                self.kernel_object(1, pid, &name, None)?;
            }
        }
        if self.known.insert((pid, Some(tid))) {
            let name = match owner {
                Owner::Thread { tid, .. } => self.source.names().threads.get(&tid).cloned(),
                Owner::Cpu(cpu) => Some(format!("CPU {cpu}")),
                Owner::Stream(stream) => {
                    self.source.streams().get(stream as usize).map(|stream| stream.name.clone())
                }
            };
            if let Some(name) = name {
                self.kernel_object(2, tid, &name, Some(pid))?;
            }
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

    /// Writes an event; `last` is the word behind its arguments.
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

    fn event(&mut self, event: &Event<'_>, meaning: &mut Meaning) -> io::Result<()> {
        let owner = Owner::of(event);
        let name = meaning.name(event).into_owned();
        let category = find(event, "event.category").and_then(|field| field.as_text());
        let category = category.map_or_else(|| meaning.category.clone(), |text| text.into_owned());
        let category = category.as_str();
        let time = event.time.0;
        // A duration stands in the record itself.
        let duration = meaning.roles.iter().find_map(|role| match role {
            Role::Span { duration, .. } => Some(duration.as_str()),
            _ => None,
        });
        let arguments = self.arguments(event, duration, &mut meaning.writer)?;
        let mut shown = false;
        for role in &meaning.roles {
            match role {
                Role::Begin(keyed) | Role::End(keyed) => {
                    let begins = matches!(role, Role::Begin(_));
                    let mut arguments = arguments.clone();
                    self.own_name(&mut arguments, &name, &keyed.name)?;
                    let (phase, id) = match (keyed.keys.is_empty(), begins) {
                        (true, true) => (b'B', None),
                        (true, false) => (b'E', None),
                        (false, true) => (b'b', Some(key(event, keyed))),
                        (false, false) => (b'e', Some(key(event, keyed))),
                    };
                    self.put(phase, (&keyed.name, category), time, owner, &arguments, id)?;
                    shown = true;
                }
                Role::Span { name: span, duration } => {
                    let Some(nanos) = find(event, duration).and_then(|field| match field.value() {
                        Value::Optional(Some(field)) => field.as_u64(),
                        _ => field.as_u64(),
                    }) else {
                        continue;
                    };
                    let end = (time.max(0) as u64).saturating_add(nanos);
                    let mut arguments = arguments.clone();
                    self.own_name(&mut arguments, &name, span)?;
                    self.put(b'X', (span, category), time, owner, &arguments, Some(end))?;
                    shown = true;
                }
                Role::Counter { field } => {
                    let Some(level) = find(event, field).and_then(level) else { continue };
                    let mut value = Arguments::default();
                    match level {
                        Level::Integer(level) => match i64::try_from(level) {
                            Ok(level) => {
                                self.argument(&mut value, field, 3, 0, &level.to_le_bytes())?
                            }
                            Err(_) => {
                                let level = u64::try_from(level).unwrap_or(u64::MAX);
                                self.argument(&mut value, field, 4, 0, &level.to_le_bytes())?;
                            }
                        },
                        Level::Real(level) => {
                            self.argument(&mut value, field, 5, 0, &level.to_le_bytes())?;
                        }
                    }
                    self.put(b'C', (&name, category), time, owner, &value, Some(0))?;
                    let own = event.payload().map_or(0, |fields| fields.into_iter().count());
                    shown |= own <= meaning.roles.len();
                }
                Role::Send(_) | Role::Receive(_) | Role::State { .. } => (),
            }
        }
        let flows: Vec<_> = meaning
            .roles
            .iter()
            .filter_map(|role| match role {
                Role::Send(keyed) => Some((b's', keyed)),
                Role::Receive(keyed) => Some((b'f', keyed)),
                _ => None,
            })
            .collect();
        if !shown {
            self.put(b'i', (&name, category), time, owner, &arguments, None)?;
        }
        for (phase, keyed) in flows {
            let id = Some(key(event, keyed));
            self.put(phase, (&keyed.name, category), time, owner, &Arguments::default(), id)?;
        }
        Ok(())
    }

    /// Adds the event's own name, where the span has another.
    fn own_name(&mut self, arguments: &mut Arguments, event: &str, span: &str) -> io::Result<()> {
        if event != span && arguments.count < MAX_ARGUMENTS {
            self.text(arguments, "event", event)?;
        }
        Ok(())
    }

    /// Adds an argument: its type, what stands in its first word, and what follows.
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

    fn arguments(
        &mut self,
        event: &Event<'_>,
        left_out: Option<&str>,
        json: &mut FieldWriter,
    ) -> io::Result<Arguments> {
        let mut out = Arguments::default();
        if let Some(cpu) = cpu(event) {
            self.argument(&mut out, "cpu", 2, u64::from(cpu), &[])?;
        }
        let mut more = b"{".to_vec();
        let mut first = true;
        let common = event
            .common_context()
            .into_iter()
            .flatten()
            .filter(|(member, _)| !matches!(member.name.as_str(), "cpu_id" | "pid" | "tid"));
        let own = [event.context(), event.payload()].into_iter().flatten().flatten();
        let fields: Vec<_> =
            common.chain(own).filter(|(member, _)| !member.class.structural).collect();
        // One place stays free for the rest, one for the event's own name.
        let places = MAX_ARGUMENTS - 2;
        for (member, field) in fields {
            let known = left_out == Some(member.name.as_str());
            if known || matches!(field.value(), Value::Optional(None)) {
                continue;
            }
            if out.count < places && out.bytes.len() < MAX_ARGUMENT_BYTES - MAX_TEXT {
                self.field(&mut out, &member.name, field, json)?;
            } else {
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
            Value::Text(text) => self.text(out, name, &text.to_str()),
            Value::Optional(None) => self.argument(out, name, 0, 0, &[]),
            Value::Variant(_, field) | Value::Optional(Some(field)) => {
                self.field(out, name, field, json)
            }
            Value::Bytes(_) | Value::Struct(_) | Value::Array(_) => {
                self.dropped.note("the shape of nested fields and blobs (FXT gets JSON text)");
                let mut text = Vec::new();
                json.value(&mut text, field, Enumerations::Names);
                let text = String::from_utf8_lossy(&text).into_owned();
                self.text(out, name, &text)
            }
        }
    }
}
