// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many spans of which duration, and how durations grow with the number under way.

use lateralis_analysis::{Bucket, InFlightLevel, SpanKind};
use lateralis_model::Quality;
use lateralis_store::facts::Kind;
use serde_json::Value;

use super::mark::{Row, Trust, mark};
use super::page::{Page, Section};
use crate::table::{Align, Table};
use crate::values;

/// Columns of the longest bar.
const BAR: u64 = 40;

/// Durations by how many of the kind were open.
pub fn json(of: &SpanKind, trust: Trust) -> Vec<Value> {
    let level = |level: &InFlightLevel| {
        let d = &level.durations;
        let percentile = percentile(level, trust);
        Row::default()
            .plain("open_least", level.low)
            .plain("open_most", level.high)
            .number("count", d.count, trust.value)
            .number("min_ns", d.min, trust.value)
            .number("mean_ns", d.mean, trust.value)
            .number("median_ns", d.median, percentile)
            .number("p99_ns", d.p99, percentile)
            .number("max_ns", d.max, trust.value)
            .value()
    };
    of.in_flight().levels().iter().map(level).collect()
}

fn percentile(level: &InFlightLevel, trust: Trust) -> Quality {
    let rough = if level.durations.is_rough { Quality::LowerBound } else { Quality::Exact };
    trust.value.and(rough)
}

/// A chart and a table for each kind.
pub fn page(kinds: &[(usize, &Kind, &SpanKind)], page: &mut Page<'_>) {
    for (_, kind, of) in kinds.iter().take(page.rows) {
        let buckets = of.histogram().coarse();
        chart(&kind.name, &buckets, page);
        in_flight(&kind.name, &of.in_flight().levels(), page);
    }
}

fn chart(name: &str, buckets: &[Bucket], page: &mut Page<'_>) {
    use Align::{Left, Right};
    let value = page.trust.value;
    let mut table = Table::new(&[("from", Right), ("to", Right), ("count", Right), ("", Left)]);
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1);
    for bucket in buckets {
        let width = (u128::from(bucket.count) * u128::from(BAR)).div_ceil(u128::from(most));
        table.row([
            values::time(bucket.low),
            values::time(bucket.high),
            mark(values::count(bucket.count), value),
            "█".repeat(width as usize),
        ]);
    }
    page.table(Section::Latency, &format!("{name}: how many of which duration"), &table, 0);
}

fn in_flight(name: &str, levels: &[InFlightLevel], page: &mut Page<'_>) {
    use Align::Right;
    let mut table = Table::new(&[
        ("open at once", Right),
        ("count", Right),
        ("mean", Right),
        ("median", Right),
        ("p99", Right),
        ("max", Right),
    ]);
    for level in levels {
        let d = &level.durations;
        let (value, percentile) = (page.trust.value, percentile(level, page.trust));
        let time = |nanos, quality| mark(values::time(nanos), quality);
        table.row([
            match level.low == level.high {
                true => level.low.to_string(),
                false => format!("{} … {}", level.low, level.high),
            },
            mark(values::count(d.count), value),
            mark(values::mean_time(d.mean), value),
            time(d.median, percentile),
            time(d.p99, percentile),
            time(d.max, value),
        ]);
    }
    page.table(Section::Latency, &format!("{name} by how many were open"), &table, 0);
}
