// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns of tables: those common to every table of events, and those of the fields of a class.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_schema::{Field as ArrowField, Schema, SchemaRef};
use lateralis_model::{EventClass, FieldClass, FieldKind, Scope, Source, StreamClass, leaves};

use super::build::Holds;
use crate::{Recording, is_length};

/// Name, type, unit, description.
pub type Described = (&'static str, Holds, &'static str, &'static str);

/// The first columns of the tables of events.
pub fn common() -> Vec<Described> {
    use Holds::{Int, Word};
    vec![
        ("ts", Int, "ns", "when: since 1970-01-01T00:00:00Z, else since the zero of the clock"),
        ("recording", Word, "", "which of the recordings"),
        ("stream", Int, "", "its stream: `streams` has its name"),
        ("cpu", Int, "", "the processor it happened on"),
        ("process", Word, "", "name of the process"),
        ("pid", Int, "", "number of the process"),
        ("thread", Word, "", "name of the thread"),
        ("tid", Int, "", "number of the thread"),
        ("application", Word, "", "label of the component, else name of the process"),
        ("packet", Int, "", "number of its packet in the stream, from 0: see `packets`"),
    ]
}

/// A column of a table of events that is the same for all classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Common {
    Time,
    Recording,
    Stream,
    Cpu,
    Process,
    Pid,
    Thread,
    Tid,
    Application,
    Packet,
    Class,
    Phase,
    Fields,
}

/// In the order of [`common`], including those that only `events` has.
pub const COMMON: [Common; 13] = [
    Common::Time,
    Common::Recording,
    Common::Stream,
    Common::Cpu,
    Common::Process,
    Common::Pid,
    Common::Thread,
    Common::Tid,
    Common::Application,
    Common::Packet,
    Common::Class,
    Common::Phase,
    Common::Fields,
];

impl Common {
    /// Whether it needs the thread of an event.
    pub fn needs_writer(self) -> bool {
        matches!(self, Self::Process | Self::Pid | Self::Thread | Self::Tid | Self::Application)
    }

    /// Whether it needs names.
    pub fn needs_names(self) -> bool {
        self.needs_writer() && self != Self::Tid
    }
}

/// One class of a table: several recordings, or stream classes, may have a class of the same name.
#[derive(Debug, Clone)]
pub struct Variant {
    pub recording: usize,
    pub stream_class: u32,
    pub class: u32,
    /// Leaf for each column of the table after the common ones, if there is one.
    pub leaves: Vec<Option<usize>>,
}

/// Column of one field in the table of a class.
struct Shown {
    name: String,
    holds: Holds,
    unit: String,
    description: String,
    leaf: usize,
}

/// Column type for a field of this class.
pub fn holds(class: &FieldClass) -> Holds {
    match &class.kind {
        FieldKind::Bool => Holds::Bool,
        FieldKind::Unsigned(integer) | FieldKind::Signed(integer) if !integer.labels.is_empty() => {
            Holds::Word
        }
        FieldKind::Optional(inner) => match holds(inner) {
            // Their names and numbers would be two columns.
            Holds::Word => Holds::Text,
            inner => inner,
        },
        FieldKind::Array { element, .. } => match number(element) {
            Some(element) => Holds::List(Box::new(element)),
            None => Holds::Text,
        },
        FieldKind::Text(_) => Holds::Text,
        FieldKind::Bytes(_) => Holds::Bytes,
        FieldKind::Struct(_) | FieldKind::Variant(_) => Holds::Text,
        _ => number(class).unwrap_or(Holds::Text),
    }
}

/// Column type for a number or a text in a list.
fn number(class: &FieldClass) -> Option<Holds> {
    Some(match &class.kind {
        FieldKind::Bool => Holds::Bool,
        FieldKind::Unsigned(integer) if integer.bits >= 64 => Holds::Unsigned,
        FieldKind::Bits { bits, .. } if *bits >= 64 => Holds::Unsigned,
        FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Bits { .. } => Holds::Int,
        FieldKind::Real(_) => Holds::Real,
        FieldKind::Text(_) => Holds::Text,
        _ => return None,
    })
}

fn description(class: &FieldClass) -> String {
    match &class.kind {
        FieldKind::Struct(_) | FieldKind::Variant(_) => "JSON".to_owned(),
        FieldKind::Array { element, .. } if number(element).is_none() => "JSON".to_owned(),
        FieldKind::Optional(inner) => description(inner),
        _ => String::new(),
    }
}

/// Unit of a field from the schema.
fn unit(recording: &Recording, stream_class: usize, class: usize, field: &str) -> String {
    let event = recording.meanings.get(stream_class, class);
    let field = event.and_then(|event| event.fields.iter().find(|found| found.name == field));
    field.map(super::units::of_field).unwrap_or_default().to_owned()
}

fn shown(
    recording: &Recording,
    (stream_index, stream): (usize, &StreamClass),
    (index, class): (usize, &EventClass),
) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut taken: HashMap<String, ()> =
        common().iter().map(|(name, ..)| ((*name).to_owned(), ())).collect();
    let all = leaves(stream, class);
    let is_payload = |scope| scope == Scope::Payload;
    let by_scope = |payload: bool| {
        let all = all.iter().enumerate();
        all.filter(move |(_, leaf)| is_payload(leaf.scope) == payload)
    };
    for (leaf_index, leaf) in by_scope(true).chain(by_scope(false)) {
        let last = leaf.name.rsplit('.').next().unwrap_or(&leaf.name);
        if leaf.class.structural || is_length(last) {
            continue;
        }
        let mut name = match leaf.scope {
            Scope::Payload => leaf.name.clone(),
            _ => Cow::Owned(format!("context.{}", leaf.name)),
        };
        if taken.contains_key(&*name) {
            name = Cow::Owned(format!("payload.{name}"));
        }
        while taken.contains_key(&*name) {
            name = Cow::Owned(format!("{name}_"));
        }
        let holds = holds(leaf.class);
        let value = format!("{name}.value");
        let is_word = holds == Holds::Word;
        let unit = match leaf.scope {
            Scope::Payload => unit(recording, stream_index, index, &leaf.name),
            _ => String::new(),
        };
        taken.insert(name.to_string(), ());
        found.push(Shown {
            name: name.into_owned(),
            holds,
            unit,
            description: description(leaf.class),
            leaf: leaf_index,
        });
        if is_word && !taken.contains_key(&value) {
            taken.insert(value.clone(), ());
            found.push(Shown {
                name: value,
                holds: number(leaf.class).unwrap_or(Holds::Int),
                unit: String::new(),
                description: "its number".to_owned(),
                leaf: leaf_index,
            });
        }
    }
    found
}

/// Table of one class.
pub struct ClassShape {
    pub name: String,
    pub description: String,
    /// Types of all columns.
    pub holds: Vec<Holds>,
    pub schema: SchemaRef,
    pub variants: Vec<Variant>,
}

/// Arrow field of a column, with its unit and description.
pub fn column(name: &str, holds: &Holds, unit: &str, description: &str) -> ArrowField {
    let mut metadata = HashMap::new();
    for (key, text) in [("unit", unit), ("description", description)] {
        if !text.is_empty() {
            metadata.insert(key.to_owned(), text.to_owned());
        }
    }
    ArrowField::new(name, holds.arrow(), name != "ts").with_metadata(metadata)
}

/// Tables of all classes of some recordings, by name. `taken` are names of other tables.
pub fn classes(recordings: &[Recording], taken: &[&str]) -> Vec<ClassShape> {
    let mut by_name: BTreeMap<String, Vec<(Variant, Vec<Shown>)>> = BTreeMap::new();
    for (recording_index, recording) in recordings.iter().enumerate() {
        let trace = recording.source.trace();
        for (stream_index, stream) in trace.stream_classes.iter().enumerate() {
            for (index, class) in stream.event_classes.iter().enumerate() {
                let mut name = match class.name.as_str() {
                    "" => format!("event:{}", class.id),
                    name => name.to_owned(),
                };
                if taken.contains(&name.as_str()) {
                    name = format!("event:{name}");
                }
                let variant = Variant {
                    recording: recording_index,
                    stream_class: stream_index as u32,
                    class: index as u32,
                    leaves: Vec::new(),
                };
                let shown = shown(recording, (stream_index, stream), (index, class));
                by_name.entry(name).or_default().push((variant, shown));
            }
        }
    }
    by_name.into_iter().map(|(name, found)| joined(name, found, recordings)).collect()
}

/// Classes of the same name as one table.
fn joined(name: String, found: Vec<(Variant, Vec<Shown>)>, recordings: &[Recording]) -> ClassShape {
    let mut columns: Vec<(String, Holds, String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for shown in found.iter().flat_map(|(_, shown)| shown) {
        match places.get(&shown.name) {
            None => {
                places.insert(shown.name.clone(), columns.len());
                let (unit, description) = (shown.unit.clone(), shown.description.clone());
                columns.push((shown.name.clone(), shown.holds.clone(), unit, description));
            }
            Some(&place) if columns[place].1 != shown.holds => {
                columns[place].1 = both(&columns[place].1, &shown.holds);
            }
            Some(_) => {}
        }
    }
    let variants = found
        .iter()
        .map(|(variant, shown)| {
            let mut leaves = vec![None; columns.len()];
            for field in shown {
                leaves[places[&field.name]] = Some(field.leaf);
            }
            Variant { leaves, ..variant.clone() }
        })
        .collect();
    let common = common();
    let mut fields: Vec<ArrowField> =
        common.iter().map(|(name, holds, unit, text)| column(name, holds, unit, text)).collect();
    fields.extend(columns.iter().map(|(name, holds, unit, text)| column(name, holds, unit, text)));
    let said = found.iter().find_map(|(variant, _)| {
        let meanings = &recordings[variant.recording].meanings;
        let event = meanings.get(variant.stream_class as usize, variant.class as usize)?;
        Some(event.description.clone())
    });
    ClassShape {
        description: said
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| format!("the events {name}")),
        name,
        holds: common
            .into_iter()
            .map(|(_, holds, ..)| holds)
            .chain(columns.into_iter().map(|c| c.1))
            .collect(),
        schema: Arc::new(Schema::new(fields)),
        variants,
    }
}

/// Column type that can hold both.
fn both(one: &Holds, other: &Holds) -> Holds {
    let is_number = |holds: &Holds| matches!(holds, Holds::Int | Holds::Real);
    match (one, other) {
        (Holds::Int, Holds::Bool) | (Holds::Bool, Holds::Int) => Holds::Int,
        (one, other) if is_number(one) && is_number(other) => Holds::Real,
        _ => Holds::Text,
    }
}
