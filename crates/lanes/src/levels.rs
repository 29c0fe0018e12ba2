// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter: values that hold until the next.

use crate::column::Column;
use crate::grid::Grid;
use crate::pixels::{BLOCK, Scale};

/// Values in the order of time.
#[derive(Clone)]
pub struct Levels {
    pub(crate) times: Column<u64>,
    pub(crate) values: Column<f64>,
    pub(crate) grid: Grid,
    /// Of each 64 values, of each 64 of those, and so on: lowest and highest.
    pub(crate) reaches: Vec<[Column<f64>; 2]>,
    /// Values of a counter that grows that are not here any more: blocks are counted with them.
    pub(crate) forgotten: usize,
}

/// What a counter did in a pixel; NaN where that is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Lowest value, that at the beginning included.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// The last.
    pub last: f64,
}

/// Lowest and highest of each [`BLOCK`] values; one of no number counts for nothing.
pub(crate) fn reaches(lows: &[f64], highs: &[f64]) -> [Vec<f64>; 2] {
    let low = lows.chunks(BLOCK).map(|block| block.iter().copied().fold(f64::NAN, f64::min));
    let high = highs.chunks(BLOCK).map(|block| block.iter().copied().fold(f64::NAN, f64::max));
    [low.collect(), high.collect()]
}

impl Levels {
    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When one was told, and what.
    #[must_use]
    pub fn point(&self, index: usize) -> (u64, f64) {
        (self.times.get(index), self.values.get(index))
    }

    /// How many were told before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        self.grid.before(&self.times, time)
    }

    /// What it did in each pixel (see [`crate::pixels`]): the values told in it, and the one
    /// before.
    pub fn draw<'a>(&'a self, scale: &'a Scale) -> impl Iterator<Item = Reach> + 'a {
        (0..scale.px).map(|pixel| {
            let (begin, end) = scale.pixel(pixel);
            let (from, to) = (self.before(begin), self.before(end));
            // What was told in the first nanosecond leaves nothing of what was before.
            let is_told = from < to && self.times.get(from) as i64 == begin;
            let from = if is_told { from } else { from.saturating_sub(1) };
            if from >= to {
                return Reach { low: f64::NAN, high: f64::NAN, last: f64::NAN };
            }
            let [low, high] = self.reach(from, to);
            Reach { low, high, last: self.values.get(to - 1) }
        })
    }

    /// Lowest and highest of those from one to another.
    fn reach(&self, from: usize, to: usize) -> [f64; 2] {
        let (from, to) = (from + self.forgotten, to + self.forgotten);
        let mut found = [f64::NAN; 2];
        let mut add = |low: f64, high: f64| found = [found[0].min(low), found[1].max(high)];
        let (mut from, mut to) = (from, to);
        let mut columns = [&self.values, &self.values];
        // Of this column, and of those above it, as many as they are blocks of what is gone.
        let mut forgotten = self.forgotten;
        for next in self.reaches.iter().map(Some).chain([None]) {
            let inner = (from.div_ceil(BLOCK), to / BLOCK);
            let each = |a: usize, b: usize, add: &mut dyn FnMut(f64, f64)| {
                let (a, b) = (a - forgotten, b - forgotten);
                let lows = columns[0].range(a, b);
                lows.zip(columns[1].range(a, b)).for_each(|(low, high)| add(low, high));
            };
            match next.filter(|_| inner.0 < inner.1) {
                None => {
                    each(from, to, &mut add);
                    break;
                }
                Some([lows, highs]) => {
                    each(from, inner.0 * BLOCK, &mut add);
                    each(inner.1 * BLOCK, to, &mut add);
                    (from, to) = inner;
                    columns = [lows, highs];
                    forgotten /= BLOCK;
                }
            }
        }
        found
    }
}
