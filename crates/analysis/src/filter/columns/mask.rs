// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One bit per event.

use super::words::{Words, each, is_none};

/// Selected events of a part, and events that must be decided elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// Bit `n % 64` of word `n / 64` is event `n`; bits after the last event are 0.
    words: Vec<u64>,
    len: usize,
    asked: Vec<u32>,
}

impl Mask {
    /// Resets to `len` events, all or none of them selected.
    pub fn fill(&mut self, len: usize, chosen: bool) {
        self.asked.clear();
        self.words.clear();
        self.len = len;
        self.words.resize(len.div_ceil(64), if chosen { u64::MAX } else { 0 });
        if let (Some(last), 1..) = (self.words.last_mut(), len % 64) {
            *last &= (1 << (len % 64)) - 1;
        }
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of selected events.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether an event is selected.
    #[must_use]
    pub fn contains(&self, event: usize) -> bool {
        self.words.get(event / 64).is_some_and(|word| word >> (event % 64) & 1 == 1)
    }

    /// The words; the lowest bit of the first is the first event.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Events that must be decided elsewhere, in order; none of them is selected yet.
    #[must_use]
    pub fn asked(&self) -> &[u32] {
        &self.asked
    }

    /// Selects an event.
    pub fn insert(&mut self, event: usize) {
        if event < self.len {
            self.words[event / 64] |= 1 << (event % 64);
        }
    }

    /// Keeps only events that `other` selects as well. An event undecided in either is undecided unless
    /// the other rejects it.
    pub fn intersect(&mut self, other: &Self) {
        let mut asked: Vec<u32> = Vec::new();
        let open = |mask: &Self, event: u32| {
            mask.contains(event as usize) || mask.asked.binary_search(&event).is_ok()
        };
        asked.extend(self.asked.iter().filter(|event| open(other, **event)));
        asked.extend(other.asked.iter().filter(|event| open(self, **event)));
        asked.sort_unstable();
        asked.dedup();
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        self.asked = asked;
    }

    /// Selected events, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Number of selected events in a range.
    #[must_use]
    pub fn count_in(&self, range: std::ops::Range<usize>) -> usize {
        let below = |end: usize| {
            let end = end.min(self.len);
            let whole: usize =
                self.words[..end / 64].iter().map(|word| word.count_ones() as usize).sum();
            let rest = match end % 64 {
                0 => 0,
                bits => (self.words[end / 64] & ((1 << bits) - 1)).count_ones() as usize,
            };
            whole + rest
        };
        below(range.end).saturating_sub(below(range.start))
    }

    /// Replaces the content of `kept` by the values of selected events.
    pub fn keep<T: Copy>(&self, values: &[T], kept: &mut Vec<T>) {
        kept.clear();
        for (word, values) in self.words.iter().zip(values.chunks(64)) {
            match *word {
                u64::MAX => kept.extend_from_slice(values),
                mut left => {
                    while left != 0 {
                        kept.extend(values.get(left.trailing_zeros() as usize));
                        left &= left - 1;
                    }
                }
            }
        }
    }

    /// Appends events: those in `yes` are selected, those in `ask` are undecided; neither may have bits
    /// after the last event. Only the last call may have a length that is not a multiple of 64.
    pub(super) fn append(&mut self, len: usize, yes: &Words, ask: &Words) {
        let from = self.len as u32;
        self.words.extend(yes.iter().take(len.div_ceil(64)));
        self.len += len;
        if !is_none(ask) {
            self.asked.extend(each(ask).map(|event| from + event as u32));
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.asked.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_answers() {
        let answers: Vec<u8> = (0..200_u32).map(|n| (n * n % 7 % 3) as u8).collect();
        let mut mask = Mask::default();
        let bits = |range: std::ops::Range<usize>, wanted: u8| {
            let mut words = crate::filter::columns::words::NONE;
            for (at, answer) in answers[range].iter().enumerate() {
                words[at / 64] |= u64::from(*answer == wanted) << (at % 64);
            }
            words
        };
        mask.append(128, &bits(0..128, 1), &bits(0..128, 2));
        mask.append(72, &bits(128..200, 1), &bits(128..200, 2));
        let of = |wanted: u8| (0..200).filter(|n| answers[*n] == wanted).collect::<Vec<usize>>();
        assert_eq!(mask.iter().collect::<Vec<_>>(), of(1));
        assert_eq!(mask.count(), of(1).len());
        assert_eq!(mask.asked().iter().map(|n| *n as usize).collect::<Vec<_>>(), of(2));
        assert_eq!(mask.count_in(3..131), of(1).iter().filter(|n| (3..131).contains(*n)).count());
        let mut kept = Vec::new();
        mask.keep(&(0..200).collect::<Vec<usize>>(), &mut kept);
        assert_eq!(kept, of(1));
        let mut all = Mask::default();
        all.fill(200, true);
        assert_eq!((all.count(), all.count_in(0..200)), (200, 200));
        all.intersect(&mask);
        assert_eq!(all.iter().collect::<Vec<_>>(), of(1));
        assert_eq!(all.asked(), mask.asked());
        all.fill(200, false);
        all.intersect(&mask);
        assert_eq!((all.count(), all.asked().len()), (0, 0));
    }
}
