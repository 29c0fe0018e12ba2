// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints activities, one per line, as they are found.

use std::io::{self, Write};

use lateralis_model::terminal::Style;
use lateralis_model::{Names, Quality};
use lateralis_script::{Activity, End, Scalar};
use lateralis_store::Recording;
use serde_json::{Map, Number, Value, json};

use crate::date;
use crate::error::CliError;
use crate::output::{self, Page};
use crate::values;

/// Bytes buffered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// Output format of activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One object, activities first.
    Json,
    /// A head line, then one line each.
    Csv,
}

/// Returns standard output for the format.
pub fn out(format: Format) -> Box<dyn Write> {
    match format {
        // Text is cleaned line by line as it is written.
        Format::Text => Box::new(output::cleaned_lines()),
        Format::Json => Box::new(output::json()),
        Format::Csv => output::data(Style::Text),
    }
}

/// Writes activities.
pub struct Lines<'r, W> {
    out: W,
    buffer: String,
    format: Format,
    kinds: Vec<String>,
    names: &'r Names,
    left: u64,
    count: u64,
}

impl<'r, W: Write> Lines<'r, W> {
    /// Writes at most `limit` activities of these kinds.
    pub fn new(
        out: W,
        format: Format,
        kinds: Vec<String>,
        recording: &'r Recording,
        limit: Option<u64>,
    ) -> Self {
        let left = limit.unwrap_or(u64::MAX);
        Self { out, buffer: String::new(), format, kinds, names: &recording.names, left, count: 0 }
    }

    /// Returns the number of activities written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the head of the list.
    pub fn begin(&mut self) -> Result<(), CliError> {
        match self.format {
            Format::Text => {}
            Format::Json => self.buffer.push_str("{\n  \"activities\": ["),
            Format::Csv => self.buffer.push_str(
                "activity,begin_ns,end_ns,duration_ns,key,begin_pid,begin_tid,begin_thread,\
                 begin_cpu,end_pid,end_tid,end_thread,end_cpu,quality,attributes\n",
            ),
        }
        Ok(())
    }

    /// Writes one activity.
    pub fn activity(&mut self, activity: &Activity, quality: Quality) -> Result<(), CliError> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.count += 1;
        let line = match self.format {
            Format::Text => Page::of_line(format_args!("{}", self.text(activity, quality))).into(),
            Format::Json => {
                let comma = if self.count > 1 { "," } else { "" };
                format!("{comma}\n    {}", self.json(activity, quality))
            }
            Format::Csv => self.csv(activity, quality),
        };
        self.buffer.push_str(&line);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        Ok(())
    }

    /// Closes the list.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.flush()?;
        self.out.flush()?;
        Ok(())
    }

    /// Closes the list and appends a page.
    pub fn end_text(&mut self, page: &Page) -> Result<(), CliError> {
        if self.count > 0 {
            self.buffer.push('\n');
        }
        self.buffer.push_str(page.as_str());
        self.finish()
    }

    /// Closes the list and appends the members of an object.
    pub fn end_json(&mut self, rest: &Value) -> Result<(), CliError> {
        self.buffer.push_str(if self.count > 0 { "\n  ]" } else { "]" });
        for (name, value) in rest.as_object().into_iter().flatten() {
            let value = format!("{value:#}").replace('\n', "\n  ");
            self.buffer.push_str(&format!(",\n  {}: {value}", json!(name)));
        }
        self.buffer.push_str("\n}\n");
        self.finish()
    }

    fn kind(&self, activity: &Activity) -> &str {
        self.kinds.get(activity.kind).map_or("", String::as_str)
    }

    fn thread(&self, end: &End) -> Option<&str> {
        let writer = end.writer?;
        let name = self.names.threads.get(&writer.tid);
        name.or_else(|| self.names.processes.get(&writer.pid)).map(String::as_str)
    }

    fn text(&self, activity: &Activity, quality: Quality) -> String {
        let mut line = format!(
            "{}  {:>9}  {}",
            date::text(activity.begin.time),
            values::time(activity.duration_ns()),
            self.kind(activity),
        );
        if !activity.key.is_empty() {
            line += &format!("  {}", key_text(&activity.key));
        }
        let place = |end: &End| {
            let mut place = String::new();
            if let Some(writer) = end.writer {
                let name = self.thread(end).map_or(String::new(), |name| format!(" {name}"));
                place += &format!("{}/{}{}", writer.pid, writer.tid, name);
            }
            if let Some(cpu) = end.cpu {
                let blank = if place.is_empty() { "" } else { " " };
                place += &format!("{blank}cpu{cpu}");
            }
            place
        };
        let (begin, end) = (place(&activity.begin), place(&activity.end));
        if !begin.is_empty() {
            line += &format!("  [{begin}]");
        }
        if end != begin && !end.is_empty() {
            line += &format!(" to [{end}]");
        }
        for (name, value) in &activity.attributes {
            line += &format!("  {}={}", name, value);
        }
        if quality != Quality::Exact {
            line += "  (events are missing)";
        }
        line
    }

    fn json(&self, activity: &Activity, quality: Quality) -> Value {
        let key = match activity.key.as_slice() {
            [] => Value::Null,
            [one] => scalar_json(one),
            several => several.iter().map(scalar_json).collect(),
        };
        let mut value = json!({
            "activity": self.kind(activity),
            "begin_ns": activity.begin.time.0,
            "end_ns": activity.end.time.0,
            "duration_ns": activity.duration_ns(),
            "key": key,
            "quality": quality.name(),
        });
        let Some(object) = value.as_object_mut() else { return value };
        for (side, end) in [("begin", &activity.begin), ("end", &activity.end)] {
            object.insert(format!("{side}_pid"), json!(end.writer.map(|writer| writer.pid)));
            object.insert(format!("{side}_tid"), json!(end.writer.map(|writer| writer.tid)));
            object.insert(format!("{side}_thread"), json!(self.thread(end)));
            object.insert(format!("{side}_cpu"), json!(end.cpu));
        }
        object.insert("attributes".to_owned(), attributes_json(activity));
        value
    }

    fn csv(&self, activity: &Activity, quality: Quality) -> String {
        let number = |number: Option<u32>| number.map_or(String::new(), |n| n.to_string());
        let mut cells = vec![
            quoted(self.kind(activity)),
            activity.begin.time.0.to_string(),
            activity.end.time.0.to_string(),
            activity.duration_ns().to_string(),
            quoted(&key_text(&activity.key)),
        ];
        for end in [&activity.begin, &activity.end] {
            cells.push(number(end.writer.map(|writer| writer.pid)));
            cells.push(number(end.writer.map(|writer| writer.tid)));
            cells.push(quoted(self.thread(end).unwrap_or("")));
            cells.push(number(end.cpu));
        }
        cells.push(quality.name().to_owned());
        cells.push(match activity.attributes.as_slice() {
            [] => String::new(),
            _ => quoted(&attributes_json(activity).to_string()),
        });
        cells.join(",") + "\n"
    }
}

fn key_text(key: &[Scalar]) -> String {
    key.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn attributes_json(activity: &Activity) -> Value {
    let attributes = activity.attributes.iter();
    let object: Map<String, Value> =
        attributes.map(|(name, value)| (name.to_string(), scalar_json(value))).collect();
    Value::Object(object)
}

/// Numbers that JSON cannot represent become strings.
fn scalar_json(value: &Scalar) -> Value {
    match value {
        Scalar::Nothing => Value::Null,
        Scalar::Bool(value) => json!(value),
        Scalar::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => json!(value),
            (_, Ok(value)) => json!(value),
            _ => json!(value.to_string()),
        },
        Scalar::Real(value) => match Number::from_f64(*value) {
            Some(number) => Value::Number(number),
            None => json!(value.to_string()),
        },
        Scalar::Text(text) => json!(text),
    }
}

/// A cell of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
