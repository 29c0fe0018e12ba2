// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `histogram(x)`: number of values in each bucket.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StructArray, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema, UInt64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, Signature, Volatility,
};

use super::duration::parse_nanos;

/// Largest number of buckets of a histogram; more are an error.
const MOST: usize = 100_000;

/// `histogram(x)` and `histogram(x, width)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Histogram {
    signature: Signature,
}

impl Histogram {
    /// The function.
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn bucket_fields() -> Fields {
    Fields::from(vec![
        Field::new("low", DataType::Int64, false),
        Field::new("high", DataType::Int64, false),
        Field::new("count", DataType::UInt64, false),
    ])
}

fn list_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(bucket_fields()), true)))
}

impl AggregateUDFImpl for Histogram {
    fn name(&self) -> &str {
        "histogram"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |given: &DataType| given.is_numeric() || given.is_null();
        match given {
            [x] if is_number(x) => Ok(vec![DataType::Int64]),
            [x, width] if is_number(x) && is_number(width) => Ok(vec![DataType::Int64; 2]),
            [x, DataType::Utf8 | DataType::Utf8View] if is_number(x) => {
                Ok(vec![DataType::Int64, DataType::Utf8])
            }
            _ => plan_err!("histogram takes a number and perhaps a width: histogram(x, '10us')"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(list_type())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[buckets]", args.name), list_type(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("histogram counts every value: DISTINCT is not known to it");
        }
        Ok(Box::new(Buckets { counts: BTreeMap::new(), width: width(&args)? }))
    }
}

/// The second argument, which must be the same for all rows.
fn width(args: &AccumulatorArgs) -> Result<Option<i64>> {
    let Some(width) = args.exprs.get(1) else {
        return Ok(None);
    };
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let width = match width.evaluate(&nothing) {
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(width)))) => width,
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))) => {
            parse_nanos(&text).or_else(|words| plan_err!("{words}"))?
        }
        _ => return plan_err!("histogram(x, width): the width must be the same for all rows"),
    };
    if width <= 0 {
        return plan_err!("histogram(x, width): the width must be more than nothing");
    }
    Ok(Some(width))
}

/// Counts by bucket.
#[derive(Debug)]
struct Buckets {
    /// By begin: end and count.
    counts: BTreeMap<i64, (i64, u64)>,
    width: Option<i64>,
}

impl Buckets {
    /// Begin and end, which is exclusive except for the last bucket of the number range.
    fn bounds(&self, value: i64) -> (i64, i64) {
        let clamp = |at: i128| at.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let (begin, end) = match (self.width, i128::from(value)) {
            (Some(width), value) => {
                let begin = value - value.rem_euclid(width.into());
                (begin, begin + i128::from(width))
            }
            (None, 0) => (0, 1),
            // Mirrored at zero: -3 and -2 are one bucket, from -3 to before -1.
            (None, value) => {
                let small = 1_i128 << value.unsigned_abs().ilog2();
                if value > 0 { (small, 2 * small) } else { (1 - 2 * small, 1 - small) }
            }
        };
        (clamp(begin), clamp(end))
    }

    fn add(&mut self, begin: i64, end: i64, count: u64) -> Result<()> {
        self.counts.entry(begin).or_insert((end, 0)).1 += count;
        if self.counts.len() > MOST {
            return exec_err!(
                "histogram: more than {MOST} buckets: give a larger width, or none to double them"
            );
        }
        Ok(())
    }

    fn to_list(&self) -> ScalarValue {
        let begins: Int64Array = self.counts.keys().copied().collect();
        let ends: Int64Array = self.counts.values().map(|(end, _)| *end).collect();
        let counts: UInt64Array = self.counts.values().map(|(_, count)| *count).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(begins), Arc::new(ends), Arc::new(counts)];
        let buckets = StructArray::new(bucket_fields(), columns, None);
        SingleRowListArrayBuilder::new(Arc::new(buckets)).build_list_scalar()
    }
}

impl Accumulator for Buckets {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Int64Type>().iter().flatten() {
            let (begin, end) = self.bounds(value);
            self.add(begin, end, 1)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for buckets in states[0].as_list::<i32>().iter().flatten() {
            let columns = buckets.as_struct().columns();
            let begins = columns[0].as_primitive::<Int64Type>().values();
            let ends = columns[1].as_primitive::<Int64Type>().values();
            let counts = columns[2].as_primitive::<UInt64Type>().values();
            for ((begin, end), count) in begins.iter().zip(ends).zip(counts) {
                self.add(*begin, *end, *count)?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.to_list()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.to_list())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.len() * size_of::<(i64, i64, u64)>() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    fn doubling() -> Buckets {
        Buckets { counts: BTreeMap::new(), width: None }
    }

    #[test]
    fn buckets_double_away_from_zero() {
        let pairs = [
            (0, (0, 1)),
            (1, (1, 2)),
            (3, (2, 4)),
            (1000, (512, 1024)),
            (-1, (-1, 0)),
            (-3, (-3, -1)),
            (-4, (-7, -3)),
            (i64::MAX, (1 << 62, i64::MAX)),
        ];
        for (value, bounds) in pairs {
            assert_eq!(doubling().bounds(value), bounds, "{value}");
        }
        assert_eq!(doubling().bounds(i64::MIN).0, i64::MIN);
    }

    #[test]
    fn too_many_buckets_are_refused() {
        let mut buckets = Buckets { counts: BTreeMap::new(), width: Some(1) };
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..=MOST as i64));
        let error = buckets.update_batch(&[values]).unwrap_err().to_string();
        assert!(error.contains("larger width"), "{error}");
    }

    #[test]
    fn every_value_lies_in_one_bucket_and_all_are_counted() {
        let mut chance = Chance::new(3);
        for round in 0..300 {
            let values: Vec<i64> = (0..round).map(|_| chance.any_i64()).collect();
            let width = (round % 2 == 0).then(|| (1 << 56) + chance.below(1 << 60) as i64);
            let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
            let mut whole = Buckets { counts: BTreeMap::new(), width };
            whole.update_batch(std::slice::from_ref(&array)).unwrap();
            // In two halves and merged, as on two cores.
            let middle = values.len() / 2;
            let mut merged = Buckets { counts: BTreeMap::new(), width };
            for half in [array.slice(0, middle), array.slice(middle, values.len() - middle)] {
                let mut part = Buckets { counts: BTreeMap::new(), width };
                part.update_batch(&[half]).unwrap();
                let state = part.state().unwrap()[0].to_array().unwrap();
                merged.merge_batch(&[state]).unwrap();
            }
            assert_eq!(whole.counts, merged.counts);
            let sum: u64 = whole.counts.values().map(|(_, count)| count).sum();
            assert_eq!(sum, values.len() as u64);
            for (begin, (end, count)) in &whole.counts {
                let inside = |v: &&i64| *begin <= **v && (**v < *end || *end == i64::MAX);
                assert_eq!(values.iter().filter(inside).count() as u64, *count);
            }
            let bounds: Vec<_> = whole.counts.iter().map(|(b, (e, _))| (*b, *e)).collect();
            assert!(bounds.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
    }
}
