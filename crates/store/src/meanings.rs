// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meaning of events according to the schemas in a trace.

use lateralis_model::role::{Keyed, Role};
use lateralis_model::{EnvValue, EventClass, Trace};
use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Clause, Event as SchemaEvent};

/// Environment entries with this prefix contain the text of a schema (spec/trace-layout.md).
const SCHEMA_PREFIX: &str = "lateralis_schema_";

/// A clause of a schema as a role of the model; `None` if it names a field that does not exist.
pub fn role(event: &SchemaEvent, clause: &Clause) -> Option<Role> {
    let field = |index: &usize| Some(event.fields.get(*index)?.name.clone());
    let keyed = |name: &str, keys: &[usize]| {
        let keys: Option<Vec<String>> = keys.iter().map(field).collect();
        Some(Keyed { name: name.to_owned(), keys: keys?, fans_out: false })
    };
    Some(match clause {
        Clause::Begin { span, keys } => Role::Begin(keyed(span, keys)?),
        Clause::End { span, keys } => Role::End(keyed(span, keys)?),
        Clause::Send { channel, keys } => Role::Send(keyed(channel, keys)?),
        Clause::Recv { channel, keys } => Role::Receive(keyed(channel, keys)?),
        Clause::Counter { field: index, name, keys } => {
            let of = keyed("", keys)?;
            let field = field(index)?;
            // The default name is that of the field, and counters of different events are then separate.
            let name = Some(name.clone()).filter(|name| *name != field);
            Role::Counter { field, name, keys: of.keys }
        }
        Clause::State { field: index, keys } => {
            let of = keyed(&field(index)?, keys)?;
            Role::State { name: of.name.clone(), field: of.name, keys: of.keys }
        }
    })
}

/// Schema and event of each event class.
pub struct Meanings {
    schemas: Vec<Schema>,
    /// By stream class and event class: indices of schema and event.
    classes: Vec<Vec<Option<(usize, usize)>>>,
    /// Schemas in the trace that do not compile.
    pub unreadable: Vec<String>,
}

impl Meanings {
    /// Compiles the schemas in the environment of a trace.
    ///
    /// `apart` contains for each origin of the trace ([`Trace::origins`]) its timeline; if it is not the
    /// first, spans and channels of the origin carry its name, which keeps them separate.
    pub fn of(trace: &Trace, apart: &[Option<String>]) -> Self {
        let mut schemas = Vec::new();
        let mut lines: Vec<Option<&str>> = Vec::new();
        let mut unreadable = Vec::new();
        let line_of = |origin: usize| apart.get(origin).and_then(Option::as_deref);
        let environments: Vec<_> = if apart.iter().all(Option::is_none) {
            vec![(None, &trace.environment)]
        } else {
            let origins = trace.origins.iter().enumerate();
            origins.map(|(index, origin)| (line_of(index), &origin.environment)).collect()
        };
        for (line, environment) in environments {
            for (name, value) in environment {
                let (Some(_), EnvValue::Text(text)) = (name.strip_prefix(SCHEMA_PREFIX), value)
                else {
                    continue;
                };
                match lateralis_pleco::compile(name, text.as_bytes()).schema {
                    Some(mut schema) => {
                        line.into_iter().for_each(|line| carry(&mut schema, line));
                        schemas.push(schema);
                        lines.push(line);
                    }
                    None => unreadable.push(name.clone()),
                }
            }
        }
        let find = |line: Option<&str>, class: &EventClass| {
            schemas.iter().enumerate().filter(|(index, _)| lines[*index] == line).find_map(
                |(index, schema)| {
                    let is_it = |event: &SchemaEvent| {
                        schema.full_name(event) == class.name && same_fields(event, class)
                    };
                    Some((index, schema.events.iter().position(is_it)?))
                },
            )
        };
        let classes = trace
            .stream_classes
            .iter()
            .enumerate()
            .map(|(index, stream)| {
                let is_before =
                    |origin: &lateralis_model::Origin| origin.first_stream_class as usize <= index;
                let line =
                    trace.origins.partition_point(is_before).checked_sub(1).and_then(line_of);
                stream.event_classes.iter().map(|class| find(line, class)).collect()
            })
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

/// Adds the name of a timeline to the spans and channels of a schema.
fn carry(schema: &mut Schema, line: &str) {
    let clauses = schema.events.iter_mut().flat_map(|event| &mut event.clauses);
    let of_clauses = clauses.filter_map(|clause| match clause {
        Clause::Begin { span, .. } | Clause::End { span, .. } => Some(span),
        Clause::Send { channel, .. } | Clause::Recv { channel, .. } => Some(channel),
        Clause::Counter { .. } | Clause::State { .. } => None,
    });
    let of_budgets = schema.budgets.iter_mut().map(|budget| &mut budget.span);
    for name in of_clauses.chain(of_budgets) {
        name.push_str(&format!(" ({line})"));
    }
}

/// Two versions of a schema may be in one trace: the fields distinguish them.
fn same_fields(event: &SchemaEvent, class: &EventClass) -> bool {
    let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
    let mut shown = members.iter().filter(|member| !is_length(&member.name));
    event.fields.iter().all(|field| {
        shown.next().is_some_and(|member| {
            // Names that are not identifiers are mangled.
            member.name == field.name || !field.name.is_ascii()
        })
    }) && shown.next().is_none()
}

/// Whether a field only contains the length of the sequence after it.
pub fn is_length(name: &str) -> bool {
    name.starts_with('_') && name.ends_with("_length")
}
