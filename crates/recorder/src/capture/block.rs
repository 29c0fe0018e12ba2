// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes a block of a TPACKET_V3 ring, frame by frame [include/uapi/linux/if_packet.h;
//! Documentation/networking/packet_mmap.rst].
//!
//! ```text
//! tpacket_block_desc 48 | frame: tpacket3_hdr 48 | sockaddr_ll 20 | … | data at tp_mac
//!                         └── tp_next_offset to the next frame, 0 at the last
//! ```
//!
//! The bytes come from the kernel, and are checked like any other input.

use std::fmt;

/// Size of the fields of `struct tpacket_block_desc` that are read here.
const BLOCK_HEADER_BYTES: usize = 48;
/// Size of `struct tpacket3_hdr`, aligned; the link-layer address follows it.
const FRAME_HEADER_BYTES: usize = 48;
/// Size of `struct sockaddr_ll`.
const ADDRESS_BYTES: usize = 20;

/// `TP_STATUS_VLAN_VALID`: the header contains the tag that was removed from the frame.
const STATUS_VLAN: u32 = 1 << 4;
/// `TP_STATUS_VLAN_TPID_VALID`: the header also contains its type.
const STATUS_VLAN_TYPE: u32 = 1 << 6;
/// Default type of a tag [IEEE 802.1Q].
const VLAN_TYPE: u16 = 0x8100;

/// A packet from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time stamp, UTC, nanoseconds since 1970.
    pub utc_ns: i64,
    /// Length on the network, without the tag below.
    pub original_bytes: u32,
    /// `sll_pkttype`: to this host 0, broadcast 1, multicast 2, to other hosts 3, outgoing 4.
    pub packet_type: u8,
    /// Type and value of a VLAN tag that the kernel removed from the data.
    pub vlan: Option<(u16, u16)>,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// A malformed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFault {
    /// It is shorter than its header.
    Short,
    /// A frame lies outside of the block, or before the previous one.
    Frame {
        /// Number of the frame in the block.
        number: u32,
        /// Number of frames lost with it.
        left: u32,
    },
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockFault::Short => f.write_str("a block of the packet ring is too short"),
            BlockFault::Frame { number, left } => {
                write!(
                    f,
                    "frame {number} of a block of the packet ring lies outside: {left} left out"
                )
            }
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Iterates over the frames of a block, in order.
///
/// Cost: constant for each frame; their bytes are not copied.
pub fn frames(block: &[u8]) -> Frames<'_> {
    let count = u32_at(block, 12);
    let first = u32_at(block, 16).map(|first| first as usize);
    let fault = (block.len() < BLOCK_HEADER_BYTES).then_some(BlockFault::Short);
    Frames { block, at: first.unwrap_or(0), number: 0, count: count.unwrap_or(0), fault }
}

/// Iterator over the frames of a block. Ends at the first fault.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    block: &'a [u8],
    at: usize,
    number: u32,
    count: u32,
    fault: Option<BlockFault>,
}

impl<'a> Frames<'a> {
    /// The fault that ended the iteration, if any.
    pub fn fault(&self) -> Option<BlockFault> {
        self.fault
    }

    /// The frame at `at`, and the offset of the next one.
    fn frame(&self) -> Option<(Frame<'a>, usize)> {
        let header = self.block.get(self.at..self.at.checked_add(FRAME_HEADER_BYTES)?)?;
        let next = u32_at(header, 0)? as usize;
        let (seconds, nanos) = (u32_at(header, 4)?, u32_at(header, 8)?);
        let (captured, original_bytes) = (u32_at(header, 12)? as usize, u32_at(header, 16)?);
        let status = u32_at(header, 20)?;
        let data_at = usize::from(u16_at(header, 24)?);
        let tag = (u32_at(header, 32)? as u16, u16_at(header, 36)?);
        let address = self.block.get(self.at + FRAME_HEADER_BYTES..)?.get(..ADDRESS_BYTES)?;
        let packet_type = *address.get(10)?;
        if data_at < FRAME_HEADER_BYTES + ADDRESS_BYTES {
            return None;
        }
        let data_at = self.at.checked_add(data_at)?;
        let data = self.block.get(data_at..data_at.checked_add(captured)?)?;
        let tag_type = if status & STATUS_VLAN_TYPE != 0 { tag.1 } else { VLAN_TYPE };
        let frame = Frame {
            utc_ns: i64::from(seconds) * 1_000_000_000 + i64::from(nanos),
            original_bytes,
            packet_type,
            vlan: (status & STATUS_VLAN != 0).then_some((tag_type, tag.0)),
            data,
        };
        let is_last = self.number + 1 == self.count;
        let next = match next {
            0 if is_last => self.block.len(),
            // Each frame begins after the header of the previous one, so the iteration terminates.
            next if next >= FRAME_HEADER_BYTES + ADDRESS_BYTES => self.at.checked_add(next)?,
            _ if is_last => self.block.len(),
            _ => return None,
        };
        Some((frame, next))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.fault.is_some() || self.number >= self.count {
            return None;
        }
        let Some((frame, next)) = self.frame() else {
            let left = self.count - self.number;
            self.fault = Some(BlockFault::Frame { number: self.number, left });
            return None;
        };
        self.at = next;
        self.number += 1;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block in the kernel's layout.
    fn block(frames: &[(&[u8], u32, u8)]) -> Vec<u8> {
        let mut block = vec![0; BLOCK_HEADER_BYTES];
        block[12..16].copy_from_slice(&(frames.len() as u32).to_ne_bytes());
        block[16..20].copy_from_slice(&(BLOCK_HEADER_BYTES as u32).to_ne_bytes());
        for (number, (data, status, packet_type)) in frames.iter().enumerate() {
            let total = (82 + data.len()).next_multiple_of(16);
            let next = if number + 1 == frames.len() { 0 } else { total as u32 };
            let mut frame = Vec::new();
            let words = [next, 7, 500 + number as u32, data.len() as u32, 1000, *status];
            words.iter().for_each(|word| frame.extend(word.to_ne_bytes()));
            frame.extend(82u16.to_ne_bytes());
            frame.extend(96u16.to_ne_bytes());
            frame.extend([0u32.to_ne_bytes(), 0x2005u32.to_ne_bytes()].concat());
            frame.extend(0x88a8u16.to_ne_bytes());
            frame.resize(FRAME_HEADER_BYTES + 10, 0);
            frame.push(*packet_type);
            frame.resize(82, 0);
            frame.extend_from_slice(data);
            frame.resize(total, 0);
            block.extend(frame);
        }
        block
    }

    #[test]
    fn frames_are_found_with_stamp_lengths_type_and_tag() {
        let all = [
            (&b"abc"[..], 1, 0),
            (b"", 1 | STATUS_VLAN, 4),
            (b"longer than the first", 1 | 0x50, 2),
        ];
        let block = block(&all);
        let mut frames = frames(&block);
        let found: Vec<_> = frames.by_ref().collect();
        assert_eq!(frames.fault(), None);
        assert_eq!(found.iter().map(|f| f.data).collect::<Vec<_>>(), all.map(|(data, ..)| data));
        assert_eq!(found.iter().map(|f| f.packet_type).collect::<Vec<_>>(), [0, 4, 2]);
        assert_eq!(found[1].utc_ns, 7_000_000_501);
        assert!(found.iter().all(|f| f.original_bytes == 1000));
        let tags: Vec<_> = found.iter().map(|f| f.vlan).collect();
        assert_eq!(tags, [None, Some((0x8100, 0x2005)), Some((0x88a8, 0x2005))]);
    }

    #[test]
    fn a_frame_outside_of_the_block_ends_it_and_says_how_many_are_lost() {
        let whole = block(&[(b"abc", 1, 0), (b"defg", 1, 0), (b"h", 1, 0)]);
        for (at, value) in [(48, 16u32), (48, 0), (48, u32::MAX), (48 + 12, 1 << 20), (16, 1 << 30)]
        {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            let mut frames = frames(&bytes);
            let count = frames.by_ref().count() as u32;
            let Some(BlockFault::Frame { number, left }) = frames.fault() else {
                panic!("{at} {value}: {:?}", frames.fault());
            };
            assert_eq!((number, left), (count, 3 - count), "{at} {value}");
        }
        // A truncated block yields the remaining frames unchanged.
        for end in 0..whole.len() {
            let mut cut = frames(&whole[..end]);
            let found: Vec<_> = cut.by_ref().collect();
            assert_eq!(found, frames(&whole).take(found.len()).collect::<Vec<_>>());
            assert_eq!(cut.fault().is_none(), found.len() == 3, "{end}");
        }
    }
}
