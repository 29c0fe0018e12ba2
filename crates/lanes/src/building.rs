// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes what a trace says, event by event, until it can be written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::meta::{Lane, Meta, Row, RowKind};
use crate::slots::Slots;
use crate::spool::{Pieces, Spool};
use crate::writing::Writing;
use crate::{NONE, UNFINISHED};

/// An event, by its lane and its number there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointRef {
    /// The lane.
    pub lane: u32,
    /// Counted from 0 by time.
    pub index: u32,
}

impl PointRef {
    /// The same counted from what is left, where so many of each lane were forgotten; `None` of
    /// one that was.
    pub(crate) fn behind(self, forgotten: &[u64]) -> Option<Self> {
        let of = forgotten.get(self.lane as usize).copied().unwrap_or(0);
        // Numbers are modulo 2^32; fewer than 2^31 are kept.
        let index = self.index.wrapping_sub(of as u32);
        (index < 1 << 31).then_some(Self { index, ..self })
    }
}

/// Something that took time. Times are those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// When it began.
    pub begin: i64,
    /// When it ended, if it has.
    pub end: Option<i64>,
    /// Its name; of who ran, the application.
    pub name: u32,
    /// Its thread.
    pub thread: u32,
    /// The event that began it.
    pub from: Option<PointRef>,
    /// The event that ended it, if it is left only together with that.
    pub to: Option<PointRef>,
    /// How far its length is to be trusted: as [`crate::quality_name`] has it.
    pub quality: u8,
}

/// A point as it is kept until all are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawPoint {
    pub time: i64,
    pub thread: u32,
    pub class: u16,
}

/// Points of a lane.
#[derive(Debug, Default)]
struct Told {
    points: Pieces<RawPoint>,
    last: Option<i64>,
    is_disordered: bool,
}

/// Puts points in order: where each went.
fn sorted(points: &mut Vec<RawPoint>) -> Vec<u32> {
    let mut all: Vec<(RawPoint, u32)> = points.iter().copied().zip(0..).collect();
    all.sort_by_key(|(point, index)| (point.time, *index));
    let mut places = vec![0; all.len()];
    for (place, (_, index)) in (0..).zip(&all) {
        places[*index as usize] = place;
    }
    *points = all.into_iter().map(|(point, _)| point).collect();
    places
}

/// Which row an interval is for.
type Group = (u32, RowKind, Option<String>);

/// Rows of one group at most, of which each costs a kilobyte: what overlaps more often is a trace that
/// nobody meant.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// A message as it is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMessage {
    pub sent: i64,
    pub received: i64,
    pub from: PointRef,
    pub to: PointRef,
    pub channel: u32,
}

/// Gathers what stands where.
///
/// Memory: 32 KiB for each lane, row and counter; in the end, what the largest of them has. The rest is
/// in the spool: 14 bytes a point, 41 an interval, 36 a message.
pub struct Builder {
    spool: Box<dyn Spool>,
    fault: Option<io::Error>,
    lanes: Vec<Lane>,
    points: Vec<Told>,
    groups: BTreeMap<Group, Pieces<Interval>>,
    levels: Vec<Pieces<(i64, f64)>>,
    messages: Pieces<RawMessage>,
    extent: Option<(i64, i64)>,
    /// What applications are called in the end, by what they were called.
    who_ran: Vec<u32>,
}

impl Default for Builder {
    /// In memory.
    fn default() -> Self {
        Self::with_spool(Box::new(Vec::new()))
    }
}

impl Builder {
    /// That puts into a spool what does not have to be in memory.
    #[must_use]
    pub fn with_spool(spool: Box<dyn Spool>) -> Self {
        Self {
            spool,
            fault: None,
            lanes: Vec::new(),
            points: Vec::new(),
            groups: BTreeMap::new(),
            levels: Vec::new(),
            messages: Pieces::default(),
            extent: None,
            who_ran: Vec::new(),
        }
    }

    /// Adds a lane.
    pub fn lane(&mut self, lane: Lane) -> u32 {
        self.lanes.push(lane);
        self.points.push(Told::default());
        self.lanes.len() as u32 - 1
    }

    /// A lane, to say more of it.
    pub fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane> {
        self.lanes.get_mut(lane as usize)
    }

    /// How many lanes there are.
    #[must_use]
    pub fn lane_count(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// An event on a lane that was added. Those of a lane by time, or nearly so.
    pub fn point(&mut self, lane: u32, time: i64, class: u16, thread: u32) -> PointRef {
        self.reach(time);
        let of = &mut self.points[lane as usize];
        of.is_disordered |= of.last.is_some_and(|last| time < last);
        of.last = Some(time);
        let index = of.points.len() as u32;
        let pushed = of.points.push(RawPoint { time, thread, class }, &mut *self.spool);
        self.note(pushed);
        PointRef { lane, index }
    }

    /// Something that took time; intervals of a lane, kind and name share rows.
    pub fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval) {
        self.reach(interval.begin);
        self.reach(interval.end.unwrap_or(interval.begin));
        // A look-up without a copy of the name, where there is none.
        let group = (lane, kind, name.map(str::to_owned));
        let pushed = self.groups.entry(group).or_default().push(interval, &mut *self.spool);
        self.note(pushed);
    }

    /// A value of a counter, which is numbered as [`Meta::counters`].
    pub fn level(&mut self, counter: u32, time: i64, value: f64) {
        self.reach(time);
        let counter = counter as usize;
        if self.levels.len() <= counter {
            self.levels.resize_with(counter + 1, Pieces::default);
        }
        let pushed = self.levels[counter].push((time, value), &mut *self.spool);
        self.note(pushed);
    }

    /// A message between two events.
    pub fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef)) {
        let ((sent, from), (received, to)) = (sent, received);
        let message = RawMessage { sent, received, from, to, channel };
        let pushed = self.messages.push(message, &mut *self.spool);
        self.note(pushed);
    }

    /// What fails while things are told is told in the end.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.fault.get_or_insert(error);
        }
    }

    /// Of rows of who ran, each name gives way to what stands at its place.
    pub fn rename_who_ran(&mut self, names: Vec<u32>) {
        self.who_ran = names;
    }

    /// When the first and the last of all happened.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        self.extent
    }

    /// The session has a time, whatever happened then.
    pub fn reach(&mut self, time: i64) {
        let (begin, end) = self.extent.unwrap_or((time, time));
        self.extent = Some((begin.min(time), end.max(time)));
    }

    /// Writes the index. `meta` has all lists but lanes and rows, its origin and its end.
    ///
    /// # Errors
    /// Those of `out` and of the spool.
    pub fn finish(self, mut meta: Meta, identity: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { spool, fault, mut lanes, points, groups, mut levels, messages, .. } = self;
        let who_ran = self.who_ran;
        if let Some(fault) = fault {
            return Err(fault);
        }
        for (lane, told) in lanes.iter_mut().zip(&points) {
            lane.events = told.points.len() as u64;
        }
        meta.lanes = lanes;
        let end = meta.origin.saturating_add_unsigned(meta.end);
        let mut writing = Writing::new(&meta, identity, out);
        // Where the points of lanes went that were not in order.
        let mut places: Vec<Vec<u32>> = Vec::with_capacity(points.len());
        for told in points {
            let mut points = told.points.all(&*spool)?;
            places.push(if told.is_disordered { sorted(&mut points) } else { Vec::new() });
            writing.points(&points)?;
        }
        let settled = |point: PointRef| {
            let place = places.get(point.lane as usize);
            let index = place.and_then(|place| place.get(point.index as usize));
            PointRef { index: index.copied().unwrap_or(point.index), ..point }
        };
        for ((lane, kind, name), intervals) in groups {
            let mut intervals = intervals.all(&*spool)?;
            for interval in &mut intervals {
                interval.from = interval.from.map(settled);
                interval.to = interval.to.map(settled);
                if kind.is_of_applications() {
                    let name = who_ran.get(interval.name as usize);
                    interval.name = name.copied().unwrap_or(interval.name);
                }
            }
            let (rows, left_out) = placed(intervals, end);
            for (depth, row) in (0..).zip(rows) {
                let name = name.clone();
                let main = writing.intervals(&row)?;
                meta.rows.push(Row { lane, kind, name, depth, main, left_out: 0 });
            }
            if let Some(last) = meta.rows.last_mut().filter(|_| left_out > 0) {
                last.left_out = left_out;
            }
        }
        levels.resize_with(meta.counters.len(), Pieces::default);
        for levels in levels {
            let mut levels = levels.all(&*spool)?;
            levels.sort_by_key(|(time, _)| *time);
            writing.levels(&levels)?;
        }
        let mut messages = messages.all(&*spool)?;
        for message in &mut messages {
            (message.from, message.to) = (settled(message.from), settled(message.to));
        }
        messages.sort_by_key(|message| (message.sent, message.received));
        writing.messages(&messages)?;
        writing.finish(meta)
    }
}

/// An interval on its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub begin: i64,
    pub end: i64,
    pub flags: u8,
    pub interval: Interval,
}

/// Rows in which no two intervals overlap: each in the first that is free when it begins, of those
/// that begin together the longest first, so that what is nested is below what it is nested in. And how
/// many are on none, for there are no more rows.
pub(crate) fn placed(intervals: Vec<Interval>, session_end: i64) -> (Vec<Vec<Placed>>, u64) {
    let mut all: Vec<Placed> = intervals
        .into_iter()
        .map(|interval| {
            let end = interval.end.unwrap_or(session_end).max(interval.begin);
            let unfinished = if interval.end.is_none() { UNFINISHED } else { 0 };
            let flags = unfinished | interval.quality << 1;
            Placed { begin: interval.begin, end, flags, interval }
        })
        .collect();
    all.sort_by_key(|placed| (placed.begin, std::cmp::Reverse(placed.end)));
    let mut rows: Vec<Vec<Placed>> = Vec::new();
    let mut slots = Slots::new(i64::MAX);
    let mut left_out = 0;
    for placed in all {
        let reach = placed.end.max(placed.begin.saturating_add(1));
        match slots.first(placed.begin) {
            Some(row) => {
                slots.set(row, reach);
                rows[row].push(placed);
            }
            None if rows.len() < ROWS_MAX => {
                slots.push(reach);
                rows.push(vec![placed]);
            }
            None => left_out += 1,
        }
    }
    (rows, left_out)
}

/// Lane and index; [`NONE`] of nothing.
pub(crate) fn numbers(point: Option<PointRef>) -> [u32; 2] {
    point.map_or([NONE, NONE], |point| [point.lane, point.index])
}
