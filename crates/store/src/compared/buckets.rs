// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much in each stretch of a run, when nobody knows yet how long the run will be.

/// Stretches that are kept.
const MAX: usize = 64;
/// Length of a stretch at first.
const FIRST_NANOS: i64 = 1 << 20;

/// Amounts by equal stretches of time; stretches are joined in pairs when there are too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    each_nanos: i64,
    amounts: Vec<u64>,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { each_nanos: FIRST_NANOS, amounts: Vec::new() }
    }
}

impl Buckets {
    /// Adds an amount at a time since the beginning; before it counts as at it.
    pub fn add(&mut self, at_nanos: i64, amount: u64) {
        let at = at_nanos.max(0);
        while at / self.each_nanos >= MAX as i64 {
            self.double();
        }
        let index = (at / self.each_nanos) as usize;
        if self.amounts.len() <= index {
            self.amounts.resize(index + 1, 0);
        }
        self.amounts[index] = self.amounts[index].saturating_add(amount);
    }

    fn double(&mut self) {
        let pairs = self.amounts.chunks(2);
        self.amounts =
            pairs.map(|pair| pair.iter().fold(0_u64, |a, b| a.saturating_add(*b))).collect();
        self.each_nanos *= 2;
    }

    /// Adds what others have.
    pub fn merge(&mut self, mut other: Self) {
        while self.each_nanos < other.each_nanos {
            self.double();
        }
        while other.each_nanos < self.each_nanos {
            other.double();
        }
        for (index, amount) in other.amounts.into_iter().enumerate() {
            self.add(index as i64 * self.each_nanos, amount);
        }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.amounts.iter().fold(0_u64, |a, b| a.saturating_add(*b))
    }

    /// The amount of each stretch of a run of so many seconds, also of those behind the last.
    pub fn stretches(&self, seconds: f64) -> Vec<u64> {
        let count = (seconds * 1e9 / self.each_nanos as f64).ceil().clamp(1.0, MAX as f64);
        let mut amounts = self.amounts.clone();
        amounts.resize(amounts.len().max(count as usize), 0);
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_stretches_keeps_amounts_and_their_places() {
        let mut buckets = Buckets::default();
        for milli in 0..1000 {
            buckets.add(milli * 1_000_000, 1);
        }
        buckets.add(-5, 1);
        assert_eq!(buckets.total(), 1001);
        let stretches = buckets.stretches(1.0);
        assert!(stretches.len() <= MAX && stretches.len() > MAX / 2 - 5, "{}", stretches.len());
        let (most, least) = (stretches.iter().max(), stretches[..stretches.len() - 1].iter().min());
        assert!(most.unwrap() - least.unwrap() <= 2, "{stretches:?}");
        assert!(Buckets::default().stretches(10.0).iter().all(|amount| *amount == 0));
        assert_eq!(Buckets::default().stretches(1e9).len(), MAX);
    }

    #[test]
    fn merging_is_adding_one_after_the_other() {
        let (mut a, mut b, mut both) = (Buckets::default(), Buckets::default(), Buckets::default());
        for i in 0..500_i64 {
            let (at, buckets) = (i * 700_000, if i % 3 == 0 { &mut a } else { &mut b });
            buckets.add(at, 2);
            both.add(at, 2);
        }
        b.add(1_000_000_000, 1);
        both.add(1_000_000_000, 1);
        a.merge(b);
        assert_eq!(a, both);
    }
}
