// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small area, of programs without an operating system: read from memory as it was at one
//! moment. Normative text: `spec/small-area.md`.
//!
//! ```text
//! find ─▶ SmallArea::read ─▶ schemas(), ring(core) ─▶ SmallPacket: where its records are
//! ```
//!
//! The bytes are a private copy, so they may be referred to; nothing that they say is believed
//! before it was checked against their length.

pub mod abi;
#[cfg(feature = "reference-writer")]
pub mod reference;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::{Found, LossCounts, RingMode};
use abi::{header, packet, ring, schema};

/// Why a place in memory is no small area that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SmallAreaError {
    /// The magic words are not there, or not all of the header.
    NotAnArea,
    /// Another version.
    Version {
        /// The area's.
        found: u32,
    },
    /// A word of the header that cannot be true.
    Word {
        /// Its name in the specification.
        name: &'static str,
        /// What it is.
        value: u64,
    },
    /// The memory ends before the area does.
    Cut {
        /// What the area has.
        area_bytes: u64,
        /// What is there of it.
        there: u64,
    },
}

impl fmt::Display for SmallAreaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SmallAreaError::NotAnArea => write!(f, "no area of a machine without an OS"),
            SmallAreaError::Version { found } => write!(
                f,
                "the small area has version {found}, known is {}: a newer lat may read it",
                abi::ABI_VERSION
            ),
            SmallAreaError::Word { name, value } => {
                write!(f, "the small area is damaged: {name}={value}")
            }
            SmallAreaError::Cut { area_bytes, there } => write!(
                f,
                "the small area has {area_bytes} bytes, of which {there} are in the image: dump more memory"
            ),
        }
    }
}

impl core::error::Error for SmallAreaError {}

/// Places that begin like a small area, at multiples of 8 bytes, in both byte orders: both magic words,
/// and the byte order mark, because the code that makes areas may hold the words side by side.
/// Cost: one comparison per 8 bytes.
pub fn find(bytes: &[u8]) -> impl Iterator<Item = Found> + '_ {
    let pairs = [false, true].map(|swapped| {
        let bytes = |word: u64| if swapped { word.swap_bytes() } else { word }.to_ne_bytes();
        (swapped, bytes(abi::MAGIC), bytes(!abi::MAGIC))
    });
    bytes.chunks_exact(8).enumerate().filter_map(move |(index, word)| {
        let (swapped, _, second) = pairs.iter().find(|(_, first, _)| word == first)?;
        let at = index * 8;
        let next = bytes.get(at + 8..at + 16)?;
        let words = Words { bytes: bytes.get(at..)?, swapped: *swapped };
        let is_marked = words.u32(header::BYTE_ORDER) == Some(abi::BYTE_ORDER_MARK);
        (next == second && is_marked).then_some(Found { offset: at as u64, swapped: *swapped })
    })
}

/// The header of a small area, checked: its words agree with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallHeader {
    /// Its words are of the other byte order than this machine's.
    pub swapped: bool,
    /// Bytes of the whole area.
    pub area_bytes: u64,
    /// Where the program had it.
    pub address: u64,
    /// How many cores.
    pub core_count: u16,
    /// How many schemas.
    pub schema_count: u16,
    /// Bytes of a packet.
    pub packet_bytes: u32,
    /// Packets of a ring.
    pub packets_per_ring: u32,
    /// What happens when all packets are full.
    pub mode: RingMode,
    /// Ticks per second; 0 if the program does not know.
    pub clock_hz: u64,
    /// Bits of the clock in a record: 32 or 48.
    pub time_bits: u32,
    /// How many areas the memory has had that were recognised.
    pub generation: u32,
}

/// A small area whose header was checked: everything that it says lies within the bytes.
#[derive(Debug, Clone, Copy)]
pub struct SmallArea<'a> {
    bytes: &'a [u8],
    /// Its header.
    pub header: SmallHeader,
}

/// A schema whose events are in the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallSchema {
    /// Of its canonical text.
    pub hash: u64,
    /// Where the text lies in the program's memory.
    pub text_address: u64,
    /// And how long it is.
    pub text_bytes: u32,
    /// Id of its first event.
    pub base_id: u32,
    /// How many it has.
    pub event_count: u32,
}

/// A packet of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallPacket {
    /// Its number, from 0.
    pub sequence: u64,
    /// Clock when it was opened.
    pub begin: u64,
    /// What was lost in the ring until it was closed.
    pub lost: LossCounts,
    /// It was not closed yet.
    pub is_open: bool,
    /// Where its records lie in the bytes of the area.
    pub records: Range<usize>,
}

/// A ring as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallRing {
    /// In the order of their numbers.
    pub packets: Vec<SmallPacket>,
    /// All losses by cause, modulo 2^32 each; `contended` are those inside another record.
    pub lost: LossCounts,
    /// Packets below this were taken by a reader in the program.
    pub consumed: u32,
    /// How often a packet was opened at an earlier time than the one before.
    pub clock_backward: u32,
    /// Slots whose packet cannot be read, and why.
    pub damages: Vec<(u32, &'static str)>,
}

impl SmallHeader {
    /// Reads the header at the start of `bytes`; the area after it is not read.
    ///
    /// Errors: what does not fit, by its name.
    pub fn read(bytes: &[u8], swapped: bool) -> Result<SmallHeader, SmallAreaError> {
        let words = Words { bytes, swapped };
        let no_area = || SmallAreaError::NotAnArea;
        let u32_at = |offset: u32| words.u32(offset).ok_or_else(no_area);
        let u64_at = |offset: u32| words.u64(offset).ok_or_else(no_area);
        let u16_at = |offset: u32| words.u16(offset).ok_or_else(no_area);
        if bytes.len() < abi::HEADER_BYTES as usize
            || u64_at(header::MAGIC)? != abi::MAGIC
            || u64_at(header::MAGIC_COMPLEMENT)? != !abi::MAGIC
        {
            return Err(SmallAreaError::NotAnArea);
        }
        let found = u32_at(header::ABI_VERSION)?;
        if found != abi::ABI_VERSION {
            return Err(SmallAreaError::Version { found });
        }
        let wrong = |name, value: u64| Err(SmallAreaError::Word { name, value });
        for (name, offset, right) in [
            ("byte_order", header::BYTE_ORDER, abi::BYTE_ORDER_MARK),
            ("header_bytes", header::HEADER_BYTES, abi::HEADER_BYTES),
            ("ring_offset", header::RING_OFFSET, abi::HEADER_BYTES),
            ("state", header::STATE, abi::STATE_READY),
        ] {
            let value = u32_at(offset)?;
            if value != right {
                return wrong(name, value.into());
            }
        }
        let packet_bytes = u32_at(header::PACKET_BYTES)?;
        if !packet_bytes.is_power_of_two() || !abi::PACKET_BYTES_RANGE.contains(&packet_bytes) {
            return wrong("packet_bytes", packet_bytes.into());
        }
        let packets_per_ring = u32_at(header::PACKETS_PER_RING)?;
        if !packets_per_ring.is_power_of_two() || !abi::PACKETS_RANGE.contains(&packets_per_ring) {
            return wrong("packets_per_ring", packets_per_ring.into());
        }
        let core_count = u16_at(header::CORE_COUNT)?;
        if core_count == 0 || core_count > abi::CORES_MAX {
            return wrong("core_count", core_count.into());
        }
        // Products of a 16-bit and two 17-bit numbers: no overflow of 64 bits.
        let stride =
            u64::from(packet_bytes) * u64::from(packets_per_ring) + u64::from(abi::CONTROL_BYTES);
        let ring_stride = u32_at(header::RING_STRIDE)?;
        if u64::from(ring_stride) != stride {
            return wrong("ring_stride", ring_stride.into());
        }
        let schema_offset = u32_at(header::SCHEMA_OFFSET)?;
        let rings_end = u64::from(abi::HEADER_BYTES) + stride * u64::from(core_count);
        if u64::from(schema_offset) != rings_end {
            return wrong("schema_offset", schema_offset.into());
        }
        let schema_count = u16_at(header::SCHEMA_COUNT)?;
        let area_bytes = u32_at(header::AREA_BYTES)?;
        let all = rings_end + u64::from(schema_count) * u64::from(abi::SCHEMA_BYTES);
        if u64::from(area_bytes) != all || all > abi::AREA_BYTES_MAX {
            return wrong("area_bytes", area_bytes.into());
        }
        let mode = u32_at(header::MODE)?;
        if mode > abi::MODE_OVERWRITE {
            return wrong("mode", mode.into());
        }
        let clock_bits = u32_at(header::CLOCK_BITS)?;
        let time_bits = match clock_bits {
            32 => 32,
            64 => crate::abi::TIME_BITS,
            _ => return wrong("clock_bits", clock_bits.into()),
        };
        Ok(SmallHeader {
            swapped,
            area_bytes: all,
            address: u64_at(header::ADDRESS)?,
            core_count,
            schema_count,
            packet_bytes,
            packets_per_ring,
            mode: RingMode::from_word(mode),
            clock_hz: u64_at(header::CLOCK_HZ)?,
            time_bits,
            generation: u32_at(header::GENERATION)?,
        })
    }

    /// Schemas by their descriptors, which are consecutive. Ids are unchecked: callers must check
    /// that they are free.
    pub fn schemas(&self, descriptors: &[u8]) -> Vec<SmallSchema> {
        let all = descriptors.chunks_exact(abi::SCHEMA_BYTES as usize);
        let one = |bytes| {
            let words = Words { bytes, swapped: self.swapped };
            Some(SmallSchema {
                hash: words.u64(schema::HASH)?,
                text_address: words.u64(schema::TEXT)?,
                text_bytes: words.u32(schema::TEXT_BYTES)?,
                base_id: words.u16(schema::BASE_ID)?.into(),
                event_count: words.u16(schema::EVENT_COUNT)?.into(),
            })
        };
        all.take(self.schema_count.into()).filter_map(one).collect()
    }
}

/// The header of a packet as it is in memory, its magic checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallPacketHeader {
    /// Its number, from 0.
    pub sequence: u64,
    /// Whose it is.
    pub core: u16,
    /// Bytes with this header; 0 while it is open.
    pub content_bytes: u16,
    /// Clock when it was opened.
    pub begin: u64,
    /// Lost so far: no free packet, modulo 2^32.
    pub lost_full: u32,
    /// Longer than a packet, modulo 2^16.
    pub lost_too_big: u16,
    /// Inside another record, modulo 2^16.
    pub lost_nested: u16,
}

impl SmallPacketHeader {
    /// Reads the header that `bytes` begin with; `None` if they are too few or have no magic.
    pub fn read(bytes: &[u8], swapped: bool) -> Option<SmallPacketHeader> {
        let words = Words { bytes, swapped };
        if bytes.len() < abi::PACKET_HEADER_BYTES as usize
            || words.u32(packet::MAGIC)? != abi::PACKET_MAGIC
        {
            return None;
        }
        let low = words.u32(packet::SEQUENCE)?;
        let high = words.u16(packet::SEQUENCE_HIGH)?;
        Some(SmallPacketHeader {
            sequence: u64::from(high) << 32 | u64::from(low),
            core: words.u16(packet::CORE)?,
            content_bytes: words.u16(packet::CONTENT_BYTES)?,
            begin: words.u64(packet::BEGIN)?,
            lost_full: words.u32(packet::LOST_FULL)?,
            lost_too_big: words.u16(packet::LOST_TOO_BIG)?,
            lost_nested: words.u16(packet::LOST_NESTED)?,
        })
    }

    /// Whether a content of this number of bytes is valid for a packet of `packet_bytes`.
    ///
    /// Errors: why not.
    pub fn check_content(content: u32, packet_bytes: u32) -> Result<(), &'static str> {
        if !(abi::PACKET_HEADER_BYTES..=packet_bytes).contains(&content) {
            return Err("its content ends before or behind it");
        }
        if !content.is_multiple_of(8) {
            return Err("its content ends within a word");
        }
        Ok(())
    }
}

impl<'a> SmallArea<'a> {
    /// Reads the header of the area that `bytes` begin with.
    ///
    /// Errors: what does not fit, by its name.
    pub fn read(bytes: &'a [u8], swapped: bool) -> Result<SmallArea<'a>, SmallAreaError> {
        let header = SmallHeader::read(bytes, swapped)?;
        let (area_bytes, there) = (header.area_bytes, bytes.len() as u64);
        if there < area_bytes {
            return Err(SmallAreaError::Cut { area_bytes, there });
        }
        Ok(SmallArea { bytes, header })
    }

    /// Bytes that it takes.
    pub fn area_bytes(&self) -> usize {
        // It was compared with the bytes that are there.
        self.header.area_bytes as usize
    }

    /// Its bytes, which the ranges of packets refer to.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn words(&self) -> Words<'a> {
        Words { bytes: self.bytes, swapped: self.header.swapped }
    }

    /// Offset of the control block of a core; after the last core, of the schemas.
    fn ring_at(&self, core: u16) -> usize {
        let packets = self.header.packet_bytes as usize * self.header.packets_per_ring as usize;
        let stride = packets + abi::CONTROL_BYTES as usize;
        abi::HEADER_BYTES as usize + usize::from(core) * stride
    }

    /// Its schemas: [`SmallHeader::schemas`].
    pub fn schemas(&self) -> Vec<SmallSchema> {
        let descriptors = self.bytes.get(self.ring_at(self.header.core_count)..);
        self.header.schemas(descriptors.unwrap_or_default())
    }

    /// The ring of a core; `None` if it has none.
    /// Cost: a look at each packet's header.
    pub fn ring(&self, core: u16) -> Option<SmallRing> {
        if core >= self.header.core_count {
            return None;
        }
        let at = self.ring_at(core);
        let words = self.words().from(at)?;
        let lost = LossCounts {
            full: words.u32(ring::LOST_FULL)?.into(),
            too_big: words.u32(ring::LOST_TOO_BIG)?.into(),
            contended: words.u32(ring::LOST_NESTED)?.into(),
            no_ring: 0,
        };
        let cursor = words.u32(ring::CURSOR)?;
        let mut found = SmallRing {
            packets: Vec::new(),
            lost,
            consumed: words.u32(ring::CONSUMED)?,
            clock_backward: words.u32(ring::CLOCK_BACKWARD)?,
            damages: Vec::new(),
        };
        let packets = self.header.packet_bytes as usize * self.header.packets_per_ring as usize;
        let data_end = abi::CONTROL_BYTES as usize + packets;
        // 0: nothing was recorded. The cursor is after its packet's header, so never at its start.
        let open = (cursor as usize)
            .checked_sub(abi::CONTROL_BYTES as usize + 1)
            .map(|before| (before / self.header.packet_bytes as usize) as u32);
        if cursor as usize > data_end || !cursor.is_multiple_of(8) {
            found.damages.push((0, "the cursor is not in the ring"));
        }
        for slot in 0..self.header.packets_per_ring {
            match self.packet(core, slot, (open == Some(slot)).then_some(cursor)) {
                Ok(Some(packet)) => found.packets.push(packet),
                Ok(None) => {}
                Err(reason) => found.damages.push((slot, reason)),
            }
        }
        found.packets.sort_by_key(|packet| packet.sequence);
        complete_losses(&mut found);
        Some(found)
    }

    /// The packet of a slot, if there is one. `cursor` is where the ring is written if that is here.
    fn packet(
        &self,
        core: u16,
        slot: u32,
        cursor: Option<u32>,
    ) -> Result<Option<SmallPacket>, &'static str> {
        let packet_bytes = self.header.packet_bytes;
        let in_ring = abi::CONTROL_BYTES as usize + slot as usize * packet_bytes as usize;
        let at = self.ring_at(core) + in_ring;
        // Of an area that is whole each packet is within.
        let words = self.words().from(at).ok_or("it is not in the memory")?;
        let Some(found) = SmallPacketHeader::read(words.bytes, words.swapped) else {
            return Ok(None);
        };
        if found.sequence as u32 & (self.header.packets_per_ring - 1) != slot {
            return Err("its sequence belongs elsewhere");
        }
        if found.core != core {
            return Err("it is of another core");
        }
        let is_open = found.content_bytes == 0;
        let content = match cursor {
            _ if !is_open => u32::from(found.content_bytes),
            // It was being opened when the program ended.
            None => return Ok(None),
            Some(cursor) => cursor - in_ring as u32,
        };
        SmallPacketHeader::check_content(content, packet_bytes)?;
        let records = at + abi::PACKET_HEADER_BYTES as usize..at + content as usize;
        Ok(Some(SmallPacket {
            sequence: found.sequence,
            begin: found.begin,
            lost: LossCounts {
                full: found.lost_full.into(),
                too_big: found.lost_too_big.into(),
                contended: found.lost_nested.into(),
                no_ring: 0,
            },
            is_open,
            records,
        }))
    }
}

/// Packets have the low 16 bits of two counts: from the last to the first, each is the greatest
/// value that does not exceed the known count after it.
fn complete_losses(ring: &mut SmallRing) {
    let mut later = ring.lost;
    let whole = |low: u64, later: u64| {
        let same = later & !0xffff | low;
        if same <= later { same } else { same.saturating_sub(0x1_0000) }
    };
    for packet in ring.packets.iter_mut().rev() {
        packet.lost.full = packet.lost.full.min(later.full);
        packet.lost.too_big = whole(packet.lost.too_big, later.too_big).min(later.too_big);
        packet.lost.contended = whole(packet.lost.contended, later.contended).min(later.contended);
        later = packet.lost;
    }
}

/// Words of the program's byte order.
#[derive(Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    swapped: bool,
}

impl<'a> Words<'a> {
    fn from(self, at: usize) -> Option<Words<'a>> {
        Some(Words { bytes: self.bytes.get(at..)?, ..self })
    }

    fn word<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let at = offset as usize;
        let mut word: [u8; N] = self.bytes.get(at..at + N)?.try_into().ok()?;
        if self.swapped {
            word.reverse();
        }
        Some(word)
    }

    fn u16(&self, offset: u32) -> Option<u16> {
        self.word(offset).map(u16::from_ne_bytes)
    }

    fn u32(&self, offset: u32) -> Option<u32> {
        self.word(offset).map(u32::from_ne_bytes)
    }

    fn u64(&self, offset: u32) -> Option<u64> {
        self.word(offset).map(u64::from_ne_bytes)
    }
}
