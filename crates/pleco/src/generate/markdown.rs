// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The schema as a page of documentation, in Markdown.

use super::wording::wording;
use crate::schema::{Annotation, Event, Field, Pairing, Schema};
use std::fmt::Write;

/// A page that lists subsystems, events, fields, spans, channels, enums and
/// budgets. Cost: O(size of the schema).
pub fn markdown(schema: &Schema) -> String {
    let mut out = format!("# Schema `{}`\n\n", schema.name);
    let _ = writeln!(
        out,
        "Subsystems: {}. Events: {}. Hash: `{:016x}`.\n",
        schema.subsystems.len(),
        schema.events.len(),
        schema.hash()
    );
    for subsystem in &schema.subsystems {
        let _ = writeln!(out, "## {} (subsystem {})\n", cell(&subsystem.name), subsystem.id);
        if !subsystem.description.is_empty() {
            let _ = writeln!(out, "{}\n", cell(&subsystem.description));
        }
        out.push_str("| event | id | what happened | fields | meaning |\n|---|--:|---|---|---|\n");
        for event in &schema.events[subsystem.events.clone()] {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} |",
                event.name,
                event.id,
                cell(&event.description),
                fields(schema, event),
                meaning(event)
            );
        }
        out.push('\n');
    }
    pairings(&mut out, schema, "Spans", "begins at", "ends at", &schema.spans());
    pairings(&mut out, schema, "Channels", "sent at", "received at", &schema.channels());
    enums(&mut out, schema);
    budgets(&mut out, schema);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn fields(schema: &Schema, event: &Event) -> String {
    if event.fields.is_empty() {
        return "none".to_owned();
    }
    let listed: Vec<String> = event.fields.iter().map(|f| field(schema, f)).collect();
    listed.join("<br>")
}

fn field(schema: &Schema, field: &Field) -> String {
    let mut out = format!("`{}: {}`", field.name, schema.type_text(field.ty));
    for annotation in &field.annotations {
        let mark =
            if *annotation == Annotation::Secret { "**secret**" } else { annotation.meaning() };
        let _ = write!(out, ", {mark}");
    }
    out
}

fn meaning(event: &Event) -> String {
    let mut parts: Vec<String> = event
        .clauses
        .iter()
        .map(|clause| {
            let words = wording(clause, event);
            let mut out = format!("{} `{}`", words.kind, words.subject);
            if let Some(title) = words.title.filter(|title| *title != words.subject) {
                let _ = write!(out, " as `{title}`");
            }
            if !words.keys.is_empty() {
                let _ = write!(out, " by `{}`", words.keys.join("`, `"));
            }
            out
        })
        .collect();
    if event.is_format {
        parts.push("formatted text".to_owned());
    }
    parts.join("<br>")
}

fn pairings(
    out: &mut String,
    schema: &Schema,
    title: &str,
    opening: &str,
    closing: &str,
    found: &[Pairing<'_>],
) {
    if found.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {title}\n\n| name | {opening} | {closing} |\n|---|---|---|");
    let names = |events: &[usize]| {
        let names: Vec<String> = events
            .iter()
            .map(|event| format!("`{}`", schema.full_name(&schema.events[*event])))
            .collect();
        names.join(", ")
    };
    for pairing in found {
        let (from, to) = (names(&pairing.openings), names(&pairing.closings));
        let _ = writeln!(out, "| `{}` | {from} | {to} |", pairing.name);
    }
    out.push('\n');
}

fn enums(out: &mut String, schema: &Schema) {
    let named = schema.enums.iter().filter_map(|e| e.name.as_ref().map(|name| (name, e)));
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        return;
    }
    out.push_str("## Enums\n\n| enum | stored as | labels |\n|---|---|---|\n");
    for (name, enumeration) in named {
        let labels: Vec<String> =
            enumeration.labels.iter().map(|(label, value)| format!("`{label}` {value}")).collect();
        let container = enumeration.container.name();
        let _ = writeln!(out, "| `{name}` | {container} | {} |", labels.join(", "));
    }
    out.push('\n');
}

fn budgets(out: &mut String, schema: &Schema) {
    if schema.budgets.is_empty() {
        return;
    }
    out.push_str("## Budgets\n\n| span | statistic | limit |\n|---|---|---|\n");
    for budget in &schema.budgets {
        let comparison = if budget.is_inclusive { "≤" } else { "<" };
        let _ = writeln!(
            out,
            "| `{}` | {} | {comparison} {} {} |",
            budget.span,
            budget.statistic.word(),
            budget.limit_text(),
            budget.unit.word()
        );
    }
    out.push('\n');
}

/// Text that is valid in a cell: no bars, no markup, no line feeds.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '\\' | '&' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
