// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of a growing lane.

use super::grid::GrowingGrid;
use super::pieces::Pieces;
use crate::Points;

/// Events in time order.
#[derive(Default)]
pub struct GrowingPoints {
    times: Pieces<u64>,
    classes: Pieces<u16>,
    threads: Pieces<u32>,
    grid: GrowingGrid,
    last: u64,
}

impl GrowingPoints {
    /// Adds an event; returns its index, including evicted ones, and whether it was out of order, so that
    /// it got the time of the previous one.
    pub fn push(&mut self, time: u64, class: u16, thread: u32) -> (u64, bool) {
        let is_late = time < self.last;
        self.last = self.last.max(time);
        let (forgotten, count) = (self.times.forgotten(), self.times.len());
        self.grid.push(self.last, forgotten, count);
        self.times.push(self.last);
        self.classes.push(class);
        self.threads.push(thread);
        ((forgotten + count) as u64, is_late)
    }

    /// Number of remaining events.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Number of evicted events.
    pub fn forgotten(&self) -> u64 {
        self.times.forgotten() as u64
    }

    /// Time of the remaining event with this index.
    pub fn time(&self, index: usize) -> u64 {
        self.times.get(index)
    }

    /// Evicts events before a time.
    pub fn forget(&mut self, time: u64) {
        let (mut low, mut high) = (0, self.times.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.times.get(middle) < time { low = middle + 1 } else { high = middle }
        }
        self.times.forget(low);
        self.classes.forget(low);
        self.threads.forget(low);
        self.grid.forget(time);
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.times.bytes() + self.classes.bytes() + self.threads.bytes() + self.grid.bytes()
    }

    /// Snapshot of the events; `None` if there are none.
    pub fn points(&self) -> Option<Points> {
        (self.times.len() > 0).then(|| Points {
            times: self.times.column(),
            classes: self.classes.column(),
            threads: self.threads.column(),
            grid: self.grid.grid(self.times.forgotten()),
            forgotten: self.times.forgotten() as u64,
        })
    }
}
