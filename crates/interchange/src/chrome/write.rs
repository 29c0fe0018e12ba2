// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to Chrome JSON.
//!
//! Events that came from Chrome JSON get their phase and members back. Of others,
//! spans of a thread become `B` and `E`, or complete events (`X`) where they are one event; spans
//! with keys become asynchronous ones (`b`, `e`), since they need not nest, and so do states, and
//! spans that overlap others of their thread; messages become flows, levels become counters,
//! everything else instants.
//!
//! Readers take times for floating point numbers of microseconds, which since 1970 are
//! only good to a quarter of one. Large times are therefore written from the second of
//! the first event on, and the member `lateralisOrigin` of the outer object says which
//! one that was.

use std::io::{self, Write};

use lateralis_model::{Dropped, EnvValue, Event, Loss, Source, Value};

use crate::json::{Enumerations, comma, find, micros, number, string};
use crate::meaning::{Fnv, Level, Meaning, NO_PROCESS, Owner, cpu, fields};
use crate::picture::{Canvas, Flow, Mark, Place, draw, line_name};

/// Nanoseconds that a floating point number can hold exactly.
const EXACT_NANOS: u64 = 1 << 53;
const SECOND: i64 = 1_000_000_000;

/// Lines whose names are written.
const MAX_LINES: usize = 1_000_000;

/// Writes all events, names and losses as an object with `traceEvents`.
///
/// Memory is bounded by classes, threads and open spans. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut writer = Chrome {
        out,
        source,
        origin: origin(source),
        dropped: Dropped::default(),
        owners: std::collections::BTreeSet::new(),
        line: Vec::new(),
        lines: 0,
    };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",")?;
    if writer.origin != 0 {
        let unix = source.trace().clocks.iter().any(|clock| clock.unix_epoch);
        let (origin, name) = (writer.origin, super::ORIGIN);
        write!(writer.out, "\"{name}\":{{\"ns\":\"{origin}\",\"unix\":{unix}}},")?;
    }
    writer.out.write_all(b"\"traceEvents\":[")?;
    for (&pid, name) in &source.names().processes {
        writer.metadata("process_name", pid, None, name)?;
    }
    draw(source, &mut writer, "Chrome JSON")?;
    writer.finish()?;
    writer.out.write_all(b"\n]")?;
    writer.others()?;
    writer.out.write_all(b"}\n")?;
    let Chrome { mut dropped, .. } = writer;
    if source.trace().name.is_some() || source.trace().uuid.is_some() {
        dropped.note("name and UUID of the trace (Chrome JSON has no place for them)");
    }
    Ok(dropped)
}

/// The time that is written as 0.
fn origin(source: &dyn Source) -> i64 {
    let known = source.interval().begin;
    let first = || source.events().next_event().map(|event| event.time);
    let Some(first) = known.or_else(first) else { return 0 };
    // The second of the first moments of the time line begins before it: they take the next.
    let second = first.0.div_euclid(SECOND);
    let begin = second.checked_mul(SECOND).unwrap_or_else(|| (second + 1) * SECOND);
    if first.0.unsigned_abs() < EXACT_NANOS { 0 } else { begin }
}

struct Chrome<'w> {
    out: &'w mut dyn Write,
    source: &'w dyn Source,
    origin: i64,
    dropped: Dropped,
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
        micros(&mut self.line, head.time.saturating_sub(self.origin));
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

    /// Remembers a line, to be named at the end.
    fn seen(&mut self, owner: Owner) {
        if self.owners.len() < MAX_LINES {
            self.owners.insert(owner);
        }
    }

    fn id(&mut self, id: u64) {
        self.line.extend_from_slice(format!(",\"id\":\"{id:#x}\"").as_bytes());
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

    /// An event that was Chrome's: its phase, whether it has a category and an id, and all members
    /// but the phase, up to the closing brace.
    fn chrome_event(&mut self, event: &Event<'_>, owner: Owner, meaning: &mut Meaning) -> Vec<u8> {
        let phase = meaning.chrome_phase.unwrap_or(b'i');
        let phase =
            if phase.is_ascii_graphic() && phase != b'"' && phase != b'\\' { phase } else { b'i' };
        let category = find(event, "event.category").and_then(|field| field.as_text());
        let category = category.as_deref().unwrap_or(&meaning.category).to_owned();
        let mut name = meaning.name(event);
        if phase == b'C'
            && let Some(id) = find(event, "id").and_then(|field| field.as_text())
            && let Some(own) = name.strip_suffix(&format!("[{id}]"))
        {
            // The id is a member of its own.
            name = own.to_owned().into();
        }
        let mut line = vec![phase, u8::from(!category.is_empty()), 0];
        line.extend_from_slice(b",\"name\":");
        string(&mut line, &name);
        if !category.is_empty() {
            line.extend_from_slice(b",\"cat\":");
            string(&mut line, &category);
        }
        line.extend_from_slice(b",\"ts\":");
        micros(&mut line, event.time.0.saturating_sub(self.origin));
        let mut has_id = [false; 2];
        if let Some(context) = event.context() {
            let mut first = false;
            for (member, field) in context {
                if matches!(field.value(), Value::Optional(None)) {
                    continue;
                }
                match member.name.strip_prefix("event.").unwrap_or(&member.name) {
                    "name" | "category" => (),
                    // One that cannot be read is written as it was.
                    "dur" if field.as_text().is_none() => {
                        line.extend_from_slice(b",\"dur\":");
                        let value = match field.value() {
                            Value::Optional(Some(inner)) => inner.as_u64(),
                            _ => field.as_u64(),
                        };
                        micros(&mut line, value.unwrap_or(0) as i64);
                    }
                    name => {
                        has_id[0] |= name == "pid";
                        has_id[1] |= name == "tid";
                        line[2] |= u8::from(matches!(name, "id" | "id2"));
                        let names = Enumerations::Names;
                        meaning.writer.member(&mut line, name, field, &mut first, names);
                    }
                }
            }
        }
        let (pid, tid) = owner.ids();
        if event.writer.is_some() {
            for (name, id, there) in [("pid", pid, has_id[0]), ("tid", tid, has_id[1])] {
                if !there {
                    line.extend_from_slice(format!(",\"{name}\":{id}").as_bytes());
                }
            }
        }
        let mut args = Vec::new();
        if let Some(payload) = event.payload() {
            meaning.writer.members(&mut args, payload, &mut true, Enumerations::Names);
        }
        if !args.is_empty() {
            line.extend_from_slice(b",\"args\":{");
            line.extend_from_slice(&args);
            line.push(b'}');
        }
        line
    }

    /// Writes an event that was Chrome's, with another phase and more members.
    fn original_line(&mut self, phase: u8, more: &[u8], rest: &[u8]) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(b"{\"ph\":\"");
        self.line.push(phase);
        self.line.push(b'"');
        self.line.extend_from_slice(more);
        self.line.extend_from_slice(rest);
        self.line.push(b'}');
        self.emit()
    }

    /// Writes messages; they bind to what encloses them, so they come after it.
    fn flows(&mut self, flows: &[Flow], place: &Place<'_>) -> io::Result<()> {
        let Place { time, owner, category } = *place;
        for flow in flows {
            let phase = if flow.leaves { b's' } else { b'f' };
            let category = matching(category, "message");
            self.begin(&Head { phase, name: &flow.name, category, time, owner });
            self.id(flow.id);
            if !flow.leaves {
                self.line.extend_from_slice(b",\"bp\":\"e\"");
            }
            self.end(&[])?;
        }
        Ok(())
    }

    /// Names of threads and processes.
    fn finish(&mut self) -> io::Result<()> {
        let mut has_others = false;
        for owner in std::mem::take(&mut self.owners) {
            let (pid, tid) = owner.ids();
            if let Some(name) = line_name(self.source, owner) {
                self.metadata("thread_name", pid, Some(tid), &name)?;
            }
            has_others |= pid == NO_PROCESS;
        }
        if has_others {
            self.metadata("process_name", NO_PROCESS, None, "no process")?;
        }
        for (name, value) in &self.source.trace().environment {
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
    fn others(&mut self) -> io::Result<()> {
        let mut first = true;
        let mut other = b",\"otherData\":{".to_vec();
        let mut taken =
            ["traceEvents", "displayTimeUnit", super::ORIGIN].map(str::to_owned).to_vec();
        for (name, value) in &self.source.trace().environment {
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

impl Canvas for Chrome<'_> {
    /// Members of an object, without braces.
    type Arguments = Vec<u8>;

    /// Perfetto's importer does.
    const WHOLE_FIRST: bool = true;

    fn arguments(&mut self, event: &Event<'_>, meaning: &mut Meaning) -> io::Result<Vec<u8>> {
        let mut args = Vec::new();
        let mut first = true;
        if let Some(cpu) = cpu(event) {
            comma(&mut args, &mut first);
            args.extend_from_slice(format!("\"cpu\":{cpu}").as_bytes());
        }
        for (member, field) in fields(event) {
            meaning.writer.member(&mut args, &member.name, field, &mut first, Enumerations::Names);
        }
        Ok(args)
    }

    fn mark(
        &mut self,
        mark: &Mark,
        place: &Place<'_>,
        (name, event): (&str, Option<&str>),
        arguments: &Vec<u8>,
        flows: &[Flow],
    ) -> io::Result<()> {
        let Place { time, owner, category } = *place;
        self.seen(owner);
        let args = with_event(event, arguments);
        let head = |phase, name, category| Head { phase, name, category, time, owner };
        match mark {
            Mark::Instant => {
                self.begin(&head(b'i', name, category));
                self.line.extend_from_slice(b",\"s\":\"t\"");
                self.end(&args)?;
            }
            Mark::Original(line) => {
                let (about, rest) = line.split_at(ABOUT.min(line.len()));
                self.original_line(about.first().copied().unwrap_or(b'i'), b"", rest)?;
            }
            Mark::Begin(lane) | Mark::End(lane) if lane.index == 0 => {
                let phase = if matches!(mark, Mark::Begin(_)) { b'B' } else { b'E' };
                self.begin(&head(phase, name, category));
                self.end(&args)?;
            }
            Mark::Begin(lane) | Mark::End(lane) => {
                let phase = if matches!(mark, Mark::Begin(_)) { b'b' } else { b'e' };
                self.begin(&head(phase, name, matching(category, "span")));
                self.id(lane.span);
                self.end(&args)?;
            }
            Mark::Whole(nanos, lane) if lane.index == 0 => {
                self.begin(&head(b'X', name, category));
                self.line.extend_from_slice(b",\"dur\":");
                micros(&mut self.line, i64::try_from(*nanos).unwrap_or(i64::MAX));
                self.end(&args)?;
            }
            Mark::Whole(nanos, lane) => {
                self.begin(&head(b'b', name, matching(category, "span")));
                self.id(lane.span);
                self.end(&args)?;
                self.flows(flows, place)?;
                let time = time.saturating_add(i64::try_from(*nanos).unwrap_or(i64::MAX));
                let category = matching(category, "span");
                self.begin(&Head { phase: b'e', name, category, time, owner });
                self.id(lane.span);
                return self.end(&[]);
            }
            Mark::Open(id) | Mark::Close(id, None) => {
                let phase = if matches!(mark, Mark::Open(_)) { b'b' } else { b'e' };
                self.begin(&head(phase, name, matching(category, "span")));
                self.id(*id);
                self.end(&args)?;
            }
            Mark::Close(id, Some(began)) => {
                // Readers join ends and beginnings of one process only.
                if began.ids().0 != owner.ids().0 {
                    self.dropped.note(
                        "in which other process a span ended (Chrome JSON gets that of its \
                         beginning)",
                    );
                }
                let category = matching(category, "span");
                self.begin(&Head { phase: b'e', name, category, time, owner: *began });
                self.id(*id);
                self.end(&args)?;
            }
            Mark::State(machine, before) => {
                let id = Fnv::of_machine(machine, owner);
                if let Some(before) = before {
                    self.begin(&head(b'e', before, matching(category, "state")));
                    self.id(id);
                    self.end(&[])?;
                }
                self.begin(&head(b'b', name, matching(category, "state")));
                self.id(id);
                let mut with_machine = b"\"machine\":".to_vec();
                string(&mut with_machine, machine);
                with_machine.push(b',');
                with_machine.extend_from_slice(&args);
                self.end(&with_machine)?;
            }
            Mark::Level(field, level, _) => {
                let mut value = Vec::new();
                string(&mut value, field);
                value.push(b':');
                match *level {
                    Level::Integer(level) => number(&mut value, level),
                    Level::Real(level) => crate::json::real(&mut value, level),
                }
                self.begin(&head(b'C', name, category));
                self.end(&value)?;
            }
        }
        self.flows(flows, place)
    }

    fn original(
        &mut self,
        event: &Event<'_>,
        owner: Owner,
        meaning: &mut Meaning,
    ) -> Option<Vec<u8>> {
        meaning.chrome_phase?;
        self.seen(owner);
        Some(self.chrome_event(event, owner, meaning))
    }

    fn beside(&mut self, line: &[u8], mark: Mark, place: &Place<'_>, name: &str) -> io::Result<()> {
        let &[phase, has_category, has_id, ref rest @ ..] = line else { return Ok(()) };
        let (phase, lane) = match mark {
            Mark::Begin(lane) | Mark::Whole(_, lane) if has_id == 0 => (b'b', lane),
            Mark::End(lane) if has_id == 0 => (b'e', lane),
            // It keeps its own id.
            _ => return self.original_line(phase, b"", rest),
        };
        let category = matching(place.category, "span");
        let mut more = format!(",\"id\":\"{:#x}\"", lane.span).into_bytes();
        if has_category == 0 {
            more.extend_from_slice(b",\"cat\":");
            string(&mut more, category);
        }
        self.original_line(phase, &more, rest)?;
        if let Mark::Whole(nanos, lane) = mark {
            let time = place.time.saturating_add(i64::try_from(nanos).unwrap_or(i64::MAX));
            self.begin(&Head { phase: b'e', name, category, time, owner: place.owner });
            self.id(lane.span);
            self.end(&[])?;
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss, name: &str, time: i64) -> io::Result<()> {
        let owner = Owner::Stream(loss.stream.0);
        self.seen(owner);
        self.begin(&Head { phase: b'i', name, category: "loss", time, owner });
        self.line.extend_from_slice(b",\"s\":\"g\"");
        let mut args = format!("\"cause\":\"{}\"", loss.cause).into_bytes();
        if let Some(count) = loss.count {
            args.extend_from_slice(format!(",\"count\":{count}").as_bytes());
        }
        self.end(&args)
    }

    fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }
}

/// Bytes before the members of an event that was Chrome's: phase, has a category, has an id.
const ABOUT: usize = 3;

/// The category: asynchronous spans and messages match by it too, so they have one.
fn matching<'c>(category: &'c str, other: &'c str) -> &'c str {
    if category.is_empty() { other } else { category }
}

/// The arguments with the event's own name, where the mark has another.
fn with_event(event: Option<&str>, args: &[u8]) -> Vec<u8> {
    let Some(event) = event else { return args.to_vec() };
    let mut out = b"\"event\":".to_vec();
    string(&mut out, event);
    if !args.is_empty() {
        out.push(b',');
        out.extend_from_slice(args);
    }
    out
}
