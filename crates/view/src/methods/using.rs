// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `utilisation`: CPU utilisation by CPU, thread or application.

use std::collections::{BTreeMap, BTreeSet};

use lateralis_lanes::{Intervals, RowKind, Scale};
use lateralis_model::Quality;
use serde_json::{Value, json};

use crate::answer::{Answer, Numbers, Problem};
use crate::params::Params;
use crate::session::Session;

/// Limit of examined intervals.
const LOOKED_MAX: usize = 20_000_000;
/// Maximum number of listed threads or applications, those with the highest utilisation.
const TOLD_MAX: usize = 64;

/// Whether context switches of a CPU may be missing between two times, so that other threads can
/// have run: a thread was switched in, but is not known to have run until the next switch.
fn is_torn(session: &Session, lane: u32, running: &Intervals, (t0, t1): (i64, i64)) -> bool {
    let rows = &session.lanes.meta().rows;
    let mut seen = (0..rows.len())
        .filter(|row| (rows[*row].lane, rows[*row].kind) == (lane, RowKind::Seen))
        .filter_map(|row| session.lanes.row(row));
    seen.any(|(_, seen)| {
        let Some(last) = seen.before(t1.saturating_add(1)).checked_sub(1) else { return false };
        let came = seen.ends(last).0 as i64;
        let next = running.before(came.saturating_add(1));
        came >= t0 || next >= running.len() || running.ends(next).0 as i64 > t0
    })
}

/// Utilisation by pixel and by CPU, thread or application; for the last two, 1 is one CPU.
/// Intervals with missing context switches are excluded, and a share that could be larger is a
/// lower bound. CPUs without recorded switches have no row: a thread with events on a CPU need not
/// have run between these events.
pub fn utilisation(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let by = params.text("by")?;
    let scale = Scale::new(params.time("t0")?, params.time("t1")?, params.px()?);
    let meta = session.lanes.meta();
    if !["cpu", "thread", "application"].contains(&by) {
        return Err(Problem::new("cannot read the request", "by", "cpu, thread or application"));
    }
    let mut shares: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    // Rows whose utilisation may be higher than known.
    let mut open: BTreeSet<u32> = BTreeSet::new();
    let mut is_any_open = false;
    let mut looked = 0;
    for (row, told) in meta.rows.iter().enumerate() {
        let Some((_, intervals)) = session.lanes.row(row).filter(|_| told.kind == RowKind::Running)
        else {
            continue;
        };
        let (from, to) = intervals.touching(scale.t0, scale.t1);
        looked += to - from;
        if looked > LOOKED_MAX {
            return Err(Problem::new("too much at once", "utilisation", "choose a shorter time"));
        }
        let mut pixel = 0;
        // The occupancy of a CPU is unknown before its first switch, after its last one, and where
        // its events are missing.
        let known = intervals.len().checked_sub(1).map(|last| {
            let (begin, end) = (intervals.ends(0).0, intervals.ends(last).1);
            begin as i64 <= scale.t0 && scale.t1 <= end as i64
        });
        let is_here = |lane: Option<u32>| lane.is_none_or(|lane| lane == told.lane);
        let touches = |begin: u64, end: u64| begin as i64 <= scale.t1 && end as i64 >= scale.t0;
        let is_lost =
            meta.losses.iter().any(|lost| is_here(lost.lane) && touches(lost.begin, lost.end));
        let is_missing = meta.damage.iter().any(|of| {
            is_here(of.lane) && touches(of.begin.unwrap_or(0), of.end.unwrap_or(u64::MAX >> 1))
        });
        let is_torn = is_torn(session, told.lane, intervals, (scale.t0, scale.t1));
        let is_open = known != Some(true) || is_lost || is_missing || is_torn;
        is_any_open |= is_open;
        for index in from..to {
            let (begin, end) = intervals.ends(index);
            let (begin, end) = (begin as i64, end as i64);
            let who = match by {
                "cpu" => told.lane,
                "thread" => intervals.thread(index),
                _ => intervals.name(index),
            };
            if is_open {
                open.insert(who);
            }
            let share = shares.entry(who).or_insert_with(|| vec![0.0; scale.px as usize]);
            while pixel + 1 < scale.px && scale.pixel(pixel).1 <= begin {
                pixel += 1;
            }
            for at in pixel..scale.px {
                let (since, until) = scale.pixel(at);
                if since >= end {
                    break;
                }
                let part = end.min(until).saturating_sub(begin.max(since));
                share[at as usize] += part.max(0) as f64 / (until - since) as f64;
            }
        }
    }
    let mut all: Vec<(u32, Vec<f64>)> = shares.into_iter().collect();
    let sum = |share: &[f64]| share.iter().sum::<f64>();
    if by == "cpu" {
        all.sort_by_key(|(lane, _)| meta.lanes.get(*lane as usize).and_then(|lane| lane.cpu));
    } else {
        all.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)).then(a.0.cmp(&b.0)));
    }
    let count = all.len();
    all.truncate(TOLD_MAX.max(if by == "cpu" { count } else { 0 }));
    let name = |id: u32| -> Value {
        match by {
            "cpu" => meta.lanes.get(id as usize).map(|lane| lane.name.clone()),
            "thread" => meta.threads.get(id as usize).map(|thread| match thread.tid {
                Some(tid) if thread.name.is_empty() => tid.to_string(),
                _ => thread.name.clone(),
            }),
            _ => meta.applications.get(id as usize).map(|application| application.name.clone()),
        }
        .into()
    };
    let quality = |id: &u32| {
        // A thread may have run on any CPU.
        let is_open = if by == "cpu" { open.contains(id) } else { is_any_open };
        let quality = if is_open { Quality::LowerBound } else { Quality::Exact };
        quality.name()
    };
    let told: Vec<Value> = all
        .iter()
        .map(|(id, _)| {
            let mut told = json!({ "id": id, "name": name(*id), "quality": quality(id) });
            match by {
                "cpu" => {
                    told["cpu"] = meta.lanes.get(*id as usize).and_then(|lane| lane.cpu).into()
                }
                "thread" => {
                    let thread = meta.threads.get(*id as usize);
                    told["pid"] = thread.and_then(|thread| thread.pid).into();
                    told["tid"] = thread.and_then(|thread| thread.tid).into();
                }
                _ => {}
            }
            told
        })
        .collect();
    let column: Vec<f64> = all.into_iter().flat_map(|(_, share)| share).collect();
    let result = json!({ "by": by, "rows": told, "of": count, "px": scale.px });
    Ok(Answer::Columns(result, vec![("share", Numbers::F64(column))]))
}
