// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow function`: how many instructions calls of a function execute, from the call to the return.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clap::Args;
use lateralis_analysis::filter::matches_pattern;
use lateralis_store::flow::executed;
use lateralis_store::places::Function;
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use super::numbers::{histogram, mean, rank};
use crate::colour::Role;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// Rows of the table before it is cut short; `--json` has all.
const ROWS: usize = 40;
/// Calls that are kept.
const CALLS_MAX: usize = 1 << 24;

/// Options of `lat flow function`.
#[derive(Debug, Args)]
#[command(
    after_help = "The instructions of a call include those of its callees and, if the kernel was \
    traced, of interrupts. \
    Calls whose beginning or end is missing are left out.\n\n\
    Examples:\n  \
    lat flow function parse perf.data\n  \
    lat flow function 'parse_*' --by-caller perf.data\n\n\
    Exit code 1: the function was not called, or there are gaps."
)]
pub struct FunctionArgs {
    /// Name of the function, with `*` and `?`
    #[arg(value_name = "FUNCTION")]
    pub function: String,
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Print one row per caller
    #[arg(long)]
    pub by_caller: bool,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Calls of a function, or those by one caller.
#[derive(Default)]
struct Row {
    lengths: Vec<u64>,
    /// Those whose beginning or end is missing.
    torn: u64,
}

/// A function, and who called it, by their numbers.
type Key = (u32, Option<u32>);

/// Shows the calls of a function.
pub fn run(args: &FunctionArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    let ((rows, functions, has_gaps), is_complete) =
        args.code.follow(&args.inputs, hardware, |recorded| {
            let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
            let mut kept = 0;
            // Names are known when all is decoded.
            let executed = executed(recorded, |_, _, call| {
                let key = (call.function, call.caller.filter(|_| args.by_caller));
                let row = rows.entry(key).or_default();
                match call.is_whole && kept < CALLS_MAX {
                    true => {
                        kept += 1;
                        row.lengths.push(call.instructions);
                    }
                    false => row.torn += 1,
                }
                ControlFlow::Continue(())
            });
            Ok((rows, recorded.functions().to_vec(), !executed.gaps.is_empty()))
        })?;
    let name = |function: u32| functions.get(function as usize).map_or("", |of| &of.name);
    let is_it = |key: &Key| matches_pattern(&args.function, name(key.0));
    let mut rows: Vec<(Key, Row)> = rows.into_iter().filter(|(key, _)| is_it(key)).collect();
    rows.iter_mut().for_each(|(_, row)| row.lengths.sort_unstable());
    let sum = |row: &Row| row.lengths.iter().map(|of| u128::from(*of)).sum::<u128>();
    rows.sort_by_cached_key(|(key, row)| (std::cmp::Reverse(sum(row)), *key));
    match args.json {
        true => output::print_json(&to_json(&rows, &functions))?,
        false => output::print(&page(args, &rows, &functions))?,
    }
    Ok(if rows.is_empty() || has_gaps || !is_complete {
        ExitStatus::Problems
    } else {
        ExitStatus::Fine
    })
}

fn page(args: &FunctionArgs, rows: &[(Key, Row)], functions: &[Function]) -> Page {
    let mut page = Page::new();
    if rows.is_empty() {
        line!(page, "no call of {}", args.function);
        return page;
    }
    let name = |function: u32| functions.get(function as usize).map_or("", |of| of.name.as_str());
    let mut head = vec![("function", Align::Left)];
    if args.by_caller {
        head.push(("called by", Align::Left));
    }
    head.extend(
        ["calls", "mean", "min", "p50", "p90", "p99", "max", "torn"].map(|of| (of, Align::Right)),
    );
    let mut table = Table::new(&head);
    for ((function, caller), Row { lengths, torn }) in rows.iter().take(ROWS) {
        let mut cells = vec![name(*function).to_owned()];
        if args.by_caller {
            cells.push(caller.map_or_else(|| "-".to_owned(), |caller| name(caller).to_owned()));
        }
        let of = |thousand| values::count(rank(lengths, thousand));
        cells.push(values::count(lengths.len() as u64));
        match lengths.first() {
            Some(least) => {
                cells.push(format!("{:.1}", mean(lengths)));
                cells.push(values::count(*least));
                cells.extend([500, 900, 990, 1000].map(of));
            }
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 6)),
        }
        cells.push(values::count(*torn));
        table.row(cells);
    }
    page.line_as(Role::Heading, format_args!("instructions of calls"));
    page.page(&table.render());
    if rows.len() > ROWS {
        line!(page, "  … {} more: --json has all", values::count((rows.len() - ROWS) as u64));
    }
    if let [(_, row)] = rows {
        page.gap();
        histogram(&mut page, &row.lengths);
    }
    page
}

fn to_json(rows: &[(Key, Row)], functions: &[Function]) -> Value {
    let name = |function: u32| functions.get(function as usize).map(|of| of.name.as_str());
    let rows = rows.iter().map(|((function, caller), Row { lengths, torn })| {
        let of = |thousand| (!lengths.is_empty()).then(|| rank(lengths, thousand));
        json!({
            "function": name(*function),
            "image": functions.get(*function as usize).map(|of| of.image.as_str()),
            "called_by": caller.and_then(name),
            "calls": lengths.len(),
            "torn": torn,
            "mean": (!lengths.is_empty()).then(|| mean(lengths)),
            "min": lengths.first(),
            "p50": of(500),
            "p90": of(900),
            "p99": of(990),
            "max": lengths.last(),
        })
    });
    json!({ "functions": rows.collect::<Vec<_>>() })
}
