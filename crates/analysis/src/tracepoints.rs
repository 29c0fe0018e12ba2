// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles between a START and a STOP, and the cost of measuring them.
//!
//! The rules are those of seL4's tracepoints. A START stores the time in its slot, replacing an earlier
//! one; a STOP logs the difference, if there was a START since the last STOP. So tracepoints may nest and
//! interleave, and a START or a STOP may be in a branch that is not always taken:
//!
//! ```text
//! START(0)  START(1)  STOP(0)  STOP(1)     two entries
//! START(0)  START(0)  STOP(0)              one entry, from the second START
//! STOP(0)                                  no entry, counted
//! ```
//!
//! Own cost: for a pair with nothing in between, the cycles of the inner one are the excess of each
//! measurement (*effective* cost); the outer minus the inner are the cycles that a pair adds to the
//! program (*total* cost).

/// A log entry: a START and its STOP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The tracepoint, a row of the table.
    pub row: u32,
    /// Thread or CPU: only entries of one lane can nest.
    pub lane: u32,
    /// Number of other STARTs and STOPs of the lane in between, if known.
    pub inside: Option<u32>,
    /// Cycles from START to STOP; 0 where the clock ran backwards.
    pub cycles: u64,
}

/// Irregular STARTs and STOPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Odd {
    /// STOPs without a START since the last STOP: ignored.
    pub stops: u64,
    /// STARTs whose slot was already started: the later one counts.
    pub restarts: u64,
    /// STARTs without a following STOP.
    pub open: u64,
    /// STOPs with a clock before that of their START: 0 cycles.
    pub backwards: u64,
}

#[derive(Debug, Clone, Copy)]
struct Started {
    cycles: u64,
    /// Number of marks of its lane up to and including itself.
    marks: u64,
}

/// Makes entries of STARTs and STOPs as they come.
///
/// Slots, rows and lanes are numbers from 0; a slot is one tracepoint in one lane, as numbered by the
/// caller.
#[derive(Debug, Default)]
pub struct Tracepoints {
    slots: Vec<Option<Started>>,
    lanes: Vec<u64>,
    entries: Vec<Entry>,
    odd: Odd,
}

impl Tracepoints {
    /// A START of `slot` in `lane` at `cycles`.
    ///
    /// Cost: constant; 24 bytes for each slot and 8 for each lane below the highest.
    pub fn start(&mut self, slot: u32, lane: u32, cycles: u64) {
        let marks = self.mark(lane);
        let slot = self.slot(slot);
        let restarted = slot.replace(Started { cycles, marks }).is_some();
        self.odd.restarts += u64::from(restarted);
    }

    /// A STOP of `slot` in `lane` at `cycles`: an entry in `row`, if it was started.
    ///
    /// Cost: constant; 24 bytes for an entry.
    pub fn stop(&mut self, slot: u32, row: u32, lane: u32, cycles: u64) -> Option<Entry> {
        let marks = self.mark(lane);
        let Some(started) = self.slot(slot).take() else {
            self.odd.stops += 1;
            return None;
        };
        self.odd.backwards += u64::from(cycles < started.cycles);
        // One started in another lane has counted other marks.
        let inside = marks.saturating_sub(started.marks).saturating_sub(1);
        let entry = Entry {
            row,
            lane,
            inside: Some(u32::try_from(inside).unwrap_or(u32::MAX)),
            cycles: cycles.saturating_sub(started.cycles),
        };
        self.entries.push(entry);
        Some(entry)
    }

    /// Adds a complete entry, as in logs without times.
    pub fn whole(&mut self, row: u32, lane: u32, cycles: u64) {
        self.entries.push(Entry { row, lane, inside: None, cycles });
    }

    /// The entries in the order of their STOPs, and the irregularities.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Entry>, Odd) {
        self.odd.open = self.slots.iter().flatten().count() as u64;
        (self.entries, self.odd)
    }

    fn mark(&mut self, lane: u32) -> u64 {
        let lane = lane as usize;
        if self.lanes.len() <= lane {
            self.lanes.resize(lane + 1, 0);
        }
        self.lanes[lane] += 1;
        self.lanes[lane]
    }

    fn slot(&mut self, slot: u32) -> &mut Option<Started> {
        let slot = slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        &mut self.slots[slot]
    }
}

/// Statistics of a row, in cycles.
///
/// The variance is that of the samples themselves (divided by n), the standard deviation is the estimate
/// for their population (n - 1), as in seL4's benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// Number of samples.
    pub count: u64,
    /// Least.
    pub min: i64,
    /// Greatest.
    pub max: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Mean square of the distance from the mean, in cycles².
    pub variance: f64,
    /// Standard deviation: [`crate::stddev`].
    pub stddev: f64,
    /// The most frequent value, the least if there are several.
    pub mode: i64,
    /// 25 %, interpolated between two values.
    pub quartile_1: f64,
    /// 50 %, likewise.
    pub median: f64,
    /// 75 %, likewise.
    pub quartile_3: f64,
}

impl Moments {
    /// Statistics of the samples, which are sorted in place; `None` if there are none.
    ///
    /// Cost: O(n log n).
    #[must_use]
    pub fn of(samples: &mut [i64]) -> Option<Self> {
        samples.sort_unstable();
        let (&min, &max) = (samples.first()?, samples.last()?);
        let n = samples.len() as f64;
        let sum: i128 = samples.iter().map(|&sample| i128::from(sample)).sum();
        let mean = sum as f64 / n;
        let squares: f64 = samples.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum();
        Some(Self {
            count: samples.len() as u64,
            min,
            max,
            mean,
            variance: squares / n,
            stddev: crate::stddev(squares, samples.len() as u64),
            mode: mode(samples),
            quartile_1: quantile(samples, 0.25),
            median: quantile(samples, 0.5),
            quartile_3: quantile(samples, 0.75),
        })
    }

    /// The standard deviation in percent of the mean; `None` if the mean is 0.
    #[must_use]
    pub fn stddev_percent(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| self.stddev / self.mean.abs() * 100.0)
    }
}

/// `samples` must be sorted and not empty.
fn mode(samples: &[i64]) -> i64 {
    // The first of the longest: `max_by_key` returns the last.
    samples.chunk_by(|a, b| a == b).rev().max_by_key(|run| run.len()).map_or(0, |run| run[0])
}

/// `samples` must be sorted and not empty.
fn quantile(samples: &[i64], part: f64) -> f64 {
    let index = part * (samples.len() - 1) as f64;
    let (low, rest) = (index as usize, index.fract());
    let above = samples.get(low + 1).map_or(0.0, |&above| above as f64 * rest);
    samples[low] as f64 * (1.0 - rest) + above
}

/// Cost of a tracepoint, measured by nested empty ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnCost {
    /// Excess cycles of each measurement: those of the inner tracepoint.
    pub effective: Moments,
    /// Cycles that a START and STOP add to the program: outer minus inner.
    pub total: Moments,
    /// Outer ones without exactly one inner one: not counted.
    pub unpaired: u64,
}

/// The own cost, from entries of row `outer` around those of row `inner_row`; `None` without any such
/// pair.
///
/// Cost: one pass over the entries, and sorting.
#[must_use]
pub fn own_cost(entries: &[Entry], outer: u32, inner_row: u32) -> Option<OwnCost> {
    let lanes = entries.iter().map(|entry| entry.lane as usize + 1).max().unwrap_or(0);
    let mut previous: Vec<Option<&Entry>> = vec![None; lanes];
    let (mut effective, mut total) = (Vec::new(), Vec::new());
    let mut unpaired = 0;
    for entry in entries {
        // The previous STOP of its lane: that of the inner one, if the two are empty.
        let before = previous[entry.lane as usize].replace(entry);
        if entry.row != outer {
            continue;
        }
        let nested = |inner: &&Entry| {
            inner.row == inner_row
                && matches!((entry.inside, inner.inside), (Some(2), Some(0)) | (None, None))
        };
        match before.filter(nested) {
            Some(inner) => {
                effective.push(signed(inner.cycles));
                total.push(signed(entry.cycles) - signed(inner.cycles));
            }
            None => unpaired += 1,
        }
    }
    let (effective, total) = (Moments::of(&mut effective)?, Moments::of(&mut total)?);
    Some(OwnCost { effective, total, unpaired })
}

impl OwnCost {
    /// The cycles of an entry without the cost of the tracepoints: minus the effective cost, and half the
    /// total cost for each START and STOP inside (medians). May be negative, as the cost varies; if the
    /// number inside is unknown, only the effective cost is subtracted.
    #[must_use]
    pub fn less(&self, entry: &Entry) -> i64 {
        let inside = self.total.median * f64::from(entry.inside.unwrap_or(0)) / 2.0;
        signed(entry.cycles) - (self.effective.median + inside).round() as i64
    }
}

/// Cycles as a signed number; values of more than a century are cut off.
#[must_use]
pub fn signed(cycles: u64) -> i64 {
    i64::try_from(cycles).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "tracepoints/tests.rs"]
mod tests;
