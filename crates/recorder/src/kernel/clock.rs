// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts the kernel's trace clock to the clock of the recording.

/// The relation of the two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockRelation {
    /// They are the same clock.
    Same,
    /// The kernel's clock counts nanoseconds of `CLOCK_MONOTONIC`: at `ns` the recording's clock was
    /// at `ticks`, with `hz` ticks per second.
    Monotonic {
        /// Nanoseconds of the kernel's clock.
        ns: u64,
        /// The recording's clock at that moment.
        ticks: u64,
        /// Ticks per second.
        hz: u64,
    },
}

impl ClockRelation {
    /// The recording's clock at the kernel's `time`.
    #[inline]
    pub fn ticks(&self, time: u64) -> u64 {
        match *self {
            ClockRelation::Same => time,
            ClockRelation::Monotonic { ns, ticks, hz } => {
                let apart = i128::from(time) - i128::from(ns);
                let moved =
                    i128::from(ticks) + apart.saturating_mul(i128::from(hz)) / 1_000_000_000;
                moved.clamp(0, i128::from(u64::MAX)) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_are_moved_and_never_overflow() {
        assert_eq!(ClockRelation::Same.ticks(7), 7);
        let relation = ClockRelation::Monotonic { ns: 1000, ticks: 50_000, hz: 2_000_000_000 };
        assert_eq!(
            [1000, 1001, 999, 0].map(|ns| relation.ticks(ns)),
            [50_000, 50_002, 49_998, 48_000]
        );
        let slow = ClockRelation::Monotonic { ns: u64::MAX, ticks: 0, hz: u64::MAX };
        assert_eq!(slow.ticks(0), 0);
        let fast = ClockRelation::Monotonic { ns: 0, ticks: u64::MAX, hz: u64::MAX };
        assert_eq!(fast.ticks(u64::MAX), u64::MAX);
    }
}
