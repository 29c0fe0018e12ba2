// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What may be expected of the next events, judged by those of the batch before.
//!
//! Where an event ends follows from its class, and its class is known when its header has been
//! loaded: each event would wait for two loads of the one before. A branch does not wait, where a
//! processor has learnt which way it goes. Programs that do the same again and again write events
//! of few classes in a rhythm that it can learn; where they come as it happens, wrong guesses
//! would cost more than waiting.

use super::ways::NO_CLASS;
use super::{Batch, IS_ROW};

/// Classes that have a branch of their own.
pub(super) const BRANCHES: usize = 4;

/// Events that are looked at, and how many of them may be a surprise.
const SAMPLE: usize = 256;
const SURPRISES_MAX: usize = SAMPLE / 16;

/// Batches that go by what was found: to look costs as much as some hundred events.
const BATCHES: u32 = 16;

/// The events before that are remembered: 2 bits of the class of each of 5.
const HISTORY: usize = 1 << 10;

/// What may be expected.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Expected {
    /// Any class.
    #[default]
    Any,
    /// The class of the event before: see [`alike`](super::alike).
    Same,
    /// Mostly these classes, in a rhythm: those that are left are none.
    Rhythm([u32; BRANCHES]),
}

/// What is expected, and for how many batches it is not looked at again.
#[derive(Default)]
pub(super) struct Rhythm {
    pub expected: Expected,
    batches: u32,
}

impl Batch<'_> {
    /// Judges the events at hand, of which the next batch is made.
    pub(super) fn judge(&mut self) {
        if self.is_mostly_alike() {
            self.rhythm.expected = Expected::Same;
            return;
        }
        if self.rhythm.expected == Expected::Same {
            self.rhythm = Rhythm::default();
        }
        self.rhythm.batches = match self.rhythm.batches.checked_sub(1) {
            Some(left) => left,
            None if self.is_in_order || self.ordered < SAMPLE => 0,
            None => {
                self.rhythm.expected = rhythm_of(&self.order[..self.ordered]);
                BATCHES
            }
        };
    }
}

/// What classes in this order let expect of the next ones.
fn rhythm_of(order: &[u32]) -> Expected {
    let mut after = [u32::MAX; HISTORY];
    let (mut before, mut surprises) = (0usize, 0);
    // What is most of many is counted well enough by few.
    let mut counts: Vec<(u32, usize)> = Vec::new();
    // Twice the sample: the first half is to learn from.
    let begin = order.len().saturating_sub(2 * SAMPLE);
    for (index, &class) in order[begin..].iter().enumerate() {
        let class = class & !IS_ROW;
        surprises += usize::from(index >= SAMPLE && after[before] != class);
        after[before] = class;
        before = (before << 2 ^ class as usize) % HISTORY;
        match counts.iter().position(|(known, _)| *known == class) {
            Some(at) => counts[at].1 += 1,
            // Among this number of classes none is frequent.
            None if counts.len() == 4 * BRANCHES => return Expected::Any,
            None => counts.push((class, 1)),
        }
    }
    counts.sort_unstable_by_key(|(class, count)| (usize::MAX - count, *class));
    let mut classes = [NO_CLASS; BRANCHES];
    classes.iter_mut().zip(&counts).for_each(|(place, (class, _))| *place = *class);
    let others: usize = counts.iter().skip(BRANCHES).map(|(_, count)| count).sum();
    match surprises <= SURPRISES_MAX && others <= 2 * SURPRISES_MAX {
        true => Expected::Rhythm(classes),
        false => Expected::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_expected_and_what_does_not_is_not() {
        let cycle: Vec<u32> = [1, 3, 0, 3, 1, 3, 2, 3].into_iter().cycle().take(600).collect();
        assert_eq!(rhythm_of(&cycle), Expected::Rhythm([3, 1, 0, 2]));
        let mut seed = 1u32;
        let any: Vec<u32> = (0..600)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                seed >> 30
            })
            .collect();
        assert_eq!(rhythm_of(&any), Expected::Any);
        // A rhythm of more classes than there are branches.
        let many: Vec<u32> = (0..600).map(|index| index % 12).collect();
        assert_eq!(rhythm_of(&many), Expected::Any);
        let more: Vec<u32> = (0..600).map(|index| index % 40).collect();
        assert_eq!(rhythm_of(&more), Expected::Any);
        // Rows count as their class, and what comes seldom has no branch.
        let rare = |(index, class): (usize, u32)| if index % 97 == 5 { 9 } else { class };
        let rows: Vec<u32> =
            cycle.iter().copied().enumerate().map(rare).map(|class| class | IS_ROW).collect();
        assert_eq!(rhythm_of(&rows), Expected::Any);
    }
}
