// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of statements, as actionable messages with a position.

use std::collections::HashSet;
use std::fmt;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use tokio::task::JoinError;

use crate::engine::Engine;
use crate::{mistakes, panics};

/// Number of suggestions shown.
const NEAREST: usize = 3;
/// Characters of a line of SQL that are shown around a position.
const SHOWN: usize = 100;

/// A statement that could not be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `what: where: what to do`, without `error:`.
    pub message: String,
    /// Line and column in the text, from 1, and number of characters.
    pub place: Option<(usize, usize, usize)>,
}

impl Fault {
    /// A fault without a position.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None }
    }

    /// Converts an error of the engine for the statement `sql` to our wording.
    pub fn of(error: &DataFusionError, engine: &Engine, sql: &str) -> Self {
        let error = match error {
            DataFusionError::Collection(all) => all.first().unwrap_or(error),
            other => other,
        };
        let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
        let place = span.map(|span| {
            let (start, end) = (span.start, span.end);
            let is_one_line = start.line == end.line && end.column > start.column;
            let width = if is_one_line { end.column - start.column } else { 1 };
            (start.line as usize, start.column as usize, width as usize)
        });
        match error.find_root() {
            DataFusionError::SQL(cause, _) => Self::of_parser(cause),
            DataFusionError::SchemaError(cause, _) => Self { place, ..of_schema(cause, sql) },
            DataFusionError::Plan(words) => Self { place, ..of_plan(words, engine, sql) },
            DataFusionError::ResourcesExhausted(words) => Self::new(format!(
                "out of memory for this query: {}: ask for less, or give more with --memory",
                consumer(words)
            )),
            DataFusionError::ExecutionJoin(cause) if cause.is_panic() => Self::new(panics::take()),
            DataFusionError::External(cause) if is_panic(cause.as_ref()) => {
                Self::new(panics::take())
            }
            DataFusionError::Internal(words) => match mistakes::of_union(words, sql) {
                Some(told) => Self::new(told),
                None => Self::new(panics::failed(first_line(words))),
            },
            other => {
                let words = plain(other);
                let message = mistakes::told(&words, sql, engine).unwrap_or(words);
                Self { place, message }
            }
        }
    }

    fn of_parser(cause: &ParserError) -> Self {
        let words = match cause {
            ParserError::ParserError(words) | ParserError::TokenizerError(words) => words,
            ParserError::RecursionLimitExceeded => {
                return Self::new("nested too deeply: write it with WITH or CREATE VIEW");
            }
        };
        let (words, place) = match words.rsplit_once(" at Line: ") {
            Some((words, place)) => {
                let numbers = place.split_once(", Column: ");
                let numbers = numbers.and_then(|(line, column)| {
                    Some((line.trim().parse().ok()?, column.trim().parse().ok()?, 1))
                });
                (words, numbers)
            }
            None => (words.as_str(), None),
        };
        let at_colon = words.ends_with("found: :") || words.ends_with("found: ::");
        let advice = if at_colon {
            ": names with a colon stand in double quotes: \"subsystem:EVENT\""
        } else {
            ""
        };
        Self { message: format!("no SQL: {words}{advice}"), place }
    }

    /// The message, and the line of the text with a mark below the position.
    pub fn show(&self, text: &str) -> String {
        let mut shown = self.message.clone();
        let Some((line, column, width)) = self.place else {
            return shown;
        };
        let lines = text.lines().count();
        let Some(text) = line.checked_sub(1).and_then(|line| text.lines().nth(line)) else {
            return shown;
        };
        if lines > 1 {
            shown.push_str(&format!(": line {line}"));
        }
        let before = column.saturating_sub(1);
        // For a long line, the part around the position.
        let skipped = before.saturating_sub(SHOWN / 2);
        let part: String = text.chars().skip(skipped).take(SHOWN).collect();
        // Tabs and other control characters would shift the mark.
        let part: String = part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let room = part.chars().count().saturating_sub(before - skipped).max(1);
        let blanks = " ".repeat(before - skipped);
        let marks = "^".repeat(width.clamp(1, room));
        shown.push_str(&format!("\n  {}\n  {blanks}{marks}", part.trim_end()));
        shown
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn of_schema(cause: &SchemaError, sql: &str) -> Fault {
    match cause {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let known = valid_fields.iter().map(|column| column.name.as_str());
            let is_quoted = sql.contains(&format!("\"{}\"", field.name));
            let advice = match nearest(&field.name, known) {
                near if near.is_empty() && is_quoted => {
                    format!("a text stands in single quotes: '{}'", field.name)
                }
                near if near.is_empty() => {
                    let names = valid_fields.iter().map(|column| quoted(&column.name));
                    let mut names: Vec<String> = names.collect();
                    let mut seen = HashSet::new();
                    names.retain(|name| seen.insert(name.clone()));
                    let more = names.len().saturating_sub(12);
                    names.truncate(12);
                    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
                    format!("there are {}{tail}", names.join(", "))
                }
                near => format!("did you mean {}?", list(&near)),
            };
            Fault::new(format!("no such column: {}: {advice}", field.flat_name()))
        }
        SchemaError::AmbiguousReference { field } => Fault::new(format!(
            "ambiguous column: {0}: several tables have it: write TABLE.{0}",
            field.name
        )),
        other => Fault::new(plain(other)),
    }
}

fn of_plan(words: &str, engine: &Engine, sql: &str) -> Fault {
    if let Some(told) = mistakes::told(words, sql, engine) {
        return Fault::new(told);
    }
    let between = |before: &str, after: &str| {
        let rest = words.split_once(before)?.1;
        Some(rest.split_once(after)?.0.to_owned())
    };
    if let Some(name) = between("table '", "' not found") {
        let name = name.rsplit_once("lat.traces.").map_or(name.as_str(), |(_, name)| name);
        let known = engine.table_names();
        let near = nearest(name, known.iter().map(String::as_str));
        let advice = if near.is_empty() {
            "SHOW TABLES lists them all".to_owned()
        } else {
            format!("did you mean {}?", list(&near))
        };
        return Fault::new(format!("no such table: {name}: {advice}"));
    }
    let function = between("Invalid function '", "'").or(between("table function '", "'"));
    if let Some(name) = function {
        let known = engine.function_names();
        let near = nearest(&name, known.iter().map(String::as_str));
        let advice = if near.is_empty() {
            "lat sql --help names ours; the others are DataFusion's".to_owned()
        } else {
            format!("did you mean {}?", list(&near))
        };
        return Fault::new(format!("no such function: {name}: {advice}"));
    }
    Fault::new(words.trim_end())
}

/// Whether an error is a panic of a task.
fn is_panic(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<JoinError>().is_some_and(JoinError::is_panic)
}

/// Message of an error, without the engine's prefixes and stack traces.
fn plain(error: &(impl fmt::Display + ?Sized)) -> String {
    let text = error.to_string();
    let text = text.split("\n\nbacktrace: ").next().unwrap_or("");
    let prefixes =
        ["Execution error: ", "Error during planning: ", "Arrow error: ", "External error: "];
    let mut text = text.trim();
    while let Some(rest) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text.to_owned()
}

/// The operation that needed the memory, in SQL terms.
fn consumer(words: &str) -> &str {
    let known = [
        ("NestedLoopJoin", "a join without equal columns"),
        ("CrossJoin", "a join of all rows with all"),
        ("HashJoin", "a join"),
        ("SortMergeJoin", "a join"),
        ("RecursiveQuery", "a recursion"),
        ("Sort", "sorting"),
        ("TopK", "sorting"),
        ("GroupedHash", "grouping"),
        ("Aggregate", "grouping"),
        ("Window", "a window"),
    ];
    let words = first_line(words);
    let name = words.split("allocation failed for ").nth(1).unwrap_or_default();
    let known = known.iter().find(|(part, _)| name.contains(part));
    known.map_or(words, |(_, told)| told)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_end_matches([':', '.'])
}

/// The most similar names, best first; none if none is similar.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let mut near: Vec<(u32, &str)> = known
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            // The part after the colon or the dot is the one that users remember.
            let short = other.rsplit([':', '.']).next().unwrap_or(&other);
            let alike = strsim::jaro_winkler(&lower, &other)
                .max(strsim::jaro_winkler(&lower, short) - 0.01);
            let contains = lower.len() >= 3 && other.contains(&lower);
            let alike = if contains { alike.max(0.9) } else { alike };
            (alike > 0.8).then_some(((alike * 10_000.0) as u32, candidate))
        })
        .collect();
    near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup_by_key(|(_, name)| *name);
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

/// A name quoted as necessary in a statement.
pub fn quoted(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if first && characters.all(is_plain) && !is_reserved(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Reserved words of SQL, which cannot be used as names.
fn is_reserved(name: &str) -> bool {
    use datafusion::sql::sqlparser::keywords;
    let upper = name.to_ascii_uppercase();
    let Ok(at) = keywords::ALL_KEYWORDS.binary_search(&upper.as_str()) else {
        return false;
    };
    let word = keywords::ALL_KEYWORDS_INDEX[at];
    keywords::RESERVED_FOR_COLUMN_ALIAS.contains(&word)
        || keywords::RESERVED_FOR_TABLE_ALIAS.contains(&word)
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// A message for a terminal; it may show its position on following lines.
pub fn lines(before: &str, message: &str) -> String {
    let mut text = before.to_owned();
    for line in message.lines() {
        text.push_str(&lateralis_model::terminal::shown(line));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_under_the_place() {
        let fault = Fault { message: "no".into(), place: Some((2, 8, 5)) };
        let expected = "no: line 2\n  select wrong\n         ^^^^^";
        assert_eq!(fault.show("\nselect wrong"), expected);
        // Positions outside of the text, and hostile ones, mark nothing.
        for place in [(0, 1, 1), (9, 1, 1)] {
            let fault = Fault { message: "no".into(), place: Some(place) };
            assert_eq!(fault.show("select"), "no");
        }
        let wide = Fault { message: "no".into(), place: Some((1, 500, usize::MAX)) };
        assert!(wide.show(&"x".repeat(600)).len() < 300);
        assert!(wide.show("x").len() < 600);
    }

    #[test]
    fn what_needs_memory_is_told_as_statements_say_it() {
        let words = "Additional allocation failed for NestedLoopJoinLoad[0] with top memory \
                     consumers (across reservations) as:\n  ExternalSorter[0]: 3";
        assert_eq!(consumer(words), "a join without equal columns");
        assert_eq!(consumer("no disk left:\nfor Sort"), "no disk left");
    }

    #[test]
    fn names_that_are_alike_are_found() {
        let known = ["lat:MUTEX_LOCK", "events", "spans", "threads"];
        assert_eq!(nearest("event", known.into_iter()), ["events"]);
        assert_eq!(nearest("mutex_lok", known.into_iter()), ["lat:MUTEX_LOCK"]);
        assert_eq!(nearest("SPANS", known.into_iter()), ["spans"]);
        assert_eq!(nearest("xyz", known.into_iter()), [""; 0]);
    }

    #[test]
    fn names_are_quoted_where_sql_needs_it() {
        assert_eq!(quoted("ts"), "ts");
        assert_eq!(quoted("Ts"), "\"Ts\"");
        assert_eq!(quoted("a:b"), "\"a:b\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("select"), "\"select\"");
        assert_eq!(quoted(""), "\"\"");
    }
}
