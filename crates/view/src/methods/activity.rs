// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lane_activity`: contents of lanes in a time range, for hiding, sorting and summaries.

use lateralis_analysis::ThreadState;
use lateralis_lanes::{Chosen, Intervals, Left, RowKind};
use serde_json::json;

use super::scheduling::exits_after;
use super::selecting::stretch;
use super::sharing::{shared, threads};
use crate::answer::{Answer, Numbers, Problem};
use crate::indexing::UNKNOWN_STATE;
use crate::params::Params;
use crate::rows::{Drawn, drawn_together};
use crate::session::Session;

/// Maximum number of states examined to find one that is not sleep.
const STATES_EXAMINED_MAX: usize = 64;

/// Contents of a lane in a time range.
#[derive(Default)]
struct Activity {
    /// Number of its events, and of intervals that touch the range.
    things: u64,
    /// Time of the first event, or begin of the first interval.
    first: Option<i64>,
    /// Nanoseconds in which its thread, or any thread on its CPU, ran.
    busy: Option<u64>,
    /// Whether its thread can have run for longer, because its state is not known in the whole range.
    is_open: bool,
    /// Number of each row, and whether the row has any content.
    rows: Vec<(u32, bool)>,
}

impl Activity {
    fn sees(&mut self, first: Option<i64>) {
        self.first = match (self.first, first) {
            (Some(known), Some(first)) => Some(known.min(first)),
            (known, first) => known.or(first),
        };
    }
}

/// A request.
struct Asked<'a> {
    session: &'a Session,
    filter: u64,
    chosen: Option<&'a Chosen>,
    range: (i64, i64),
    /// Numbers of the names of states, if they occur.
    running: Option<u32>,
    unknown: Option<u32>,
    sleeping: Option<u32>,
}

impl Asked<'_> {
    fn left(&self, row: usize) -> Option<&Left> {
        self.chosen.and_then(|chosen| chosen.left(&self.session.lanes, row))
    }

    fn of_lane(&self, lane: u32) -> Activity {
        let mut activity = Activity::default();
        for (number, drawn) in self.session.rows_of(lane) {
            let first = match drawn {
                Drawn::Events => self.events(lane, &mut activity.things),
                Drawn::Intervals(row) => self.intervals(row, &mut activity),
                Drawn::Packed(row) => {
                    let rows = drawn_together(&self.session.lanes, row).into_iter();
                    rows.filter_map(|row| self.intervals(row, &mut activity)).min()
                }
                Drawn::Found(script, row) => self.found(script, row),
                Drawn::Level(counter) => self.level(counter),
                // Calls are decoded when they are drawn: whether there are any is not known before.
                Drawn::Calls(..) => Some(self.range.0),
            };
            activity.rows.push((number, first.is_some()));
            activity.sees(first);
        }
        activity
    }

    fn events(&self, lane: u32, things: &mut u64) -> Option<i64> {
        let points = self.session.lanes.points(lane)?;
        let (from, to) = (points.before(self.range.0), points.before(self.range.1));
        let bits = self.chosen.and_then(|chosen| chosen.bits(lane));
        let (from, to) = bits.map_or((from, to), |bits| (bits.rank(from), bits.rank(to)));
        *things += to.saturating_sub(from) as u64;
        let first = (from < to).then(|| bits.map_or(Some(from), |bits| bits.select(from)))??;
        i64::try_from(points.time(first)).ok()
    }

    fn intervals(&self, row: usize, of: &mut Activity) -> Option<i64> {
        let (told, intervals) = self.session.lanes.row(row)?;
        let left = self.left(row);
        of.things += intervals.count_touching(left, self.range) as u64;
        match told.kind {
            RowKind::Running => of.busy = Some(intervals.covered(left, None, self.range)),
            RowKind::ThreadStates => {
                of.is_open = self.is_open(row, intervals);
                of.busy = self.running.map(|name| intervals.covered(left, Some(name), self.range));
                return self.states(intervals, left);
            }
            _ => {}
        }
        intervals.first_touching(left, self.range, 1, |_| true)
    }

    /// Whether the state of a thread is unknown in a part of the range, within the session.
    fn is_open(&self, row: usize, states: &Intervals) -> bool {
        let meta = self.session.lanes.meta();
        let time = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
        let (begin, end) = (self.range.0.max(time(meta.begin)), self.range.1.min(time(meta.end)));
        let (from, to) = states.touching(begin, end);
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return true };
        let unknown = self.unknown.map_or(0, |name| states.covered(None, Some(name), (begin, end)));
        let is_known_up_to_end =
            time(states.ends(last).1) >= end || exits_after(&self.session.lanes, row, last);
        unknown > 0 || time(states.ends(from).0) > begin || !is_known_up_to_end
    }

    /// A thread that sleeps in the whole range is inactive.
    fn states(&self, states: &Intervals, left: Option<&Left>) -> Option<i64> {
        let is_awake = |index| Some(states.name(index)) != self.sleeping;
        states.first_touching(left, self.range, STATES_EXAMINED_MAX, is_awake)
    }

    fn found(&self, script: u32, row: usize) -> Option<i64> {
        let ran = self.session.common.scripts.get(script).ok()?;
        let found = ran.found()?;
        let rows = drawn_together(&found.lanes, row).into_iter();
        let first = rows.filter_map(|row| {
            let left = ran.left(self.session, (self.filter, self.chosen), &found, row);
            found.lanes.row(row)?.1.first_touching(left.as_deref(), self.range, 1, |_| true)
        });
        first.min()
    }

    /// A counter has a value from its first change on.
    fn level(&self, counter: u32) -> Option<i64> {
        let Some(levels) = self.session.lanes.levels(counter).filter(|levels| !levels.is_empty())
        else {
            // The counter of recorded instructions is computed when it is drawn.
            let flows = &self.session.lanes.meta().flows;
            return flows.iter().any(|flow| flow.counter == counter).then_some(self.range.0);
        };
        let first = i64::try_from(levels.point(0).0).unwrap_or(i64::MAX);
        (first < self.range.1).then_some(first.max(self.range.0))
    }
}

/// Contents of each lane from `t0` to `t1`, with a filter applied.
pub fn lane_activity(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let (begin, end) = stretch(session, params)?;
    let filter = params.count("filter", 0)?;
    let chosen = session.chosen(filter)?;
    let names = &session.lanes.meta().names;
    let number = |state: &str| {
        // Names of kinds of spans come first, and can be equal to names of states.
        let number = names.iter().rposition(|name| name == state)?;
        u32::try_from(number).ok()
    };
    let asked = Asked {
        session,
        filter,
        chosen: chosen.as_deref(),
        range: (begin, end.max(begin.saturating_add(1))),
        running: number(ThreadState::Running.name()),
        unknown: number(UNKNOWN_STATE),
        sleeping: number(ThreadState::Sleeping.name()),
    };
    let lanes = session.lanes.count();
    let of_lane = |lane: usize| asked.of_lane(lane as u32);
    let all = shared(lanes as usize, threads(u64::from(lanes) << 8), &of_lane);
    let (mut row_lanes, mut rows, mut has) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, activity) in (0u32..).zip(&all) {
        for (row, is_any) in &activity.rows {
            row_lanes.push(lane);
            rows.push(*row);
            has.push(u8::from(*is_any));
        }
    }
    let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let columns = vec![
        ("things", Numbers::F64(all.iter().map(|of| of.things as f64).collect())),
        ("first", Numbers::F64(all.iter().map(|of| number(of.first.map(|t| t as f64))).collect())),
        ("busy", Numbers::F64(all.iter().map(|of| number(of.busy.map(|t| t as f64))).collect())),
        ("busy_open", Numbers::U8(all.iter().map(|of| of.is_open.into()).collect())),
        ("row_lane", Numbers::U32(row_lanes)),
        ("row", Numbers::U32(rows)),
        ("has", Numbers::U8(has)),
    ];
    Ok(Answer::Columns(json!({ "lanes": lanes }), columns))
}
