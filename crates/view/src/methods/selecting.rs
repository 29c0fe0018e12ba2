// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which spans are meant: of a kind or a script, of a filter, in a stretch of time.

use lateralis_lanes::{Chosen, Intervals, Lanes, RowKind};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// A span: its row and place there.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub row: u32,
    pub index: u32,
    pub begin: u64,
    /// `u64::MAX` of one that has not ended.
    pub duration: u64,
}

/// The stretch of time of a request; all where it says nothing.
pub fn stretch(session: &Session, params: Params<'_>) -> Result<(i64, i64), Problem> {
    let end = i64::try_from(session.lanes.meta().end).unwrap_or(i64::MAX);
    let begin = params.time_or("t0", Some(0))?.unwrap_or(0);
    Ok((begin, params.time_or("t1", Some(end))?.unwrap_or(end).max(begin)))
}

/// Whether a stretch is all there is.
pub fn is_all(session: &Session, (begin, end): (i64, i64)) -> bool {
    begin <= 0 && end >= i64::try_from(session.lanes.meta().end).unwrap_or(i64::MAX)
}

/// Shows each span that begins in a stretch, and is left.
pub fn each(
    lanes: &Lanes,
    (begin, end): (i64, i64),
    keeps: &dyn Fn(usize, &Intervals, usize) -> bool,
    see: &mut dyn FnMut(Found, u32),
) {
    for (row, told) in lanes.meta().rows.iter().enumerate() {
        let Some((_, intervals)) = lanes.row(row).filter(|_| told.kind == RowKind::Spans) else {
            continue;
        };
        for index in intervals.before(begin)..intervals.before(end) {
            if !keeps(row, intervals, index) {
                continue;
            }
            let (since, until) = intervals.ends(index);
            let duration = if intervals.is_unfinished(index) { u64::MAX } else { until - since };
            let found = Found { row: row as u32, index: index as u32, begin: since, duration };
            see(found, intervals.name(index));
        }
    }
}

/// Whether a filter leaves a span of the session.
pub fn is_left(lanes: &Lanes, chosen: Option<&Chosen>, row: usize, index: usize) -> bool {
    chosen.is_none_or(|chosen| chosen.keeps(lanes, row, index))
}
