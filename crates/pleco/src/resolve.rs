// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the syntax tree to a checked schema: ids, types, clauses, names.
//!
//! Every check continues after an error, so that one run reports as many as possible; only a tree
//! without errors becomes a [`Schema`].

mod clauses;
mod format;
mod names;
mod pairs;
mod types;

use crate::canonical::Canonical;
use crate::diagnostic::{Code, Reporter};
use crate::schema::{Budget, EVENTS_MAX, EnumType, Event, Schema, Subsystem};
use crate::source::Span;
use crate::suggest::nearest;
use crate::syntax::{BudgetDefinition, EventDefinition, File, Name, Number};
use std::collections::{HashMap, HashSet};

/// The schema of `file`, or `None` if anything was wrong with it.
pub(crate) fn resolve(
    file: &File,
    default_name: &str,
    reporter: &mut Reporter<'_>,
) -> Option<Schema> {
    let name = file.schema_name.as_ref().map_or(default_name, |name| &name.text).to_owned();
    let mut resolver = Resolver {
        reporter,
        enums: Vec::new(),
        enum_names: HashMap::new(),
        uses: Vec::new(),
        inline_enums: Vec::new(),
    };
    resolver.named_enums(&file.enums);
    let mut schema = Schema {
        name,
        enums: Vec::new(),
        subsystems: Vec::new(),
        events: Vec::new(),
        budgets: Vec::new(),
        canonical: Canonical::default(),
    };
    resolver.subsystems(file, &mut schema);
    resolver.unused_enums(&file.enums);
    schema.enums = std::mem::take(&mut resolver.enums);
    let inline = std::mem::take(&mut resolver.inline_enums);
    types::append_inline_enums(&mut schema, inline);
    pairs::check(file, &schema, reporter);
    budgets(&file.budgets, &mut schema, reporter);
    names::check(file, &schema, reporter);
    if file.subsystems.is_empty() && !reporter.has_errors() {
        let end = reporter.source.text.len() as u32;
        reporter
            .report(Code::NoSubsystem, Span { start: end, end }, "there is no subsystem")
            .label("expected `subsystem NAME { … };`");
    }
    (!reporter.has_errors()).then_some(schema)
}

struct Resolver<'r, 's> {
    reporter: &'r mut Reporter<'s>,
    enums: Vec<EnumType>,
    /// Index and place of the named enums.
    enum_names: HashMap<String, (usize, Span)>,
    /// Whether the named enums are used.
    uses: Vec<bool>,
    /// Enums inside fields; they follow the named ones at the end.
    inline_enums: Vec<EnumType>,
}

/// Finds the second of two definitions with one name.
#[derive(Default)]
struct Seen {
    places: HashMap<String, Span>,
}

impl Seen {
    /// Reports `name` if it was seen; remembers it if not.
    fn is_new(&mut self, name: &Name, code: Code, what: &str, reporter: &mut Reporter<'_>) -> bool {
        if let Some(first) = self.places.get(&name.text) {
            let first = reporter.at(*first);
            let message = format!("there are two {what} named `{}`", name.text);
            reporter
                .report(code, name.span, message)
                .label("expected another name")
                .note(format!("the first one is at {first}"));
            return false;
        }
        self.places.insert(name.text.clone(), name.span);
        true
    }
}

impl Resolver<'_, '_> {
    fn subsystems(&mut self, file: &File, schema: &mut Schema) {
        let mut names = Seen::default();
        let mut ids = IdCounter::new(Code::DuplicateSubsystemId, "subsystems");
        for definition in &file.subsystems {
            if self.reporter.is_full() {
                return;
            }
            let name = &definition.name;
            names.is_new(name, Code::DuplicateSubsystem, "subsystems", self.reporter);
            let id = ids.next(definition.id, name.span, self.reporter);
            let first = schema.events.len();
            self.events(&definition.events, schema);
            schema.subsystems.push(Subsystem {
                name: name.text.clone(),
                description: text(&definition.description),
                id,
                events: first..schema.events.len(),
                place: self.reporter.source.place(name.span.start),
            });
        }
        if schema.events.len() > EVENTS_MAX {
            let message = format!("the schema has {} events", schema.events.len());
            self.reporter
                .report(Code::TooManyEvents, Span::default(), message)
                .label(format!("expected at most {EVENTS_MAX}"))
                .help("split it into several schemas");
        }
    }

    fn events(&mut self, definitions: &[EventDefinition], schema: &mut Schema) {
        let subsystem = schema.subsystems.len();
        let mut names = Seen::default();
        let mut ids = IdCounter::new(Code::DuplicateEventId, "events of this subsystem");
        for definition in definitions {
            if self.reporter.is_full() {
                return;
            }
            let name = &definition.name;
            names.is_new(name, Code::DuplicateEvent, "events", self.reporter);
            let id = ids.next(definition.id, name.span, self.reporter);
            let fields = self.fields(definition);
            let mut event = Event {
                index: schema.events.len() as u32,
                subsystem,
                id,
                name: name.text.clone(),
                description: text(&definition.description),
                is_legacy: definition.fields.is_none(),
                fields,
                clauses: Vec::new(),
                is_format: false,
                place: self.reporter.source.place(name.span.start),
            };
            clauses::resolve(definition, &mut event, self.reporter);
            self.record_size(&event, name);
            schema.events.push(event);
        }
    }
}

fn text(description: &Option<crate::syntax::Text>) -> String {
    description.as_ref().map_or_else(String::new, |text| text.value.clone())
}

/// Gives out ids: the position, or what is written, and onwards from there.
struct IdCounter {
    next: u32,
    given: HashMap<u32, Span>,
    duplicate: Code,
    what: &'static str,
}

impl IdCounter {
    fn new(duplicate: Code, what: &'static str) -> IdCounter {
        IdCounter { next: 0, given: HashMap::new(), duplicate, what }
    }

    fn next(&mut self, explicit: Option<Number>, name: Span, reporter: &mut Reporter<'_>) -> u16 {
        let (value, span) = match explicit {
            Some(number) => (number.value, number.span),
            None => (i128::from(self.next), name),
        };
        let Ok(id) = u16::try_from(value) else {
            let draft = reporter
                .report(Code::IdOutOfRange, span, format!("the id would be {value}"))
                .label("expected 0 to 65535");
            if explicit.is_none() {
                draft.note("an id continues from the one in front of it");
            }
            return 0;
        };
        self.next = u32::from(id) + 1;
        if let Some(first) = self.given.get(&u32::from(id)) {
            let first = reporter.at(*first);
            let message = format!("two {} have the id {id}", self.what);
            reporter
                .report(self.duplicate, span, message)
                .label("expected an id that is not taken")
                .note(format!("the first one is at {first}"));
        } else {
            self.given.insert(u32::from(id), span);
        }
        id
    }
}

fn budgets(definitions: &[BudgetDefinition], schema: &mut Schema, reporter: &mut Reporter<'_>) {
    let mut seen: HashMap<(String, &str), Span> = HashMap::new();
    let mut found = Vec::new();
    let spans = schema.spans();
    let span_names: HashSet<&str> = spans.iter().map(|span| span.name).collect();
    let channels = schema.channels();
    for definition in definitions {
        if reporter.is_full() {
            return;
        }
        let name = &definition.span_name;
        if !span_names.contains(name.text.as_str()) {
            let suggestion = nearest(&name.text, spans.iter().map(|span| span.name));
            let is_channel = channels.iter().any(|channel| channel.name == name.text);
            let draft = reporter
                .report(Code::UnknownSpan, name.span, format!("no span is named `{}`", name.text))
                .label("expected a span that an event begins")
                .did_you_mean(suggestion);
            if is_channel {
                draft.note("there is a channel of this name; budgets are for spans");
            }
            continue;
        }
        let key = (name.text.clone(), definition.statistic.word());
        if let Some(first) = seen.insert(key, definition.span) {
            let first = reporter.at(first);
            let statistic = definition.statistic.word();
            let message = format!("a second budget for {statistic} of `{}`", name.text);
            reporter
                .report(Code::DuplicateBudget, definition.span, message)
                .note(format!("the first one is at {first}"));
        }
        let Some(limit_thousandths) = thousandths(&definition.limit.text) else {
            let message = format!("the limit `{}` cannot be represented", definition.limit.text);
            reporter
                .report(Code::BudgetNumber, definition.limit.span, message)
                .label("expected a decimal number with at most three decimals")
                .help("take a smaller or larger unit");
            continue;
        };
        found.push(Budget {
            span: name.text.clone(),
            statistic: definition.statistic,
            is_inclusive: definition.is_inclusive,
            limit_thousandths,
            unit: definition.unit,
            place: reporter.source.place(definition.span.start),
        });
    }
    schema.budgets = found;
}

/// `"1.5"` is 1500.
fn thousandths(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (whole, decimals) = digits.split_once('.').unwrap_or((&digits, ""));
    if decimals.len() > 3 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let decimals: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(decimals)
}
