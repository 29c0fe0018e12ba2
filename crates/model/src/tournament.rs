// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of many streams is next.

use std::hint::select_unpredictable;

use lateralis_units::Nanos;

/// The turn of an ended stream: after all others, and one more still fits.
pub const ENDED: u64 = u64::MAX - 1;

/// A number that orders as times do, never 0.
#[inline]
#[must_use]
pub fn turn_of(time: Nanos) -> u64 {
    // The sign turned over: times before the origin come first.
    (time.0 as u64 ^ (1 << 63)).clamp(1, ENDED - 1)
}

/// When a stream is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// [`turn_of`] the time of its next event, [`ENDED`] if there is none; never 0.
    pub turn: u64,
    /// Index of the stream.
    pub stream: u64,
}

/// Streams play a tournament for the next turn, of which only the losers are kept (Knuth,
/// The Art of Computer Programming, volume 3, §5.4.1). Of equal turns that of the stream
/// with the lower index comes first.
///
/// ```
/// # use lateralis_model::{ENDED, Tournament, Turn};
/// let mut streams = [vec![1, 4], vec![1, 2], vec![3]].map(Vec::into_iter);
/// let turns: Vec<u64> = streams.iter_mut().map(|s| s.next().unwrap_or(ENDED)).collect();
/// let (mut tournament, mut next) = Tournament::start(&turns);
/// let mut order = Vec::new();
/// while next.turn != ENDED {
///     order.push((next.turn, next.stream));
///     let turn = streams[next.stream as usize].next().unwrap_or(ENDED);
///     next = tournament.play(Turn { turn, ..next });
/// }
/// assert_eq!(order, [(1, 0), (1, 1), (2, 1), (3, 2), (4, 0)]);
/// ```
///
/// Cost: O(log streams) for each turn, without a branch.
#[derive(Debug, Clone, Default)]
pub struct Tournament {
    /// `losers[n]` lost the match at inner node `n` of the tree, 0 and the leaves are
    /// not there. The tree is full, so that of two nodes the left one has the streams
    /// before: where turns are equal, it wins.
    losers: Vec<Turn>,
    /// Leaves of the tree.
    leaves: usize,
}

impl Tournament {
    /// The first match of every pair, and the overall winner. Node `n` has the nodes `2n` and
    /// `2n + 1` below it, and the node of stream `s` is `s` places after the first leaf.
    #[must_use]
    pub fn start(turns: &[u64]) -> (Self, Turn) {
        let leaves = turns.len().next_power_of_two();
        let mut winners = vec![Turn { turn: ENDED, stream: 0 }; 2 * leaves];
        for (stream, &turn) in turns.iter().enumerate() {
            winners[leaves + stream] = Turn { turn, stream: stream as u64 };
        }
        let mut losers = winners[..leaves].to_vec();
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = left.turn <= right.turn;
            winners[node] = if left_wins { left } else { right };
            losers[node] = if left_wins { right } else { left };
        }
        (Self { losers, leaves }, winners[1])
    }

    /// Plays the matches above a stream again, after its next turn has changed.
    /// Returns the winner.
    ///
    /// Which stream is next is not to be guessed, so nothing here is a branch; and of each match
    /// the next one waits for no more than a comparison and a choice.
    ///
    /// # Panics
    /// If there is no such stream.
    #[inline(always)]
    pub fn play(&mut self, mut key: Turn) -> Turn {
        let mut node = self.leaves + key.stream as usize;
        while node > 1 {
            // One that comes from the right loses also to an equal one. No turn is 0.
            let from_right = node as u64 & 1;
            node /= 2;
            let other = self.losers[node];
            let loses = other.turn.wrapping_sub(from_right) < key.turn;
            self.losers[node] = Turn {
                turn: select_unpredictable(loses, key.turn, other.turn),
                stream: select_unpredictable(loses, key.stream, other.stream),
            };
            key = Turn {
                turn: select_unpredictable(loses, other.turn, key.turn),
                stream: select_unpredictable(loses, other.stream, key.stream),
            };
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sorting: any number of streams, with many equal turns, and the ends of all times.
    #[test]
    fn the_order_is_that_of_turns_then_of_streams() {
        let mut seed = 3u64;
        let mut below = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        for count in (1..=33).chain([100]) {
            let stream = |below: &mut dyn FnMut(u64) -> u64| {
                let all = (0..below(20)).map(|_| match below(8) {
                    0 => turn_of(Nanos(i64::MIN)),
                    1 => turn_of(Nanos(i64::MAX)),
                    _ => 1000 + below(12),
                });
                let mut all: Vec<u64> = all.collect();
                all.sort_unstable();
                all
            };
            let streams: Vec<Vec<u64>> = (0..count).map(|_| stream(&mut below)).collect();
            let all = (0..).zip(&streams);
            let mut expected: Vec<(u64, u64)> = all
                .flat_map(|(index, turns)| turns.iter().map(move |&turn| (turn, index)))
                .collect();
            expected.sort_unstable();
            let mut rest: Vec<_> = streams.iter().map(|turns| turns.iter().copied()).collect();
            let turns: Vec<u64> = rest.iter_mut().map(|s| s.next().unwrap_or(ENDED)).collect();
            let (mut tournament, mut next) = Tournament::start(&turns);
            let mut found = Vec::new();
            while next.turn != ENDED {
                found.push((next.turn, next.stream));
                let turn = rest[next.stream as usize].next().unwrap_or(ENDED);
                next = tournament.play(Turn { turn, ..next });
            }
            assert_eq!(found, expected);
        }
    }
}
