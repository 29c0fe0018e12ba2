// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network packets, recorded by a program that handles them.

use crate::c_core::lat_i_payload_most;
use crate::packet_events::packets;

/// An interface that packets pass. Two of the same name and link type are one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Shown by readers; about 15 characters are usual.
    pub name: &'a str,
    /// The first header of a packet, by the numbers of tcpdump.org/linktypes.html.
    pub link_type: u16,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: u32,
}

impl Interface<'_> {
    /// Link type of Ethernet.
    pub const ETHERNET: u16 = 1;
    /// Link type of IPv4 and IPv6 without a preceding header, as in a tunnel.
    pub const IP: u16 = 101;
    /// Link type of SocketCAN.
    pub const CAN: u16 = 227;
}

/// Direction of a packet, seen from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Unknown.
    Unknown,
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// All of a record except name and data: its fields and their alignment.
const FIELDS_BYTES: usize = 24;

/// Records a packet that the program has completely, as an event `packets:packet` of this thread:
///
/// ```
/// use lateralis::{Direction, Interface, packet};
/// static UPLINK: Interface<'_> =
///     Interface { name: "uplink", link_type: Interface::ETHERNET, snap_bytes: 256 };
/// lateralis::register_at_start!(lateralis::PACKETS);
/// # let frame = [0; 60];
/// packet(&UPLINK, Direction::Outbound, &frame);
/// ```
///
/// At most [`snap_bytes`](Interface::snap_bytes) of it are kept, and at most as many as fit into a packet of
/// the ring; the record contains its original length. `lat convert RECORDING --to pcapng` writes a file for
/// tshark. Without the third line above, recorders do not know the event before the first packet.
///
/// Context: anywhere; without the third line, the first packet must not be in a signal handler. Cost: like
/// [`Schema::emit_record`](crate::Schema::emit_record), with the copy of the kept bytes;
/// disabled, two loads and a branch.
#[inline]
pub fn packet(interface: &Interface<'_>, direction: Direction, data: &[u8]) {
    packet_part(interface, direction, data, data.len());
}

/// Records a packet of which the program has only the beginning, `data`: it was `original_bytes` long.
///
/// Otherwise like [`packet`].
#[inline]
pub fn packet_part(
    interface: &Interface<'_>,
    direction: Direction,
    data: &[u8],
    original_bytes: usize,
) {
    if packets::packet_enabled() {
        record(interface, direction, data, original_bytes);
    }
}

#[cold]
fn record(interface: &Interface<'_>, direction: Direction, data: &[u8], original_bytes: usize) {
    // 0 without rings; then the packet is lost, and counted, whatever its length.
    let most = lat_i_payload_most().checked_sub(interface.name.len() + FIELDS_BYTES);
    let kept = data.len().min(interface.snap_bytes as usize).min(most.unwrap_or(0));
    let data = data.get(..kept).unwrap_or_default();
    let (direction, flags) = match direction {
        Direction::Unknown => (packets::PacketDirection::unknown, 0),
        Direction::Inbound => (packets::PacketDirection::inbound, 1),
        Direction::Outbound => (packets::PacketDirection::outbound, 2),
    };
    packets::packet(
        interface.name,
        direction,
        interface.link_type,
        u32::try_from(kept).unwrap_or(u32::MAX),
        u32::try_from(original_bytes).unwrap_or(u32::MAX),
        flags,
        data,
    );
}
