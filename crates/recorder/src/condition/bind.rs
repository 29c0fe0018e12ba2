// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Binds tests to the records of a stream class: resolves names to ids by its schemas.

use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Clause, Event, Field, FieldType, Scalar};

use super::read::Wanted;
use super::{Compare, EventName, FieldTest, Literal, Test};
use crate::classes::{ClassTable, StreamClassEntry};
use crate::walk::RecordPlan;

/// Meaning of an event for a test. Fields are indices.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Says {
    Begin {
        key: Vec<usize>,
    },
    End {
        key: Vec<usize>,
    },
    /// The event is this part of a sequence.
    Part(usize),
    /// The event happened.
    Happened,
    Level {
        field: usize,
        key: Vec<usize>,
    },
    /// The event matches if these fields do.
    Matches(Vec<(usize, Compare, Wanted)>),
}

/// An event that a test uses.
#[derive(Debug, Clone)]
pub(super) struct Interest {
    /// Types of its fields, in order.
    pub(super) types: Vec<FieldType>,
    /// Tests that use it, and its meaning for each.
    pub(super) says: Vec<(usize, Says)>,
}

/// The interests of all tests in a stream class.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) plan: RecordPlan,
    /// By event id.
    pub(super) interests: Vec<Option<Interest>>,
}

impl Bound {
    pub(super) fn new(tests: &[(String, Test)], class: &StreamClassEntry) -> Bound {
        let mut plan = RecordPlan::new(false);
        let mut interests = Vec::new();
        for (base_id, entry) in &class.schemas {
            plan.add(*base_id, &entry.schema);
            for event in &entry.schema.events {
                let says: Vec<_> = tests
                    .iter()
                    .enumerate()
                    .flat_map(|(number, (_, test))| {
                        says(test, &entry.schema, event).into_iter().map(move |says| (number, says))
                    })
                    .collect();
                let id = base_id.saturating_add(event.index) as usize;
                if says.is_empty() || id >= plan.id_count() {
                    continue;
                }
                if interests.len() <= id {
                    interests.resize_with(id + 1, || None);
                }
                let types = event.fields.iter().map(|field| field.ty).collect();
                interests[id] = Some(Interest { types, says });
            }
        }
        Bound { plan, interests }
    }
}

/// Whether a test uses an event.
pub(super) fn looks_at(test: &Test, schema: &Schema, event: &Event) -> bool {
    !says(test, schema, event).is_empty()
}

fn is(name: &EventName, schema: &Schema, event: &Event) -> bool {
    name.is(&schema.subsystems[event.subsystem].name, &event.name)
}

fn says(test: &Test, schema: &Schema, event: &Event) -> Vec<Says> {
    let clauses = event.clauses.iter();
    match test {
        Test::Span { name, .. } => clauses
            .filter_map(|clause| match clause {
                Clause::Begin { span, keys } if span == name => {
                    Some(Says::Begin { key: keys.clone() })
                }
                Clause::End { span, keys } if span == name => Some(Says::End { key: keys.clone() }),
                _ => None,
            })
            .collect(),
        Test::Counter { name, .. } => clauses
            .filter_map(|clause| match clause {
                Clause::Counter { field, name: counter, keys } if counter == name => {
                    Some(Says::Level { field: *field, key: keys.clone() })
                }
                _ => None,
            })
            .collect(),
        // Last part first: an event that is several parts must not follow itself.
        Test::Sequence { events, .. } => {
            let parts = events.iter().enumerate().rev();
            parts
                .filter(|(_, name)| is(name, schema, event))
                .map(|(at, _)| Says::Part(at))
                .collect()
        }
        Test::Missing { event: name, .. } | Test::Rate { event: name, .. } => {
            is(name, schema, event).then_some(Says::Happened).into_iter().collect()
        }
        Test::Event { event: name, fields } if is(name, schema, event) => {
            let fields = fields.iter().map(|test| field_test(test, schema, event));
            let fields: Option<Vec<_>> = fields.collect();
            fields.map(Says::Matches).into_iter().collect()
        }
        Test::Event { .. } => Vec::new(),
    }
}

fn field_test(
    test: &FieldTest,
    schema: &Schema,
    event: &Event,
) -> Option<(usize, Compare, Wanted)> {
    let index = event.fields.iter().position(|field| field.name == test.field)?;
    Some((index, test.compare, wanted(&test.value, schema, &event.fields[index])?))
}

/// Converts a literal to a field's type; `None` if the field never has such a value.
fn wanted(value: &Literal, schema: &Schema, field: &Field) -> Option<Wanted> {
    let is_text = field.ty == FieldType::String;
    match value {
        Literal::Text(text) if is_text => Some(Wanted::Text(text.as_bytes().to_owned())),
        Literal::Integer(value) if !is_text => Some(Wanted::Integer(*value)),
        Literal::Real(value) if !is_text => Some(Wanted::Real(*value)),
        Literal::Word(word) => match field.ty {
            FieldType::String => Some(Wanted::Text(word.as_bytes().to_owned())),
            FieldType::Scalar(Scalar::Bool) if word == "true" => Some(Wanted::Integer(1)),
            FieldType::Scalar(Scalar::Bool) if word == "false" => Some(Wanted::Integer(0)),
            FieldType::Scalar(Scalar::Enum { index, .. }) => {
                let labels = &schema.enums.get(index)?.labels;
                let (_, value) = labels.iter().find(|(label, _)| label == word)?;
                Some(Wanted::Integer(*value))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Names in a test that no schema contains, and fields and values that its event lacks: one sentence
/// each, with the most similar existing name.
pub(super) fn unknown(test: &Test, classes: &ClassTable) -> Vec<String> {
    let schemas: Vec<&Schema> = classes
        .classes()
        .iter()
        .flat_map(|class| class.schemas.values().map(|entry| &*entry.schema))
        .collect();
    match test {
        Test::Span { name, .. } => {
            let known = schemas.iter().flat_map(|schema| schema.spans());
            missing("span", name, known.map(|span| span.name.to_owned()))
        }
        Test::Counter { name, .. } => {
            let clauses = schemas.iter().flat_map(|s| &s.events).flat_map(|event| &event.clauses);
            let known = clauses.filter_map(|clause| match clause {
                Clause::Counter { name, .. } => Some(name.clone()),
                _ => None,
            });
            missing("counter", name, known)
        }
        Test::Sequence { events, .. } => {
            events.iter().flat_map(|name| unknown_event(name, &schemas)).collect()
        }
        Test::Missing { event, .. } | Test::Rate { event, .. } => unknown_event(event, &schemas),
        Test::Event { event, fields } => {
            let mut wrong = unknown_event(event, &schemas);
            if wrong.is_empty() {
                wrong = unknown_fields(event, fields, &schemas);
            }
            wrong
        }
    }
}

fn missing(kind: &str, name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = known.collect();
    if known.iter().any(|known| known == name) {
        return Vec::new();
    }
    let near = lateralis_pleco::nearest(name, known.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    vec![format!("there is no {kind} {name}{near}")]
}

fn unknown_event(name: &EventName, schemas: &[&Schema]) -> Vec<String> {
    let events =
        || schemas.iter().flat_map(|schema| schema.events.iter().map(move |e| (schema, e)));
    if events().any(|(schema, event)| is(name, schema, event)) {
        return Vec::new();
    }
    let known = events().map(|(schema, event)| match &name.subsystem {
        Some(_) => schema.full_name(event),
        None => event.name.clone(),
    });
    missing("event", &name.to_string(), known)
}

fn unknown_fields(name: &EventName, fields: &[FieldTest], schemas: &[&Schema]) -> Vec<String> {
    let events = schemas.iter().flat_map(|schema| schema.events.iter().map(move |e| (schema, e)));
    let events: Vec<_> = events.filter(|(schema, event)| is(name, schema, event)).collect();
    let mut wrong = Vec::new();
    for test in fields {
        if events.iter().any(|(schema, event)| field_test(test, schema, event).is_some()) {
            continue;
        }
        let known = events.iter().flat_map(|(_, event)| &event.fields);
        let names = known.map(|field| field.name.clone());
        let mut said = missing(&format!("field of {name} with name"), &test.field, names);
        if said.is_empty() {
            said = vec![format!("the field {} of {name} has no such value", test.field)];
        }
        wrong.append(&mut said);
    }
    wrong
}
