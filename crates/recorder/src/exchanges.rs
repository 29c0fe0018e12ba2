// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects the clock readings to keep from a recording that is received for an unlimited time.

use serde::{Deserialize, Serialize};

/// Maximum number of readings kept.
const KEPT_MAX: usize = 512;

/// Readings of two counters, taken while a recording was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// Name of the server's counter in its trace.
    pub their_clock: String,
    /// Name of this machine's counter in traces.
    pub our_clock: String,
    /// Its UUID in traces, hexadecimal: identifies the boot of a machine.
    pub our_clock_uuid: Option<String>,
    /// Its ticks per second.
    pub our_frequency_hz: u64,
    /// UTC of its tick 0 on this machine: seconds since 1970.
    pub our_offset_s: i64,
    /// Additional ticks.
    pub our_offset_ticks: u64,
    /// Number of readings made; the best of them are listed.
    pub made: u64,
    /// Ticks: ours at the request, theirs at its receipt, theirs at the response, ours at its receipt. In the
    /// order of time, at most 512: each the one with the shortest round trip of a group of equal size.
    pub listed: Vec<[u64; 4]>,
}

/// A reading of both counters, and its error bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Ours at the request, theirs at its receipt, theirs at the response, ours at its receipt.
    pub ticks: [u64; 4],
    /// Half of the round trip.
    pub error_ns: u64,
}

/// The best reading of each of many groups of equal size, over the whole time.
///
/// Memory: 512 readings.
#[derive(Debug, Clone)]
pub struct Readings {
    kept: Vec<Reading>,
    /// Each of `kept` represents a group of this size; the last one a group of `in_last`.
    each: u64,
    in_last: u64,
    made: u64,
}

impl Default for Readings {
    fn default() -> Self {
        Self { kept: Vec::new(), each: 1, in_last: 0, made: 0 }
    }
}

fn better(a: Reading, b: Reading) -> Reading {
    if b.error_ns < a.error_ns { b } else { a }
}

impl Readings {
    /// Continues from readings `kept` of `made` ones.
    #[must_use]
    pub fn after(kept: Vec<Reading>, made: u64) -> Self {
        let mut readings = Self::default();
        kept.into_iter().for_each(|reading| readings.add(reading));
        Self { made: made.max(readings.made), ..readings }
    }

    /// Adds a reading.
    pub fn add(&mut self, reading: Reading) {
        self.made = self.made.saturating_add(1);
        if let Some(last) = self.kept.last_mut().filter(|_| self.in_last < self.each) {
            *last = better(*last, reading);
            self.in_last += 1;
            return;
        }
        if self.kept.len() == KEPT_MAX {
            let pairs = self.kept.chunks(2);
            self.kept =
                pairs.map(|pair| pair.iter().copied().reduce(better).unwrap_or(reading)).collect();
            self.each *= 2;
        }
        self.kept.push(reading);
        self.in_last = 1;
    }

    /// The kept readings, in the order in which they were made.
    #[must_use]
    pub fn kept(&self) -> &[Reading] {
        &self.kept
    }

    /// Number of readings made.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_all_along() {
        let mut readings = Readings::default();
        for n in 0..100_000u64 {
            // One of a hundred has a short round trip.
            let error_ns = if n % 100 == 42 { 10 } else { 1000 + n % 7 };
            readings.add(Reading { ticks: [n, n, n, n], error_ns });
            assert!(readings.kept().len() <= KEPT_MAX);
        }
        assert_eq!(readings.made(), 100_000);
        let kept = readings.kept();
        assert!(kept.len() > KEPT_MAX / 2);
        assert!(kept.iter().filter(|reading| reading.error_ns == 10).count() > kept.len() / 2);
        assert!(kept.windows(2).all(|two| two[0].ticks < two[1].ticks));
        assert!(kept[0].ticks[0] < 1000 && kept[kept.len() - 1].ticks[0] > 99_000);
    }

    #[test]
    fn few_are_all_kept() {
        let some: Vec<Reading> =
            (0..9).map(|n| Reading { ticks: [n; 4], error_ns: 9 - n }).collect();
        let readings = Readings::after(some.clone(), 50);
        assert_eq!((readings.kept(), readings.made()), (&some[..], 50));
    }
}
