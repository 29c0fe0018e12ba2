// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all lanes, merged by time.

use crate::{Chosen, Lanes, PointRef, Points, RankedBits};

/// Events by time; those of equal time by lane and their order there; all, or those that a filter keeps.
pub struct Listed<'a> {
    lanes: Vec<(u32, &'a Points, Option<&'a RankedBits>)>,
    end: u64,
}

impl<'a> Listed<'a> {
    /// For a session.
    #[must_use]
    pub fn new(lanes: &'a Lanes, chosen: Option<&'a Chosen>) -> Self {
        let of = |lane: u32| {
            let points = lanes.points(lane)?;
            // Lanes that the filter does not know have no kept events.
            Some((
                lane,
                points,
                chosen.map(|chosen| chosen.bits(lane)).map_or(Some(None), |bits| bits.map(Some))?,
            ))
        };
        Self { lanes: (0..lanes.count()).filter_map(of).collect(), end: lanes.meta().end }
    }

    /// Number of events before a time.
    ///
    /// Cost: a lookup for each lane.
    #[must_use]
    pub fn before(&self, time: i64) -> u64 {
        self.lanes.iter().map(|lane| Self::rank(lane, time) as u64).sum()
    }

    /// Number of events.
    #[must_use]
    pub fn count(&self) -> u64 {
        let of = |(_, points, bits): &(u32, &Points, Option<&RankedBits>)| {
            bits.map_or(points.len(), |bits| bits.rank(points.len())) as u64
        };
        self.lanes.iter().map(of).sum()
    }

    fn rank((_, points, bits): &(u32, &Points, Option<&RankedBits>), time: i64) -> usize {
        let before = points.before(time);
        bits.map_or(before, |bits| bits.rank(before))
    }

    /// Number of events up to a time, inclusive.
    fn rank_through(lane: &(u32, &Points, Option<&RankedBits>), time: i64) -> usize {
        match time.checked_add(1) {
            Some(after) => Self::rank(lane, after),
            // The time is the latest one there is.
            None => lane.2.map_or(lane.1.len(), |bits| bits.rank(lane.1.len())),
        }
    }

    fn nth((_, _, bits): &(u32, &Points, Option<&RankedBits>), rank: usize) -> Option<usize> {
        bits.map_or(Some(rank), |bits| bits.select(rank))
    }

    /// Number of events before the given one.
    #[must_use]
    pub fn number_of(&self, point: PointRef) -> u64 {
        let Some((_, points, _)) = self.lanes.iter().find(|(lane, ..)| *lane == point.lane) else {
            return 0;
        };
        let time = points.time(point.index as usize) as i64;
        let of = |lane: &(u32, &Points, Option<&RankedBits>)| {
            let before = match lane.0.cmp(&point.lane) {
                std::cmp::Ordering::Less => return Self::rank_through(lane, time) as u64,
                std::cmp::Ordering::Equal => point.index as usize,
                std::cmp::Ordering::Greater => return Self::rank(lane, time) as u64,
            };
            lane.2.map_or(before, |bits| bits.rank(before)) as u64
        };
        self.lanes.iter().map(of).sum()
    }

    /// `count` events from index `from` on.
    ///
    /// Cost: a search for the time, and a step for each event and lane.
    #[must_use]
    pub fn rows(&self, from: u64, count: usize) -> Vec<PointRef> {
        // The latest time with at most `from` events before it.
        let (mut low, mut high) = (0i64, i64::try_from(self.end).unwrap_or(i64::MAX));
        high = high.saturating_add(1);
        while low < high {
            // Rounded up, and without a sum that may overflow.
            let middle = high - (high - low) / 2;
            if self.before(middle) <= from { low = middle } else { high = middle - 1 }
        }
        let mut skip = from - self.before(low).min(from);
        let mut at: Vec<usize> = self.lanes.iter().map(|lane| Self::rank(lane, low)).collect();
        // At that time, the events of one lane come before those of the next.
        for (lane, at) in self.lanes.iter().zip(&mut at) {
            let of_time = Self::rank_through(lane, low).saturating_sub(*at) as u64;
            let passed = skip.min(of_time);
            *at += passed as usize;
            skip -= passed;
        }
        if skip > 0 {
            return Vec::new();
        }
        let mut rows = Vec::with_capacity(count.min(1 << 16));
        let next = |lane: &(u32, &Points, Option<&RankedBits>), rank: usize| {
            let index = Self::nth(lane, rank)?;
            (index < lane.1.len()).then(|| (lane.1.time(index), index))
        };
        let mut heads: Vec<_> =
            self.lanes.iter().zip(&at).map(|(lane, at)| next(lane, *at)).collect();
        while rows.len() < count {
            let first =
                heads.iter().enumerate().filter_map(|(i, head)| Some((head.as_ref()?.0, i)));
            let Some((_, lane)) = first.min() else { break };
            let index = heads[lane].map_or(0, |(_, index)| index);
            rows.push(PointRef { lane: self.lanes[lane].0, index: index as u32 });
            at[lane] += 1;
            heads[lane] = next(&self.lanes[lane], at[lane]);
        }
        rows
    }
}
