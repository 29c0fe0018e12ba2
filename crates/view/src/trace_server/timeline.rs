// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes as a time graph.

use std::collections::{BTreeMap, BTreeSet};

use lateralis_lanes::Scale;
use lateralis_lanes::pixels::SEVERAL;
use serde_json::{Map, Value, json};

use super::places::{Place, rows};
use super::query::Query;
use super::{Asked, Columns, Refusal, styles};
use crate::answer::Problem;

/// Pixels per call of `view`, which returns at most 4 million.
const PIXELS_AT_ONCE: u64 = 1 << 21;

/// Maximum number of states in a response: each takes a kilobyte while it is built. Pixels are
/// widened to stay below it.
const STATES_MAX: usize = 200_000;

/// Categories of annotations.
const CATEGORIES: [&str; 3] = ["Lost events", "Damage", "Notes"];

/// All entries: that of a lane also shows its first row, and the other rows are its children.
pub fn tree(asked: &Asked<'_>) -> Value {
    let mut entries = Vec::new();
    let (begin, end) = (asked.begin(), asked.end());
    for (id, lane) in (0u32..).zip(asked.list("lanes")) {
        let parent = lane["parent"].as_u64().and_then(|parent| u32::try_from(parent).ok());
        let parent = parent.map_or(-1, |lane| i64::from(Place { lane, row: 0 }.entry()));
        let own = Place { lane: id, row: 0 }.entry();
        let mut metadata = Map::new();
        for key in ["cpu", "pid", "tid"] {
            if let Some(number) = lane[key].as_u64() {
                metadata.insert(key.to_owned(), json!([number]));
            }
        }
        let has_first = rows(lane).any(|(row, ..)| row == 0);
        entries.push(json!({
            "id": own, "parentId": parent, "labels": [lane["name"]], "start": begin, "end": end,
            "hasData": has_first, "metadata": metadata,
        }));
        for (row, kind, told) in rows(lane).filter(|(row, ..)| *row > 0) {
            entries.push(json!({
                "id": Place { lane: id, row }.entry(), "parentId": own,
                "labels": [row_name(kind, told)], "start": begin, "end": end, "hasData": true,
                "metadata": {},
            }));
        }
    }
    json!({ "entries": entries, "headers": [{ "name": "Name", "tooltip": "" }], "autoExpandLevel": -1 })
}

fn row_name(kind: &str, row: &Value) -> String {
    match (kind, row["name"].as_str(), row["depth"].as_u64().unwrap_or(0)) {
        ("running", ..) => "who ran".to_owned(),
        ("seen", ..) => "who was seen here".to_owned(),
        ("thread_states", ..) => "thread state".to_owned(),
        ("spans", None, depth) => format!("spans, depth {depth}"),
        ("spans", Some(name), 0) => name.to_owned(),
        ("spans", Some(name), depth) => format!("{name}, depth {depth}"),
        ("samples", Some(name), _) => format!("samples of {name}"),
        ("stacks", Some(name), depth) => format!("stacks of {name}, depth {depth}"),
        ("calls", _, depth) => format!("calls, depth {depth}"),
        (_, Some(name), _) => name.to_owned(),
        (kind, None, _) => kind.to_owned(),
    }
}

/// Rows requested by a query, by lane; all if it names none.
fn wanted(asked: &Asked<'_>, query: &Query) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut wanted: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let lanes = asked.list("lanes");
    let is_wanted: Option<BTreeSet<u32>> =
        query.items.as_ref().map(|items| items.iter().copied().collect());
    for (id, lane) in (0u32..).zip(lanes) {
        for (row, ..) in rows(lane) {
            let entry = Place { lane: id, row }.entry();
            if is_wanted.as_ref().is_none_or(|wanted| wanted.contains(&entry)) {
                wanted.entry(id).or_default().insert(row);
            }
        }
    }
    wanted
}

/// States of each row.
pub fn states(asked: &Asked<'_>, query: &Query) -> Result<Value, Problem> {
    let wanted = wanted(asked, query);
    let count = wanted.values().map(BTreeSet::len).sum::<usize>().max(1);
    let px = query.count.min(u32::try_from(STATES_MAX / count).unwrap_or(u32::MAX)).max(1);
    let scale = Scale::new(query.begin, query.end.saturating_add(1), px);
    let mut told: Vec<Value> = Vec::new();
    let mut some: Vec<u32> = Vec::new();
    let mut pixels = 0;
    let mut lanes = wanted.keys().copied().peekable();
    while let Some(lane) = lanes.next() {
        some.push(lane);
        let count = asked.open["lanes"][lane as usize]["rows"].as_array().map_or(0, Vec::len);
        pixels += count as u64 * u64::from(px);
        if pixels >= PIXELS_AT_ONCE || lanes.peek().is_none() {
            let params = json!({ "lanes": some, "t0": scale.t0, "t1": scale.t1, "px": px });
            let (result, columns) = asked.columns("view", params)?;
            rows_of(asked, &scale, &wanted, (&result, &columns), &mut told);
            some.clear();
            pixels = 0;
        }
    }
    Ok(json!({ "rows": told }))
}

/// How items of a row are named.
struct Drawn<'a> {
    list: &'static str,
    is_events: bool,
    /// Name of the script that found the spans of the row; its spans have no other name.
    script: Option<&'a str>,
    /// Names of functions, for calls: no other list contains all of them.
    functions: Option<&'a Value>,
}

impl Drawn<'_> {
    fn name(&self, asked: &Asked<'_>, id: usize) -> String {
        let all = self.functions.and_then(Value::as_array).into_iter().flatten();
        let mut of = all.filter(|pair| pair[0].as_u64() == Some(id as u64));
        match (self.script, of.next()) {
            (Some(script), _) => script.to_owned(),
            (None, Some(pair)) => pair[1].as_str().unwrap_or_default().to_owned(),
            (None, None) => styles::name(asked, self.list, id),
        }
    }
}

fn rows_of(
    asked: &Asked<'_>,
    scale: &Scale,
    wanted: &BTreeMap<u32, BTreeSet<u32>>,
    (result, columns): (&Value, &Columns),
    told: &mut Vec<Value>,
) {
    // Items by row of the response.
    let mut items: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, row) in columns.all("item_row").enumerate() {
        items.entry(row as usize).or_default().push(index);
    }
    let rows = result["rows"].as_array().map_or(&[][..], Vec::as_slice);
    for (place, row) in rows.iter().enumerate() {
        let lane = row["lane"].as_u64().unwrap_or(0) as u32;
        let number = row["row"].as_u64().unwrap_or(0) as u32;
        if !wanted.get(&lane).is_some_and(|rows| rows.contains(&number)) {
            continue;
        }
        let meaning = &asked.open["lanes"][lane as usize]["rows"][number as usize];
        let kind = meaning["kind"].as_str().unwrap_or_default();
        let script = meaning.get("script").and(meaning["name"].as_str());
        let (list, is_events) = (styles::list_of(kind), kind == "events");
        let functions = (kind == "calls").then(|| &result["functions"]);
        let drawn = Drawn { list, is_events, script, functions };
        let states = if row["exact"] == true {
            let none = Vec::new();
            let of_row = items.get(&place).unwrap_or(&none);
            of_row.iter().map(|index| exact(asked, &drawn, columns, *index)).collect()
        } else {
            runs(asked, scale, &drawn, columns, place * scale.px as usize)
        };
        told.push(json!({ "entryId": Place { lane, row: number }.entry(), "states": states }));
    }
}

/// State of a single item.
fn exact(asked: &Asked<'_>, drawn: &Drawn<'_>, columns: &Columns, index: usize) -> Value {
    let id = columns.at("item_name", index) as usize;
    let begin = asked.absolute(columns.at("item_begin", index));
    let end = asked.absolute(columns.at("item_end", index));
    // An event lasts one nanosecond.
    let end = if drawn.is_events { begin.saturating_add(1) } else { end };
    let label = drawn.name(asked, id);
    let style = styles::of(drawn.list, id, 1.0);
    json!({ "start": begin, "end": end, "label": label, "tags": 0, "style": style })
}

/// States from runs of pixels with equal colour, for rows with too many items.
fn runs(
    asked: &Asked<'_>,
    scale: &Scale,
    drawn: &Drawn<'_>,
    columns: &Columns,
    first: usize,
) -> Vec<Value> {
    let mut states: Vec<Value> = Vec::new();
    let mut run: Option<(usize, i64, i64, f64, bool)> = None;
    let mut end_run = |run: Option<(usize, i64, i64, f64, bool)>| {
        let Some((colour, begin, end, cover, is_one)) = run else { return };
        let mut state = json!({
            "start": asked.absolute(begin as f64), "end": asked.absolute(end as f64), "tags": 0,
            "style": styles::of(drawn.list, colour - 1, cover),
        });
        // Runs of several items have no label.
        if is_one {
            state["label"] = drawn.name(asked, colour - 1).into();
        }
        states.push(state);
    };
    for pixel in 0..scale.px {
        let at = first + pixel as usize;
        let colour = columns.at("colour", at) as usize;
        let cover = columns.at("cover", at) / 255.0;
        let is_one = columns.at("flags", at) as u8 & SEVERAL == 0;
        let (begin, end) = scale.pixel(pixel);
        // Heights are quantized, because each change of height starts a new state.
        let cover = (cover * 4.0).ceil() / 4.0;
        match &mut run {
            Some((known, _, until, covered, one))
                if *known == colour && *covered == cover && *one == is_one =>
            {
                *until = end;
            }
            _ => {
                end_run(run.take());
                run = (colour > 0).then_some((colour, begin, end, cover, is_one));
            }
        }
    }
    end_run(run);
    states
}

/// Flows as arrows.
pub fn arrows(asked: &Asked<'_>, query: &Query) -> Result<Value, Problem> {
    let lanes: Vec<u32> = (0u32..).zip(asked.list("lanes")).map(|(id, _)| id).collect();
    let params = json!({
        "lanes": lanes, "t0": query.begin, "t1": query.end.saturating_add(1), "px": query.count,
    });
    let (_, columns) = asked.columns("arrows", params)?;
    let arrows = columns.all("from_lane").enumerate().map(|(index, from)| {
        let entry = |lane: f64| Place { lane: lane as u32, row: 0 }.entry();
        json!({
            "sourceId": entry(from), "targetId": entry(columns.at("to_lane", index)),
            "start": asked.absolute(columns.at("from", index)),
            "end": asked.absolute(columns.at("to", index)),
        })
    });
    Ok(arrows.collect())
}

/// Details of one event or interval.
pub fn tooltip(asked: &Asked<'_>, query: &Query) -> Result<Value, Refusal> {
    let entry = query.items.as_ref().and_then(|items| items.first());
    let (Some(entry), Some(time)) = (entry, query.time) else {
        let place = "requested_items, requested_times";
        return Err(Refusal::new(400, "a parameter is missing", place, "the protocol wants it"));
    };
    let Place { lane, row } = Place::of(*entry);
    let answer = asked.json("at", json!({ "lane": lane, "row": row, "t": time, "within": 0 }))?;
    let thing = &answer["thing"];
    let mut told = Map::new();
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(other.to_string()),
    };
    for (name, key) in [
        ("Name", "name"),
        ("Key", "key"),
        ("Process", "process"),
        ("Thread", "thread"),
        ("CPU", "cpu"),
        ("Duration, ns", "duration"),
        ("Quality", "quality"),
    ] {
        if let Some(text) = text(&thing[key]) {
            told.insert(name.to_owned(), text.into());
        }
    }
    for field in thing["fields"].as_array().map_or(&[][..], Vec::as_slice) {
        let value = field.get("label").unwrap_or(&field["value"]);
        if let (Some(name), Some(value)) = (field["name"].as_str(), text(value)) {
            let unit = field["unit"].as_str().map(|unit| format!(" {unit}")).unwrap_or_default();
            told.insert(name.to_owned(), format!("{value}{unit}").into());
        }
    }
    Ok(told.into())
}

/// Categories of annotations that may occur.
pub fn annotation_categories() -> Value {
    json!({ "annotationCategories": CATEGORIES })
}

/// Losses, damage and notes in the requested time range.
pub fn annotations(asked: &Asked<'_>, query: &Query) -> Result<Value, Problem> {
    let is_asked = |category: &str| {
        query.categories.as_ref().is_none_or(|all| all.iter().any(|known| known == category))
    };
    let end = asked.relative(asked.end());
    let one = |lane: &Value,
               (since, until): (Option<f64>, Option<f64>),
               label: String,
               colour: &str| {
        let since = since.unwrap_or(0.0);
        let until = until.unwrap_or(end as f64).max(since);
        if since > query.end as f64 || until < query.begin as f64 {
            return None;
        }
        let lane = lane.as_u64().and_then(|lane| u32::try_from(lane).ok());
        let entry = lane.map_or(-1, |lane| i64::from(Place { lane, row: 0 }.entry()));
        Some(json!({
            "time": asked.absolute(since), "duration": (until - since) as i64, "entryId": entry,
            "type": "CHART", "label": label,
            "style": { "values": { "color": colour, "opacity": 0.35, "symbol-type": "diamond" } },
        }))
    };
    let mut told = Map::new();
    if is_asked(CATEGORIES[0]) {
        let losses = asked.list("losses").iter().filter_map(|loss| {
            let count = loss["count"].as_u64();
            let count = count.map_or_else(|| "unknown number of".to_owned(), |n| n.to_string());
            let label =
                format!("{count} events lost: {}", loss["cause"].as_str().unwrap_or_default());
            one(&loss["lane"], (loss["begin"].as_f64(), loss["end"].as_f64()), label, "#c62828")
        });
        told.insert(CATEGORIES[0].to_owned(), losses.collect());
    }
    if is_asked(CATEGORIES[1]) {
        let damage = asked.list("damage").iter().filter_map(|damage| {
            let text = |key: &str| damage[key].as_str().unwrap_or_default().to_owned();
            let label = format!("{}: {}", text("file"), text("reason"));
            one(
                &damage["lane"],
                (damage["begin"].as_f64(), damage["end"].as_f64()),
                label,
                "#a86500",
            )
        });
        told.insert(CATEGORIES[1].to_owned(), damage.collect());
    }
    if is_asked(CATEGORIES[2]) {
        let answer = asked.json("notes", json!({}))?;
        let notes = answer["notes"].as_array().cloned().unwrap_or_default();
        let notes = notes.iter().filter_map(|note| {
            let time = note["begin"].as_f64()?;
            let end = note["end"].as_f64().unwrap_or(time);
            let label = note["text"].as_str().unwrap_or_default().to_owned();
            one(&note["lane"], (Some(time), Some(end)), label, "#0b7a86")
        });
        told.insert(CATEGORIES[2].to_owned(), notes.collect());
    }
    Ok(json!({ "annotations": told }))
}
