// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of network interfaces as events: converts the kernel's ring of a packet socket to
//! records of `spec/packets.pleco`.
//!
//! ```text
//! block of the ring ─ block ─▶ frames ─ frame ─▶ payload of a record
//!                      stamp of the frame, UTC ─ stamps ─▶ ticks of the recording's clock
//! ```
//!
//! Pure: bytes and times in, bytes and times out. `linux/capture` has the socket.

mod block;
mod frame;
mod stamps;

use std::sync::Arc;

use lateralis_pleco::Schema;

pub use block::{BlockFault, Frame, Frames, frames};
pub use frame::{Interface, ether_head, link_type};
pub use stamps::{StampClock, Stamped};

/// The schema of captured packets, which is also that of packets recorded by programs.
pub fn schema() -> Option<Arc<Schema>> {
    let text = include_bytes!("../../../spec/packets.pleco");
    lateralis_pleco::compile("packets.pleco", text).schema.map(Arc::new)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_the_one_of_programs() {
        let schema = super::schema().expect("spec/packets.pleco compiles");
        assert_eq!(schema.events.len(), 1);
        let header = include_str!("../../../tracer/c/include/lat/packet_events.h");
        assert!(header.contains(&format!("UINT64_C({:#018x})", schema.hash())));
    }
}
