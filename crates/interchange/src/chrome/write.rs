// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to Chrome JSON.
//!
//! Events that came from Chrome JSON get their phase and members back. Of others,
//! spans that nest in their thread become complete events (`X`), or `B` and `E`
//! where one end is missing; spans with keys become asynchronous ones (`b`, `e`),
//! since they need not nest; messages become flows, levels become counters,
//! everything else instants.

use std::collections::HashMap;
use std::io::{self, Write};

use lateralis_model::role::Role;
use lateralis_model::{Dropped, EnvValue, Event, Source, Value};

use crate::json::{Enumerations, comma, find, micros, number, string};
use crate::meaning::{Level, Meaning, Meanings, NO_PROCESS, Owner, cpu, key, level, loss_text};

/// Open spans whose beginning is held back until their end comes. Further ones are
/// written as two events.
const MAX_HELD: usize = 100_000;

/// Writes all events, names and losses as an object with `traceEvents`.
///
/// Memory is bounded by classes, threads and open spans. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut writer = Chrome {
        out,
        meanings: Meanings::new(source),
        dropped: Dropped::default(),
        held: HashMap::new(),
        held_count: 0,
        owners: std::collections::BTreeSet::new(),
        line: Vec::new(),
        lines: 0,
    };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    writer.names(source)?;
    let mut last = 0;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        last = event.time.0;
        writer.event(&event)?;
    }
    writer.finish(source, last)?;
    writer.out.write_all(b"\n]")?;
    writer.others(source)?;
    writer.out.write_all(b"}\n")?;
    Ok(writer.dropped)
}

/// A span that has begun.
struct Held {
    name: String,
    category: String,
    time: i64,
    /// Its arguments, without braces.
    args: Vec<u8>,
}

struct Chrome<'w> {
    out: &'w mut dyn Write,
    meanings: Meanings,
    dropped: Dropped,
    held: HashMap<Owner, Vec<Held>>,
    held_count: usize,
    owners: std::collections::BTreeSet<Owner>,
    line: Vec<u8>,
    lines: u64,
}

/// The members that most events have.
struct Head<'a> {
    phase: u8,
    name: &'a str,
    category: &'a str,
    time: i64,
    owner: Owner,
}

impl Chrome<'_> {
    /// Begins an event.
    fn begin(&mut self, head: &Head<'_>) {
        self.line.clear();
        self.line.extend_from_slice(b"{\"ph\":\"");
        self.line.push(head.phase);
        self.line.extend_from_slice(b"\",\"name\":");
        string(&mut self.line, head.name);
        if !head.category.is_empty() {
            self.line.extend_from_slice(b",\"cat\":");
            string(&mut self.line, head.category);
        }
        self.line.extend_from_slice(b",\"ts\":");
        micros(&mut self.line, head.time);
        let (pid, tid) = head.owner.ids();
        self.line.extend_from_slice(b",\"pid\":");
        number(&mut self.line, pid);
        self.line.extend_from_slice(b",\"tid\":");
        number(&mut self.line, tid);
    }

    /// Adds the arguments, if there are any, and writes the event.
    fn end(&mut self, args: &[u8]) -> io::Result<()> {
        if !args.is_empty() {
            self.line.extend_from_slice(b",\"args\":{");
            self.line.extend_from_slice(args);
            self.line.push(b'}');
        }
        self.line.push(b'}');
        self.emit()
    }

    fn emit(&mut self) -> io::Result<()> {
        self.out.write_all(if self.lines == 0 { b"\n" } else { b",\n" })?;
        self.lines += 1;
        self.out.write_all(&self.line)
    }

    fn id(&mut self, id: u64) {
        self.line.extend_from_slice(format!(",\"id\":\"{id:#x}\"").as_bytes());
    }

    fn names(&mut self, source: &dyn Source) -> io::Result<()> {
        for (&pid, name) in &source.names().processes {
            self.metadata("process_name", pid, None, name)?;
        }
        Ok(())
    }

    fn metadata(&mut self, what: &str, pid: u32, tid: Option<u32>, name: &str) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(
            format!("{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid}").as_bytes(),
        );
        if let Some(tid) = tid {
            self.line.extend_from_slice(format!(",\"tid\":{tid}").as_bytes());
        }
        let mut args = b"\"name\":".to_vec();
        string(&mut args, name);
        self.end(&args)
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let owner = Owner::of(event);
        if self.owners.len() < 1_000_000 {
            self.owners.insert(owner);
        }
        // The table is taken out while its entry is used.
        let mut meanings = std::mem::replace(&mut self.meanings, Meanings::empty());
        let result = match meanings.of(event) {
            None => Ok(()),
            Some(meaning) if meaning.chrome_phase.is_some() => self.original(event, owner, meaning),
            Some(meaning) => self.translated(event, owner, meaning),
        };
        self.meanings = meanings;
        result
    }

    /// An event that was Chrome's.
    fn original(
        &mut self,
        event: &Event<'_>,
        owner: Owner,
        meaning: &mut Meaning,
    ) -> io::Result<()> {
        let phase = meaning.chrome_phase.unwrap_or(b'i');
        let phase =
            if phase.is_ascii_graphic() && phase != b'"' && phase != b'\\' { phase } else { b'i' };
        let category = find(event, "event.category").and_then(|field| field.as_text());
        let category = category.as_deref().unwrap_or(&meaning.category).to_owned();
        let name = meaning.name(event);
        self.line.clear();
        self.line.extend_from_slice(b"{\"ph\":\"");
        self.line.push(phase);
        self.line.extend_from_slice(b"\",\"name\":");
        string(&mut self.line, &name);
        if !category.is_empty() {
            self.line.extend_from_slice(b",\"cat\":");
            string(&mut self.line, &category);
        }
        self.line.extend_from_slice(b",\"ts\":");
        micros(&mut self.line, event.time.0);
        let mut has_id = [false; 2];
        if let Some(context) = event.context() {
            let mut first = false;
            for (member, field) in context {
                if matches!(field.value(), Value::Optional(None)) {
                    continue;
                }
                match member.name.strip_prefix("event.").unwrap_or(&member.name) {
                    "name" | "category" => (),
                    "dur" => {
                        self.line.extend_from_slice(b",\"dur\":");
                        let value = match field.value() {
                            Value::Optional(Some(inner)) => inner.as_u64(),
                            _ => field.as_u64(),
                        };
                        micros(&mut self.line, value.unwrap_or(0) as i64);
                    }
                    name => {
                        has_id[0] |= name == "pid";
                        has_id[1] |= name == "tid";
                        let names = Enumerations::Names;
                        meaning.writer.member(&mut self.line, name, field, &mut first, names);
                    }
                }
            }
        }
        let (pid, tid) = owner.ids();
        if event.writer.is_some() {
            for (name, id, there) in [("pid", pid, has_id[0]), ("tid", tid, has_id[1])] {
                if !there {
                    self.line.extend_from_slice(format!(",\"{name}\":{id}").as_bytes());
                }
            }
        }
        let mut args = Vec::new();
        if let Some(payload) = event.payload() {
            meaning.writer.members(&mut args, payload, &mut true, Enumerations::Names);
        }
        self.end(&args)
    }

    fn translated(
        &mut self,
        event: &Event<'_>,
        owner: Owner,
        meaning: &mut Meaning,
    ) -> io::Result<()> {
        let args = arguments(event, meaning);
        let name = meaning.name(event).into_owned();
        let category = meaning.category.as_str();
        let time = event.time.0;
        let head = |phase, name| Head { phase, name, category, time, owner };
        let mut shown = false;
        for role in &meaning.roles {
            match role {
                Role::Begin(keyed) if keyed.keys.is_empty() => {
                    let args = with_event(&name, &keyed.name, &args);
                    self.hold(owner, &keyed.name, category, time, args)?;
                    shown = true;
                }
                Role::End(keyed) if keyed.keys.is_empty() => {
                    let args = with_event(&name, &keyed.name, &args);
                    self.release(owner, &keyed.name, category, time, &args)?;
                    shown = true;
                }
                Role::Begin(keyed) | Role::End(keyed) => {
                    let begins = matches!(role, Role::Begin(_));
                    let args = with_event(&name, &keyed.name, &args);
                    self.begin(&head(if begins { b'b' } else { b'e' }, &keyed.name));
                    // Asynchronous spans match by category too.
                    if category.is_empty() {
                        self.line.extend_from_slice(b",\"cat\":\"span\"");
                    }
                    self.id(key(event, keyed));
                    self.end(&args)?;
                    shown = true;
                }
                Role::Span { name: span, duration } => {
                    let nanos = find(event, duration).and_then(|field| field.as_u64());
                    let args = with_event(&name, span, &args);
                    self.begin(&head(b'X', span));
                    self.line.extend_from_slice(b",\"dur\":");
                    let nanos = nanos.unwrap_or(0).min(i64::MAX as u64);
                    micros(&mut self.line, nanos as i64);
                    self.end(&args)?;
                    shown = true;
                }
                Role::Counter { field } => {
                    if let Some(level) = find(event, field).and_then(level) {
                        let mut value = Vec::new();
                        string(&mut value, field);
                        value.push(b':');
                        match level {
                            Level::Integer(level) => number(&mut value, level),
                            Level::Real(level) => crate::json::real(&mut value, level),
                        }
                        self.begin(&head(b'C', &name));
                        self.end(&value)?;
                    }
                }
                Role::Send(_) | Role::Receive(_) | Role::State { .. } => (),
            }
        }
        let only_counter = !meaning.roles.is_empty()
            && meaning.roles.iter().all(|role| matches!(role, Role::Counter { .. }))
            && event.payload().is_none_or(|own| own.into_iter().count() <= meaning.roles.len());
        if !shown && !only_counter {
            self.begin(&head(b'i', &name));
            self.line.extend_from_slice(b",\"s\":\"t\"");
            self.end(&args)?;
        }
        // Flows bind to what encloses them, so they come after it.
        for role in &meaning.roles {
            let (phase, keyed) = match role {
                Role::Send(keyed) => (b's', keyed),
                Role::Receive(keyed) => (b'f', keyed),
                _ => continue,
            };
            self.begin(&head(phase, &keyed.name));
            if category.is_empty() {
                self.line.extend_from_slice(b",\"cat\":\"message\"");
            }
            self.id(key(event, keyed));
            if phase == b'f' {
                self.line.extend_from_slice(b",\"bp\":\"e\"");
            }
            self.end(&[])?;
        }
        Ok(())
    }

    fn hold(
        &mut self,
        owner: Owner,
        name: &str,
        category: &str,
        time: i64,
        args: Vec<u8>,
    ) -> io::Result<()> {
        if self.held_count >= MAX_HELD {
            self.begin(&Head { phase: b'B', name, category, time, owner });
            return self.end(&args);
        }
        self.held_count += 1;
        let held = Held { name: name.to_owned(), category: category.to_owned(), time, args };
        self.held.entry(owner).or_default().push(held);
        Ok(())
    }

    fn release(
        &mut self,
        owner: Owner,
        name: &str,
        category: &str,
        time: i64,
        args: &[u8],
    ) -> io::Result<()> {
        let stack = self.held.entry(owner).or_default();
        let Some(at) = stack.iter().rposition(|held| held.name == name) else {
            self.begin(&Head { phase: b'E', name, category, time, owner });
            return self.end(args);
        };
        // Spans inside that have not ended never will: they did not nest.
        let inside = stack.split_off(at + 1);
        let held = stack.pop();
        self.held_count = self.held_count.saturating_sub(inside.len() + 1);
        for lost in inside {
            self.unfinished(owner, &lost)?;
        }
        let Some(held) = held else { return Ok(()) };
        let head = Head { phase: b'X', name, category: &held.category, time: held.time, owner };
        self.begin(&head);
        self.line.extend_from_slice(b",\"dur\":");
        micros(&mut self.line, time.saturating_sub(held.time));
        let mut both = held.args;
        if !args.is_empty() {
            if !both.is_empty() {
                both.push(b',');
            }
            both.extend_from_slice(b"\"end\":{");
            both.extend_from_slice(args);
            both.push(b'}');
        }
        self.end(&both)
    }

    fn unfinished(&mut self, owner: Owner, held: &Held) -> io::Result<()> {
        let Held { name, category, time, args } = held;
        self.begin(&Head { phase: b'B', name, category, time: *time, owner });
        self.end(args)
    }

    /// Open spans, losses, names of threads.
    fn finish(&mut self, source: &dyn Source, last: i64) -> io::Result<()> {
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_iter().collect();
        held.sort_by_key(|(owner, _)| *owner);
        for (owner, stack) in &held {
            for held in stack {
                self.unfinished(*owner, held)?;
            }
        }
        for loss in source.losses() {
            let time = loss.interval.end.or(loss.interval.begin).map_or(last, |time| time.0);
            let owner = Owner::Stream(loss.stream.0);
            let name = loss_text(loss);
            self.begin(&Head { phase: b'i', name: &name, category: "loss", time, owner });
            self.line.extend_from_slice(b",\"s\":\"g\"");
            let mut args = Vec::new();
            args.extend_from_slice(format!("\"cause\":\"{}\"", loss.cause).as_bytes());
            if let Some(count) = loss.count {
                args.extend_from_slice(format!(",\"count\":{count}").as_bytes());
            }
            self.end(&args)?;
        }
        let owners = std::mem::take(&mut self.owners);
        let mut has_others = false;
        let streams = source.streams();
        for owner in owners {
            let (pid, tid) = owner.ids();
            match owner {
                Owner::Thread { tid, .. } => {
                    if let Some(name) = source.names().threads.get(&tid) {
                        self.metadata("thread_name", pid, Some(tid), name)?;
                    }
                    continue;
                }
                Owner::Cpu(cpu) => {
                    self.metadata("thread_name", pid, Some(tid), &format!("CPU {cpu}"))?;
                }
                Owner::Stream(stream) => {
                    let name = streams.get(stream as usize).map_or("", |stream| &stream.name);
                    if !name.is_empty() {
                        self.metadata("thread_name", pid, Some(tid), name)?;
                    }
                }
            }
            has_others = true;
        }
        if has_others {
            self.metadata("process_name", NO_PROCESS, None, "no process")?;
        }
        for (name, value) in &source.trace().environment {
            self.note(name, value)?;
        }
        Ok(())
    }

    /// A metadata event that came from Chrome JSON.
    fn note(&mut self, name: &str, value: &EnvValue) -> io::Result<()> {
        let Some(rest) = name.strip_prefix(super::METADATA) else { return Ok(()) };
        let mut parts = rest.rsplitn(3, '.');
        let (Some(tid), Some(pid), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(());
        };
        let (Ok(pid), Ok(tid)) = (pid.parse::<u32>(), tid.parse::<u32>()) else { return Ok(()) };
        let Some(args) = value.as_text().filter(|text| super::event::is_json(text.as_bytes()))
        else {
            return Ok(());
        };
        self.line.clear();
        self.line.extend_from_slice(b"{\"ph\":\"M\",\"name\":");
        string(&mut self.line, name);
        let rest = format!(",\"pid\":{pid},\"tid\":{tid},\"args\":{args}}}");
        self.line.extend_from_slice(rest.as_bytes());
        self.emit()
    }

    /// The rest of the outer object.
    fn others(&mut self, source: &dyn Source) -> io::Result<()> {
        let mut first = true;
        let mut other = b",\"otherData\":{".to_vec();
        let mut taken = vec!["traceEvents".to_owned(), "displayTimeUnit".to_owned()];
        for (name, value) in &source.trace().environment {
            if name.starts_with(super::METADATA) {
                continue;
            }
            let member = name.strip_prefix(super::OTHER);
            let json = value.as_text().filter(|text| super::event::is_json(text.as_bytes()));
            if let (Some(member), Some(json)) = (member, json) {
                if !taken.iter().any(|other| other == member) {
                    taken.push(member.to_owned());
                    let mut out = b",".to_vec();
                    string(&mut out, member);
                    out.push(b':');
                    out.extend_from_slice(json.as_bytes());
                    self.out.write_all(&out)?;
                }
                continue;
            }
            comma(&mut other, &mut first);
            string(&mut other, name);
            other.push(b':');
            match value {
                EnvValue::Integer(value) => number(&mut other, value),
                EnvValue::Text(text) => string(&mut other, text),
            }
        }
        if !first && !taken.iter().any(|member| member == "otherData") {
            other.push(b'}');
            self.out.write_all(&other)?;
        }
        Ok(())
    }
}

/// All fields of an event as members of an object, without braces.
fn arguments(event: &Event<'_>, meaning: &mut Meaning) -> Vec<u8> {
    let mut args = Vec::new();
    let mut first = true;
    if let Some(cpu) = cpu(event) {
        comma(&mut args, &mut first);
        args.extend_from_slice(format!("\"cpu\":{cpu}").as_bytes());
    }
    if let Some(common) = event.common_context() {
        for (member, field) in common {
            // These stand in the event itself.
            if member.class.structural || matches!(member.name.as_str(), "cpu_id" | "pid" | "tid") {
                continue;
            }
            let names = Enumerations::Names;
            meaning.writer.member(&mut args, &member.name, field, &mut first, names);
        }
    }
    for fields in [event.context(), event.payload()].into_iter().flatten() {
        meaning.writer.members(&mut args, fields, &mut first, Enumerations::Names);
    }
    args
}

/// The arguments with the event's own name, where the span has another.
fn with_event(event: &str, span: &str, args: &[u8]) -> Vec<u8> {
    if event == span {
        return args.to_vec();
    }
    let mut out = b"\"event\":".to_vec();
    string(&mut out, event);
    if !args.is_empty() {
        out.push(b',');
        out.extend_from_slice(args);
    }
    out
}
