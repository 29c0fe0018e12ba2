// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where texts end.

/// Bytes that are looked at together.
pub const ZEROS_BLOCK: usize = 16;

/// Number of bytes before the first zero, [`ZEROS_BLOCK`] if there is none.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn first_zero_of(block: &[u8; ZEROS_BLOCK]) -> usize {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_setzero_si128,
    };
    // SAFETY: SSE2 is part of x86-64, and the load, which needs no alignment, is of the
    // bytes of the array.
    let found = unsafe {
        let block = _mm_loadu_si128(block.as_ptr().cast());
        _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_setzero_si128()))
    };
    (found as u32 | 1 << ZEROS_BLOCK).trailing_zeros() as usize
}

/// The same anywhere: the lowest byte of which a one is borrowed is zero.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn first_zero_portably(block: &[u8; ZEROS_BLOCK]) -> usize {
    const ONES: u128 = u128::MAX / 0xff;
    let word = u128::from_le_bytes(*block);
    let borrowed = word.wrapping_sub(ONES) & !word & (ONES << 7);
    borrowed.trailing_zeros() as usize / 8
}

/// Number of bytes before the first zero, [`ZEROS_BLOCK`] if there is none.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
#[must_use]
pub fn first_zero_of(block: &[u8; ZEROS_BLOCK]) -> usize {
    first_zero_portably(block)
}

/// The first byte that is zero. Names are short: without a call.
#[inline]
#[must_use]
pub fn first_zero(content: &[u8]) -> Option<usize> {
    let (blocks, rest) = content.as_chunks::<ZEROS_BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        let zero = first_zero_of(block);
        if zero < ZEROS_BLOCK {
            return Some(index * ZEROS_BLOCK + zero);
        }
    }
    Some(blocks.len() * ZEROS_BLOCK + rest.iter().position(|&byte| byte == 0)?)
}

/// Bytes before the first unit of zero; all of them if the unit is 0.
#[inline]
#[must_use]
pub fn text_length(content: &[u8], unit: u8) -> usize {
    match unit {
        0 => content.len(),
        1 => first_zero(content).unwrap_or(content.len()),
        unit => {
            let unit = usize::from(unit);
            let zero = content.chunks_exact(unit).position(|unit| unit.iter().all(|&b| b == 0));
            zero.map_or(content.len() / unit * unit, |index| index * unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_zero_of_any_bytes() {
        let mut seed = 7u32;
        for length in 0..40 {
            for _ in 0..200 {
                let mut next = || {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    [0, 1, 0x80, 0xff, 0x7f, 0x81, 2, 3][(seed >> 13) as usize % 8]
                };
                let mut bytes: Vec<u8> = (0..length).map(|_| next()).collect();
                for _ in 0..2 {
                    let expected = bytes.iter().position(|&byte| byte == 0);
                    assert_eq!(first_zero(&bytes), expected, "{bytes:x?}");
                    // Again with its zeros further back.
                    bytes.iter_mut().take(length / 2).for_each(|byte| *byte |= 1);
                }
            }
        }
    }

    #[test]
    fn the_first_zero_of_a_block() {
        for from in 0..=ZEROS_BLOCK {
            for fill in [1, 0x7f, 0x80, 0xff] {
                let mut block = [fill; ZEROS_BLOCK];
                block[from..].fill(0);
                assert_eq!((first_zero_of(&block), first_zero_portably(&block)), (from, from));
                block[from..].iter_mut().skip(1).for_each(|byte| *byte = fill);
                assert_eq!((first_zero_of(&block), first_zero_portably(&block)), (from, from));
            }
        }
    }
}
