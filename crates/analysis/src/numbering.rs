// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interns values as small numbers, in order of their first occurrence.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Gives each distinct value the next number, so that everything else can be an index.
#[derive(Debug, Clone)]
pub struct Numbering<K> {
    numbers: HashMap<K, u32, RandomState>,
    things: Vec<K>,
    last: u32,
}

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Self { numbers: HashMap::default(), things: Vec::new(), last: 0 }
    }
}

impl<K: Copy + Eq + Hash> Numbering<K> {
    /// The number of a value, new or known.
    ///
    /// Cost: a comparison for the value that was requested last, otherwise a lookup.
    pub fn number(&mut self, thing: K) -> u32 {
        if self.things.get(self.last as usize) == Some(&thing) {
            return self.last;
        }
        let next = self.things.len() as u32;
        let number = *self.numbers.entry(thing).or_insert(next);
        if number == next {
            self.things.push(thing);
        }
        self.last = number;
        number
    }

    /// Renames a value to one without a number: either now has its number, and [`Numbering::things`]
    /// contains the new one. No effect if both have numbers or neither has.
    pub fn rename(&mut self, thing: &K, other: K) {
        if let Some(&number) = self.numbers.get(thing)
            && !self.numbers.contains_key(&other)
        {
            self.numbers.insert(other, number);
            self.things[number as usize] = other;
        }
    }

    /// The number of a value, if it has one.
    #[must_use]
    pub fn known(&self, thing: &K) -> Option<u32> {
        self.numbers.get(thing).copied()
    }

    /// Values in the order of their numbers.
    #[must_use]
    pub fn things(&self) -> &[K] {
        &self.things
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_order_and_stay() {
        let mut numbering = Numbering::default();
        let numbers = ["b", "a", "b", "c", "c", "a"].map(|thing| numbering.number(thing));
        assert_eq!(numbers, [0, 1, 0, 2, 2, 1]);
        assert_eq!(numbering.things(), ["b", "a", "c"]);
        assert_eq!((numbering.known(&"c"), numbering.known(&"d")), (Some(2), None));
        assert_eq!((numbering.len(), numbering.is_empty()), (3, false));
        numbering.rename(&"a", "x");
        numbering.rename(&"b", "c");
        assert_eq!(["a", "x", "b", "c"].map(|thing| numbering.number(thing)), [1, 1, 0, 2]);
        assert_eq!(numbering.things(), ["b", "x", "c"]);
    }
}
