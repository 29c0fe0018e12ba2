// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `stats`, `histogram`: statistics of a selection.

use lateralis_analysis::Distribution;
use lateralis_lanes::{Budget, Listed, RowKind, quality_name};
use serde_json::{Value, json};

use super::opening::is_filtered;
use super::selecting::{self, each, is_left, stretch};
use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// Maximum number of bins in a histogram.
pub const BINS_MAX: u64 = 2000;

/// Whether a time range has no losses and no damage.
pub fn is_whole(session: &Session, (begin, end): (i64, i64)) -> bool {
    let meta = session.lanes.meta();
    let touches = |from: u64, to: u64| (from as i64) < end && to as i64 >= begin;
    !meta.losses.iter().any(|loss| touches(loss.begin, loss.end))
        && !meta.damage.iter().any(|d| touches(d.begin.unwrap_or(0), d.end.unwrap_or(meta.end)))
}

/// Whether all spans of a time range are in the index: neither lost, nor left out because of too
/// many rows.
pub fn spans_are_whole(session: &Session, stretch: (i64, i64)) -> bool {
    let rows = &session.lanes.meta().rows;
    is_whole(session, stretch)
        && !rows.iter().any(|row| row.left_out > 0 && row.kind == RowKind::Spans)
}

/// Durations of spans of one kind, and the numbers of spans with uncertain or unknown duration.
pub struct Gathered {
    pub nanos: Vec<u64>,
    pub uncertain: u64,
    pub unfinished: u64,
}

pub fn gathered(
    session: &Session,
    params: Params<'_>,
    of: Option<u32>,
) -> Result<Vec<Gathered>, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let lanes = &session.lanes;
    let mut kinds: Vec<Gathered> = (0..lanes.meta().span_kinds.len())
        .map(|_| Gathered { nanos: Vec::new(), uncertain: 0, unfinished: 0 })
        .collect();
    let keeps = |row: usize, intervals: &lateralis_lanes::Intervals, index: usize| {
        of.is_none_or(|of| of == intervals.name(index))
            && is_left(lanes, chosen.as_deref(), row, index)
    };
    each(lanes, stretch(session, params)?, &keeps, &mut |found, name| {
        let Some(kind) = kinds.get_mut(name as usize) else { return };
        let quality =
            lanes.row(found.row as usize).map_or(2, |(_, i)| i.quality(found.index as usize));
        match (found.duration, quality) {
            (u64::MAX, _) => kind.unfinished += 1,
            (nanos, 0) => kind.nanos.push(nanos),
            _ => kind.uncertain += 1,
        }
    });
    Ok(kinds)
}

/// Event counts, and distributions of durations of spans that begin in the selection.
pub fn stats(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let (begin, end) = stretch(session, params)?;
    let (lanes, meta) = (&session.lanes, session.lanes.meta());
    let is_whole = is_whole(session, (begin, end));
    let count_quality = |is_filtered: bool| quality_name(u8::from(!is_whole || is_filtered));
    let value_quality = if spans_are_whole(session, (begin, end)) { "exact" } else { "unknown" };
    let mut classes = vec![0u64; meta.classes.len()];
    if chosen.is_none() && selecting::is_all(session, (begin, end)) {
        classes = meta.classes.iter().map(|class| class.count).collect();
    } else {
        for lane in 0..lanes.count() {
            let Some(points) = lanes.points(lane) else { continue };
            let bits = chosen.as_ref().and_then(|chosen| chosen.bits(lane));
            let (from, to) = (points.before(begin), points.before(end));
            for (index, (class, _)) in (from..to).zip(points.kinds(from, to)) {
                if bits.is_none_or(|bits| bits.get(index))
                    && let Some(count) = classes.get_mut(class as usize)
                {
                    *count += 1;
                }
            }
        }
    }
    let listed = Listed::new(lanes, chosen.as_deref());
    let events = listed.before(end).saturating_sub(listed.before(begin));
    let classes = classes.iter().enumerate().filter(|(_, count)| **count > 0);
    let classes = classes.map(|(id, count)| {
        let quality = count_quality(is_filtered(meta, id));
        json!({ "id": id, "count": count, "quality": quality })
    });
    let mut spans = Vec::new();
    for (kind, told) in gathered(session, params, None)?.iter().zip(&meta.span_kinds) {
        let count = kind.nanos.len() as u64 + kind.uncertain;
        if count + kind.unfinished == 0 {
            continue;
        }
        let mut row = json!({
            "name": told.name, "count": count, "unfinished": kind.unfinished,
            "uncertain": kind.uncertain,
            "quality": if kind.uncertain > 0 { "unknown" } else { value_quality },
        });
        let durations = Distribution::of(&[&kind.nanos]);
        if !told.budgets.is_empty() {
            // An unfinished span can be longer than any other.
            let is_exact = row["quality"] == "exact" && kind.unfinished == 0;
            let budgets = told.budgets.iter().map(|of| budget(of, durations.as_ref(), is_exact));
            row["budgets"] = budgets.collect();
        }
        if let Some(d) = durations {
            let numbers = [
                ("total", d.total),
                ("min", d.min),
                ("max", d.max),
                ("p50", d.median),
                ("p90", d.p90),
                ("p99", d.p99),
                ("p999", d.p999),
            ];
            numbers.iter().for_each(|(name, value)| row[*name] = (*value).into());
            [("mean", d.mean), ("stddev", d.stddev)]
                .iter()
                .for_each(|(name, value)| row[*name] = (*value).into());
        }
        spans.push(row);
    }
    Ok(json!({
        "events": { "count": events, "quality": count_quality(!meta.filtered.is_empty()) },
        "classes": classes.collect::<Vec<_>>(),
        "spans": spans,
    }))
}

/// Compares durations with a budget, as `lat stats` does.
fn budget(of: &Budget, durations: Option<&Distribution>, is_exact: bool) -> Value {
    let whole = |d: &Distribution| {
        Some(match of.number.as_str() {
            "p50" => d.median,
            "p90" => d.p90,
            "p99" => d.p99,
            "p99.9" => d.p999,
            "max" => d.max,
            "min" => d.min,
            _ => return None,
        })
    };
    let measured: Option<Value> = match of.number.as_str() {
        "mean" => durations.map(|d| d.mean.into()),
        _ => durations.and_then(whole).map(Value::from),
    };
    let kept = measured.as_ref().and_then(Value::as_f64).and_then(|nanos| of.is_kept_by(nanos));
    // A maximum above the limit stays above it whatever else is missing.
    let is_sure = is_exact || of.number == "max" && kept == Some(false);
    let quality = if is_sure { "exact" } else { "unknown" };
    json!({ "text": of.text, "measured": measured, "kept": kept, "quality": quality })
}

/// Histogram of the durations of one kind of span, with logarithmic bins.
pub fn histogram(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let span = params.id("span")?;
    let bins = params.count("bins", 50)?.clamp(1, BINS_MAX) as usize;
    let none = || Problem::new("no such kind of span", span.to_string(), "load the page again");
    let mut kinds = gathered(session, params, Some(span))?;
    let kind = kinds.get_mut(span as usize).ok_or_else(none)?;
    let quality = if kind.uncertain > 0 || !spans_are_whole(session, stretch(session, params)?) {
        "unknown"
    } else {
        "exact"
    };
    let (edges, counts) = binned(&kind.nanos, bins);
    Ok(json!({ "edges": edges, "counts": counts, "quality": quality }))
}

/// Edges of logarithmic bins, and the count of each bin; both empty without durations.
pub fn binned(nanos: &[u64], bins: usize) -> (Vec<u64>, Vec<u64>) {
    let (Some(low), Some(high)) = (nanos.iter().min(), nanos.iter().max()) else {
        return (Vec::new(), Vec::new());
    };
    let edges = edges(*low, *high, bins);
    let counts = counted(nanos, &edges);
    (edges, counts)
}

/// Counts of values between successive edges.
pub fn counted(nanos: &[u64], edges: &[u64]) -> Vec<u64> {
    let mut counts = vec![0u64; edges.len().saturating_sub(1)];
    let Some(last) = counts.len().checked_sub(1) else { return counts };
    for nanos in nanos {
        let bin = edges.partition_point(|edge| edge <= nanos).saturating_sub(1);
        counts[bin.min(last)] += 1;
    }
    counts
}

/// Ascending integer edges; the first is `low`, and the last is above `high`.
pub fn edges(low: u64, high: u64, bins: usize) -> Vec<u64> {
    let first = low.max(1) as f64;
    let factor = (high as f64 + 1.0).max(first + 1.0) / first;
    let mut edges = vec![low];
    for bin in 1..=bins {
        let edge = first * factor.powf(bin as f64 / bins as f64);
        let edge = if bin == bins { high.saturating_add(1) } else { edge.round() as u64 };
        // Bins narrower than a nanosecond are merged.
        if edges.last().is_some_and(|last| edge > *last) && (bin == bins || edge <= high) {
            edges.push(edge);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::edges;

    #[test]
    fn edges_ascend_and_hold_all() {
        for (low, high, bins) in
            [(0, 0, 1), (0, 5, 50), (7, 7, 10), (100, 1_000_000, 40), (0, u64::MAX, 9)]
        {
            let edges = edges(low, high, bins);
            assert!(edges.len() >= 2 && edges.is_sorted_by(|a, b| a < b), "{edges:?}");
            assert_eq!(edges[0], low);
            assert!(edges[edges.len() - 1] > high || high == u64::MAX);
        }
    }
}
