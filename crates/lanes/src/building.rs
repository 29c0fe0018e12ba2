// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes what a trace says, event by event, until it can be written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::meta::{Lane, Meta, Row, RowKind};
use crate::writing::{self, Made};
use crate::{NONE, UNFINISHED};

/// An event, by its lane and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointRef {
    /// The lane.
    pub lane: u32,
    /// Counted from 0 by time.
    pub index: u32,
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

/// Points of a lane in pieces, so that growing copies nothing.
#[derive(Debug, Default)]
pub(crate) struct RawPoints {
    pieces: Vec<Vec<RawPoint>>,
    count: u32,
    last: Option<i64>,
    is_disordered: bool,
}

/// Points of a piece.
const PIECE: usize = 1 << 14;

impl RawPoints {
    fn push(&mut self, point: RawPoint) -> u32 {
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            // Most threads of a trace have few events.
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        self.is_disordered |= self.last.is_some_and(|last| point.time < last);
        self.last = Some(point.time);
        self.pieces.last_mut().into_iter().for_each(|piece| piece.push(point));
        let index = self.count;
        self.count += 1;
        index
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = RawPoint> + Clone + '_ {
        self.pieces.iter().flatten().copied()
    }

    /// Puts them in order: where each went, if any had to.
    pub(crate) fn sort(&mut self) -> Option<Vec<u32>> {
        if !self.is_disordered {
            return None;
        }
        let mut all: Vec<(RawPoint, u32)> = self.iter().zip(0..).collect();
        all.sort_by_key(|(point, index)| (point.time, *index));
        let mut places = vec![0; all.len()];
        for (place, (_, index)) in (0..).zip(&all) {
            places[*index as usize] = place;
        }
        self.pieces = vec![all.into_iter().map(|(point, _)| point).collect()];
        Some(places)
    }
}

/// Which row an interval is for.
type Group = (u32, RowKind, Option<String>);

/// Rows of one group at most: spans that overlap more often are listed, and not drawn.
const ROWS_MAX: usize = 256;

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
/// Memory: 16 bytes a point, 64 an interval, 40 a message.
#[derive(Debug, Default)]
pub struct Builder {
    lanes: Vec<Lane>,
    points: Vec<RawPoints>,
    groups: BTreeMap<Group, Vec<Interval>>,
    levels: Vec<Vec<(i64, f64)>>,
    messages: Vec<RawMessage>,
    extent: Option<(i64, i64)>,
}

impl Builder {
    /// Adds a lane.
    pub fn lane(&mut self, lane: Lane) -> u32 {
        self.lanes.push(lane);
        self.points.push(RawPoints::default());
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
        let index = self.points[lane as usize].push(RawPoint { time, thread, class });
        PointRef { lane, index }
    }

    /// Something that took time; intervals of a lane, kind and name share rows.
    pub fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval) {
        self.reach(interval.begin);
        self.reach(interval.end.unwrap_or(interval.begin));
        // A look-up without a copy of the name, where there is none.
        let group = (lane, kind, name.map(str::to_owned));
        self.groups.entry(group).or_default().push(interval);
    }

    /// A value of a counter, which is numbered as [`Meta::counters`].
    pub fn level(&mut self, counter: u32, time: i64, value: f64) {
        self.reach(time);
        let counter = counter as usize;
        if self.levels.len() <= counter {
            self.levels.resize_with(counter + 1, Vec::new);
        }
        self.levels[counter].push((time, value));
    }

    /// A message between two events.
    pub fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef)) {
        let ((sent, from), (received, to)) = (sent, received);
        self.messages.push(RawMessage { sent, received, from, to, channel });
    }

    /// When the first and the last of all happened.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        self.extent
    }

    fn reach(&mut self, time: i64) {
        let (begin, end) = self.extent.unwrap_or((time, time));
        self.extent = Some((begin.min(time), end.max(time)));
    }

    /// Writes the index. `meta` has all lists but lanes and rows, its origin and its end.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self, mut meta: Meta, identity: &str, out: &mut dyn Write) -> io::Result<()> {
        for (lane, points) in self.lanes.iter_mut().zip(&self.points) {
            lane.events = points.len() as u64;
        }
        meta.lanes = std::mem::take(&mut self.lanes);
        let places: Vec<Option<Vec<u32>>> = self.points.iter_mut().map(RawPoints::sort).collect();
        let settled = |point: PointRef| {
            let index = places.get(point.lane as usize).and_then(Option::as_ref);
            let index = index.and_then(|places| places.get(point.index as usize));
            PointRef { index: index.copied().unwrap_or(point.index), ..point }
        };
        let end = meta.origin.saturating_add_unsigned(meta.end);
        let mut rows = Vec::new();
        for ((lane, kind, name), mut intervals) in std::mem::take(&mut self.groups) {
            for interval in &mut intervals {
                interval.from = interval.from.map(settled);
                interval.to = interval.to.map(settled);
            }
            for (depth, row) in (0..).zip(placed(intervals, end)) {
                let name = name.clone();
                meta.rows.push(Row { lane, kind, name, depth, main: Vec::new() });
                rows.push(row);
            }
        }
        for message in &mut self.messages {
            (message.from, message.to) = (settled(message.from), settled(message.to));
        }
        self.messages.sort_by_key(|message| (message.sent, message.received));
        self.levels.resize_with(meta.counters.len(), Vec::new);
        for levels in &mut self.levels {
            levels.sort_by_key(|(time, _)| *time);
        }
        let made = Made { points: self.points, rows, levels: self.levels, messages: self.messages };
        writing::write(made, meta, identity, out)
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
/// that begin together the longest first, so that what is nested is below what it is nested in.
pub(crate) fn placed(intervals: Vec<Interval>, session_end: i64) -> Vec<Vec<Placed>> {
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
    let mut rows: Vec<(i64, Vec<Placed>)> = Vec::new();
    for placed in all {
        let reach = placed.end.max(placed.begin.saturating_add(1));
        match rows.iter().position(|(free, _)| *free <= placed.begin) {
            Some(row) => {
                rows[row].0 = reach;
                rows[row].1.push(placed);
            }
            None if rows.len() < ROWS_MAX => rows.push((reach, vec![placed])),
            None => {}
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Lane and index; [`NONE`] of nothing.
pub(crate) fn numbers(point: Option<PointRef>) -> [u32; 2] {
    point.map_or([NONE, NONE], |point| [point.lane, point.index])
}
