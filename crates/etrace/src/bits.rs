// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bit fields of a payload, least significant bit first, with sign-based compression.

use crate::parameters::low_bits;
use alloc::vec::Vec;

/// Reads fields. Bits after the last byte repeat its highest bit (specification, "Instruction Trace
/// Encoder Output Packets": sign-based compression).
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins at bit `at`; there must be at least one byte.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn byte(&self, index: usize) -> u8 {
        match (self.bytes.get(index), self.bytes.last()) {
            (Some(byte), _) => *byte,
            (None, Some(last)) if *last >= 0x80 => 0xff,
            _ => 0,
        }
    }

    /// The next field, at most 64 bits.
    pub(crate) fn field(&mut self, width: u8) -> u64 {
        let (mut value, mut have) = (0, 0);
        while have < width {
            let shift = self.at % 8;
            let take = (8 - shift).min(usize::from(width - have));
            let piece = u64::from(self.byte(self.at / 8) >> shift) & low_bits(take as u8);
            value |= piece << have;
            have += take as u8;
            self.at += take;
        }
        value
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.field(1) != 0
    }

    /// The last bit that was read.
    pub(crate) fn previous(&self) -> bool {
        let at = self.at.saturating_sub(1);
        self.byte(at / 8) >> (at % 8) & 1 != 0
    }

    /// Whether the next bit differs from the one before: how rare flags are sent.
    pub(crate) fn differs(&mut self) -> bool {
        let previous = self.previous();
        self.flag() != previous
    }

    /// Position in bits.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether whole bytes follow that do more than repeat the last bit read.
    pub(crate) fn has_more(&self) -> bool {
        let fill = if self.previous() { 0xff } else { 0 };
        let rest = self.bytes.get(self.at.div_ceil(8)..).unwrap_or_default();
        rest.iter().any(|byte| *byte != fill)
    }
}

/// Writes fields.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    bits: usize,
}

impl Writer {
    /// Appends the low `width` bits of `value`.
    pub(crate) fn field(&mut self, value: u64, width: u8) {
        for bit in 0..width {
            self.flag(value >> bit & 1 != 0);
        }
    }

    pub(crate) fn flag(&mut self, set: bool) {
        if self.bits.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let (true, Some(last)) = (set, self.bytes.last_mut()) {
            *last |= 1 << (self.bits % 8);
        }
        self.bits += 1;
    }

    pub(crate) fn previous(&self) -> bool {
        let bit = self.bits.wrapping_sub(1) % 8;
        self.bytes.last().is_some_and(|last| last >> bit & 1 != 0)
    }

    /// Appends a bit that differs from the last one if `differs`.
    pub(crate) fn differs(&mut self, differs: bool) {
        let previous = self.previous();
        self.flag(previous != differs);
    }

    /// Repeats the last bit up to a whole byte, and removes bytes at the end that only repeat it.
    pub(crate) fn compressed(mut self) -> Vec<u8> {
        let sign = self.previous();
        while !self.bits.is_multiple_of(8) {
            self.flag(sign);
        }
        let fill = if sign { 0xff } else { 0 };
        while let [.., before, last] = self.bytes[..] {
            if last != fill || (before >= 0x80) != sign {
                break;
            }
            self.bytes.pop();
        }
        self.bytes
    }
}
