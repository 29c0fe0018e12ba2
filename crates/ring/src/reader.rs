// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading one ring: the state machine of spec/ring-abi.md §5.
//!
//! ```text
//! consumed            open packet s
//!    ▼                     ▼
//!  [p][p+1][...][s−1][ s ....cursor]      poll() delivers p, p+1, …, s−1, then parts of s
//! ```

use core::fmt;

use crate::abi::{self, packet, ring};
use crate::geometry::{Geometry, RingMode};
use crate::memory::{Load, OutOfArea, RingMemory};
use crate::packet::{LossCounts, PacketHeader};

/// What reading does to the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadPolicy {
    /// The one reader that gives packets back to the writers.
    Consume,
    /// Leaves the ring as it is: a snapshot, beside a recorder or without one.
    Observe,
}

/// Words that no writer following the ABI produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RingDamage {
    /// The cursor is not in the content of a packet.
    Cursor(u64),
    /// The cursor moved backwards: `from` was read before, now `to`.
    Backwards {
        /// Position delivered already.
        from: u64,
        /// Position found now.
        to: u64,
    },
    /// A closed packet's header contradicts its place.
    Header {
        /// The packet.
        sequence: u64,
        /// Its `magic`.
        magic: u32,
        /// Its `sequence`.
        found: u64,
        /// Its `content_bits`.
        content_bits: u64,
    },
    /// The memory ends before the ring does.
    Memory(OutOfArea),
}

impl fmt::Display for RingDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingDamage::Cursor(cursor) => write!(f, "Cannot read ring: cursor={cursor:#x}"),
            RingDamage::Backwards { from, to } => {
                write!(f, "Cannot read ring: cursor went back from-position={from}, to={to}")
            }
            RingDamage::Header { sequence, magic, found, content_bits } => write!(
                f,
                "Cannot read packet: sequence={sequence}, magic={magic:#x}, \
                 header-sequence={found}, content-bits={content_bits}"
            ),
            RingDamage::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RingDamage {}

impl From<OutOfArea> for RingDamage {
    fn from(error: OutOfArea) -> RingDamage {
        RingDamage::Memory(error)
    }
}

/// Records of one packet, copied to the start of the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Sequence number of the packet in the ring.
    pub sequence: u64,
    /// Where in the packet the first copied byte was; [`abi::PACKET_HEADER_BYTES`] unless an
    /// earlier part was delivered already.
    pub from: u64,
    /// Bytes copied: records, a multiple of 8.
    pub bytes: u64,
    /// How many of these bytes, at the end, do not belong to the last record. Below 8.
    pub slack: u64,
    /// The packet is closed: these were its last records, and all of `header` is valid. Else
    /// only what is written on opening is: `timestamp_begin` and `sequence`.
    pub closed: bool,
    /// The packet's header, as found.
    pub header: PacketHeader,
}

/// Outcome of [`RingReader::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Nothing to read now.
    Idle,
    /// Records. May be empty where a packet was delivered while it was open and nothing was
    /// added before it was closed.
    Chunk(Chunk),
    /// Packets were overwritten before they could be read. Their number of events is unknown.
    LostPackets {
        /// The first of them.
        first: u64,
        /// How many.
        count: u64,
        /// A part of the first was delivered before.
        first_in_part: bool,
    },
    /// The ring's words make no sense; it will not be read any further.
    Damaged(RingDamage),
}

/// Reads one ring, packet by packet.
///
/// Context: one thread. Allocates nothing, never blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RingReader {
    geometry: Geometry,
    ring: u32,
    policy: ReadPolicy,
    /// Next packet to deliver.
    sequence: u64,
    /// End of what was delivered of it, from its start; 0 = nothing.
    delivered: u64,
    /// The packet before `sequence` is delivered and not released yet.
    is_held: bool,
    /// What it says of losses.
    held_losses: LossCounts,
    skipped_at_start: u64,
    damage: Option<RingDamage>,
}

/// Where the words of [`RingReader::begin_telling`] are, in the order in which they are stored.
const TOLD: [u64; 5] = [
    ring::TOLD_FULL,
    ring::TOLD_TOO_BIG,
    ring::TOLD_CONTENDED,
    ring::TOLD_NO_RING,
    ring::TOLD_BELOW,
];

/// A cursor taken apart.
#[derive(Clone, Copy)]
struct Cursor {
    position: u64,
    slack: u64,
}

impl Cursor {
    fn split(word: u64) -> Cursor {
        Cursor { position: word & !abi::CURSOR_SLACK_MASK, slack: word & abi::CURSOR_SLACK_MASK }
    }
}

impl RingReader {
    /// Starts reading ring `ring`: with [`ReadPolicy::Consume`] at the first unconsumed packet,
    /// with [`ReadPolicy::Observe`] at the oldest existing one.
    pub fn new<M: RingMemory>(
        memory: &M,
        geometry: Geometry,
        ring: u32,
        policy: ReadPolicy,
        mode: RingMode,
    ) -> Result<RingReader, OutOfArea> {
        let control = geometry.control_offset(ring);
        let cursor = Cursor::split(memory.load(control + ring::CURSOR, Load::Acquire)?);
        let consumed = memory.load(control + ring::CONSUMED, Load::Relaxed)?;
        let open = cursor.position / geometry.packet_bytes();
        let mut reader = RingReader {
            geometry,
            ring,
            policy,
            sequence: 0,
            delivered: 0,
            is_held: false,
            held_losses: LossCounts::default(),
            skipped_at_start: 0,
            damage: None,
        };
        let oldest = reader.oldest(open, consumed, mode);
        match policy {
            // A consumed count beyond the cursor is nonsense; start where there is something.
            ReadPolicy::Consume if consumed <= open + 1 => {
                reader.sequence = consumed.max(oldest);
                reader.skipped_at_start = reader.sequence - consumed;
            }
            _ => reader.sequence = oldest,
        }
        Ok(reader)
    }

    /// Oldest packet whose slot no writer may be touching while `open` is open.
    fn oldest(&self, open: u64, consumed: u64, mode: RingMode) -> u64 {
        let packets = self.geometry.packets_per_ring();
        let untouched = open.saturating_sub(packets - 2);
        // In discard mode the slot of an unconsumed packet is never touched.
        let kept = open.saturating_sub(packets - 1);
        if mode == RingMode::Discard && consumed <= kept { kept } else { untouched }
    }

    /// The ring this reader reads.
    pub fn ring(&self) -> u32 {
        self.ring
    }

    /// Next packet to be delivered.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Packets that were overwritten between the last recording and this one.
    pub fn skipped_at_start(&self) -> u64 {
        self.skipped_at_start
    }

    /// Whether the ring was given up as damaged.
    pub fn damage(&self) -> Option<RingDamage> {
        self.damage
    }

    /// The ring's loss counts now.
    pub fn losses<M: RingMemory>(&self, memory: &M) -> Result<LossCounts, OutOfArea> {
        let control = self.geometry.control_offset(self.ring);
        Ok(LossCounts {
            full: memory.load(control + ring::LOST_FULL, Load::Relaxed)?,
            too_big: memory.load(control + ring::LOST_TOO_BIG, Load::Relaxed)?,
            contended: memory.load(control + ring::LOST_CONTENDED, Load::Relaxed)?,
            no_ring: memory.load(control + ring::LOST_NO_RING, Load::Relaxed)?,
        })
    }

    /// Bytes written since `sequence()`, the lag of the reader.
    pub fn backlog_bytes<M: RingMemory>(&self, memory: &M) -> Result<u64, OutOfArea> {
        let control = self.geometry.control_offset(self.ring);
        let cursor = Cursor::split(memory.load(control + ring::CURSOR, Load::Relaxed)?);
        let read = self.sequence.saturating_mul(self.geometry.packet_bytes());
        Ok(cursor.position.saturating_sub(read.saturating_add(self.delivered)))
    }

    /// Losses reported by the packets before the first one to deliver, for a reader that continues
    /// after another was killed: as that one stored it in the ring. If it did not support that, as
    /// the packet contains it; if the slot of that packet has been reused, its successor's: losses
    /// between the two are then missing. `None` if neither is closed.
    pub fn losses_told<M: RingMemory>(&self, memory: &M) -> Option<LossCounts> {
        if let Some(told) = self.stored_told(memory) {
            return Some(told);
        }
        let control = self.geometry.control_offset(self.ring);
        let cursor = Cursor::split(memory.load(control + ring::CURSOR, Load::Acquire).ok()?);
        let open = cursor.position / self.geometry.packet_bytes();
        [self.sequence.checked_sub(1), Some(self.sequence)].into_iter().flatten().find_map(|at| {
            let mut header = [0; abi::PACKET_HEADER_BYTES as usize];
            memory.copy(self.geometry.packet_offset(self.ring, at), &mut header).ok()?;
            let header = PacketHeader::decode(&header, memory.is_swapped());
            let is_whole = header.magic == abi::PACKET_MAGIC && header.sequence == at && at < open;
            is_whole.then_some(header.lost)
        })
    }

    /// Gives a packet that was delivered back to the writers.
    fn give_back<M: RingMemory>(&mut self, memory: &M) -> Result<(), RingDamage> {
        if core::mem::take(&mut self.is_held) {
            let control = self.geometry.control_offset(self.ring);
            self.store_told(memory, &self.held_losses, self.sequence)?;
            memory.store_release(control + ring::CONSUMED, self.sequence)?; // pair W2
        }
        Ok(())
    }

    /// A reader killed between two of the stores leaves words of the previous packet: its losses
    /// are reported again with that packet, which is not released, and nothing is missing.
    fn store_told<M: RingMemory>(
        &self,
        memory: &M,
        told: &LossCounts,
        below: u64,
    ) -> Result<(), OutOfArea> {
        let control = self.geometry.control_offset(self.ring);
        let words = [told.full, told.too_big, told.contended, told.no_ring, below];
        for (offset, word) in TOLD.into_iter().zip(words) {
            memory.store_release(control + offset, word)?;
        }
        Ok(())
    }

    /// Starts reporting losses: `told` are the losses before the first packet to deliver. A reader
    /// that follows after this one was killed continues from there. Context: before the first
    /// [`RingReader::poll`], by the consuming reader.
    pub fn begin_telling<M: RingMemory>(
        &self,
        memory: &M,
        told: &LossCounts,
    ) -> Result<(), OutOfArea> {
        let control = self.geometry.control_offset(self.ring);
        let consumed = memory.load(control + ring::CONSUMED, Load::Relaxed)?;
        self.store_told(memory, told, consumed)
    }

    /// Losses that readers have reported, as stored in the ring; `None` if a reader without
    /// knowledge of these words has read since.
    fn stored_told<M: RingMemory>(&self, memory: &M) -> Option<LossCounts> {
        let control = self.geometry.control_offset(self.ring);
        let load = |offset| memory.load(control + offset, Load::Acquire).ok();
        let (consumed, below) = (load(ring::CONSUMED)?, load(ring::TOLD_BELOW)?);
        let is_valid = below == consumed || Some(below) == consumed.checked_add(1);
        let told = LossCounts {
            full: load(ring::TOLD_FULL)?,
            too_big: load(ring::TOLD_TOO_BIG)?,
            contended: load(ring::TOLD_CONTENDED)?,
            no_ring: load(ring::TOLD_NO_RING)?,
        };
        is_valid.then_some(told)
    }

    /// Delivers the next closed packet, or with `open_part` the content of the open one so far. The
    /// records are copied to the start of `buffer`, which has at least [`Geometry::packet_bytes`]
    /// bytes. With [`ReadPolicy::Consume`] a closed packet is released by the next call: a reader
    /// killed before it stored the copy leaves the packet to the next reader.
    ///
    /// Ordering: acquires the cursor (pair W1), releases `consumed` (pair W2), and in overwrite
    /// mode reads the cursor again after a fence (pair W3).
    /// Cost: one load when idle, otherwise the copy.
    pub fn poll<M: RingMemory>(
        &mut self,
        memory: &M,
        mode: RingMode,
        open_part: bool,
        buffer: &mut [u8],
    ) -> Poll {
        debug_assert!(buffer.len() as u64 >= self.geometry.packet_bytes(), "buffer:one-packet");
        if let Some(damage) = self.damage {
            return Poll::Damaged(damage);
        }
        match self.try_poll(memory, mode, open_part, buffer) {
            Ok(poll) => poll,
            Err(damage) => {
                self.damage = Some(damage);
                Poll::Damaged(damage)
            }
        }
    }

    fn try_poll<M: RingMemory>(
        &mut self,
        memory: &M,
        mode: RingMode,
        open_part: bool,
        buffer: &mut [u8],
    ) -> Result<Poll, RingDamage> {
        let packet_bytes = self.geometry.packet_bytes();
        let control = self.geometry.control_offset(self.ring);
        self.give_back(memory)?;
        let word = memory.load(control + ring::CURSOR, Load::Acquire)?; // pair W1
        let cursor = Cursor::split(word);
        let delivered_position = self.sequence.saturating_mul(packet_bytes) + self.delivered;
        if cursor.position == 0 && delivered_position == 0 {
            return Ok(Poll::Idle);
        }
        let open = cursor.position / packet_bytes;
        let content = cursor.position % packet_bytes;
        if content < abi::PACKET_HEADER_BYTES + cursor.slack
            || content > packet_bytes - abi::PACKET_TAIL_BYTES
        {
            return Err(RingDamage::Cursor(word));
        }
        // All of packet `open` may have been delivered; then `sequence` is still `open`.
        if cursor.position < delivered_position {
            return Err(RingDamage::Backwards { from: delivered_position, to: cursor.position });
        }
        if let Some(lost) = self.skip_overwritten(memory, open, mode)? {
            return Ok(lost);
        }
        let sequence = self.sequence;
        let closed = sequence < open;
        if !closed && (!open_part || content == self.delivered) {
            return Ok(Poll::Idle);
        }
        let packet_offset = self.geometry.packet_offset(self.ring, sequence);
        let mut header = [0; abi::PACKET_HEADER_BYTES as usize];
        memory.copy(packet_offset, &mut header)?;
        let header = PacketHeader::decode(&header, memory.is_swapped());
        let from = self.delivered.max(abi::PACKET_HEADER_BYTES);
        let (content_bytes, plausible) = if closed {
            self.closed_content(&header, from)
        } else {
            (content - cursor.slack, true)
        };
        let to = content_bytes.next_multiple_of(8);
        let bytes = to - from;
        memory.copy(packet_offset + from, &mut buffer[..bytes as usize])?;
        // The copy counts only if its slot was not reused meanwhile.
        let word = if mode == RingMode::Overwrite || self.policy == ReadPolicy::Observe {
            memory.fence_acquire(); // pair W3
            memory.load(control + ring::CURSOR, Load::Relaxed)?
        } else {
            word
        };
        let open_now = Cursor::split(word).position / packet_bytes;
        if let Some(lost) = self.skip_overwritten(memory, open_now, mode)? {
            return Ok(lost);
        }
        if !plausible {
            return Err(RingDamage::Header {
                sequence,
                magic: header.magic,
                found: header.sequence,
                content_bits: header.content_bits,
            });
        }
        if closed {
            self.sequence = sequence + 1;
            self.delivered = 0;
            self.is_held = self.policy == ReadPolicy::Consume;
            self.held_losses = header.lost;
        } else {
            self.delivered = to;
        }
        let slack = to - content_bytes;
        Ok(Poll::Chunk(Chunk { sequence, from, bytes, slack, closed, header }))
    }

    /// Exact end of a closed packet's content, and whether its header is believable. The end
    /// lies between `from` and the packet's end in any case.
    fn closed_content(&self, header: &PacketHeader, from: u64) -> (u64, bool) {
        let bytes = header.content_bits / 8;
        let plausible = header.magic == abi::PACKET_MAGIC
            && header.sequence == self.sequence
            && header.content_bits.is_multiple_of(8)
            && bytes.checked_next_multiple_of(8).is_some_and(|end| {
                end >= from && end <= self.geometry.packet_bytes() - abi::PACKET_TAIL_BYTES
            });
        if plausible { (bytes, true) } else { (from, false) }
    }

    /// Moves past packets that were overwritten, or may have been while they were copied.
    fn skip_overwritten<M: RingMemory>(
        &mut self,
        memory: &M,
        open: u64,
        mode: RingMode,
    ) -> Result<Option<Poll>, RingDamage> {
        // Only this reader moves `consumed` when it consumes, and to `sequence` at most.
        let consumed = match self.policy {
            ReadPolicy::Consume => self.sequence,
            ReadPolicy::Observe => {
                let control = self.geometry.control_offset(self.ring);
                memory.load(control + ring::CONSUMED, Load::Acquire)?
            }
        };
        let oldest = self.oldest(open, consumed, mode);
        if self.sequence >= oldest {
            return Ok(None);
        }
        let lost = Poll::LostPackets {
            first: self.sequence,
            count: oldest - self.sequence,
            first_in_part: self.delivered != 0,
        };
        self.sequence = oldest;
        self.delivered = 0;
        Ok(Some(lost))
    }
}

const _: () = assert!(packet::CONTENT_BITS.is_multiple_of(8), "closing words are whole words");
