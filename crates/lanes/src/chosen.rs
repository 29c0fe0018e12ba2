// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Result of a filter: a bit for each event.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::left::Left;
use crate::{Lanes, PointRef, RankedBits, RowKind};

/// Specification of a filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Lanes whose events are hidden.
    pub lanes_off: BTreeSet<u32>,
    /// Hidden classes.
    pub classes_off: BTreeSet<u32>,
    /// Hidden processes.
    pub applications_off: BTreeSet<u32>,
}

impl Wanted {
    /// Whether nothing is hidden.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// Events of each lane that a filter keeps.
///
/// An interval between two events is kept if both are; an interval derived from reports, as a state, if
/// its first event is; CPU occupancy and thread states, if process and lane are shown.
pub struct Chosen {
    wanted: Wanted,
    lanes: Vec<OfLane>,
    /// By thread, whether its process is shown.
    threads: Vec<bool>,
    /// By row, computed when it is first drawn.
    left: Vec<OnceLock<Arc<Left>>>,
    /// Rows of the result for an earlier state of the session.
    rows_before: Vec<Option<Arc<Left>>>,
    count: u64,
}

/// Kept events of a lane, and the number of evicted ones.
#[derive(Default)]
struct OfLane {
    forgotten: u64,
    bits: RankedBits,
}

impl Chosen {
    /// Evaluates each event; `also` returns whether a script keeps it.
    ///
    /// Cost: some nanoseconds per event. Memory: some 1.5 bits per event.
    #[must_use]
    pub fn new(
        lanes: &Lanes,
        wanted: &Wanted,
        also: Option<&(dyn Fn(PointRef) -> bool + Sync)>,
    ) -> Self {
        Self::after(None, lanes, wanted, also)
    }

    /// Like [`Chosen::new`], extending the result for an earlier state of the session.
    ///
    /// Cost: that of a new one for added events; and a copy of the known result.
    #[must_use]
    pub fn after(
        before: Option<&Arc<Self>>,
        lanes: &Lanes,
        wanted: &Wanted,
        also: Option<&(dyn Fn(PointRef) -> bool + Sync)>,
    ) -> Self {
        let meta = lanes.meta();
        let before = before.filter(|before| before.wanted == *wanted);
        let is_on = |set: &BTreeSet<u32>, count: usize| -> Vec<bool> {
            (0..count as u32).map(|id| !set.contains(&id)).collect()
        };
        let classes = is_on(&wanted.classes_off, meta.classes.len());
        let threads: Vec<bool> = meta
            .threads
            .iter()
            .map(|thread| !wanted.applications_off.contains(&thread.application))
            .collect();
        let of_lane = |(lane, points): (u32, Option<&crate::Points>)| -> OfLane {
            let Some(points) = points else { return OfLane::default() };
            let forgotten = points.forgotten();
            if wanted.lanes_off.contains(&lane) {
                return OfLane { forgotten, bits: RankedBits::default() };
            }
            let nothing = OfLane { forgotten, bits: RankedBits::default() };
            let known = before.and_then(|before| before.lanes.get(lane as usize));
            // A result for a later state is not usable.
            let known = known.filter(|known| {
                known.forgotten <= forgotten
                    && known.forgotten + known.bits.len() as u64 <= forgotten + points.len() as u64
            });
            let known = known.unwrap_or(&nothing);
            let forgets = usize::try_from(forgotten - known.forgotten).unwrap_or(usize::MAX);
            let from = known.bits.len().saturating_sub(forgets);
            let kinds = points.kinds(from, points.len());
            let more = (from as u32..).zip(kinds).map(|(index, (class, thread))| {
                classes.get(class as usize) != Some(&false)
                    && threads.get(thread as usize) != Some(&false)
                    && also.is_none_or(|keeps| keeps(PointRef { lane, index }))
            });
            OfLane { forgotten, bits: known.bits.after(forgotten, forgets, more) }
        };
        let all: Vec<_> = (0..lanes.count()).map(|lane| (lane, lanes.points(lane))).collect();
        let of_lanes: Vec<OfLane> = all.into_iter().map(of_lane).collect();
        let count = of_lanes.iter().map(|of| of.bits.count() as u64).sum();
        let left = (0..meta.rows.len()).map(|_| OnceLock::new()).collect();
        let known = before.map(|before| before.known_rows());
        let rows_before = known.unwrap_or_default();
        Self { wanted: wanted.clone(), lanes: of_lanes, threads, left, rows_before, count }
    }

    /// Rows that have been computed so far.
    fn known_rows(&self) -> Vec<Option<Arc<Left>>> {
        let known = |(row, left): (usize, &OnceLock<Arc<Left>>)| {
            left.get().or_else(|| self.rows_before.get(row)?.as_ref()).cloned()
        };
        self.left.iter().enumerate().map(known).collect()
    }

    /// Number of kept events.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Kept events of a lane.
    #[must_use]
    pub fn bits(&self, lane: u32) -> Option<&RankedBits> {
        self.lanes.get(lane as usize).map(|of| &of.bits)
    }

    /// Whether an event is kept.
    #[must_use]
    pub fn has(&self, point: PointRef) -> bool {
        self.bits(point.lane).is_some_and(|bits| bits.get(point.index as usize))
    }

    /// Whether an interval of a row is kept.
    #[must_use]
    pub fn keeps(&self, lanes: &Lanes, row: usize, index: usize) -> bool {
        let Some((row, intervals)) = lanes.row(row) else {
            return false;
        };
        let is_lane_on = || !self.wanted.lanes_off.contains(&row.lane);
        if row.kind.is_of_applications() {
            let application = intervals.name(index);
            return !self.wanted.applications_off.contains(&application) && is_lane_on();
        }
        if row.kind == RowKind::ThreadStates {
            let thread = intervals.thread(index) as usize;
            return self.threads.get(thread) != Some(&false) && is_lane_on();
        }
        let [from, to] = intervals.events(index);
        from.is_none_or(|point| self.has(point)) && to.is_none_or(|point| self.has(point))
    }

    /// Kept intervals of a row.
    pub fn left(&self, lanes: &Lanes, row: usize) -> Option<&Left> {
        let (_, intervals) = lanes.row(row)?;
        let before = self.rows_before.get(row).and_then(Option::as_deref);
        let keeps = |index| self.keeps(lanes, row, index);
        let make = || Arc::new(intervals.left_after(before, keeps));
        Some(self.left.get(row)?.get_or_init(make))
    }
}
