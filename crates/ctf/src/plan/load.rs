// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers at a fixed offset from a byte, read by one load and two shifts.

use lateralis_model::{ByteOrder, Scalar, ScalarKind, Slot};

/// What is left of the word after shifting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Integer ≥ 0.
    Unsigned,
    /// Integer, its sign extended.
    Signed,
    /// Bits of a binary32.
    Single,
    /// Bits of a binary64.
    Double,
}

/// How to read one number. The word of 8 bytes that begins at its first byte
/// is put in order and shifted left, then right: that is all for any width up
/// to 57 bits at any bit, and for 64 bits at a byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// First byte, from the base of the run.
    pub at: u32,
    left: u8,
    right: u8,
    swap: bool,
    /// Whether one word does not do.
    slow: bool,
    /// How to take it.
    pub form: Form,
    /// First bit, from the base of the run.
    at_bits: u32,
    scalar: Scalar,
}

/// How a word of 8 bytes becomes a number.
#[derive(Debug, Clone, Copy)]
pub struct Shifts {
    left: u8,
    right: u8,
    swap: bool,
    signed: bool,
}

impl Shifts {
    /// The number in a word that was read as a little-endian one.
    #[inline(always)]
    #[must_use]
    pub fn value(&self, word: u64) -> u64 {
        let word = if self.swap { word.swap_bytes() } else { word };
        let high = word << (self.left & 63);
        // Both are shorter than a branch that is guessed wrong.
        let (signed, unsigned) =
            (((high as i64) >> (self.right & 63)) as u64, high >> (self.right & 63));
        if self.signed { signed } else { unsigned }
    }
}

impl Load {
    /// A load of `scalar` at this number of bits from a base that is at a byte.
    pub fn of(scalar: &Scalar, at_bits: u32) -> Self {
        let shift = at_bits % 8;
        let bits = scalar.bits.clamp(1, 64);
        let slow = scalar.reversed || shift + bits > 64 || bits != scalar.bits;
        let right = 64 - bits;
        let left = match scalar.order {
            ByteOrder::Little => right.saturating_sub(shift),
            ByteOrder::Big => shift,
        };
        let form = match scalar.kind {
            ScalarKind::Bool | ScalarKind::Unsigned => Form::Unsigned,
            ScalarKind::Signed => Form::Signed,
            ScalarKind::Real if scalar.bits == 32 => Form::Single,
            ScalarKind::Real => Form::Double,
        };
        Self {
            at: at_bits / 8,
            left: left as u8,
            right: right as u8,
            swap: scalar.order == ByteOrder::Big,
            slow,
            form,
            at_bits,
            scalar: *scalar,
        }
    }

    /// Width in bits.
    pub fn bits(&self) -> u32 {
        self.scalar.bits
    }

    /// Whether the number is a little-endian one of this many bytes at a byte.
    pub fn is_plain(&self, size: u32) -> bool {
        !self.swap && !self.slow && self.at_bits.is_multiple_of(8) && self.scalar.bits == size * 8
    }

    /// The number; negative ones in two's complement of 64 bits. 0 where it is
    /// not inside `bytes`, which the caller has checked.
    #[inline]
    pub fn value(&self, bytes: &[u8], base: usize) -> u64 {
        let at = base + self.at as usize;
        match (word_at(bytes, at), self.by_shifts()) {
            (Some(word), Some(shifts)) => shifts.value(word),
            _ => self.by_bits(bytes, base),
        }
    }

    /// Conversion of the word of 8 bytes at [`Load::at`] to the number; `None` if more is needed.
    pub fn by_shifts(&self) -> Option<Shifts> {
        (!self.slow).then_some(Shifts {
            left: self.left,
            right: self.right,
            swap: self.swap,
            signed: self.form == Form::Signed,
        })
    }

    /// Shift and mask that extract the number from the word of 8 bytes at [`Load::at`], and whether
    /// its bytes are swapped before; `None` if this is not sufficient.
    pub fn as_shift(&self) -> Option<(u8, u64, bool)> {
        let bits = self.scalar.bits.clamp(1, 64);
        if self.slow {
            return None;
        }
        let shift = match self.swap {
            false => self.at_bits % 8,
            true => 64 - self.at_bits % 8 - bits,
        };
        Some((shift as u8, u64::MAX >> (64 - bits), self.swap))
    }

    /// Whether both read the same bits.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.at_bits, &self.scalar) == (other.at_bits, &other.scalar)
    }

    /// Near the end of the packet, and for what crosses a word.
    #[cold]
    fn by_bits(&self, bytes: &[u8], base: usize) -> u64 {
        let raw = self.scalar.raw(bytes, base as u64 * 8 + u64::from(self.at_bits));
        let raw = raw.unwrap_or(0);
        if self.form == Form::Signed {
            let unused = 64 - self.scalar.bits.clamp(1, 64);
            ((raw << unused) as i64 >> unused) as u64
        } else {
            raw
        }
    }

    /// The number as a row holds it.
    pub fn slot(&self, bytes: &[u8], base: usize) -> Slot {
        let value = self.value(bytes, base);
        match self.form {
            Form::Unsigned => Slot::Unsigned(value),
            Form::Signed => Slot::Signed(value as i64),
            Form::Single => Slot::Real(f64::from(f32::from_bits(value as u32))),
            Form::Double => Slot::Real(f64::from_bits(value)),
        }
    }
}

/// The little-endian word of 8 bytes that begins at byte `at`.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_place_and_order_reads_as_bit_by_bit() {
        let bytes: Vec<u8> = (0..40u32).map(|i| (i * 151 % 251) as u8).collect();
        let orders = [ByteOrder::Little, ByteOrder::Big];
        let kinds = [ScalarKind::Unsigned, ScalarKind::Signed, ScalarKind::Real, ScalarKind::Bool];
        let (mut checked, mut in_words) = (0, 0);
        for (order, kind) in orders.iter().flat_map(|o| kinds.map(|k| (*o, k))) {
            for (bits, reversed) in (1..=64).flat_map(|bits| [(bits, false), (bits, true)]) {
                let scalar = Scalar { bits, align_bits: 1, order, reversed, kind };
                for at in 0..=24 {
                    for base in [0usize, 3, 27] {
                        let Some(raw) = scalar.raw(&bytes, base as u64 * 8 + u64::from(at)) else {
                            continue;
                        };
                        let expected = Slot::from_raw(raw, bits, kind);
                        let load = Load::of(&scalar, at);
                        let found = load.slot(&bytes, base);
                        let tail = bytes.get(base + load.at as usize..);
                        let word = tail.and_then(|tail| tail.first_chunk());
                        if let (Some(word), Some((shift, mask, swap))) = (word, load.as_shift()) {
                            let word = u64::from_le_bytes(*word);
                            let word = if swap { word.swap_bytes() } else { word };
                            assert_eq!(word >> shift & mask, raw, "{scalar:?} at {at}");
                            in_words += 1;
                        }
                        let same = match (expected, found) {
                            (Slot::Real(a), Slot::Real(b)) => a.to_bits() == b.to_bits(),
                            (a, b) => a == b,
                        };
                        assert!(same, "{scalar:?} at {at} from {base}: {expected:?} {found:?}");
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 60_000 && in_words > 5_000, "{checked} {in_words}");
    }
}
