// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clauses of one event: fields exist and have types that suit.

use super::format;
use crate::diagnostic::{Code, Reporter};
use crate::schema::{Clause, Event, FieldType, Scalar};
use crate::suggest::nearest;
use crate::syntax::{ClauseDefinition, ClauseKind, EventDefinition, Name};
use std::collections::HashSet;

pub(super) fn resolve(
    definition: &EventDefinition,
    event: &mut Event,
    reporter: &mut Reporter<'_>,
) {
    let mut seen: HashSet<(ClauseKind, &str)> = HashSet::new();
    for clause in &definition.clauses {
        if reporter.is_full() {
            return;
        }
        let subject = clause.subject.as_ref().map_or("", |name| &name.text);
        let word = clause.kind.word();
        if !seen.insert((clause.kind, subject)) {
            let message = format!("`{word} {subject}` is said twice").replace(" `", "`");
            let draft = reporter.report(Code::RepeatedClause, clause.span, message);
            draft.label("expected once in an event");
            continue;
        }
        if clause.kind == ClauseKind::Format {
            event.is_format = true;
            format::check(definition, event, reporter);
            continue;
        }
        let keys = keys(clause, event, reporter);
        let Some(name) = &clause.subject else { continue };
        let text = name.text.clone();
        let resolved = match clause.kind {
            ClauseKind::Begin => Some(Clause::Begin { span: text, keys }),
            ClauseKind::End => Some(Clause::End { span: text, keys }),
            ClauseKind::Send => Some(Clause::Send { channel: text, keys }),
            ClauseKind::Recv => Some(Clause::Recv { channel: text, keys }),
            ClauseKind::Counter => {
                let title = clause.title.as_ref().map_or(text, |title| title.text.clone());
                field(name, event, "a counter", "a number", is_number, reporter)
                    .map(|field| Clause::Counter { field, name: title, keys })
            }
            ClauseKind::State => {
                let needed = "an enum, integer, bool or string";
                field(name, event, "a state", needed, is_discrete, reporter)
                    .map(|field| Clause::State { field, keys })
            }
            ClauseKind::Format => None,
        };
        event.clauses.extend(resolved);
    }
}

fn keys(clause: &ClauseDefinition, event: &Event, reporter: &mut Reporter<'_>) -> Vec<usize> {
    let mut keys = Vec::new();
    for name in &clause.keys {
        let needed = "an integer, enum, bool or string";
        let Some(index) = field(name, event, "a key", needed, is_discrete, reporter) else {
            continue;
        };
        if keys.contains(&index) {
            let message = format!("the key `{}` is said twice", name.text);
            reporter
                .report(Code::RepeatedClause, name.span, message)
                .label("expected once in a clause");
            continue;
        }
        keys.push(index);
    }
    keys
}

/// The index of a field that a clause names, if it exists and suits.
fn field(
    name: &Name,
    event: &Event,
    role: &str,
    needed: &str,
    suits: fn(FieldType) -> bool,
    reporter: &mut Reporter<'_>,
) -> Option<usize> {
    let Some(index) = event.fields.iter().position(|field| field.name == name.text) else {
        let known: Vec<&str> = event.fields.iter().map(|field| field.name.as_str()).collect();
        let suggestion = nearest(&name.text, known.iter().copied());
        let label = match known.as_slice() {
            [] => "this event has no fields".to_owned(),
            known => format!("expected one of: {}", known.join(", ")),
        };
        let message = format!("event `{}` has no field `{}`", event.name, name.text);
        reporter
            .report(Code::UnknownField, name.span, message)
            .label(label)
            .did_you_mean(suggestion);
        return None;
    };
    if !suits(event.fields[index].ty) {
        let message = format!("field `{}` cannot be {role}", name.text);
        reporter.report(Code::ClauseField, name.span, message).label(format!("expected {needed}"));
        return None;
    }
    Some(index)
}

fn is_number(ty: FieldType) -> bool {
    matches!(ty, FieldType::Scalar(Scalar::Integer(_) | Scalar::F32 | Scalar::F64))
}

fn is_discrete(ty: FieldType) -> bool {
    let is_discrete_scalar =
        matches!(ty, FieldType::Scalar(Scalar::Integer(_) | Scalar::Enum { .. } | Scalar::Bool));
    is_discrete_scalar || ty == FieldType::String
}
