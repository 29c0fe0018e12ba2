// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all streams in the order of time.

use lateralis_model::{Damage, ENDED, Event, Interval, StreamIndex, Tournament, Turn};

use crate::ahead::Ahead;
use crate::reader::Reader;

/// Merges streams. Events of the same time come in the order of the streams,
/// events of one stream always in that stream's order: where its time runs
/// backwards, so does the merged one.
///
/// Of every stream some events are read ahead. The streams play a tournament as long as
/// what has been read of each lasts; then the events are lent in the order found. So
/// choosing the next stream waits neither for its events nor for who reads them.
///
/// Cost: O(log streams) per event; no allocation after the first events.
pub struct Merge<'r> {
    streams: Vec<Ahead<'r>>,
    /// None before the first event.
    tournament: Option<Tournament>,
    /// The winner: the next event is of this stream.
    winner: Turn,
    /// Whether all events read of the winner's stream have had their turn, so that it
    /// must be read on before the next match.
    is_spent: bool,
    /// Stream and index of the events that are in order.
    order: Vec<(u32, u32)>,
    /// The position after that of the lent event.
    next: usize,
}

/// Events that are put in order at a time.
const ORDERED: usize = 1 << 10;

impl<'r> Merge<'r> {
    pub(crate) fn new(reader: &'r Reader, interval: Interval) -> Self {
        let count = reader.streams().len();
        let ahead = |index| Ahead::new(reader.cursor(StreamIndex(index)), interval, count);
        let streams: Vec<_> = (0..count as u32).map(ahead).collect();
        Self {
            streams,
            tournament: None,
            winner: Turn { turn: ENDED, stream: 0 },
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
        if self.tournament.is_none() {
            let turns: Vec<u64> = self.streams.iter_mut().map(Ahead::fill).collect();
            let (tournament, winner) = Tournament::start(&turns);
            (self.tournament, self.winner) = (Some(tournament), winner);
        }
        let Self { streams, tournament: Some(tournament), order, .. } = self else {
            return false;
        };
        let mut winner = self.winner;
        if self.is_spent {
            let turn = streams[winner.stream as usize].fill();
            winner = tournament.play(Turn { turn, ..winner });
        }
        self.is_spent = false;
        while winner.turn != ENDED && order.len() < ORDERED {
            let ahead = &mut streams[winner.stream as usize];
            order.push((winner.stream as u32, ahead.taken as u32));
            ahead.taken += 1;
            let Some(turn) = ahead.turn(ahead.taken) else {
                self.is_spent = true;
                break;
            };
            winner = tournament.play(Turn { turn, ..winner });
        }
        self.winner = winner;
        !self.order.is_empty()
    }

    /// Damage inside the packets read so far, by stream.
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.streams.iter().flat_map(Ahead::damage)
    }
}
