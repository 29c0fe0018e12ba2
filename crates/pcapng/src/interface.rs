// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The resolution of time stamps.

/// `if_tsresol`: how long a tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// 10^-n s
    Decimal(u8),
    /// 2^-n s
    Binary(u8),
}

impl Resolution {
    /// The default: microseconds.
    pub(crate) const MICROSECONDS: Self = Self::Decimal(6);

    /// From the byte of the option: its top bit chooses the base.
    pub(crate) fn from_byte(byte: u8) -> Self {
        if byte & 0x80 == 0 { Self::Decimal(byte) } else { Self::Binary(byte & 0x7f) }
    }

    /// Ticks per second, if 64 bits hold it.
    pub(crate) fn frequency(self) -> Option<u64> {
        match self {
            Self::Decimal(n) => 10u64.checked_pow(n.into()),
            Self::Binary(n) => 1u64.checked_shl(n.into()),
        }
    }

    /// Ticks as nanoseconds, rounded down.
    pub(crate) fn nanos(self, ticks: u64) -> u128 {
        let ticks = u128::from(ticks);
        match self {
            Self::Decimal(n @ 0..=9) => ticks * 10u128.pow(9 - u32::from(n)),
            Self::Decimal(n) => 10u128.checked_pow(u32::from(n) - 9).map_or(0, |unit| ticks / unit),
            // 64 bits times 30 bits fit, and 127 is the largest shift.
            Self::Binary(n) => (ticks * 1_000_000_000) >> n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_resolution_whose_two_conversions_agree() {
        for byte in 0..=255u8 {
            let resolution = Resolution::from_byte(byte);
            for ticks in [0, 1, 999, u64::MAX] {
                let nanos = resolution.nanos(ticks);
                if let Some(frequency) = resolution.frequency() {
                    let exact = u128::from(ticks) * 1_000_000_000 / u128::from(frequency);
                    assert_eq!(nanos, exact, "{byte} {ticks}");
                } else {
                    assert!(nanos <= 2_000_000_000, "{byte} {ticks}: ticks of at most 2^-64 s");
                }
            }
        }
        assert_eq!(Resolution::from_byte(6), Resolution::MICROSECONDS);
        assert_eq!(Resolution::from_byte(0x80 | 20).frequency(), Some(1 << 20));
    }
}
