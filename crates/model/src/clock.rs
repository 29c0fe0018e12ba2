// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From ticks to nanoseconds.

use lateralis_units::{Nanos, Ticks};

use crate::Uuid;

const NANOS: u128 = 1_000_000_000;

/// Readings that are converted together, or again one by one where a second ends among them.
const NANOS_AT_A_TIME: usize = 64;

/// A clock: how fast it ticks, and when it was zero.
///
/// Nanoseconds are `offset_seconds`, plus `offset_ticks` and the reading both
/// divided by the frequency ([CTF 1.8.3 §8], [CTF2 clock-class]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Name in the trace.
    pub name: String,
    /// Identity, where it is a UUID: see [`Clock::is_same_clock`].
    pub uuid: Option<Uuid>,
    /// Identity, where it is any other text.
    pub uid: Option<String>,
    /// The namespace of its name and identity.
    pub namespace: Option<String>,
    /// Free text.
    pub description: String,
    /// Whether the time line begins at 1970-01-01T00:00:00Z by the producer's
    /// own word.
    pub unix_epoch: bool,
    /// The origin of its timeline, if that is another one with an identity.
    pub origin: Option<ClockOrigin>,
    /// Uncertainty in ticks, 0 where nothing was said.
    pub precision: u64,
    frequency: u64,
    offset_seconds: i64,
    offset_ticks: i64,
    base_nanos: i128,
    /// 2⁶⁴ divided by the frequency, rounded down: divides by it without a division.
    inverse: u64,
    /// 10⁹ · 2⁶⁴ divided by the frequency, rounded up, of frequencies above 1 GHz and below
    /// 2³² Hz; else 0.
    nanos_per_tick: u64,
    /// At 1 GHz: readings below this only need an addition to `base_nanos`, whose
    /// sum fits; else 0.
    plain_below: u64,
}

/// Identity of an origin of time lines other than 1970 ([CTF2 clock-class], `origin`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockOrigin {
    /// Namespace of name and identity.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
}

/// Where a second of a clock begins: see [`Clock::nanos_near`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Second {
    ticks: u64,
    nanos: i64,
    known: bool,
}

impl Default for Clock {
    /// A nanosecond clock that was zero at zero.
    fn default() -> Self {
        Self::new("", 1_000_000_000, 0, 0)
    }
}

impl Clock {
    /// Makes a clock of `frequency` ticks per second (Hz; 0 is read as 10⁹, the
    /// value that CTF takes when none is given).
    #[must_use]
    pub fn new(name: &str, frequency: u64, offset_seconds: i64, offset_ticks: i64) -> Self {
        let frequency = if frequency == 0 { 1_000_000_000 } else { frequency };
        let whole_ticks = i128::from(offset_ticks) * NANOS as i128;
        let base_nanos = i128::from(offset_seconds) * NANOS as i128
            + whole_ticks.div_euclid(i128::from(frequency));
        let room = i128::from(i64::MAX) - base_nanos.max(0);
        let plain_below = match i64::try_from(base_nanos) {
            Ok(_) if frequency == 1_000_000_000 => room.max(0) as u64,
            _ => 0,
        };
        Self {
            name: name.to_owned(),
            uuid: None,
            uid: None,
            namespace: None,
            origin: None,
            description: String::new(),
            unix_epoch: false,
            precision: 0,
            frequency,
            offset_seconds,
            offset_ticks,
            base_nanos,
            plain_below,
            nanos_per_tick: match frequency {
                1_000_000_001..=0xffff_ffff => ((NANOS << 64) / u128::from(frequency)) as u64 + 1,
                _ => 0,
            },
            inverse: ((1u128 << 64) / u128::from(frequency)).min(u128::from(u64::MAX)) as u64,
        }
    }

    /// `number` divided by the frequency, and the remainder.
    ///
    /// The product with the rounded inverse is at most one too small: it lacks
    /// less than `number` / 2⁶⁴ < 1 before it is rounded down itself.
    #[inline]
    fn divide(&self, number: u64) -> (u64, u64) {
        let quotient = ((u128::from(number) * u128::from(self.inverse)) >> 64) as u64;
        let rest = number - quotient * self.frequency;
        if rest >= self.frequency {
            (quotient + 1, rest - self.frequency)
        } else {
            (quotient, rest)
        }
    }

    /// Ticks per second.
    #[must_use]
    pub fn frequency(&self) -> u64 {
        self.frequency
    }

    /// Seconds from the origin to the zero of the clock.
    #[must_use]
    pub fn offset_seconds(&self) -> i64 {
        self.offset_seconds
    }

    /// Ticks from the origin to the zero of the clock, on top of the seconds.
    #[must_use]
    pub fn offset_ticks(&self) -> i64 {
        self.offset_ticks
    }

    /// The offset as formats want it: seconds, and ticks that are less than one, none of them
    /// negative. As it is where seconds cannot hold it.
    #[must_use]
    pub fn offset(&self) -> (i64, i64) {
        let frequency = i128::from(self.frequency);
        let ticks = i128::from(self.offset_ticks);
        let seconds = i128::from(self.offset_seconds) + ticks.div_euclid(frequency);
        let parts = (i64::try_from(seconds), i64::try_from(ticks.rem_euclid(frequency)));
        match parts {
            (Ok(seconds), Ok(ticks)) => (seconds, ticks),
            _ => (self.offset_seconds, self.offset_ticks),
        }
    }

    /// What `precision` says in nanoseconds, rounded up; `None` where nothing was said.
    #[must_use]
    pub fn precision_ns(&self) -> Option<u64> {
        let nanos = (u128::from(self.precision) * NANOS).div_ceil(u128::from(self.frequency));
        (self.precision > 0).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether every reading is the same time by both.
    #[must_use]
    pub fn converts_like(&self, other: &Self) -> bool {
        (self.frequency, self.base_nanos) == (other.frequency, other.base_nanos)
    }

    /// This clock with the frequency and the offset of another.
    #[must_use]
    pub fn converted_like(&self, other: &Self) -> Self {
        Self {
            frequency: other.frequency,
            offset_seconds: other.offset_seconds,
            offset_ticks: other.offset_ticks,
            base_nanos: other.base_nanos,
            inverse: other.inverse,
            nanos_per_tick: other.nanos_per_tick,
            plain_below: other.plain_below,
            ..self.clone()
        }
    }

    /// Whether it can be recognised in another trace.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.uuid.is_some() || self.uid.is_some()
    }

    /// Whether both are one clock by their identities: namespace, name and identity are equal.
    #[must_use]
    pub fn is_same_clock(&self, other: &Self) -> bool {
        self.has_identity()
            && (self.uuid, &self.uid, &self.namespace, &self.name)
                == (other.uuid, &other.uid, &other.namespace, &other.name)
    }

    /// The reading as nanoseconds from the origin, rounded down; saturates at the
    /// ends of the type (±292 years).
    ///
    /// Cost: an addition at 1 GHz, else four multiplications up to 18 GHz.
    #[inline]
    #[must_use]
    pub fn nanos(&self, ticks: Ticks) -> Nanos {
        if ticks.0 < self.plain_below {
            return Nanos(self.base_nanos as i64 + ticks.0 as i64);
        }
        self.nanos_by_division(ticks)
    }

    fn nanos_by_division(&self, ticks: Ticks) -> Nanos {
        let elapsed = if self.frequency == 1_000_000_000 {
            u128::from(ticks.0)
        } else if self.frequency <= u64::MAX / 1_000_000_000 {
            // The remainder is below the frequency, so its product fits 64 bits.
            let (seconds, rest) = self.divide(ticks.0);
            u128::from(seconds) * NANOS + u128::from(self.divide(rest * 1_000_000_000).0)
        } else {
            u128::from(ticks.0) * NANOS / u128::from(self.frequency)
        };
        let sum = self.base_nanos + elapsed as i128;
        Nanos::nearest(sum)
    }

    /// [`Clock::nanos`] of many readings, appended to `times`.
    ///
    /// Cost: an addition each at 1 GHz; else, as long as readings stay within a second or come in
    /// order, one multiplication below 4 GHz and three above.
    pub fn nanos_of(&self, readings: &[u64], times: &mut Vec<Nanos>) {
        // All bits together are no less than the largest, and found faster.
        let bits = readings.iter().fold(0, |bits, ticks| bits | ticks);
        if bits < self.plain_below {
            let base = self.base_nanos as i64;
            // Below `plain_below` the sum fits, so that nothing needs a look at each.
            times.extend(readings.iter().map(|&ticks| Nanos(base.wrapping_add(ticks as i64))));
            return;
        }
        let mut second = Second::default();
        for readings in readings.chunks(NANOS_AT_A_TIME) {
            if !self.nanos_inside(second, readings, times) {
                let nanos =
                    readings.iter().map(|&ticks| self.nanos_near(&mut second, Ticks(ticks)));
                times.extend(nanos);
            }
        }
    }

    /// Variant for readings that are all shortly after the start of a known second, if they are,
    /// and for clocks that support this.
    fn nanos_inside(&self, second: Second, readings: &[u64], times: &mut Vec<Nanos>) -> bool {
        let rests = readings.iter().map(|ticks| ticks.wrapping_sub(second.ticks));
        // All bits together are no less than the largest, and found faster.
        let bits = rests.fold(0, |bits, rest| bits | rest);
        let is_near = bits < 1 << 32 && second.known && self.nanos_per_tick != 0;
        if is_near {
            // `nanos_per_tick` is too large by at most 1, the product by at most rest / 2⁶⁴. The
            // fractional part of the exact quotient is at most 1 - 1 / frequency, so that the sum
            // of both stays below 1: rest and frequency are below 2³². The second and its time are
            // included: both in one sum of 128 bits.
            let per_tick = u128::from(self.nanos_per_tick);
            let begin = ((second.nanos as u128) << 64)
                .wrapping_sub(u128::from(second.ticks).wrapping_mul(per_tick));
            let nanos = |ticks: u64| begin.wrapping_add(u128::from(ticks) * per_tick) >> 64;
            times.extend(readings.iter().map(|&ticks| Nanos(nanos(ticks) as i64)));
        }
        is_near
    }

    /// [`Clock::nanos`] of readings that mostly lie within a second of the one before,
    /// or come in order; `second` begins as the default and belongs to this clock.
    ///
    /// Cost: an addition at 1 GHz, else one multiplication, and two more for each second.
    #[inline]
    #[must_use]
    pub fn nanos_near(&self, second: &mut Second, ticks: Ticks) -> Nanos {
        if ticks.0 < self.plain_below {
            return Nanos(self.base_nanos as i64 + ticks.0 as i64);
        }
        let rest = ticks.0.wrapping_sub(second.ticks);
        // The product fits: a known second is of a clock of 18 GHz at most.
        match second.known && rest < self.frequency {
            true => Nanos(second.nanos + self.divide(rest * 1_000_000_000).0 as i64),
            false => self.nanos_of_another(second, ticks),
        }
    }

    #[inline(never)]
    fn nanos_of_another(&self, second: &mut Second, ticks: Ticks) -> Nanos {
        let (seconds, behind) = self.divide(ticks.0);
        let begin = self.base_nanos + i128::from(seconds) * NANOS as i128;
        // Less than five seconds may be added to it: 2³² ticks of more than 1 GHz. Of one that is
        // cut off by the ends of the type nothing is remembered.
        let inside = i128::from(i64::MIN)..i128::from(i64::MAX) - 5 * NANOS as i128;
        let known = self.frequency <= u64::MAX / 1_000_000_000 && inside.contains(&begin);
        *second = Second { ticks: ticks.0 - behind, nanos: begin as i64, known };
        self.nanos_by_division(ticks)
    }

    /// The last reading at or before a time, 0 where there is none: the inverse
    /// of [`Clock::nanos`], which rounds down.
    #[must_use]
    pub fn ticks(&self, time: Nanos) -> Ticks {
        // Below 2^65 each; the product is below 2^129 only for both at their ends.
        let elapsed = (i128::from(time.0) - self.base_nanos).max(-1) + 1;
        let scaled = (elapsed as u128).saturating_mul(u128::from(self.frequency));
        // The first tick of the next nanosecond, less one.
        let next = scaled.div_ceil(NANOS);
        Ticks(u64::try_from(next.saturating_sub(1)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nanosecond_clock_adds_its_offset() {
        let clock = Clock::new("c", 1_000_000_000, 1_326_476_837, 897_235_420);
        assert_eq!(clock.nanos(Ticks(0)), Nanos(1_326_476_837_897_235_420));
        assert_eq!(clock.nanos(Ticks(580)), Nanos(1_326_476_837_897_236_000));
    }

    #[test]
    fn any_frequency_rounds_down_exactly() {
        let thirds = Clock::new("c", 3, 0, 0);
        assert_eq!(thirds.nanos(Ticks(1)), Nanos(333_333_333));
        assert_eq!(thirds.nanos(Ticks(2)), Nanos(666_666_666));
        assert_eq!(thirds.nanos(Ticks(3)), Nanos(1_000_000_000));
        let fast = Clock::new("c", u64::MAX, 0, 0);
        assert_eq!(fast.nanos(Ticks(u64::MAX)), Nanos(1_000_000_000));
        assert_eq!(fast.nanos(Ticks(u64::MAX - 1)), Nanos(999_999_999));
    }

    #[test]
    fn multiplying_by_the_inverse_divides_exactly() {
        let mut seed = 1u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let some: Vec<u64> = (0..300).map(|n| random() >> (n % 63)).collect();
        let edges = [0, 1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63, 2_800_000_000, 999_999_999];
        let fast = [1_000_000_001, 2_194_843_750, u64::from(u32::MAX) - 4, u64::from(u32::MAX)];
        let frequencies = some.iter().chain(&edges).chain(&fast).filter(|&&f| f != 0);
        for &frequency in frequencies {
            let clock = Clock::new("c", frequency, 0, 0);
            let near = [frequency, frequency - 1, frequency.wrapping_mul(7), frequency / 2];
            for &ticks in some.iter().chain(&edges).chain(&near) {
                assert_eq!(clock.divide(ticks), (ticks / frequency, ticks % frequency));
                let exact = u128::from(ticks) * NANOS / u128::from(frequency);
                let exact = i64::try_from(exact).unwrap_or(i64::MAX);
                assert_eq!(clock.nanos(Ticks(ticks)), Nanos(exact), "{ticks} at {frequency} Hz");
            }
            // Of one second, including those with the largest fraction, and of the next.
            let inside = (0..200).map(|n| match n {
                0..100 => frequency.wrapping_mul(5).wrapping_add(some[n] % frequency),
                _ => frequency.wrapping_mul(6).wrapping_sub(n as u64 % 128),
            });
            let readings = near.iter().chain(&some).chain(&edges).copied();
            let readings: Vec<u64> = readings.chain(inside).collect();
            for offset in [0, 1 << 33, -(1 << 33), i64::MAX, i64::MIN, 9_223_372_036] {
                let clock = Clock::new("c", frequency, offset, 0);
                let mut times = Vec::new();
                clock.nanos_of(&readings, &mut times);
                let exact = |&ticks: &u64| {
                    let elapsed = u128::from(ticks) * NANOS / u128::from(frequency);
                    let sum = i128::from(offset) * NANOS as i128 + elapsed as i128;
                    Nanos(sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
                };
                assert!(times.iter().copied().eq(readings.iter().map(exact)), "{frequency} Hz");
            }
        }
    }

    #[test]
    fn ticks_are_the_last_ones_of_their_time() {
        for frequency in [3, 1_000, 1_000_000_000, 2_799_999_999, u64::MAX] {
            let clock = Clock::new("c", frequency, -7, 5);
            for nanos in [-1_999_999_000, -1, 0, 1, 999_999_999, 12_345_678_901] {
                let ticks = clock.ticks(Nanos(nanos));
                assert!(clock.nanos(ticks) <= Nanos(nanos), "{frequency} {nanos}");
                if let Some(next) = ticks.0.checked_add(1) {
                    assert!(clock.nanos(Ticks(next)) > Nanos(nanos), "{frequency} {nanos}");
                }
            }
        }
        assert_eq!(Clock::new("c", 1000, 10, 0).ticks(Nanos(0)), Ticks(0), "before its zero");
    }

    #[test]
    fn offsets_may_be_negative() {
        let clock = Clock::new("c", 1000, -1, -500);
        assert_eq!(clock.nanos(Ticks(0)), Nanos(-1_500_000_000));
        assert_eq!(clock.nanos(Ticks(2000)), Nanos(500_000_000));
    }

    #[test]
    fn absurd_numbers_saturate() {
        let clock = Clock::new("c", 1, i64::MAX, i64::MAX);
        assert_eq!(clock.nanos(Ticks(u64::MAX)), Nanos(i64::MAX));
        let clock = Clock::new("c", 1, i64::MIN, i64::MIN);
        assert_eq!(clock.nanos(Ticks(0)), Nanos(i64::MIN));
    }

    #[test]
    fn a_frequency_of_zero_is_the_default_one() {
        assert_eq!(Clock::new("c", 0, 0, 0).nanos(Ticks(7)), Nanos(7));
    }
}
