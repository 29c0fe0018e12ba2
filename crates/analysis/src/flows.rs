// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flows of all channels from ends in time order: the one place that decides which ends belong together
//! if a receive is ordered before its send.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::{Arrival, Early, End, Matcher, Message};

/// Result of an end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow<E = ()> {
    /// The other end is known.
    Joined(Message<E>),
    /// The other end may come.
    Open,
}

/// Joins sends and receives. Ends must come in time order; `apart` returns the error between the times of
/// two streams, `None` if unbounded (see [`Early::take`]).
///
/// Memory: proportional to messages in flight.
#[derive(Debug)]
pub struct Flows<E = ()> {
    /// By channel.
    matchers: Vec<Matcher<E>>,
    early: Early<E>,
    /// Channels with sends whose receives may be among those dropped for lack of room.
    uncertain: HashSet<u32, RandomState>,
}

impl<E: Copy> Flows<E> {
    /// For clocks with at most this known error between any two of them; 0 for one clock.
    #[must_use]
    pub fn new(reach_ns: u64) -> Self {
        let (matchers, uncertain) = (Vec::new(), HashSet::default());
        Self { matchers, early: Early::new(reach_ns), uncertain }
    }

    fn matcher(&mut self, channel: u32) -> &mut Matcher<E> {
        let index = channel as usize;
        if self.matchers.len() <= index {
            self.matchers.resize_with(index + 1, Matcher::default);
        }
        &mut self.matchers[index]
    }

    /// A message is sent. Call [`Flows::give_up`] before.
    pub fn send(
        &mut self,
        (channel, key): (u32, Option<u64>),
        send: End<E>,
        apart: impl FnMut(StreamIndex, StreamIndex) -> Option<u64>,
    ) -> Flow<E> {
        match self.early.take(channel, key, &send, apart) {
            Some(receive) => {
                self.matcher(channel).has_left();
                Flow::Joined(Message { key, send, receive })
            }
            None => {
                if self.early.has_dropped(&send) {
                    self.uncertain.insert(channel);
                }
                self.matcher(channel).send(key, send);
                Flow::Open
            }
        }
    }

    /// A message is received; with `fans_out` it may be received again. Call [`Flows::give_up`] before.
    pub fn receive(
        &mut self,
        (channel, key): (u32, Option<u64>),
        end: End<E>,
        fans_out: bool,
    ) -> Flow<E> {
        match self.matcher(channel).receive(key, end, fans_out) {
            Some(message) => Flow::Joined(message),
            None => {
                self.early.arrive(Arrival { channel, key, end });
                Flow::Open
            }
        }
    }

    /// Whether more receives of a channel were ordered before their sends than there was room for: which
    /// ends belong together is then unknown.
    #[must_use]
    #[inline]
    pub fn is_uncertain(&self, channel: u32) -> bool {
        !self.uncertain.is_empty() && self.uncertain.contains(&channel)
    }

    /// Removes the next receive that no send from `now` on can belong to; if `now` is `None`, any
    /// remaining one. Call until there is none.
    pub fn give_up(&mut self, now: Option<Nanos>) -> Option<Arrival<E>> {
        self.early.give_up(now)
    }

    /// Drops receives without sends before `now`.
    pub fn forget_arrivals(&mut self, now: Option<Nanos>) {
        while self.early.give_up(now).is_some() {}
    }

    /// Drops messages in flight: they are never received.
    pub fn forget_departures(&mut self) {
        self.matchers.iter_mut().for_each(Matcher::forget);
    }

    /// Takes the sends of each channel without a receive, by key and in order; they are never received.
    pub fn take_departures(&mut self) -> Vec<(u32, Option<u64>, End<E>)> {
        let mut all = Vec::new();
        for (channel, matcher) in (0..).zip(std::mem::take(&mut self.matchers)) {
            all.extend(matcher.departures().into_iter().map(|(key, end)| (channel, key, end)));
        }
        all
    }

    /// Gives up messages in flight of channels that have more than `most` of them.
    pub fn bound(&mut self, most: u64) {
        for matcher in &mut self.matchers {
            if matcher.on_the_way() > most || matcher.held() > most {
                *matcher = Matcher::default();
            }
        }
    }

    /// Messages of a channel that were sent and not received.
    #[must_use]
    pub fn on_the_way(&self, channel: u32) -> u64 {
        self.matchers.get(channel as usize).map_or(0, Matcher::on_the_way)
    }

    /// Messages of a channel that were received and never sent.
    #[must_use]
    pub fn unsent_count(&self, channel: u32) -> u64 {
        self.matchers.get(channel as usize).map_or(0, Matcher::unsent_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(time: i64, stream: u32, event: u32) -> End<u32> {
        let stream = StreamIndex(stream);
        End { time: Nanos(time), stream, cpu: None, writer: None, event }
    }

    #[test]
    fn ends_of_one_time_belong_together_whichever_stream_comes_first() {
        for receives_first in [false, true] {
            let mut flows = Flows::new(0);
            let apart = |_, _| Some(0);
            let (send, receive) = (end(7, 0, 1), end(7, 1, 2));
            let mut found = Vec::new();
            for step in 0..2 {
                flows.forget_arrivals(Some(Nanos(7)));
                found.push(match (step == 0) == receives_first {
                    true => flows.receive((0, Some(5)), receive, false),
                    false => flows.send((0, Some(5)), send, apart),
                });
            }
            let whole = Message { key: Some(5), send, receive };
            assert_eq!(found, [Flow::Open, Flow::Joined(whole)]);
            assert_eq!((flows.on_the_way(0), flows.unsent_count(0)), (0, 0));
        }
    }

    #[test]
    fn messages_that_leave_at_one_time_keep_their_own_events() {
        let mut flows = Flows::new(0);
        for key in 0..3 {
            flows.send((0, Some(key)), end(7, 0, key as u32), |_, _| Some(0));
        }
        for key in (0..3).rev() {
            let Flow::Joined(message) = flows.receive((0, Some(key)), end(8, 1, 9), false) else {
                panic!("{key} has left");
            };
            assert_eq!(u64::from(message.send.event), key);
        }
    }
}
