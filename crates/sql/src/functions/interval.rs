// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `overlaps` and `time_bucket`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::duration::parse_nanos;

/// Ends of an interval as half-open numbers. An interval of length 0, or whose ends come from
/// contradictory clocks, is reduced to its begin; an unknown end is beyond the timeline.
pub fn half_open(begin: Option<i64>, end: Option<i64>) -> (i128, i128) {
    let begin = begin.map_or(i128::MIN, i128::from);
    let end = end.map_or(i128::MAX, |end| i128::from(end).max(begin.saturating_add(1)));
    (begin, end)
}

/// Whether two intervals overlap.
pub fn overlap(a: (Option<i64>, Option<i64>), b: (Option<i64>, Option<i64>)) -> bool {
    let (a, b) = (half_open(a.0, a.1), half_open(b.0, b.1));
    a.0 < b.1 && b.0 < a.1
}

/// `overlaps(a_begin, a_end, b_begin, b_end)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Overlaps {
    signature: Signature,
}

impl Overlaps {
    /// The function.
    pub fn new() -> Self {
        let signature = Signature::exact(vec![DataType::Int64; 4], Volatility::Immutable);
        Self { signature }
    }
}

impl ScalarUDFImpl for Overlaps {
    fn name(&self) -> &str {
        "overlaps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let columns: Vec<&Int64Array> =
            arrays.iter().map(|array| array.as_primitive::<Int64Type>()).collect();
        let at = |column: usize, row: usize| {
            let column = columns[column];
            column.is_valid(row).then(|| column.value(row))
        };
        let answers: BooleanArray = (0..columns[0].len())
            .map(|row| Some(overlap((at(0, row), at(1, row)), (at(2, row), at(3, row)))))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(answers) as ArrayRef))
    }
}

/// `time_bucket(width, ts)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TimeBucket {
    signature: Signature,
}

impl TimeBucket {
    /// The function.
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [width, time] = given else {
            return plan_err!("time_bucket takes two arguments: time_bucket('10ms', ts)");
        };
        let is_text = matches!(width, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
        if !time.is_numeric() && !time.is_null() {
            return plan_err!("time_bucket(width, ts): ts is nanoseconds, not {time}");
        }
        Ok(vec![if is_text { DataType::Utf8 } else { DataType::Int64 }, DataType::Int64])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let widths: Int64Array = match arrays[0].data_type() {
            DataType::Utf8 => {
                // Usually one text for all rows: it is parsed once.
                let mut last: Option<(&str, i64)> = None;
                let mut read = |text| -> Result<i64> {
                    if let Some((_, width)) = last.filter(|(before, _)| *before == text) {
                        return Ok(width);
                    }
                    let width = parse_nanos(text).or_else(|words| exec_err!("{words}"))?;
                    last = Some((text, width));
                    Ok(width)
                };
                let texts = arrays[0].as_string::<i32>().iter();
                texts.map(|text| text.map(&mut read).transpose()).collect::<Result<_>>()?
            }
            _ => arrays[0].as_primitive::<Int64Type>().clone(),
        };
        if widths.iter().flatten().any(|width| width <= 0) {
            return exec_err!("time_bucket(width, ts): the width must be more than nothing");
        }
        let times = arrays[1].as_primitive::<Int64Type>();
        let begins: Int64Array =
            widths.iter().zip(times).map(|(width, time)| bucket(width?, time?)).collect();
        Ok(ColumnarValue::Array(Arc::new(begins) as ArrayRef))
    }
}

/// Begin of the bucket; `None` if it would be before the start of the timeline.
fn bucket(width: i64, time: i64) -> Option<i64> {
    time.checked_sub(time.rem_euclid(width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn intervals_overlap_without_their_ends() {
        let both =
            |a: (i64, i64), b: (i64, i64)| overlap((Some(a.0), Some(a.1)), (Some(b.0), Some(b.1)));
        assert!(both((0, 10), (9, 20)) && both((5, 6), (0, 10)) && both((0, 10), (5, 6)));
        assert!(!both((0, 10), (10, 20)) && !both((10, 20), (0, 10)));
        // Points in time: inside, at the begin, not at the end, equal.
        assert!(both((5, 5), (0, 10)) && both((0, 0), (0, 10)) && both((7, 7), (7, 7)));
        assert!(!both((10, 10), (0, 10)));
        assert!(!both((i64::MAX, i64::MAX), (0, i64::MAX)));
    }

    #[test]
    fn what_has_no_end_overlaps_all_that_follows() {
        assert!(overlap((Some(5), None), (Some(100), Some(200))));
        assert!(!overlap((Some(5), None), (Some(1), Some(5))));
        assert!(overlap((None, None), (Some(1), Some(5))));
        assert!(overlap((None, Some(2)), (Some(1), Some(5))));
    }

    #[test]
    fn overlapping_is_having_a_nanosecond_in_common() {
        let covers = |begin: i64, end: i64, t: i64| begin <= t && t < end.max(begin + 1);
        for code in 0..10_i64.pow(4) {
            let [a, b, c, d] = [1000, 100, 10, 1].map(|unit| code / unit % 10);
            if a > b || c > d {
                continue;
            }
            let shared = (0..11).any(|t| covers(a, b, t) && covers(c, d, t));
            let found = overlap((Some(a), Some(b)), (Some(c), Some(d)));
            assert_eq!(found, shared, "{a}..{b} {c}..{d}");
        }
    }

    #[test]
    fn a_bucket_begins_at_a_multiple_and_holds_its_time() {
        let mut chance = Chance::new(1);
        for _ in 0..10_000 {
            let (width, time) = (chance.any_i64().saturating_abs().max(1), chance.any_i64());
            if let Some(begin) = bucket(width, time) {
                assert_eq!(begin % width, 0);
                assert!(begin <= time && time.abs_diff(begin) < width as u64);
            } else {
                assert!(time < i64::MIN.saturating_add(width));
            }
        }
        assert_eq!(bucket(10, i64::MIN), None);
    }
}
