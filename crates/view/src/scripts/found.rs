// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of scripts: spans, called activities.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use lateralis_lanes::{
    Builder, Chosen, Interval, Intervals, Lanes, Meta, NONE, PointRef, RowKind, Shared,
};
use lateralis_script::{Activities, Activity, End, Scalar};

use super::places::Places;
use crate::answer::Problem;
use crate::session::{Session, lock};

/// Limit of activities of one script.
pub const FOUND_MAX: usize = 4_000_000;
/// Tag of an event without a lane.
pub const NOWHERE: u64 = u64::MAX;
/// A script counts as lagging if the session is ahead of it by more than this; the newest events
/// are examined while the session is drawn.
const BEHIND_NANOS: u64 = 1_000_000_000;

/// Attributes of an activity that its row does not contain.
pub struct Told {
    /// Key of the activity.
    pub key: String,
    /// Thread of the activity.
    pub thread: u32,
}

/// Attributes of activities in a live session, by number.
pub type Telling = Arc<Mutex<HashMap<u32, (u64, Told), RandomState>>>;

/// Attributes that rows do not contain, by the number stored in [`Intervals::thread`].
pub enum Rest {
    /// Attributes of all activities.
    Whole(Vec<Told>),
    /// Attributes of the activities that are not evicted, with the end of each.
    Growing(Telling),
}

/// Results of a script up to some time.
pub struct Found {
    /// Rows of activities, on the lanes of the session. Indices of events include evicted ones.
    pub lanes: Lanes,
    /// Further attributes of each activity.
    pub rest: Rest,
    /// Number of completed activities.
    pub count: u64,
    /// Time up to which events were examined, relative to the origin.
    pub until: u64,
    /// The newest snapshot that was examined, and the number of examinations so far.
    pub serial: (u64, u64),
    /// The newest snapshot that was examined completely.
    pub done: u64,
    /// Reason why the script was stopped.
    pub stopped: Option<Problem>,
}

impl Found {
    fn told<T>(&self, row: &Intervals, index: usize, of: impl Fn(&Told) -> T) -> Option<T> {
        let number = row.thread(index);
        match &self.rest {
            Rest::Whole(all) => all.get(number as usize).map(of),
            Rest::Growing(all) => lock(all).get(&number).map(|(_, told)| of(told)),
        }
    }

    /// Key of an activity, if its script sets one.
    #[must_use]
    pub fn key(&self, row: &Intervals, index: usize) -> Option<String> {
        self.told(row, index, |told| told.key.clone()).filter(|key| !key.is_empty())
    }

    /// Thread of an activity.
    #[must_use]
    pub fn thread(&self, row: &Intervals, index: usize) -> u32 {
        self.told(row, index, |told| told.thread).unwrap_or(NONE)
    }

    /// Whether a filter keeps an activity: both events must be kept, as with declared spans.
    #[must_use]
    pub fn is_left(&self, session: &Session, chosen: &Chosen, row: usize, index: usize) -> bool {
        let Some((_, intervals)) = self.lanes.row(row) else { return false };
        intervals.events(index).into_iter().flatten().all(|point| {
            let forgotten = session.lanes.points(point.lane).map_or(0, |of| of.forgotten());
            // Event numbers are modulo 2^32. For evicted events, the filter's result is unknown.
            let index = point.index.wrapping_sub(forgotten as u32);
            (index as i32) < 0 || chosen.has(PointRef { index, ..point })
        })
    }

    /// End of the examined time if the script lags, because it was stopped or is too slow.
    #[must_use]
    pub fn behind(&self, session: &Session) -> Option<u64> {
        let end = session.lanes.meta().end;
        let most = if self.stopped.is_some() { 0 } else { BEHIND_NANOS };
        (session.growth.is_some() && end.saturating_sub(self.until) > most).then_some(self.until)
    }
}

/// State of a search for activities.
pub struct Finding {
    pub activities: Activities,
    pub found: Vec<Activity>,
    pub places: Lasts,
}

/// The last event of each lane.
#[derive(Default)]
pub struct Lasts(Vec<Last>);

/// Time of the last event of a lane, and number of earlier events with that time.
#[derive(Clone, Default)]
struct Last {
    time: Option<i64>,
    before: u32,
}

impl Lasts {
    /// Returns a tag that identifies an event by its lane and its position among events with the
    /// same time.
    pub fn tag(&mut self, lane: Option<u32>, time: i64) -> u64 {
        let Some(lane) = lane else { return NOWHERE };
        if self.0.len() <= lane as usize {
            self.0.resize(lane as usize + 1, Last::default());
        }
        let last = &mut self.0[lane as usize];
        let before = if last.time == Some(time) { last.before + 1 } else { 0 };
        *last = Last { time: Some(time), before };
        u64::from(lane) << 32 | u64::from(before)
    }
}

/// Finds the event of a tag and a time; `None` if the lane has no such event.
pub fn point_of(lanes: &Lanes, tag: u64, time: i64) -> Option<PointRef> {
    let (lane, before) = ((tag >> 32) as u32, tag as u32);
    let points = lanes.points(lane).filter(|_| tag != NOWHERE)?;
    let since = i128::from(time) - i128::from(lanes.meta().origin);
    let since = i64::try_from(since).ok()?;
    let index = points.before(since) + before as usize;
    let is_it = index < points.len() && points.time(index) == since as u64;
    is_it.then_some(PointRef { lane, index: index as u32 })
}

/// The event at which an activity begins or ends; its index includes evicted events.
pub fn point(lanes: &Lanes, end: &End) -> Option<PointRef> {
    let point = point_of(lanes, end.tag, end.time.0)?;
    let forgotten = lanes.points(point.lane)?.forgotten();
    Some(PointRef { index: u64::from(point.index).wrapping_add(forgotten) as u32, ..point })
}

pub fn key(key: &[Scalar]) -> String {
    let parts: Vec<String> = key.iter().map(ToString::to_string).collect();
    parts.join(" ")
}

/// Builds rows of activities, on the lane of the CPU on which they began, or of their thread.
pub fn rows(
    session: &Session,
    places: &Places,
    names: Vec<String>,
    found: Vec<Activity>,
) -> Result<Lanes, Problem> {
    let meta = session.lanes.meta();
    let mut builder = Builder::default();
    for lane in &meta.lanes {
        builder.lane(lane.clone());
    }
    for (index, activity) in (0..).zip(found) {
        let Some(lane) = places.lane(&activity.begin) else { continue };
        let interval = Interval {
            begin: activity.begin.time.0,
            end: Some(activity.end.time.0),
            name: activity.kind as u32,
            // Not a thread, but the number of the further attributes.
            thread: index,
            from: point(&session.lanes, &activity.begin),
            to: point(&session.lanes, &activity.end),
            quality: if activity.is_certain { 0 } else { 2 },
        };
        builder.interval(
            lane,
            RowKind::Spans,
            names.get(activity.kind).map(String::as_str),
            interval,
        );
    }
    let meta = Meta { origin: meta.origin, end: meta.end, names, ..Meta::default() };
    let mut bytes = Vec::new();
    let fault = |what: String| Problem::new("cannot draw the activities", what, "");
    builder.finish(meta, "", &mut bytes).map_err(|error| fault(error.to_string()))?;
    let bytes: Shared = Arc::new(bytes);
    Lanes::open(bytes, "").map_err(|error| fault(error.to_string()))
}
