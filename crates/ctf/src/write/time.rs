// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From nanoseconds back to ticks.

use lateralis_model::Clock;
use lateralis_units::{Nanos, Ticks};

/// The first reading of the clock that is not before `time`.
///
/// Cost: 64 conversions at most.
pub(super) fn ticks_at(clock: &Clock, time: Nanos) -> u64 {
    let (mut low, mut high) = (0u64, u64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if clock.nanos(Ticks(middle)) < time { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_back_to_the_tick_they_came_from() {
        for (hz, offset) in [(1_000_000_000, 0), (1_000, 5), (2_700_000_000, 1_700_000_000)] {
            let clock = Clock::new("c", hz, offset, 0);
            for ticks in [0, 1, 999, 123_456_789, 1 << 40] {
                let back = ticks_at(&clock, clock.nanos(Ticks(ticks)));
                assert_eq!(clock.nanos(Ticks(back)), clock.nanos(Ticks(ticks)), "{hz} {ticks}");
                assert!(back <= ticks && (hz > 1_000_000_000 || back == ticks));
            }
        }
    }
}
