// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all streams in the order of time.

use lateralis_model::{Damage, Event, Interval, StreamIndex};

use crate::ahead::{Ahead, ENDED};
use crate::reader::Reader;

/// Merges streams. Events of the same time come in the order of the streams,
/// events of one stream always in that stream's order: where its time runs
/// backwards, so does the merged one.
///
/// Of every stream some events are read ahead. The streams play a tournament of which
/// only the losers are kept (Knuth, The Art of Computer Programming, volume 3, §5.4.1),
/// as long as what has been read of each lasts; then the events are lent in the order
/// found. So choosing the next stream waits neither for its events nor for who reads
/// them.
///
/// Cost: O(log streams) per event; no allocation after the first events.
pub struct Merge<'r> {
    streams: Vec<Ahead<'r>>,
    /// `losers[n]` lost the match at inner node `n` of the tree, 0 and the leaves are
    /// not there. The tree is full, so that of two nodes the left one has the streams
    /// before: where turns are equal, it wins.
    losers: Vec<Key>,
    /// Leaves of the tree.
    leaves: usize,
    /// The winner: the next event is of this stream.
    winner: Key,
    /// Whether all events read of the winner's stream have had their turn, so that it
    /// must be read on before the next match.
    is_spent: bool,
    /// Stream and index of the events that are in order.
    order: Vec<(u32, u32)>,
    /// The place behind that of the event that is lent.
    next: usize,
}

/// The turn of a stream's next event.
#[derive(Debug, Clone, Copy)]
struct Key {
    turn: u64,
    stream: u64,
}

/// Events that are put in order at a time.
const ORDERED: usize = 1 << 10;

impl<'r> Merge<'r> {
    pub(crate) fn new(reader: &'r Reader, interval: Interval) -> Self {
        let streams = 0..reader.streams().len() as u32;
        let streams: Vec<_> =
            streams.map(|s| Ahead::new(reader.cursor(StreamIndex(s)), interval)).collect();
        Self {
            leaves: streams.len().next_power_of_two(),
            streams,
            losers: Vec::new(),
            winner: Key { turn: ENDED, stream: 0 },
            is_spent: false,
            order: Vec::new(),
            next: 0,
        }
    }

    /// Lends the next event.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        self.advance().then(|| self.event())
    }

    /// Steps to the next event; false after the last.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if self.next >= self.order.len() && !self.put_in_order() {
            return false;
        }
        self.next += 1;
        true
    }

    /// The event stepped to.
    ///
    /// # Panics
    /// If [`Merge::advance`] has not returned true before.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let place = self.next.checked_sub(1).and_then(|last| self.order.get(last));
        let &(stream, row) = place.expect("merge:no-event: stepped to one before");
        self.streams[stream as usize].event(row as usize)
    }

    /// Finds the order of the next events; false if there are none.
    #[inline(never)]
    fn put_in_order(&mut self) -> bool {
        self.order.clear();
        self.next = 0;
        if self.losers.is_empty() {
            self.start();
        } else if self.is_spent {
            let turn = self.streams[self.winner.stream as usize].fill();
            self.winner = self.play(Key { turn, ..self.winner });
        }
        self.is_spent = false;
        let mut winner = self.winner;
        while winner.turn != ENDED && self.order.len() < ORDERED {
            let ahead = &mut self.streams[winner.stream as usize];
            self.order.push((winner.stream as u32, ahead.taken as u32));
            ahead.taken += 1;
            let Some(&turn) = ahead.turns.get(ahead.taken) else {
                self.is_spent = true;
                break;
            };
            winner = self.play(Key { turn, ..winner });
        }
        self.winner = winner;
        !self.order.is_empty()
    }

    /// The first match of every pair. Node `n` has the nodes `2n` and `2n + 1` below
    /// it, and stream `s` is the node that many behind the first leaf.
    fn start(&mut self) {
        let mut winners = vec![Key { turn: ENDED, stream: 0 }; 2 * self.leaves];
        for (stream, ahead) in self.streams.iter_mut().enumerate() {
            winners[self.leaves + stream] = Key { turn: ahead.fill(), stream: stream as u64 };
        }
        self.losers = winners[..self.leaves].to_vec();
        for node in (1..self.leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = left.turn <= right.turn;
            winners[node] = if left_wins { left } else { right };
            self.losers[node] = if left_wins { right } else { left };
        }
        self.winner = winners[1];
    }

    /// Plays the matches above a stream again, after its next turn has changed.
    /// Returns the winner.
    ///
    /// Which stream is next is not to be guessed, so there must be no branch, which
    /// compilers make of anything that looks like a choice.
    #[inline(always)]
    fn play(&mut self, mut key: Key) -> Key {
        let mut node = self.leaves + key.stream as usize;
        while node > 1 {
            // One that comes from the right loses also to an equal one.
            let from_right = node as u64 & 1;
            node /= 2;
            let loser = &mut self.losers[node];
            let swap = u64::from(loser.turn < key.turn + from_right).wrapping_neg();
            let turn = (loser.turn ^ key.turn) & swap;
            let stream = (loser.stream ^ key.stream) & swap;
            (loser.turn, loser.stream) = (loser.turn ^ turn, loser.stream ^ stream);
            key = Key { turn: key.turn ^ turn, stream: key.stream ^ stream };
        }
        key
    }

    /// Damage inside the packets read so far, by stream.
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.streams.iter().flat_map(Ahead::damage)
    }
}
