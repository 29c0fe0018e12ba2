// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a network, recorded by a program that has them in its hands.

use crate::c_core::lat_i_payload_most;
use crate::packet_events::packets;

/// Something that packets go through. Two of the same name and link type are one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Shown by readers; some 15 characters are usual.
    pub name: &'a str,
    /// What the first byte of a packet belongs to, by the numbers of tcpdump.org/linktypes.html.
    pub link_type: u16,
    /// Most bytes of a packet that are kept.
    pub snap_bytes: u32,
}

impl Interface<'_> {
    /// Link type of Ethernet.
    pub const ETHERNET: u16 = 1;
    /// Link type of IPv4 and IPv6 without anything in front, as in a tunnel.
    pub const IP: u16 = 101;
    /// Link type of SocketCAN.
    pub const CAN: u16 = 227;
}

/// Where a packet went, seen from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It is not known.
    Unknown,
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// Everything of a record but name and data: its fields, and what aligns them.
const FIELDS_BYTES: usize = 24;

/// Records a packet that the program holds as a whole, as an event `packets:packet` of this thread:
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
/// At most [`snap_bytes`](Interface::snap_bytes) of it are kept, and at most as many as a packet of the
/// ring takes; the record tells how long it was. `lat convert RECORDING --to pcapng` writes what
/// tshark reads. Without the third line above, recorders do not know the event before the first packet.
///
/// Context: anywhere; the first packet not in a signal handler, without the third line. Cost: as
/// [`Schema::emit_record`](crate::Schema::emit_record), with the copy of the bytes that are kept;
/// disabled, two loads and a branch.
#[inline]
pub fn packet(interface: &Interface<'_>, direction: Direction, data: &[u8]) {
    packet_part(interface, direction, data, data.len());
}

/// Records a packet of which the program holds only the beginning, `data`: it was `original_bytes` long.
///
/// Everything else is as for [`packet`].
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
    // 0 while there are no rings; then the packet is lost, and counted, whatever its length.
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
