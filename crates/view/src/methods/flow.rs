// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of threads whose instructions were recorded: pictures, details of a call, and
//! `instructions`.

use lateralis_lanes::pixels::LOST;
use lateralis_lanes::{Pixels, Scale};
use lateralis_store::flow::Moment;
use lateralis_store::flow::timeline::Piece;
use lateralis_store::places::{Frame, Places};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::flow::{draw, rates, since, stretches};
use crate::params::Params;
use crate::session::Session;

/// Maximum number of instructions in a response.
const LISTED_MAX: u64 = 1000;

/// Draws calls of one depth; returns their pieces if each is drawn separately.
pub fn calls(
    session: &Session,
    scale: &Scale,
    (flow, depth): (usize, u32),
    pixels: &mut Pixels,
) -> Option<Vec<Piece>> {
    let nothing = |pixels: &mut Pixels| (0..scale.px).for_each(|_| pixels.nothing());
    let Some(flows) = session.flow() else {
        nothing(pixels);
        return Some(Vec::new());
    };
    let origin = session.lanes.meta().origin;
    let window = flows.window(flow, origin, scale);
    let is_last = depth + 1 == flows.depths(flow);
    let rows: Vec<&[Piece]> = match is_last {
        true => window.depths.iter().skip(depth as usize).map(Vec::as_slice).collect(),
        false => window.depths.get(depth as usize).map(Vec::as_slice).into_iter().collect(),
    };
    let most = match rows.as_slice() {
        [] => {
            nothing(pixels);
            0
        }
        [one] => draw(one, origin, scale, pixels),
        several => {
            let draw = |row: &&[Piece]| {
                let mut one = Pixels::default();
                draw(row, origin, scale, &mut one);
                one
            };
            pixels.push_packed(several.iter().map(draw), scale);
            u64::MAX
        }
    };
    pixels.mark(scale, &stretches(origin, &window.gaps), LOST);
    if most > 1 || !window.is_exact {
        return None;
    }
    let touches = |piece: &&Piece| {
        let (begin, end) = (since(origin, piece.begin_ns), since(origin, piece.end_ns));
        end.max(begin.saturating_add(1)) > scale.t0 && begin < scale.t1
    };
    Some(rows.into_iter().flatten().filter(touches).copied().collect())
}

/// Names of functions by their numbers: `[[number, name], …]`.
pub fn names(session: &Session, mut functions: Vec<u32>) -> Value {
    functions.sort_unstable();
    functions.dedup();
    let Some(flows) = session.flow() else { return json!([]) };
    let timeline = flows.timeline();
    let name = |function| timeline.places().name_of(function).unwrap_or_default();
    functions.into_iter().map(|function| json!([function, name(function)])).collect()
}

/// Instruction rates over time, if the counter is the instruction counter of a thread.
pub fn rates_of(session: &Session, counter: u32, scale: &Scale) -> Option<Vec<f64>> {
    let flow = session.lanes.meta().flows.iter().position(|of| of.counter == counter)?;
    let flows = session.flow()?;
    let origin = session.lanes.meta().origin;
    Some(rates(&flows.window(flow, origin, scale), origin, scale))
}

/// Value of an instruction counter at a time.
pub fn rate_at(session: &Session, counter: u32, (time, within): (i64, u64)) -> Option<Value> {
    let within = i64::try_from(within).unwrap_or(i64::MAX).max(1);
    let scale = Scale::new(time.saturating_sub(within), time.saturating_add(within), 1);
    let rate = rates_of(session, counter, &scale)?.first().copied()?;
    let meta = session.lanes.meta();
    let told = meta.counters.get(counter as usize)?;
    let value = if rate.is_nan() { Value::Null } else { rate.into() };
    let fields = json!([{ "name": "value", "value": value }]);
    Some(json!({
        "kind": "level", "begin": scale.t0, "end": scale.t1, "name": told.name, "lane": told.lane,
        "fields": fields, "quality": "exact",
    }))
}

fn line_of(places: &Places<'_>, frame: Option<&Frame>) -> Option<String> {
    Some(places.line_text(frame?.line?))
}

/// The call at one depth that is nearest to a time.
pub fn call_at(
    session: &Session,
    (flow, depth): (usize, u32),
    (time, within): (i64, u64),
) -> Option<Value> {
    let flows = session.flow()?;
    let meta = session.lanes.meta();
    let (origin, lane) = (meta.origin, meta.flows.get(flow)?.lane);
    let near = i64::try_from(within).unwrap_or(i64::MAX);
    let scale =
        Scale::new(time.saturating_sub(near), time.saturating_add(near).saturating_add(1), 1);
    let window = flows.window(flow, origin, &scale);
    let is_last = depth + 1 == flows.depths(flow);
    let rows = window.depths.iter().skip(depth as usize).take(if is_last { usize::MAX } else { 1 });
    let distance = |piece: &&Piece| {
        let (begin, end) = (since(origin, piece.begin_ns), since(origin, piece.end_ns));
        if time < begin { begin.saturating_sub(time) } else { time.saturating_sub(end).max(0) }
    };
    // Of calls at the same distance, the longest.
    let nearest = rows
        .flatten()
        .min_by_key(|piece| (distance(piece), std::cmp::Reverse(piece.end_ns - piece.begin_ns)))?;
    if distance(&nearest) > near {
        return None;
    }
    let (begin, end) = (since(origin, nearest.begin_ns), since(origin, nearest.end_ns));
    let mut timeline = flows.timeline();
    let traced = timeline.traced(flow)?.clone();
    let name = timeline.places().name_of(nearest.function).unwrap_or_default().to_owned();
    let image = timeline.places().functions().get(nearest.function as usize);
    let image = image.map(|of| of.image.clone()).filter(|image| !image.is_empty());
    let mut fields: Vec<Value> = Vec::new();
    let field = |name: &str, value: Value| json!({ "name": name, "value": value });
    fields.extend(image.map(|image| field("image", image.into())));
    let mut thing = json!({
        "kind": "call", "begin": begin, "end": end, "name": name, "lane": lane,
        "duration": end.saturating_sub(begin), "pid": traced.pid, "tid": traced.tid,
        "process": traced.program, "quality": "exact",
    });
    match nearest.call {
        Some(call) => {
            let line = timeline.line_at(flow, call.address);
            fields.extend(line.map(|line| field("source", line.into())));
            fields.push(field("instructions", call.instructions.into()));
            if let Some(caller) = call.caller {
                let caller = timeline.places().name_of(caller).unwrap_or_default();
                fields.push(field("caller", caller.into()));
            }
            fields.push(field("address", format!("{:#x}", call.address).into()));
            let error = |of: Moment| of.and_then(|of| of.error_nanos);
            let off = error(call.times.0).zip(error(call.times.1));
            if let Some((begin, end)) = off {
                fields.push(json!({
                    "name": "times may be off by", "value": begin.max(end), "unit": "ns",
                }));
            }
            if !call.is_whole {
                fields.push(field("seen", "not from its call to its return".into()));
            }
            thing["instructions"] = json!({ "first": call.begin, "count": call.instructions });
        }
        None => {
            thing["kind"] = "calls".into();
            fields.push(field("calls", nearest.calls.into()));
            fields.push(field(
                "shown",
                "the function with most instructions: zoom in for each call".into(),
            ));
        }
    }
    thing["fields"] = fields.into();
    Some(thing)
}

/// Instructions that a thread executed in a time range, or in a range of instruction numbers.
pub fn instructions(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let lane = params.id("lane")?;
    let none = || {
        let what = "no instructions were recorded of this thread";
        Problem::new(what, format!("lane {lane}"), "record them by: lat record --sim -- PROGRAM")
    };
    let meta = session.lanes.meta();
    let flow = meta.flows.iter().position(|of| of.lane == lane).ok_or_else(none)?;
    let flows = session.flow().ok_or_else(none)?;
    let absolute = |time: i64| u64::try_from(meta.origin.saturating_add(time)).unwrap_or(0);
    let (t0, t1) = (absolute(params.time("t0")?), absolute(params.time("t1")?));
    let from = params.count("from", 0)?;
    let count = params.count("count", LISTED_MAX)?.min(LISTED_MAX) as usize;
    let numbers = match params.get("first") {
        Some(_) => {
            let first = params.count("first", 0)?;
            Some(first..first.saturating_add(params.count("of", 0)?))
        }
        None => None,
    };
    let mut timeline = flows.timeline();
    let (found, total) = timeline.instructions(flow, (t0, t1), numbers, (from, count));
    let places = timeline.places();
    let row = |of: &lateralis_store::flow::timeline::Executed| {
        let function = of.frames.first().and_then(|of| places.name_of(of.function));
        let inlined = of.frames.last().filter(|of| of.is_inlined);
        json!({
            "number": of.number,
            "ts": of.time_ns.map(|nanos| since(meta.origin, nanos)),
            "address": format!("{:#x}", of.address),
            "assembly": of.assembly,
            "function": function,
            "inlined": inlined.and_then(|of| places.name_of(of.function)),
            "line": line_of(places, of.frames.last()),
        })
    };
    let rows: Vec<Value> = found.iter().map(row).collect();
    Ok(json!({ "rows": rows, "total": total, "from": from }))
}
