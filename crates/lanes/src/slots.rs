// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the first free row of many.

/// Time from which each row is free: [`Slots::first`] finds the first free row, however many there are.
///
/// A tree of minima: node `n` has the minimum of `2n` and `2n + 1`, rows are its leaves.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    least: Vec<T>,
    /// Number of leaves, a power of two.
    room: usize,
    count: usize,
    never: T,
}

impl<T: Copy + Ord> Slots<T> {
    /// Without rows. `never` is the time at which nothing is free.
    pub fn new(never: T) -> Self {
        Self { least: vec![never; 2], room: 1, count: 0, never }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a row.
    pub fn push(&mut self, free: T) {
        if self.count == self.room {
            let rows = self.least.split_off(self.room);
            self.room *= 2;
            self.least = vec![self.never; 2 * self.room];
            self.least[self.room..self.room + rows.len()].copy_from_slice(&rows);
            for node in (1..self.room).rev() {
                self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
            }
        }
        self.count += 1;
        self.set(self.count - 1, free);
    }

    /// Sets the time from which a row is free.
    ///
    /// Cost: logarithmic in the number of rows.
    pub fn set(&mut self, row: usize, free: T) {
        let mut node = self.room + row;
        self.least[node] = free;
        while node > 1 {
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
        }
    }

    /// The first row that is free at a time.
    ///
    /// Cost: like [`Slots::set`].
    pub fn first(&self, time: T) -> Option<usize> {
        if self.least[1] > time || time >= self.never {
            return None;
        }
        let mut node = 1;
        while node < self.room {
            node = if self.least[2 * node] <= time { 2 * node } else { 2 * node + 1 };
        }
        Some(node - self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_that_of_a_look_at_each(
            steps in prop::collection::vec((0u64..50, 0u64..60, any::<bool>()), 1..300),
        ) {
            let (mut slots, mut all) = (Slots::new(u64::MAX), Vec::<u64>::new());
            for (time, free, is_open) in steps {
                let free = if is_open { u64::MAX } else { free };
                let expected = all.iter().position(|known| *known <= time);
                prop_assert_eq!(slots.first(time), expected);
                match expected {
                    Some(row) => { slots.set(row, free); all[row] = free; }
                    None => { slots.push(free); all.push(free); }
                }
                prop_assert_eq!(slots.len(), all.len());
                prop_assert_eq!(slots.first(u64::MAX), None);
            }
        }
    }
}
