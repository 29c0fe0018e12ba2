// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Digits of numbers, several at a time in one machine word.

use super::pen::Pen;
use super::wide;

/// Eight zeros as text.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The numbers below 100: their digits from the left.
const SMALL: [[u8; 2]; 100] = {
    let mut table = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        let (tens, ones) = (b'0' + value as u8 / 10, b'0' + value as u8 % 10);
        table[value] = if value < 10 { [ones, 0] } else { [tens, ones] };
        value += 1;
    }
    table
};

/// The eight decimal digits of a number below 10⁸, one a byte, the first one
/// lowest. The word is halved three times: into numbers below 10⁴ in 32 bits each,
/// below 100 in 16, below 10 in 8. Each division is a product with the rounded up
/// inverse, exact in the range that it is used for (all of it is tested).
#[inline(always)]
fn eight(value: u32) -> u64 {
    let (high, low) = (u64::from(value / 10_000), u64::from(value % 10_000));
    let fours = high | low << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// Appends the digits of a number below 10⁸, without leading zeros.
#[inline(always)]
fn short(pen: &mut Pen<'_>, value: u32) {
    let digits = eight(value);
    // One digit stays of zero.
    let skipped = (digits | 1 << 56).trailing_zeros() & !7;
    let text = (digits | ZEROS) >> skipped;
    pen.put(&text.to_le_bytes(), 8 - skipped as usize / 8);
}

/// Appends the decimal digits of `value`.
///
/// Cost: no division but by constants, at most three branches; writes 8 bytes up
/// to 10⁸, 16 up to 10¹⁶, else 24.
#[inline(always)]
pub(super) fn decimal(pen: &mut Pen<'_>, value: u64) {
    const HALF: u64 = 100_000_000;
    if value < 100 {
        pen.put(&SMALL[value as usize], 1 + usize::from(value > 9));
        return;
    }
    if value < HALF {
        return short(pen, value as u32);
    }
    let full = |value: u64| (eight(value as u32) | ZEROS).to_le_bytes();
    let (high, low) = (value / HALF, value % HALF);
    if high < HALF {
        short(pen, high as u32);
    } else {
        short(pen, (high / HALF) as u32);
        pen.all(&full(high % HALF));
    }
    pen.all(&full(low));
}

/// Appends the decimal digits of `value`, with a minus sign before negative ones.
#[inline(always)]
pub(super) fn decimal_signed(pen: &mut Pen<'_>, value: i64) {
    pen.put(b"-", usize::from(value < 0));
    decimal(pen, value.unsigned_abs());
}

/// Appends the nine decimal digits of `value`, which is below 10⁹.
#[inline(always)]
pub(super) fn nine(pen: &mut Pen<'_>, value: u32) {
    let (first, rest) = (value / 100_000_000, value % 100_000_000);
    let text = u128::from(eight(rest) | ZEROS) << 8 | u128::from(b'0' + first as u8);
    pen.put(&text.to_le_bytes(), 9);
}

/// Appends capital hexadecimal digits, without leading zeros.
///
/// Cost: no branch; writes 16 bytes.
#[inline(always)]
pub(super) fn hexadecimal(pen: &mut Pen<'_>, value: u64) {
    // The first digit that is not zero comes first; of zero one is kept.
    let skipped = (value | 1).leading_zeros() & !3;
    pen.put(&wide::hexadecimal(value << skipped), 16 - skipped as usize / 4);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Pen<'_>)) -> String {
        let mut out = Vec::new();
        let mut pen = Pen::new(&mut out);
        write(&mut pen);
        pen.finish();
        String::from_utf8(out).unwrap()
    }

    /// Every step of [`eight`] for every number that it may meet.
    #[test]
    fn halves_are_exact() {
        for value in 0..10_000u64 {
            assert_eq!((value * 10_486) >> 20, value / 100);
        }
        for value in 0..100u64 {
            assert_eq!((value * 103) >> 10, value / 10);
        }
        // All numbers of four digits in either half: no half disturbs the other.
        for half in 0..10_000u32 {
            for value in [half, half * 10_000, 9_999 + half * 10_000, 99_990_000 + half] {
                let digits = eight(value).to_le_bytes().map(|digit| b'0' + digit);
                assert_eq!(String::from_utf8(digits.into()).unwrap(), format!("{value:08}"));
            }
        }
    }

    fn check(value: u64) {
        assert_eq!(text(|pen| decimal(pen, value)), value.to_string());
        assert_eq!(text(|pen| decimal_signed(pen, value as i64)), (value as i64).to_string());
        assert_eq!(text(|pen| hexadecimal(pen, value)), format!("{value:X}"));
        let below = (value % 1_000_000_000) as u32;
        assert_eq!(text(|pen| nine(pen, below)), format!("{below:09}"));
    }

    #[test]
    fn numbers_are_as_the_standard_library_formats_them() {
        (0..20_000).for_each(check);
        for bit in 0..64 {
            (0..3).for_each(|more| check((1u64 << bit).wrapping_add(more).wrapping_sub(1)));
        }
        for power in 0..20 {
            (0..5).for_each(|more| check(10u64.pow(power).wrapping_add(more).wrapping_sub(2)));
        }
        let mut seed = 9u64;
        for turn in 0..100_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            check(seed >> (turn % 64));
        }
        (0..100).for_each(|less| check(u64::MAX - less));
    }
}
