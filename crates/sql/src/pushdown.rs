// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Extracts conditions on time, CPU and event class from a `WHERE`, so that other packets and events need
//! not be decoded.
//!
//! The result is a superset: the engine applies every condition again. Conditions that are not understood
//! here have no effect.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator};
use lateralis_model::Interval;
use lateralis_units::Nanos;

/// Column with the time of an event, or the begin of an item with a duration.
pub const TIME: &str = "ts";
/// Column with the CPU.
pub const CPU: &str = "cpu";
/// Column with the event class.
pub const CLASS: &str = "class";

/// Necessary conditions on rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Range of `ts`, inclusive.
    pub interval: Interval,
    /// Possible values of `cpu`, ascending; `None` if unrestricted.
    pub cpus: Option<Vec<u32>>,
    /// Possible values of `class`, ascending; `None` if unrestricted.
    pub classes: Option<Vec<String>>,
}

impl Bounds {
    /// For conditions that all hold.
    pub fn of<'a>(conditions: impl IntoIterator<Item = &'a Expr>) -> Self {
        let mut bounds = Self::default();
        conditions.into_iter().for_each(|condition| bounds.add(condition));
        bounds
    }

    /// Whether a condition has an effect here.
    pub fn is_narrowed_by(condition: &Expr) -> bool {
        Self::of([condition]) != Self::default()
    }

    /// Adds a condition.
    fn add(&mut self, condition: &Expr) {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.add(left);
                self.add(right);
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                // The optimizer writes short lists as `cpu = 1 OR cpu = 2`.
                if let Some(cpus) = either(condition, &|bounds| bounds.cpus) {
                    narrow(&mut self.cpus, cpus);
                }
                if let Some(classes) = either(condition, &|bounds| bounds.classes) {
                    narrow(&mut self.classes, classes);
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let (Some(name), Some(value)) = (column(left), literal(right)) {
                    self.compare(name, *op, &value);
                } else if let (Some(value), Some(name)) = (literal(left), column(right))
                    && let Some(op) = op.swap()
                {
                    self.compare(name, op, &value);
                }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                if let Some(name) = column(expr) {
                    if let Some(low) = literal(low) {
                        self.compare(name, Operator::GtEq, &low);
                    }
                    if let Some(high) = literal(high) {
                        self.compare(name, Operator::LtEq, &high);
                    }
                }
            }
            Expr::InList(InList { expr, list, negated: false }) if column(expr) == Some(CPU) => {
                let numbers: Option<Vec<i128>> =
                    list.iter().map(|value| number(&literal(value)?)).collect();
                if let Some(numbers) = numbers {
                    let numbers = numbers.into_iter().filter_map(|n| n.try_into().ok());
                    narrow(&mut self.cpus, numbers.collect());
                }
            }
            Expr::InList(InList { expr, list, negated: false }) if column(expr) == Some(CLASS) => {
                let words: Option<Vec<String>> =
                    list.iter().map(|value| word(&literal(value)?)).collect();
                if let Some(words) = words {
                    narrow(&mut self.classes, words);
                }
            }
            _ => {}
        }
    }

    fn compare(&mut self, name: &str, op: Operator, value: &ScalarValue) {
        match name {
            TIME => self.compare_time(op, value),
            CPU => self.compare_cpu(op, value),
            CLASS if op == Operator::Eq => {
                if let Some(word) = word(value) {
                    narrow(&mut self.classes, vec![word]);
                }
            }
            _ => {}
        }
    }

    fn compare_time(&mut self, op: Operator, value: &ScalarValue) {
        let Some(value) = number(value) else { return };
        // Values beyond the ends of the timeline are clamped to them.
        let clamp = |value: i128| Nanos(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        let (begin, end) = match op {
            Operator::Eq => (Some(value), Some(value)),
            Operator::Gt => (Some(value + 1), None),
            Operator::GtEq => (Some(value), None),
            Operator::Lt => (None, Some(value - 1)),
            Operator::LtEq => (None, Some(value)),
            _ => return,
        };
        let interval = &mut self.interval;
        if let Some(begin) = begin.map(clamp) {
            interval.begin = Some(interval.begin.map_or(begin, |before| before.max(begin)));
        }
        if let Some(end) = end.map(clamp) {
            interval.end = Some(interval.end.map_or(end, |before| before.min(end)));
        }
    }

    fn compare_cpu(&mut self, op: Operator, value: &ScalarValue) {
        if op != Operator::Eq {
            return;
        }
        if let Some(cpu) = number(value) {
            // CPU numbers are 32-bit: a larger number matches none.
            narrow(&mut self.cpus, u32::try_from(cpu).into_iter().collect());
        }
    }
}

/// Intersection; sorted.
fn narrow<T: Ord>(known: &mut Option<Vec<T>>, mut new: Vec<T>) {
    new.sort_unstable();
    new.dedup();
    if let Some(before) = known {
        new.retain(|value| before.binary_search(value).is_ok());
    }
    *known = Some(new);
}

/// The values of `cpu = 1 OR cpu = 2 OR …`.
fn either<T>(condition: &Expr, of: &dyn Fn(Bounds) -> Option<Vec<T>>) -> Option<Vec<T>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut values = either(left, of)?;
            values.extend(either(right, of)?);
            Some(values)
        }
        other => of(Bounds::of([other])),
    }
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(Cast { expr, field }) if is_the_same(field.data_type()) => column(expr),
        _ => None,
    }
}

/// Whether a cast to this type preserves numbers and words.
fn is_the_same(to: &DataType) -> bool {
    match to {
        DataType::Dictionary(_, value) => is_the_same(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        to => to.is_integer(),
    }
}

fn literal(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => literal(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}

fn word(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Dictionary(_, value) => word(value),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(value) => (*value)?.into(),
        ScalarValue::Int16(value) => (*value)?.into(),
        ScalarValue::Int32(value) => (*value)?.into(),
        ScalarValue::Int64(value) => (*value)?.into(),
        ScalarValue::UInt8(value) => (*value)?.into(),
        ScalarValue::UInt16(value) => (*value)?.into(),
        ScalarValue::UInt32(value) => (*value)?.into(),
        ScalarValue::UInt64(value) => (*value)?.into(),
        ScalarValue::Dictionary(_, value) => number(value)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn interval(begin: Option<i64>, end: Option<i64>) -> Interval {
        Interval { begin: begin.map(Nanos), end: end.map(Nanos) }
    }

    #[test]
    fn comparisons_of_time_narrow_from_both_sides() {
        let both = col("ts").gt(lit(10_i64)).and(lit(20_i64).gt_eq(col("ts")));
        assert_eq!(Bounds::of([&both]).interval, interval(Some(11), Some(20)));
        let between = col("ts").between(lit(3_i64), lit(5_u32));
        assert_eq!(Bounds::of([&between]).interval, interval(Some(3), Some(5)));
        let (a, b) = (col("ts").lt(lit(7_i64)), col("ts").lt(lit(9_i64)));
        assert_eq!(Bounds::of([&a, &b]).interval, interval(None, Some(6)));
    }

    #[test]
    fn the_ends_of_the_time_line_do_not_wrap() {
        let above = col("ts").gt(lit(i64::MAX));
        assert_eq!(Bounds::of([&above]).interval, interval(Some(i64::MAX), None));
        let huge = col("ts").lt(lit(u64::MAX));
        assert_eq!(Bounds::of([&huge]).interval, interval(None, Some(i64::MAX)));
    }

    #[test]
    fn processors_are_intersected() {
        let list = col("cpu").in_list(vec![lit(3), lit(1), lit(-1)], false);
        let either = col("cpu").eq(lit(1)).or(col("cpu").eq(lit(2)));
        assert_eq!(Bounds::of([&list]).cpus, Some(vec![1, 3]));
        assert_eq!(Bounds::of([&either]).cpus, Some(vec![1, 2]));
        assert_eq!(Bounds::of([&list, &either]).cpus, Some(vec![1]));
    }

    #[test]
    fn kinds_of_events_are_intersected() {
        let list = col("class").in_list(vec![lit("b"), lit("a")], false);
        let either = col("class").eq(lit("a")).or(col("class").eq(lit("c")));
        let words = |words: &[&str]| Some(words.iter().map(|w| (*w).to_owned()).collect());
        assert_eq!(Bounds::of([&list]).classes, words(&["a", "b"]));
        assert_eq!(Bounds::of([&list, &either]).classes, words(&["a"]));
        let other = col("class").eq(lit("a")).or(col("cpu").eq(lit(1)));
        let negated = col("class").in_list(vec![lit("a")], true);
        let part = col("class").like(lit("a%"));
        for none in [other, negated, part, col("class").not_eq(lit("a"))] {
            assert!(!Bounds::is_narrowed_by(&none), "{none}");
        }
    }

    #[test]
    fn what_is_not_understood_prunes_nothing() {
        let others = [
            col("ts").not_eq(lit(1_i64)),
            col("ts").gt(lit(1_i64)).or(col("cpu").eq(lit(2))),
            col("cpu").eq(lit(1)).or(col("ts").eq(lit(2))),
            col("cpu").in_list(vec![lit(1)], true),
            col("ts").not_between(lit(1), lit(2)),
            col("x").eq(lit(1)),
            col("ts").gt(lit(1.5)),
            col("ts").gt(col("cpu")),
        ];
        for other in &others {
            assert!(!Bounds::is_narrowed_by(other), "{other}");
        }
    }
}
