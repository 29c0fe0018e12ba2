// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that were sent by one clock and received by another.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use lateralis_units::Nanos;

use super::Observed;

/// Messages that are remembered; others are ignored.
const MESSAGES_MAX: usize = 1 << 20;

/// A message from one clock to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// Number of the sender's clock.
    pub from: u32,
    /// Time of the send.
    pub sent: Nanos,
    /// Number of the receiver's clock.
    pub to: u32,
    /// Time of the receive.
    pub received: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    send: Option<(u32, Nanos)>,
    receive: Option<(u32, Nanos)>,
    /// Sent more than once: which one was received is unknown.
    is_ambiguous: bool,
}

/// Finds messages that cross clocks; ends may come in any order, be missing or repeated.
///
/// Only messages with a key that was sent once: matched by order alone they cannot be identified if some
/// are lost. Of several receives the first counts.
///
/// Memory: proportional to messages, at most 1 048 576.
#[derive(Debug, Default)]
pub struct Crossings {
    ends: HashMap<(u32, u64), Ends, RandomState>,
    left_out: u64,
}

impl Crossings {
    /// A message is sent. Cost: a lookup.
    pub fn send(&mut self, channel: u32, key: u64, clock: u32, time: Nanos) {
        if let Some(ends) = self.ends(channel, key) {
            ends.is_ambiguous |= ends.send.is_some();
            ends.send = Some((clock, time));
        }
    }

    /// A message is received. Cost: a lookup.
    pub fn receive(&mut self, channel: u32, key: u64, clock: u32, time: Nanos) {
        if let Some(ends) = self.ends(channel, key) {
            ends.receive = match ends.receive {
                Some((known, before)) if known != clock || before <= time => Some((known, before)),
                _ => Some((clock, time)),
            };
        }
    }

    fn ends(&mut self, channel: u32, key: u64) -> Option<&mut Ends> {
        let has_room = self.ends.len() < MESSAGES_MAX;
        match self.ends.entry((channel, key)) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) if has_room => Some(entry.insert(Ends::default())),
            Entry::Vacant(_) => {
                self.left_out += 1;
                None
            }
        }
    }

    /// Number of ends for which there was no room.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The messages that crossed, in any order.
    pub fn found(&self) -> impl Iterator<Item = Crossing> + '_ {
        self.ends.values().filter(|ends| !ends.is_ambiguous).filter_map(|ends| {
            let ((from, sent), (to, received)) = ends.send.zip(ends.receive)?;
            (from != to).then_some(Crossing { from, sent, to, received })
        })
    }

    /// Observations about the line from one clock's times to another's; `ours` may have been converted
    /// since.
    #[must_use]
    pub fn observed(&self, theirs: u32, ours: u32, our_time: impl Fn(Nanos) -> Nanos) -> Observed {
        let mut observed = Observed::default();
        for crossing in self.found() {
            if (crossing.from, crossing.to) == (ours, theirs) {
                observed.not_before(crossing.received.0, our_time(crossing.sent).0);
            } else if (crossing.from, crossing.to) == (theirs, ours) {
                observed.not_after(crossing.sent.0, our_time(crossing.received).0);
            }
        }
        observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cross_whatever_the_order_in_which_their_ends_are_told() {
        let mut crossings = Crossings::default();
        crossings.receive(1, 7, 1, Nanos(100));
        crossings.send(1, 7, 0, Nanos(900));
        crossings.receive(1, 7, 1, Nanos(90));
        // Sent twice, lost, within one clock, and on another channel.
        crossings.send(1, 8, 0, Nanos(1));
        crossings.send(1, 8, 0, Nanos(2));
        crossings.receive(1, 8, 1, Nanos(3));
        crossings.send(1, 9, 0, Nanos(4));
        crossings.send(1, 10, 1, Nanos(5));
        crossings.receive(1, 10, 1, Nanos(6));
        crossings.receive(2, 9, 1, Nanos(7));
        let found: Vec<Crossing> = crossings.found().collect();
        let only = Crossing { from: 0, sent: Nanos(900), to: 1, received: Nanos(90) };
        assert_eq!(found, [only]);
        assert_eq!(crossings.observed(1, 0, |time| time).counts(), [1, 0]);
        assert_eq!(crossings.observed(0, 1, |time| time).counts(), [0, 1]);
    }
}
