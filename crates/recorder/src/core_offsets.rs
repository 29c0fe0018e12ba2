// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offset of the counters of two cores, by the exchange of seed 000: one core asks, the
//! other answers with its own time, and the answer bounds the offset from both sides.
//!
//! ```text
//! reference  asked ──────────────► answered      other - answered <= offset <= other - asked
//! core             └─► other ─┘
//! ```

use serde::{Deserialize, Serialize};

/// The counter of one core against that of the reference core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreOffset {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of the CPU it was compared with.
    pub reference_cpu: u32,
    /// Its counter minus the reference's, in ticks; negative if the reference's is larger.
    pub offset_ticks: i64,
    /// Error bound of the offset.
    pub error_ticks: u64,
}

/// Bounds of the offset from exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    least: i128,
    most: i128,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: i128::MIN, most: i128::MAX }
    }
}

impl Bounds {
    /// Adds an exchange: `asked` and `answered` by the reference's counter, `told` by the other's.
    pub fn exchange(&mut self, asked: u64, told: u64, answered: u64) {
        self.least = self.least.max(i128::from(told) - i128::from(answered));
        self.most = self.most.min(i128::from(told) - i128::from(asked));
    }

    /// Adds an exchange with four readings: the reference's at the request, the other's at its receipt
    /// and at the response, the reference's at the receipt of that. Counters have 64 bits and any value: one
    /// that is less by more than it has counted is near 2^64, so differences are taken modulo 2^64.
    pub fn readings(&mut self, [asked, received, sent, answered]: [u64; 4]) {
        self.least = self.least.max(sent.wrapping_sub(answered).cast_signed().into());
        self.most = self.most.min(received.wrapping_sub(asked).cast_signed().into());
    }

    /// Intersects these bounds with others.
    pub fn meet(&mut self, other: &Self) {
        self.least = self.least.max(other.least);
        self.most = self.most.min(other.most);
    }

    /// The bounds from the other core's point of view.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let negated = |bound: i128| match bound {
            i128::MIN => i128::MAX,
            i128::MAX => i128::MIN,
            bound => -bound,
        };
        Self { least: negated(self.most), most: negated(self.least) }
    }

    /// The middle of the bounds, and its distance from their ends; `None` before the first exchange,
    /// and if exchanges contradict each other.
    #[must_use]
    pub fn offset(&self) -> Option<(i64, u64)> {
        if self.least == i128::MIN || self.least > self.most {
            return None;
        }
        let width = self.most - self.least;
        let middle = self.least + width / 2;
        // One for the rounding of the halves.
        Some((i64::try_from(middle).ok()?, u64::try_from(width / 2 + 1).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_bound_whatever_the_ways_take() {
        for offset in [-1_000_000_i64, -3, 0, 2, 77_777] {
            let mut bounds = Bounds::default();
            assert_eq!(bounds.offset(), None);
            for n in 0..50u64 {
                let (there, back) = (40 + n * 7 % 11, 50 + n * 5 % 13);
                let asked = 5_000_000 + n * 1_000;
                let told = (asked + there).checked_add_signed(offset).expect("after the start");
                bounds.exchange(asked, told, asked + there + back);
            }
            let (found, error) = bounds.offset().expect("exchanges");
            assert!(found.abs_diff(offset) <= error, "{found} {offset} {error}");
            // The fastest ways there and back, each from a different exchange.
            assert!(error <= (40 + 50) / 2 + 1, "{error}");
        }
    }

    #[test]
    fn four_readings_bound_counters_that_are_before_their_zero() {
        for offset in [-9_000_000_000_i64, -3, 0, 7_777_777] {
            let mut bounds = Bounds::default();
            for n in 0..20u64 {
                let (there, inside, back) = (40 + n * 7 % 11, 1_000, 50 + n * 5 % 13);
                let asked = 5_000_000 + n * 10_000;
                let of_other = |time: u64| time.wrapping_add_signed(offset);
                let (received, sent) = (of_other(asked + there), of_other(asked + there + inside));
                bounds.readings([asked, received, sent, asked + there + inside + back]);
            }
            let (found, error) = bounds.offset().expect("exchanges");
            assert!(found.abs_diff(offset) <= error, "{found} {offset} {error}");
            assert!(error <= (40 + 50) / 2 + 1, "{error}");
            let (found, error) = bounds.reversed().offset().expect("exchanges");
            assert!(found.abs_diff(-offset) <= error, "{found} {offset} {error}");
        }
        assert_eq!(Bounds::default().reversed().offset(), None);
    }

    #[test]
    fn what_contradicts_itself_tells_nothing() {
        let mut bounds = Bounds::default();
        bounds.exchange(100, 1_000, 200);
        bounds.exchange(300, 5_000, 400);
        assert_eq!(bounds.offset(), None);
        let mut extreme = Bounds::default();
        extreme.exchange(0, u64::MAX, 0);
        assert_eq!(extreme.offset(), None);
    }
}
