// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of lanes, as the page counts and draws them.

use lateralis_lanes::{LaneKind, Lanes, RowKind};

/// A row of a lane as the page counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// The events of the lane.
    Events,
    /// A row of intervals, by its number in the index.
    Intervals(usize),
    /// A counter, by its number.
    Level(u32),
    /// Activities of a script: its number, and its row there.
    Found(u32, usize),
}

/// Numbers of rows that scripts have found, in a session that grows.
pub const SCRIPTS_FROM: u32 = 1 << 16;

/// Numbered as they stand.
pub fn numbered(rows: Vec<Vec<Drawn>>) -> Vec<Vec<(u32, Drawn)>> {
    rows.into_iter().map(|rows| (0..).zip(rows).collect()).collect()
}

/// The same as [`rows`], but numbered in the order in which they came: events have 0, then rows of
/// intervals and counters.
pub fn rows_of_growing(lanes: &Lanes) -> Vec<Vec<(u32, Drawn)>> {
    let meta = lanes.meta();
    let mut next: Vec<u32> = vec![1; meta.lanes.len()];
    let mut of_row = Vec::with_capacity(meta.rows.len());
    for row in &meta.rows {
        let next = next.get_mut(row.lane as usize);
        of_row.push(next.map_or(0, |next| std::mem::replace(next, *next + 1)));
    }
    let number = |drawn: Drawn| match drawn {
        Drawn::Intervals(row) => of_row.get(row).copied().unwrap_or(0),
        // A counter has a lane of its own.
        Drawn::Level(_) => 1,
        _ => 0,
    };
    let order = |drawn: &Drawn| match drawn {
        Drawn::Intervals(row) => {
            let row = &meta.rows[*row];
            (2 + u8::from(row.kind == RowKind::Spans), row.name.clone(), row.depth)
        }
        _ => (1, None, 0),
    };
    let mut all = rows(lanes);
    for rows in &mut all {
        // Those of one kind as an index that is written has them: by name and depth.
        rows.sort_by_cached_key(|drawn| match drawn {
            Drawn::Intervals(row) if meta.rows[*row].kind == RowKind::Running => {
                (0, meta.rows[*row].name.clone(), meta.rows[*row].depth)
            }
            other => order(other),
        });
    }
    let told = |drawn: Drawn| (number(drawn), drawn);
    all.into_iter().map(|rows| rows.into_iter().map(told).collect()).collect()
}

/// Rows of each lane: who ran, events, states, spans, levels.
pub fn rows(lanes: &Lanes) -> Vec<Vec<Drawn>> {
    let meta = lanes.meta();
    let mut rows: Vec<Vec<Drawn>> = vec![Vec::new(); meta.lanes.len()];
    let add = |rows: &mut Vec<Vec<Drawn>>, kind: RowKind| {
        for (index, row) in meta.rows.iter().enumerate().filter(|(_, row)| row.kind == kind) {
            if let Some(rows) = rows.get_mut(row.lane as usize) {
                rows.push(Drawn::Intervals(index));
            }
        }
    };
    add(&mut rows, RowKind::Running);
    for (lane, told) in (0..).zip(&meta.lanes) {
        if lanes.points(lane).is_some() || told.kind == LaneKind::Cpu {
            rows[lane as usize].push(Drawn::Events);
        }
    }
    add(&mut rows, RowKind::States);
    add(&mut rows, RowKind::Spans);
    for (counter, told) in (0..).zip(&meta.counters) {
        if let Some(rows) = rows.get_mut(told.lane as usize) {
            rows.push(Drawn::Level(counter));
        }
    }
    rows
}
