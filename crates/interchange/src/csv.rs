// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CSV as Composite's tracer writes it (seed 001): one line an event,
//!
//! ```text
//! timestamp,cpuid,thd_id, nargs[,arg...]
//! ```
//!
//! with a blank before the number of arguments and no header. The time stamp is
//! nanoseconds. What that form has no column for (names, nested values) goes, on
//! request, to a quoted last column with a formatted text ([RFC 4180] quoting).

use std::io::{self, Write};

use lateralis_model::{Dropped, Event, Field, Source, Value};

use crate::json::{Enumerations, FieldWriter, number};
use crate::meaning::{Losing, Lost, Owner, cpu, fields, note_trace};

/// What to write beside the columns of the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// A first line with the names of columns.
    pub header: bool,
    /// A last column with the name of the event and its fields.
    pub text: bool,
}

/// Writes all events in the order of time.
///
/// Memory: one line. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write, options: Options) -> io::Result<Dropped> {
    let mut dropped = Dropped::default();
    let mut line = Vec::new();
    if options.header {
        let text = if options.text { ",text" } else { "" };
        writeln!(out, "timestamp,cpuid,thd_id, nargs,args...{text}")?;
    }
    let mut arguments = Vec::new();
    let mut lost = Lost::default();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        line.clear();
        arguments.clear();
        number(&mut line, event.time.0);
        line.push(b',');
        number(&mut line, cpu(&event).unwrap_or(0));
        line.push(b',');
        let tid = if let Owner::Thread { tid, .. } = Owner::of(&event) { tid } else { 0 };
        number(&mut line, tid);
        let mut count = 0u64;
        for (_, field) in fields(&event) {
            argument(field, &mut arguments, &mut count, (&mut dropped, &mut lost));
        }
        line.extend_from_slice(b", ");
        number(&mut line, count);
        line.extend_from_slice(&arguments);
        if options.text {
            line.push(b',');
            text_column(&event, &mut line);
        } else {
            dropped.note("names of events, fields and values (CSV has them with --header)");
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    for _ in source.losses() {
        dropped.note("counts of lost events (CSV has no place for them)");
    }
    lost.note(&mut dropped, "CSV");
    if !source.names().processes.is_empty() || !source.names().threads.is_empty() {
        dropped.note("names of processes and threads (CSV has no column for them)");
    }
    note_trace(source, &mut dropped, "CSV", true);
    Ok(dropped)
}

/// Adds the numbers of a field; texts are quoted.
fn argument(
    field: Field<'_>,
    out: &mut Vec<u8>,
    count: &mut u64,
    (dropped, lost): (&mut Dropped, &mut Lost),
) {
    let mut scalar = |write: &dyn Fn(&mut Vec<u8>)| {
        out.push(b',');
        write(out);
        *count += 1;
    };
    match field.value() {
        Value::Bool(value) => scalar(&|out| number(out, u8::from(value))),
        Value::Unsigned(value) | Value::Bits(value) => scalar(&|out| number(out, value)),
        Value::Signed(value) => scalar(&|out| number(out, value)),
        Value::Real(value) => scalar(&|out| number(out, value)),
        Value::Text(text) => {
            let text = lost.text(text);
            scalar(&|out| quote(text.as_bytes(), out));
        }
        Value::Bytes(bytes) => {
            lost.count(Losing::Blob);
            scalar(&|out| {
                let hex = |byte: &u8| out.extend_from_slice(format!("{byte:02x}").as_bytes());
                bytes.iter().for_each(hex);
            });
        }
        Value::Struct(fields) => {
            dropped.note("names of nested fields (CSV is flat)");
            for (_, field) in fields {
                argument(field, out, count, (dropped, lost));
            }
        }
        Value::Array(elements) => {
            dropped.note("borders of arrays (CSV is flat)");
            elements.for_each(|field| argument(field, out, count, (dropped, lost)));
        }
        Value::Variant(_, field) => {
            lost.count(Losing::Choice);
            argument(field, out, count, (dropped, lost));
        }
        Value::Optional(Some(field)) => argument(field, out, count, (dropped, lost)),
        Value::Optional(None) => scalar(&|_| ()),
    }
}

fn text_column(event: &Event<'_>, line: &mut Vec<u8>) {
    let mut text = Vec::new();
    text.extend_from_slice(event.class.name.as_bytes());
    if let Some(phase) = event.class.attribute(lateralis_model::role::PHASE) {
        text.extend_from_slice(b" (");
        text.extend_from_slice(phase.as_bytes());
        text.push(b')');
    }
    let mut writer = FieldWriter::default();
    for (member, field) in fields(event) {
        if !matches!(field.value(), Value::Optional(None)) {
            text.push(b' ');
            text.extend_from_slice(member.name.as_bytes());
            text.push(b'=');
            writer.value(&mut text, field, Enumerations::Names);
        }
    }
    quote(&text, line);
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
