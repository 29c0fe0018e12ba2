// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads numbers and texts from bytes in either byte order.

use lateralis_model::ByteOrder;

/// Reads bytes from start to end, never beyond the end.
#[derive(Debug, Clone, Copy)]
pub struct Wire<'a> {
    bytes: &'a [u8],
    at: usize,
    order: ByteOrder,
}

impl<'a> Wire<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, at: 0, order }
    }

    /// Starts at byte `at`, or at the end if there are fewer bytes.
    pub fn at(bytes: &'a [u8], at: u64, order: ByteOrder) -> Self {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Self { bytes, at, order }
    }

    /// Position of the next byte.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Number of bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes; if there are fewer, returns `None` and consumes nothing.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// Like [`Wire::take`] with the 64-bit lengths of files.
    pub fn take64(&mut self, count: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?)
    }

    /// 16 bits.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    /// 32 bits.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    /// 64 bits.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }

    /// Bytes up to a NUL, which is consumed too; all remaining bytes if there is none.
    pub fn until_nul(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let text = cut_at_nul(rest);
        self.at += (text.len() + 1).min(rest.len());
        text
    }
}

/// The bytes before the first NUL.
#[inline]
pub fn cut_at_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Text up to the first NUL; invalid UTF-8 is replaced.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(cut_at_nul(bytes)).into_owned()
}

/// An unsigned number of 1, 2, 4 or 8 bytes; `None` for other lengths.
#[inline]
pub fn unsigned(bytes: &[u8], order: ByteOrder) -> Option<u64> {
    let mut wire = Wire::new(bytes, order);
    match bytes.len() {
        1 => Some(u64::from(bytes[0])),
        2 => wire.u16().map(u64::from),
        4 => wire.u32().map(u64::from),
        8 => wire.u64(),
        _ => None,
    }
}

/// As [`unsigned`], in two's complement.
#[inline]
pub fn signed(bytes: &[u8], order: ByteOrder) -> Option<i64> {
    let value = unsigned(bytes, order)?;
    let unused = 64 - 8 * bytes.len() as u32;
    Some((value << unused) as i64 >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_in_either_order_and_keep_their_sign() {
        let bytes = [0xff, 0xfe, 3, 4, 5, 6, 7, 8];
        assert_eq!(unsigned(&bytes[..2], ByteOrder::Little), Some(0xfeff));
        assert_eq!(signed(&bytes[..2], ByteOrder::Big), Some(-2));
        assert_eq!(signed(&bytes[..1], ByteOrder::Big), Some(-1));
        assert_eq!(Wire::new(&bytes, ByteOrder::Big).u64(), Some(0xfffe_0304_0506_0708));
        assert_eq!(unsigned(&bytes[..3], ByteOrder::Big), None);
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let mut wire = Wire::new(b"ab\0cd", ByteOrder::Little);
        assert_eq!(wire.until_nul(), b"ab");
        assert_eq!(wire.u32(), None);
        assert_eq!(wire.until_nul(), b"cd");
        assert_eq!((wire.left(), wire.take(1)), (0, None));
        assert_eq!(Wire::at(b"x", u64::MAX, ByteOrder::Little).take(1), None);
    }
}
