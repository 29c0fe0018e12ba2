// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all lanes as one list by time.

use crate::{Chosen, Lanes, PointRef, Points, RankedBits};

/// Events by time, of one time by lane and their order there; all, or those a filter leaves.
pub struct Listed<'a> {
    lanes: Vec<(u32, &'a Points, Option<&'a RankedBits>)>,
    end: u64,
}

impl<'a> Listed<'a> {
    /// Of a session.
    #[must_use]
    pub fn new(lanes: &'a Lanes, chosen: Option<&'a Chosen>) -> Self {
        let of = |lane: u32| {
            let points = lanes.points(lane)?;
            // A filter that says nothing of a lane leaves nothing of it.
            Some((
                lane,
                points,
                chosen.map(|chosen| chosen.bits(lane)).map_or(Some(None), |bits| bits.map(Some))?,
            ))
        };
        Self { lanes: (0..lanes.count()).filter_map(of).collect(), end: lanes.meta().end }
    }

    /// How many there are before a time.
    ///
    /// Cost: a look-up for each lane.
    #[must_use]
    pub fn before(&self, time: i64) -> u64 {
        self.lanes.iter().map(|lane| Self::rank(lane, time) as u64).sum()
    }

    /// How many there are.
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

    /// How many there are up to a time, with those of it.
    fn rank_through(lane: &(u32, &Points, Option<&RankedBits>), time: i64) -> usize {
        match time.checked_add(1) {
            Some(after) => Self::rank(lane, after),
            // No time is later than the last one.
            None => lane.2.map_or(lane.1.len(), |bits| bits.rank(lane.1.len())),
        }
    }

    fn nth((_, _, bits): &(u32, &Points, Option<&RankedBits>), rank: usize) -> Option<usize> {
        bits.map_or(Some(rank), |bits| bits.select(rank))
    }

    /// How many there are before an event.
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

    /// So many events from one on, counted from 0.
    ///
    /// Cost: a search for the time, and a step for each event and lane.
    #[must_use]
    pub fn rows(&self, from: u64, count: usize) -> Vec<PointRef> {
        // The last time before which there are not more than `from`.
        let (mut low, mut high) = (0i64, i64::try_from(self.end).unwrap_or(i64::MAX));
        high = high.saturating_add(1);
        while low < high {
            // Rounded up, and without a sum that may be larger than all times.
            let middle = high - (high - low) / 2;
            if self.before(middle) <= from { low = middle } else { high = middle - 1 }
        }
        let mut skip = from - self.before(low).min(from);
        let mut at: Vec<usize> = self.lanes.iter().map(|lane| Self::rank(lane, low)).collect();
        // Of that time the events of one lane come before those of the next.
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
