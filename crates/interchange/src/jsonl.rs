// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON lines: one object for each event, in the order of time.
//!
//! ```text
//! {"time_ns":1500,"time":"0.000001500","name":"draw","stream":"threads","pid":1,"tid":2,
//!  "process":"ui","thread":"main","fields":{"frame":7}}
//! ```
//!
//! on one line. `cpu`, `pid`, `tid`, `process`, `thread` and `context` stand only where
//! they are known. Enumerations are numbers, with their name in `FIELD.label`. Losses
//! and damage are objects with `loss` or `damage` instead of `name`, after the events.

use std::io::{self, Write};

use lateralis_model::{Dropped, Interval, Source, Value};
use lateralis_units::Nanos;

use crate::json::{Enumerations, comma, number, string};
use crate::meaning::{Meanings, Owner, cpu, is_place, note_trace};

/// Writes all events, then losses and damage.
///
/// Memory: one line and what is known about classes. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut dropped = Dropped::default();
    let mut meanings = Meanings::new(source);
    let streams = source.streams();
    let names = source.names();
    let mut line = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        line.clear();
        line.push(b'{');
        time(&mut line, "time", event.time);
        let Some(meaning) = meanings.of(&event) else { continue };
        text(&mut line, "name", &meaning.name(&event));
        if let Some(category) = event.class.attribute(crate::CATEGORY) {
            text(&mut line, "category", category);
        }
        let stream = streams.get(event.stream.0 as usize).filter(|stream| !stream.name.is_empty());
        if let Some(stream) = stream {
            text(&mut line, "stream", &stream.name);
        }
        if let Some(cpu) = cpu(&event) {
            integer(&mut line, "cpu", cpu);
        }
        if let Owner::Thread { pid, tid } = Owner::of(&event) {
            integer(&mut line, "pid", pid);
            integer(&mut line, "tid", tid);
            if let Some(name) = names.processes.get(&pid) {
                text(&mut line, "process", name);
            }
            if let Some(name) = names.threads.get(&tid) {
                text(&mut line, "thread", name);
            }
        }
        let mut first = true;
        let contexts = [event.common_context(), event.context()];
        for (at, fields) in contexts.into_iter().enumerate() {
            for (member, field) in fields.into_iter().flatten() {
                // These stand above.
                let known = at == 0 && is_place(&member.name);
                let absent = matches!(field.value(), Value::Optional(None));
                if known || absent || member.class.structural {
                    continue;
                }
                if first {
                    line.extend_from_slice(b",\"context\":{");
                }
                let numbers = Enumerations::Numbers;
                meaning.writer.member(&mut line, &member.name, field, &mut first, numbers);
            }
        }
        if !first {
            line.push(b'}');
        }
        line.extend_from_slice(b",\"fields\":{");
        if let Some(payload) = event.payload() {
            meaning.writer.members(&mut line, payload, &mut true, Enumerations::Numbers);
        }
        line.extend_from_slice(b"}}\n");
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
        if let Some(stream) = streams.get(loss.stream.0 as usize) {
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
    meanings.lost().note(&mut dropped, "JSON");
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
