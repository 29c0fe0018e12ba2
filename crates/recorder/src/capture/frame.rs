// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a frame to the payload of an event `packets:packet`.

use super::block::Frame;
use crate::source::Payload;

/// A captured interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// LINKTYPE number of its packets [tcpdump.org/linktypes.html].
    pub link_type: u16,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: usize,
}

/// Link type of Ethernet.
const ETHERNET: u16 = 1;
/// Link type of packets that begin with IPv4 or IPv6.
const RAW: u16 = 101;

/// The link type of an interface by its hardware type (`ARPHRD_…` of `linux/if_arp.h`), for the
/// frames of a raw packet socket; `None` if readers do not support it.
pub fn link_type(hardware_type: u16) -> Option<u16> {
    Some(match hardware_type {
        // Ethernet, and the loopback, whose frames have the same layout.
        1 | 772 => ETHERNET,
        // Tunnels without a link-layer header: none, tunnel, tunnel6, sit, raw IP.
        0xfffe | 768 | 769 | 776 | 519 => RAW,
        // PPP, IEEE 802.11 bare and with radiotap, CAN, netlink.
        512 => 9,
        801 => 105,
        803 => 127,
        280 => 227,
        824 => 253,
        _ => return None,
    })
}

/// The two addresses at the start of an Ethernet frame, after which a VLAN tag is inserted.
pub fn ether_head(link_type: u16, data: &[u8]) -> Option<&[u8]> {
    data.get(..12).filter(|_| link_type == ETHERNET)
}

/// Direction, and `epb_flags` of pcapng: direction in bits 0 and 1, kind of reception above
/// [draft-ietf-opsawg-pcapng §4.3.1].
fn direction(packet_type: u8) -> (u8, u32) {
    let (direction, reception) = match packet_type {
        0 => (1, 1),
        1 => (1, 3),
        2 => (1, 2),
        // To another host: received only because the interface is in promiscuous mode.
        3 => (1, 4),
        4 => (2, 0),
        _ => (0, 0),
    };
    (direction, u32::from(direction) | reception << 2)
}

impl Interface {
    /// Writes the payload of a frame by `spec/packets.pleco`. A VLAN tag that the kernel removed
    /// is inserted again, so that the bytes are those on the network.
    pub fn fill(&self, frame: &Frame<'_>, payload: &mut Payload<'_>) {
        let (direction, flags) = direction(frame.packet_type);
        let mut tag = [0; 4];
        let (mut head, mut rest, mut tag_bytes) = (&[][..], frame.data, 0);
        if let (Some((kind, value)), Some(addresses)) =
            (frame.vlan, ether_head(self.link_type, frame.data))
        {
            tag[..2].copy_from_slice(&kind.to_be_bytes());
            tag[2..].copy_from_slice(&value.to_be_bytes());
            (head, rest, tag_bytes) = (addresses, &frame.data[addresses.len()..], tag.len());
        }
        let original = frame.original_bytes.saturating_add(tag_bytes as u32);
        let mut left = self.snap_bytes.min(original as usize);
        let mut kept = |bytes: &[u8]| {
            let kept = bytes.len().min(left);
            left -= kept;
            kept
        };
        let (head, tag, rest) = (
            &head[..kept(head)],
            &tag[..tag_bytes][..kept(&tag[..tag_bytes])],
            &rest[..kept(rest)],
        );
        let captured = (head.len() + tag.len() + rest.len()) as u32;
        payload.text(self.name.as_bytes());
        payload.put(1, &[direction]);
        payload.put(2, &self.link_type.to_ne_bytes());
        payload.put(4, &captured.to_ne_bytes());
        payload.put(4, &original.to_ne_bytes());
        payload.put(4, &flags.to_ne_bytes());
        payload.put(4, &captured.to_ne_bytes());
        for part in [head, tag, rest] {
            payload.put(1, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{MemorySink, Sink, StreamPlan, register};

    /// The fields of a record's payload, decoded by hand.
    #[derive(Debug, PartialEq, Eq)]
    struct Seen {
        direction: u8,
        link_type: u16,
        original: u32,
        flags: u32,
        data: Vec<u8>,
    }

    fn seen(interface: &Interface, frame: &Frame<'_>) -> Seen {
        let schema = super::super::schema().unwrap();
        let registered = register([(*schema).clone()]);
        let plan = StreamPlan { name: "p".to_owned(), number: 0, is_cpu: false };
        let mut memory = MemorySink::with(vec![plan], &registered, 1 << 17, 1000);
        let sink: &mut dyn Sink = &mut memory;
        sink.record(0, (7, None), 16, &mut |payload| interface.fill(frame, payload));
        memory.close(0);
        assert_eq!(memory.streams[0].ring.totals().events, 1);
        assert_eq!(memory.streams[0].ring.totals().damaged_packets, 0);
        let payload = &memory.packets[0][0][128 + 8..];
        let name = payload.iter().position(|byte| *byte == 0).unwrap();
        assert_eq!(&payload[..name], interface.name.as_bytes());
        let number = |at: usize| u32::from_ne_bytes(payload[at..at + 4].try_into().unwrap());
        let link = (name + 2).next_multiple_of(2);
        let lengths = (link + 2).next_multiple_of(4);
        let count = number(lengths + 12);
        assert_eq!(number(lengths), count);
        Seen {
            direction: payload[name + 1],
            link_type: u16::from_ne_bytes([payload[link], payload[link + 1]]),
            original: number(lengths + 4),
            flags: number(lengths + 8),
            data: payload[lengths + 16..][..count as usize].to_vec(),
        }
    }

    fn frame(data: &[u8], packet_type: u8, vlan: Option<(u16, u16)>) -> Frame<'_> {
        Frame { utc_ns: 0, original_bytes: data.len() as u32, packet_type, vlan, data }
    }

    fn interface(name: &str, link_type: u16, snap_bytes: usize) -> Interface {
        Interface { name: name.to_owned(), link_type, snap_bytes }
    }

    #[test]
    fn direction_and_kind_of_reception_are_those_of_pcapng() {
        let data: Vec<u8> = (0..60).collect();
        let expected = [(1, 0b101), (1, 0b1101), (1, 0b1001), (1, 0b10001), (2, 2), (0, 0), (0, 0)];
        for (packet_type, expected) in expected.into_iter().enumerate() {
            let frame = frame(&data, packet_type as u8, None);
            let seen = seen(&interface("eth0", 1, usize::MAX), &frame);
            assert_eq!((seen.direction, seen.flags), expected, "{packet_type}");
            assert_eq!((seen.original, seen.link_type), (60, 1));
            assert_eq!(seen.data, data);
        }
    }

    #[test]
    fn a_tag_is_put_back_where_it_was_and_counts() {
        let data: Vec<u8> = (0..60).collect();
        let tagged = [&data[..12], &[0x88, 0xa8, 0x20, 0x05], &data[12..]].concat();
        let frame = frame(&data, 0, Some((0x88a8, 0x2005)));
        for snap in [0, 5, 12, 14, 16, 17, 63, 64, 1000] {
            let seen = seen(&interface("e", ETHERNET, snap), &frame);
            assert_eq!(seen.original, 64);
            assert_eq!(seen.data, tagged[..snap.min(64)], "{snap}");
        }
        // Without link-layer addresses there is no place for the tag.
        assert_eq!(seen(&interface("t", RAW, 99), &frame).data, data);
        let short = Frame { data: &data[..11], ..frame };
        assert_eq!(seen(&interface("e", ETHERNET, 99), &short).data, data[..11]);
    }

    #[test]
    fn kinds_of_hardware_are_known_or_refused() {
        assert_eq!(link_type(772), Some(1));
        assert_eq!(link_type(0xfffe), Some(101));
        assert_eq!(link_type(32), None, "InfiniBand");
    }
}
