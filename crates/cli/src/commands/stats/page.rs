// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats` as a page for people.

use std::cmp::Reverse;

use lateralis_analysis::{LossTotal, Tally};

use super::gather::Statistics;
use crate::date;
use crate::table::{Align, Table};
use crate::values;
use lateralis_store::Recording;

/// Rows of a list before it is cut short; `--json` has all.
const ROWS: usize = 60;

/// The whole page.
pub fn render(recording: &Recording, statistics: &Statistics) -> String {
    let over = statistics.total.span_nanos();
    let rate = statistics
        .total
        .rate(over)
        .map_or(String::new(), |rate| format!(", {}", values::rate(rate)));
    let mut page = format!(
        "{} in {}{rate}\n",
        values::counted(statistics.total.count, "event"),
        values::time(over.max(0) as u64),
    );
    spans(&mut page, statistics);
    budgets(&mut page, statistics);
    events(&mut page, statistics);
    losses(&mut page, recording, statistics);
    if !statistics.damage.is_empty() {
        page.push_str("\ndamage: the numbers above are of what could be read\n");
        for damage in statistics.damage.iter().take(10) {
            page.push_str(&format!("  {damage}\n"));
        }
        let more = statistics.damage.len().saturating_sub(10);
        if more > 0 {
            page.push_str(&format!("  … {more} more, see `lat info`\n"));
        }
    }
    page
}

fn section(page: &mut String, title: &str, table: &Table, hidden: usize) {
    if table.is_empty() {
        return;
    }
    page.push_str(&format!("\n{title}\n{}", table.render()));
    if hidden > 0 {
        page.push_str(&format!("  … {} more, all with --json\n", values::count(hidden as u64)));
    }
}

fn spans(page: &mut String, statistics: &Statistics) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("span", Left),
        ("count", Right),
        ("min", Right),
        ("mean", Right),
        ("median", Right),
        ("p90", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("max", Right),
        ("unfinished", Right),
        ("orphans", Right),
    ]);
    for span in statistics.spans.iter().take(ROWS) {
        let mut row = vec![span.name.clone()];
        match span.durations {
            Some(d) => {
                row.push(values::count(d.count));
                let times = [d.min, d.mean, d.median, d.p90, d.p99, d.p999, d.max];
                row.extend(times.map(values::time));
            }
            None => {
                row.push("0".to_owned());
                row.resize(9, String::new());
            }
        }
        row.push(values::count(span.unfinished));
        row.push(values::count(span.orphans));
        table.row(row);
    }
    section(page, "spans", &table, statistics.spans.len().saturating_sub(ROWS));
    let (unfinished, orphans) = statistics
        .spans
        .iter()
        .fold((0, 0), |(u, o), span| (u + span.unfinished, o + span.orphans));
    if unfinished + orphans > 0 {
        page.push_str(
            "  unfinished: begun and not ended in the trace; orphans: ended and not begun\n",
        );
    }
    if unfinished + orphans > 0 && !statistics.losses.is_empty() {
        page.push_str("  events were lost: their other halves may be among them\n");
    }
}

fn budgets(page: &mut String, statistics: &Statistics) {
    let mut table =
        Table::new(&[("budget", Align::Left), ("measured", Align::Right), ("", Align::Left)]);
    for budget in &statistics.budgets {
        table.row([
            budget.text.clone(),
            budget.measured_ns.map_or("nothing".to_owned(), values::time),
            match budget.kept {
                Some(true) => "kept",
                Some(false) => "EXCEEDED",
                None => "not measured",
            }
            .to_owned(),
        ]);
    }
    section(page, "budgets", &table, 0);
}

fn events(page: &mut String, statistics: &Statistics) {
    let over = statistics.total.span_nanos();
    let mut table =
        Table::new(&[("event", Align::Left), ("count", Align::Right), ("rate", Align::Right)]);
    let mut classes: Vec<(&String, &Tally)> = statistics.classes.iter().collect();
    classes.sort_by_key(|(name, tally)| (Reverse(tally.count), name.as_str()));
    for (name, tally) in classes.iter().take(ROWS) {
        let name = if name.is_empty() { "(no name)" } else { name.as_str() };
        let rate = tally.rate(over).map_or(String::new(), values::rate);
        table.row([name.to_owned(), values::count(tally.count), rate]);
    }
    section(page, "events", &table, classes.len().saturating_sub(ROWS));
}

fn losses(page: &mut String, recording: &Recording, statistics: &Statistics) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("stream", Left),
        ("cause", Left),
        ("count", Right),
        ("from", Left),
        ("to", Left),
    ]);
    let streams = &recording.streams;
    let name = |total: &LossTotal| {
        let stream = total.stream.and_then(|index| streams.get(index.0 as usize));
        stream.map_or(String::new(), |stream| stream.name.clone())
    };
    for total in statistics.losses.iter().take(ROWS) {
        let least = if total.is_lower_bound { "≥ " } else { "" };
        table.row([
            name(total),
            total.cause.to_string(),
            format!("{least}{}", values::count(total.count)),
            total.interval.begin.map_or("?".to_owned(), date::text),
            total.interval.end.map_or("?".to_owned(), date::text),
        ]);
    }
    section(page, "losses", &table, statistics.losses.len().saturating_sub(ROWS));
}
