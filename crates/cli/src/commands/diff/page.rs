// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat diff` as a page for people, and as JSON.

use std::path::PathBuf;

use lateralis_analysis::diff::Options;
use lateralis_model::Quality;
use serde_json::{Value, json};

use super::compare::{Comparison, Difference};
use super::gather::Of;
use crate::table::{Align, Table};
use crate::values;

/// Rows of a list before it is cut short; `--json` has all.
const ROWS: usize = 40;
/// Rows of what is only likely.
const LIKELY_ROWS: usize = 10;

/// Good and bad recordings.
pub type Paths<'a> = (&'a [PathBuf], &'a [PathBuf]);

/// The whole page.
pub fn render(paths: Paths<'_>, comparison: &Comparison, options: &Options) -> String {
    let names = |side: &[PathBuf]| {
        side.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    let mut page = format!("good  {}\nbad   {}\n", names(paths.0), names(paths.1));
    let percent = options.threshold * 100.0;
    let compared = values::counted(comparison.compared as u64, "number");
    if comparison.differences.is_empty() {
        page.push_str(&format!("\nno difference above {percent} %: {compared} compared\n"));
    }
    let part = |kinds: &[Of]| -> Vec<&Difference> {
        comparison.differences.iter().filter(|d| kinds.contains(&d.of)).collect()
    };
    durations(&mut page, "what takes another time", &part(&[Of::Own, Of::Message]), ROWS);
    durations(&mut page, "spans as a whole, with what is inside", &part(&[Of::Whole]), ROWS);
    durations(&mut page, "processor time of threads", &part(&[Of::Cpu]), ROWS);
    counts(&mut page, &part(&[Of::Count]));
    let likely: Vec<&Difference> =
        comparison.perhaps.iter().filter(|d| d.of != Of::Count).collect();
    durations(&mut page, "perhaps: more recordings of both would tell", &likely, LIKELY_ROWS);
    if comparison.differences.iter().any(|d| d.explained_ns != 0.0) {
        page.push_str(
            "\nshift: with 95 % confidence; time: of a run, that the shift stands for;\n\
             wrong: share of wrong ones among this row and those surer than it\n",
        );
    }
    for (side, is_lossy) in [("good", comparison.is_lossy.0), ("bad", comparison.is_lossy.1)] {
        if is_lossy {
            page.push_str(&format!(
                "\nevents of the {side} recordings are missing: only differences that the missing \
                 ones could not undo are told, marked ≥\n"
            ));
        }
    }
    page
}

fn durations(page: &mut String, title: &str, rows: &[&Difference], most: usize) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("what", Left),
        ("", Left),
        ("count", Right),
        ("", Left),
        ("before", Right),
        ("after", Right),
        ("shift", Right),
        ("", Left),
        ("time", Right),
        ("wrong", Right),
    ]);
    for row in rows.iter().take(most) {
        table.row([
            row.of.name().to_owned(),
            row.name.clone(),
            if row.of == Of::Cpu { String::new() } else { values::count(row.count.1 as u64) },
            row.what.name().to_owned(),
            values::time(row.shift.before as u64),
            values::time(row.shift.after as u64),
            shift(row),
            interval(row),
            signed_time(row.explained_ns),
            probability(row.probability),
        ]);
    }
    section(page, title, &table, rows.len().saturating_sub(most));
}

fn counts(page: &mut String, rows: &[&Difference]) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("event", Left),
        ("before", Right),
        ("after", Right),
        ("shift", Right),
        ("", Left),
        ("wrong", Right),
    ]);
    for row in rows.iter().take(ROWS) {
        table.row([
            row.name.clone(),
            values::count(row.count.0 as u64),
            values::count(row.count.1 as u64),
            shift(row),
            interval(row),
            probability(row.probability),
        ]);
    }
    section(page, "how often in a run", &table, rows.len().saturating_sub(ROWS));
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

fn percent(factor: f64) -> String {
    if factor >= 10.0 {
        return format!("×{factor:.0}");
    }
    format!("{:+.0} %", (factor - 1.0) * 100.0)
}

/// There is no factor from or to nothing.
fn new_or_gone(row: &Difference) -> Option<&'static str> {
    match (row.shift.before > 0.0, row.shift.after > 0.0) {
        (false, _) => Some("new"),
        (_, false) => Some("gone"),
        _ => None,
    }
}

fn shift(row: &Difference) -> String {
    if let Some(word) = new_or_gone(row) {
        return word.to_owned();
    }
    let least = if row.quality == Quality::Exact { "" } else { "≥ " };
    format!("{least}{}", percent(row.shift.ratio()))
}

fn interval(row: &Difference) -> String {
    if new_or_gone(row).is_some() {
        return String::new();
    }
    format!("{} … {}", percent(row.shift.factor.0), percent(row.shift.factor.1))
}

fn signed_time(nanos: f64) -> String {
    let sign = if nanos < 0.0 { "-" } else { "+" };
    format!("{sign}{}", values::time(nanos.abs() as u64))
}

fn probability(probability: f64) -> String {
    if probability < 0.001 { "< 0.1 %".to_owned() } else { format!("{:.1} %", probability * 100.0) }
}

/// The same as JSON; times in nanoseconds.
pub fn json(paths: Paths<'_>, comparison: &Comparison, options: &Options) -> Value {
    let names = |side: &[PathBuf]| {
        side.iter().map(|path| json!(path.display().to_string())).collect::<Vec<_>>()
    };
    let all = |list: &[Difference]| list.iter().map(difference).collect::<Vec<_>>();
    json!({
        "good": names(paths.0),
        "bad": names(paths.1),
        "threshold": options.threshold,
        "noise": options.noise,
        "error": options.error,
        "compared": comparison.compared,
        "good_is_lossy": comparison.is_lossy.0,
        "bad_is_lossy": comparison.is_lossy.1,
        "good_events_per_run": comparison.events.0,
        "bad_events_per_run": comparison.events.1,
        "good_seconds_per_run": comparison.seconds.0,
        "bad_seconds_per_run": comparison.seconds.1,
        "differences": all(&comparison.differences),
        "perhaps": all(&comparison.perhaps),
    })
}

fn difference(row: &Difference) -> Value {
    let of = if row.of == Of::Count { "" } else { "_ns" };
    let mut value = json!({
        "kind": row.of.name(),
        "name": row.name,
        "what": row.what.name(),
        "ratio": row.shift.ratio(),
        "ratio_least": row.shift.factor.0,
        "ratio_most": row.shift.factor.1,
        "probability": row.probability,
        "explained_ns": row.explained_ns,
        "quality": row.quality.name(),
    });
    if let Some(object) = value.as_object_mut() {
        object.insert(format!("before{of}"), json!(row.shift.before));
        object.insert(format!("after{of}"), json!(row.shift.after));
        if let Some(delta) = row.delta {
            object.insert("delta".to_owned(), json!(delta));
            object.insert("count_before".to_owned(), json!(row.count.0));
            object.insert("count_after".to_owned(), json!(row.count.1));
        }
    }
    // There is no number that is infinitely many times nothing.
    if let Some(ratio) = value.get_mut("ratio").filter(|_| row.shift.before == 0.0) {
        *ratio = Value::Null;
    }
    value
}
