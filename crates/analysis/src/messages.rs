// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Matches the sends and receives of one channel.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use lateralis_model::{StreamIndex, Writer};
use lateralis_units::Nanos;

const NONE: u32 = u32::MAX;

/// A send or receive of a message; `E` is what the caller needs to find the event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<E = ()> {
    /// Time.
    pub time: Nanos,
    /// Stream, which determines the clock.
    pub stream: StreamIndex,
    /// CPU, if known.
    pub cpu: Option<u32>,
    /// Thread, if known.
    pub writer: Option<Writer>,
    /// The event.
    pub event: E,
}

impl End {
    /// This end with its event.
    #[must_use]
    pub fn of_event<E>(self, event: E) -> End<E> {
        let Self { time, stream, cpu, writer, event: () } = self;
        End { time, stream, cpu, writer, event }
    }
}

/// A message with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<E = ()> {
    /// Key among messages of its channel; `None`: matched by order.
    pub key: Option<u64>,
    /// The send.
    pub send: End<E>,
    /// The receive.
    pub receive: End<E>,
}

impl<E> Message<E> {
    /// Latency in nanoseconds; 0 if two clocks disagree about the order.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.receive.time.since(self.send.time).max(0) as u64
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot<E> {
    end: End<E>,
    next: u32,
    /// Whether it was received, and is kept because it may be received again.
    has_arrived: bool,
}

/// Joins the sends and receives of one channel: those of equal key in the order of the sends.
///
/// Memory: proportional to messages in flight.
#[derive(Debug)]
pub struct Matcher<E = ()> {
    /// First and last message in flight, by key.
    keyed: HashMap<Option<u64>, (u32, u32), RandomState>,
    slots: Vec<Slot<E>>,
    free: u32,
    on_the_way: u64,
    unsent_count: u64,
}

impl<E> Default for Matcher<E> {
    fn default() -> Self {
        Self {
            keyed: HashMap::default(),
            slots: Vec::new(),
            free: NONE,
            on_the_way: 0,
            unsent_count: 0,
        }
    }
}

impl<E: Copy> Matcher<E> {
    /// A message is sent. Ends must come in time order. Cost: a lookup.
    pub fn send(&mut self, key: Option<u64>, end: End<E>) {
        let slot = Slot { end, next: NONE, has_arrived: false };
        if let Entry::Occupied(entry) = self.keyed.entry(key)
            && self.slots[entry.get().0 as usize].has_arrived
        {
            // It was only kept until the next one with its key is sent.
            let (first, _) = entry.remove();
            self.slots[first as usize].next = self.free;
            self.free = first;
        }
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.slots[index as usize].next;
            self.slots[index as usize] = slot;
            index
        };
        match self.keyed.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((index, index));
            }
            Entry::Occupied(mut entry) => {
                let last = std::mem::replace(&mut entry.get_mut().1, index);
                self.slots[last as usize].next = index;
            }
        }
        self.on_the_way += 1;
    }

    /// A message is received: returns the whole message, or `None` if it was never sent. With `fans_out`
    /// the last one sent is kept until another with its key is sent, so that it can be received again.
    /// Cost: a lookup.
    pub fn receive(&mut self, key: Option<u64>, end: End<E>, fans_out: bool) -> Option<Message<E>> {
        let Entry::Occupied(mut entry) = self.keyed.entry(key) else {
            self.unsent_count += 1;
            return None;
        };
        let first = entry.get().0;
        let Slot { end: send, next, has_arrived } = self.slots[first as usize];
        if !has_arrived {
            self.on_the_way -= 1;
        }
        if fans_out && next == NONE {
            self.slots[first as usize].has_arrived = true;
            return Some(Message { key, send, receive: end });
        }
        if next == NONE {
            entry.remove();
        } else {
            entry.get_mut().0 = next;
        }
        self.slots[first as usize].next = self.free;
        self.free = first;
        Some(Message { key, send, receive: end })
    }

    /// A message is sent that was already received (see [`crate::Early`]).
    pub fn has_left(&mut self) {
        self.unsent_count = self.unsent_count.saturating_sub(1);
    }

    /// Drops messages in flight: they are never received.
    pub fn forget(&mut self) {
        self.keyed.clear();
        self.slots.clear();
        self.free = NONE;
    }

    /// Messages that were sent and not received.
    #[must_use]
    pub fn on_the_way(&self) -> u64 {
        self.on_the_way
    }

    /// Keys with messages in flight, or kept because they may be received again.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.keyed.len() as u64
    }

    /// Messages in flight: by key, and for equal keys in the order of the sends.
    #[must_use]
    pub fn departures(&self) -> Vec<(Option<u64>, End<E>)> {
        let mut keys: Vec<(Option<u64>, u32)> =
            self.keyed.iter().map(|(key, (first, _))| (*key, *first)).collect();
        keys.sort_unstable();
        let mut all = Vec::new();
        for (key, first) in keys {
            let mut at = first;
            while let Some(slot) = self.slots.get(at as usize) {
                if !slot.has_arrived {
                    all.push((key, slot.end));
                }
                at = slot.next;
            }
        }
        all
    }

    /// Messages that were received and never sent.
    #[must_use]
    pub fn unsent_count(&self) -> u64 {
        self.unsent_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn end(time: i64) -> End {
        End { time: Nanos(time), stream: StreamIndex(0), cpu: None, writer: None, event: () }
    }

    #[test]
    fn messages_of_a_key_arrive_in_the_order_they_left() {
        let mut matcher = Matcher::default();
        assert_eq!(matcher.receive(None, end(0), false), None);
        matcher.send(None, end(1));
        matcher.send(Some(1), end(2));
        matcher.send(None, end(3));
        let first = matcher.receive(None, end(10), false).unwrap();
        assert_eq!((first.send.time, first.nanos()), (Nanos(1), 9));
        assert_eq!(matcher.receive(None, end(11), false).unwrap().nanos(), 8);
        assert_eq!(matcher.receive(Some(2), end(12), false), None);
        assert_eq!((matcher.on_the_way(), matcher.unsent_count()), (1, 2));
        assert_eq!(matcher.receive(Some(1), end(1), false).unwrap().nanos(), 0, "clocks disagree");
    }

    #[test]
    fn what_fans_out_arrives_until_the_next_leaves() {
        let mut matcher = Matcher::default();
        matcher.send(Some(1), end(1));
        let mut arrive =
            |time| matcher.receive(Some(1), end(time), true).map(|found| found.send.time.0);
        assert_eq!([arrive(2), arrive(3)], [Some(1), Some(1)]);
        assert_eq!((matcher.on_the_way(), matcher.departures().len()), (0, 0));
        matcher.send(Some(1), end(4));
        matcher.send(Some(1), end(5));
        assert_eq!(matcher.on_the_way(), 2);
        let mut arrive =
            |time| matcher.receive(Some(1), end(time), true).map(|found| found.send.time.0);
        assert_eq!([arrive(6), arrive(7), arrive(8)], [Some(4), Some(5), Some(5)]);
        assert_eq!((matcher.on_the_way(), matcher.unsent_count()), (0, 0));
        assert!(matcher.slots.len() <= 2);
    }

    proptest! {
        #[test]
        fn the_chains_are_queues(
            steps in prop::collection::vec((any::<bool>(), prop::option::of(0u64..3)), 0..200),
        ) {
            let mut matcher = Matcher::default();
            let mut queues: HashMap<Option<u64>, VecDeque<i64>> = HashMap::new();
            let (mut time, mut unsent) = (0, 0);
            for (sends, key) in steps {
                time += 1;
                let queue = queues.entry(key).or_default();
                if sends {
                    queue.push_back(time);
                    matcher.send(key, end(time));
                    continue;
                }
                let expected = queue.pop_front();
                unsent += u64::from(expected.is_none());
                let found = matcher.receive(key, end(time), false).map(|message| message.send.time.0);
                prop_assert_eq!(found, expected);
            }
            let waiting: usize = queues.values().map(VecDeque::len).sum();
            prop_assert_eq!(matcher.on_the_way(), waiting as u64);
            prop_assert_eq!(matcher.unsent_count(), unsent);
            prop_assert!(matcher.slots.len() <= 200);
        }

        #[test]
        fn what_is_put_back_makes_no_fewer_messages(
            steps in prop::collection::vec((any::<bool>(), 0u64..3, any::<bool>()), 0..200),
        ) {
            let matched = |with_lost: bool| {
                let mut matcher = Matcher::default();
                let steps = steps.iter().enumerate().filter(|(_, step)| with_lost || !step.2);
                let count = steps.filter(|(time, (sends, key, _))| {
                    let end = end(*time as i64);
                    if *sends {
                        matcher.send(Some(*key), end);
                        return false;
                    }
                    matcher.receive(Some(*key), end, false).is_some()
                });
                count.count()
            };
            prop_assert!(matched(false) <= matched(true));
        }
    }
}
