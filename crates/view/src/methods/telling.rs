// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `at`, `step`: details of single events and intervals.

use lateralis_analysis::ThreadState;
use lateralis_lanes::{Chosen, Lanes, Listed, PointRef, RowKind, quality_name};
use lateralis_model::Event;
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::methods::{flow, listing, scheduling};
use crate::params::Params;
use crate::rows::{Drawn, drawn_together};
use crate::session::{Session, lock};
use crate::told;

/// The event, interval or value nearest to a time on a row.
pub fn at(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let (lane, row) = (params.id("lane")?, params.id("row")?);
    let time = params.time("t")?;
    let within = params.count("within", 0)?;
    let filter = params.count("filter", 0)?;
    let chosen = session.chosen(filter)?;
    let thing = match session.drawn(lane, row)? {
        Drawn::Events => {
            let point = nearest(session, chosen.as_deref(), lane, time, within);
            point.map(|point| event(session, chosen.as_deref(), point)).transpose()?
        }
        Drawn::Intervals(row) | Drawn::Packed(row) => {
            let lanes = &session.lanes;
            let keeps = |row, index| chosen.as_deref().is_none_or(|c| c.keeps(lanes, row, index));
            let near = interval_near(lanes, &drawn_together(lanes, row), &keeps, (time, within));
            near.map(|(row, index)| interval(session, chosen.as_deref(), row, index)).transpose()?
        }
        Drawn::Level(counter) => match flow::rate_at(session, counter, (time, within)) {
            Some(thing) => Some(thing),
            None => level(session, counter, time),
        },
        Drawn::Calls(flow, depth) => flow::call_at(session, (flow, depth), (time, within)),
        Drawn::Found(script, row) => {
            found(session, chosen.as_deref(), (script, row), (time, within))?
        }
    };
    Ok(json!({ "thing": thing }))
}

fn nearest(
    session: &Session,
    chosen: Option<&Chosen>,
    lane: u32,
    time: i64,
    within: u64,
) -> Option<PointRef> {
    let points = session.lanes.points(lane)?;
    let bits = chosen.and_then(|chosen| chosen.bits(lane));
    let before = points.before(time);
    let rank = bits.map_or(before, |bits| bits.rank(before));
    let index = |rank: usize| {
        let index = bits.map_or(Some(rank), |bits| bits.select(rank))?;
        let distance = points.time(index).abs_diff(u64::try_from(time).unwrap_or(0));
        (index < points.len() && distance <= within).then_some((distance, index))
    };
    let found = [rank.checked_sub(1).and_then(index), index(rank)].into_iter().flatten().min()?;
    Some(PointRef { lane, index: found.1 as u32 })
}

/// Finds the interval nearest to a time among those of some rows that `keeps` accepts; returns its
/// row and its index there. Of several, the first.
fn interval_near(
    lanes: &Lanes,
    rows: &[usize],
    keeps: &dyn Fn(usize, usize) -> bool,
    (time, within): (i64, u64),
) -> Option<(usize, usize)> {
    let within = i64::try_from(within).unwrap_or(i64::MAX);
    let (begin, end) = (time.saturating_sub(within), time.saturating_add(within).saturating_add(1));
    let of_row = |row: usize| {
        let (_, intervals) = lanes.row(row)?;
        let (from, to) = intervals.touching(begin, end);
        // The nearest accepted intervals on both sides of the time; a filter may accept few of many.
        let middle = intervals.before(time.saturating_add(1)).clamp(from, to);
        let is_kept = |index: &usize| keeps(row, *index);
        let before = (from..middle).rev().find(is_kept);
        let after = (middle..to).find(is_kept);
        let distance = |index: usize| {
            let (begin, end) = intervals.ends(index);
            let (begin, end) = (begin as i64, end as i64);
            if time < begin { begin.saturating_sub(time) } else { time.saturating_sub(end).max(0) }
        };
        [before, after].into_iter().flatten().map(|index| (distance(index), row, index)).min()
    };
    let nearest = rows.iter().filter_map(|row| of_row(*row)).min();
    nearest.map(|(_, row, index)| (row, index))
}

/// Describes an event with all its fields.
pub fn event(
    session: &Session,
    chosen: Option<&Chosen>,
    point: PointRef,
) -> Result<Value, Problem> {
    let mut thing = listing::event(session, point);
    let meta = session.lanes.meta();
    let class = thing["class"].as_u64().and_then(|class| meta.classes.get(class as usize));
    thing["kind"] = "event".into();
    thing["begin"] = thing["ts"].clone();
    thing["name"] = class.map_or(Value::Null, |class| class.name.as_str().into());
    thing["process"] = process(session, &thing);
    // Exact because it was recorded; losses elsewhere do not affect it.
    thing["quality"] = "exact".into();
    thing["number"] = Listed::new(&session.lanes, chosen).number_of(point).into();
    let fields = told::fields(session, &[point])?.pop().flatten();
    thing["fields"] = fields.unwrap_or_else(|| json!([]));
    Ok(thing)
}

fn process(session: &Session, thing: &Value) -> Value {
    let applications = &session.lanes.meta().applications;
    let id = thing["application"].as_u64().and_then(|id| usize::try_from(id).ok());
    id.and_then(|id| applications.get(id)).map_or(Value::Null, |a| a.name.as_str().into())
}

/// Describes an interval with the fields of its events.
pub fn interval(
    session: &Session,
    chosen: Option<&Chosen>,
    row: usize,
    index: usize,
) -> Result<Value, Problem> {
    let none = || Problem::new("no such row", row.to_string(), "");
    let (told, intervals) = session.lanes.row(row).ok_or_else(none)?;
    let meta = session.lanes.meta();
    let (begin, end) = intervals.ends(index);
    let name = intervals.name(index) as usize;
    let (kind, name) = match told.kind {
        RowKind::Running | RowKind::Seen => {
            let kind = if told.kind == RowKind::Seen { "seen" } else { "running" };
            (kind, meta.applications.get(name).map(|application| &application.name))
        }
        RowKind::Spans => ("span", meta.names.get(name)),
        RowKind::States => ("state", meta.names.get(name)),
        RowKind::ThreadStates => ("thread_state", meta.names.get(name)),
        RowKind::Samples => ("sample", meta.names.get(name)),
        RowKind::Stacks => ("sampled", meta.names.get(name)),
        RowKind::Wakes => return Err(none()),
    };
    let thread = meta.threads.get(intervals.thread(index) as usize);
    let end = (!intervals.is_unfinished(index)).then_some(end);
    let mut thing = json!({
        "kind": kind, "begin": begin, "end": end, "name": name, "lane": told.lane,
        "thread": thread.map(|thread| thread.name.as_str()),
        "application": thread.map(|thread| thread.application),
        "pid": thread.and_then(|thread| thread.pid),
        "tid": thread.and_then(|thread| thread.tid),
        "quality": quality_name(intervals.quality(index)),
        "duration": end.map(|end| end - begin),
        "fields": [],
    });
    thing["process"] = process(session, &thing);
    let [from, to] = intervals.events(index);
    if let Some(point) = from {
        thing["number"] = Listed::new(&session.lanes, chosen).number_of(point).into();
        thing["cpu"] =
            session.lanes.meta().lanes.get(point.lane as usize).and_then(|l| l.cpu).into();
    }
    if told.kind == RowKind::ThreadStates {
        // The CPU of the event is that of the thread only while the thread runs.
        if thing["name"] != ThreadState::Running.name() {
            thing["cpu"] = Value::Null;
        }
        scheduling::add(session, (row, index), &mut thing);
    }
    let points: Vec<PointRef> = [from, to].into_iter().flatten().collect();
    let fields = told::fields(session, &points)?.into_iter().flatten();
    // Fields of the end are used only if the begin has no field of that name.
    let mut all: Vec<Value> = Vec::new();
    for field in fields.flat_map(|fields| fields.as_array().cloned().unwrap_or_default()) {
        if !all.iter().any(|known| known["name"] == field["name"]) {
            all.push(field);
        }
    }
    if told.kind == RowKind::Stacks {
        // Its duration is only as exact as the distance of samples.
        thing["quality"] = Value::Null;
        all = sampled(session, row, index, from).unwrap_or_default();
    }
    thing["fields"] = all.into();
    Ok(thing)
}

/// Details of a function found by samples: number of samples, file, and source line in the first sample.
fn sampled(
    session: &Session,
    row: usize,
    index: usize,
    from: Option<PointRef>,
) -> Option<Vec<Value>> {
    let (told, intervals) = session.lanes.row(row)?;
    let (begin, end) = intervals.ends(index);
    let rows = &session.lanes.meta().rows;
    let of_samples = rows.iter().position(|other| {
        (other.lane, other.kind, other.depth) == (told.lane, RowKind::Samples, 0)
            && other.name == told.name
    });
    let mut fields = Vec::new();
    let mut field = |name: &str, value: Value| fields.push(json!({ "name": name, "value": value }));
    if let Some((_, marks)) = of_samples.and_then(|row| session.lanes.row(row)) {
        let before = |time: u64| marks.before(i64::try_from(time).unwrap_or(i64::MAX));
        field("samples", before(end).saturating_sub(before(begin)).max(1).into());
    }
    let of_first = |event: &Event<'_>| {
        let mut samples = lock(session.stacks()?);
        let sample = samples.read(event)?;
        let frame = *sample.frames.get(told.depth as usize)?;
        let places = samples.places();
        let image = places.functions().get(frame.function as usize)?.image.clone();
        Some((image, frame.line.map(|line| places.line_text(line)), frame.is_inlined))
    };
    let found = from.and_then(|point| told::with_event(session, point, of_first));
    if let Some((image, line, is_inlined)) = found {
        if let Some(line) = line {
            field("source", line.into());
        }
        if is_inlined {
            field("inlined", true.into());
        }
        field("image", image.into());
    }
    Some(fields)
}

/// Describes a span found by a script.
fn found(
    session: &Session,
    chosen: Option<&Chosen>,
    (script, row): (u32, usize),
    near: (i64, u64),
) -> Result<Option<Value>, Problem> {
    let ran = session.common.scripts.get(script)?;
    let Some(found) = ran.found() else { return Ok(None) };
    let lanes = &found.lanes;
    let keeps = |row, index| chosen.is_none_or(|c| found.is_left(session, c, row, index));
    let Some((row, index)) = interval_near(lanes, &drawn_together(lanes, row), &keeps, near) else {
        return Ok(None);
    };
    let Some((told, intervals)) = lanes.row(row) else { return Ok(None) };
    let (begin, end) = intervals.ends(index);
    let end = (!intervals.is_unfinished(index)).then_some(end);
    let meta = session.lanes.meta();
    let thread = meta.threads.get(found.thread(intervals, index) as usize);
    let key = found.key(intervals, index);
    let mut thing = json!({
        "kind": "activity", "begin": begin, "end": end, "duration": end.map(|end| end - begin),
        "name": told.name, "key": key, "lane": told.lane, "script": script,
        "thread": thread.map(|thread| thread.name.as_str()),
        "application": thread.map(|thread| thread.application),
        "quality": "exact", "fields": [],
    });
    thing["process"] = process(session, &thing);
    Ok(Some(thing))
}

fn level(session: &Session, counter: u32, time: i64) -> Option<Value> {
    let levels = session.lanes.levels(counter)?;
    let told = session.lanes.meta().counters.get(counter as usize)?;
    let index = levels.before(time.saturating_add(1)).checked_sub(1)?;
    let (begin, value) = levels.point(index);
    let end = (index + 1 < levels.len()).then(|| levels.point(index + 1).0);
    let fields = json!([{ "name": "value", "value": value }]);
    Some(json!({
        "kind": "level", "begin": begin, "end": end, "name": told.name, "lane": told.lane,
        "fields": fields, "quality": "exact",
    }))
}

/// The first event after a time, or the last before it.
pub fn step(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let time = params.time("t")?;
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let class = params.get("class").map(|_| params.id("class")).transpose()?;
    let lane = params.get("lane").map(|_| params.id("lane")).transpose()?;
    let forward = params.is("forward");
    let mut best: Option<(u64, PointRef)> = None;
    for lane in (0..session.lanes.count()).filter(|id| lane.is_none_or(|lane| lane == *id)) {
        let Some(points) = session.lanes.points(lane) else { continue };
        let keeps = |index: &usize| {
            let point = PointRef { lane, index: *index as u32 };
            class.is_none_or(|class| u32::from(points.class(*index)) == class)
                && chosen.as_ref().is_none_or(|chosen| chosen.has(point))
        };
        let index = if forward {
            (points.before(time.saturating_add(1))..points.len()).find(keeps)
        } else {
            (0..points.before(time)).rev().find(keeps)
        };
        let Some(index) = index else { continue };
        let (when, point) = (points.time(index), PointRef { lane, index: index as u32 });
        let is_nearer =
            best.is_none_or(|(known, _)| if forward { when < known } else { when > known });
        if is_nearer {
            best = Some((when, point));
        }
    }
    let thing = best.map(|(_, point)| event(session, chosen.as_deref(), point)).transpose()?;
    Ok(json!({ "thing": thing }))
}
