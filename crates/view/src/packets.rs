// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes of network packets: one for each interface and direction, whatever recorded them. Packets
//! would be hard to find among the events of a CPU or a stream.

use lateralis_lanes::{Lane, LaneKind};
use lateralis_model::Event;

/// Limit of packet lanes, because interface names come from traces. Packets of further interfaces
/// stay among the events of their stream.
pub const LANES_MAX: usize = 64;
/// Shown characters of an interface's name; names of Linux have at most 15.
const NAME_MAX: usize = 40;

/// Event classes of packets: as recorded (spec/packets.pleco), and as imported from captures.
const CLASSES: [&str; 2] = ["packets:packet", "packet"];

/// Name of the lane of a packet, as `eth0 in`; `None` for other events.
pub fn lane_name(event: &Event<'_>) -> Option<String> {
    if !CLASSES.contains(&event.class.name.as_str()) {
        return None;
    }
    let payload = event.payload()?;
    let interface = payload.get("interface")?.as_text()?;
    let mut name: String = interface.chars().take(NAME_MAX).collect();
    // The direction of an imported packet is 0 if the capture does not contain it.
    match payload.get("direction").and_then(|direction| direction.as_u64()) {
        Some(1) => name.push_str(" in"),
        Some(2) => name.push_str(" out"),
        _ => {}
    }
    Some(name)
}

/// The packet lane of an event in the index.
pub fn lane_of(lanes: &[Lane], event: &Event<'_>) -> Option<u32> {
    let name = lane_name(event)?;
    let is_its_own = |lane: &Lane| lane.kind == LaneKind::Packets && lane.name == name;
    lanes.iter().position(is_its_own).map(|lane| lane as u32)
}
