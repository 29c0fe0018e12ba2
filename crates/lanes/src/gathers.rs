// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who can be told what stands on which lane: a file that is written at the end, or an index that
//! is read while it grows.

use crate::building::{Builder, Interval, PointRef};
use crate::meta::{Lane, RowKind};

/// An interval that has begun, to say how it goes on; its place in a [`crate::Growing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub(crate) row: u32,
    /// Tells it from another of the same row.
    pub(crate) number: u64,
}

/// Takes what a trace says, event by event. Events come in the order of time, or nearly so.
pub trait Gathers {
    /// Adds a lane.
    fn lane(&mut self, lane: Lane) -> u32;

    /// A lane, to say more of it.
    fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane>;

    /// How many lanes there are.
    fn lane_count(&self) -> u32;

    /// An event on a lane that was added.
    fn point(&mut self, lane: u32, time: i64, class: u16, thread: u32) -> PointRef;

    /// Something that took time, told when it has ended, or when all has; intervals of a lane, kind
    /// and name share rows.
    fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval);

    /// A value of a counter.
    fn level(&mut self, counter: u32, time: i64, value: f64);

    /// A message between two events.
    fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef));

    /// Something begins: `None` where nobody wants to know before it has ended, and
    /// [`Gathers::interval`] will tell of it.
    fn begins(
        &mut self,
        lane: u32,
        kind: RowKind,
        name: Option<&str>,
        interval: Interval,
    ) -> Option<Opened> {
        let _ = (lane, kind, name, interval);
        None
    }

    /// What had begun has ended; `None`: it never was.
    fn ends(&mut self, opened: Opened, interval: Option<Interval>) {
        let _ = (opened, interval);
    }

    /// What had begun is known to go on until a time, and may have ended then.
    fn goes_on(&mut self, opened: Opened, until: i64) {
        let _ = (opened, until);
    }
}

impl Gathers for Builder {
    fn lane(&mut self, lane: Lane) -> u32 {
        Builder::lane(self, lane)
    }

    fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane> {
        Builder::lane_mut(self, lane)
    }

    fn lane_count(&self) -> u32 {
        Builder::lane_count(self)
    }

    fn point(&mut self, lane: u32, time: i64, class: u16, thread: u32) -> PointRef {
        Builder::point(self, lane, time, class, thread)
    }

    fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval) {
        Builder::interval(self, lane, kind, name, interval);
    }

    fn level(&mut self, counter: u32, time: i64, value: f64) {
        Builder::level(self, counter, time, value);
    }

    fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef)) {
        Builder::message(self, channel, sent, received);
    }
}
