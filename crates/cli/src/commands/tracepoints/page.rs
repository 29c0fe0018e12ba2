// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat tracepoints` as tables for people, and as JSON.

use lateralis_analysis::tracepoints::Moments;
use lateralis_model::Quality;
use serde_json::{Value, json};

use super::{Cost, Unit};
use crate::colour::Role;
use crate::output::Page;
use crate::table::{Align, Table};
use crate::values;
use lateralis_store::tracepoints::{Gathered, Row};

/// Rows of a table before it is cut short; `--json` has all.
const ROWS: usize = 60;

/// A number with the digits that say something: at most two behind the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn cells(label: &str, moments: &Moments, scale: f64) -> Vec<String> {
    let percent = moments.stddev_percent();
    vec![
        label.to_owned(),
        values::count(moments.count),
        number(moments.min as f64 * scale),
        number(moments.max as f64 * scale),
        number(moments.mean * scale),
        number(moments.variance * scale * scale),
        number(moments.stddev * scale),
        percent.map_or(String::new(), |percent| format!("{percent:.1}%")),
    ]
}

fn table(first: &'static str) -> Table {
    use Align::{Left, Right};
    Table::new(&[
        (first, Left),
        ("samples", Right),
        ("min", Right),
        ("max", Right),
        ("mean", Right),
        ("variance", Right),
        ("std dev", Right),
        ("std dev %", Right),
    ])
}

/// What cycles are multiplied by; `None` where the row has no nanoseconds.
fn scale(row: &Row, unit: Unit) -> Option<f64> {
    match unit {
        Unit::Cycles => Some(1.0),
        Unit::Ns => row.nanos(1.0),
    }
}

fn rows(gathered: &Gathered, samples: Vec<Vec<i64>>, unit: Unit) -> Page {
    let mut table = table("tracepoint");
    for (row, mut samples) in gathered.rows.iter().zip(samples).take(ROWS) {
        if let (Some(moments), Some(scale)) = (Moments::of(&mut samples), scale(row, unit)) {
            table.row(cells(&row.label(), &moments, scale));
        }
    }
    let hidden = gathered.rows.len().saturating_sub(ROWS);
    let mut text = table.render();
    if hidden > 0 {
        line!(text, "  … {} more, all with --json", values::count(hidden as u64));
    }
    text
}

/// The page.
pub fn render(gathered: &Gathered, cost: Option<&Cost>, unit: Unit) -> Page {
    if gathered.rows.is_empty() {
        return Page::of_line(format_args!(
            "no tracepoints: no event of the trace begins or ends a span"
        ));
    }
    let mut page = Page::of_line(format_args!("{}", unit_line(gathered, unit)));
    page.page(&rows(gathered, gathered.cycles(), unit));
    if let Some(cost) = cost {
        let row = &gathered.rows[cost.rows.1];
        let scale = scale(row, unit).unwrap_or(1.0);
        page.gap();
        line!(page, "own cost");
        let mut table = table("");
        table.row(cells("total overhead", &cost.own.total, scale));
        table.row(cells("effective overhead", &cost.own.effective, scale));
        page.page(&table.render());
        line!(page, "  total: what a START and STOP add to the program");
        line!(page, "  effective: what they add to a measurement");
        if cost.own.unpaired > 0 {
            line!(
                page,
                "  {} of {} had not just one of {} inside, and are not counted here",
                values::count(cost.own.unpaired),
                gathered.rows[cost.rows.0].label(),
                row.label()
            );
        }
        page.gap();
        line!(page, "without the own cost");
        page.page(&rows(gathered, gathered.samples(|entry| cost.own.less(entry)), unit));
    }
    remarks(&mut page, gathered, unit);
    page
}

/// What the numbers are in.
fn unit_line(gathered: &Gathered, unit: Unit) -> String {
    let mut clocks: Vec<Option<u64>> = gathered.rows.iter().map(|row| row.frequency_hz).collect();
    clocks.sort_unstable();
    clocks.dedup();
    match (unit, clocks.as_slice()) {
        (Unit::Ns, _) => "in nanoseconds".to_owned(),
        (_, [Some(1_000_000_000)]) => "in cycles of a clock that counts nanoseconds".to_owned(),
        (_, [Some(hertz)]) => {
            format!("in cycles of a clock of {:.3} GHz", *hertz as f64 / 1e9)
        }
        (_, [None]) => "in cycles; how fast they went is not known: --frequency HZ".to_owned(),
        _ => "in cycles, of clocks that differ: --unit ns compares them".to_owned(),
    }
}

fn remarks(page: &mut Page, gathered: &Gathered, unit: Unit) {
    let mut text = Page::new();
    let odd = gathered.odd;
    for (count, what) in [
        (odd.stops, "STOP without a START before it: ignored"),
        (odd.restarts, "START while started: the later one counts"),
        (odd.open, "START that no STOP followed"),
        (odd.backwards, "STOP at a time before its START: 0 cycles"),
    ] {
        if count > 0 {
            line!(text, "  {} × {what}", values::count(count));
        }
    }
    for name in &gathered.joined {
        line!(text, "  {name} has too many keys: one row for all of them");
    }
    if unit == Unit::Ns && gathered.rows.iter().any(|row| row.frequency_hz.is_none()) {
        line!(text, "  left out: tracepoints whose clock has no known frequency: --frequency HZ");
    }
    if gathered.lossy {
        line!(text, "  ? events are missing: samples may be missing, or too long");
    }
    for damage in gathered.damage.iter().take(10) {
        text.line_as(Role::Problem, format_args!("  damage: {damage}"));
    }
    if !text.is_empty() {
        page.gap();
        page.page(&text);
    }
}

fn moments_json(moments: &Moments, row: &Row, quality: Quality) -> Value {
    // A count can only grow; all else could be anything.
    let of_count = if quality == Quality::Exact { quality } else { Quality::LowerBound };
    let mut value = json!({
        "count": moments.count,
        "count_quality": of_count.name(),
        "quality": quality.name(),
        "stddev_percent": moments.stddev_percent(),
    });
    let numbers = [
        ("mean", moments.mean),
        ("stddev", moments.stddev),
        ("quartile_1", moments.quartile_1),
        ("median", moments.median),
        ("quartile_3", moments.quartile_3),
    ];
    let whole = [("min", moments.min), ("max", moments.max), ("mode", moments.mode)];
    if let Some(object) = value.as_object_mut() {
        for (name, cycles) in numbers {
            object.insert(format!("{name}_cycles"), json!(cycles));
            object.insert(format!("{name}_ns"), json!(row.nanos(cycles)));
        }
        for (name, cycles) in whole {
            object.insert(format!("{name}_cycles"), json!(cycles));
            object.insert(format!("{name}_ns"), json!(row.nanos(cycles as f64)));
        }
        let (variance, square) = (moments.variance, row.nanos(1.0).map(|scale| scale * scale));
        object.insert("variance_cycles2".to_owned(), json!(variance));
        object.insert("variance_ns2".to_owned(), json!(square.map(|square| variance * square)));
    }
    value
}

/// Every number, in cycles and in nanoseconds where those are known.
pub fn to_json(gathered: &Gathered, cost: Option<&Cost>) -> Value {
    let table = |samples: Vec<Vec<i64>>| -> Vec<Value> {
        let rows = gathered.rows.iter().zip(samples).filter_map(|(row, mut samples)| {
            let mut value = moments_json(&Moments::of(&mut samples)?, row, row.quality);
            value["name"] = json!(row.name);
            value["key"] = json!(row.key);
            value["frequency_hz"] = json!(row.frequency_hz);
            Some(value)
        });
        rows.collect()
    };
    let odd = gathered.odd;
    let mut value = json!({
        "tracepoints": table(gathered.cycles()),
        "stops_without_start": odd.stops,
        "restarted": odd.restarts,
        "unfinished": odd.open,
        "backwards": odd.backwards,
        "damage": gathered.damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    if let Some(cost) = cost {
        let row = &gathered.rows[cost.rows.1];
        value["own_cost"] = json!({
            "outer": gathered.rows[cost.rows.0].label(),
            "inner": row.label(),
            "unpaired": cost.own.unpaired,
            "total": moments_json(&cost.own.total, row, row.quality),
            "effective": moments_json(&cost.own.effective, row, row.quality),
        });
        let less = gathered.samples(|entry| cost.own.less(entry));
        value["without_own_cost"] = json!(table(less));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        for (value, text) in [(18.0, "18"), (550.331, "550.33"), (-0.001, "0"), (1.5, "1.5")] {
            assert_eq!(number(value), text);
        }
    }
}
