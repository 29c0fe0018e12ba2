// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Export of the selection to a file: CSV, JSON lines, Parquet.

use std::io::{self, BufWriter, Write};

use lateralis_lanes::Listed;
use lateralis_model::subsystem_and_event;
use lateralis_traces::{TableCell, TableFile, TableType};
use serde_json::{Value, json};

use super::http::Head;
use crate::answer::Problem;
use crate::methods;
use crate::params::Params;
use crate::session::Session;
use crate::told;

/// Number of events that are read at once.
const EVENTS_AT_A_TIME: usize = 20_000;
/// Number of spans that are read at once.
const SPANS_AT_A_TIME: u64 = 1000;
/// Bytes of a Parquet row group.
const GROUP_BYTES: usize = 16 << 20;

/// Columns of events, with their types.
const EVENTS: [(&str, TableType); 9] = [
    ("time_ns", TableType::Time),
    ("cpu", TableType::U32),
    ("subsystem", TableType::Text),
    ("event", TableType::Text),
    ("application", TableType::Text),
    ("pid", TableType::U32),
    ("tid", TableType::U32),
    ("thread", TableType::Text),
    ("fields", TableType::Json),
];
/// Columns of spans, with their types.
const ACTIVITIES: [(&str, TableType); 10] = [
    ("begin_ns", TableType::Time),
    ("end_ns", TableType::Time),
    ("duration_ns", TableType::U64),
    ("name", TableType::Text),
    ("key", TableType::Text),
    ("application", TableType::Text),
    ("pid", TableType::U32),
    ("tid", TableType::U32),
    ("thread", TableType::Text),
    ("quality", TableType::Text),
];

/// A requested file.
pub struct Export {
    table: Table,
    format: Format,
    params: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Events,
    Activities,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
    Parquet,
}

impl Export {
    /// Parses a request; `None` if there is no such file.
    #[must_use]
    pub fn of(head: &Head) -> Option<Self> {
        let table = match head.parameter("table")? {
            "events" => Table::Events,
            "activities" => Table::Activities,
            _ => return None,
        };
        let format = match head.parameter("format").unwrap_or("csv") {
            "csv" => Format::Csv,
            "json" | "jsonl" => Format::Json,
            "parquet" => Format::Parquet,
            _ => return None,
        };
        let mut params = json!({});
        for name in ["side", "filter", "t0", "t1", "kind", "script"] {
            if let Some(text) = head.parameter(name) {
                params[name] = serde_json::from_str(text).ok().filter(Value::is_number)?;
            }
        }
        Some(Self { table, format, params })
    }

    /// Content type.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.format {
            Format::Csv => "text/csv; charset=utf-8",
            Format::Json => "application/x-ndjson",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// File name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (self.table, self.format) {
            (Table::Events, Format::Csv) => "events.csv",
            (Table::Events, Format::Json) => "events.jsonl",
            (Table::Events, Format::Parquet) => "events.parquet",
            (Table::Activities, Format::Csv) => "activities.csv",
            (Table::Activities, Format::Json) => "activities.jsonl",
            (Table::Activities, Format::Parquet) => "activities.parquet",
        }
    }

    /// Writes the file, in the order of time.
    ///
    /// Cost: one pass over the events; memory of some thousand rows.
    ///
    /// # Errors
    /// If writing fails, or the trace cannot be read any more.
    pub fn write(&self, session: &Session, out: &mut dyn Write) -> io::Result<()> {
        let failed = |problem: Problem| io::Error::other(problem.what);
        if self.params.get("side").is_some() {
            let side = Params(&self.params).id("side").map_err(failed)?;
            let own = session.sides.of_request(session, side, &self.params, true);
            let (side, params) = own.map_err(failed)?;
            return Self { params, ..*self }.write(&side, out);
        }
        let columns: &[(&str, TableType)] =
            if self.table == Table::Events { &EVENTS } else { &ACTIVITIES };
        let mut rows = Rows::new(self.format, columns, BufWriter::new(out))?;
        match self.table {
            Table::Events => self.events(session, &mut |row| rows.row(row)).map_err(failed)??,
            Table::Activities => {
                self.activities(session, &mut |row| rows.row(row)).map_err(failed)??;
            }
        }
        rows.finish()
    }

    fn events(&self, session: &Session, see: See<'_>) -> Result<io::Result<()>, Problem> {
        let params = Params(&self.params);
        let chosen = session.chosen(params.count("filter", 0)?)?;
        let (begin, end) = methods::stretch(session, params)?;
        let listed = Listed::new(&session.lanes, chosen.as_deref());
        let meta = session.lanes.meta();
        // An event at the largest time would not be before any end.
        let until = if end == i64::MAX { listed.count() } else { listed.before(end) };
        let mut at = listed.before(begin);
        while at < until {
            let count = EVENTS_AT_A_TIME.min(usize::try_from(until - at).unwrap_or(usize::MAX));
            let points = listed.rows(at, count);
            if points.is_empty() {
                break;
            }
            let fields = told::fields(session, &points)?;
            for (point, fields) in points.iter().zip(fields) {
                let event = methods::event(session, *point);
                let class = event["class"].as_u64().and_then(|id| meta.classes.get(id as usize));
                let name = class.map_or("", |class| class.name.as_str());
                let (subsystem, name) = subsystem_and_event(name);
                let id = event["application"].as_u64().filter(|id| *id > 0);
                let application = id.and_then(|id| meta.applications.get(id as usize));
                let row = [
                    absolute(meta.origin, &event["ts"]),
                    event["cpu"].clone(),
                    subsystem.into(),
                    name.into(),
                    application.map_or(Value::Null, |a| a.name.as_str().into()),
                    event["pid"].clone(),
                    event["tid"].clone(),
                    event["thread"].clone(),
                    told::object(fields.as_ref()),
                ];
                if let Err(error) = see(&row) {
                    return Ok(Err(error));
                }
            }
            at += points.len() as u64;
        }
        Ok(Ok(()))
    }

    fn activities(&self, session: &Session, see: See<'_>) -> Result<io::Result<()>, Problem> {
        let origin = session.lanes.meta().origin;
        let mut from = 0;
        loop {
            let mut params = self.params.clone();
            params["from"] = from.into();
            params["count"] = SPANS_AT_A_TIME.into();
            let answer = methods::answer(session, "activities", &params)?;
            let crate::answer::Answer::Json(answer) = answer else { return Ok(Ok(())) };
            let rows = answer["rows"].as_array().map_or(&[][..], Vec::as_slice);
            if rows.is_empty() {
                return Ok(Ok(()));
            }
            for told in rows {
                let row = [
                    absolute(origin, &told["begin"]),
                    absolute(origin, &told["end"]),
                    told["duration"].clone(),
                    told["name"].clone(),
                    told["key"].clone(),
                    told["process"].clone(),
                    told["pid"].clone(),
                    told["tid"].clone(),
                    told["thread"].clone(),
                    told["quality"].clone(),
                ];
                if let Err(error) = see(&row) {
                    return Ok(Err(error));
                }
            }
            from += rows.len();
        }
    }
}

type See<'a> = &'a mut dyn FnMut(&[Value]) -> io::Result<()>;

/// Absolute time of the trace.
fn absolute(origin: i64, time: &Value) -> Value {
    time.as_u64().map_or(Value::Null, |time| origin.saturating_add_unsigned(time).into())
}

/// Writes rows of a file.
enum Rows<'a, W: Write> {
    Csv(W),
    Json(W, &'a [(&'a str, TableType)]),
    Parquet(Box<TableFile<W>>),
}

impl<'a, W: Write> Rows<'a, W> {
    fn new(format: Format, columns: &'a [(&'a str, TableType)], mut out: W) -> io::Result<Self> {
        Ok(match format {
            Format::Csv => {
                let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
                writeln!(out, "{}", names.join(","))?;
                Self::Csv(out)
            }
            Format::Json => Self::Json(out, columns),
            Format::Parquet => {
                let columns: Vec<(String, TableType, bool)> =
                    columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind, true)).collect();
                let file = TableFile::new(out, &columns, Vec::new(), GROUP_BYTES)?;
                Self::Parquet(Box::new(file))
            }
        })
    }

    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        match self {
            Self::Csv(out) => {
                for (place, value) in row.iter().enumerate() {
                    if place > 0 {
                        out.write_all(b",")?;
                    }
                    out.write_all(csv(value).as_bytes())?;
                }
                out.write_all(b"\n")
            }
            Self::Json(out, columns) => {
                let known = columns.iter().zip(row).filter(|(_, value)| !value.is_null());
                let pairs = known.map(|((name, _), value)| format!("{:?}:{value}", *name));
                let pairs: Vec<String> = pairs.collect();
                writeln!(out, "{{{}}}", pairs.join(","))
            }
            Self::Parquet(file) => {
                for (place, value) in row.iter().enumerate() {
                    let text;
                    let cell = match value {
                        Value::Null => TableCell::Null,
                        Value::Number(n) => {
                            let unsigned = || n.as_u64().map(|n| n as i64);
                            TableCell::Integer(n.as_i64().or_else(unsigned).unwrap_or(0))
                        }
                        Value::String(text) => TableCell::Bytes(text.as_bytes()),
                        other => {
                            text = other.to_string();
                            TableCell::Bytes(text.as_bytes())
                        }
                    };
                    file.cell(place, cell);
                }
                file.end_row()
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(mut out) | Self::Json(mut out, _) => out.flush(),
            Self::Parquet(file) => file.finish().map(drop),
        }
    }
}

/// Formats a CSV cell (RFC 4180).
fn csv(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// Writes with chunked transfer encoding, so that a client distinguishes the end of the file from a
/// broken connection.
pub struct Chunked<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Chunked<'a> {
    /// Writes to a connection.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Writes the final chunk.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"0\r\n\r\n")
    }
}

impl Write for Chunked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An empty chunk would end the file.
        if !bytes.is_empty() {
            write!(self.out, "{:x}\r\n", bytes.len())?;
            self.out.write_all(bytes)?;
            self.out.write_all(b"\r\n")?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
