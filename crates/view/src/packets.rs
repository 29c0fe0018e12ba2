// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of networks stand on lanes of their own, one for each interface and direction, whoever
//! recorded them: among the events of a processor, or on the lane of a stream, nobody would see them.

use lateralis_lanes::{Lane, LaneKind};
use lateralis_model::Event;

/// Names come from traces. Of more interfaces packets stay among the other events of their stream.
pub const LANES_MAX: usize = 64;
/// Letters of an interface's name that are shown; those of Linux have 15 at most.
const NAME_MAX: usize = 40;

/// Classes of packets: as recorded (spec/packets.pleco), and as captures are imported.
const CLASSES: [&str; 2] = ["packets:packet", "packet"];

/// What the lane of a packet is called, as `eth0 in`; `None` of any other event.
pub fn lane_name(event: &Event<'_>) -> Option<String> {
    if !CLASSES.contains(&event.class.name.as_str()) {
        return None;
    }
    let payload = event.payload()?;
    let interface = payload.get("interface")?.as_text()?;
    let mut name: String = interface.chars().take(NAME_MAX).collect();
    // 0 of an imported packet whose capture does not say.
    match payload.get("direction").and_then(|direction| direction.as_u64()) {
        Some(1) => name.push_str(" in"),
        Some(2) => name.push_str(" out"),
        _ => {}
    }
    Some(name)
}

/// The lane that the index has put a packet on.
pub fn lane_of(lanes: &[Lane], event: &Event<'_>) -> Option<u32> {
    let name = lane_name(event)?;
    let is_its_own = |lane: &Lane| lane.kind == LaneKind::Packets && lane.name == name;
    lanes.iter().position(is_its_own).map(|lane| lane as u32)
}
