// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who sent a packet of a network, and who read it.
//!
//! A capture tells what a packet was and when; the kernel's own events tell what became of the
//! buffer (`sk_buff`) that it was in, by address. Both name the interface, the length and nearly the same
//! time, for the kernel shows packets to captures just where it tells of them.
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
//! Memory: by packets that nobody has read yet, 65 536 of them, and as many buffers.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use lateralis_units::Nanos;

/// How far a packet's stamp and the kernel's event may be apart. Between the two the kernel does not
/// sleep, so it is microseconds, but for a machine that was itself held up.
const APART_NS: i64 = 1_000_000;
/// How long a packet waits to be read.
const UNREAD_NS: i64 = 10_000_000_000;
/// Packets, and buffers, that are remembered.
const REMEMBERED_MAX: usize = 1 << 16;
/// Packets of one buffer: it goes through few interfaces.
const OF_BUFFER_MAX: usize = 8;

/// Where and which way a packet went, and its length on the network in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Passage {
    /// Number that the caller has given to the interface.
    pub interface: u32,
    /// Whether it came; else it went.
    pub is_inbound: bool,
    /// Bytes, with the header of the link.
    pub bytes: u32,
}

/// A thread did something with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch<W> {
    /// When.
    pub time: Nanos,
    /// Who, in the caller's words.
    pub who: W,
}

/// A packet and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tied<P, W> {
    /// What the caller has shown.
    pub packet: P,
    /// When it was captured.
    pub time: Nanos,
    /// Who sent it, on this machine.
    pub sent: Option<Touch<W>>,
    /// Who was the first to read it.
    pub read: Option<Touch<W>>,
    /// Whether no other packet of the same passage could have been meant.
    pub is_certain: bool,
}

/// Joins packets and buffers; events in the order of time.
#[derive(Debug)]
pub struct Network<P, W> {
    /// Numbers of packets that no event of the kernel is known of, and events without packets.
    captured: Waiting,
    told: Waiting,
    buffers: HashMap<u64, Buffer<W>, RandomState>,
    /// By number; `first` is that of the first, and `None` stands where one is finished.
    packets: VecDeque<Option<Tied<P, W>>>,
    first: u64,
    done: Vec<Tied<P, W>>,
}

/// The life of a buffer. Addresses are used again.
#[derive(Debug)]
struct Buffer<W> {
    sent: Option<Touch<W>>,
    /// The kernel has told that it came, and tells so again when it handles it.
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
    /// A packet as it was captured.
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

    /// A packet of which is known who had it in hands.
    pub fn known(&mut self, is_inbound: bool, time: Nanos, packet: P, who: W) {
        let touch = Some(Touch { time, who });
        let (sent, read) = if is_inbound { (None, touch) } else { (touch, None) };
        self.done.push(Tied { packet, time, sent, read, is_certain: true });
    }

    /// A buffer is given to an interface to be sent; by a thread, or `None`: by the kernel.
    pub fn queued(&mut self, buffer: u64, touch: Option<Touch<W>>) {
        self.begins(buffer, touch);
    }

    /// The interface sends it.
    pub fn started(&mut self, buffer: u64, passage: Passage, time: Nanos) {
        if !self.buffers.contains_key(&buffer) {
            self.begins(buffer, None);
        }
        self.passes(buffer, passage, time);
    }

    /// A buffer has come from an interface. `again`: this may be told a second time of it.
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

    /// A thread takes what is in it.
    pub fn read(&mut self, buffer: u64, touch: &Touch<W>) {
        let packets = self.buffers.get_mut(&buffer).map(|life| std::mem::take(&mut life.packets));
        for number in packets.into_iter().flatten() {
            self.finish(number, Some(touch.clone()));
        }
    }

    /// Packets of which nothing more will be known.
    pub fn done(&mut self) -> impl Iterator<Item = Tied<P, W>> + use<'_, P, W> {
        self.done.drain(..)
    }

    /// All that are left, in the order of time.
    pub fn end(mut self) -> impl Iterator<Item = Tied<P, W>> {
        let left = std::mem::take(&mut self.packets);
        self.done.into_iter().chain(left.into_iter().flatten())
    }

    /// An address stands for another buffer from now on.
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

    /// Gives up what has waited too long.
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

/// Something that waits for its other half.
#[derive(Debug, Clone, Copy)]
struct Waits {
    since: Nanos,
    number: u64,
    /// Nothing else has waited at its passage meanwhile.
    is_only: bool,
}

/// The first that waits at a passage, and whether it could be taken for another.
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
    // Those further ahead have been told so by the one behind them.
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
        // Stamped behind the event that tells of it, or before it.
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
        // Of a buffer of which nothing is known.
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
