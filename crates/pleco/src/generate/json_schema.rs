// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The whole schema as JSON, for tools that do not want to read pleco.

use super::wording::wording;
use crate::json::Json;
use crate::schema::{Annotation, EnumType, Event, Field, FieldType, Schema, Subsystem};

/// Version of the format; it changes when a reader would misread.
const FORMAT_VERSION: i128 = 1;

/// The schema as JSON (spec/schema-language.md §9.4). Cost: O(size of the schema).
pub fn json(schema: &Schema) -> String {
    let events = |subsystem: &Subsystem| {
        Json::Array(
            schema.events[subsystem.events.clone()].iter().map(|e| event(schema, e)).collect(),
        )
    };
    let subsystems = schema.subsystems.iter().map(|subsystem| {
        Json::object([
            ("name", Json::string(&subsystem.name)),
            ("description", Json::string(&subsystem.description)),
            ("id", Json::Integer(subsystem.id.into())),
            ("events", events(subsystem)),
        ])
    });
    let budgets = schema.budgets.iter().map(|budget| {
        Json::object([
            ("span", Json::string(&budget.span)),
            ("statistic", Json::string(budget.statistic.word())),
            ("comparison", Json::string(if budget.is_inclusive { "<=" } else { "<" })),
            ("limit", Json::Decimal(budget.limit_text())),
            ("unit", Json::string(budget.unit.word())),
        ])
    });
    Json::object([
        ("format", Json::string("lateralis-schema")),
        ("version", Json::Integer(FORMAT_VERSION)),
        ("name", Json::string(&schema.name)),
        ("hash", Json::String(format!("{:016x}", schema.hash()))),
        ("event_count", Json::Integer(schema.events.len() as i128)),
        ("enums", Json::Array(schema.enums.iter().map(enumeration).collect())),
        ("subsystems", Json::Array(subsystems.collect())),
        ("budgets", Json::Array(budgets.collect())),
    ])
    .pretty()
}

fn enumeration(enumeration: &EnumType) -> Json {
    let labels = enumeration.labels.iter().map(|(label, value)| {
        Json::object([("label", Json::string(label)), ("value", Json::Integer(*value))])
    });
    let name = enumeration.name.as_ref().map_or(Json::Null, Json::string);
    Json::object([
        ("name", name),
        ("container", Json::string(enumeration.container.name())),
        ("labels", Json::Array(labels.collect())),
    ])
}

fn event(schema: &Schema, event: &Event) -> Json {
    let layout = event.layout();
    let fields = event.fields.iter().zip(&layout.offsets);
    let clauses = event.clauses.iter().map(|clause| {
        let words = wording(clause, event);
        let mut out = Json::object([
            ("kind", Json::string(words.kind)),
            ("subject", Json::string(words.subject)),
        ]);
        if let Some(title) = words.title {
            out = out.with("name", Json::string(title));
        }
        out.with("keys", Json::Array(words.keys.into_iter().map(Json::string).collect()))
    });
    Json::object([
        ("name", Json::string(&event.name)),
        ("description", Json::string(&event.description)),
        ("is_format", Json::Bool(event.is_format)),
        ("index", Json::Integer(event.index.into())),
        ("id", Json::Integer(event.id.into())),
        ("is_legacy", Json::Bool(event.is_legacy)),
        ("payload_bytes", number(layout.payload_bytes)),
        ("fields", Json::Array(fields.map(|(f, offset)| field(schema, f, *offset)).collect())),
        ("clauses", Json::Array(clauses.collect())),
    ])
}

fn number(value: Option<u32>) -> Json {
    value.map_or(Json::Null, |value| Json::Integer(value.into()))
}

fn field(schema: &Schema, field: &Field, offset: Option<u32>) -> Json {
    let annotations = field.annotations.iter().map(|annotation| Json::string(annotation.word()));
    let mut out = Json::object([
        ("name", Json::string(&field.name)),
        ("type", Json::String(schema.type_text(field.ty))),
        ("offset_bytes", number(offset)),
    ]);
    if let Some(index) = field.ty.enum_index() {
        out = out.with("enum", Json::Integer(index as i128));
    }
    if let FieldType::Array { length, .. } = field.ty {
        out = out.with("length", Json::Integer(length.into()));
    }
    out = out.with("annotations", Json::Array(annotations.collect()));
    if field.has(Annotation::Secret) { out.with("is_secret", Json::Bool(true)) } else { out }
}
