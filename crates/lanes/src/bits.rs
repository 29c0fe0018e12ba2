// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bit set over many items, with ranks: the number of set bits before an item.

/// Bits with ranks. Memory: 12 bytes for 64 bits.
#[derive(Debug, Clone, Default)]
pub struct RankedBits {
    words: Vec<u64>,
    /// Set bits before each word, and after the last.
    ranks: Vec<u32>,
    /// Unused low bits of the first word, which are 0.
    lead: usize,
    /// Number of items.
    len: usize,
}

impl FromIterator<bool> for RankedBits {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        Self::default().after(0, 0, bits)
    }
}

impl RankedBits {
    /// Drops the first `forgets` items, which were evicted, and appends `more`. `forgotten` items were
    /// evicted before: words whose items are kept are copied unchanged.
    ///
    /// Cost: a copy of the words, and a step for each new item.
    #[must_use]
    pub fn after(
        &self,
        forgotten: u64,
        forgets: usize,
        more: impl IntoIterator<Item = bool>,
    ) -> Self {
        let forgets = forgets.min(self.len);
        let at = self.lead + forgets;
        // An empty set begins at the bit that its first item would have.
        let lead = if self.words.is_empty() { (forgotten % 64) as usize } else { at % 64 };
        let mut words = self.words.get(at / 64..).unwrap_or_default().to_vec();
        if let Some(first) = words.first_mut() {
            *first &= u64::MAX << lead;
        }
        let mut len = self.len - forgets;
        let (mut word, mut place) = (0u64, (lead + len) % 64);
        if place > 0 {
            word = words.pop().unwrap_or(0);
        }
        for bit in more {
            word |= u64::from(bit) << place;
            place += 1;
            len += 1;
            if place == 64 {
                words.push(word);
                (word, place) = (0, 0);
            }
        }
        if place > 0 {
            words.push(word);
        }
        let mut ranks = Vec::with_capacity(words.len() + 1);
        let mut rank = 0;
        for word in &words {
            ranks.push(rank);
            rank += word.count_ones();
        }
        ranks.push(rank);
        Self { words, ranks, lead, len }
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of set bits.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranks.last().copied().unwrap_or(0) as usize
    }

    /// Whether the bit of an item is set.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        let Some(index) = index.checked_add(self.lead) else { return false };
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    /// Number of set bits before an item.
    #[inline]
    #[must_use]
    pub fn rank(&self, index: usize) -> usize {
        let index = index.saturating_add(self.lead);
        let Some(word) = self.words.get(index / 64) else {
            return self.count();
        };
        let below = word & ((1u64 << (index % 64)) - 1);
        self.ranks[index / 64] as usize + below.count_ones() as usize
    }

    /// The item with this rank: the set bit with `rank` set bits before it.
    #[must_use]
    pub fn select(&self, rank: usize) -> Option<usize> {
        if rank >= self.count() {
            return None;
        }
        let index = self.ranks.partition_point(|before| *before as usize <= rank) - 1;
        let mut word = self.words[index];
        for _ in self.ranks[index] as usize..rank {
            word &= word - 1;
        }
        Some(index * 64 + word.trailing_zeros() as usize - self.lead)
    }

    /// The first set bit from an item on, if there is any.
    ///
    /// Cost: if it is in the next few words, a look at them; otherwise that of [`RankedBits::select`].
    #[must_use]
    pub fn next(&self, from: usize) -> Option<usize> {
        /// A cache line: reading more costs as much as a search.
        const NEAR: usize = 8;
        let at = from.checked_add(self.lead)?;
        let mut word = self.words.get(at / 64)? & (u64::MAX << (at % 64));
        for index in at / 64..at / 64 + NEAR {
            if word != 0 {
                return Some(index * 64 + word.trailing_zeros() as usize - self.lead);
            }
            word = *self.words.get(index + 1)?;
        }
        self.select(self.rank(from))
    }

    /// Memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * 8 + self.ranks.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_places_are_those_of_counting(
            weight in 0.002f64..0.5,
            bits in prop::collection::vec(0.0f64..1.0, 0..2000),
        ) {
            let bits: Vec<bool> = bits.into_iter().map(|one| one < weight).collect();
            let ranked: RankedBits = bits.iter().copied().collect();
            let mut before = 0;
            for (index, bit) in bits.iter().enumerate() {
                prop_assert_eq!(ranked.rank(index), before);
                prop_assert_eq!(ranked.get(index), *bit);
                let next = bits[index..].iter().position(|bit| *bit);
                prop_assert_eq!(ranked.next(index), next.map(|steps| index + steps));
                if *bit {
                    prop_assert_eq!(ranked.select(before), Some(index));
                    before += 1;
                }
            }
            prop_assert_eq!((ranked.count(), ranked.rank(bits.len())), (before, before));
            prop_assert_eq!(ranked.select(before), None);
            prop_assert_eq!(ranked.next(bits.len()), None);
        }

        #[test]
        fn bits_that_go_on_are_those_that_are_left(
            steps in prop::collection::vec(
                (prop::collection::vec(any::<bool>(), 0..200), 0usize..220), 1..8,
            ),
            first in 0u64..200,
        ) {
            let (mut ranked, mut all, mut forgotten) = (RankedBits::default(), Vec::new(), 0);
            for (more, forgets) in steps {
                let forgets = forgets.min(all.len() - forgotten);
                forgotten += forgets;
                all.extend(&more);
                ranked = ranked.after(first + forgotten as u64, forgets, more);
                let left = &all[forgotten..];
                prop_assert_eq!(ranked.len(), left.len());
                let mut before = 0;
                for (index, bit) in left.iter().enumerate() {
                    prop_assert_eq!((ranked.get(index), ranked.rank(index)), (*bit, before));
                    let next = left[index..].iter().position(|bit| *bit);
                    prop_assert_eq!(ranked.next(index), next.map(|steps| index + steps));
                    if *bit {
                        prop_assert_eq!(ranked.select(before), Some(index));
                        before += 1;
                    }
                }
                prop_assert_eq!((ranked.count(), ranked.rank(left.len())), (before, before));
            }
        }
    }
}
