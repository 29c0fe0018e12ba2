// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace opened for reading, with what its schemas say about its events.

use std::fs;
use std::path::{Path, PathBuf};

use lateralis_ctf::{Reader, open};
use lateralis_model::{Damage, EnvValue, EventClass, Trace};
use lateralis_pleco::Schema;
use lateralis_pleco::schema::Event as SchemaEvent;
use serde_json::Value;

use crate::error::CliError;

/// Environment entries with this prefix hold the text of a schema
/// (spec/trace-layout.md).
const SCHEMA_PREFIX: &str = "lateralis_schema_";

/// A recording of `lat record`, or any CTF trace.
pub struct Recording {
    /// As given by the user.
    pub path: PathBuf,
    /// The trace.
    pub reader: Reader,
    /// What its events mean.
    pub meanings: Meanings,
    /// `report.json`, where there is one.
    pub report: Option<Value>,
}

impl Recording {
    /// Opens `NAME`, `NAME/ctf`, or a directory with a CTF trace in it.
    ///
    /// Errors: if there is no trace, more than one, or a file cannot be read.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        let inner = path.join("ctf");
        let directory = if inner.join("metadata").is_file() { &inner } else { path };
        let reader = open::open(directory).map_err(|error| explain(path, error))?;
        let beside = [path.join("report.json"), path.join("../report.json")];
        let report = beside.iter().find_map(|path| {
            let text = fs::read(path).ok()?;
            serde_json::from_slice(&text).ok()
        });
        let meanings = Meanings::of(reader.trace());
        Ok(Self { path: path.to_owned(), reader, meanings, report })
    }

    /// Damage found on opening and, by then, while reading: in the order of
    /// files and bytes.
    pub fn all_damage<'a>(&'a self, inside: impl Iterator<Item = &'a Damage>) -> Vec<&'a Damage> {
        let mut all: Vec<&Damage> = self.reader.damage().iter().chain(inside).collect();
        all.sort_by_key(|damage| (damage.file.as_str(), damage.begin_bytes));
        all
    }
}

fn explain(path: &Path, error: open::Error) -> CliError {
    let place = path.display().to_string();
    match error {
        open::Error::NoTrace { .. } => CliError::new(
            "no trace here",
            place,
            "expected a recording of `lat record` or a directory with a CTF metadata file",
        ),
        open::Error::Several { traces, .. } => {
            let listed: Vec<_> = traces.iter().take(8).map(|t| t.display().to_string()).collect();
            let more = traces.len().saturating_sub(listed.len());
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            let advice = format!("name one of\n  {}{more}", listed.join("\n  "));
            CliError::new(format!("{} traces here", traces.len()), place, advice)
        }
        open::Error::Io { path, source } => CliError::at_path("cannot read", &path, &source),
        other => CliError::new("cannot open the trace", place, other.to_string()),
    }
}

/// Which event of which schema each event class is.
pub struct Meanings {
    schemas: Vec<Schema>,
    /// By stream class and event class: schema and event.
    classes: Vec<Vec<Option<(usize, usize)>>>,
    /// Schemas in the trace that do not compile.
    pub unreadable: Vec<String>,
}

impl Meanings {
    fn of(trace: &Trace) -> Self {
        let mut schemas = Vec::new();
        let mut unreadable = Vec::new();
        for (name, value) in &trace.environment {
            let (Some(_), EnvValue::Text(text)) = (name.strip_prefix(SCHEMA_PREFIX), value) else {
                continue;
            };
            match lateralis_pleco::compile(name, text.as_bytes()).schema {
                Some(schema) => schemas.push(schema),
                None => unreadable.push(name.clone()),
            }
        }
        let find = |class: &EventClass| {
            schemas.iter().enumerate().find_map(|(index, schema)| {
                let is_it = |event: &SchemaEvent| {
                    schema.full_name(event) == class.name && same_fields(event, class)
                };
                Some((index, schema.events.iter().position(is_it)?))
            })
        };
        let classes = trace
            .stream_classes
            .iter()
            .map(|stream| stream.event_classes.iter().map(find).collect())
            .collect();
        Self { schemas, classes, unreadable }
    }

    /// The schema event of an event class, if a schema describes it.
    pub fn get(&self, stream_class: usize, event_class: usize) -> Option<&SchemaEvent> {
        let (schema, event) = (*self.classes.get(stream_class)?.get(event_class)?)?;
        self.schemas.get(schema)?.events.get(event)
    }

    /// The schemas of the trace.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }
}

/// Two versions of a schema may be in one trace: the fields tell them apart.
fn same_fields(event: &SchemaEvent, class: &EventClass) -> bool {
    let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
    let mut shown = members.iter().filter(|member| !is_length(&member.name));
    event.fields.iter().all(|field| {
        shown.next().is_some_and(|member| {
            // Names are mangled where they are no identifiers.
            member.name == field.name || !field.name.is_ascii()
        })
    }) && shown.next().is_none()
}

/// Whether a field only tells the length of the sequence behind it.
pub fn is_length(name: &str) -> bool {
    name.starts_with('_') && name.ends_with("_length")
}
