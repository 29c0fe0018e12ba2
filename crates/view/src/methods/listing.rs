// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `events`, `find`: the list.

use lateralis_lanes::{Listed, PointRef};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;
use crate::told;

/// Rows of an answer.
const ROWS_MAX: u64 = 1000;

/// Some events of a filter.
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

/// What the index says of an event.
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

/// How many events of a filter are before a time.
pub fn find(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let time = params.time("t")?;
    Ok(json!({ "from": Listed::new(&session.lanes, chosen.as_deref()).before(time) }))
}
