// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Activities that a script has found.

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

/// Activities that one may find.
pub const FOUND_MAX: usize = 4_000_000;
/// The tag of an event that stands on no lane.
pub const NOWHERE: u64 = u64::MAX;
/// How far a script that follows may be behind what is shown, until that is told: of what came just
/// now it is found out while it is drawn.
const BEHIND_NANOS: u64 = 1_000_000_000;

/// What a row does not say of an activity.
pub struct Told {
    /// What tells it apart.
    pub key: String,
    /// Its thread.
    pub thread: u32,
}

/// The same of activities of a session that grows, by their numbers.
pub type Telling = Arc<Mutex<HashMap<u32, (u64, Told), RandomState>>>;

/// What of activities is not in their rows, by [`Intervals::thread`].
pub enum Rest {
    /// Of all.
    Whole(Vec<Told>),
    /// Of those that are remembered; with when each ended.
    Growing(Telling),
}

/// What was found up to a moment.
pub struct Found {
    /// Activities on rows of their own; lanes are those of the session. Events are counted with those
    /// forgotten.
    pub lanes: Lanes,
    /// More of each.
    pub rest: Rest,
    /// How many have ended.
    pub count: u64,
    /// Up to when they were looked for, since the origin.
    pub until: u64,
    /// The newest state of the session that was looked at, and how often it was by then.
    pub serial: (u64, u64),
    /// The newest state of which all was.
    pub done: u64,
    /// Why nobody looks any further.
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

    /// What tells an activity apart, where its script says so.
    #[must_use]
    pub fn key(&self, row: &Intervals, index: usize) -> Option<String> {
        self.told(row, index, |told| told.key.clone()).filter(|key| !key.is_empty())
    }

    /// The thread of an activity.
    #[must_use]
    pub fn thread(&self, row: &Intervals, index: usize) -> u32 {
        self.told(row, index, |told| told.thread).unwrap_or(NONE)
    }

    /// Whether a filter leaves an activity: as of a declared span, both events count.
    #[must_use]
    pub fn is_left(&self, session: &Session, chosen: &Chosen, row: usize, index: usize) -> bool {
        let Some((_, intervals)) = self.lanes.row(row) else { return false };
        intervals.events(index).into_iter().flatten().all(|point| {
            let forgotten = session.lanes.points(point.lane).map_or(0, |of| of.forgotten());
            // Modulo 2^32, as they are counted; of what is forgotten nobody knows any more.
            let index = point.index.wrapping_sub(forgotten as u32);
            (index as i32) < 0 || chosen.has(PointRef { index, ..point })
        })
    }

    /// Up to when they are known, if that is not nearly all of the session: the script was stopped, or
    /// is slower than what comes.
    #[must_use]
    pub fn behind(&self, session: &Session) -> Option<u64> {
        let end = session.lanes.meta().end;
        let most = if self.stopped.is_some() { 0 } else { BEHIND_NANOS };
        (session.growth.is_some() && end.saturating_sub(self.until) > most).then_some(self.until)
    }
}

/// Activities, and who finds them.
pub struct Finding {
    pub activities: Activities,
    pub found: Vec<Activity>,
    pub places: Lasts,
}

/// Of each lane its last event.
#[derive(Default)]
pub struct Lasts(Vec<Last>);

/// The last event of a lane, and how many of its time were before it.
#[derive(Clone, Default)]
struct Last {
    time: Option<i64>,
    before: u32,
}

impl Lasts {
    /// Knows an event by its lane and the place among those of its time.
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

/// The event of a tag and a time; `None` where it does not stand in its lane as it was told.
pub fn point_of(lanes: &Lanes, tag: u64, time: i64) -> Option<PointRef> {
    let (lane, before) = ((tag >> 32) as u32, tag as u32);
    let points = lanes.points(lane).filter(|_| tag != NOWHERE)?;
    let since = i128::from(time) - i128::from(lanes.meta().origin);
    let since = i64::try_from(since).ok()?;
    let index = points.before(since) + before as usize;
    let is_it = index < points.len() && points.time(index) == since as u64;
    is_it.then_some(PointRef { lane, index: index as u32 })
}

/// The event at which an activity begins or ends, counted with those forgotten.
pub fn point(lanes: &Lanes, end: &End) -> Option<PointRef> {
    let point = point_of(lanes, end.tag, end.time.0)?;
    let forgotten = lanes.points(point.lane)?.forgotten();
    Some(PointRef { index: u64::from(point.index).wrapping_add(forgotten) as u32, ..point })
}

pub fn key(key: &[Scalar]) -> String {
    let parts: Vec<String> = key.iter().map(ToString::to_string).collect();
    parts.join(" ")
}

/// Activities on rows of their own, below the processor that they began on, else their thread.
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
            // No thread, but where more is told of it.
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
