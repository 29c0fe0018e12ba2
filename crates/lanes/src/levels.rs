// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter: samples that hold until the next one.

use crate::column::Column;
use crate::grid::Grid;
use crate::pixels::{BLOCK, Scale};

/// Samples in time order.
#[derive(Clone)]
pub struct Levels {
    pub(crate) times: Column<u64>,
    pub(crate) values: Column<f64>,
    pub(crate) grid: Grid,
    /// Lowest and highest value of each 64 samples, of each 64 of those, and so on.
    pub(crate) reaches: Vec<[Column<f64>; 2]>,
    /// Number of evicted samples of a growing counter: block boundaries include them.
    pub(crate) forgotten: usize,
}

/// Values of a counter in a pixel; NaN if unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Lowest value, including that at the beginning.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// The last.
    pub last: f64,
}

/// Lowest and highest value of each [`BLOCK`] samples; NaN is ignored.
pub(crate) fn reaches(lows: &[f64], highs: &[f64]) -> [Vec<f64>; 2] {
    let low = lows.chunks(BLOCK).map(|block| block.iter().copied().fold(f64::NAN, f64::min));
    let high = highs.chunks(BLOCK).map(|block| block.iter().copied().fold(f64::NAN, f64::max));
    [low.collect(), high.collect()]
}

impl Levels {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time and value of a sample.
    #[must_use]
    pub fn point(&self, index: usize) -> (u64, f64) {
        (self.times.get(index), self.values.get(index))
    }

    /// Number of samples before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        self.grid.before(&self.times, time)
    }

    /// Values in each pixel (see [`crate::pixels`]): the samples in it, and the one before.
    pub fn draw<'a>(&'a self, scale: &'a Scale) -> impl Iterator<Item = Reach> + 'a {
        (0..scale.px).map(|pixel| {
            let (begin, end) = scale.pixel(pixel);
            let (from, to) = (self.before(begin), self.before(end));
            // A sample in the first nanosecond replaces the previous value entirely.
            let is_told = from < to && self.times.get(from) as i64 == begin;
            let from = if is_told { from } else { from.saturating_sub(1) };
            if from >= to {
                return Reach { low: f64::NAN, high: f64::NAN, last: f64::NAN };
            }
            let [low, high] = self.reach(from, to);
            Reach { low, high, last: self.values.get(to - 1) }
        })
    }

    /// Lowest and highest value in a range of samples.
    fn reach(&self, from: usize, to: usize) -> [f64; 2] {
        let (from, to) = (from + self.forgotten, to + self.forgotten);
        let mut found = [f64::NAN; 2];
        let mut add = |low: f64, high: f64| found = [found[0].min(low), found[1].max(high)];
        let (mut from, mut to) = (from, to);
        let mut columns = [&self.values, &self.values];
        // Number of evicted elements in this column and, as whole blocks, in those above it.
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
