// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collects the items of a trace, event by event, until the index can be written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::meta::{Lane, Meta, Row, RowKind};
use crate::slots::Slots;
use crate::spool::{Pieces, Spool};
use crate::writing::Writing;
use crate::{NONE, UNFINISHED};

/// An event, by its lane and its index there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointRef {
    /// The lane.
    pub lane: u32,
    /// Index in time order, from 0.
    pub index: u32,
}

impl PointRef {
    /// The index among the remaining events, given the number of evicted ones of each lane; `None` for an
    /// evicted event.
    pub(crate) fn behind(self, forgotten: &[u64]) -> Option<Self> {
        let of = forgotten.get(self.lane as usize).copied().unwrap_or(0);
        // Indices are modulo 2^32; fewer than 2^31 events are kept.
        let index = self.index.wrapping_sub(of as u32);
        (index < 1 << 31).then_some(Self { index, ..self })
    }
}

/// An item with a duration. Times are those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Begin.
    pub begin: i64,
    /// End, if it has ended.
    pub end: Option<i64>,
    /// Its name; for CPU occupancy, the process.
    pub name: u32,
    /// Its thread.
    pub thread: u32,
    /// The event that began it.
    pub from: Option<PointRef>,
    /// The event that ended it, if a filter must keep both.
    pub to: Option<PointRef>,
    /// Quality of its length, as in [`crate::quality_name`].
    pub quality: u8,
}

/// A point as stored until all are known.
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

/// Sorts points; returns their new positions.
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

/// Key of a group of rows for intervals.
type Group = (u32, RowKind, Option<String>);

/// Largest number of rows of one group, each of which costs a kilobyte: no trace intends deeper nesting.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// A message as stored until all are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMessage {
    pub sent: i64,
    pub received: i64,
    pub from: PointRef,
    pub to: PointRef,
    pub channel: u32,
}

/// Collects all items.
///
/// Memory: 32 KiB for each lane, row and counter; at the end, the largest of them. The rest is in the
/// spool: 14 bytes per point, 41 per interval, 36 per message.
pub struct Builder {
    spool: Box<dyn Spool>,
    fault: Option<io::Error>,
    lanes: Vec<Lane>,
    points: Vec<Told>,
    groups: BTreeMap<Group, Pieces<Interval>>,
    levels: Vec<Pieces<(i64, f64)>>,
    messages: Pieces<RawMessage>,
    extent: Option<(i64, i64)>,
    /// Final names of processes for CPU occupancy, by provisional name.
    who_ran: Vec<u32>,
}

impl Default for Builder {
    /// With everything in memory.
    fn default() -> Self {
        Self::with_spool(Box::new(Vec::new()))
    }
}

impl Builder {
    /// With a spool for everything that need not be in memory.
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

    /// Mutable access to a lane.
    pub fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane> {
        self.lanes.get_mut(lane as usize)
    }

    /// Number of lanes.
    #[must_use]
    pub fn lane_count(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// Adds an event to an existing lane. Events of a lane come in time order, or nearly so.
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

    /// Adds an interval; those of a lane, kind and name share rows.
    pub fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval) {
        self.reach(interval.begin);
        self.reach(interval.end.unwrap_or(interval.begin));
        // A lookup without copying the name, if there is none.
        let group = (lane, kind, name.map(str::to_owned));
        let pushed = self.groups.entry(group).or_default().push(interval, &mut *self.spool);
        self.note(pushed);
    }

    /// Adds a sample of a counter, which is numbered as in [`Meta::counters`].
    pub fn level(&mut self, counter: u32, time: i64, value: f64) {
        self.reach(time);
        let counter = counter as usize;
        if self.levels.len() <= counter {
            self.levels.resize_with(counter + 1, Pieces::default);
        }
        let pushed = self.levels[counter].push((time, value), &mut *self.spool);
        self.note(pushed);
    }

    /// Adds a message between two events.
    pub fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef)) {
        let ((sent, from), (received, to)) = (sent, received);
        let message = RawMessage { sent, received, from, to, channel };
        let pushed = self.messages.push(message, &mut *self.spool);
        self.note(pushed);
    }

    /// Keeps an error until the end.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.fault.get_or_insert(error);
        }
    }

    /// Renames rows of CPU occupancy: each name is replaced by the one at its index.
    pub fn rename_who_ran(&mut self, names: Vec<u32>) {
        self.who_ran = names;
    }

    /// Times of the first and the last item.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        self.extent
    }

    /// Extends the session to a time.
    pub fn reach(&mut self, time: i64) {
        let (begin, end) = self.extent.unwrap_or((time, time));
        self.extent = Some((begin.min(time), end.max(time)));
    }

    /// Writes the index. `meta` has all lists except lanes and rows, and its origin and end.
    ///
    /// # Errors
    /// Errors of `out` and of the spool.
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
        // New positions of the points of lanes that were not in order.
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

/// Assigns intervals to rows without overlaps: each to the first row that is free at its begin; of those
/// that begin together the longest first, so that nested intervals are below the enclosing ones. Also
/// returns the number of intervals without a row, if there are too many rows.
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

/// Lane and index; [`NONE`] for none.
pub(crate) fn numbers(point: Option<PointRef>) -> [u32; 2] {
    point.map_or([NONE, NONE], |point| [point.lane, point.index])
}
