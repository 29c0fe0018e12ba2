// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names that are different in the schema, but the same in generated code.

use crate::diagnostic::{Code, Reporter};
use crate::names;
use crate::schema::{EnumType, Schema};
use crate::source::Span;
use crate::syntax::{EventDefinition, File, Name};
use std::collections::HashMap;

/// What a generated name was made from.
struct Origin<'a> {
    what: String,
    name: &'a Name,
}

struct Taken<'a> {
    origins: HashMap<String, Origin<'a>>,
}

impl<'a> Taken<'a> {
    /// True if the name was free.
    fn claim(
        &mut self,
        generated: String,
        what: impl Fn() -> String,
        name: &'a Name,
        reporter: &mut Reporter<'_>,
    ) -> bool {
        let Some(first) = self.origins.get(&generated) else {
            self.origins.insert(generated, Origin { what: what(), name });
            return true;
        };
        // Equal names were reported as such; one finding for each definition.
        let is_same = first.name.span == name.span || first.what == what();
        if is_same {
            return false;
        }
        let place = reporter.at(first.name.span);
        let message = format!("{} and {} both become `{generated}`", first.what, what());
        reporter
            .report(Code::NameCollision, name.span, message)
            .label("expected a name that stays different in lower case and without `'`")
            .note(format!("the first one is at {place}"));
        false
    }
}

pub(super) fn check(file: &File, schema: &Schema, reporter: &mut Reporter<'_>) {
    let mut taken = Taken { origins: HashMap::new() };
    let mut modules = Taken { origins: HashMap::new() };
    let definitions = file.subsystems.iter().zip(&schema.subsystems);
    for (definition, subsystem) in definitions {
        let what = || format!("subsystem `{}`", subsystem.name);
        modules.claim(names::lower(&subsystem.name), what, &definition.name, reporter);
        let events = &schema.events[subsystem.events.clone()];
        for (event_definition, event) in definition.events.iter().zip(events) {
            if reporter.is_full() {
                return;
            }
            let full_name = schema.full_name(event);
            let what = || format!("event `{full_name}`");
            let function = names::c_function(schema, event);
            let enabled = format!("{function}_enabled");
            // One finding for an event is enough.
            if taken.claim(function, what, &event_definition.name, reporter) {
                taken.claim(enabled, what, &event_definition.name, reporter);
            }
            let mut fields = Taken { origins: HashMap::new() };
            for field in event_definition.fields.iter().flatten() {
                let what = || format!("field `{}`", field.name.text);
                fields.claim(names::mangle(&field.name.text), what, &field.name, reporter);
            }
        }
    }
    enum_labels(file, schema, reporter);
}

fn enum_labels(file: &File, schema: &Schema, reporter: &mut Reporter<'_>) {
    let mut taken: HashMap<String, (usize, String)> = HashMap::new();
    let mut tags: HashMap<String, usize> = HashMap::new();
    let definitions: Vec<&EventDefinition> =
        file.subsystems.iter().flat_map(|subsystem| &subsystem.events).collect();
    let named: HashMap<&str, Span> = file
        .enums
        .iter()
        .map(|definition| (&*definition.name.text, definition.name.span))
        .collect();
    for (index, enumeration) in schema.enums.iter().enumerate() {
        if reporter.is_full() {
            return;
        }
        let span = match &enumeration.name {
            Some(name) => named.get(name.as_str()).copied().unwrap_or_default(),
            None => inline_place(&definitions, enumeration),
        };
        let tag = names::c_enum_tag(schema, index);
        if tags.insert(tag.clone(), index).is_some() {
            let message = format!("two enums both become `{tag}`");
            reporter
                .report(Code::NameCollision, span, message)
                .label("expected a name that stays different in lower case and without `'`");
            continue;
        }
        for (label, _) in &enumeration.labels {
            let constant = names::c_enum_label(schema, index, label);
            let Some((owner, other)) = taken.get(&constant) else {
                taken.insert(constant, (index, label.clone()));
                continue;
            };
            if *owner == index && other == label {
                continue;
            }
            let message = format!("the labels `{other}` and `{label}` both become `{constant}`");
            reporter
                .report(Code::NameCollision, span, message)
                .label("expected labels that stay different in upper case and without `'`");
        }
    }
}

fn inline_place(definitions: &[&EventDefinition], enumeration: &EnumType) -> Span {
    let (event, field) = enumeration.owner.unwrap_or_default();
    let fields = definitions.get(event).and_then(|definition| definition.fields.as_ref());
    fields.and_then(|fields| fields.get(field)).map_or(Span::default(), |field| field.name.span)
}
