// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat xml` as tables: time in states, durations of segments.

use std::collections::BTreeMap;
use std::path::Path;

use lateralis_analysis::{Durations, Gaps};
use lateralis_model::{Damage, Quality};
use lateralis_tmfxml::{Analysis, File, Found, Severity};

use super::{gaps, pass};
use crate::colour::Role;
use crate::output::Page;
use crate::selection::Selected;
use crate::table::{Align, Table};
use crate::values;

/// Rows of a table before it is cut short; `--json` has all.
const ROWS: usize = 60;
/// Rows that are summed up: values may be as many as events.
const SUMS: usize = 100_000;

/// What is wrong with the file, one line each.
pub fn problems(path: &Path, file: &File) -> Page {
    let mut text = Page::new();
    for problem in &file.problems {
        let word = match problem.severity {
            Severity::Note => "note",
            Severity::Error => "error",
        };
        line!(text, "{word}: {}: {problem}", path.display());
    }
    if file.has_errors() {
        line!(text, "an analysis with an error in it is not run");
    }
    if !text.is_empty() {
        text.gap();
    }
    text
}

/// Time in one state of one attribute.
#[derive(Default)]
struct InState {
    count: u64,
    nanos: u64,
    longest: u64,
    quality: Quality,
}

#[derive(Default)]
struct Sums {
    states: BTreeMap<(String, String), InState>,
    segments: BTreeMap<String, (Durations, Quality)>,
    /// States and segments of rows beyond those that are summed up.
    beyond: u64,
}

impl Sums {
    fn add(&mut self, found: &Found, gaps: &Gaps) {
        match found {
            Found::State(state) => {
                let key = (state.path.join("/"), state.value.to_string());
                if self.states.len() >= SUMS && !self.states.contains_key(&key) {
                    self.beyond += 1;
                    return;
                }
                let sum = self.states.entry(key).or_default();
                let nanos = state.end.since(state.begin).max(0) as u64;
                sum.count += 1;
                sum.nanos = sum.nanos.saturating_add(nanos);
                sum.longest = sum.longest.max(nanos);
                sum.quality = sum.quality.and(gaps.of_value(state.begin, state.end));
            }
            Found::Segment(segment) => {
                if self.segments.len() >= SUMS && !self.segments.contains_key(&segment.name) {
                    self.beyond += 1;
                    return;
                }
                let (durations, quality) = self.segments.entry(segment.name.clone()).or_default();
                durations.push(segment.end.since(segment.begin).max(0) as u64);
                *quality = quality.and(gaps.of_value(segment.begin, segment.end));
            }
        }
    }
}

/// One part for each analysis.
///
/// Cost: a pass over all events for each; memory by rows, and 8 bytes for each segment.
pub fn render(analyses: &[&Analysis], source: &Selected<'_>, damage: &mut Vec<Damage>) -> Page {
    let gaps = gaps(source);
    let mut page = Page::new();
    for analysis in analyses {
        let mut sums = Sums::default();
        let left_out = pass(analysis, source, damage, &mut |found| {
            sums.add(found, &gaps);
            Ok(())
        });
        if !page.is_empty() {
            page.gap();
        }
        line!(page, "{} ({})", analysis.label, analysis.id);
        if sums.states.is_empty() && sums.segments.is_empty() {
            line!(page, "  finds nothing in this trace");
        }
        let doubtful = states(&mut page, &sums) | segments(&mut page, &mut sums);
        if doubtful {
            line!(page, "  ? events are missing inside: the numbers could be anything");
        }
        if sums.beyond > 0 {
            line!(page, "  {} more are in no row", values::count(sums.beyond));
        }
        // It cannot fail: nothing is written on the way.
        for sentence in left_out.unwrap_or_default() {
            line!(page, "  left out {sentence}");
        }
    }
    for damage in damage.iter().take(10) {
        page.line_as(Role::Problem, format_args!("damage: {damage}"));
    }
    page
}

fn mark(quality: Quality) -> String {
    if quality == Quality::Exact { String::new() } else { "?".to_owned() }
}

fn hidden(page: &mut Page, rows: usize) {
    let hidden = rows.saturating_sub(ROWS);
    if hidden > 0 {
        line!(page, "  … {} more, all with --json", values::count(hidden as u64));
    }
}

/// Whether one of the rows shown is doubtful.
fn states(page: &mut Page, sums: &Sums) -> bool {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("attribute", Left),
        ("state", Left),
        ("count", Right),
        ("total", Right),
        ("longest", Right),
        ("", Left),
    ]);
    let mut doubtful = false;
    for ((path, value), sum) in sums.states.iter().take(ROWS) {
        doubtful |= sum.quality != Quality::Exact;
        let (total, longest) = (values::time(sum.nanos), values::time(sum.longest));
        let count = values::count(sum.count);
        table.row([path.clone(), value.clone(), count, total, longest, mark(sum.quality)]);
    }
    if !table.is_empty() {
        page.page(&table.render());
        hidden(page, sums.states.len());
    }
    doubtful
}

fn segments(page: &mut Page, sums: &mut Sums) -> bool {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("segment", Left),
        ("count", Right),
        ("total", Right),
        ("min", Right),
        ("mean", Right),
        ("median", Right),
        ("p99", Right),
        ("max", Right),
        ("", Left),
    ]);
    let mut doubtful = false;
    for (name, (durations, quality)) in sums.segments.iter_mut().take(ROWS) {
        let Some(d) = durations.distribution() else { continue };
        doubtful |= *quality != Quality::Exact;
        let mut row = vec![name.clone(), values::count(d.count)];
        row.extend([d.total, d.min].map(values::time));
        row.push(values::mean_time(d.mean));
        row.extend([d.median, d.p99, d.max].map(values::time));
        row.push(mark(*quality));
        table.row(row);
    }
    if !table.is_empty() {
        page.page(&table.render());
        hidden(page, sums.segments.len());
    }
    doubtful
}
