// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parquet: tables for DuckDB, Spark, pandas and the like.
//!
//! [`write`] makes one table of all events, [`write_classes`] one table for each kind
//! of event, with its fields as typed columns. Rows are in the order of time; row groups
//! have minima and maxima, so that a query for an interval reads only what it needs.
//!
//! The files are made here and not by the crate `parquet`: flat columns are little
//! work, and the crate would add more than a minute of processor time to the build.

mod file;
mod thrift;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lateralis_model::{Dropped, Event, Field, FieldKind, Member, Source, StreamSummary, Value};

use crate::json::{Enumerations, FieldWriter, field_label};
use crate::meaning::{Meanings, Owner, cpu, fields};
pub use file::{Cell, File, Type};

/// Tables of kinds of events that are written at once.
const MAX_TABLES: usize = 512;
/// Bytes of a row group in memory: of the table of all events, of one kind.
const GROUP_BYTES: usize = 64 << 20;
const CLASS_GROUP_BYTES: usize = 1 << 20;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Whether times count from 1970.
fn is_unix(source: &dyn Source) -> bool {
    source.trace().clocks.iter().any(|clock| clock.unix_epoch)
}

/// Columns that every table begins with.
fn common_columns(unix: bool) -> Vec<(String, Type, bool)> {
    let column = |name: &str, kind, optional| (name.to_owned(), kind, optional);
    let mut columns = vec![
        column("time_ns", Type::I64, false),
        column("stream", Type::Text, false),
        column("cpu", Type::U32, true),
        column("pid", Type::U32, true),
        column("tid", Type::U32, true),
    ];
    if unix {
        columns.push(column("time", Type::Time, false));
    }
    columns
}

/// Additional data of the tables: the environment, as text.
fn key_values(source: &dyn Source) -> Vec<(String, String)> {
    let text = |value: &lateralis_model::EnvValue| match value {
        lateralis_model::EnvValue::Integer(value) => value.to_string(),
        lateralis_model::EnvValue::Text(text) => text.clone(),
    };
    let environment = source.trace().environment.iter();
    let mut pairs: Vec<_> = environment.map(|(name, value)| (name.clone(), text(value))).collect();
    let trace = source.trace();
    pairs.extend(trace.name.clone().map(|name| ("trace.name".to_owned(), name)));
    pairs.extend(trace.uuid.map(|uuid| ("trace.uuid".to_owned(), uuid.to_string())));
    pairs.push(("time_ns.since_1970".to_owned(), is_unix(source).to_string()));
    // Readers make a dictionary of them: of equal keys one would be left.
    for (number, loss) in source.losses().iter().take(10_000).enumerate() {
        let key = if number == 0 { "loss".to_owned() } else { format!("loss.{}", number + 1) };
        pairs.push((key, crate::meaning::loss_text(loss)));
    }
    pairs
}

fn common_cells<W: Write>(
    file: &mut File<W>,
    event: &Event<'_>,
    streams: &[StreamSummary],
    unix: bool,
) {
    file.cell(0, Cell::Integer(event.time.0));
    let stream = streams.get(event.stream.0 as usize).map_or("", |stream| stream.name.as_str());
    file.cell(1, Cell::Bytes(stream.as_bytes()));
    if let Some(cpu) = cpu(event) {
        file.cell(2, Cell::Integer(i64::from(cpu)));
    }
    if let Owner::Thread { pid, tid } = Owner::of(event) {
        file.cell(3, Cell::Integer(i64::from(pid)));
        file.cell(4, Cell::Integer(i64::from(tid)));
    }
    if unix {
        file.cell(5, Cell::Integer(event.time.0));
    }
}

/// Writes one table of all events: `time_ns` (of the trace's timeline), `stream`, `cpu`, `pid`,
/// `tid`, `time` (a time stamp, if times count from 1970), `process`, `thread`, `name`, `fields`
/// (JSON, enumerations as numbers with `FIELD.label` beside them). The environment and losses are
/// in the metadata of the file.
///
/// Memory: a row group of at most 64 MiB. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut dropped = Dropped::default();
    let unix = is_unix(source);
    let mut columns = common_columns(unix);
    let own = columns.len();
    for (name, kind, optional) in [
        ("process", Type::Text, true),
        ("thread", Type::Text, true),
        ("name", Type::Text, false),
        ("fields", Type::Json, false),
    ] {
        columns.push((name.to_owned(), kind, optional));
    }
    let mut file = File::new(out, &columns, key_values(source), GROUP_BYTES)?;
    let mut meanings = Meanings::new(source);
    let streams = source.streams();
    let names = source.names();
    let mut json = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let Some(meaning) = meanings.of(&event) else { continue };
        common_cells(&mut file, &event, &streams, unix);
        if let Owner::Thread { pid, tid } = Owner::of(&event) {
            for (column, name) in
                [(own, names.processes.get(&pid)), (own + 1, names.threads.get(&tid))]
            {
                if let Some(name) = name {
                    file.cell(column, Cell::Bytes(name.as_bytes()));
                }
            }
        }
        file.cell(own + 2, Cell::Bytes(meaning.name(&event).as_bytes()));
        json.clear();
        json.push(b'{');
        let mut first = true;
        for (member, field) in fields(&event) {
            let numbers = Enumerations::Numbers;
            meaning.writer.member(&mut json, &member.name, field, &mut first, numbers);
        }
        json.push(b'}');
        file.cell(own + 3, Cell::Bytes(&json));
        file.end_row()?;
    }
    file.finish()?;
    if !source.damage().is_empty() || !events.damage().is_empty() {
        dropped.note("the list of damage (Parquet has no place for it)");
    }
    meanings.lost().note(&mut dropped, "Parquet");
    Ok(dropped)
}

/// A table that is being written, and the columns of its fields.
struct Table {
    file: File<Box<dyn Write>>,
    json: FieldWriter,
}

/// Writes a table for each kind of event that occurs: `time_ns`, `stream`, `cpu`, `pid`,
/// `tid` and one column for each field; fields that are no scalar are JSON text, and
/// enumerations have a second column `FIELD.label`. `open` is asked for each table
/// once, with a name that is safe for a file: the letters, digits, `-`, `_` and `.` of
/// the event's name, made different by a number where needed.
///
/// Memory: a row group of at most 1 MiB for each table. Kinds beyond the first 512
/// are left out, which is noted. Cost: one pass.
///
/// # Errors
/// Those of what `open` gives.
pub fn write_classes(
    source: &dyn Source,
    open: &mut dyn FnMut(&str) -> io::Result<Box<dyn Write>>,
) -> io::Result<Dropped> {
    let mut dropped = Dropped::default();
    let mut tables: HashMap<(u32, u32), Table> = HashMap::new();
    let mut taken = HashSet::new();
    let unix = is_unix(source);
    let streams = source.streams();
    let mut buffer = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let id = (event.stream_class_index, event.class_index);
        if !tables.contains_key(&id) {
            if tables.len() >= MAX_TABLES {
                dropped.note("events of kinds beyond the 512 that get tables");
                continue;
            }
            let out = open(&file_name(&event.class.name, &mut taken))?;
            let mut pairs = key_values(source);
            pairs.push(("event".to_owned(), event.class.name.clone()));
            let columns = class_columns(&event, unix);
            let file = File::new(out, &columns, pairs, CLASS_GROUP_BYTES)?;
            tables.insert(id, Table { file, json: FieldWriter::new(event.class) });
        }
        let Some(table) = tables.get_mut(&id) else { continue };
        common_cells(&mut table.file, &event, &streams, unix);
        let mut column = common_columns(unix).len();
        for (member, field) in fields(&event) {
            add_field(table, member, field, &mut column, &mut buffer);
        }
        table.file.end_row()?;
    }
    for (_, table) in tables {
        table.json.lost.note(&mut dropped, "Parquet");
        table.file.finish()?;
    }
    Ok(dropped)
}

fn file_name(event: &str, taken: &mut HashSet<String>) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let mut name: String = event.chars().take(100).map(safe).collect();
    if name.is_empty() || name.starts_with('.') {
        name.insert(0, '_');
    }
    let base = name.clone();
    let mut number = 2u32;
    // Names that differ only in case are one file on some systems.
    while !taken.insert(name.to_ascii_lowercase()) {
        name = format!("{base}.{number}");
        number += 1;
    }
    name
}

/// The class inside an optional one.
fn required(kind: &FieldKind) -> (&FieldKind, bool) {
    match kind {
        FieldKind::Optional(class) => (&class.kind, true),
        kind => (kind, false),
    }
}

fn column_type(kind: &FieldKind) -> Type {
    match kind {
        FieldKind::Bool => Type::Bool,
        FieldKind::Unsigned(class) if class.bits <= 32 => Type::U32,
        FieldKind::Unsigned(_) | FieldKind::Bits { .. } => Type::U64,
        FieldKind::Signed(_) => Type::I64,
        FieldKind::Real(_) => Type::F64,
        FieldKind::Text(_) => Type::Text,
        FieldKind::Bytes(_) => Type::Bytes,
        FieldKind::Struct(_)
        | FieldKind::Array { .. }
        | FieldKind::Variant(_)
        | FieldKind::Optional(_) => Type::Json,
    }
}

fn has_labels(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::Unsigned(class) | FieldKind::Signed(class)
        if !class.labels.is_empty())
}

/// The columns of a kind of event; in the order of [`fields`].
fn class_columns(event: &Event<'_>, unix: bool) -> Vec<(String, Type, bool)> {
    let mut columns = common_columns(unix);
    let mut taken: HashSet<String> = columns.iter().map(|(name, ..)| name.clone()).collect();
    let mut add = |name: String, kind, optional| {
        let mut unique = name.clone();
        // A field of the same name as another, or as a column of ours.
        while !taken.insert(unique.to_ascii_lowercase()) {
            unique.insert(0, '_');
        }
        columns.push((unique, kind, optional));
    };
    for (member, _) in fields(event) {
        let (kind, optional) = required(&member.class.kind);
        add(member.name.clone(), column_type(kind), optional);
        if has_labels(kind) {
            add(format!("{}.label", member.name), Type::Text, true);
        }
    }
    columns
}

fn add_field(
    table: &mut Table,
    member: &Member,
    field: Field<'_>,
    column: &mut usize,
    buffer: &mut Vec<u8>,
) {
    let (kind, _) = required(&member.class.kind);
    let value = match field.value() {
        Value::Optional(inner) => inner,
        _ => Some(field),
    };
    if let Some(field) = value {
        add_cell(table, *column, field, buffer);
        if let Some(label) = field_label(field) {
            table.file.cell(*column + 1, Cell::Bytes(label.as_bytes()));
        }
    }
    *column += 1 + usize::from(has_labels(kind));
}

fn add_cell(table: &mut Table, column: usize, field: Field<'_>, buffer: &mut Vec<u8>) {
    match field.value() {
        Value::Bool(value) => table.file.cell(column, Cell::Bool(value)),
        Value::Unsigned(value) | Value::Bits(value) => {
            table.file.cell(column, Cell::Integer(value as i64));
        }
        Value::Signed(value) => table.file.cell(column, Cell::Integer(value)),
        Value::Real(value) => table.file.cell(column, Cell::Real(value)),
        Value::Text(text) => {
            let text = table.json.lost.text(text);
            table.file.cell(column, Cell::Bytes(text.as_bytes()));
        }
        Value::Bytes(bytes) => table.file.cell(column, Cell::Bytes(bytes)),
        Value::Struct(_) | Value::Array(_) | Value::Variant(..) | Value::Optional(_) => {
            buffer.clear();
            table.json.value(buffer, field, Enumerations::Numbers);
            table.file.cell(column, Cell::Bytes(buffer));
        }
    }
}
