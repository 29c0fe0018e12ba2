// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages whose receive is ordered before the send, because two clocks differ slightly, or because both
//! ends have the same time and the receiver's stream comes first.
//!
//! ```text
//! first clock        (send 7)
//! second clock   [recv 7]          a little slow, within its known error
//! order           recv 7, send 7   one message all the same
//! ```

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::End;

/// Receives that wait; if there are more, the oldest is given up.
const WAITING_MAX: usize = 1 << 16;
/// Number of receives of one key that a send examines.
const SEARCH_MAX: usize = 1024;

/// A receive whose send has not been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<E = ()> {
    /// Number of its channel.
    pub channel: u32,
    /// Key among messages of the channel; `None`: matched by order.
    pub key: Option<u64>,
    /// Time and place.
    pub end: End<E>,
}

/// Receives whose send may still come. Without a key, only those at the time of the send: if messages are
/// matched by order alone, an earlier one cannot be distinguished from one whose send is missing.
///
/// Memory: proportional to receives within the error of the clocks, at most 65 536.
#[derive(Debug)]
pub struct Early<E = ()> {
    /// Largest known error between two clocks.
    reach_ns: u64,
    /// In order of arrival; `None` if the send has come.
    waiting: VecDeque<Option<Arrival<E>>>,
    /// Number of items removed from the front.
    gone: u64,
    /// Numbers of the waiting receives, by channel and key.
    of_key: HashMap<(u32, Option<u64>), VecDeque<u64>, RandomState>,
    /// The last receive that was given up for lack of room although its send could still come.
    dropped: Option<(Nanos, StreamIndex)>,
}

impl<E: Copy> Early<E> {
    /// For clocks with at most this known error between any two of them; 0 for one clock.
    #[must_use]
    pub fn new(reach_ns: u64) -> Self {
        let (waiting, of_key) = (VecDeque::new(), HashMap::default());
        Self { reach_ns, waiting, gone: 0, of_key, dropped: None }
    }

    /// Adds a receive without a preceding send. Call in time order. Cost: a lookup.
    pub fn arrive(&mut self, arrival: Arrival<E>) {
        let number = self.gone + self.waiting.len() as u64;
        self.of_key.entry((arrival.channel, arrival.key)).or_default().push_back(number);
        self.waiting.push_back(Some(arrival));
    }

    /// Matches a send: returns the first receive that can belong to it, if there is any. `apart` returns
    /// the error between the times of two streams. If it is `None`, the error is unknown, and only ends
    /// of equal time are joined, as if the other stream came first. Within a stream the order is certain.
    ///
    /// Cost: none if no receive waits; otherwise a lookup and a step for each of the same key, at most
    /// 1024.
    pub fn take(
        &mut self,
        channel: u32,
        key: Option<u64>,
        sent: &End<E>,
        mut apart: impl FnMut(StreamIndex, StreamIndex) -> Option<u64>,
    ) -> Option<End<E>> {
        if self.waiting.is_empty() {
            return None;
        }
        let place = (channel, key);
        let numbers = self.of_key.get_mut(&place)?;
        let (waiting, gone) = (&mut self.waiting, self.gone);
        let can_be = |number: &u64| {
            let arrival = waiting.get((number - gone) as usize).copied().flatten();
            arrival.is_some_and(|arrival| {
                let ahead = sent.time.since(arrival.end.time).max(0) as u64;
                arrival.end.stream != sent.stream
                    && (ahead == 0
                        || key.is_some()
                            && apart(sent.stream, arrival.end.stream)
                                .is_some_and(|apart| ahead <= apart))
            })
        };
        let found = numbers.iter().take(SEARCH_MAX).position(can_be)?;
        let number = numbers.remove(found)?;
        if numbers.is_empty() {
            self.of_key.remove(&place);
        }
        let arrival = self.waiting.get_mut((number - self.gone) as usize)?.take();
        arrival.map(|arrival| arrival.end)
    }

    /// Whether a receive that was given up for lack of room may belong to this send.
    #[must_use]
    pub fn has_dropped(&self, sent: &End<E>) -> bool {
        self.dropped.is_some_and(|(time, stream)| {
            let ahead = sent.time.since(time).max(0) as u64;
            stream != sent.stream && ahead <= self.reach_ns
        })
    }

    /// Removes the next receive that no send from `now` on can belong to, in order of arrival; if `now`
    /// is `None`, any remaining one. Call until there is none.
    pub fn give_up(&mut self, now: Option<Nanos>) -> Option<Arrival<E>> {
        loop {
            let first = self.waiting.front()?;
            if let (Some(arrival), Some(now)) = (first, now) {
                let ahead = now.since(arrival.end.time).max(0) as u64;
                if ahead <= self.reach_ns {
                    if self.waiting.len() <= WAITING_MAX {
                        return None;
                    }
                    self.dropped = Some((arrival.end.time, arrival.end.stream));
                }
            }
            let first = self.waiting.pop_front().flatten();
            self.gone += 1;
            let Some(arrival) = first else { continue };
            let place = (arrival.channel, arrival.key);
            // Its number is the first of its key.
            if let Some(numbers) = self.of_key.get_mut(&place) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.of_key.remove(&place);
                }
            }
            return Some(arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matcher;
    use proptest::prelude::*;

    fn end(time: i64, stream: u32) -> End {
        End { time: Nanos(time), stream: StreamIndex(stream), cpu: None, writer: None, event: () }
    }

    fn arrival(channel: u32, key: Option<u64>, end: End) -> Arrival {
        Arrival { channel, key, end }
    }

    /// Streams 0 and 1 share a clock, stream 2 has another.
    fn apart(error: Option<u64>) -> impl Fn(StreamIndex, StreamIndex) -> Option<u64> {
        move |a, b| if (a.0 < 2) == (b.0 < 2) { Some(0) } else { error }
    }

    #[test]
    fn an_arrival_waits_as_long_as_the_clocks_may_be_off() {
        let mut early = Early::new(10);
        early.arrive(arrival(0, Some(7), end(100, 2)));
        early.arrive(arrival(0, None, end(101, 2)));
        assert_eq!(early.give_up(Some(Nanos(110))), None);
        let apart = apart(Some(10));
        assert_eq!(early.take(0, Some(7), &end(111, 0), &apart), None, "too late");
        assert_eq!(early.take(0, Some(7), &end(105, 2), &apart), None, "its own stream");
        assert_eq!(early.take(1, Some(7), &end(105, 0), &apart), None, "another channel");
        assert_eq!(early.take(0, None, &end(105, 0), &apart), None, "no key");
        early.arrive(arrival(1, None, end(105, 2)));
        assert_eq!(early.take(1, None, &end(105, 2), &apart), None, "its own stream");
        assert_eq!(early.take(1, None, &end(105, 0), &apart), Some(end(105, 2)), "one time");
        assert_eq!(early.take(0, Some(7), &end(110, 0), &apart), Some(end(100, 2)));
        assert_eq!(early.take(0, Some(7), &end(110, 0), &apart), None, "it is taken");
        assert_eq!(early.give_up(Some(Nanos(112))), Some(arrival(0, None, end(101, 2))));
        assert_eq!(early.give_up(None), None);
        assert!(early.of_key.is_empty());
    }

    #[test]
    fn no_more_wait_than_there_is_room() {
        let mut early = Early::new(u64::MAX);
        for n in 0..=WAITING_MAX as u64 {
            early.arrive(arrival(0, Some(n), end(0, 2)));
        }
        assert!(!early.has_dropped(&end(7, 0)));
        assert_eq!(early.give_up(Some(Nanos(1 << 60))), Some(arrival(0, Some(0), end(0, 2))));
        assert!(early.has_dropped(&end(7, 0)));
        assert!(!early.has_dropped(&end(7, 2)), "its own stream");
        assert_eq!(early.give_up(Some(Nanos(1 << 60))), None);
    }

    proptest! {
        // Compared with a search of all receives each time.
        #[test]
        fn taken_are_those_that_a_search_finds(
            steps in prop::collection::vec((0u8..2, 0i64..4, 0u32..3, prop::option::of(0u64..3)), 0..150),
            error in prop::option::of(0u64..9),
        ) {
            let reach = error.unwrap_or(0);
            let mut early = Early::new(reach);
            let mut all: Vec<Arrival> = Vec::new();
            let (mut time, mut given_up, mut expected) = (0, Vec::new(), Vec::new());
            for (kind, later, stream, key) in steps {
                time += later;
                while let Some(arrival) = early.give_up(Some(Nanos(time))) {
                    given_up.push(arrival);
                }
                let is_over = |a: &Arrival| (time - a.end.time.0) as u64 > reach;
                expected.extend(all.iter().copied().filter(is_over));
                all.retain(|a| !is_over(a));
                let end = end(time, stream);
                if kind == 0 {
                    early.arrive(arrival(0, key, end));
                    all.push(arrival(0, key, end));
                    continue;
                }
                let fits = |a: &Arrival| {
                    a.key == key && a.end.stream.0 != stream
                        && (key.is_some() || time == a.end.time.0)
                        && (time - a.end.time.0) as u64
                            <= apart(error)(end.stream, a.end.stream).unwrap_or(0)
                };
                let found = all.iter().position(fits).map(|at| all.remove(at).end);
                prop_assert_eq!(early.take(0, key, &end, apart(error)), found);
            }
            while let Some(arrival) = early.give_up(None) {
                given_up.push(arrival);
            }
            expected.extend(all);
            prop_assert_eq!(given_up, expected);
            prop_assert!(early.of_key.is_empty());
        }

        // Whatever the error of a second clock, within its known bound, all messages are complete.
        #[test]
        fn messages_with_keys_of_their_own_are_found_within_the_error(
            sent in prop::collection::vec((0i64..50, 0i64..30, any::<bool>()), 1..60),
            off in -20i64..=20,
        ) {
            let mut events = Vec::new();
            let mut time = 0;
            for (key, &(later, long, there)) in (0u64..).zip(&sent) {
                time += later;
                let (from, to) = if there { (0, 2) } else { (2, 0) };
                let by_clock = |time: i64, stream: u32| time + if stream == 2 { off } else { 0 };
                events.push((by_clock(time, from), from, true, key));
                events.push((by_clock(time + long, to), to, false, key));
            }
            events.sort_by_key(|event| event.0);
            let (mut matcher, mut early) = (Matcher::default(), Early::new(20));
            let mut found = 0;
            for (time, stream, sends, key) in events {
                while early.give_up(Some(Nanos(time))).is_some() {}
                let end = end(time, stream);
                if !sends {
                    match matcher.receive(Some(key), end, false) {
                        Some(_) => found += 1,
                        None => early.arrive(arrival(0, Some(key), end)),
                    }
                } else if early.take(0, Some(key), &end, apart(Some(20))).is_some() {
                    matcher.has_left();
                    found += 1;
                } else {
                    matcher.send(Some(key), end);
                }
            }
            prop_assert_eq!(found, sent.len());
            prop_assert_eq!((matcher.on_the_way(), matcher.unsent_count()), (0, 0));
        }
    }
}
