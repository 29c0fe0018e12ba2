// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks of the kernel's packet ring, to records of captured packets.

use lateralis_recorder::capture::{Interface, frames, schema};
use lateralis_recorder::source::{MemorySink, Sink, StreamPlan, register};
use lateralis_recorder::stream::checksum_holds;

/// Besides not panicking: frames lie in the block, every frame is one event, and the packets they
/// come into are whole and as many events.
pub fn check(bytes: &[u8]) {
    let Some(schema) = schema() else { panic!("the schema of packets compiles") };
    // The first byte chooses what the interface is like.
    let choice = bytes.first().copied().unwrap_or(0);
    let interface = Interface {
        name: "if\0\u{e9} 0".chars().cycle().take(usize::from(choice & 15)).collect(),
        link_type: if choice & 16 == 0 { 1 } else { 101 },
        snap_bytes: if choice & 32 == 0 { 48 } else { 1 << 16 },
    };
    let registered = register([(*schema).clone()]);
    let id = registered[0].base_id as u16;
    let plan = StreamPlan { name: "if".to_owned(), number: 0, is_cpu: false };
    let mut memory = MemorySink::with(vec![plan], &registered, 1 << 17, u64::MAX >> 2);
    let mut all = frames(bytes);
    let (mut count, mut captured) = (0u64, 0usize);
    for frame in all.by_ref() {
        let inside = bytes.as_ptr_range();
        assert!(frame.data.is_empty() || inside.contains(&frame.data.as_ptr()));
        captured += frame.data.len().min(interface.snap_bytes);
        count += 1;
        assert!(count <= bytes.len() as u64, "a frame has bytes of its own");
        let sink: &mut dyn Sink = &mut memory;
        sink.record(0, (count, None), id, &mut |payload| interface.fill(&frame, payload));
    }
    if let Some(fault) = all.fault() {
        assert!(!fault.to_string().is_empty());
    }
    memory.close(0);
    let lost = memory.streams[0].ring.losses().too_big;
    assert_eq!(memory.streams[0].ring.totals().damaged_packets, 0);
    assert_eq!(memory.streams[0].ring.totals().events + lost, count);
    for packet in &mut memory.packets[0] {
        assert!(checksum_holds(packet, false));
    }
    let written: usize = memory.packets[0].iter().map(Vec::len).sum();
    assert!(written <= captured + 512 * (count as usize + 1));
}

/// A block with three frames: plain, empty with a VLAN tag, and one of another type of tag.
pub fn good() -> Vec<Vec<u8>> {
    let mut block = vec![0u8; 48];
    block[12..16].copy_from_slice(&3u32.to_ne_bytes());
    block[16..20].copy_from_slice(&48u32.to_ne_bytes());
    let frames = [(60usize, 1u32, 0u8), (0, 0x11, 4), (90, 0x51, 2)];
    for (number, (bytes, status, kind)) in frames.into_iter().enumerate() {
        let total = (82 + bytes).next_multiple_of(16);
        let next = if number == 2 { 0 } else { total as u32 };
        let at = block.len();
        for word in [next, 1_700_000_000, number as u32, bytes as u32, bytes as u32, status] {
            block.extend_from_slice(&word.to_ne_bytes());
        }
        block.extend_from_slice(&[82u16.to_ne_bytes(), 96u16.to_ne_bytes()].concat());
        block.extend_from_slice(&[0u32.to_ne_bytes(), 5u32.to_ne_bytes()].concat());
        block.extend_from_slice(&0x8100u16.to_ne_bytes());
        block.resize(at + 58, 0);
        block.push(kind);
        block.resize(at + 82, 0);
        block.extend((0..bytes).map(|byte| byte as u8));
        block.resize(at + total, 0);
    }
    let mut whole = block.clone();
    whole[0] = 0x27;
    vec![block, whole]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_good_blocks_are_read_completely() {
        for block in good() {
            let mut all = frames(&block);
            assert_eq!(all.by_ref().count(), 3);
            assert_eq!(all.fault(), None);
        }
    }
}
