// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON lines: one object for each event, in the order of time.
//!
//! ```text
//! {"time_ns":1500,"time":"0.000001500","name":"draw","stream":"threads","pid":1,"tid":2,
//!  "process":"ui","thread":"main","fields":{"frame":7}}
//! ```
//!
//! on one line. `time_ns` and `time`, `cpu`, `pid`, `tid`, `process`, `thread`, `message` and
//! `context` are omitted if unknown. Integers have all their digits, also beyond
//! 2⁵³. Enumerations are numbers, with their name in `FIELD.label`: a list of names where
//! the field is a list; the option of a variant is in `FIELD.choice`. Losses and damage are
//! objects with `loss` or `damage` instead of `name`, after the events.

use std::io::{self, Write};

use lateralis_model::{Dropped, Event, Interval, Names, Source, StreamSummary, Value};
use lateralis_units::Nanos;

use crate::json::{Enumerations, comma, number, string};
use crate::meaning::{Meanings, Owner, cpu, is_place, note_trace};

/// Writes events one at a time.
pub struct Lines<'s> {
    meanings: Meanings,
    streams: Vec<StreamSummary>,
    names: &'s Names,
}

impl<'s> Lines<'s> {
    /// For the events of a trace, with these names of processes and threads.
    ///
    /// Memory: what is known about classes and streams.
    #[must_use]
    pub fn new(source: &dyn Source, names: &'s Names) -> Self {
        Self { meanings: Meanings::new(source), streams: source.streams(), names }
    }

    /// Appends an event and a line feed. `message` is the event as a sentence, where its
    /// producer has one. An event of a class that came after opening is left out.
    pub fn event(&mut self, line: &mut Vec<u8>, event: &Event<'_>, message: Option<&str>) {
        let Some(meaning) = self.meanings.of(event) else { return };
        line.push(b'{');
        if event.ticks.is_some() {
            time(line, "time", event.time);
        }
        text(line, "name", &meaning.name(event));
        if let Some(phase) = event.class.attribute(lateralis_model::role::PHASE) {
            text(line, "phase", phase);
        }
        if let Some(category) = event.class.attribute(crate::CATEGORY) {
            text(line, "category", category);
        }
        let stream = self.streams.get(event.stream.0 as usize);
        if let Some(stream) = stream.filter(|stream| !stream.name.is_empty()) {
            text(line, "stream", &stream.name);
        }
        if let Some(cpu) = cpu(event) {
            integer(line, "cpu", cpu);
        }
        if let Owner::Thread { pid, tid } = Owner::of(event) {
            integer(line, "pid", pid);
            integer(line, "tid", tid);
            if let Some(name) = self.names.processes.get(&pid) {
                text(line, "process", name);
            }
            if let Some(name) = self.names.threads.get(&tid) {
                text(line, "thread", name);
            }
        }
        if let Some(message) = message {
            text(line, "message", message);
        }
        let mut first = true;
        let contexts = [event.common_context(), event.context()];
        for (at, fields) in contexts.into_iter().enumerate() {
            for (member, field) in fields.into_iter().flatten() {
                // These are above.
                let known = at == 0 && is_place(&member.name);
                let absent = matches!(field.value(), Value::Optional(None));
                if known || absent || member.class.structural {
                    continue;
                }
                if first {
                    line.extend_from_slice(b",\"context\":{");
                }
                let numbers = Enumerations::Numbers;
                meaning.writer.member(line, &member.name, field, &mut first, numbers);
            }
        }
        if !first {
            line.push(b'}');
        }
        line.extend_from_slice(b",\"fields\":{");
        if let Some(payload) = event.payload() {
            meaning.writer.members(line, payload, &mut true, Enumerations::Numbers);
        }
        line.extend_from_slice(b"}}\n");
    }
}

/// Writes all events, then losses and damage.
///
/// Memory: one line and what is known about classes. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut dropped = Dropped::default();
    let mut lines = Lines::new(source, source.names());
    let mut line = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        line.clear();
        lines.event(&mut line, &event, None);
        out.write_all(&line)?;
    }
    for loss in source.losses() {
        line.clear();
        line.push(b'{');
        interval(&mut line, loss.interval);
        text(&mut line, "loss", loss.cause.name());
        if let Some(count) = loss.count {
            integer(&mut line, "count", count);
        }
        if let Some(stream) = lines.streams.get(loss.stream.0 as usize) {
            text(&mut line, "stream", &stream.name);
        }
        line.extend_from_slice(b"}\n");
        out.write_all(&line)?;
    }
    for damage in source.damage().iter().chain(&events.damage()) {
        line.clear();
        line.push(b'{');
        interval(&mut line, damage.interval);
        text(&mut line, "damage", &damage.reason.to_string());
        text(&mut line, "file", &damage.file);
        integer(&mut line, "begin_bytes", damage.begin_bytes);
        integer(&mut line, "end_bytes", damage.end_bytes);
        line.extend_from_slice(b"}\n");
        out.write_all(&line)?;
    }
    lines.meanings.lost().note(&mut dropped, "JSON");
    note_trace(source, &mut dropped, "JSON lines", true);
    Ok(dropped)
}

fn key(line: &mut Vec<u8>, name: &str) {
    let mut first = line.last() == Some(&b'{');
    comma(line, &mut first);
    string(line, name);
    line.push(b':');
}

fn text(line: &mut Vec<u8>, name: &str, value: &str) {
    key(line, name);
    string(line, value);
}

fn integer(line: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    key(line, name);
    number(line, value);
}

fn time(line: &mut Vec<u8>, name: &str, time: Nanos) {
    integer(line, &format!("{name}_ns"), time.0);
    text(line, name, &time.to_string());
}

fn interval(line: &mut Vec<u8>, interval: Interval) {
    if let Some(begin) = interval.begin {
        time(line, "begin", begin);
    }
    if let Some(end) = interval.end {
        time(line, "end", end);
    }
}
