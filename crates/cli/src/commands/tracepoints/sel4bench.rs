// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON in the format of the sel4bench program: a list of benchmarks, each with rows.
//!
//! Statistics have the names that seL4 uses; an additional column identifies each row. If the cost of tracing
//! is known, each benchmark is listed twice, the second time without that cost.

use std::collections::BTreeMap;

use lateralis_analysis::tracepoints::Moments;
use serde_json::{Map, Value, json};

use super::{Cost, Unit};
use lateralis_store::tracepoints::{Gathered, Row};

/// Returns one benchmark for each name. Rows whose clock has no known frequency have no nanoseconds and are
/// omitted in that unit.
pub fn to_json(gathered: &Gathered, cost: Option<&Cost>, unit: Unit) -> Value {
    let ending = match unit {
        Unit::Cycles => "",
        Unit::Ns => " (ns)",
    };
    let mut list = benchmarks(gathered, gathered.cycles(), unit, ending);
    if let Some(cost) = cost {
        let less = gathered.samples(|entry| cost.own.less(entry));
        let ending = format!(" without own cost{ending}");
        list.extend(benchmarks(gathered, less, unit, &ending));
    }
    Value::Array(list)
}

fn benchmarks(gathered: &Gathered, samples: Vec<Vec<i64>>, unit: Unit, ending: &str) -> Vec<Value> {
    let mut by_name: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (row, samples) in gathered.rows.iter().zip(samples) {
        let samples = match unit {
            Unit::Cycles => Some(samples),
            Unit::Ns => nanos(row, &samples),
        };
        if let Some(value) = samples.and_then(|samples| result(row, samples)) {
            by_name.entry(&row.name).or_default().push(value);
        }
    }
    let title = |name: &str| format!("{name}{ending}");
    let all = by_name.into_iter();
    all.map(|(name, results)| json!({ "Benchmark": title(name), "Results": results })).collect()
}

/// Converts to whole nanoseconds: samples of sel4bench are integers.
fn nanos(row: &Row, samples: &[i64]) -> Option<Vec<i64>> {
    let of = |sample: &i64| Some(row.nanos(*sample as f64)?.round() as i64);
    samples.iter().map(of).collect()
}

fn result(row: &Row, samples: Vec<i64>) -> Option<Value> {
    let moments = Moments::of(&mut samples.clone())?;
    let mut value = Map::new();
    if !row.key.is_empty() {
        value.insert("Tracepoint".to_owned(), json!(row.key));
    }
    let thousandths = |value: f64| (value * 1000.0).round() / 1000.0;
    for (name, number) in [
        ("Min", json!(moments.min)),
        ("Max", json!(moments.max)),
        ("Mean", json!(moments.mean)),
        ("Stddev", json!(thousandths(moments.stddev))),
        ("Variance", json!(moments.variance)),
        ("Mode", json!(moments.mode as f64)),
        ("Median", json!(moments.median)),
        ("1st quantile", json!(moments.quartile_1)),
        ("3rd quantile", json!(moments.quartile_3)),
        ("Samples", json!(moments.count)),
        ("Raw results", json!(samples)),
    ] {
        value.insert(name.to_owned(), number);
    }
    Some(Value::Object(value))
}
