// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all streams in the order of time.

use std::hint::select_unpredictable;

use lateralis_model::{Damage, Event, Interval, StreamIndex};
use lateralis_units::Nanos;

use crate::cursor::Cursor;
use crate::reader::Reader;

/// Time of the next event of a stream, then the stream; a stream that has ended is
/// behind all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The sign turned over: times before the origin come first.
    time: u64,
    stream: u64,
}

const ENDED: Key = Key { time: u64::MAX, stream: u64::MAX };
const FIRST: Key = Key { time: 0, stream: 0 };

impl Key {
    #[inline(always)]
    fn new(time: Nanos, stream: u32) -> Self {
        Self { time: time.0 as u64 ^ (1 << 63), stream: u64::from(stream) }
    }

    /// Both, the lesser first. Without a branch: which stream is next is not to be
    /// guessed.
    #[inline(always)]
    fn sorted(self, other: Self) -> (Self, Self) {
        let number = |key: Self| u128::from(key.time) << 64 | u128::from(key.stream);
        let swap = number(other) < number(self);
        let select = |yes: u64, no: u64| select_unpredictable(swap, yes, no);
        let low =
            Self { time: select(other.time, self.time), stream: select(other.stream, self.stream) };
        let high =
            Self { time: select(self.time, other.time), stream: select(self.stream, other.stream) };
        (low, high)
    }
}

/// Merges streams. Events of the same time come in the order of the streams,
/// events of one stream always in that stream's order: where its time runs
/// backwards, so does the merged one.
///
/// Streams play a tournament of which only the losers are kept (Knuth, The Art
/// of Computer Programming, volume 3, §5.4.1): another stream's turn costs one
/// comparison a level. As long as the stream just read stays ahead of the best of
/// the others there is none: where packets do not overlap, nothing is merged.
///
/// Cost: O(log streams) per change of stream; no allocation after the first
/// events.
pub struct Merge<'r> {
    cursors: Vec<Cursor<'r>>,
    /// `losers[n]` lost the match at inner node `n` of the tree; 0 is unused.
    losers: Vec<Key>,
    /// No stream but the current one is before this.
    rival: Key,
    /// The stream whose event is lent.
    current: Option<u32>,
    started: bool,
    interval: Interval,
}

impl<'r> Merge<'r> {
    pub(crate) fn new(reader: &'r Reader, interval: Interval) -> Self {
        let streams = 0..reader.streams().len() as u32;
        let mut cursors: Vec<_> = streams.map(|s| reader.cursor(StreamIndex(s))).collect();
        if let Some(begin) = interval.begin {
            cursors.iter_mut().for_each(|cursor| cursor.skip_to(begin));
        }
        Self { losers: Vec::new(), cursors, rival: ENDED, current: None, started: false, interval }
    }

    /// Lends the next event.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        self.advance().then(|| self.event())
    }

    /// Steps to the next event; false after the last.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let Some(stream) = self.current else {
            return self.start();
        };
        let key = self.forward(stream);
        if key < self.rival {
            return true;
        }
        self.replay(stream, key)
    }

    /// The event stepped to.
    ///
    /// # Panics
    /// If [`Merge::advance`] has not returned true before.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let stream = self.current.expect("merge:no-event: stepped to one before");
        self.cursors[stream as usize].event()
    }

    /// The first match of every pair. Leaves are the nodes behind the inner
    /// ones, as in a heap: stream `s` of `n` is node `n + s`.
    fn start(&mut self) -> bool {
        if std::mem::replace(&mut self.started, true) {
            return false;
        }
        let count = self.cursors.len();
        let mut winners = vec![ENDED; 2 * count];
        for stream in 0..count as u32 {
            winners[count + stream as usize] = self.forward(stream);
        }
        self.losers = vec![ENDED; count.max(1)];
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            winners[node] = left.min(right);
            self.losers[node] = left.max(right);
        }
        // With one stream, node 1 is its leaf.
        self.win(winners.get(1).copied().unwrap_or(ENDED))
    }

    /// Plays the matches above a stream again, after its next time has changed.
    fn replay(&mut self, stream: u32, mut key: Key) -> bool {
        let mut node = (self.cursors.len() + stream as usize) / 2;
        while node > 0 {
            let loser = &mut self.losers[node];
            (key, *loser) = key.sorted(*loser);
            node /= 2;
        }
        self.win(key)
    }

    /// Makes the winner's stream the current one. One that wins again is likely to
    /// stay ahead, so its rival is worth finding: the best of all others is among
    /// those that lost to it, on its way up. Until then any other may be it.
    fn win(&mut self, key: Key) -> bool {
        if key == ENDED {
            self.current = None;
            return false;
        }
        let stream = Some(key.stream as u32);
        let mut rival = FIRST;
        if self.current == stream {
            rival = ENDED;
            let mut node = (self.cursors.len() + key.stream as usize) / 2;
            while node > 0 {
                (rival, _) = rival.sorted(self.losers[node]);
                node /= 2;
            }
        }
        (self.current, self.rival) = (stream, rival);
        true
    }

    /// Steps one stream to its next event inside the interval.
    #[inline]
    fn forward(&mut self, stream: u32) -> Key {
        let cursor = &mut self.cursors[stream as usize];
        while cursor.advance() {
            let time = cursor.time();
            if self.interval.end.is_some_and(|end| time > end) {
                return ENDED;
            }
            if self.interval.begin.is_none_or(|begin| time >= begin) {
                return Key::new(time, stream);
            }
        }
        ENDED
    }

    /// Damage inside the packets read so far, by stream.
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.cursors.iter().flat_map(Cursor::damage)
    }
}
