// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `events`, `find`: list of events.

use lateralis_lanes::{Listed, PointRef};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;
use crate::told;

/// Maximum number of rows in a response.
const ROWS_MAX: u64 = 1000;

/// Returns a page of the events that a filter keeps.
pub fn events(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let from = params.count("from", 0)?;
    let count = params.count("count", 100)?.min(ROWS_MAX) as usize;
    let listed = Listed::new(&session.lanes, chosen.as_deref());
    let points = listed.rows(from, count);
    let fields = told::fields(session, &points)?;
    let rows = points.iter().zip(fields).zip(from..).map(|((point, fields), number)| {
        let mut row = event(session, *point);
        row["number"] = number.into();
        row["fields"] = fields.unwrap_or_default();
        row
    });
    Ok(json!({ "rows": rows.collect::<Vec<_>>() }))
}

/// Describes an event from the index only.
pub fn event(session: &Session, point: PointRef) -> Value {
    let meta = session.lanes.meta();
    let Some(points) = session.lanes.points(point.lane) else { return Value::Null };
    let index = point.index as usize;
    let (time, class, thread) = (points.time(index), points.class(index), points.thread(index));
    let known = meta.threads.get(thread as usize);
    let lane = meta.lanes.get(point.lane as usize);
    json!({
        "ts": time, "lane": point.lane, "class": class,
        "application": known.map(|thread| thread.application),
        "thread": known.map(|thread| thread.name.as_str()),
        "pid": known.and_then(|thread| thread.pid),
        "tid": known.and_then(|thread| thread.tid),
        "cpu": lane.and_then(|lane| lane.cpu),
    })
}

/// Number of events before a time that a filter keeps.
pub fn find(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let time = params.time("t")?;
    Ok(json!({ "from": Listed::new(&session.lanes, chosen.as_deref()).before(time) }))
}
