// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers as text.

use std::io::Write as _;

use super::digits;
use super::pen::Pen;

/// Decimal digits of `value`.
///
/// Cost: no division but by constants; no allocation but the growth of `out`.
#[inline]
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    let mut pen = Pen::new(out);
    digits::decimal(&mut pen, value);
    pen.finish();
}

/// Decimal digits of `value`, with a minus sign before negative ones.
#[inline]
pub fn decimal_signed(out: &mut Vec<u8>, value: i64) {
    let mut pen = Pen::new(out);
    digits::decimal_signed(&mut pen, value);
    pen.finish();
}

/// Decimal digits of `value`, at least `width` (up to 20) of them.
#[inline]
pub fn padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while value > 0 {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len() - width.min(20))..]);
}

/// `0x` and capital hexadecimal digits.
pub fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    let mut pen = Pen::new(out);
    pen.all(b"0x");
    digits::hexadecimal(&mut pen, value);
    pen.finish();
}

/// `0` and octal digits.
pub fn octal(out: &mut Vec<u8>, value: u64) {
    out.push(b'0');
    // 64 bits have at most 22 digits.
    let mut digits = [0u8; 22];
    let (mut rest, mut first) = (value, digits.len());
    loop {
        first -= 1;
        digits[first] = b'0' + (rest & 7) as u8;
        rest >>= 3;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// `0b` and the low `width` bits.
pub fn binary(out: &mut Vec<u8>, value: u64, width: u32) {
    out.extend_from_slice(b"0b");
    for bit in (0..width.min(64)).rev() {
        out.push(b'0' + (value >> bit & 1) as u8);
    }
}

/// As C's `%g` prints it: six significant digits, no trailing zeros, an exponent
/// below 10⁻⁴ and from 10⁶ on.
pub fn real(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
        return;
    }
    if !ordinary(out, value) {
        by_format(out, value);
    }
}

/// [`real`] of zero and of magnitudes from 10⁻⁴ to below 10⁶, in whole numbers:
/// value · 10⁵⁻ᵉ, where 10ᵉ is its first digit's worth, is a mantissa below 2⁵³
/// times at most 10⁹ < 2³⁰, shifted right by 33 to 67 bits. Rounded to the nearest,
/// half to even, that is its six digits. Returns whether it is one of these.
fn ordinary(out: &mut Vec<u8>, value: f64) -> bool {
    const WORTH: [f64; 10] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5];
    if value == 0.0 {
        out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
        return true;
    }
    let magnitude = value.abs();
    if !(1e-4..1e6).contains(&magnitude) {
        return false;
    }
    // Doubles of negative powers of ten are the first ones above them.
    let first = WORTH.iter().rposition(|&worth| magnitude >= worth).unwrap_or(0);
    let bits = magnitude.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let shift = 1075 - (bits >> 52) as u32;
    let scaled = u128::from(mantissa) * 10u128.pow(9 - first as u32);
    let (whole, rest) = ((scaled >> shift) as u64, scaled & ((1 << shift) - 1));
    let half = 1u128 << (shift - 1);
    let mut digits = whole + u64::from(rest > half || rest == half && whole & 1 != 0);
    let mut exponent = first as i32 - 4;
    if digits == 1_000_000 {
        (digits, exponent) = (100_000, exponent + 1);
        if exponent == 6 {
            return false;
        }
    }
    let mut text = [b'0'; 6];
    for place in text.iter_mut().rev() {
        *place = b'0' + (digits % 10) as u8;
        digits /= 10;
    }
    let whole_digits = (exponent + 1).max(0) as usize;
    let used = text.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    if value < 0.0 {
        out.push(b'-');
    }
    if whole_digits == 0 {
        out.extend_from_slice(&b"0.000"[..(1 - exponent) as usize]);
        out.extend_from_slice(&text[..used]);
    } else {
        out.extend_from_slice(&text[..whole_digits]);
        if used > whole_digits {
            out.push(b'.');
            out.extend_from_slice(&text[whole_digits..used]);
        }
    }
    true
}

/// [`real`] of any finite value.
fn by_format(out: &mut Vec<u8>, value: f64) {
    let start = out.len();
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value:.5e}");
    let exponent_at = out[start..].iter().position(|&b| b == b'e').map_or(out.len(), |e| start + e);
    let exponent: i32 = std::str::from_utf8(&out[exponent_at + 1..])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    if (-4..6).contains(&exponent) {
        out.truncate(start);
        let decimals = (5 - exponent) as usize;
        let _ = write!(out, "{value:.decimals$}");
        trim_zeros(out, start);
    } else {
        out.truncate(exponent_at);
        trim_zeros(out, start);
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        padded(out, u64::from(exponent.unsigned_abs()), 2);
    }
}

fn trim_zeros(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&b'.') {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_in_every_base() {
        for value in [0, 1, 9, 10, 99, 100, 101, 12345, 999_999, u64::MAX, 10_000_000_000] {
            assert_eq!(text(|out| decimal(out, value)), value.to_string());
            assert_eq!(text(|out| hexadecimal(out, value)), format!("0x{value:X}"));
            assert_eq!(text(|out| octal(out, value)), format!("0{value:o}"));
        }
        assert_eq!(text(|out| decimal_signed(out, i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|out| binary(out, 5, 4)), "0b0101");
        assert_eq!(text(|out| padded(out, 7, 9)), "000000007");
        assert_eq!(text(|out| padded(out, 1234, 2)), "1234");
        assert_eq!(text(|out| padded(out, 0, 0)), "");
    }

    #[test]
    fn ordinary_reals_are_as_any() {
        let mut seed = 3u64;
        let mut ordinary_ones = 0;
        let mut check = |value: f64| {
            let (mut fast, mut any) = (Vec::new(), Vec::new());
            if ordinary(&mut fast, value) {
                by_format(&mut any, value);
                assert_eq!(String::from_utf8(fast), String::from_utf8(any), "{value:e}");
                ordinary_ones += 1;
            }
        };
        for _ in 0..50_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            // Exponents around the range, and short decimals with ties.
            check(f64::from_bits(seed & !(0x7ff << 52) | (1023 - 20 + seed % 45) << 52));
            check((seed % 2_000_001) as f64 / 16.0 - 50_000.0);
        }
        for power in -7..8 {
            for worth in [1.0, 5.0, 0.999_999_5, 0.999_999_4, 9.999_995, 1.000_005, 1.000_015] {
                let value = worth * 10f64.powi(power);
                for value in [value, f64::from_bits(value.to_bits() - 1), -value.next_up()] {
                    check(value);
                }
            }
        }
        assert!(ordinary_ones > 50_000, "{ordinary_ones}");
    }

    #[test]
    fn reals_as_c_prints_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (2.718_271_828, "2.71827"),
            (100000.0, "100000"),
            (1e6, "1e+06"),
            (999999.5, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (-1.5e300, "-1.5e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(|out| real(out, value)), expected);
        }
        assert_eq!(text(|out| real(out, f64::NAN)), "nan");
    }
}
