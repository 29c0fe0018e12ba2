// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times as babeltrace2 prints them with `--clock-seconds`.

use lateralis_units::{Nanos, Ticks};

use super::digits;
use super::pen::Pen;
use crate::Clock;

const SECOND: u64 = 1_000_000_000;

/// A clock, and the text of the second of its last reading.
pub(super) struct ClockText<'t> {
    clock: &'t Clock,
    /// Nanoseconds at reading 0 of clocks that do not tick in nanoseconds.
    base: i128,
    /// The reading at which the second begins, and how many readings it has: none
    /// where the text says nothing about readings.
    first: u64,
    readings: u64,
    /// Seconds from the origin, rounded to zero.
    second: i64,
    /// From `timestamp` to the point, and its length: 12 characters, a sign, up to
    /// 10 digits, the point. None yet if that is 0.
    text: [u8; 32],
    used: usize,
}

impl<'t> ClockText<'t> {
    pub fn new(clock: &'t Clock) -> Self {
        let base = if clock.frequency() == SECOND { 0 } else { base(clock) };
        let (first, readings, second, text, used) = (0, 0, 0, [0; 32], 0);
        Self { clock, base, first, readings, second, text, used }
    }

    /// Appends the time of a reading.
    ///
    /// Cost: no division but by constants, as long as the second is that of the
    /// reading before.
    #[inline(always)]
    pub fn time(&mut self, pen: &mut Pen<'_>, ticks: Ticks) {
        let behind = ticks.0.wrapping_sub(self.first);
        let rest = match behind < self.readings {
            true => behind as u32,
            false => match self.find(ticks) {
                Some(rest) => rest,
                None => return pen.all(b"timestamp = Error"),
            },
        };
        pen.put(&self.text, self.used);
        digits::nine(pen, rest);
    }

    /// Sets the text to that of the second of a reading. Returns the nanoseconds of the fraction;
    /// `None` if the time is not of this type.
    fn find(&mut self, ticks: Ticks) -> Option<u32> {
        let nanos = self.nanos(ticks)?;
        let magnitude = nanos.0.unsigned_abs();
        let (second, rest) = (magnitude / SECOND, magnitude % SECOND);
        let signed = second as i64 * nanos.0.signum();
        // Of second 0 there are two, one of them negative.
        if self.used == 0 || signed != self.second || signed == 0 {
            let sign = if nanos.0 < 0 { "-" } else { "" };
            let text = format!("timestamp = {sign}{second}.");
            self.used = text.len();
            self.text[..text.len()].copy_from_slice(text.as_bytes());
            self.second = signed;
        }
        // Only of seconds that count upwards, and lie in the type as a whole.
        let whole = (SECOND as i64..i64::MAX - SECOND as i64).contains(&nanos.0);
        let of_readings = self.clock.frequency() == SECOND && whole && ticks.0 >= rest;
        self.first = ticks.0.wrapping_sub(rest);
        self.readings = if of_readings { SECOND } else { 0 };
        Some(rest as u32)
    }

    /// Nanoseconds as babeltrace2 computes them: exact at 1 GHz, otherwise in floating point.
    fn nanos(&self, ticks: Ticks) -> Option<Nanos> {
        let frequency = self.clock.frequency();
        if frequency == SECOND {
            let nanos = self.clock.nanos(ticks);
            return (nanos.0 != i64::MAX && nanos.0 != i64::MIN).then_some(nanos);
        }
        i64::try_from(self.base + i128::from(scaled(ticks.0, frequency))).ok().map(Nanos)
    }
}

fn scaled(ticks: u64, frequency: u64) -> u64 {
    ((1e9 * ticks as f64) / frequency as f64) as u64
}

fn base(clock: &Clock) -> i128 {
    let frequency = i128::from(clock.frequency());
    let whole = i128::from(clock.offset_ticks());
    let seconds = i128::from(clock.offset_seconds()) + whole.div_euclid(frequency);
    let rest = whole.rem_euclid(frequency) as u64;
    seconds * i128::from(SECOND) + i128::from(scaled(rest, clock.frequency()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &mut ClockText<'_>, ticks: u64) -> String {
        let mut out = Vec::new();
        let mut pen = Pen::new(&mut out);
        text.time(&mut pen, Ticks(ticks));
        pen.finish();
        String::from_utf8(out).unwrap()
    }

    fn slow(clock: &Clock, ticks: u64) -> String {
        let frequency = clock.frequency();
        let nanos = match frequency {
            SECOND => Some(clock.nanos(Ticks(ticks)).0).filter(|&n| n != i64::MAX && n != i64::MIN),
            _ => i64::try_from(base(clock) + i128::from(scaled(ticks, frequency))).ok(),
        };
        let Some(nanos) = nanos else {
            return "timestamp = Error".to_owned();
        };
        let (sign, magnitude) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
        format!("timestamp = {sign}{}.{:09}", magnitude / SECOND, magnitude % SECOND)
    }

    /// Readings around the ends of seconds, around zero and the ends of the types,
    /// forwards and backwards: what is remembered never shows.
    #[test]
    fn what_is_remembered_changes_no_time() {
        let mut seed = 1u64;
        for frequency in [SECOND, 1_000_000, 2_999_999_999, 3, u64::MAX] {
            for seconds in [0, 1, -1, -5, 1_600_000_000, 9_223_372_030, -9_223_372_036, i64::MAX] {
                for offset in [0, 1, -1, 999_999_999, -1_500_000_000, i64::MAX, i64::MIN] {
                    let clock = Clock::new("", frequency, seconds, offset);
                    let mut text = ClockText::new(&clock);
                    for turn in 0..400u64 {
                        seed ^= seed << 13;
                        seed ^= seed >> 7;
                        seed ^= seed << 17;
                        let near = (seed % 7) * SECOND + (seed >> 20) % 3;
                        let ticks = match turn % 6 {
                            0 => near,
                            1 => near.wrapping_sub(2),
                            2 => u64::MAX - (seed % (2 * SECOND)),
                            3 => i64::MAX as u64 - (seed % (2 * SECOND)),
                            4 => seed % (10 * SECOND),
                            _ => seed >> (seed % 64),
                        };
                        // Twice: by what is remembered the second time.
                        for _ in 0..2 {
                            assert_eq!(line(&mut text, ticks), slow(&clock, ticks), "{clock:?}");
                        }
                    }
                }
            }
        }
    }
}
