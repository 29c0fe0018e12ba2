// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An in-memory index that is read while it grows.
//!
//! One thread adds items; [`Growing::lanes`] is an immutable snapshot for any number of other threads.
//! Columns are only appended to, so a snapshot costs a few pointers per column, and neither side ever
//! waits for the other. At most one interval of a row is open, the last one: it is stored with the row,
//! not in its columns.
//!
//! Items are evicted oldest first, by time: points exactly; ended intervals in whole blocks of 64; memory
//! is freed in chunks of 16 384 items.

mod grid;
mod levels;
mod messages;
mod pieces;
mod points;
mod row;

use std::sync::Arc;

use crate::building::{Interval, PointRef, ROWS_MAX, RawMessage};
use crate::gathers::{Gathers, Opened};
use crate::meta::{Lane, Meta, Row, RowKind};
use crate::opened::Lanes;
use levels::GrowingLevels;
use messages::GrowingMessages;
pub use pieces::Grown;
use points::GrowingPoints;
use row::{Groups, GrowingRow, Open};

/// See the module documentation. Times before the origin are taken for it.
pub struct Growing {
    origin: i64,
    lanes: Vec<Lane>,
    points: Vec<GrowingPoints>,
    rows: Vec<GrowingRow>,
    /// As in [`Meta::rows`], without the main names.
    told: Vec<Row>,
    groups: Groups,
    levels: Vec<GrowingLevels>,
    messages: GrowingMessages,
    begin: u64,
    end: u64,
    late: u64,
    left_out: u64,
    begun: u64,
    numbers: Vec<u64>,
}

impl Growing {
    /// For a session that begins at a time.
    #[must_use]
    pub fn new(origin: i64) -> Self {
        Self {
            origin,
            lanes: Vec::new(),
            points: Vec::new(),
            rows: Vec::new(),
            told: Vec::new(),
            groups: Groups::default(),
            levels: Vec::new(),
            messages: GrowingMessages::default(),
            begin: 0,
            end: 0,
            late: 0,
            left_out: 0,
            begun: 0,
            numbers: Vec::new(),
        }
    }

    fn since(&self, time: i64) -> u64 {
        u64::try_from(i128::from(time) - i128::from(self.origin)).unwrap_or(0)
    }

    fn reach(&mut self, time: i64) -> u64 {
        let since = self.since(time);
        self.end = self.end.max(since);
        since
    }

    /// Everything that happened up to a time has been added.
    pub fn reaches(&mut self, time: i64) {
        self.reach(time);
    }

    /// Begin of the session.
    #[must_use]
    pub fn origin(&self) -> i64 {
        self.origin
    }

    /// Latest time of any item, since the origin.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Earliest time that is kept.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Number of events that were out of order on their lane, and got the time of the previous event.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Number of rows of intervals so far: each keeps its number.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Number of intervals without room on a row.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Number of events that are kept.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.points.iter().map(|points| points.len() as u64).sum()
    }

    /// Number of evicted events.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.points.iter().map(GrowingPoints::forgotten).sum()
    }

    /// Memory of all columns in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.points.iter().map(GrowingPoints::bytes).sum::<usize>()
            + self.rows.iter().map(GrowingRow::bytes).sum::<usize>()
            + self.levels.iter().map(GrowingLevels::bytes).sum::<usize>()
            + self.messages.bytes()
    }

    /// The time before which at least this fraction of events are, for [`Growing::forget`]: that of the
    /// lane with most events.
    #[must_use]
    pub fn time_behind(&self, parts: u64, of: u64) -> u64 {
        let most = self.points.iter().max_by_key(|points| points.len());
        most.map_or(self.end, |points| {
            let index = points.len() as u64 * parts / of.max(1);
            points.time(index as usize).max(self.begin)
        })
    }

    /// Evicts everything before a time, since the origin.
    pub fn forget(&mut self, time: u64) {
        let time = time.clamp(self.begin, self.end);
        self.begin = time;
        self.points.iter_mut().for_each(|points| points.forget(time));
        self.rows.iter_mut().for_each(|row| row.forget(time));
        self.levels.iter_mut().for_each(|levels| levels.forget(time));
        self.messages.forget(time);
    }

    /// Snapshot of the index. `meta` has all lists except lanes, rows, origin, begin and end.
    ///
    /// Cost: proportional to lanes, rows and counters, not to their items.
    #[must_use]
    pub fn lanes(&self, mut meta: Meta) -> Lanes {
        meta.origin = self.origin;
        meta.begin = self.begin;
        // The nanosecond of the last event belongs to the session.
        meta.end = self.end.saturating_add(1);
        meta.lanes = self.lanes.clone();
        for (lane, points) in meta.lanes.iter_mut().zip(&self.points) {
            lane.events = points.len() as u64;
        }
        let main =
            |(row, told): (&GrowingRow, &Row)| Row { main: row.main().to_vec(), ..told.clone() };
        meta.rows = self.rows.iter().zip(&self.told).map(main).collect();
        let forgotten: Arc<[u64]> = self.points.iter().map(GrowingPoints::forgotten).collect();
        let now = meta.end;
        let mut levels: Vec<_> = self.levels.iter().map(GrowingLevels::levels).collect();
        levels.resize_with(meta.counters.len(), || GrowingLevels::default().levels());
        Lanes {
            points: self.points.iter().map(GrowingPoints::points).collect(),
            rows: self.rows.iter().map(|row| row.intervals(now, &forgotten)).collect(),
            levels,
            messages: self.messages.messages(&forgotten),
            meta,
        }
    }

    /// The first free row of a group; `None` if there are too many.
    fn free(&mut self, lane: u32, kind: RowKind, name: Option<&str>, begin: u64) -> Option<u32> {
        let group = self.groups.of(lane, kind, name);
        let free = self.groups.first(group, begin);
        let depth = self.groups.depth(group);
        if free.is_some() || depth >= ROWS_MAX {
            return free;
        }
        let row = self.rows.len() as u32;
        let (name, depth) = (name.map(str::to_owned), depth as u32);
        self.groups.push(group);
        self.told.push(Row { lane, kind, name, depth, ..Row::default() });
        self.rows.push(GrowingRow::default());
        self.numbers.push(0);
        Some(row)
    }

    /// Counts an interval of a group without room on a row.
    fn leave_out(&mut self, lane: u32, kind: RowKind, name: Option<&str>) {
        let group = self.groups.of(lane, kind, name);
        if let Some(row) = self.groups.last(group) {
            self.told[row as usize].left_out += 1;
            self.left_out += 1;
        }
    }

    /// Updates the time from which a row is free.
    fn settle(&mut self, row: u32) {
        self.groups.set(row, self.rows[row as usize].free());
    }

    fn opened(&mut self, opened: Opened) -> Option<&mut GrowingRow> {
        let is_it = self.numbers.get(opened.row as usize) == Some(&opened.number);
        self.rows.get_mut(opened.row as usize).filter(|row| is_it && row.open.is_some())
    }
}

impl Gathers for Growing {
    fn lane(&mut self, lane: Lane) -> u32 {
        self.lanes.push(lane);
        self.points.push(GrowingPoints::default());
        self.lanes.len() as u32 - 1
    }

    fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane> {
        self.lanes.get_mut(lane as usize)
    }

    fn lane_count(&self) -> u32 {
        self.lanes.len() as u32
    }

    fn point(&mut self, lane: u32, time: i64, class: u16, thread: u32) -> PointRef {
        let time = self.reach(time);
        let (number, is_late) = self.points[lane as usize].push(time, class, thread);
        self.late += u64::from(is_late);
        PointRef { lane, index: number as u32 }
    }

    fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval) {
        let begin = self.reach(interval.begin);
        let Some(end) = interval.end else {
            // A complete interval without an end never gets one.
            if self.begins(lane, kind, name, interval).is_none() {
                self.leave_out(lane, kind, name);
            }
            return;
        };
        let end = self.reach(end);
        // An interval without room at its begin comes again when it is complete: only then is it left
        // out.
        match self.free(lane, kind, name, begin) {
            Some(row) => {
                self.rows[row as usize].push(begin, end, &interval);
                self.settle(row);
            }
            None => self.leave_out(lane, kind, name),
        }
    }

    fn level(&mut self, counter: u32, time: i64, value: f64) {
        let (counter, time) = (counter as usize, self.reach(time));
        if self.levels.len() <= counter {
            self.levels.resize_with(counter + 1, GrowingLevels::default);
        }
        self.levels[counter].push(time, value);
    }

    fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef)) {
        let ((sent, from), (received, to)) = (sent, received);
        let message = RawMessage { sent, received, from, to, channel };
        self.messages.push(self.since(sent), self.since(received), &message);
    }

    fn begins(
        &mut self,
        lane: u32,
        kind: RowKind,
        name: Option<&str>,
        interval: Interval,
    ) -> Option<Opened> {
        let begin = self.reach(interval.begin);
        let row = self.free(lane, kind, name, begin)?;
        self.begun += 1;
        self.numbers[row as usize] = self.begun;
        // Its end is stored since the origin, like the begin.
        let end = interval.end.map(|end| self.since(end) as i64);
        self.rows[row as usize].open = Some(Open { begin, interval: Interval { end, ..interval } });
        self.settle(row);
        Some(Opened { row, number: self.begun })
    }

    fn ends(&mut self, opened: Opened, interval: Option<Interval>) {
        let end = interval.and_then(|interval| Some(self.reach(interval.end?)));
        let Some(row) = self.opened(opened) else { return };
        let open = row.open.take();
        if let (Some(open), Some(interval), Some(end)) = (open, interval, end) {
            row.push(open.begin, end, &interval);
        }
        self.settle(opened.row);
    }

    fn goes_on(&mut self, opened: Opened, until: i64) {
        let until = self.reach(until);
        if let Some(open) = self.opened(opened).and_then(|row| row.open.as_mut()) {
            open.interval.end = Some(until as i64);
        }
    }
}
