// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sink for timeline items: a file that is written at the end, or an index that is read while it grows.

use crate::building::{Builder, Interval, PointRef};
use crate::meta::{Lane, RowKind};

/// Handle of an interval that has begun, in a [`crate::Growing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub(crate) row: u32,
    /// Distinguishes it from others on the same row.
    pub(crate) number: u64,
}

/// Receives timeline items, event by event. Events come in time order, or nearly so.
pub trait Gathers {
    /// Adds a lane.
    fn lane(&mut self, lane: Lane) -> u32;

    /// Mutable access to a lane.
    fn lane_mut(&mut self, lane: u32) -> Option<&mut Lane>;

    /// Number of lanes.
    fn lane_count(&self) -> u32;

    /// An event on an existing lane.
    fn point(&mut self, lane: u32, time: i64, class: u16, thread: u32) -> PointRef;

    /// An interval, reported when it has ended, or at the end; intervals of a lane, kind and name share
    /// rows.
    fn interval(&mut self, lane: u32, kind: RowKind, name: Option<&str>, interval: Interval);

    /// A sample of a counter.
    fn level(&mut self, counter: u32, time: i64, value: f64);

    /// A message between two events.
    fn message(&mut self, channel: u32, sent: (i64, PointRef), received: (i64, PointRef));

    /// Opens an interval: `None` if the sink does not need it before it has ended, and
    /// [`Gathers::interval`] will report it.
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

    /// Closes an open interval; `None` cancels it.
    fn ends(&mut self, opened: Opened, interval: Option<Interval>) {
        let _ = (opened, interval);
    }

    /// An open interval is known to last until a time, and may have ended then.
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
