// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reader of an index.

use std::fmt;
use std::ops::Range;

use crate::column::{Column, Number, Shared};
use crate::grid::Grid;
use crate::intervals::Sums;
use crate::messages::Order;
use crate::meta::{Meta, Row};
use crate::pixels::{BLOCK, MAIN};
use crate::writing::{At, Directory, MAGIC, TRAILER, checksum};
use crate::{Intervals, Levels, Messages, Points};

/// Reason why bytes cannot be used as an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexError {
    /// They are not an index of this version.
    Foreign,
    /// They are inconsistent.
    Broken(&'static str),
    /// The index belongs to another trace, or to an earlier version of it.
    Stale,
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it is no index of this version"),
            Self::Broken(what) => write!(f, "it is damaged: {what}"),
            Self::Stale => f.write_str("the trace has changed since"),
        }
    }
}

impl std::error::Error for IndexError {}

/// A timeline index.
pub struct Lanes {
    pub(crate) meta: Meta,
    pub(crate) points: Vec<Option<Points>>,
    pub(crate) rows: Vec<Intervals>,
    pub(crate) levels: Vec<Levels>,
    pub(crate) messages: Messages,
}

/// Reads the columns of one object in sequence.
struct Columns<'a> {
    all: &'a Shared,
    at: &'a At,
    next: usize,
}

impl Columns<'_> {
    fn take<T: Number>(&mut self) -> Result<Column<T>, IndexError> {
        self.some(self.at.count)
    }

    fn some<T: Number>(&mut self, count: u64) -> Result<Column<T>, IndexError> {
        let begin = self.at.columns.get(self.next);
        self.next += 1;
        begin
            .and_then(|begin| Column::new(self.all, *begin, count))
            .ok_or(IndexError::Broken("a column is beyond its end"))
    }

    fn grid(&self) -> Result<Grid, IndexError> {
        let first = Column::new(self.all, self.at.first, self.at.buckets);
        let first = first.ok_or(IndexError::Broken("a grid is beyond its end"))?;
        Ok(Grid::new(self.at.shift, first))
    }
}

impl Lanes {
    /// Opens an index of a trace with this `identity`.
    ///
    /// # Errors
    /// If it is not an index, or belongs to another trace.
    pub fn open(all: Shared, identity: &str) -> Result<Self, IndexError> {
        let broken = IndexError::Broken;
        let bytes: &[u8] = (*all).as_ref();
        let at = bytes.len().checked_sub(TRAILER).ok_or(IndexError::Foreign)?;
        let (magic, numbers) = bytes[at..].split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(IndexError::Foreign);
        }
        let number = |index: usize| usize::try_from(u64::read(&numbers[index * 8..][..8])).ok();
        let json = number(0).zip(number(1)).and_then(|(begin, len)| {
            bytes.get(begin..begin.checked_add(len)?).filter(|_| begin + len <= at)
        });
        let json = json.ok_or(broken("its directory is beyond its end"))?;
        if checksum(json) != u64::read(&numbers[16..24]) {
            return Err(broken("the checksum of its directory"));
        }
        let Directory { identity: own, mut meta, points, rows, levels, messages, longest } =
            serde_json::from_slice(json).map_err(|_| broken("its directory"))?;
        if own != identity {
            return Err(IndexError::Stale);
        }
        if rows.len() != meta.rows.len() || points.len() != meta.lanes.len() {
            return Err(broken("its lists"));
        }
        meta.rows.iter_mut().for_each(|row| row.main.truncate(MAIN));
        let points = points.iter().map(|at| points_of(&all, at)).collect::<Result<_, _>>()?;
        let rows = rows.iter().zip(&meta.rows).map(|(at, row)| intervals(&all, at, row));
        let rows = rows.collect::<Result<_, _>>()?;
        let levels = levels.iter().map(|at| levels_of(&all, at)).collect::<Result<_, _>>()?;
        let messages = messages_of(&all, &messages, longest)?;
        Ok(Self { meta, points, rows, levels, messages })
    }

    /// Byte ranges from which pictures are made, most frequently used first: callers with a mapped file
    /// may want to load them in advance.
    #[must_use]
    pub fn drawn(&self) -> Vec<Range<usize>> {
        let points = || self.points.iter().flatten();
        let mut all: Vec<Option<Range<usize>>> = points().map(|of| of.grid.place()).collect();
        all.extend(points().flat_map(|of| [of.times.place(), of.classes.place()]));
        let row = |of: &Intervals| {
            let sums = match &of.sums {
                Sums::Kept(sums) => sums.place(),
                Sums::Made(_) => None,
            };
            [of.grid.place(), of.begins.place(), of.ends.place(), of.names.place(), sums]
        };
        all.extend(self.rows.iter().flat_map(row));
        all.into_iter().flatten().collect()
    }

    /// Its lists.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Number of lanes.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.meta.lanes.len() as u32
    }

    /// The events of a lane, if it has any.
    #[must_use]
    pub fn points(&self, lane: u32) -> Option<&Points> {
        self.points.get(lane as usize)?.as_ref()
    }

    /// All events.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.points.iter().flatten().map(|points| points.len() as u64).sum()
    }

    /// A row of intervals, as in [`Meta::rows`].
    #[must_use]
    pub fn row(&self, row: usize) -> Option<(&Row, &Intervals)> {
        self.meta.rows.get(row).zip(self.rows.get(row))
    }

    /// The samples of a counter, as in [`Meta::counters`].
    #[must_use]
    pub fn levels(&self, counter: u32) -> Option<&Levels> {
        self.levels.get(counter as usize)
    }

    /// All messages.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }
}

fn points_of(all: &Shared, at: &At) -> Result<Option<Points>, IndexError> {
    if at.count == 0 {
        return Ok(None);
    }
    let mut columns = Columns { all, at, next: 0 };
    let (times, classes) = (columns.take()?, columns.take()?);
    let (threads, grid) = (columns.take()?, columns.grid()?);
    Ok(Some(Points { times, classes, threads, grid, forgotten: 0 }))
}

fn intervals(all: &Shared, at: &At, row: &Row) -> Result<Intervals, IndexError> {
    let mut columns = Columns { all, at, next: 0 };
    let (begins, ends) = (columns.take()?, columns.take()?);
    let (names, threads) = (columns.take()?, columns.take()?);
    let from = [columns.take()?, columns.take()?];
    let to = [columns.take()?, columns.take()?];
    let flags = columns.take()?;
    let blocks = at.count / BLOCK as u64 + 1;
    let sums = columns.some(blocks.saturating_mul(row.main.len() as u64 + 1))?;
    let (grid, main, sums) = (columns.grid()?, row.main.clone(), Sums::Kept(sums));
    Ok(Intervals {
        begins,
        ends,
        names,
        threads,
        from,
        to,
        flags,
        grid,
        main,
        sums,
        open: None,
        forgotten: 0,
        points_forgotten: None,
    })
}

fn levels_of(all: &Shared, at: &At) -> Result<Levels, IndexError> {
    let mut columns = Columns { all, at, next: 0 };
    let (times, values) = (columns.take()?, columns.take()?);
    let mut reaches = Vec::new();
    let mut count = at.count;
    while count > BLOCK as u64 {
        count = count.div_ceil(BLOCK as u64);
        reaches.push([columns.some(count)?, columns.some(count)?]);
    }
    Ok(Levels { times, values, grid: columns.grid()?, reaches, forgotten: 0 })
}

fn messages_of(all: &Shared, at: &At, longest: u64) -> Result<Messages, IndexError> {
    let mut columns = Columns { all, at, next: 0 };
    let (sent, received) = (columns.take()?, columns.take()?);
    let from = [columns.take()?, columns.take()?];
    let to = [columns.take()?, columns.take()?];
    Ok(Messages {
        sent,
        received,
        from,
        to,
        channels: columns.take()?,
        grid: columns.grid()?,
        longest,
        order: Order::Sent,
        points_forgotten: None,
    })
}
