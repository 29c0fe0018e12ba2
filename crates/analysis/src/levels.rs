// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that change in steps: counters, queue lengths.

use lateralis_units::Nanos;

use crate::series::Grid;

/// A value at a time; it holds until the next point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Time.
    pub time: Nanos,
    /// Value from then on.
    pub value: f64,
}

/// Points kept for a bucket of time.
#[derive(Debug, Clone, Copy)]
struct Few {
    first: Point,
    low: Point,
    high: Point,
    last: Point,
}

/// A value over time: its extremes, its time-weighted mean, and a chart.
///
/// The chart keeps the first, least, greatest and last point of each of a bounded number of equal buckets
/// of time: drawn at one bucket per pixel it looks like all points, and no extreme is lost. Memory: 64
/// bytes per bucket.
#[derive(Debug, Clone)]
pub struct Level {
    count: u64,
    low: Option<Point>,
    high: Option<Point>,
    last: Option<Point>,
    /// Integral of the value over time, and its length in nanoseconds.
    area: f64,
    nanos: u64,
    grid: Grid,
    buckets: Vec<Option<Few>>,
}

impl Level {
    /// Starts at `begin`, with a chart of at most `buckets` buckets (at least 2).
    #[must_use]
    pub fn new(begin: Nanos, buckets: usize) -> Self {
        Self {
            count: 0,
            low: None,
            high: None,
            last: None,
            area: 0.0,
            nanos: 0,
            grid: Grid::new(begin, buckets),
            buckets: Vec::new(),
        }
    }

    /// Sets the value from now on. Times must be in order; NaN is ignored.
    pub fn set(&mut self, time: Nanos, value: f64) {
        if value.is_nan() {
            return;
        }
        self.hold(time);
        let point = Point { time, value };
        self.count += 1;
        self.low = Some(self.low.filter(|low| low.value <= value).unwrap_or(point));
        self.high = Some(self.high.filter(|high| high.value >= value).unwrap_or(point));
        self.last = Some(point);
        let offset = self.grid.offset(time);
        let buckets = &mut self.buckets;
        self.grid.reach(offset, || {
            *buckets = buckets.chunks(2).map(|two| join(two[0], *two.last()?)).collect();
        });
        let index = self.grid.index(offset);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, None);
        }
        let few = Few { first: point, low: point, high: point, last: point };
        self.buckets[index] = join(self.buckets[index], Some(few));
    }

    /// Extends the current value up to a time; also called at the end.
    pub fn hold(&mut self, time: Nanos) {
        if let Some(last) = &self.last {
            // The part that is not in the area yet.
            let nanos = time.since(last.time).max(0) as u64;
            self.area += last.value * nanos as f64;
            self.nanos = self.nanos.saturating_add(nanos);
        }
        if let Some(last) = &mut self.last {
            last.time = last.time.max(time);
        }
    }

    /// Number of points.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least point, the first if there are several.
    #[must_use]
    pub fn low(&self) -> Option<Point> {
        self.low
    }

    /// The greatest point, the first if there are several.
    #[must_use]
    pub fn high(&self) -> Option<Point> {
        self.high
    }

    /// The last point.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.last.map(|last| last.value)
    }

    /// Time-weighted mean; `None` if no time has passed.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.nanos > 0).then(|| self.area / self.nanos as f64)
    }

    /// Points that are kept, in time order, at most four per bucket.
    #[must_use]
    pub fn chart(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for few in self.buckets.iter().flatten() {
            let (a, b) = if few.low.time <= few.high.time {
                (few.low, few.high)
            } else {
                (few.high, few.low)
            };
            for point in [few.first, a, b, few.last] {
                if points.last() != Some(&point) {
                    points.push(point);
                }
            }
        }
        points
    }
}

fn join(a: Option<Few>, b: Option<Few>) -> Option<Few> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    Some(Few {
        first: a.first,
        low: if b.low.value < a.low.value { b.low } else { a.low },
        high: if b.high.value > a.high.value { b.high } else { a.high },
        last: b.last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mean_is_weighted_with_time() {
        let mut level = Level::new(Nanos(0), 4);
        assert_eq!((level.mean(), level.last()), (None, None));
        level.set(Nanos(10), 1.0);
        level.set(Nanos(20), 4.0);
        level.set(Nanos(20), f64::NAN);
        level.hold(Nanos(25));
        level.hold(Nanos(30));
        assert_eq!(level.mean(), Some(2.5));
        assert_eq!((level.count(), level.last()), (2, Some(4.0)));
        assert_eq!(level.low(), Some(Point { time: Nanos(10), value: 1.0 }));
    }

    proptest! {
        #[test]
        fn a_chart_keeps_the_extremes_of_every_bucket(
            steps in prop::collection::vec((0i64..1000, -50i32..50), 1..300),
        ) {
            let mut level = Level::new(Nanos(0), 8);
            let (mut time, mut all) = (0, Vec::new());
            for (later, value) in steps {
                time += later;
                level.set(Nanos(time), f64::from(value));
                all.push(Point { time: Nanos(time), value: f64::from(value) });
            }
            let chart = level.chart();
            prop_assert!(chart.len() <= 32);
            prop_assert!(chart.is_sorted_by_key(|point| point.time));
            let width = level.grid.width() as i64;
            for bucket in 0..8 {
                let of = |points: &[Point]| -> Vec<f64> {
                    let inside = |point: &&Point| point.time.0 / width == bucket;
                    points.iter().filter(inside).map(|point| point.value).collect()
                };
                let (some, every) = (of(&chart), of(&all));
                let low = |points: &[f64]| points.iter().copied().fold(f64::MAX, f64::min);
                let high = |points: &[f64]| points.iter().copied().fold(f64::MIN, f64::max);
                prop_assert_eq!(low(&some), low(&every));
                prop_assert_eq!(high(&some), high(&every));
                prop_assert_eq!(some.first(), every.first());
                prop_assert_eq!(some.last(), every.last());
            }
            let area: f64 =
                all.windows(2).map(|w| w[0].value * w[1].time.since(w[0].time) as f64).sum();
            if time > all[0].time.0 {
                let mean = area / (time - all[0].time.0) as f64;
                prop_assert!((level.mean().unwrap() - mean).abs() < 1e-6);
            }
        }
    }
}
