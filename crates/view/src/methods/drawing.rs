// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `view`, `overview`, `arrows`, `levels`: data for drawing.

use std::collections::BTreeSet;
use std::sync::Arc;

use lateralis_lanes::pixels::{DAMAGED, LOST};
use lateralis_lanes::{Chosen, Intervals, Left, NONE, Pixels, PointRef, RowKind, Scale};
use serde_json::json;

use super::flow;
use super::scheduling::{cpu_of, exits_after};
use super::sharing::{shared, threads};
use crate::answer::{Answer, Numbers, Problem};
use crate::flow::{FlowRows, since};
use crate::params::Params;
use crate::rows::{Drawn, drawn_together, is_packed};
use crate::scripts::{Found, Ran};
use crate::session::Session;

/// Limit of pixels of all rows of a response: 4 million take some 20 MB.
const PIXELS_MAX: u64 = 1 << 22;
/// Maximum number of lanes in a request.
const LANES_MAX: usize = 4096;
/// Maximum number of bundles of flows.
const ARROWS_MAX: usize = 2000;

fn scale(params: Params<'_>) -> Result<Scale, Problem> {
    Ok(Scale::new(params.time("t0")?, params.time("t1")?, params.px()?))
}

fn too_much(what: &str) -> Problem {
    Problem::new("too much for one picture", what, "ask for fewer lanes or pixels")
}

/// Exact events or intervals of sparse rows.
#[derive(Default)]
struct Items {
    rows: Vec<u32>,
    begins: Vec<f64>,
    ends: Vec<f64>,
    names: Vec<u32>,
    events: Vec<f64>,
    /// CPU of a running thread; else [`NO_CPU`].
    cpus: Vec<u16>,
    /// 1 if the thread exited at the end.
    exits: Vec<u8>,
}

/// No CPU, or a CPU whose number is too large.
const NO_CPU: u16 = u16::MAX;

impl Items {
    /// Adds an item of a row; `event` is the index of the item or event in that row.
    fn push(&mut self, row: u32, (begin, end): (f64, f64), name: u32, event: f64) {
        self.rows.push(row);
        self.begins.push(begin);
        self.ends.push(end);
        self.names.push(name);
        self.events.push(event);
        self.cpus.push(NO_CPU);
        self.exits.push(0);
    }

    fn append(&mut self, more: Self) {
        self.rows.extend(more.rows);
        self.begins.extend(more.begins);
        self.ends.extend(more.ends);
        self.names.extend(more.names);
        self.events.extend(more.events);
        self.cpus.extend(more.cpus);
        self.exits.extend(more.exits);
    }
}

/// A row to draw.
struct Row {
    lane: u32,
    number: u32,
    drawn: Drawn,
    /// The script that found the spans of the row, and its results.
    ran: Option<(Arc<Ran>, Arc<Found>)>,
}

/// Rows of lanes as pixels.
pub fn view(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let lanes = params.ids("lanes")?;
    let scale = scale(params)?;
    if lanes.len() > LANES_MAX {
        return Err(too_much("view"));
    }
    if let Some(lane) = lanes.iter().find(|lane| **lane >= session.lanes.count()) {
        return Err(Problem::new("no such lane", lane.to_string(), "load the page again"));
    }
    let mut rows: Vec<Row> = Vec::new();
    for lane in lanes {
        for (number, drawn) in session.rows_of(lane) {
            let ran = match drawn {
                Drawn::Level(_) => continue,
                Drawn::Found(script, _) => {
                    let ran = session.common.scripts.get(script)?;
                    // A script that was replaced meanwhile has no results any more.
                    let Some(found) = ran.found() else { continue };
                    Some((ran, found))
                }
                _ => None,
            };
            rows.push(Row { lane, number, drawn, ran });
        }
    }
    let has_calls = rows.iter().any(|row| matches!(row.drawn, Drawn::Calls(..)));
    let pending = has_calls.then(|| session.flow().map_or(0, FlowRows::advance));
    let all = (rows.len() as u64).saturating_mul(scale.px.into());
    if all > PIXELS_MAX {
        return Err(too_much("view"));
    }
    let filter = params.count("filter", 0)?;
    let chosen = session.chosen(filter)?;
    let chosen = (filter, chosen.as_deref());
    let draw = |place: usize| row(session, chosen, &scale, (&rows[place], place as u32));
    let parts = shared(rows.len(), threads(all), &draw);
    let (mut pixels, mut items, mut told) = (Pixels::default(), Items::default(), Vec::new());
    for (row, ((drawn, things), exact)) in rows.iter().zip(parts) {
        append(&mut pixels, drawn);
        items.append(things);
        told.push(json!({ "lane": row.lane, "row": row.number, "exact": exact }));
    }
    let functions = has_calls.then(|| functions(session, &rows, (&pixels, &items), scale.px));
    let Pixels { colour, cover, count, flags } = pixels;
    let columns = vec![
        ("colour", Numbers::U16(colour)),
        ("cover", Numbers::U8(cover)),
        ("count", Numbers::U8(count)),
        ("flags", Numbers::U8(flags)),
        ("item_row", Numbers::U32(items.rows)),
        ("item_begin", Numbers::F64(items.begins)),
        ("item_end", Numbers::F64(items.ends)),
        ("item_name", Numbers::U32(items.names)),
        ("item_event", Numbers::F64(items.events)),
        ("item_cpu", Numbers::U16(items.cpus)),
        ("item_exits", Numbers::U8(items.exits)),
    ];
    let meta = session.lanes.meta();
    let (begin, end) = (meta.begin, meta.end);
    let mut told = json!({ "rows": told, "px": scale.px, "begin": begin, "end": end });
    if let Some((functions, pending)) = functions.zip(pending) {
        told["functions"] = functions;
        told["pending"] = pending.into();
    }
    Ok(Answer::Columns(told, columns))
}

/// Names of the functions in a picture by their numbers: no other list contains all of them.
fn functions(
    session: &Session,
    rows: &[Row],
    (pixels, items): (&Pixels, &Items),
    px: u32,
) -> serde_json::Value {
    let is_of_calls =
        |row: usize| rows.get(row).is_some_and(|row| matches!(row.drawn, Drawn::Calls(..)));
    let drawn = pixels.colour.chunks(px as usize).enumerate();
    let drawn = drawn.filter(|(row, _)| is_of_calls(*row)).flat_map(|(_, colours)| colours);
    let drawn = drawn.filter_map(|colour| u32::from(*colour).checked_sub(1));
    let told = items.rows.iter().zip(&items.names);
    let told = told.filter(|(row, _)| is_of_calls(**row as usize)).map(|(_, name)| *name);
    flow::names(session, drawn.chain(told).collect())
}

/// Draws a row: returns its pixels, its items if they are few, and whether they are few.
fn row(
    session: &Session,
    (filter, chosen): (u64, Option<&Chosen>),
    scale: &Scale,
    (row, place): (&Row, u32),
) -> ((Pixels, Items), bool) {
    let (mut pixels, mut items) = (Pixels::default(), Items::default());
    let (out, things) = (&mut pixels, &mut items);
    let exact = match (row.drawn, &row.ran) {
        (Drawn::Intervals(of), _) => intervals(session, chosen, scale, (of, place), out, things),
        (Drawn::Packed(first), _) => several(session, chosen, scale, first, out),
        (Drawn::Found(_, of), Some((ran, found))) => {
            let left = ran.left(session, (filter, chosen), found, of);
            match found.lanes.row(of) {
                Some((told, _)) if is_packed(told) => {
                    let draw = |row: usize| {
                        let mut one = Pixels::default();
                        let left = ran.left(session, (filter, chosen), found, row);
                        found.lanes.row(row)?.1.draw(left.as_deref(), scale, &mut one);
                        Some(one)
                    };
                    let rows = drawn_together(&found.lanes, of).into_iter();
                    out.push_packed(rows.filter_map(draw), scale);
                    false
                }
                Some((_, found)) => {
                    drawn_as_items(found, left.as_deref(), scale, place, out, things)
                }
                None => nothing(scale, out),
            }
        }
        (Drawn::Calls(flow, depth), _) => calls(session, scale, (flow, depth), place, out, things),
        (Drawn::Events, _) => events(session, chosen, scale, (row.lane, place), out, things),
        _ => nothing(scale, out),
    };
    // The script has not examined later events yet.
    if let Some(until) = row.ran.as_ref().and_then(|(_, found)| found.behind(session)) {
        pixels.mark(scale, &[(until, session.lanes.meta().end)], LOST);
    }
    let of = &session.lanes.meta().lanes[row.lane as usize];
    pixels.mark(scale, &of.lost, LOST);
    pixels.mark(scale, &of.damaged, DAMAGED);
    ((pixels, items), exact)
}

fn nothing(scale: &Scale, pixels: &mut Pixels) -> bool {
    (0..scale.px).for_each(|_| pixels.nothing());
    true
}

fn append(all: &mut Pixels, more: Pixels) {
    all.colour.extend(more.colour);
    all.cover.extend(more.cover);
    all.count.extend(more.count);
    all.flags.extend(more.flags);
}

/// Draws the events of a lane; returns whether each is listed as an item.
fn events(
    session: &Session,
    chosen: Option<&Chosen>,
    scale: &Scale,
    (lane, place): (u32, u32),
    pixels: &mut Pixels,
    items: &mut Items,
) -> bool {
    let Some(points) = session.lanes.points(lane) else { return nothing(scale, pixels) };
    let bits = chosen.and_then(|chosen| chosen.bits(lane));
    let most = points.draw(bits, scale, pixels);
    if most <= 1 {
        let (from, to) = (points.before(scale.t0), points.before(scale.t1));
        let ranks = bits.map_or((from, to), |bits| (bits.rank(from), bits.rank(to)));
        for rank in ranks.0..ranks.1 {
            let index = bits.map_or(Some(rank), |bits| bits.select(rank)).unwrap_or(rank);
            let time = points.time(index) as f64;
            items.push(place, (time, time), points.class(index).into(), index as f64);
        }
    }
    most <= 1
}

/// Draws a row of intervals; returns whether each is listed as an item.
fn intervals(
    session: &Session,
    chosen: Option<&Chosen>,
    scale: &Scale,
    (row, place): (usize, u32),
    pixels: &mut Pixels,
    items: &mut Items,
) -> bool {
    let Some((told, intervals)) = session.lanes.row(row) else { return nothing(scale, pixels) };
    let left = chosen.and_then(|chosen| chosen.left(&session.lanes, row));
    let first = items.events.len();
    let exact = drawn_as_items(intervals, left, scale, place, pixels, items);
    if told.kind == RowKind::ThreadStates {
        for item in first..items.events.len() {
            let index = items.events[item] as usize;
            let cpu = cpu_of(&session.lanes, intervals, index);
            items.cpus[item] = cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NO_CPU);
            items.exits[item] = exits_after(&session.lanes, row, index).into();
        }
    }
    exact
}

/// Draws several rows as one, in which a pixel shows the item that covers most of it; never exact.
fn several(
    session: &Session,
    chosen: Option<&Chosen>,
    scale: &Scale,
    first: usize,
    pixels: &mut Pixels,
) -> bool {
    let draw = |row: usize| {
        let mut one = Pixels::default();
        let (_, intervals) = session.lanes.row(row)?;
        let left = chosen.and_then(|chosen| chosen.left(&session.lanes, row));
        intervals.draw(left, scale, &mut one);
        Some(one)
    };
    let rows = drawn_together(&session.lanes, first).into_iter();
    pixels.push_packed(rows.filter_map(draw), scale);
    false
}

/// Draws intervals, and lists each as an item if they are few.
fn drawn_as_items(
    intervals: &Intervals,
    left: Option<&Left>,
    scale: &Scale,
    place: u32,
    pixels: &mut Pixels,
    items: &mut Items,
) -> bool {
    let most = intervals.draw(left, scale, pixels);
    if most <= 1 {
        for index in intervals.items(left, scale) {
            let (begin, end) = intervals.ends(index);
            items.push(place, (begin as f64, end as f64), intervals.name(index), index as f64);
        }
    }
    most <= 1
}

/// Draws calls of one depth; returns whether each is listed as an item.
fn calls(
    session: &Session,
    scale: &Scale,
    of: (usize, u32),
    place: u32,
    pixels: &mut Pixels,
    items: &mut Items,
) -> bool {
    let Some(pieces) = flow::calls(session, scale, of, pixels) else { return false };
    let origin = session.lanes.meta().origin;
    for piece in pieces {
        let ends = (piece.begin_ns, piece.end_ns);
        let ends = (since(origin, ends.0) as f64, since(origin, ends.1) as f64);
        items.push(place, ends, piece.function, 0.0);
    }
    true
}

/// Number of events by pixel, of the whole session unless the request has a time range.
pub fn overview(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let meta = session.lanes.meta();
    let (begin, end) = (params.time_or("t0", None)?, params.time_or("t1", None)?);
    let (begin, end) = (begin.unwrap_or(meta.begin as i64), end.unwrap_or(meta.end as i64));
    let scale = Scale::new(begin, end, params.px()?);
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let count = density(session, chosen.as_deref(), &scale);
    let mut flags = Pixels::default();
    nothing(&scale, &mut flags);
    for lane in &meta.lanes {
        flags.mark(&scale, &lane.lost, LOST);
        flags.mark(&scale, &lane.damaged, DAMAGED);
    }
    let columns = vec![("count", Numbers::U32(count)), ("flags", Numbers::U8(flags.flags))];
    let told = json!({ "px": scale.px, "begin": meta.begin, "end": meta.end });
    Ok(Answer::Columns(told, columns))
}

/// Number of events of a filter in each pixel.
pub fn density(session: &Session, chosen: Option<&Chosen>, scale: &Scale) -> Vec<u32> {
    let of_lane = |lane: usize| {
        let lane = lane as u32;
        let bits = chosen.as_ref().and_then(|chosen| chosen.bits(lane));
        session.lanes.points(lane).map(|points| points.counts(bits, scale))
    };
    let lanes = session.lanes.count();
    let threads = threads(u64::from(lanes) * u64::from(scale.px));
    let mut count = vec![0u32; scale.px as usize];
    for here in shared(lanes as usize, threads, &of_lane).into_iter().flatten() {
        for (count, here) in count.iter_mut().zip(here) {
            *count = count.saturating_add(u32::try_from(here).unwrap_or(u32::MAX));
        }
    }
    count
}

/// Flows between shown lanes.
pub fn arrows(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let shown: BTreeSet<u32> = params.set("lanes")?;
    let scale = scale(params)?;
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let (lanes, messages) = (&session.lanes, session.lanes.messages());
    let keeps = |index: usize| {
        chosen.as_ref().is_none_or(|c| messages.events(index).iter().all(|point| c.has(*point)))
    };
    // The thread's lane is used if the lane of the event, as a CPU, is not shown.
    let lane_of = |point: PointRef| {
        if shown.contains(&point.lane) {
            return Some(point.lane);
        }
        let thread = lanes.points(point.lane).map_or(NONE, |p| p.thread(point.index as usize));
        let lane = lanes.meta().threads.get(thread as usize)?.lane?;
        shown.contains(&lane).then_some(lane)
    };
    let bundles = messages.draw(&scale, keeps, lane_of, ARROWS_MAX);
    let u32s =
        |of: fn(&lateralis_lanes::Bundle) -> u32| Numbers::U32(bundles.iter().map(of).collect());
    let f64s = |of: fn(&lateralis_lanes::Bundle) -> u64| {
        Numbers::F64(bundles.iter().map(|bundle| of(bundle) as f64).collect())
    };
    let columns = vec![
        ("from_lane", u32s(|b| b.from_lane)),
        ("to_lane", u32s(|b| b.to_lane)),
        ("from", f64s(|b| b.sent)),
        ("to", f64s(|b| b.received)),
        ("count", u32s(|b| b.count)),
        ("channel", u32s(|b| b.channel)),
    ];
    Ok(Answer::Columns(json!({ "count": bundles.len() }), columns))
}

/// Values of counters.
pub fn levels(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let counters = params.ids("counters")?;
    let scale = scale(params)?;
    if counters.len() as u64 * u64::from(scale.px) > PIXELS_MAX / 4 {
        return Err(too_much("levels"));
    }
    let (mut low, mut high, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let mut pending = 0;
    for counter in &counters {
        if let Some(rates) = flow::rates_of(session, *counter, &scale) {
            pending = session.flow().map_or(0, FlowRows::advance);
            low.extend(&rates);
            high.extend(&rates);
            last.extend(rates);
            continue;
        }
        let levels = session.lanes.levels(*counter);
        let none = || Problem::new("no such counter", counter.to_string(), "load the page again");
        for reach in levels.ok_or_else(none)?.draw(&scale) {
            low.push(reach.low);
            high.push(reach.high);
            last.push(reach.last);
        }
    }
    let columns = vec![
        ("low", Numbers::F64(low)),
        ("high", Numbers::F64(high)),
        ("last", Numbers::F64(last)),
    ];
    Ok(Answer::Columns(
        json!({ "counters": counters, "px": scale.px, "pending": pending }),
        columns,
    ))
}
