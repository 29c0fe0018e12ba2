// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What changed between two versions of a schema, and whether readers, scripts
//! and programs made for the old one still understand the new one.

use crate::canonical::clause_text;
use crate::schema::{EnumType, Event, Field, FieldType, Scalar, Schema, Subsystem};
use crate::source::Place;
use std::collections::HashMap;
use std::fmt;

/// What a change means for those who know the old version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// They would misread or miss events.
    Incompatible,
    /// They read the same, and conclude something else.
    Note,
    /// They do not notice.
    Compatible,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::Incompatible => "incompatible",
            Effect::Note => "note",
            Effect::Compatible => "compatible",
        })
    }
}

/// Which of the two files a place is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// What was removed is only there.
    Old,
    /// Everything else is shown there.
    New,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it means.
    pub effect: Effect,
    /// What it is, one sentence without a full stop.
    pub message: String,
    /// Which file [`place`](Change::place) is in.
    pub version: Version,
    /// Where it is.
    pub place: Place,
}

/// All differences, in the order of the new schema, then what was removed.
/// Empty means: the canonical texts are equal, but for the schema's name.
/// Cost: O(size of both schemas).
pub fn check(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut comparison = Comparison { old, new, changes: Vec::new() };
    comparison.subsystems();
    comparison.budgets();
    comparison.changes
}

struct Comparison<'a> {
    old: &'a Schema,
    new: &'a Schema,
    changes: Vec<Change>,
}

impl Comparison<'_> {
    fn add(&mut self, effect: Effect, place: Place, message: String) {
        self.changes.push(Change { effect, message, version: Version::New, place });
    }

    fn removed(&mut self, place: Place, message: String) {
        let effect = Effect::Incompatible;
        self.changes.push(Change { effect, message, version: Version::Old, place });
    }

    fn subsystems(&mut self) {
        let (old, new) = (self.old, self.new);
        if old.name != new.name {
            let message = format!("the schema `{}` is now named `{}`", old.name, new.name);
            self.add(Effect::Note, Place::default(), message);
        }
        let before: HashMap<&str, &Subsystem> =
            old.subsystems.iter().map(|subsystem| (subsystem.name.as_str(), subsystem)).collect();
        let old_ids: HashMap<u16, &str> = old
            .subsystems
            .iter()
            .map(|subsystem| (subsystem.id, subsystem.name.as_str()))
            .collect();
        for subsystem in &new.subsystems {
            let name = &subsystem.name;
            let Some(previous) = before.get(name.as_str()) else {
                match old_ids.get(&subsystem.id) {
                    Some(owner) => self.add(
                        Effect::Incompatible,
                        subsystem.place,
                        format!("new subsystem `{name}` has the id {} of `{owner}`", subsystem.id),
                    ),
                    None => self.add(
                        Effect::Compatible,
                        subsystem.place,
                        format!("new subsystem `{name}`"),
                    ),
                }
                continue;
            };
            if previous.id != subsystem.id {
                let (from, to) = (previous.id, subsystem.id);
                let message = format!("the id of subsystem `{name}` moved from {from} to {to}");
                self.add(Effect::Incompatible, subsystem.place, message);
            }
            if previous.description != subsystem.description {
                let message = format!("the description of subsystem `{name}` changed");
                self.add(Effect::Compatible, subsystem.place, message);
            }
            self.events(previous, subsystem);
        }
        let now: HashMap<&str, ()> =
            new.subsystems.iter().map(|subsystem| (subsystem.name.as_str(), ())).collect();
        for subsystem in &old.subsystems {
            if !now.contains_key(subsystem.name.as_str()) {
                let message = format!("subsystem `{}` was removed", subsystem.name);
                self.removed(subsystem.place, message);
            }
        }
    }

    fn events(&mut self, old: &Subsystem, new: &Subsystem) {
        let old_events = &self.old.events[old.events.clone()];
        let new_events = &self.new.events[new.events.clone()];
        let before: HashMap<&str, &Event> =
            old_events.iter().map(|event| (event.name.as_str(), event)).collect();
        let old_ids: HashMap<u16, &str> =
            old_events.iter().map(|event| (event.id, event.name.as_str())).collect();
        for event in new_events {
            let name = self.new.full_name(event);
            let Some(previous) = before.get(event.name.as_str()) else {
                match old_ids.get(&event.id) {
                    Some(owner) => self.add(
                        Effect::Incompatible,
                        event.place,
                        format!("new event `{name}` has the id {} of `{owner}`", event.id),
                    ),
                    None => {
                        self.add(Effect::Compatible, event.place, format!("new event `{name}`"));
                    }
                }
                continue;
            };
            self.event(previous, event, &name);
        }
        let now: HashMap<&str, ()> =
            new_events.iter().map(|event| (event.name.as_str(), ())).collect();
        for event in old_events {
            if !now.contains_key(event.name.as_str()) {
                let message = format!("event `{}` was removed", self.old.full_name(event));
                self.removed(event.place, message);
            }
        }
    }

    fn event(&mut self, old: &Event, new: &Event, name: &str) {
        if old.id != new.id {
            let message = format!("the id of event `{name}` moved from {} to {}", old.id, new.id);
            self.add(Effect::Incompatible, new.place, message);
        }
        if old.description != new.description {
            let is_format = old.is_format || new.is_format;
            let effect = if is_format { Effect::Note } else { Effect::Compatible };
            self.add(effect, new.place, format!("the description of event `{name}` changed"));
        }
        if old.is_format != new.is_format {
            let now = if new.is_format { "is now" } else { "is no longer" };
            let message = format!("the description of event `{name}` {now} a format");
            self.add(Effect::Note, new.place, message);
        }
        self.fields(old, new, name);
        let texts = |event: &Event| -> Vec<String> {
            event.clauses.iter().map(|clause| clause_text(clause, event)).collect()
        };
        let (before, after) = (texts(old), texts(new));
        for text in after.iter().filter(|text| !before.contains(text)) {
            self.add(Effect::Note, new.place, format!("event `{name}` now has `{text}`"));
        }
        for text in before.iter().filter(|text| !after.contains(text)) {
            self.add(Effect::Note, new.place, format!("event `{name}` no longer has `{text}`"));
        }
    }

    fn fields(&mut self, old: &Event, new: &Event, name: &str) {
        for (index, field) in new.fields.iter().enumerate() {
            let Some(at) = old.fields.iter().position(|other| other.name == field.name) else {
                let message = format!("event `{name}` has a new field `{}`", field.name);
                self.add(Effect::Incompatible, field.place, message);
                continue;
            };
            if at != index {
                let message = format!(
                    "field `{}` of event `{name}` moved from place {} to {}",
                    field.name,
                    at + 1,
                    index + 1
                );
                self.add(Effect::Incompatible, field.place, message);
            }
            self.field(&old.fields[at], field, name);
        }
        for field in &old.fields {
            if !new.fields.iter().any(|other| other.name == field.name) {
                let message = format!("field `{}` of event `{name}` was removed", field.name);
                self.removed(field.place, message);
            }
        }
    }

    fn field(&mut self, old: &Field, new: &Field, name: &str) {
        let field = &new.name;
        let is_same_shape = shape(old.ty) == shape(new.ty);
        if !is_same_shape {
            let (from, to) = (self.old.type_text(old.ty), self.new.type_text(new.ty));
            let message = format!("field `{field}` of event `{name}` was {from} and is {to}");
            self.add(Effect::Incompatible, new.place, message);
        } else if let (Some(before), Some(after)) = (old.ty.enum_index(), new.ty.enum_index()) {
            let (before, after) = (&self.old.enums[before], &self.new.enums[after]);
            self.labels(before, after, new.place, &format!("field `{field}` of event `{name}`"));
        }
        if old.annotations != new.annotations {
            let message = format!("the annotations of field `{field}` of event `{name}` changed");
            self.add(Effect::Compatible, new.place, message);
        }
    }

    fn labels(&mut self, old: &EnumType, new: &EnumType, place: Place, owner: &str) {
        let after: HashMap<&str, i128> =
            new.labels.iter().map(|(label, value)| (label.as_str(), *value)).collect();
        let before: HashMap<&str, i128> =
            old.labels.iter().map(|(label, value)| (label.as_str(), *value)).collect();
        for (label, value) in &old.labels {
            match after.get(label.as_str()) {
                None => {
                    let message = format!("{owner} no longer has the label `{label}`");
                    self.add(Effect::Incompatible, place, message);
                }
                Some(now) if now != value => {
                    let message = format!("{owner}: the value of `{label}` was {value}, is {now}");
                    self.add(Effect::Incompatible, place, message);
                }
                Some(_) => {}
            }
        }
        for (label, _) in new.labels.iter().filter(|(label, _)| !before.contains_key(&**label)) {
            let message = format!("{owner} has a new label `{label}`");
            self.add(Effect::Compatible, place, message);
        }
    }

    fn budgets(&mut self) {
        let (old, new) = (self.old, self.new);
        for budget in new.budgets.iter().filter(|budget| !old.budgets.contains(budget)) {
            let (span, statistic) = (&budget.span, budget.statistic.word());
            let message = format!("the budget for {statistic} of span `{span}` is new or changed");
            self.add(Effect::Note, budget.place, message);
        }
        for budget in &old.budgets {
            let is_there = new
                .budgets
                .iter()
                .any(|other| other.span == budget.span && other.statistic == budget.statistic);
            if !is_there {
                let (span, statistic) = (&budget.span, budget.statistic.word());
                self.changes.push(Change {
                    effect: Effect::Note,
                    message: format!("the budget for {statistic} of span `{span}` was removed"),
                    version: Version::Old,
                    place: budget.place,
                });
            }
        }
    }
}

/// A type without the number of its enum, which is only an index.
fn shape(ty: FieldType) -> FieldType {
    let plain = |scalar: Scalar| match scalar {
        Scalar::Enum { container, .. } => Scalar::Enum { index: 0, container },
        other => other,
    };
    match ty {
        FieldType::Scalar(scalar) => FieldType::Scalar(plain(scalar)),
        FieldType::Array { element, length } => {
            FieldType::Array { element: plain(element), length }
        }
        FieldType::Sequence(element) => FieldType::Sequence(plain(element)),
        other => other,
    }
}
