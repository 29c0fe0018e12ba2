// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter that grows.

use super::grid::GrowingGrid;
use super::pieces::Pieces;
use crate::Levels;
use crate::pixels::BLOCK;

/// Samples in time order.
#[derive(Default)]
pub struct GrowingLevels {
    times: Pieces<u64>,
    values: Pieces<f64>,
    grid: GrowingGrid,
    /// For each whole block of samples, each whole block of those, and so on.
    reaches: Vec<[Pieces<f64>; 2]>,
    last: u64,
}

impl GrowingLevels {
    /// Adds a sample; one that is out of order gets the time of the previous one.
    pub fn push(&mut self, time: u64, value: f64) {
        self.last = self.last.max(time);
        self.grid.push(self.last, self.times.forgotten(), self.times.len());
        self.times.push(self.last);
        self.values.push(value);
        let mut count = self.times.forgotten() + self.times.len();
        let mut level = 0;
        while count.is_multiple_of(BLOCK) {
            if self.reaches.len() == level {
                self.reaches.push([Pieces::default(), Pieces::default()]);
            }
            for (side, fold) in [f64::min, f64::max].into_iter().enumerate() {
                let below = match level {
                    0 => &self.values,
                    _ => &self.reaches[level - 1][side],
                };
                // Evicted elements of the block are not needed any more.
                let begin = below.len().saturating_sub(BLOCK);
                let block = (begin..below.len()).map(|index| below.get(index));
                let reach = block.fold(f64::NAN, fold);
                self.reaches[level][side].push(reach);
            }
            count /= BLOCK;
            level += 1;
        }
    }

    /// Evicts samples before a time, except the last one, which holds until then. Samples at that very
    /// time are kept, as events are: more of them may still come.
    pub fn forget(&mut self, time: u64) {
        let (mut low, mut high) = (0, self.times.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.times.get(middle) < time { low = middle + 1 } else { high = middle }
        }
        let count = low.saturating_sub(1);
        self.times.forget(count);
        self.values.forget(count);
        let mut first = self.times.forgotten();
        for sides in &mut self.reaches {
            first /= BLOCK;
            for side in sides {
                side.forget(first - side.forgotten());
            }
        }
        self.grid.forget(self.times.get(0));
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        let reaches: usize = self.reaches.iter().flatten().map(Pieces::bytes).sum();
        self.times.bytes() + self.values.bytes() + self.grid.bytes() + reaches
    }

    /// Snapshot of the counter.
    pub fn levels(&self) -> Levels {
        let [low, high] = [0, 1].map(|side| move |of: &[Pieces<f64>; 2]| of[side].column());
        Levels {
            times: self.times.column(),
            values: self.values.column(),
            grid: self.grid.grid(self.times.forgotten()),
            reaches: self.reaches.iter().map(|sides| [low(sides), high(sides)]).collect(),
            forgotten: self.times.forgotten(),
        }
    }
}
