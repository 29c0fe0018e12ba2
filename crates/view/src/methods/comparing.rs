// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `sides`, `compare`, `histograms`: comparison of recordings.

use std::sync::Arc;

use lateralis_analysis::diff::Options;
use lateralis_model::{Event, Quality};
use lateralis_store::Chosen;
use lateralis_store::compared::{Comparison, Difference, Observed, Of};
use serde_json::{Value, json};

use super::counting::{BINS_MAX, counted, edges, gathered, spans_are_whole};
use super::selecting::{Reading, stretch};
use crate::answer::Problem;
use crate::params::Params;
use crate::session::{Session, lock};

/// Maximum number of listed differences.
const LISTED_MAX: usize = 500;

/// The most recent comparison, and its response: a comparison reads every event.
pub type Compared = Option<(String, Arc<Value>)>;

/// Lists the recordings that can be compared, and opens them.
pub fn sides(session: &Session) -> Result<Value, Problem> {
    let mut told = Vec::new();
    for side in 0..session.sides.count() {
        let of = session.sides.get(side)?;
        let meta = of.lanes.meta();
        let path = session.sides.path(side).map(|path| path.display().to_string());
        told.push(json!({
            "side": side, "path": path, "origin": meta.origin.to_string(), "begin": 0,
            "end": meta.end, "events": of.lanes.event_count(),
            "quality": super::opening::count_quality(meta),
        }));
    }
    Ok(json!({ "sides": told }))
}

/// Good and bad recordings of a request; by default the first one, and all others.
fn pair(session: &Session, params: Params<'_>) -> Result<(Vec<u32>, Vec<u32>), Problem> {
    let count = session.sides.count();
    let of = |name: &str, otherwise: Vec<u32>| -> Result<Vec<u32>, Problem> {
        let ids = params.ids(name)?;
        let ids = if ids.is_empty() { otherwise } else { ids };
        if ids.is_empty() || ids.iter().any(|side| *side >= count) {
            let advice = "give lat view a good and a bad recording";
            return Err(Problem::new("nothing to compare with", name, advice));
        }
        Ok(ids)
    };
    Ok((of("good", (0..count.min(1)).collect())?, of("bad", (1..count).collect())?))
}

/// Ranks definite and possible changes in the same way as `lat diff`.
pub fn compare(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let (good, bad) = pair(session, params)?;
    let number = params.count("filter", 0)?;
    let what = format!("{good:?} {bad:?} {number}");
    if let Some((known, answer)) = &*lock(&session.compared)
        && *known == what
    {
        return Ok(Value::clone(answer));
    }
    let observe = |sides: &[u32]| -> Result<Vec<Observed>, Problem> {
        sides.iter().map(|side| observed(session, *side, number)).collect()
    };
    let options = Options::default();
    let comparison = Comparison::of(&observe(&good)?, &observe(&bad)?, &options);
    let answer = Arc::new(told(&comparison, &options));
    *lock(&session.compared) = Some((what, Arc::clone(&answer)));
    Ok(Value::clone(&answer))
}

/// Measurements of a recording with a filter of the whole session applied.
fn observed(session: &Session, side: u32, filter: u64) -> Result<Observed, Problem> {
    let asked = json!({ "filter": filter });
    let (of, own) = session.sides.of_request(session, side, &asked, true)?;
    let source = of.source()?;
    let reading = Reading::new(&of, &source, Params(&own).count("filter", 0)?)?;
    let contains = |event: &Event<'_>| reading.keeps(event);
    let begins = || reading.begin();
    let all = Chosen::all(&source.recording);
    Ok(Observed::of(&Chosen { contains: &contains, begins: &begins, ..all }))
}

fn told(comparison: &Comparison, options: &Options) -> Value {
    let list = |all: &[Difference]| all.iter().take(LISTED_MAX).map(difference).collect::<Vec<_>>();
    json!({
        "differences": list(&comparison.differences), "perhaps": list(&comparison.perhaps),
        "count": comparison.differences.len(), "compared": comparison.compared,
        "threshold": options.threshold, "events": [comparison.events.0, comparison.events.1],
        "seconds": [comparison.seconds.0, comparison.seconds.1],
        "is_lossy": [comparison.is_lossy.0, comparison.is_lossy.1],
        "pace": comparison.pace.map(|pace| json!({
            "factor": pace.factor, "least": pace.interval.0, "most": pace.interval.1,
            "is_program": pace.is_program,
        })),
    })
}

fn difference(of: &Difference) -> Value {
    let quality = if of.quality == Quality::Exact { Quality::Exact } else { Quality::Unknown };
    json!({
        "kind": of.of.name(), "name": of.name, "what": of.what.name(), "is_worse": of.is_worse(),
        "is_time": of.of != Of::Count,
        "before": of.shift.before, "after": of.shift.after,
        // There is no ratio to zero.
        "ratio": (of.shift.before != 0.0).then(|| of.shift.ratio()),
        "ratio_least": of.shift.factor.0, "ratio_most": of.shift.factor.1,
        "explained": of.explained_ns, "probability": of.probability,
        "count_before": of.count.0, "count_after": of.count.1, "quality": quality.name(),
    })
}

/// Histograms of the durations of one kind of span in each recording, with equal bins.
pub fn histograms(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let name = params.text("span")?;
    let bins = params.count("bins", 50)?.clamp(1, BINS_MAX) as usize;
    let (good, bad) = pair(session, params)?;
    let mut found: Vec<(u32, Vec<u64>, &str)> = Vec::new();
    for side in good.into_iter().chain(bad) {
        let (of, own) = session.sides.of_request(session, side, params.0, true)?;
        let kinds = &of.lanes.meta().span_kinds;
        let kind = kinds.iter().position(|kind| kind.name == name);
        let (mut nanos, mut quality) = (Vec::new(), "exact");
        if let Some(kind) = kind {
            let mut all = gathered(&of, Params(&own), Some(kind as u32))?;
            let own_stretch = stretch(&of, Params(&own))?;
            if all[kind].uncertain > 0 || !spans_are_whole(&of, own_stretch) {
                quality = "unknown";
            }
            nanos = std::mem::take(&mut all[kind].nanos);
            nanos.sort_unstable();
        }
        found.push((side, nanos, quality));
    }
    let low = found.iter().filter_map(|(_, nanos, _)| nanos.first()).min();
    let high = found.iter().filter_map(|(_, nanos, _)| nanos.last()).max();
    let edges = match (low, high) {
        (Some(low), Some(high)) => edges(*low, *high, bins),
        _ => Vec::new(),
    };
    let sides: Vec<Value> = found
        .iter()
        .map(|(side, nanos, quality)| {
            json!({
                "side": side, "counts": counted(nanos, &edges), "count": nanos.len(),
                "median": nanos.get(nanos.len() / 2), "quality": quality,
            })
        })
        .collect();
    Ok(json!({ "edges": edges, "sides": sides }))
}
