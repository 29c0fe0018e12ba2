// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Floating point numbers that no register holds: IEEE 754 binary16, binary128 and wider
//! ones, and the 80 bits of the x87. They become binary64.

use lateralis_model::Scalar;

use crate::metadata::X87_BITS;

/// The number at bit `at`, rounded to the nearest binary64, ties to even. What is not a
/// number stays none, without its payload. `None` if it reaches beyond the end.
///
/// Cost: linear in its bits.
#[must_use]
pub fn read(scalar: &Scalar, bytes: &[u8], at: u64) -> Option<f64> {
    let bits = scalar.bits;
    // Whichever end comes first: `low` counts from the lowest bit of the number.
    let part = |low: u32, width: u32| {
        let from_low = (scalar.order == lateralis_model::ByteOrder::Little) != scalar.reversed;
        let first = if from_low { low } else { bits - low - width };
        Scalar { bits: width, ..*scalar }.raw(bytes, at + u64::from(first))
    };
    let exponent_bits = exponent_bits(bits);
    let explicit = bits == X87_BITS;
    let negative = part(bits - 1, 1)? != 0;
    let field = part(bits - 1 - exponent_bits, exponent_bits)?;
    let mut left = bits - 1 - exponent_bits;
    let leading = if explicit {
        left -= 1;
        part(left, 1)?
    } else {
        u64::from(field != 0)
    };
    // The digits of the fraction: 64 of them, and whether any other is set.
    let width = left.min(64);
    left -= width;
    let digits = part(left, width)? << (64 - width);
    let mut rest = 0;
    while left > 0 {
        let width = left.min(64);
        left -= width;
        rest |= part(left, width)?;
    }
    let most = (1u64 << exponent_bits) - 1;
    let magnitude = if field == most {
        if digits == 0 && rest == 0 { f64::INFINITY } else { f64::NAN }
    } else {
        let number = (u128::from(leading) << 64 | u128::from(digits)) << 1 | u128::from(rest != 0);
        let exponent = field.max(1) as i64 - (most / 2) as i64 - 65;
        rounded(number, exponent)
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Width of the exponent [IEEE 754-2008 §3.6].
fn exponent_bits(bits: u32) -> u32 {
    match bits {
        16 => 5,
        32 => 8,
        64 => 11,
        X87_BITS | 128 => 15,
        bits => (4.0 * f64::from(bits).log2()).round() as u32 - 13,
    }
}

/// `number × 2^exponent`, rounded to the nearest, ties to even. The lowest bit of the number
/// represents all below it.
fn rounded(number: u128, exponent: i64) -> f64 {
    if number == 0 {
        return 0.0;
    }
    let top = i64::from(127 - number.leading_zeros());
    let scale = top + exponent;
    if scale > 1023 {
        return f64::INFINITY;
    }
    // Below the smallest normal number there are fewer digits, down to none.
    let normal = scale >= -1022;
    let digits = if normal { 53 } else { 53 - (-1022 - scale) };
    if digits < 0 {
        return 0.0;
    }
    let cut = top + 1 - digits;
    let kept = if cut <= 0 {
        (number << -cut) as u64
    } else {
        let below = number & ((1u128 << cut) - 1);
        let half = 1u128 << (cut - 1);
        let kept = if cut > 127 { 0 } else { (number >> cut) as u64 };
        kept + u64::from(below > half || below == half && kept & 1 != 0)
    };
    // A carry out of the digits is one of the exponent, as the bits lie.
    let high = if normal { ((scale + 1022) as u64) << 52 } else { 0 };
    f64::from_bits(high + kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{ByteOrder, ScalarKind};

    fn real(bits: u32, order: ByteOrder, reversed: bool) -> Scalar {
        Scalar { bits, align_bits: 1, order, reversed, kind: ScalarKind::Real }
    }

    fn little(bits: u32, bytes: &[u8]) -> f64 {
        read(&real(bits, ByteOrder::Little, false), bytes, 0).unwrap()
    }

    fn random(seed: &mut u64) -> u64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed ^ *seed >> 29
    }

    #[test]
    fn widths_that_processors_know_read_as_theirs() {
        let mut seed = 11;
        for _ in 0..20_000 {
            let bits = random(&mut seed);
            let (double, single) = (f64::from_bits(bits), f32::from_bits((bits >> 7) as u32));
            let found = little(64, &bits.to_le_bytes());
            assert!(found == double || found.is_nan() && double.is_nan(), "{bits:x}");
            let found = little(32, &single.to_bits().to_le_bytes());
            let single = f64::from(single);
            assert!(found == single || found.is_nan() && single.is_nan(), "{bits:x}");
        }
    }

    #[test]
    fn every_half_is_its_digits_times_its_power() {
        for bits in 0..=u16::MAX {
            let (field, digits) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
            let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
            let expected = match field {
                0 => sign * digits * 2f64.powi(-24),
                31 if digits == 0.0 => sign * f64::INFINITY,
                31 => f64::NAN,
                _ => sign * (1024.0 + digits) * 2f64.powi(field - 25),
            };
            let found = little(16, &bits.to_le_bytes());
            let same = found.to_bits() == expected.to_bits();
            assert!(same || found.is_nan() && expected.is_nan(), "{bits:x}: {found} {expected}");
        }
    }

    /// A binary128 of sign, exponent and digits.
    fn quad(negative: bool, exponent: i32, digits: u128) -> [u8; 16] {
        let field = (exponent + 16383) as u128;
        (u128::from(negative) << 127 | field << 112 | digits).to_le_bytes()
    }

    #[test]
    fn more_digits_round_to_the_nearest_and_ties_to_even() {
        assert_eq!(little(128, &quad(false, 0, 0)), 1.0);
        assert_eq!(little(128, &quad(true, 1, 1 << 111)), -3.0);
        // One bit beyond the 52 digits is half a step.
        let half = 1u128 << 59;
        assert_eq!(little(128, &quad(false, 0, half)), 1.0);
        assert_eq!(little(128, &quad(false, 0, half | 1)), 1.0 + f64::EPSILON);
        assert_eq!(little(128, &quad(false, 0, half - 1)), 1.0);
        assert_eq!(little(128, &quad(false, 0, half * 3)), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(little(128, &quad(false, 0, (1 << 112) - 1)), 2.0);
        assert_eq!(little(128, &quad(false, 1024, 0)), f64::INFINITY);
        assert_eq!(little(128, &quad(true, 1023, (1 << 112) - 1)), f64::NEG_INFINITY);
        assert_eq!(little(128, &quad(false, -1074, 0)), f64::from_bits(1));
        assert_eq!(little(128, &quad(false, -1075, 0)), 0.0);
        assert_eq!(little(128, &quad(false, -1075, 1)), f64::from_bits(1));
        assert_eq!(little(128, &quad(false, -1023, (1 << 112) - 1)), f64::MIN_POSITIVE);
        assert_eq!(little(128, &quad(true, -16383, 7)).to_bits(), (-0.0f64).to_bits());
        assert!(little(128, &quad(false, 16384, 1)).is_nan());
    }

    #[test]
    fn the_leading_digit_of_the_x87_is_stored() {
        // π as gcc stores a long double, without its padding.
        let pi = [0x35, 0xc2, 0x68, 0x21, 0xa2, 0xda, 0x0f, 0xc9, 0x00, 0x40];
        assert_eq!(little(80, &pi), std::f64::consts::PI);
        assert_eq!(little(80, &[0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0xff]), f64::NEG_INFINITY);
    }

    #[test]
    fn order_place_and_width_make_no_difference() {
        // 2.5 in 256 bits: 19 of exponent.
        let mut bytes = [0u8; 32];
        bytes[31] = 0x40;
        bytes[29] = 0x04;
        assert_eq!(little(256, &bytes), 2.5);
        let mut turned = bytes;
        turned.reverse();
        assert_eq!(read(&real(256, ByteOrder::Big, false), &turned, 0), Some(2.5));
        let mirrored: Vec<u8> = bytes.iter().rev().map(|byte| byte.reverse_bits()).collect();
        assert_eq!(read(&real(256, ByteOrder::Little, true), &mirrored, 0), Some(2.5));
        let mirrored: Vec<u8> = turned.iter().rev().map(|byte| byte.reverse_bits()).collect();
        assert_eq!(read(&real(256, ByteOrder::Big, true), &mirrored, 0), Some(2.5));
        // Three bits further on.
        let shifted = (u128::from_le_bytes(quad(false, 3, 1 << 110)) as u64) << 3;
        assert_eq!(shifted, 0, "low digits are zero");
        let mut moved = [0u8; 17];
        let number = u128::from_le_bytes(quad(false, 3, 1 << 110));
        moved[..16].copy_from_slice(&(number << 3).to_le_bytes());
        moved[16] = (number >> 125) as u8;
        assert_eq!(read(&real(128, ByteOrder::Little, false), &moved, 3), Some(10.0));
        assert_eq!(read(&real(128, ByteOrder::Little, false), &moved, 9), None);
    }
}
