// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of a lane, as they come.

use super::grid::GrowingGrid;
use super::pieces::Pieces;
use crate::Points;

/// Events in the order of time.
#[derive(Default)]
pub struct GrowingPoints {
    times: Pieces<u64>,
    classes: Pieces<u16>,
    threads: Pieces<u32>,
    grid: GrowingGrid,
    last: u64,
}

impl GrowingPoints {
    /// Adds one: its number, those forgotten included, and whether it came too late, so that it
    /// has the time of the one before it.
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

    /// How many are left.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// How many were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.times.forgotten() as u64
    }

    /// When the one happened of which so many of those that are left are before.
    pub fn time(&self, index: usize) -> u64 {
        self.times.get(index)
    }

    /// Forgets those before a time.
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

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.times.bytes() + self.classes.bytes() + self.threads.bytes() + self.grid.bytes()
    }

    /// As they are now; nothing where there are none.
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
