// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as a table.

use serde_json::{Value, json};

use super::query::Query;
use super::{Asked, Refusal, styles};
use crate::answer::Problem;

/// Columns by id. Viewers find the last one by its name, and use it to relate lines to the timeline.
const COLUMNS: [(&str, &str, &str); 7] = [
    ("Timestamp", "Seconds, since 1970 where the clock says so", "TIMESTAMP"),
    ("Event", "Class of the event", "STRING"),
    ("CPU", "Processor", "NUMBER"),
    ("Process", "Process, where one is known", "STRING"),
    ("Thread", "Thread, where one is known", "STRING"),
    ("Contents", "Fields and their values", "STRING"),
    ("Timestamp ns", "Nanoseconds, since 1970 where the clock says so", "NUMBER"),
];
/// Number of events per internal request.
const AT_ONCE: u64 = 1000;
/// Maximum number of events that a search examines.
const SEARCHED_MAX: u64 = 200_000;
/// The tag `HIGHLIGHT`, for lines that match the search.
const HIGHLIGHT: u32 = 8;

/// Describes the columns.
pub fn columns() -> Value {
    let told = (0..).zip(COLUMNS).map(|(id, (name, description, kind))| {
        json!({ "id": id, "name": name, "description": description, "type": kind })
    });
    told.collect::<Vec<Value>>().into()
}

fn cell(asked: &Asked<'_>, event: &Value, column: u32) -> String {
    let number = |key: &str| event[key].as_u64();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |name: String, number: Option<u64>| match number {
        Some(number) if name.is_empty() => number.to_string(),
        Some(number) => format!("{name} ({number})"),
        None => name,
    };
    let time = asked.absolute(event["ts"].as_f64().unwrap_or(0.0));
    match column {
        0 => format!("{}.{:09}", time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000)),
        1 => styles::name(asked, "classes", number("class").unwrap_or(u64::MAX) as usize),
        2 => number("cpu").map(|cpu| cpu.to_string()).unwrap_or_default(),
        3 => {
            let application = number("application").map(|id| id as usize);
            // The first application is the unknown one.
            let name = application.filter(|id| *id > 0);
            let name = name.map(|id| styles::name(asked, "applications", id)).unwrap_or_default();
            named(name, number("pid"))
        }
        4 => named(text(&event["thread"]), number("tid")),
        5 => {
            let fields = event["fields"].as_array().map_or(&[][..], Vec::as_slice);
            let pair = |field: &Value| {
                let value = field.get("label").unwrap_or(&field["value"]);
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{}={value}", field["name"].as_str().unwrap_or_default())
            };
            fields.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        6 => time.to_string(),
        _ => String::new(),
    }
}

/// Reads events starting at a number.
fn read(asked: &Asked<'_>, from: u64, count: u64) -> Result<Vec<Value>, Problem> {
    let answer = asked.json("events", json!({ "from": from, "count": count }))?;
    Ok(answer["rows"].as_array().cloned().unwrap_or_default())
}

/// Search expressions by column; an event must match all of them.
struct Wanted(Vec<(u32, regex_lite::Regex)>);

impl Wanted {
    fn of(query: &Query) -> Result<Self, Refusal> {
        let all = query.wanted.iter().map(|(column, text)| {
            // A compiled expression takes memory; no user types longer ones.
            let built = (text.len() <= 1000).then(|| regex_lite::Regex::new(text).ok()).flatten();
            let place = format!("table_search_expressions.{column}");
            let wrong = || Refusal::new(400, "this is no regular expression", place, text);
            Ok((*column, built.ok_or_else(wrong)?))
        });
        Ok(Self(all.collect::<Result<_, Refusal>>()?))
    }

    fn is(&self, asked: &Asked<'_>, event: &Value) -> bool {
        let has =
            |(column, text): &(u32, regex_lite::Regex)| text.is_match(&cell(asked, event, *column));
        !self.0.is_empty() && self.0.iter().all(has)
    }
}

/// Finds the next matching event at or after `from`, or the last one at or before it.
fn search(
    asked: &Asked<'_>,
    wanted: &Wanted,
    (from, total): (u64, u64),
    is_backwards: bool,
) -> Result<Option<u64>, Problem> {
    let mut looked = 0;
    let mut at = from.min(total);
    while looked < SEARCHED_MAX {
        let (begin, end) = if is_backwards {
            ((at + 1).saturating_sub(AT_ONCE), (at + 1).min(total))
        } else {
            (at, at.saturating_add(AT_ONCE).min(total))
        };
        if begin >= end {
            return Ok(None);
        }
        let events = read(asked, begin, end - begin)?;
        let is = |event: &Value| wanted.is(asked, event);
        let found =
            if is_backwards { events.iter().rposition(is) } else { events.iter().position(is) };
        if let Some(index) = found {
            return Ok(Some(begin + index as u64));
        }
        looked += end - begin;
        if is_backwards {
            if begin == 0 {
                return Ok(None);
            }
            at = begin - 1;
        } else {
            at = end;
        }
    }
    Ok(None)
}

/// Lines of the table.
pub fn lines(asked: &Asked<'_>, query: &Query) -> Result<Value, Refusal> {
    let total = asked.json("find", json!({ "t": i64::MAX as f64 }))?["from"].as_u64().unwrap_or(0);
    let wanted = Wanted::of(query)?;
    let ids: Vec<u32> =
        query.columns.clone().filter(|ids| !ids.is_empty()).unwrap_or((0..7).collect());
    let begin = match (query.index, query.time) {
        (Some(index), _) => Some(index),
        (None, Some(time)) => asked.json("find", json!({ "t": time }))?["from"].as_u64(),
        (None, None) => Some(0),
    };
    let begin = begin.unwrap_or(0).min(total);
    let begin = match query.is_backwards {
        Some(is_backwards) if !wanted.0.is_empty() => {
            match search(asked, &wanted, (begin, total), is_backwards)? {
                Some(found) => found,
                // No event matches: no lines.
                None => {
                    return Ok(
                        json!({ "columnIds": ids, "lines": [], "lowIndex": 0, "size": total }),
                    );
                }
            }
        }
        _ => begin,
    };
    let mut lines = Vec::new();
    let end = begin.saturating_add(query.lines).min(total);
    let mut next = begin;
    while next < end {
        let events = read(asked, next, (end - next).min(AT_ONCE))?;
        if events.is_empty() {
            break;
        }
        for (index, event) in (next..).zip(&events) {
            let tags = if wanted.is(asked, event) { HIGHLIGHT } else { 0 };
            let cells =
                ids.iter().map(|id| json!({ "content": cell(asked, event, *id), "tags": tags }));
            let cells: Vec<Value> = cells.collect();
            lines.push(json!({ "index": index, "cells": cells, "tags": tags }));
        }
        next += events.len() as u64;
    }
    Ok(json!({ "columnIds": ids, "lines": lines, "lowIndex": begin, "size": total }))
}
