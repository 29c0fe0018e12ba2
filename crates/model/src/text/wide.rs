// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sixteen bytes at a time.
//!
//! On x86-64 with instructions that every such processor has, elsewhere in two
//! machine words; both give the same, which the tests compare.

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(super) use portable::{first_special, hexadecimal};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(super) use sse2::{first_special, hexadecimal};

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi64_si128,
        _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_srli_epi64,
        _mm_unpacklo_epi8,
    };

    #[inline(always)]
    fn vector(bytes: [u8; 16]) -> __m128i {
        // SAFETY: both are 16 bytes for which every value is valid.
        unsafe { std::mem::transmute(bytes) }
    }

    #[inline(always)]
    fn bytes(vector: __m128i) -> [u8; 16] {
        // SAFETY: both are 16 bytes for which every value is valid.
        unsafe { std::mem::transmute(vector) }
    }

    /// See [`super::portable::first_special`]. Cost: 14 instructions.
    #[inline(always)]
    pub fn first_special(block: &[u8; 16]) -> usize {
        let text = vector(*block);
        // SAFETY: instructions of SSE2, which this module is compiled with.
        let found = unsafe {
            let is = |byte: u8| _mm_cmpeq_epi8(text, _mm_set1_epi8(byte as i8));
            let quotes = _mm_or_si128(is(b'\''), is(b'"'));
            let others = _mm_or_si128(is(b'\\'), is(b'?'));
            let control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
            let control = _mm_or_si128(control, is(0x7f));
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, others), control))
        };
        (found | 1 << 16).trailing_zeros() as usize
    }

    /// See [`super::portable::hexadecimal`]. Cost: 10 instructions.
    #[inline(always)]
    pub fn hexadecimal(value: u64) -> [u8; 16] {
        // SAFETY: instructions of SSE2, which this module is compiled with.
        let text = unsafe {
            let all = |byte: u8| _mm_set1_epi8(byte as i8);
            let twos = _mm_cvtsi64_si128(value.swap_bytes() as i64);
            let high = _mm_and_si128(_mm_srli_epi64::<4>(twos), all(15));
            let digits = _mm_unpacklo_epi8(high, _mm_and_si128(twos, all(15)));
            let letters = _mm_and_si128(_mm_cmpgt_epi8(digits, all(9)), all(b'A' - b'9' - 1));
            _mm_add_epi8(_mm_add_epi8(digits, all(b'0')), letters)
        };
        bytes(text)
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod portable {
    const ONES: u64 = u64::MAX / 255;

    /// The place of the first byte that is escaped in text: quotation marks,
    /// apostrophes, question marks, backslashes, control characters. 16 if there
    /// is none.
    ///
    /// By the test of a word for a zero byte (Warren, Hacker's Delight, §6-1): false positives
    /// occur only after a true one.
    #[inline(always)]
    pub fn first_special(block: &[u8; 16]) -> usize {
        let special = |bytes: &[u8]| {
            let word = bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
            let mut special = below(word, 0x20);
            for byte in [b'\\', b'\'', b'"', b'?', 0x7f] {
                special |= below(word ^ (ONES * u64::from(byte)), 1);
            }
            (special & ONES << 7).trailing_zeros() as usize / 8
        };
        match special(&block[..8]) {
            8 => 8 + special(&block[8..]),
            place => place,
        }
    }

    /// The 16 hexadecimal digits of a number, in capitals.
    #[inline(always)]
    pub fn hexadecimal(value: u64) -> [u8; 16] {
        let (high, low) = (eight((value >> 32) as u32), eight(value as u32));
        (u128::from(high) | u128::from(low) << 64).to_le_bytes()
    }

    /// Eight digits, the first one lowest. The bytes are moved apart, then their halves.
    #[inline(always)]
    fn eight(value: u32) -> u64 {
        let twos = u64::from(value.swap_bytes());
        let twos = (twos | twos << 16) & 0xffff_0000_ffff;
        let twos = (twos | twos << 8) & 0x00ff_00ff_00ff_00ff;
        let low_halves = 0x000f_000f_000f_000f;
        let digits = (twos >> 4) & low_halves | (twos & low_halves) << 8;
        // Those above 9 carry into the upper half when 6 is added.
        let letters = (digits + 6 * ONES) >> 4 & ONES;
        digits + ONES * u64::from(b'0') + letters * u64::from(b'A' - b'9' - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_special(byte: u8) -> bool {
        matches!(byte, b'\\' | b'\'' | b'"' | b'?' | 0..=0x1f | 0x7f)
    }

    fn next(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn the_first_special_byte_is_found_in_any_company() {
        let mut seed = 3;
        for place in 0..=16 {
            for byte in 0..=255u8 {
                for turn in 0..16 {
                    let mut block = [b' ' + turn % 2; 16];
                    if let Some(at) = block.get_mut(place) {
                        *at = byte;
                    }
                    // What follows may be anything.
                    for at in block.iter_mut().skip(place + 1).filter(|_| turn > 1) {
                        *at = next(&mut seed) as u8;
                    }
                    let expected = block.iter().position(|&byte| is_special(byte)).unwrap_or(16);
                    assert_eq!(first_special(&block), expected, "{block:?}");
                    assert_eq!(portable::first_special(&block), expected, "{block:?}");
                }
            }
        }
    }

    #[test]
    fn every_digit_at_every_place() {
        let mut seed = 5;
        let check = |value: u64| {
            let expected = format!("{value:016X}");
            assert_eq!(hexadecimal(value), expected.as_bytes());
            assert_eq!(portable::hexadecimal(value), expected.as_bytes());
        };
        for place in 0..16 {
            (0..16).for_each(|digit| check(digit << (4 * place)));
        }
        (0..100_000).for_each(|_| check(next(&mut seed)));
    }
}
