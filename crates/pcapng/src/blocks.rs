// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all blocks of pcapng share: byte order, frame, options.

/// Begins a section; reads the same in both byte orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
/// The packet block that enhanced packet blocks replaced.
pub(crate) const OLD_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const NAMES: u32 = 4;
pub(crate) const STATISTICS: u32 = 5;
pub(crate) const PACKET: u32 = 6;
pub(crate) const JOURNAL: u32 = 9;
pub(crate) const SECRETS: u32 = 10;
pub(crate) const CUSTOM: u32 = 0xbad;
pub(crate) const CUSTOM_NO_COPY: u32 = 0x4000_0bad;

/// In the byte order of its section.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type, length, length again.
pub(crate) const FRAME_BYTES: usize = 12;

/// Byte order of a section or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(*raw),
            Self::Big => u16::from_be_bytes(*raw),
        })
    }

    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(*raw),
            Self::Big => u32::from_be_bytes(*raw),
        })
    }

    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = bytes.get(at..)?.first_chunk::<8>()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(*raw),
            Self::Big => u64::from_be_bytes(*raw),
        })
    }

    /// Time stamps and counters of statistics are split in two words, high first.
    pub(crate) fn split_u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        Some(u64::from(self.u32(bytes, at)?) << 32 | u64::from(self.u32(bytes, at + 4)?))
    }
}

/// A block whose frame is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) kind: u32,
    /// The order it was read in: its own for a section, else the one given.
    pub(crate) order: Order,
    /// Between the two lengths, without them.
    pub(crate) body: &'a [u8],
    /// Frame included.
    pub(crate) total_bytes: usize,
}

/// Why no block can be read somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The input ends this number of bytes too early; unknown if even type and length are cut.
    Ends(Option<u64>),
    /// A rule of the frame is broken.
    Rule(&'static str),
}

impl<'a> Block<'a> {
    /// The block at `at`.
    pub(crate) fn at(bytes: &'a [u8], at: usize, order: Order) -> Result<Self, Fault> {
        let rest = bytes.get(at..).unwrap_or(&[]);
        let ends = Fault::Ends(None);
        let kind = order.u32(rest, 0).ok_or(ends)?;
        let order = if kind == SECTION { section_order(rest)? } else { order };
        let length = order.u32(rest, 4).ok_or(ends)? as usize;
        let least = if kind == SECTION { 28 } else { FRAME_BYTES };
        if length < least || !length.is_multiple_of(4) {
            return Err(Fault::Rule(
                "the length of a block is a multiple of 4, its frame included",
            ));
        }
        let Some(block) = rest.get(..length) else {
            return Err(Fault::Ends(Some((length - rest.len()) as u64)));
        };
        if order.u32(block, length - 4) != Some(length as u32) {
            return Err(Fault::Rule("a block ends with its length"));
        }
        Ok(Self { kind, order, body: &block[8..length - 4], total_bytes: length })
    }

    /// Whether the type is one that the specification gives.
    fn is_known(&self) -> bool {
        matches!(
            self.kind,
            SECTION | CUSTOM | CUSTOM_NO_COPY | INTERFACE..=PACKET | JOURNAL | SECRETS
        )
    }
}

/// The byte order of the section that begins `rest`.
pub(crate) fn section_order(rest: &[u8]) -> Result<Order, Fault> {
    match Order::Little.u32(rest, 8) {
        None => Err(Fault::Ends(None)),
        Some(BYTE_ORDER_MAGIC) => Ok(Order::Little),
        Some(magic) if magic.swap_bytes() == BYTE_ORDER_MAGIC => Ok(Order::Big),
        Some(_) => Err(Fault::Rule("a section begins with the byte order magic")),
    }
}

/// The next position after `from` of a complete block of a known type, or the end of `bytes`.
///
/// Cost: linear.
pub(crate) fn resync(bytes: &[u8], from: usize, order: Order) -> usize {
    let whole = |&at: &usize| Block::at(bytes, at, order).is_ok_and(|block| block.is_known());
    (from + 1..bytes.len().saturating_sub(FRAME_BYTES - 1)).find(whole).unwrap_or(bytes.len())
}

/// The options at the end of a block.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    order: Order,
    bytes: &'a [u8],
    broken: bool,
}

impl<'a> Options<'a> {
    /// Those that begin at `at` of the body of a block.
    pub(crate) fn new(order: Order, body: &'a [u8], at: usize) -> Self {
        Self { order, bytes: body.get(at..).unwrap_or(&[]), broken: false }
    }

    /// Whether an option was longer than what is left, as far as was iterated.
    pub(crate) fn broken(&self) -> bool {
        self.broken
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (code, length) = (self.order.u16(self.bytes, 0)?, self.order.u16(self.bytes, 2)?);
        if code == 0 {
            self.bytes = &[];
            return None;
        }
        let length = usize::from(length);
        let Some(value) = self.bytes.get(4..4 + length) else {
            self.broken = true;
            self.bytes = &[];
            return None;
        };
        self.bytes = self.bytes.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((code, value))
    }
}

/// The text of an option; some writers end it with a zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_the_end_mark_and_a_long_one_is_broken() {
        let bytes = [1, 0, 1, 0, b'x', 0, 0, 0, 2, 0, 4, 0, 1, 2, 3, 4, 0, 0, 0, 0, 9, 0, 0, 0];
        let all: Vec<_> = Options::new(Order::Little, &bytes, 0).collect();
        assert_eq!(all, [(1, &b"x"[..]), (2, &[1, 2, 3, 4])]);
        let mut cut = Options::new(Order::Little, &bytes[..14], 0);
        assert_eq!(cut.by_ref().count(), 1);
        assert!(cut.broken());
    }

    #[test]
    fn the_next_whole_block_is_found_at_any_byte() {
        let mut bytes = vec![0xee; 5];
        let block = [5u32, 24, 0, 0, 0, 24];
        block.iter().for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        assert_eq!(resync(&bytes, 0, Order::Big), 5);
        assert_eq!(resync(&bytes, 0, Order::Little), bytes.len());
        assert_eq!(resync(&bytes[..28], 0, Order::Big), 28, "a cut block is none");
    }
}
