// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers as text.

use std::io::Write as _;

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233\
3435363738394041424344454647484950515253545556575859606162636465666768697071727374757677787980818283\
84858687888990919293949596979899";

/// Decimal digits of `value`.
///
/// Cost: one division per two digits; no allocation.
#[inline]
pub fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        first -= 2;
        digits[first..first + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        first -= 2;
        digits[first..first + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        first -= 1;
        digits[first] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[first..]);
}

/// Decimal digits of `value`, with a minus sign before negative ones.
#[inline]
pub fn decimal_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
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
    out.extend_from_slice(b"0x");
    digits(out, value, 4);
}

/// `0` and octal digits.
pub fn octal(out: &mut Vec<u8>, value: u64) {
    out.push(b'0');
    digits(out, value, 3);
}

/// `0b` and the low `width` bits.
pub fn binary(out: &mut Vec<u8>, value: u64, width: u32) {
    out.extend_from_slice(b"0b");
    for bit in (0..width.min(64)).rev() {
        out.push(b'0' + (value >> bit & 1) as u8);
    }
}

fn digits(out: &mut Vec<u8>, value: u64, bits: u32) {
    let count = (64 - value.leading_zeros()).div_ceil(bits).max(1);
    for index in (0..count).rev() {
        let digit = (value >> (index * bits)) as usize & ((1 << bits) - 1);
        out.push(b"0123456789ABCDEF"[digit]);
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
