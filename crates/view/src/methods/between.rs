// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `deltas`: times between successive events of a class.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde_json::{Value, json};

use super::counting::{BINS_MAX, binned, is_whole};
use super::selecting::stretch;
use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// Limit of events whose times are kept, at 8 bytes each.
const KEPT_MAX: usize = 50_000_000;

/// Selects which events are successive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Per {
    /// All events of the class.
    All,
    /// Events of the same lane.
    Lane,
    /// Events of the same thread.
    Thread,
}

/// A histogram of the times between successive events of a class.
pub fn deltas(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let class = params.id("class")?;
    let bins = params.count("bins", 50)?.clamp(1, BINS_MAX) as usize;
    let per = match params.get("per").and_then(Value::as_str).unwrap_or("all") {
        "all" => Per::All,
        "lane" => Per::Lane,
        "thread" => Per::Thread,
        _ => return Err(Problem::new("cannot read the request", "per", "all, lane or thread")),
    };
    if session.lanes.meta().classes.get(class as usize).is_none() {
        return Err(Problem::new("no such event", class.to_string(), "load the page again"));
    }
    let stretch = stretch(session, params)?;
    let mut nanos = between(session, params.count("filter", 0)?, class, per, stretch)?;
    nanos.sort_unstable();
    let (edges, counts) = binned(&nanos, bins);
    let quality = if is_whole(session, stretch) { "exact" } else { "unknown" };
    let middle = nanos.get(nanos.len() / 2).copied();
    Ok(json!({
        "edges": edges, "counts": counts, "quality": quality, "count": nanos.len(),
        "min": nanos.first(), "median": middle, "max": nanos.last(),
    }))
}

/// Returns the times between successive events.
fn between(
    session: &Session,
    filter: u64,
    class: u32,
    per: Per,
    (begin, end): (i64, i64),
) -> Result<Vec<u64>, Problem> {
    let chosen = session.chosen(filter)?;
    let lanes = &session.lanes;
    let mut times: HashMap<u32, Vec<u64>, RandomState> = HashMap::default();
    let mut kept = 0;
    for lane in 0..lanes.count() {
        let Some(points) = lanes.points(lane) else { continue };
        let bits = chosen.as_ref().and_then(|chosen| chosen.bits(lane));
        let (from, to) = (points.before(begin), points.before(end));
        for (index, (of, thread)) in (from..to).zip(points.kinds(from, to)) {
            if u32::from(of) != class || bits.is_some_and(|bits| !bits.get(index)) {
                continue;
            }
            let series = match per {
                Per::All => 0,
                Per::Lane => lane,
                Per::Thread => thread,
            };
            times.entry(series).or_default().push(points.time(index));
            kept += 1;
        }
        if kept > KEPT_MAX {
            return Err(Problem::new("too much at once", "deltas", "choose a shorter time"));
        }
    }
    let mut nanos = Vec::with_capacity(kept);
    for series in times.values_mut() {
        series.sort_unstable();
        nanos.extend(series.windows(2).map(|pair| pair[1].saturating_sub(pair[0])));
    }
    Ok(nanos)
}
