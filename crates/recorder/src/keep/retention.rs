// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The newest packets of all streams, in memory, bounded by time and by bytes.

use std::collections::{HashMap, VecDeque};

use lateralis_ring::{LossCounts, PacketHeader, abi};

/// Memory overhead of a packet in bytes.
const PACKET_COST: usize = 256;
/// Maximum number of streams without packets that are kept for their loss counts.
const STREAMS_MAX: usize = 4096;

/// A retained packet.
#[derive(Debug)]
pub struct Held {
    /// Sequence number over all packets.
    pub serial: u64,
    /// Number of its stream.
    pub stream: u64,
    /// Its header as sealed.
    pub header: PacketHeader,
    /// Its bytes after the header.
    pub records: Box<[u8]>,
}

/// A stream that has or had packets here.
#[derive(Debug, Clone)]
pub struct HeldStream {
    /// Name of its file.
    pub name: String,
    /// Its class.
    pub class: u32,
    /// Loss counts at the end of the last dropped packet.
    pub lost_before: LossCounts,
    packets: usize,
}

/// The retained packets.
#[derive(Debug)]
pub struct Retention {
    packets: VecDeque<Held>,
    streams: HashMap<u64, HeldStream>,
    numbers: HashMap<(String, u32), u64>,
    next_stream: u64,
    next_serial: u64,
    bytes: usize,
    bytes_max: usize,
    /// End of the packets that were dropped for lack of memory.
    forgotten_until: u64,
    forgotten_packets: u64,
}

impl Retention {
    /// Retains at most `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Retention {
        Retention {
            packets: VecDeque::new(),
            streams: HashMap::new(),
            numbers: HashMap::new(),
            next_stream: 0,
            next_serial: 0,
            bytes: 0,
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            forgotten_until: 0,
            forgotten_packets: 0,
        }
    }

    /// Adds a sealed packet of the stream with this name; evicts the oldest ones if there is no room.
    pub fn push(&mut self, name: &str, header: PacketHeader, records: &[u8]) {
        // Looking up a name without copying it would need a scan: names are
        // short, packets are long.
        let key = (name.to_owned(), header.stream_id);
        let stream = *self.numbers.entry(key).or_insert_with(|| {
            self.next_stream += 1;
            self.next_stream
        });
        let about = self.streams.entry(stream).or_insert_with(|| HeldStream {
            name: name.to_owned(),
            class: header.stream_id,
            lost_before: LossCounts::default(),
            packets: 0,
        });
        about.packets += 1;
        self.bytes += records.len() + PACKET_COST;
        let serial = self.next_serial;
        self.next_serial += 1;
        self.packets.push_back(Held { serial, stream, header, records: records.into() });
        while self.bytes > self.bytes_max && self.packets.len() > 1 {
            if let Some(packet) = self.pop() {
                self.forgotten_until = self.forgotten_until.max(packet.header.timestamp_end);
                self.forgotten_packets += 1;
            }
        }
    }

    fn pop(&mut self) -> Option<Held> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.records.len() + PACKET_COST;
        if let Some(stream) = self.streams.get_mut(&packet.stream) {
            stream.packets -= 1;
            stream.lost_before = packet.header.lost;
        }
        Some(packet)
    }

    /// Drops packets that ended before `horizon`.
    pub fn forget_before(&mut self, horizon: u64) {
        while self.packets.front().is_some_and(|packet| packet.header.timestamp_end < horizon) {
            self.pop();
        }
        if self.streams.len() > STREAMS_MAX {
            self.streams.retain(|_, stream| stream.packets > 0);
            let streams = &self.streams;
            self.numbers.retain(|_, number| streams.contains_key(number));
        }
    }

    /// Packets in the order of arrival.
    pub fn packets(&self) -> impl Iterator<Item = &Held> {
        self.packets.iter()
    }

    /// The stream of a retained packet.
    pub fn stream(&self, number: u64) -> Option<&HeldStream> {
        self.streams.get(&number)
    }

    /// End of the last packet that was dropped for lack of memory; 0 if none was.
    pub fn forgotten_until(&self) -> u64 {
        self.forgotten_until
    }

    /// Number of packets dropped for lack of memory.
    pub fn forgotten_packets(&self) -> u64 {
        self.forgotten_packets
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// Splits a sealed packet into header and records; `None` if it is invalid.
#[must_use]
pub fn split(packet: &[u8]) -> Option<(PacketHeader, &[u8])> {
    let (header, records) = packet.split_first_chunk::<{ abi::PACKET_HEADER_BYTES as usize }>()?;
    Some((PacketHeader::decode(header, false), records))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(end: u64, lost: u64) -> PacketHeader {
        let lost = LossCounts { full: lost, ..LossCounts::default() };
        PacketHeader {
            timestamp_begin: end - 5,
            timestamp_end: end,
            lost,
            ..PacketHeader::default()
        }
    }

    #[test]
    fn old_packets_go_by_time_and_by_bytes_and_leave_their_losses() {
        let mut kept = Retention::new(3 * (100 + PACKET_COST as u64));
        for end in [10, 20, 30] {
            kept.push("a", header(end, end), &[0; 100]);
        }
        kept.forget_before(11);
        let stream = kept.packets().next().unwrap().stream;
        assert_eq!(kept.stream(stream).unwrap().lost_before.full, 10);
        assert_eq!((kept.packets().count(), kept.forgotten_packets()), (2, 0));
        kept.push("b", header(40, 0), &[0; 100]);
        kept.push("a", header(50, 50), &[0; 100]);
        assert_eq!((kept.packets().count(), kept.forgotten_packets()), (3, 1));
        assert_eq!(kept.forgotten_until(), 20);
        assert!(kept.bytes() <= 3 * (100 + PACKET_COST as u64));
        // A single packet over the limit is retained alone.
        kept.push("a", header(60, 60), &[0; 5000]);
        assert_eq!(kept.packets().count(), 1);
    }
}
