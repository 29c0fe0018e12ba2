// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages from one lane to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::PointRef;
use crate::column::Column;
use crate::grid::Grid;
use crate::pixels::Scale;

/// Order of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By send: all are known.
    Sent,
    /// By receive: as they become known.
    Received,
}

/// Messages in the order of their sends or receives.
#[derive(Clone)]
pub struct Messages {
    pub(crate) sent: Column<u64>,
    pub(crate) received: Column<u64>,
    pub(crate) from: [Column<u32>; 2],
    pub(crate) to: [Column<u32>; 2],
    pub(crate) channels: Column<u32>,
    pub(crate) grid: Grid,
    /// Longest latency of any, to find those that were sent before a picture begins.
    pub(crate) longest: u64,
    pub(crate) order: Order,
    /// Number of evicted points of each lane.
    pub(crate) points_forgotten: Option<Arc<[u64]>>,
}

/// Messages that are drawn as one arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Lane of the sender.
    pub from_lane: u32,
    /// Lane of the receiver.
    pub to_lane: u32,
    /// Time of the first send.
    pub sent: u64,
    /// Time of its receive.
    pub received: u64,
    /// Number of messages.
    pub count: u32,
    /// Channel of the first message.
    pub channel: u32,
}

/// Ends of messages that can be combined: lanes, and pixels if they are in the picture.
type Place = (u32, u32, Option<u32>, Option<u32>, bool);

impl Messages {
    /// Largest number of messages examined for a picture; if there are more, they are sampled at equal
    /// distances.
    const LOOKED: usize = 1 << 18;

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Channel of a message.
    #[must_use]
    pub fn channel(&self, index: usize) -> u32 {
        self.channels.get(index)
    }

    /// The events at its ends.
    #[must_use]
    pub fn events(&self, index: usize) -> [PointRef; 2] {
        let told = [&self.from, &self.to]
            .map(|[lanes, indices]| PointRef { lane: lanes.get(index), index: indices.get(index) });
        let Some(forgotten) = &self.points_forgotten else { return told };
        told.map(|point| {
            let gone = PointRef { index: crate::NONE, ..point };
            point.behind(forgotten).unwrap_or(gone)
        })
    }

    /// Messages for a picture, between the lanes on which their events are drawn, in a bounded number of
    /// bundles: messages that are sent in one pixel and received in one. If there are more bundles, the
    /// width of pixels is doubled repeatedly.
    #[must_use]
    pub fn draw(
        &self,
        scale: &Scale,
        keeps: impl Fn(usize) -> bool,
        lane_of: impl Fn(PointRef) -> Option<u32>,
        most: usize,
    ) -> Vec<Bundle> {
        let longest = i64::try_from(self.longest).unwrap_or(i64::MAX);
        let (from, to) = match self.order {
            Order::Sent => (
                self.grid.before(&self.sent, scale.t0.saturating_sub(longest)),
                self.grid.before(&self.sent, scale.t1),
            ),
            Order::Received => (
                self.grid.before(&self.received, scale.t0),
                self.grid.before(&self.received, scale.t1.saturating_add(longest)),
            ),
        };
        let to = to.max(from);
        let step = (to - from).div_ceil(Self::LOOKED).max(1);
        let mut scale = *scale;
        loop {
            let mut bundles: BTreeMap<Place, Bundle> = BTreeMap::new();
            for index in (from..to).step_by(step) {
                let (sent, received) = (self.sent.get(index), self.received.get(index));
                let (left, came) = (signed(sent), signed(received));
                if left.max(came) < scale.t0 || left.min(came) >= scale.t1 || !keeps(index) {
                    continue;
                }
                let [from, to] = self.events(index).map(&lane_of);
                let (Some(from_lane), Some(to_lane)) = (from, to) else {
                    continue;
                };
                let pixels = (scale.pixel_of(left), scale.pixel_of(came));
                let place = (from_lane, to_lane, pixels.0, pixels.1, came >= scale.t1);
                let channel = self.channel(index);
                let bundle = Bundle { from_lane, to_lane, sent, received, count: 0, channel };
                let known = bundles.entry(place).or_insert(bundle);
                if (sent, received) < (known.sent, known.received) {
                    *known = Bundle { count: known.count, ..bundle };
                }
                let bundle = known;
                bundle.count = bundle.count.saturating_add(step as u32);
            }
            if bundles.len() <= most || scale.px == 1 {
                let mut bundles: Vec<Bundle> = bundles.into_values().collect();
                bundles.sort_by_key(|bundle| (bundle.sent, bundle.received));
                bundles.truncate(most);
                return bundles;
            }
            scale.px = scale.px.div_ceil(2);
        }
    }
}

fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
