// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow coverage`: executed code, with execution counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use lateralis_analysis::filter::matches_pattern;
use lateralis_model::terminal;
use lateralis_store::flow::{Coverage, coverage};
use lateralis_store::places::Function;
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// Number of rows printed in the table; `--format json` has all rows.
const ROWS: usize = 40;

/// Options of `lat flow coverage`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only executed lines are listed. Lines need debug information in the programs or \
    separate debug \
    files. The count of a line is that of its most often executed instruction.\n\n\
    Examples:\n  \
    lat flow coverage perf.data\n  \
    lat flow coverage perf.data --format lcov > flow.info; genhtml flow.info -o html\n\n\
    Exit code 1: gaps hide some of it, or packets are missing."
)]
pub struct CoverageArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Only images whose path matches, with `*` and `?`
    #[arg(long, value_name = "PATTERN")]
    pub image: Option<String>,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Output format; lcov is the input of lcov and genhtml
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Functions
    Text,
    /// Functions and lines
    Json,
    /// Lines and functions of each file of source
    Lcov,
}

/// Prints the executed code.
pub fn run(args: &CoverageArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    let ((found, functions), is_complete) =
        args.code.follow(&args.inputs, hardware, |recorded| {
            let found = coverage(recorded);
            Ok((found, recorded.functions().to_vec()))
        })?;
    let is_in =
        |of: &Function| args.image.as_ref().is_none_or(|image| matches_pattern(image, &of.image));
    let of = |number: u32| functions.get(number as usize).filter(|function| is_in(function));
    match (args.json, args.format) {
        (true, _) | (_, Format::Json) => output::print_json(&to_json(&found, &of))?,
        (_, Format::Lcov) => output::print_bytes(lcov(&found, &of).as_bytes())?,
        (_, Format::Text) => output::print(&page(&found, &of))?,
    }
    for (cause, count) in &found.gaps {
        tell!("warning: {}: {cause}", values::counted(*count, "gap"));
    }
    if found.not_kept > 0 {
        let blocks = values::counted(found.not_kept, "block");
        tell!("warning: {blocks} are not among them: there are too many different ones");
    }
    let is_fine = found.gaps.is_empty() && found.not_kept == 0 && is_complete;
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// Executed functions, ordered by executed instructions, most first.
fn ranked<'f>(
    found: &'f Coverage,
    of: &dyn Fn(u32) -> Option<&'f Function>,
) -> Vec<(&'f Function, &'f lateralis_store::flow::Covered)> {
    let all = found.functions.iter().filter_map(|(number, covered)| Some((of(*number)?, covered)));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| {
        (other.1.instructions, &one.0.name).cmp(&(one.1.instructions, &other.0.name))
    });
    all
}

fn page<'f>(found: &'f Coverage, of: &dyn Fn(u32) -> Option<&'f Function>) -> Page {
    let mut page = Page::new();
    let all = ranked(found, of);
    let places: u64 = all.iter().map(|(_, covered)| covered.places).sum();
    line!(
        page,
        "executed: {}, {}, {}, {}",
        values::counted(all.len() as u64, "function"),
        values::counted(all.iter().map(|(_, covered)| covered.blocks).sum(), "block"),
        values::counted(places, "different instruction"),
        values::counted(found.lines.len() as u64, "source line"),
    );
    page.gap();
    use Align::{Left, Right};
    let head = [
        ("instructions", Right),
        ("different", Right),
        ("blocks", Right),
        ("entered", Right),
        ("function", Left),
        ("source", Left),
    ];
    let mut table = Table::new(&head);
    for (function, covered) in all.iter().take(ROWS) {
        let line = covered.line.and_then(|(file, line)| {
            let path = found.sources.get(file as usize)?;
            Some(format!("{}:{line}", path.rsplit('/').next().unwrap_or(path)))
        });
        table.row([
            values::count(covered.instructions),
            values::count(covered.places),
            values::count(covered.blocks),
            values::count(covered.entered),
            function.name.clone(),
            line.unwrap_or_default(),
        ]);
    }
    page.page(&table.render());
    if all.len() > ROWS {
        line!(page, "  … {} more: --json has all", values::count((all.len() - ROWS) as u64));
    }
    page
}

/// Formats text for one line of a file with one item per line.
fn plain(text: &str) -> String {
    terminal::shown(text).replace(['\n', '\r'], " ")
}

/// Executed lines and functions of one source file.
#[derive(Default)]
struct OfFile<'f> {
    /// Execution count of each line.
    lines: BTreeMap<u32, u64>,
    /// First line, name and number of entries of each function.
    functions: Vec<(u32, &'f str, u64)>,
}

/// Formats an lcov tracefile: for each source file its functions and lines [man 1 geninfo, TRACEFILE FORMAT].
fn lcov<'f>(found: &'f Coverage, of: &dyn Fn(u32) -> Option<&'f Function>) -> String {
    let mut files: BTreeMap<u32, OfFile<'_>> = BTreeMap::new();
    for ((file, line), count) in &found.lines {
        files.entry(*file).or_default().lines.insert(*line, *count);
    }
    for (function, covered) in ranked(found, of) {
        if let Some((file, line)) = covered.line {
            let times = covered.entered.max(1);
            files.entry(file).or_default().functions.push((line, &function.name, times));
        }
    }
    let mut text = String::new();
    for (file, OfFile { lines, mut functions }) in files {
        let Some(path) = found.sources.get(file as usize) else { continue };
        functions.sort_unstable();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "TN:\nSF:{}", plain(path));
        for (line, name, _) in &functions {
            let _ = writeln!(text, "FN:{line},{}", plain(name));
        }
        for (_, name, times) in &functions {
            let _ = writeln!(text, "FNDA:{times},{}", plain(name));
        }
        let _ = writeln!(text, "FNF:{0}\nFNH:{0}", functions.len());
        for (line, count) in &lines {
            let _ = writeln!(text, "DA:{line},{count}");
        }
        let _ = writeln!(text, "LF:{0}\nLH:{0}\nend_of_record", lines.len());
    }
    text
}

fn to_json<'f>(found: &'f Coverage, of: &dyn Fn(u32) -> Option<&'f Function>) -> Value {
    let line = |of: Option<(u32, u32)>| {
        of.and_then(|(file, line)| {
            Some(json!({ "file": found.sources.get(file as usize)?, "line": line }))
        })
    };
    let functions = ranked(found, of).into_iter().map(|(function, covered)| {
        json!({
            "name": function.name,
            "image": function.image,
            "entered": covered.entered,
            "blocks": covered.blocks,
            "different_instructions": covered.places,
            "instructions": covered.instructions,
            "source": line(covered.line),
        })
    });
    let lines = found.lines.iter().map(|((file, line), count)| {
        json!({ "file": found.sources.get(*file as usize), "line": line, "count": count })
    });
    json!({
        "functions": functions.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "blocks": found.blocks,
        "gaps": found.gaps,
        "blocks_not_kept": found.not_kept,
    })
}
