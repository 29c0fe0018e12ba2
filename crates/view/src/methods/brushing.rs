// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `brushed`: places of spans with durations in a range, to highlight them.

use lateralis_lanes::{Intervals, Scale};
use serde_json::{Value, json};

use super::selecting::is_left;
use crate::answer::{Answer, Numbers, Problem};
use crate::params::Params;
use crate::rows::Drawn;
use crate::session::Session;

/// Limit of examined spans.
const LOOKED_MAX: usize = 20_000_000;
/// Limit of intervals in a response: a row has at most one per pixel, and no screen has more pixels.
const STRETCHES_MAX: usize = 1 << 18;

/// A range of durations, both ends included, of all spans or of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brush {
    kind: Option<u32>,
    least_ns: u64,
    most_ns: u64,
}

impl Brush {
    /// Reads the range of a request; `None` if it has none.
    ///
    /// # Errors
    /// If a parameter is not a number.
    pub fn of(params: Params<'_>) -> Result<Option<Self>, Problem> {
        if params.get("least").is_none() && params.get("most").is_none() {
            return Ok(None);
        }
        let kind = params.get("kind").map(|_| params.id("kind")).transpose()?;
        // Unfinished spans have no duration.
        let most_ns = params.count("most", u64::MAX)?.min(u64::MAX - 1);
        Ok(Some(Self { kind, least_ns: params.count("least", 0)?, most_ns }))
    }

    /// Whether a duration is in the range.
    #[must_use]
    pub fn has(&self, duration_ns: u64) -> bool {
        (self.least_ns..=self.most_ns).contains(&duration_ns)
    }

    fn holds(&self, intervals: &Intervals, index: usize) -> bool {
        let (begin, end) = intervals.ends(index);
        self.kind.is_none_or(|kind| kind == intervals.name(index))
            && !intervals.is_unfinished(index)
            && self.has(end - begin)
    }
}

/// Returns intervals of rows that cover the pixels of such spans.
pub fn brushed(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let wrong = || Problem::new("cannot read the request", "least, most", "expected durations");
    let brush = Brush::of(params)?.ok_or_else(wrong)?;
    let scale = Scale::new(params.time("t0")?, params.time("t1")?, params.px()?);
    let lanes = params.ids("lanes")?;
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let nanos_per_px = ((scale.t1 - scale.t0) / i64::from(scale.px)).max(1);
    let (mut looked, mut count) = (0, 0u64);
    let mut told: Vec<Value> = Vec::new();
    let (mut rows, mut begins, mut ends) = (Vec::new(), Vec::<f64>::new(), Vec::<f64>::new());
    for lane in lanes {
        for (number, drawn) in session.rows_of(lane) {
            let Drawn::Intervals(row) = drawn else { continue };
            let Some((of, intervals)) = session.lanes.row(row) else { continue };
            if of.kind != lateralis_lanes::RowKind::Spans {
                continue;
            }
            let (from, to) = intervals.touching(scale.t0, scale.t1);
            looked += to - from;
            if looked > LOOKED_MAX {
                return Err(Problem::new("too much at once", "brushed", "choose a shorter time"));
            }
            let place = told.len() as u32;
            let mut last_end = i64::MIN;
            for index in from..to {
                if !brush.holds(intervals, index)
                    || !is_left(&session.lanes, chosen.as_deref(), row, index)
                {
                    continue;
                }
                count += 1;
                let (begin, end) = intervals.ends(index);
                let (begin, end) =
                    (begin as i64, (end as i64).max((begin as i64).saturating_add(1)));
                // Spans within a pixel of each other cannot be distinguished and are merged.
                if last_end != i64::MIN && begin.saturating_sub(last_end) < nanos_per_px {
                    if let Some(last) = ends.last_mut() {
                        *last = end as f64;
                    }
                } else if rows.len() < STRETCHES_MAX {
                    rows.push(place);
                    begins.push(begin as f64);
                    ends.push(end as f64);
                }
                last_end = end;
            }
            told.push(json!({ "lane": lane, "row": number }));
        }
    }
    let columns = vec![
        ("row", Numbers::U32(rows)),
        ("begin", Numbers::F64(begins)),
        ("end", Numbers::F64(ends)),
    ];
    Ok(Answer::Columns(json!({ "rows": told, "count": count }), columns))
}
