// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `activities`, `script`: lists of spans, of schemas and of scripts.

use std::cmp::Reverse;
use std::sync::Arc;

use lateralis_lanes::{Lanes, PointRef, quality_name};
use serde_json::{Value, json};

use super::brushing::Brush;
use super::selecting::{Found, each, is_left, stretch};
use crate::answer::Problem;
use crate::params::Params;
use crate::rows::{Drawn, drawn_as, tell_packed};
use crate::scripts::{Found as Finds, Progress, Ran, Watch};
use crate::session::{Session, lock};
use crate::told;

/// Maximum number of rows in a response.
const ROWS_MAX: u64 = 1000;

/// The list of the most recent request, and a description of that request.
pub type Remembered = Option<(String, Arc<Vec<Found>>)>;

/// Returns a page of the requested list of spans.
pub fn activities(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let from = params.count("from", 0)? as usize;
    let count = params.count("count", 100)?.min(ROWS_MAX) as usize;
    let script = params.get("script").map(|_| params.id("script")).transpose()?;
    let ran = script.map(|id| session.common.scripts.get(id)).transpose()?;
    let finds = ran.as_ref().and_then(|ran| ran.found());
    let of = ran.as_deref().map(|ran| (ran, finds.as_deref()));
    let list = listed(session, params, of)?;
    let of = of.and_then(|(ran, finds)| Some((ran, finds?)));
    let lanes = lanes_of(session, of);
    let shown: Vec<Found> = list.iter().skip(from).take(count).copied().collect();
    let mut rows: Vec<Value> =
        shown.iter().filter_map(|found| row(session, lanes, of, found)).collect();
    if ran.is_none() {
        keys(session, &shown, &mut rows)?;
        return Ok(json!({ "total": list.len(), "rows": rows }));
    }
    let until = finds.and_then(|finds| finds.behind(session));
    Ok(json!({ "total": list.len(), "rows": rows, "until": until }))
}

fn lanes_of<'a>(session: &'a Session, of: Option<(&Ran, &'a Finds)>) -> &'a Lanes {
    of.map_or(&session.lanes, |(_, finds)| &finds.lanes)
}

/// Returns all requested spans, sorted. The list is reused while the page requests pages of the
/// same list.
fn listed(
    session: &Session,
    params: Params<'_>,
    of: Option<(&Ran, Option<&Finds>)>,
) -> Result<Arc<Vec<Found>>, Problem> {
    let stretch = stretch(session, params)?;
    let kind = params.get("kind").map(|_| params.id("kind")).transpose()?;
    let filter = params.count("filter", 0)?;
    let by_duration = params.get("order").and_then(Value::as_str) == Some("duration");
    let descending = params.is("descending");
    let brush = Brush::of(params)?;
    let what = format!(
        "{stretch:?} {kind:?} {filter} {by_duration} {descending} {brush:?} {:?} {:?}",
        params.get("script"),
        of.and_then(|(_, finds)| Some(finds?.serial)),
    );
    if let Some((known, list)) = &*lock(&session.remembered)
        && *known == what
    {
        return Ok(Arc::clone(list));
    }
    let chosen = session.chosen(filter)?;
    let has_none = of.is_some_and(|(_, finds)| finds.is_none());
    let of = of.and_then(|(ran, finds)| Some((ran, finds?)));
    let lanes = lanes_of(session, of);
    let mut list = Vec::new();
    if !has_none {
        let left_of = |(ran, finds): (&Ran, &Finds)| {
            let by = (filter, chosen.as_deref());
            let rows = 0..lanes.meta().rows.len();
            rows.map(|row| ran.left(session, by, finds, row)).collect::<Vec<_>>()
        };
        let left = of.map(left_of);
        let is_left = |row: usize, index: usize| match &left {
            Some(rows) => rows.get(row).and_then(Option::as_ref).is_none_or(|left| {
                left.items().binary_search_by_key(&index, |item| *item as usize).is_ok()
            }),
            None => is_left(lanes, chosen.as_deref(), row, index),
        };
        let keeps = |row: usize, intervals: &lateralis_lanes::Intervals, index: usize| {
            kind.is_none_or(|kind| kind == intervals.name(index)) && is_left(row, index)
        };
        let is_meant = |found: &Found| brush.is_none_or(|brush| brush.has(found.duration));
        each(lanes, stretch, &keeps, &mut |found, _| {
            if is_meant(&found) {
                list.push(found);
            }
        });
    }
    let place = |found: &Found| (found.begin, found.row, found.index);
    match (by_duration, descending) {
        (false, false) => list.sort_unstable_by_key(place),
        (false, true) => list.sort_unstable_by_key(|found| Reverse(place(found))),
        (true, false) => list.sort_unstable_by_key(|found| (found.duration, place(found))),
        (true, true) => list.sort_unstable_by_key(|found| (Reverse(found.duration), place(found))),
    }
    let list = Arc::new(list);
    *lock(&session.remembered) = Some((what, Arc::clone(&list)));
    Ok(list)
}

fn row(
    session: &Session,
    lanes: &Lanes,
    of: Option<(&Ran, &Finds)>,
    found: &Found,
) -> Option<Value> {
    let (told, intervals) = lanes.row(found.row as usize)?;
    let index = found.index as usize;
    let meta = session.lanes.meta();
    let (begin, end) = intervals.ends(index);
    let thread = match of {
        Some((_, finds)) => finds.thread(intervals, index),
        None => intervals.thread(index),
    };
    let thread = meta.threads.get(thread as usize);
    let application = thread.and_then(|thread| meta.applications.get(thread.application as usize));
    let is_open = intervals.is_unfinished(index);
    let key = of.and_then(|(_, finds)| finds.key(intervals, index));
    let rows = session.rows_of(told.lane);
    let own = drawn_as(lanes, found.row as usize);
    let number = rows.iter().find(|(_, drawn)| match (drawn, of) {
        (drawn, None) => Some(*drawn) == own,
        (Drawn::Found(script, row), Some((ran, _))) => {
            matches!(own, Some(Drawn::Intervals(own) | Drawn::Packed(own)) if own == *row)
                && session.common.scripts.get(*script).is_ok_and(|of| std::ptr::eq(&*of, ran))
        }
        _ => false,
    });
    let number = number.map(|(number, _)| *number);
    Some(json!({
        "begin": begin,
        "end": (!is_open).then_some(end),
        "name": lanes.meta().names.get(intervals.name(index) as usize),
        "key": key,
        "lane": told.lane,
        "row": number,
        "thread": thread.map(|thread| thread.name.as_str()),
        "tid": thread.and_then(|thread| thread.tid),
        "pid": thread.and_then(|thread| thread.pid),
        "process": application.map(|application| application.name.as_str()),
        "duration": (!is_open).then_some(end - begin),
        "quality": quality_name(intervals.quality(index)),
    }))
}

/// Adds the keys of spans, which are fields of the events at their begins.
fn keys(session: &Session, shown: &[Found], rows: &mut [Value]) -> Result<(), Problem> {
    let kinds = &session.lanes.meta().span_kinds;
    let mut points: Vec<PointRef> = Vec::new();
    let mut places: Vec<(usize, &[String])> = Vec::new();
    for (place, found) in shown.iter().enumerate() {
        let Some((_, intervals)) = session.lanes.row(found.row as usize) else { continue };
        let kind = kinds.get(intervals.name(found.index as usize) as usize);
        let Some(keys) = kind.map(|kind| kind.keys.as_slice()).filter(|keys| !keys.is_empty())
        else {
            continue;
        };
        if let [Some(point), _] = intervals.events(found.index as usize) {
            points.push(point);
            places.push((place, keys));
        }
    }
    let fields = told::fields(session, &points)?;
    for ((place, keys), fields) in places.into_iter().zip(fields) {
        let fields = fields.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |key: &String| {
            let field = fields.iter().find(|field| field["name"] == key.as_str())?;
            let value = field.get("label").unwrap_or(&field["value"]);
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let texts: Vec<String> = keys.iter().filter_map(text).collect();
        if let Some(row) = rows.get_mut(place).filter(|_| !texts.is_empty()) {
            row["key"] = texts.join(" ").into();
        }
    }
    Ok(())
}

/// Runs a script of the page over all events.
///
/// Errors: if the script is wrong, or `watch` was ended.
pub fn script(session: &Session, params: Params<'_>, watch: &Watch) -> Result<Value, Problem> {
    let (name, text) = (params.text("name")?, params.text("text")?);
    let replaced = params.get("replaces").filter(|id| !id.is_null());
    let replaced = replaced.map(|_| params.id("replaces")).transpose()?;
    let id = session.common.scripts.add(session, (name, text), replaced, watch)?;
    if let Some(replaced) = replaced {
        session.sides.replaced(replaced, &session.common.scripts.all());
    }
    script_told(session, id)
}

/// State of a script that runs over one recording of the session only: its progress, or its
/// results, with the numbers of that recording.
pub fn script_of(session: &Session, side: u32, params: Params<'_>) -> Result<Value, Problem> {
    if params.get("script").is_none() {
        let advice = "send it without `side`, then ask for it by its number";
        return Err(Problem::new("a script is one of all recordings", "script", advice));
    }
    let run = session.sides.script(session, side, params.id("script")?)?;
    match run.progress()? {
        Progress::Running { looked, events } => {
            Ok(json!({ "is_running": true, "looked": looked, "events": events }))
        }
        Progress::Ended(id) => {
            let mut told = script_told(&*session.sides.get(side)?, id)?;
            told["is_running"] = false.into();
            Ok(told)
        }
    }
}

fn script_told(session: &Session, id: u32) -> Result<Value, Problem> {
    let ran = session.common.scripts.get(id)?;
    let found = ran.found();
    let kind = if found.is_some() { "activity" } else { "filter" };
    let (how, why) = ran.how.split_once(": ").unwrap_or((&ran.how, ""));
    let mut rows = Vec::new();
    for (lane, _) in (0u32..).zip(&session.lanes.meta().lanes) {
        for (number, drawn) in session.rows_of(lane) {
            let Drawn::Found(script, row) = drawn else { continue };
            let Some(lanes) = found.as_ref().map(|found| &found.lanes) else { continue };
            if let Some(of) = lanes.meta().rows.get(row).filter(|_| script == id) {
                let (name, depth) = (&of.name, of.depth);
                let mut told = json!({
                    "lane": lane, "row": number, "kind": "spans", "name": name, "depth": depth,
                });
                tell_packed(lanes, row, &mut told);
                rows.push(told);
            }
        }
    }
    let names = found.as_ref().map(|found| found.lanes.meta().names.clone());
    let (has_filter, until) =
        (ran.kept().is_some(), found.as_ref().and_then(|found| found.behind(session)));
    Ok(json!({
        "script": id, "kind": kind, "how": how, "why": why, "count": ran.count(), "rows": rows,
        "names": names, "has_filter": has_filter, "until": until,
    }))
}
