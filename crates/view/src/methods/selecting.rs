// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which spans are meant: of a kind or a script, of a filter, in a stretch of time.

use std::cell::RefCell;
use std::sync::Arc;

use lateralis_lanes::{Chosen, Intervals, Lanes, RowKind};
use lateralis_model::Event;
use lateralis_store::facts::Facts;

use crate::answer::Problem;
use crate::params::Params;
use crate::scripts::{Lasts, Places, point_of};
use crate::session::{Session, Source};

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
    let first = i64::try_from(session.lanes.meta().begin).unwrap_or(i64::MAX);
    let begin = params.time_or("t0", Some(first))?.unwrap_or(first);
    Ok((begin, params.time_or("t1", Some(end))?.unwrap_or(end).max(begin)))
}

/// Whether a stretch is all there is.
pub fn is_all(session: &Session, (begin, end): (i64, i64)) -> bool {
    // Counts of classes go on counting what was forgotten.
    session.growth.is_none()
        && begin <= 0
        && end >= i64::try_from(session.lanes.meta().end).unwrap_or(i64::MAX)
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

/// What a filter leaves, for whoever reads the trace again from its begin, event by event.
pub struct Reading<'a> {
    session: &'a Session,
    source: &'a Source,
    places: Places,
    chosen: Option<Arc<Chosen>>,
    /// What the events so far say, and where each lane is.
    known: RefCell<(Facts, Lasts)>,
}

impl<'a> Reading<'a> {
    /// By a filter of the session.
    ///
    /// # Errors
    /// There is none; or what its scripts have to say.
    pub fn new(session: &'a Session, source: &'a Source, filter: u64) -> Result<Self, Problem> {
        let (chosen, places) = (session.chosen(filter)?, Places::new(&session.lanes));
        Ok(Self { session, source, places, chosen, known: RefCell::default() })
    }

    /// Before the first event, each time that they are read.
    pub fn begin(&self) {
        let facts = Facts::new(&self.source.trace, &self.source.recording.streams);
        *self.known.borrow_mut() = (facts, Lasts::default());
    }

    /// Takes an event of which it is not asked whether it is left; in front of all of which it is.
    pub fn passes(&self, event: &Event<'_>) {
        if self.chosen.is_some() {
            self.known.borrow_mut().0.of(event, |_, _| {});
        }
    }

    /// Whether the next event is left.
    #[must_use]
    pub fn keeps(&self, event: &Event<'_>) -> bool {
        // What stands on no lane is no event of the session.
        let is_shown = self.source.classes.contains_key(&event.class.name);
        let Some(chosen) = &self.chosen else { return is_shown };
        let (facts, lasts) = &mut *self.known.borrow_mut();
        let at = facts.of(event, |_, _| {});
        let lane = self.places.of(event, &at, &self.source.recording.streams);
        let lane = lane.filter(|_| is_shown);
        let tag = lasts.tag(lane, at.time.0);
        let point = point_of(&self.session.lanes, tag, at.time.0);
        point.is_some_and(|point| chosen.has(point))
    }
}
