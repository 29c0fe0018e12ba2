// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ns('50us')` and `duration(50000)`: durations in human-readable form.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// Units, in nanoseconds, largest first.
const UNITS: [(&str, i64); 8] = [
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Parses a duration with a unit to nanoseconds: `50us`, `1.5 ms`, `-3s`.
///
/// Errors: a message with the accepted formats. Fractions of a nanosecond are truncated.
pub fn parse_nanos(text: &str) -> Result<i64, String> {
    let wrong =
        || format!("no duration: '{text}': write a number and a unit, as '50us' or '1.5ms'");
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?;
    let (digits, unit) = (trimmed[..split].trim(), &trimmed[split..]);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = i128::from(factor.ok_or_else(|| {
        format!("no unit of time: '{unit}' in '{text}': known are ns, us, ms, s, min, h")
    })?);
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || whole.len() + part.len() == 0 {
        return Err(wrong());
    }
    // Exact in decimal: 0.1 s is 100,000,000 ns, unlike with binary fractions.
    let too_large = || format!("duration too large: '{text}': it must fit 292 years");
    let mut nanos = 0_i128;
    for digit in whole.bytes() {
        let next = nanos.checked_mul(10).map(|n| n + i128::from(digit - b'0'));
        nanos = next.filter(|n| *n <= i128::from(i64::MAX)).ok_or_else(too_large)?;
    }
    nanos *= factor;
    let mut of_digit = factor;
    for digit in part.bytes().take(15) {
        nanos += i128::from(digit - b'0') * of_digit / 10;
        // A unit is a multiple of a power of ten: digits beyond it are truncated.
        if of_digit % 10 != 0 {
            break;
        }
        of_digit /= 10;
    }
    i64::try_from(if is_negative { -nanos } else { nanos }).map_err(|_| too_large())
}

/// A duration in the unit that suits its size, with at least four significant digits.
pub fn text(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let (unit, factor) = match size {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => ("µs", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{:.3} {unit}", nanos as f64 / factor)
}

/// `ns(text)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ns {
    signature: Signature,
}

impl Ns {
    /// The function.
    pub fn new() -> Self {
        Self { signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Ns {
    fn name(&self) -> &str {
        "ns"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let parse = |text: &str| match parse_nanos(text) {
            Ok(nanos) => Ok(nanos),
            Err(words) => exec_err!("{words}"),
        };
        match &args.args[0] {
            ColumnarValue::Scalar(value) => {
                let nanos = value.try_as_str().flatten().map(parse).transpose()?;
                Ok(ColumnarValue::Scalar(ScalarValue::Int64(nanos)))
            }
            ColumnarValue::Array(array) => {
                let texts = array.as_string::<i32>().iter();
                let nanos: Int64Array =
                    texts.map(|text| text.map(parse).transpose()).collect::<Result<_>>()?;
                Ok(ColumnarValue::Array(Arc::new(nanos)))
            }
        }
    }
}

/// `duration(ns)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Text {
    signature: Signature,
}

impl Text {
    /// The function.
    pub fn new() -> Self {
        Self { signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Text {
    fn name(&self) -> &str {
        "duration"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let nanos = arrays[0].as_primitive::<Int64Type>();
        let texts: StringArray = nanos.iter().map(|nanos| nanos.map(text)).collect();
        Ok(ColumnarValue::Array(Arc::new(texts) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        let good = [
            ("50us", 50_000),
            ("50 µs", 50_000),
            ("1.5ms", 1_500_000),
            ("0.1s", 100_000_000),
            ("-3s", -3_000_000_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.9999999999 ns", 1),
            (".5s", 500_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("1.05min", 63_000_000_000),
        ];
        for (text, nanos) in good {
            assert_eq!(parse_nanos(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told() {
        for bad in ["", "5", "us", "5 parsec", "1.2.3s", "--1s", "1e3s", "99999999999999999999h"] {
            assert!(parse_nanos(bad).is_err(), "{bad}");
        }
        assert!(parse_nanos("9223372036854775808ns").is_err());
        assert!(parse_nanos("300000000h").unwrap_err().contains("too large"));
    }

    #[test]
    fn durations_are_written_with_a_unit_that_suits() {
        let pairs = [
            (999, "999 ns"),
            (1_000, "1.000 µs"),
            (-1_234_567, "-1.235 ms"),
            (61_000_000_000, "61.000 s"),
        ];
        for (nanos, expected) in pairs {
            assert_eq!(text(nanos), expected);
        }
    }
}
