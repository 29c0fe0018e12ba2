// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `percentile(x, p)`: exact, by nearest rank, as computed by the analyses of `lat`.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, Schema, UInt64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, Signature, Volatility,
};

/// Resolution of a percentage.
const PARTS: f64 = 1_000_000.0;

/// `percentile(x, p)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Percentile {
    signature: Signature,
}

impl Percentile {
    /// The function.
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// Type in which values of a type are stored; `None` if it is not numeric.
pub fn kept(given: &DataType) -> Option<DataType> {
    Some(match given {
        DataType::UInt64 => DataType::UInt64,
        given if given.is_integer() || given.is_null() => DataType::Int64,
        given if given.is_numeric() => DataType::Float64,
        DataType::Dictionary(_, value) => kept(value)?,
        _ => return None,
    })
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [x, p] = given else {
            return plan_err!("percentile takes two arguments: percentile(x, 99)");
        };
        match kept(x) {
            Some(kept) if p.is_numeric() => Ok(vec![kept, DataType::Float64]),
            _ => plan_err!("percentile(x, p) takes numbers, not {x} and {p}"),
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(given[0].clone())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        let name = format!("{}[values]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::List(Arc::new(item)), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("percentile counts every value: DISTINCT is not known to it");
        }
        let millionths = percent(&args)?;
        Ok(match args.expr_fields[0].data_type() {
            DataType::Int64 => Box::new(Values::<Int64Type>::new(millionths)),
            DataType::UInt64 => Box::new(Values::<UInt64Type>::new(millionths)),
            DataType::Float64 => Box::new(Values::<Float64Type>::new(millionths)),
            other => return exec_err!("percentile of {other}"),
        })
    }
}

/// The second argument in millionths of a percent, which must be the same for all rows.
fn percent(args: &AccumulatorArgs) -> Result<u64> {
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let value = match args.exprs[1].evaluate(&nothing) {
        Ok(ColumnarValue::Scalar(value)) => value.cast_to(&DataType::Float64)?,
        _ => return plan_err!("percentile(x, p): p must be a number, the same for all rows"),
    };
    match value {
        ScalarValue::Float64(Some(p)) if (0.0..=100.0).contains(&p) => {
            Ok((p * PARTS).round() as u64)
        }
        other => plan_err!("percentile(x, p): p goes from 0 to 100, not {other}"),
    }
}

/// Index of the nearest rank in `count` > 0 sorted values.
fn rank(count: usize, millionths: u64) -> usize {
    let all = 100 * PARTS as u128;
    let rank = (count as u128 * u128::from(millionths)).div_ceil(all);
    (rank.max(1) - 1) as usize
}

/// All values, because an exact percentile needs them.
#[derive(Debug)]
struct Values<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    millionths: u64,
}

impl<T: ArrowPrimitiveType> Values<T> {
    fn new(millionths: u64) -> Self {
        Self { values: Vec::new(), millionths }
    }

    fn push_all(&mut self, array: &ArrayRef) -> Result<()> {
        let array = cast(array, &T::DATA_TYPE)?;
        let array = array.as_primitive::<T>();
        if array.null_count() == 0 {
            self.values.extend_from_slice(array.values());
        } else {
            self.values.extend(array.iter().flatten());
        }
        Ok(())
    }
}

impl<T: ArrowPrimitiveType + Debug> Accumulator for Values<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.push_all(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.push_all(&list)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: PrimitiveArray<T> =
            PrimitiveArray::from_iter_values(std::mem::take(&mut self.values));
        Ok(vec![SingleRowListArrayBuilder::new(Arc::new(values)).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return ScalarValue::try_from(&T::DATA_TYPE);
        }
        let rank = rank(self.values.len(), self.millionths);
        let by_size = |a: &T::Native, b: &T::Native| -> Ordering { a.compare(*b) };
        let (_, value, _) = self.values.select_nth_unstable_by(rank, by_size);
        ScalarValue::new_primitive::<T>(Some(*value), &T::DATA_TYPE)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<T::Native>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use lateralis_analysis::Durations;

    #[test]
    fn percentiles_are_those_of_the_analyses() {
        let mut chance = Chance::new(2);
        for round in 1..300 {
            let nanos: Vec<u64> = (0..round * 7).map(|_| chance.below(1000)).collect();
            let mut durations = Durations::default();
            nanos.iter().for_each(|&nanos| durations.push(nanos));
            let expected = durations.distribution().unwrap();
            let of = |percent: f64| {
                let mut values = Values::<UInt64Type>::new((percent * PARTS).round() as u64);
                values.values = nanos.clone();
                match values.evaluate().unwrap() {
                    ScalarValue::UInt64(Some(value)) => value,
                    other => panic!("{other}"),
                }
            };
            assert_eq!(of(0.0), expected.min);
            assert_eq!(of(50.0), expected.median);
            assert_eq!(of(90.0), expected.p90);
            assert_eq!(of(99.0), expected.p99);
            assert_eq!(of(99.9), expected.p999);
            assert_eq!(of(100.0), expected.max);
        }
    }
}
