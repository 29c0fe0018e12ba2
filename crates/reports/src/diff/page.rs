// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat diff` as a page for people, and as JSON.

use std::path::PathBuf;

use lateralis_analysis::diff::Options;
use lateralis_model::Quality;
use serde_json::{Value, json};

use lateralis_store::compared::{Comparison, Difference, Of};

use crate::page::{Page, Role};
use crate::stats::mark::{Row, legend, mark};
use crate::table::{Align, Table};
use crate::values;

/// Rows of a list before it is cut short; `--json` has all.
const ROWS: usize = 40;
/// Rows of what is only likely.
const LIKELY_ROWS: usize = 10;

/// Good and bad recordings.
pub type Paths<'a> = (&'a [PathBuf], &'a [PathBuf]);

/// The whole page.
pub fn render(paths: Paths<'_>, comparison: &Comparison, options: &Options) -> Page {
    let names = |side: &[PathBuf]| {
        side.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    let mut page = Page::new();
    line!(page, "good  {}", names(paths.0));
    line!(page, "bad   {}", names(paths.1));
    let percent = options.threshold * 100.0;
    let compared = values::counted(comparison.compared as u64, "number");
    if comparison.differences.is_empty() {
        page.gap();
        line!(page, "no difference above {percent} %: {compared} compared");
    }
    pace(&mut page, comparison, options);
    let part = |kinds: &[Of]| -> Vec<&Difference> {
        comparison.differences.iter().filter(|d| kinds.contains(&d.of)).collect()
    };
    durations(&mut page, "what takes another time", &part(&[Of::Own, Of::Message]), ROWS);
    durations(&mut page, "spans as a whole, with what is inside", &part(&[Of::Whole]), ROWS);
    durations(&mut page, "processor time of threads", &part(&[Of::Cpu]), ROWS);
    counts(&mut page, "how often in a run", &part(&[Of::Count]), ROWS);
    let perhaps = |is_it: &dyn Fn(&Difference) -> bool| -> Vec<&Difference> {
        comparison.perhaps.iter().filter(|row| is_it(row)).collect()
    };
    let needed = |row: &Difference| row.recordings_needed(options);
    if let Some(runs) = comparison.perhaps.iter().find_map(needed) {
        let title = format!(
            "not enough recordings: what waits, or happens once, varies between them; record {runs} of both"
        );
        durations(&mut page, &title, &perhaps(&|row| needed(row).is_some()), LIKELY_ROWS);
    }
    let likely = perhaps(&|row| row.of != Of::Count && needed(row).is_none());
    durations(&mut page, "perhaps: more recordings of both would tell", &likely, LIKELY_ROWS);
    let likely = perhaps(&|row| row.of == Of::Count);
    counts(&mut page, "perhaps more or less often", &likely, LIKELY_ROWS);
    if comparison.differences.iter().any(|d| d.explained_ns != 0.0) {
        page.gap();
        line!(page, "shift: with 95 % confidence; time: of a run, that the shift stands for;");
        line!(page, "wrong: share of wrong ones among this row and those surer than it");
    }
    for (side, is_lossy) in [("good", comparison.is_lossy.0), ("bad", comparison.is_lossy.1)] {
        if is_lossy {
            page.gap();
            page.line_as(
                Role::Problem,
                format_args!(
                    "events of the {side} recordings are missing: only differences that the \
                     missing ones could not undo are told"
                ),
            );
        }
    }
    if comparison.is_lossy.0 || comparison.is_lossy.1 {
        legend(&mut page);
    }
    page
}

fn durations(page: &mut Page, title: &str, rows: &[&Difference], most: usize) {
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
            match row.of {
                Of::Cpu => String::new(),
                _ => mark(values::count(row.count.1 as u64), row.quality),
            },
            row.what.name().to_owned(),
            mark(values::time(row.shift.before as u64), value(row)),
            mark(values::time(row.shift.after as u64), value(row)),
            shift(row),
            interval(row),
            mark(signed_time(row.explained_ns), value(row)),
            probability(row.probability),
        ]);
    }
    section(page, title, &table, rows.len().saturating_sub(most));
}

fn counts(page: &mut Page, title: &str, rows: &[&Difference], most: usize) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("event", Left),
        ("before", Right),
        ("after", Right),
        ("shift", Right),
        ("", Left),
        ("wrong", Right),
    ]);
    for row in rows.iter().take(most) {
        table.row([
            row.name.clone(),
            mark(values::count(row.count.0 as u64), row.quality),
            mark(values::count(row.count.1 as u64), row.quality),
            shift(row),
            interval(row),
            probability(row.probability),
        ]);
    }
    section(page, title, &table, rows.len().saturating_sub(most));
}

fn section(page: &mut Page, title: &str, table: &Table, hidden: usize) {
    if table.is_empty() {
        return;
    }
    page.gap();
    page.line_as(Role::Heading, format_args!("{title}"));
    page.page(&table.render());
    if hidden > 0 {
        line!(page, "  … {} more, all with --json", values::count(hidden as u64));
    }
}

/// What all durations have in common, where that is as much as a difference would be.
fn pace(page: &mut Page, comparison: &Comparison, options: &Options) {
    let Some(pace) = comparison.pace else {
        return;
    };
    if pace.factor.ln().abs() < options.threshold.ln_1p() {
        return;
    }
    let (all, least) = (percent(pace.factor), percent(pace.interval.0));
    let most = percent(pace.interval.1);
    let (first, second) = match pace.is_program {
        true => {
            ("more than machines differ by between", "recordings, so it is taken for the program")
        }
        false => (
            "taken for the machine, and shifts are told",
            "beside it; record several of both in turn to know whether it is the program",
        ),
    };
    page.gap();
    line!(page, "everything together takes {all} ({least} … {most}): {first}");
    line!(page, "{second}");
}

fn percent(factor: f64) -> String {
    if factor >= 10.0 {
        return format!("×{factor:.0}");
    }
    format!("{:+.0} %", (factor - 1.0) * 100.0)
}

/// How far numbers of what was recorded can be trusted.
fn value(row: &Difference) -> Quality {
    if row.quality == Quality::Exact { Quality::Exact } else { Quality::Unknown }
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
    match new_or_gone(row) {
        Some(word) => mark(word.to_owned(), value(row)),
        None => mark(percent(row.shift.ratio()), value(row)),
    }
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
    let all =
        |list: &[Difference]| list.iter().map(|row| difference(row, options)).collect::<Vec<_>>();
    let (good, bad) = comparison.is_lossy;
    let of = |is_lossy: bool| if is_lossy { Quality::LowerBound } else { Quality::Exact };
    Row::default()
        .plain("good", names(paths.0))
        .plain("bad", names(paths.1))
        .plain("threshold", options.threshold)
        .plain("noise", options.noise)
        .plain("error", options.error)
        .number("compared", comparison.compared, of(good || bad))
        .plain("good_is_lossy", good)
        .plain("bad_is_lossy", bad)
        .number("good_events_per_run", comparison.events.0, of(good))
        .number("bad_events_per_run", comparison.events.1, of(bad))
        .number("good_seconds_per_run", comparison.seconds.0, of(good))
        .number("bad_seconds_per_run", comparison.seconds.1, of(bad))
        .plain("pace", comparison.pace.map(|pace| pace.factor))
        .plain("pace_least", comparison.pace.map(|pace| pace.interval.0))
        .plain("pace_most", comparison.pace.map(|pace| pace.interval.1))
        .plain("pace_probability", comparison.pace.map(|pace| pace.probability))
        .plain("pace_is_program", comparison.pace.map(|pace| pace.is_program))
        .plain("differences", all(&comparison.differences))
        .plain("perhaps", all(&comparison.perhaps))
        .value()
}

fn difference(row: &Difference, options: &Options) -> Value {
    let of = if row.of == Of::Count { "" } else { "_ns" };
    let sum = if row.of == Of::Count || row.of == Of::Cpu { row.quality } else { value(row) };
    // There is no number that is infinitely many times nothing.
    let ratio = (row.shift.before != 0.0).then(|| row.shift.ratio());
    let value = value(row);
    let mut json = Row::default()
        .plain("kind", row.of.name())
        .plain("name", row.name.as_str())
        .plain("what", row.what.name())
        .number("ratio", ratio, value)
        .number("ratio_least", row.shift.factor.0, value)
        .number("ratio_most", row.shift.factor.1, value)
        .number("probability", row.probability, value)
        .number("explained_ns", row.explained_ns, value)
        .plain("pace", row.shift.pace)
        .plain("quality", value.name())
        .plain("recordings_needed", row.recordings_needed(options))
        .number(&format!("before{of}"), row.shift.before, sum)
        .number(&format!("after{of}"), row.shift.after, sum);
    if let Some(delta) = row.delta {
        json = json
            .number("delta", delta, value)
            .number("count_before", row.count.0, row.quality)
            .number("count_after", row.count.1, row.quality);
    }
    json.value()
}
