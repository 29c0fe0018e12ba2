// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Histogram over the length of a run that is not known in advance.

/// Largest number of buckets.
const MAX: usize = 64;
/// Amounts in equal buckets of time, or of work; buckets are joined in pairs when there are too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Width in nanoseconds, or events.
    each: i64,
    amounts: Vec<u64>,
}

impl Buckets {
    /// Buckets of time; positions are in nanoseconds.
    pub fn of_time() -> Self {
        Self { each: 1 << 20, amounts: Vec::new() }
    }

    /// Buckets of work; positions are numbers of events.
    pub fn of_events() -> Self {
        Self { each: 16, amounts: Vec::new() }
    }

    /// Adds an amount at a position since the begin; negative positions count as 0.
    pub fn add(&mut self, at: i64, amount: u64) {
        let at = at.max(0);
        while at / self.each >= MAX as i64 {
            self.double();
        }
        let index = (at / self.each) as usize;
        if self.amounts.len() <= index {
            self.amounts.resize(index + 1, 0);
        }
        self.amounts[index] = self.amounts[index].saturating_add(amount);
    }

    fn double(&mut self) {
        let pairs = self.amounts.chunks(2);
        self.amounts =
            pairs.map(|pair| pair.iter().fold(0_u64, |a, b| a.saturating_add(*b))).collect();
        self.each *= 2;
    }

    /// Adds the amounts of another histogram.
    pub fn merge(&mut self, mut other: Self) {
        while self.each < other.each {
            self.double();
        }
        while other.each < self.each {
            other.double();
        }
        for (index, amount) in other.amounts.into_iter().enumerate() {
            self.add(index as i64 * self.each, amount);
        }
    }

    /// Sum of all amounts.
    pub fn total(&self) -> u64 {
        self.amounts.iter().fold(0_u64, |a, b| a.saturating_add(*b))
    }

    /// Amounts of all buckets of a run of this length, including empty ones at its end.
    pub fn stretches(&self, length: f64) -> Vec<u64> {
        let count = (length / self.each as f64).ceil().clamp(1.0, MAX as f64);
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
        let mut buckets = Buckets::of_time();
        for milli in 0..1000 {
            buckets.add(milli * 1_000_000, 1);
        }
        buckets.add(-5, 1);
        assert_eq!(buckets.total(), 1001);
        let stretches = buckets.stretches(1e9);
        assert!(stretches.len() <= MAX && stretches.len() > MAX / 2 - 5, "{}", stretches.len());
        let (most, least) = (stretches.iter().max(), stretches[..stretches.len() - 1].iter().min());
        assert!(most.unwrap() - least.unwrap() <= 2, "{stretches:?}");
        assert!(Buckets::of_time().stretches(10.0 * 1e9).iter().all(|amount| *amount == 0));
        assert_eq!(Buckets::of_time().stretches(1e9 * 1e9).len(), MAX);
    }

    #[test]
    fn merging_is_adding_one_after_the_other() {
        let (mut a, mut b, mut both) = (Buckets::of_time(), Buckets::of_time(), Buckets::of_time());
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
