// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The quantities of a trace as types, so that ticks are never taken for
//! nanoseconds, nor bits for bytes.
//!
//! Every type is a transparent number: free to make, to copy and to compare.
//! Arithmetic that could overflow on numbers from a damaged file saturates.
//!
//! ```
//! use lateralis_units::{BitCount, ByteCount, Nanos};
//! assert_eq!(BitCount(12).to_bytes_up(), ByteCount(2));
//! assert_eq!(Nanos(1_500_000_000).to_string(), "1.500000000");
//! ```

#![forbid(unsafe_code)]

use std::fmt;

/// A reading of a clock in its own unit, counted from that clock's zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub u64);

/// Nanoseconds on the time line of a trace: since 1970-01-01T00:00:00Z where
/// the clock knows it, else since the zero of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub i64);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(pub u64);

/// A number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitCount(pub u64);

/// A position in bits from the start of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitOffset(pub u64);

/// The number the operating system gives a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(pub u32);

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl Nanos {
    /// The nearest representable time: converts any number from a file, a ring or a peer. Numbers
    /// beyond the timeline (292 years in both directions) become its ends.
    #[must_use]
    pub fn nearest(number: i128) -> Nanos {
        Nanos(number.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// Adds a duration, which may be negative; clamped to the ends of the timeline.
    #[must_use]
    pub fn later(self, nanos: i64) -> Nanos {
        Nanos(self.0.saturating_add(nanos))
    }

    /// The time from `earlier` to `self`, negative where the order is reversed.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Nanos) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Nanos {
    /// Seconds with nine decimals: `-0.000000001` is one nanosecond before zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", magnitude / 1_000_000_000, magnitude % 1_000_000_000)
    }
}

impl BitCount {
    /// Whole bytes that hold this many bits.
    #[must_use]
    pub fn to_bytes_up(self) -> ByteCount {
        ByteCount(self.0.div_ceil(8))
    }
}

impl ByteCount {
    /// As bits, saturating.
    #[must_use]
    pub fn to_bits(self) -> BitCount {
        BitCount(self.0.saturating_mul(8))
    }
}

impl fmt::Display for ByteCount {
    /// `812 B`, `4.0 KiB`, `13.9 MiB`: one decimal from a kibibyte up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // The exponent of 1024, at least 1 here and at most 6 for a u64.
        let exponent = (63 - self.0.leading_zeros()) / 10;
        let value = self.0 as f64 / (1u64 << (exponent * 10)) as f64;
        write!(f, "{value:.1} {}", UNITS[exponent as usize - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanos_print_as_seconds_on_both_sides_of_zero() {
        assert_eq!(Nanos(0).to_string(), "0.000000000");
        assert_eq!(Nanos(-1).to_string(), "-0.000000001");
        assert_eq!(Nanos(-1_000_000_001).to_string(), "-1.000000001");
        assert_eq!(Nanos(i64::MIN).to_string(), "-9223372036.854775808");
    }

    #[test]
    fn numbers_beyond_the_time_line_are_its_ends() {
        for (number, time) in [
            (i128::MIN, i64::MIN),
            (i128::from(i64::MIN) - 1, i64::MIN),
            (i128::from(i64::MIN), i64::MIN),
            (-1, -1),
            (i128::from(i64::MAX), i64::MAX),
            (i128::from(u64::MAX), i64::MAX),
            (i128::MAX, i64::MAX),
        ] {
            assert_eq!(Nanos::nearest(number), Nanos(time));
        }
        assert_eq!(Nanos(i64::MAX).later(1), Nanos(i64::MAX));
        assert_eq!(Nanos(i64::MIN).later(-1), Nanos(i64::MIN));
        assert_eq!(Nanos(-7).later(9), Nanos(2));
    }

    #[test]
    fn nanos_difference_saturates() {
        assert_eq!(Nanos(i64::MAX).since(Nanos(-1)), i64::MAX);
        assert_eq!(Nanos(5).since(Nanos(7)), -2);
    }

    #[test]
    fn byte_counts_print_with_a_fitting_unit() {
        assert_eq!(ByteCount(1023).to_string(), "1023 B");
        assert_eq!(ByteCount(1024).to_string(), "1.0 KiB");
        assert_eq!(ByteCount(14_600_000).to_string(), "13.9 MiB");
        assert_eq!(ByteCount(u64::MAX).to_string(), "16.0 EiB");
    }

    #[test]
    fn bits_round_up_to_bytes() {
        assert_eq!(BitCount(0).to_bytes_up(), ByteCount(0));
        assert_eq!(BitCount(1).to_bytes_up(), ByteCount(1));
        assert_eq!(BitCount(8).to_bytes_up(), ByteCount(1));
        assert_eq!(ByteCount(u64::MAX).to_bits(), BitCount(u64::MAX));
    }
}
