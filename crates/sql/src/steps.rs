// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time steps of expressions: `ts / 1000000` is the same for all times of a millisecond.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator};
use lateralis_store::Step;

use crate::functions::parse_nanos;
use crate::pushdown::TIME;

/// An expression distinguishes all times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TellsTimes;

/// The time steps in which all of these expressions are constant; `None` if they do not depend on the
/// time. Expressions may use other columns freely.
///
/// Errors: one of them distinguishes all times, or its steps are not compatible with those of another.
pub fn of<'a>(expressions: impl IntoIterator<Item = &'a Expr>) -> Result<Option<Step>, TellsTimes> {
    let mut all: Option<Step> = None;
    for expression in expressions {
        let mut fits = true;
        let walked = expression.apply(|part| {
            if let Some(step) = step(part) {
                let both = all.map_or(Some(step), |before| common(before, step));
                fits &= both.is_some();
                all = both.or(all);
                return Ok(TreeNodeRecursion::Jump);
            }
            fits &= !is_time(part);
            Ok(TreeNodeRecursion::Continue)
        });
        if !fits || walked.is_err() {
            return Err(TellsTimes);
        }
    }
    Ok(all)
}

/// Whether a condition on the time can be passed to the store unchanged: a comparison with a number, or
/// two at once.
pub fn is_interval(condition: &Expr) -> bool {
    let is_number = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Int64(Some(_)), _));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            is_interval(left) && is_interval(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            use Operator::{Eq, Gt, GtEq, Lt, LtEq};
            matches!(op, Eq | Gt | GtEq | Lt | LtEq)
                && ((is_time(left) && is_number(right)) || (is_number(left) && is_time(right)))
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            is_time(expr) && is_number(low) && is_number(high)
        }
        _ => false,
    }
}

/// Steps in which two expressions are constant.
fn common(a: Step, b: Step) -> Option<Step> {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (a.begin_ns == b.begin_ns).then(|| Step { length_ns: gcd(a.length_ns, b.length_ns), ..a })
}

/// The steps of an expression in which the time occurs only in this form.
fn step(expr: &Expr) -> Option<Step> {
    match expr {
        // Division rounds towards zero: around it, two steps are one.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) => {
            Some(Step { length_ns: integer(right)?.checked_abs()?, begin_ns: shift(left)? })
                .filter(|step| step.length_ns > 0)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => match right.as_ref() {
            Expr::BinaryExpr(BinaryExpr { left: time, op: Operator::Modulo, right }) => {
                let length_ns = integer(right)?.checked_abs().filter(|length| *length > 0)?;
                (left == time).then_some(Step { length_ns, begin_ns: shift(time)? })
            }
            _ => None,
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), &args[..]) {
            ("time_bucket", [width, time]) => {
                let length_ns = match literal(width)? {
                    ScalarValue::Utf8(Some(text)) => parse_nanos(text).ok()?,
                    ScalarValue::Int64(Some(width)) => *width,
                    _ => return None,
                };
                let begin_ns = shift(time)?;
                (length_ns > 0).then_some(Step { length_ns, begin_ns })
            }
            ("date_trunc", [unit, moment]) => {
                let ScalarValue::Utf8(Some(unit)) = literal(unit)? else { return None };
                let length_ns = match unit.to_ascii_lowercase().as_str() {
                    "microsecond" => 1_000,
                    "millisecond" => 1_000_000,
                    "second" => 1_000_000_000,
                    "minute" => 60_000_000_000,
                    "hour" => 3_600_000_000_000,
                    _ => return None,
                };
                is_moment(moment).then_some(Step { length_ns, begin_ns: 0 })
            }
            ("date_bin", [stride, moment]) => {
                let ScalarValue::IntervalMonthDayNano(Some(stride)) = literal(stride)? else {
                    return None;
                };
                let length_ns = stride.nanoseconds;
                let is_plain = stride.months == 0 && stride.days == 0 && length_ns > 0;
                (is_plain && is_moment(moment)).then_some(Step { length_ns, begin_ns: 0 })
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == TIME)
}

/// The number subtracted from the time in `ts - 5`.
fn shift(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => {
            shift(left)?.checked_add(integer(right)?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) => {
            shift(left)?.checked_sub(integer(right)?)
        }
        _ => is_time(expr).then_some(0),
    }
}

/// Whether an expression is the time, as a date.
fn is_moment(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            func.name() == "to_timestamp_nanos" && matches!(&args[..], [time] if is_time(time))
        }
        Expr::Cast(Cast { expr, field }) => {
            let to = field.data_type();
            matches!(to, DataType::Timestamp(TimeUnit::Nanosecond, None)) && is_time(expr)
        }
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn integer(expr: &Expr) -> Option<i64> {
    match literal(expr)? {
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn step(length_ns: i64, begin_ns: i64) -> Result<Option<Step>, TellsTimes> {
        Ok(Some(Step { length_ns, begin_ns }))
    }

    #[test]
    fn steps_are_those_in_which_nothing_changes() {
        assert_eq!(of(&[col("ts") / lit(1000_i64)]), step(1000, 0));
        assert_eq!(of(&[(col("ts") - lit(7_i64)) / lit(-10_i64)]), step(10, 7));
        assert_eq!(of(&[(col("ts") + lit(7_i64)) / lit(10_i64) * lit(3_i64)]), step(10, -7));
        assert_eq!(of(&[col("ts") - col("ts") % lit(50_i64)]), step(50, 0));
        assert_eq!(of(&[col("ts") / lit(6_i64), col("ts") / lit(4_i64), col("cpu")]), step(2, 0));
        assert_eq!(of(&[col("cpu"), col("class")]), Ok(None));
    }

    #[test]
    fn what_tells_times_apart_has_no_steps() {
        let apart = [
            col("ts"),
            col("ts") % lit(1000_i64),
            col("ts") / lit(0_i64),
            col("ts") / lit(i64::MIN),
            col("ts") / lit(1000.0),
            col("ts") / col("cpu"),
            (col("ts") - col("cpu")) / lit(10_i64),
            col("ts") / lit(10_i64) + col("ts"),
            (col("ts") + lit(i64::MIN) - lit(i64::MAX)) / lit(10_i64),
            col("ts") - col("cpu") % lit(50_i64),
        ];
        for expression in apart {
            assert_eq!(of([&expression]), Err(TellsTimes), "{expression}");
        }
        let shifted = (col("ts") - lit(1_i64)) / lit(10_i64);
        assert_eq!(of(&[shifted, col("ts") / lit(10_i64)]), Err(TellsTimes));
    }

    #[test]
    fn intervals_are_comparisons_with_numbers() {
        let both = col("ts").gt_eq(lit(1_i64)).and(lit(5_i64).gt(col("ts")));
        for condition in [both, col("ts").between(lit(1_i64), lit(2_i64)), col("ts").eq(lit(1_i64))]
        {
            assert!(is_interval(&condition), "{condition}");
        }
        let other = [
            col("ts").not_eq(lit(1_i64)),
            col("cpu").eq(lit(1_i64)),
            col("ts").gt(lit(1.5)),
            col("ts").gt(lit(1_i64)).or(col("ts").lt(lit(0_i64))),
            col("ts").not_between(lit(1_i64), lit(2_i64)),
            (col("ts") + lit(1_i64)).gt(lit(1_i64)),
            col("ts").gt(lit(ScalarValue::Int64(None))),
        ];
        for condition in other {
            assert!(!is_interval(&condition), "{condition}");
        }
    }
}
