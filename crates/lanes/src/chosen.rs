// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a filter leaves: a bit for each event.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::intervals::Left;
use crate::{Lanes, PointRef, RankedBits, RowKind};

/// What somebody wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Lanes whose events are not.
    pub lanes_off: BTreeSet<u32>,
    /// Classes that are not.
    pub classes_off: BTreeSet<u32>,
    /// Applications that are not.
    pub applications_off: BTreeSet<u32>,
}

impl Wanted {
    /// Whether it is all.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// What a filter leaves of each lane.
///
/// An interval between two events is left if both are; one that events are told of, as a state, if
/// its first is; who ran, if the application and the lane are wanted.
pub struct Chosen {
    wanted: Wanted,
    /// By lane.
    bits: Vec<RankedBits>,
    /// By row, made when it is drawn first.
    left: Vec<OnceLock<Left>>,
    count: u64,
}

impl Chosen {
    /// Looks at each event: `also` says which of them a script keeps.
    ///
    /// Cost: some nanoseconds each. Memory: some 1.5 bits each.
    #[must_use]
    pub fn new(
        lanes: &Lanes,
        wanted: &Wanted,
        also: Option<&(dyn Fn(PointRef) -> bool + Sync)>,
    ) -> Self {
        let meta = lanes.meta();
        let is_on = |set: &BTreeSet<u32>, count: usize| -> Vec<bool> {
            (0..count as u32).map(|id| !set.contains(&id)).collect()
        };
        let classes = is_on(&wanted.classes_off, meta.classes.len());
        let threads: Vec<bool> = meta
            .threads
            .iter()
            .map(|thread| !wanted.applications_off.contains(&thread.application))
            .collect();
        let of_lane = |(lane, points): (u32, Option<&crate::Points>)| -> RankedBits {
            let Some(points) = points.filter(|_| !wanted.lanes_off.contains(&lane)) else {
                return RankedBits::default();
            };
            let kinds = points.kinds(0, points.len());
            (0..)
                .zip(kinds)
                .map(|(index, (class, thread))| {
                    classes.get(class as usize) != Some(&false)
                        && threads.get(thread as usize) != Some(&false)
                        && also.is_none_or(|keeps| keeps(PointRef { lane, index }))
                })
                .collect()
        };
        let all: Vec<_> = (0..lanes.count()).map(|lane| (lane, lanes.points(lane))).collect();
        let bits: Vec<RankedBits> = all.into_iter().map(of_lane).collect();
        let count = bits.iter().map(|bits| bits.count() as u64).sum();
        let left = (0..meta.rows.len()).map(|_| OnceLock::new()).collect();
        Self { wanted: wanted.clone(), bits, left, count }
    }

    /// How many events.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Of a lane.
    #[must_use]
    pub fn bits(&self, lane: u32) -> Option<&RankedBits> {
        self.bits.get(lane as usize)
    }

    /// Whether an event is left.
    #[must_use]
    pub fn has(&self, point: PointRef) -> bool {
        self.bits(point.lane).is_some_and(|bits| bits.get(point.index as usize))
    }

    /// Whether an interval of a row is left.
    #[must_use]
    pub fn keeps(&self, lanes: &Lanes, row: usize, index: usize) -> bool {
        let Some((row, intervals)) = lanes.row(row) else {
            return false;
        };
        let [from, to] = intervals.events(index);
        if row.kind == RowKind::Running {
            return !self.wanted.applications_off.contains(&intervals.name(index))
                && !self.wanted.lanes_off.contains(&row.lane);
        }
        from.is_none_or(|point| self.has(point)) && to.is_none_or(|point| self.has(point))
    }

    /// What is left of a row of intervals.
    pub fn left(&self, lanes: &Lanes, row: usize) -> Option<&Left> {
        let (_, intervals) = lanes.row(row)?;
        let make = || intervals.left(|index| self.keeps(lanes, row, index));
        Some(self.left.get(row)?.get_or_init(make))
    }
}
