// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts UTC time stamps to ticks of the recording's clock.
//!
//! The kernel stamps packets in CLOCK_REALTIME, which is adjusted continuously and may be set. So
//! both clocks are read together periodically ([`ClockSample`]), and a stamp is interpolated between the
//! two readings around it. The drift of the clocks between these two, and the uncertainty of
//! a reading, bound the error.

use std::collections::VecDeque;

use crate::clock::ClockSample;

/// Number of readings kept. Stamps are at most as old as the timeout of a block of the ring.
const KEPT: usize = 64;
/// Minimum distance of readings.
const APART_NS: i64 = 2_000_000;
/// If the clocks drift faster than this between two readings, one of them was set. Adjustments
/// are at most 500 ppm [adjtimex(2)], tick lengths at most 10 %.
const STEP: f64 = 0.101;

/// A converted stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Time on the recording's clock.
    pub ticks: u64,
    /// Error bound in nanoseconds.
    pub error_ns: u64,
}

/// The relation of the two clocks, as far as it is known.
#[derive(Debug, Clone)]
pub struct StampClock {
    frequency_hz: u64,
    samples: VecDeque<ClockSample>,
    steps: u64,
}

impl StampClock {
    /// Creates a relation to a clock of this frequency.
    pub fn new(frequency_hz: u64) -> StampClock {
        StampClock { frequency_hz: frequency_hz.max(1), samples: VecDeque::new(), steps: 0 }
    }

    /// Number of times that CLOCK_REALTIME was set between two readings.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn ns(&self, ticks: i128) -> i128 {
        ticks.saturating_mul(1_000_000_000) / i128::from(self.frequency_hz)
    }

    fn ticks(&self, ns: i128) -> i128 {
        ns.saturating_mul(i128::from(self.frequency_hz)) / 1_000_000_000
    }

    /// Nanoseconds that UTC gained on the ticks between two readings, and whether it was set
    /// in between.
    fn drift(&self, before: &ClockSample, after: &ClockSample) -> (i128, bool) {
        let elapsed = self.ns(i128::from(after.ticks) - i128::from(before.ticks));
        let windows = self.ns(i128::from(before.window_ticks) + i128::from(after.window_ticks));
        let told = i128::from(after.realtime_ns) - i128::from(before.realtime_ns);
        let drift = told - elapsed;
        let most = (elapsed as f64 * STEP) as i128 + windows + 1000;
        (drift, drift.abs() > most)
    }

    /// Adds a reading of both clocks, later than all previous ones.
    pub fn sample(&mut self, sample: ClockSample) {
        if let Some(last) = self.samples.back().copied() {
            if sample.ticks <= last.ticks {
                return;
            }
            let is_step = self.drift(&last, &sample).1;
            if is_step {
                self.steps += 1;
                // Earlier readings map stamps to different times now.
                self.samples.clear();
                self.samples.push_back(last);
            }
            // The last one was too close to the previous one: the new one replaces it.
            let before = self.samples.len().checked_sub(2).and_then(|at| self.samples.get(at));
            let is_close = before.is_some_and(|before| {
                !is_step
                    && !self.drift(before, &last).1
                    && last.realtime_ns.saturating_sub(before.realtime_ns) < APART_NS
            });
            if is_close {
                self.samples.pop_back();
            }
        }
        self.samples.push_back(sample);
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
    }

    /// The ticks of a stamp; `None` before the first reading.
    ///
    /// A stamp near a step of UTC may be from before or after it: the bound includes both.
    pub fn place(&self, utc_ns: i64) -> Option<Stamped> {
        let newest = self.samples.back()?;
        // Search from the newest pair of readings, as most stamps are recent.
        let mut pairs = self.samples.iter().rev().zip(self.samples.iter().rev().skip(1));
        let placed = pairs.find_map(|(after, before)| self.between(before, after, utc_ns));
        if placed.is_some() {
            return placed;
        }
        let oldest = self.samples.front()?;
        let nearest = if utc_ns < oldest.realtime_ns { oldest } else { newest };
        Some(self.beside(nearest, utc_ns))
    }

    /// Converts a stamp between two readings; `None` if it is not between them.
    fn between(&self, before: &ClockSample, after: &ClockSample, utc_ns: i64) -> Option<Stamped> {
        let (drift, is_step) = self.drift(before, after);
        let since = i128::from(utc_ns) - i128::from(before.realtime_ns);
        let until = i128::from(after.realtime_ns) - i128::from(utc_ns);
        let elapsed = i128::from(after.ticks) - i128::from(before.ticks);
        let from_before = if is_step {
            // From before the step or from after it, if possible.
            let from_before = Some(self.ticks(since)).filter(|ticks| (0..=elapsed).contains(ticks));
            let from_after = || {
                let ticks = elapsed - self.ticks(until);
                (0..=elapsed).contains(&ticks).then_some(ticks)
            };
            from_before.or_else(from_after)?
        } else if since >= 0 && until >= 0 {
            since.saturating_mul(elapsed) / (since + until).max(1)
        } else {
            return None;
        };
        let ticks = u64::try_from(i128::from(before.ticks) + from_before).unwrap_or(u64::MAX);
        let window = before.window_ticks.max(after.window_ticks);
        Some(Stamped { ticks, error_ns: self.bound(window, drift) })
    }

    /// Converts a stamp outside of all readings, at the nominal rate.
    fn beside(&self, nearest: &ClockSample, utc_ns: i64) -> Stamped {
        let away = i128::from(utc_ns) - i128::from(nearest.realtime_ns);
        let ticks = i128::from(nearest.ticks) + self.ticks(away);
        let ticks = u64::try_from(ticks.max(0)).unwrap_or(u64::MAX);
        // 500 ppm, unless the clock is set.
        Stamped { ticks, error_ns: self.bound(nearest.window_ticks, away / 2000) }
    }

    fn bound(&self, window_ticks: u64, drift_ns: i128) -> u64 {
        let bound = self.ns(i128::from(window_ticks)) / 2 + drift_ns.abs() + 1;
        u64::try_from(bound).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 3_000_000_000;

    fn sample(ticks: u64, realtime_ns: i64) -> ClockSample {
        ClockSample { ticks, realtime_ns, window_ticks: 300, ..ClockSample::default() }
    }

    #[test]
    fn stamps_between_readings_follow_an_adjusted_clock() {
        let mut clock = StampClock::new(HZ);
        assert_eq!(clock.place(0), None);
        // UTC runs 500 ppm fast; a reading each 5 ms.
        let utc = |ticks: u64| 1_000_000_000_000 + (ticks as f64 / 3.0 * 1.0005) as i64;
        for i in 0..200u64 {
            let ticks = 5_000_000_000 + i * 15_000_000;
            clock.sample(sample(ticks, utc(ticks)));
        }
        assert_eq!(clock.steps(), 0);
        for i in 150 * 15..199 * 15 {
            let ticks = 5_000_000_000 + i * 1_000_000 + 777;
            let placed = clock.place(utc(ticks)).unwrap();
            let off_ns = placed.ticks.abs_diff(ticks) / 3;
            assert!(off_ns <= placed.error_ns, "{off_ns} > {}", placed.error_ns);
            assert!(placed.error_ns < 3_000, "{}", placed.error_ns);
        }
    }

    #[test]
    fn a_step_is_noticed_and_the_bound_covers_it() {
        for step in [-50_000_000i64, 50_000_000, 3_600_000_000_000] {
            let mut clock = StampClock::new(HZ);
            let utc = |ticks: u64| {
                let ns = 1_000_000_000_000 + ticks as i64 / 3;
                if ticks > 10_016_000_000 { ns + step } else { ns }
            };
            for i in 0..4u64 {
                let ticks = 10_000_000_000 + i * 15_000_000;
                clock.sample(sample(ticks, utc(ticks)));
            }
            assert_eq!(clock.steps(), 1, "{step}");
            for i in 0..45 {
                let ticks = 10_000_000_000 + i * 1_000_000 + 3;
                let placed = clock.place(utc(ticks)).unwrap();
                let off_ns = placed.ticks.abs_diff(ticks) / 3;
                assert!(off_ns <= placed.error_ns, "{step} {i}: {off_ns} > {}", placed.error_ns);
            }
        }
    }

    #[test]
    fn few_readings_are_kept_and_extremes_do_not_overflow() {
        let mut clock = StampClock::new(1);
        for i in 0..10_000u64 {
            clock.sample(sample(i * 1000, i as i64 * 1000));
            assert!(clock.samples.len() <= KEPT);
        }
        let mut clock = StampClock::new(u64::MAX);
        clock.sample(sample(0, i64::MIN));
        clock.sample(sample(u64::MAX, i64::MAX));
        for stamp in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert!(clock.place(stamp).is_some());
        }
        // Older than all readings.
        let mut clock = StampClock::new(HZ);
        clock.sample(sample(100, 1_000_000));
        assert_eq!(clock.place(0).unwrap().ticks, 0);
    }
}
