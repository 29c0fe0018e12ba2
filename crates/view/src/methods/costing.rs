// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `tracepoints`: cycles between two points of a program by key, with and without the cost of the
//! tracepoints.

use lateralis_analysis::tracepoints::{Moments, OwnCost, own_cost};
use lateralis_model::{Event, Interval};
use lateralis_store::Chosen;
use lateralis_store::tracepoints::{Gathered, gather};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::selecting::{Reading, is_all, stretch};
use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// Maximum number of rows in a response.
const ROWS_MAX: usize = 2000;

/// Statistics of each tracepoint; for a pair of nested tracepoints, also the cost of a tracepoint.
pub fn tracepoints(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let source = session.source()?;
    let recording = &source.recording;
    let reading = Reading::new(session, &source, params.count("filter", 0)?)?;
    let stretch = stretch(session, params)?;
    let origin = session.lanes.meta().origin;
    let [begin, end] = [stretch.0, stretch.1].map(|t| Nanos(origin.saturating_add(t)));
    // The thread on a CPU depends on earlier events: everything up to the end is read.
    let end_last = Nanos(end.0.saturating_sub(1));
    let interval = Interval { begin: None, end: (!is_all(session, stretch)).then_some(end_last) };
    let contains = |event: &Event<'_>| reading.keeps(event) && event.time >= begin;
    let begins = || reading.begin();
    let chosen =
        Chosen { interval, contains: &contains, begins: &begins, ..Chosen::all(recording) };
    let gathered = gather(&chosen, session.frequency_hz());
    let cost = cost_of(&gathered, params)?;
    let plain = gathered.cycles();
    let less = cost.as_ref().map(|cost| gathered.samples(|entry| cost.less(entry)));
    let mut less = less.map(Vec::into_iter);
    let rows = gathered.rows.iter().zip(plain).map(|(row, mut cycles)| {
        let without = less.as_mut().and_then(Iterator::next);
        let without = without.and_then(|mut cycles| Moments::of(&mut cycles));
        json!({
            "label": row.label(), "name": row.name, "key": row.key, "quality": row.quality.name(),
            "ns_per_cycle": row.nanos(1.0),
            "cycles": Moments::of(&mut cycles).as_ref().map(moments),
            "less": without.as_ref().map(moments),
        })
    });
    let rows: Vec<Value> = rows.take(ROWS_MAX).collect();
    let odd = &gathered.odd;
    Ok(json!({
        "rows": rows, "count": gathered.rows.len(), "joined": gathered.joined,
        "odd": {
            "stops": odd.stops, "restarts": odd.restarts, "open": odd.open,
            "backwards": odd.backwards,
        },
        "cost": cost.map(|cost| json!({
            "effective": moments(&cost.effective), "total": moments(&cost.total),
            "unpaired": cost.unpaired,
        })),
        "is_lossy": gathered.lossy,
    }))
}

fn moments(of: &Moments) -> Value {
    json!({
        "count": of.count, "min": of.min, "max": of.max, "mean": of.mean, "stddev": of.stddev,
        "q1": of.quartile_1, "median": of.median, "q3": of.quartile_3,
    })
}

/// Cost of a tracepoint, measured from the two tracepoints that the request names.
fn cost_of(gathered: &Gathered, params: Params<'_>) -> Result<Option<OwnCost>, Problem> {
    if params.get("outer").is_none() && params.get("inner").is_none() {
        return Ok(None);
    }
    let (outer, inner) = (params.text("outer")?, params.text("inner")?);
    let find = |label: &str| {
        let found = gathered.rows.iter().position(|row| row.label() == label);
        found.ok_or_else(|| Problem::new("no such tracepoint", label, "choose another"))
    };
    let (first, second) = (find(outer)?, find(inner)?);
    let cost = own_cost(&gathered.entries, first as u32, second as u32);
    let cost = cost.filter(|_| first != second).ok_or_else(|| {
        let advice = "no pair of the second lies alone inside one of the first: START(outer) \
                      START(inner) STOP(inner) STOP(outer)";
        Problem::new("cannot tell the cost of a tracepoint", format!("{outer}, {inner}"), advice)
    })?;
    Ok(Some(cost))
}
