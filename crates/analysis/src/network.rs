// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the sender and reader of network packets.
//!
//! A capture contains the content and time of a packet; kernel events follow the buffer (`sk_buff`) that
//! contained it, by address. Both have the interface, the length and nearly the same time, because the
//! kernel passes packets to captures right where it emits these events.
//!
//! ```text
//! kernel    queued ─ started ─────────── arrived ─ read     one buffer, by its address
//!           thread   interface, length  interface thread
//! capture            outbound packet    inbound packet
//! ```
//!
//! (Linux: `xmit_one` and `__netif_receive_skb_core` in net/core/dev.c, `skb_copy_datagram_iter` in
//! net/core/datagram.c.)
//!
//! Memory: proportional to packets that have not been read, at most 65 536, and as many buffers.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use lateralis_units::Nanos;

/// Largest difference between the time of a packet and that of the kernel's event. The kernel does not
/// sleep between the two, so it is microseconds unless the machine itself was stopped.
const APART_NS: i64 = 1_000_000;
/// Time that a packet waits to be read.
const UNREAD_NS: i64 = 10_000_000_000;
/// Packets and buffers that are remembered.
const REMEMBERED_MAX: usize = 1 << 16;
/// Packets of one buffer: it passes few interfaces.
const OF_BUFFER_MAX: usize = 8;

/// Interface and direction of a packet, and its length on the network in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Passage {
    /// Number given to the interface by the caller.
    pub interface: u32,
    /// Whether it was received; otherwise it was sent.
    pub is_inbound: bool,
    /// Bytes, including the link-layer header.
    pub bytes: u32,
}

/// An access of a thread to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch<W> {
    /// Time.
    pub time: Nanos,
    /// The thread, as identified by the caller.
    pub who: W,
}

/// A packet with its known accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tied<P, W> {
    /// The caller's packet.
    pub packet: P,
    /// Time of the capture.
    pub time: Nanos,
    /// Its sender, on this machine.
    pub sent: Option<Touch<W>>,
    /// Its first reader.
    pub read: Option<Touch<W>>,
    /// Whether no other packet with the same passage could have been meant.
    pub is_certain: bool,
}

/// Joins packets and buffers; events must come in time order.
#[derive(Debug)]
pub struct Network<P, W> {
    /// Numbers of packets without a known kernel event, and events without packets.
    captured: Waiting,
    told: Waiting,
    buffers: HashMap<u64, Buffer<W>, RandomState>,
    /// By number; `first` is that of the first, and `None` marks finished ones.
    packets: VecDeque<Option<Tied<P, W>>>,
    first: u64,
    done: Vec<Tied<P, W>>,
}

/// Lifetime of a buffer. Addresses are reused.
#[derive(Debug)]
struct Buffer<W> {
    sent: Option<Touch<W>>,
    /// The kernel has reported its arrival, and reports it again when it processes it.
    is_arriving: bool,
    has_arrived: bool,
    packets: Vec<u64>,
}

impl<W> Buffer<W> {
    fn new(sent: Option<Touch<W>>) -> Self {
        Self { sent, is_arriving: false, has_arrived: false, packets: Vec::new() }
    }
}

impl<P, W> Default for Network<P, W> {
    fn default() -> Self {
        Self {
            captured: HashMap::default(),
            told: HashMap::default(),
            buffers: HashMap::default(),
            packets: VecDeque::new(),
            first: 0,
            done: Vec::new(),
        }
    }
}

impl<P, W: Clone> Network<P, W> {
    /// A packet was captured.
    pub fn captured(&mut self, passage: Passage, time: Nanos, packet: P) {
        let number = self.first + self.packets.len() as u64;
        let tied = Tied { packet, time, sent: None, read: None, is_certain: false };
        self.packets.push_back(Some(tied));
        match next(&mut self.told, passage, time) {
            Some((buffer, is_only)) => self.tie(number, buffer, is_only),
            None => wait(&mut self.captured, passage, time, number),
        }
        self.forget(time);
    }

    /// A packet whose thread is known.
    pub fn known(&mut self, is_inbound: bool, time: Nanos, packet: P, who: W) {
        let touch = Some(Touch { time, who });
        let (sent, read) = if is_inbound { (None, touch) } else { (touch, None) };
        self.done.push(Tied { packet, time, sent, read, is_certain: true });
    }

    /// A buffer is queued on an interface; by a thread, or by the kernel (`None`).
    pub fn queued(&mut self, buffer: u64, touch: Option<Touch<W>>) {
        self.begins(buffer, touch);
    }

    /// The interface sends the buffer.
    pub fn started(&mut self, buffer: u64, passage: Passage, time: Nanos) {
        if !self.buffers.contains_key(&buffer) {
            self.begins(buffer, None);
        }
        self.passes(buffer, passage, time);
    }

    /// A buffer was received from an interface. `again`: this may be reported a second time.
    pub fn arrived(&mut self, buffer: u64, passage: Passage, time: Nanos, again: bool) {
        let is_second = match self.buffers.get_mut(&buffer) {
            Some(life) if life.is_arriving && !again => {
                life.is_arriving = false;
                true
            }
            Some(life) if !life.has_arrived => false,
            _ => {
                self.begins(buffer, None);
                false
            }
        };
        if is_second {
            return;
        }
        if let Some(life) = self.buffers.get_mut(&buffer) {
            (life.has_arrived, life.is_arriving) = (true, again);
        }
        self.passes(buffer, passage, time);
    }

    /// A thread reads the contents of a buffer.
    pub fn read(&mut self, buffer: u64, touch: &Touch<W>) {
        let packets = self.buffers.get_mut(&buffer).map(|life| std::mem::take(&mut life.packets));
        for number in packets.into_iter().flatten() {
            self.finish(number, Some(touch.clone()));
        }
    }

    /// Packets about which nothing more will be known.
    pub fn done(&mut self) -> impl Iterator<Item = Tied<P, W>> + use<'_, P, W> {
        self.done.drain(..)
    }

    /// All remaining packets, in time order.
    pub fn end(mut self) -> impl Iterator<Item = Tied<P, W>> {
        let left = std::mem::take(&mut self.packets);
        self.done.into_iter().chain(left.into_iter().flatten())
    }

    /// The address belongs to another buffer from now on.
    fn begins(&mut self, buffer: u64, sent: Option<Touch<W>>) {
        if self.buffers.len() >= REMEMBERED_MAX && !self.buffers.contains_key(&buffer) {
            self.buffers.clear();
        }
        let before = self.buffers.insert(buffer, Buffer::new(sent));
        for number in before.into_iter().flat_map(|life| life.packets) {
            self.finish(number, None);
        }
    }

    fn passes(&mut self, buffer: u64, passage: Passage, time: Nanos) {
        match next(&mut self.captured, passage, time) {
            Some((number, is_only)) => self.tie(number, buffer, is_only),
            None => wait(&mut self.told, passage, time, buffer),
        }
    }

    fn tie(&mut self, number: u64, buffer: u64, is_only: bool) {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let packet = place.and_then(|place| self.packets.get_mut(place)?.as_mut());
        if let (Some(packet), Some(life)) = (packet, self.buffers.get_mut(&buffer)) {
            packet.is_certain = is_only;
            packet.sent.clone_from(&life.sent);
            if life.packets.len() < OF_BUFFER_MAX {
                life.packets.push(number);
            }
        }
    }

    fn finish(&mut self, number: u64, read: Option<Touch<W>>) {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let packet = place.and_then(|place| self.packets.get_mut(place)?.take());
        self.done.extend(packet.map(|packet| Tied { read, ..packet }));
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Gives up packets that have waited too long.
    fn forget(&mut self, now: Nanos) {
        while let Some(first) = self.packets.front() {
            let waits = first.as_ref().is_some_and(|packet| now.since(packet.time) < UNREAD_NS);
            if waits && self.packets.len() <= REMEMBERED_MAX {
                break;
            }
            let packet = self.packets.pop_front().flatten();
            self.first += 1;
            self.done.extend(packet);
        }
    }
}

type Waiting = HashMap<Passage, VecDeque<Waits>, RandomState>;

/// A packet or event that waits for its counterpart.
#[derive(Debug, Clone, Copy)]
struct Waits {
    since: Nanos,
    number: u64,
    /// Whether nothing else has waited at its passage meanwhile.
    is_only: bool,
}

/// Takes the first that waits at a passage; also returns whether it was the only one.
fn next(waiting: &mut Waiting, passage: Passage, now: Nanos) -> Option<(u64, bool)> {
    let list = waiting.get_mut(&passage)?;
    while list.front().is_some_and(|first| now.since(first.since) > APART_NS) {
        list.pop_front();
    }
    let first = list.pop_front()?;
    Some((first.number, first.is_only))
}

fn wait(waiting: &mut Waiting, passage: Passage, now: Nanos, number: u64) {
    if waiting.len() >= REMEMBERED_MAX && !waiting.contains_key(&passage) {
        waiting.clear();
    }
    let list = waiting.entry(passage).or_default();
    while list.len() >= REMEMBERED_MAX
        || list.front().is_some_and(|first| now.since(first.since) > APART_NS)
    {
        list.pop_front();
    }
    // Earlier ones were marked when the next was added.
    if let Some(last) = list.back_mut() {
        last.is_only = false;
    }
    list.push_back(Waits { since: now, number, is_only: list.is_empty() });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LO: Passage = Passage { interface: 0, is_inbound: true, bytes: 166 };
    const ETH: Passage = Passage { interface: 1, is_inbound: false, bytes: 166 };

    fn touch(time: i64, who: &'static str) -> Touch<&'static str> {
        Touch { time: Nanos(time), who }
    }

    /// Packet, sender, reader, certainty.
    type Row = (u32, Option<&'static str>, Option<&'static str>, bool);

    fn rows(network: Network<u32, &'static str>) -> Vec<Row> {
        let row = |tied: Tied<u32, &'static str>| {
            (tied.packet, tied.sent.map(|t| t.who), tied.read.map(|t| t.who), tied.is_certain)
        };
        network.end().map(row).collect()
    }

    #[test]
    fn a_packet_of_loopback_has_its_sender_and_its_reader() {
        let mut network = Network::default();
        network.queued(0xa, Some(touch(10, "client")));
        network.started(0xa, Passage { is_inbound: false, ..LO }, Nanos(11));
        network.arrived(0xa, LO, Nanos(12), true);
        network.arrived(0xa, LO, Nanos(13), false);
        // Its time stamp is after the kernel event, or before it.
        network.captured(LO, Nanos(14), 1);
        network.read(0xa, &touch(20, "server"));
        network.queued(0xa, Some(touch(30, "server")));
        network.captured(LO, Nanos(31), 2);
        network.arrived(0xa, LO, Nanos(32), true);
        network.arrived(0xa, LO, Nanos(33), false);
        network.read(0xa, &touch(40, "client"));
        let expected =
            [(1, Some("client"), Some("server"), true), (2, Some("server"), Some("client"), true)];
        assert_eq!(rows(network), expected);
    }

    #[test]
    fn what_the_kernel_sends_itself_has_no_sender_and_addresses_are_used_again() {
        let mut network = Network::default();
        network.queued(0xa, None);
        network.started(0xa, ETH, Nanos(1));
        network.captured(ETH, Nanos(2), 1);
        network.queued(0xa, Some(touch(5, "client")));
        network.started(0xa, ETH, Nanos(6));
        network.captured(ETH, Nanos(7), 2);
        // A buffer about which nothing is known.
        network.read(0xb, &touch(9, "nobody"));
        assert_eq!(rows(network), [(1, None, None, true), (2, Some("client"), None, true)]);
    }

    #[test]
    fn alike_packets_at_once_are_taken_in_order_and_said_to_be_uncertain() {
        let mut network = Network::default();
        for (buffer, who) in [(0xa, "one"), (0xb, "two")] {
            network.queued(buffer, Some(touch(1, who)));
            network.started(buffer, ETH, Nanos(2));
        }
        network.captured(ETH, Nanos(3), 1);
        network.captured(ETH, Nanos(3), 2);
        // Too late for a third.
        network.queued(0xc, Some(touch(4, "three")));
        network.started(0xc, ETH, Nanos(5));
        network.captured(ETH, Nanos(6 + APART_NS), 3);
        let expected =
            [(1, Some("one"), None, false), (2, Some("two"), None, false), (3, None, None, false)];
        assert_eq!(rows(network), expected);
    }

    #[test]
    fn memory_is_bounded() {
        let mut network = Network::default();
        let mut done = 0;
        for n in 0..200_000_u32 {
            let passage = Passage { bytes: n, ..LO };
            network.arrived(
                u64::from(n),
                Passage { bytes: n + 1, ..passage },
                Nanos(n.into()),
                false,
            );
            network.captured(Passage { bytes: n + 9_000_000, ..passage }, Nanos(n.into()), n);
            done += network.done().count();
            assert!(
                network.packets.len() <= REMEMBERED_MAX && network.told.len() <= REMEMBERED_MAX
            );
            assert!(network.buffers.len() <= REMEMBERED_MAX);
        }
        assert_eq!(done + rows(network).len(), 200_000);
    }
}
