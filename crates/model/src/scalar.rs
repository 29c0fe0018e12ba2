// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers of a fixed width at any bit of a packet.
//!
//! The order of bits follows that of bytes ([CTF 1.8.3 §4.1.5]): little-endian
//! fields fill a byte from its low end, big-endian ones from its high end, and
//! both may cross bytes.

/// Which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// Low byte first.
    #[default]
    Little,
    /// High byte first.
    Big,
}

/// What the bits of a scalar mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    /// Yes if any bit is set.
    Bool,
    /// Integer ≥ 0, or bare bits.
    Unsigned,
    /// Integer in two's complement.
    Signed,
    /// IEEE 754 binary32 or binary64, by width.
    Real,
}

/// How a number of fixed width lies in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    /// Width, 1 to 64.
    pub bits: u32,
    /// Alignment from the start of the packet in bits, a power of two.
    pub align_bits: u32,
    /// Order of bytes, and of bits with them.
    pub order: ByteOrder,
    /// Whether the bits are stored the other way round than the order of bytes
    /// suggests ([CTF2 bit-order]).
    pub reversed: bool,
    /// The meaning.
    pub kind: ScalarKind,
}

impl Scalar {
    /// Distance in bits from one array element to the next.
    #[must_use]
    pub fn stride_bits(&self) -> u64 {
        u64::from(self.bits).next_multiple_of(u64::from(self.align_bits.max(1)))
    }

    /// The bits at `offset_bits` of `bytes` as an unsigned number; `None` if they
    /// reach beyond the end.
    #[inline]
    #[must_use]
    pub fn raw(&self, bytes: &[u8], offset_bits: u64) -> Option<u64> {
        let value = read_bits(bytes, offset_bits, self.bits, self.order)?;
        Some(if self.reversed {
            value.reverse_bits() >> (64 - self.bits.clamp(1, 64))
        } else {
            value
        })
    }
}

/// Reads `width` (1 to 64) bits at bit `offset_bits` of `bytes`.
///
/// Errors: `None` if the bits extend beyond the end, or the width is not that of a scalar.
#[inline]
#[must_use]
pub fn read_bits(bytes: &[u8], offset_bits: u64, width: u32, order: ByteOrder) -> Option<u64> {
    if width == 0 || width > 64 {
        return None;
    }
    let first = usize::try_from(offset_bits / 8).ok()?;
    let shift = (offset_bits % 8) as u32;
    let tail = bytes.get(first..)?;
    if shift + width <= 64
        && let Some(word) = tail.first_chunk::<8>()
    {
        // Almost every number, but for those at the very end: in one machine word.
        return Some(match order {
            ByteOrder::Little => u64::from_le_bytes(*word) >> shift & u64::MAX >> (64 - width),
            ByteOrder::Big => u64::from_be_bytes(*word) << shift >> (64 - width),
        });
    }
    read_bytes(tail, shift, width, order)
}

/// [`read_bits`] of any number, byte by byte.
fn read_bytes(bytes: &[u8], shift: u32, width: u32, order: ByteOrder) -> Option<u64> {
    // At most 9 bytes: 7 bits of shift and 64 of value.
    let span = ((shift + width).div_ceil(8)) as usize;
    let window = bytes.get(..span)?;
    let mask = u64::MAX >> (64 - width);
    let value = match order {
        ByteOrder::Little => {
            let all = window.iter().rev().fold(0u128, |sum, &byte| sum << 8 | u128::from(byte));
            all >> shift
        }
        ByteOrder::Big => {
            let all = window.iter().fold(0u128, |sum, &byte| sum << 8 | u128::from(byte));
            all >> (span as u32 * 8 - shift - width)
        }
    };
    Some(value as u64 & mask)
}

/// Extends the sign of a number of `width` (1 to 64) bits.
#[inline]
pub(crate) fn sign_extend(value: u64, width: u32) -> i64 {
    let unused = 64 - width.clamp(1, 64);
    (value << unused) as i64 >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_bytes_read_in_either_order() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(read_bits(&bytes, 0, 32, ByteOrder::Little), Some(0x0403_0201));
        assert_eq!(read_bits(&bytes, 0, 32, ByteOrder::Big), Some(0x0102_0304));
        assert_eq!(read_bits(&bytes, 8, 16, ByteOrder::Big), Some(0x0203));
        assert_eq!(read_bits(&bytes, 0, 64, ByteOrder::Big), Some(0x0102_0304_0506_0708));
    }

    #[test]
    fn bits_fill_bytes_from_the_end_their_order_says() {
        let bytes = [0b1010_0101, 0b1100_0011];
        assert_eq!(read_bits(&bytes, 0, 4, ByteOrder::Little), Some(0b0101));
        assert_eq!(read_bits(&bytes, 0, 4, ByteOrder::Big), Some(0b1010));
        assert_eq!(read_bits(&bytes, 4, 8, ByteOrder::Little), Some(0b0011_1010));
        assert_eq!(read_bits(&bytes, 4, 8, ByteOrder::Big), Some(0b0101_1100));
    }

    #[test]
    fn sixty_four_bits_may_span_nine_bytes() {
        let bytes = [0xff, 0, 0, 0, 0, 0, 0, 0, 0x7f];
        assert_eq!(read_bits(&bytes, 7, 64, ByteOrder::Little), Some(0xfe00_0000_0000_0001));
        assert_eq!(read_bits(&bytes, 7, 64, ByteOrder::Big), Some(0x8000_0000_0000_003f));
    }

    #[test]
    fn a_word_at_a_time_reads_what_bytes_read() {
        let mut bytes = [0; 24];
        let mut seed = 7u64;
        for _ in 0..50 {
            for byte in &mut bytes {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                *byte = seed as u8;
            }
            for offset in 0..24 * 8 {
                for width in 1..=64 {
                    for order in [ByteOrder::Little, ByteOrder::Big] {
                        let slow =
                            read_bytes(&bytes[offset / 8..], offset as u32 % 8, width, order);
                        assert_eq!(read_bits(&bytes, offset as u64, width, order), slow);
                        assert_eq!(slow.is_some(), offset + width as usize <= bytes.len() * 8);
                    }
                }
            }
        }
    }

    #[test]
    fn beyond_the_end_is_nothing() {
        assert_eq!(read_bits(&[0], 1, 8, ByteOrder::Little), None);
        assert_eq!(read_bits(&[], 0, 1, ByteOrder::Little), None);
        assert_eq!(read_bits(&[0], u64::MAX, 1, ByteOrder::Little), None);
        assert_eq!(read_bits(&[0; 16], 0, 65, ByteOrder::Little), None);
        assert_eq!(read_bits(&[0; 16], 0, 0, ByteOrder::Little), None);
    }

    #[test]
    fn signs_extend_from_any_width() {
        assert_eq!(sign_extend(0b111, 3), -1);
        assert_eq!(sign_extend(0b011, 3), 3);
        assert_eq!(sign_extend(u64::MAX, 64), -1);
        assert_eq!(sign_extend(1, 1), -1);
    }
}
