// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow branches`: where branches led that a processor remembered when samples were taken.

use clap::Args;
use lateralis_model::{Event, Source};
use lateralis_store::stacks::{Jump, Jumps, Spot, jumps};
use serde_json::{Value, json};

use super::code::CodeArgs;
use super::stacks::share;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs};
use crate::table::{Align, Table};
use crate::values;

/// Rows of the table before it is cut short; `--json` has all.
const ROWS: usize = 40;

/// Options of `lat flow branches`.
#[derive(Debug, Args)]
#[command(
    after_help = "CPUs record the last branches taken (LBR of Intel and AMD, BRBE of Arm); perf record \
    -b adds them to \
    samples. Shares are of these branches, not of time. `cycles` is the mean number of cycles since the \
    previous branch. `lat table --name stack_branches` has each branch.\n\n\
    Examples:\n  \
    perf record -b -- ./program\n  \
    lat flow branches perf.data\n  \
    lat flow branches perf.data --json\n  \
    perf record --call-graph lbr -- ./program; lat flow stacks perf.data\n\n\
    Exit code 1: the trace is damaged."
)]
pub struct BranchesArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Shows the branches of a trace.
pub fn run(args: &BranchesArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    if args.select.needs_names() {
        recording.learn_names();
    }
    let selection = selection::select(&args.select, &recording, true)?;
    let contains = |event: &Event<'_>| selection.contains(event);
    let chosen = selection.chosen(&recording, &contains);
    selection::warn_of_unknown_fields(&args.select, &chosen.trace);
    let found = jumps(&chosen, &mut args.code.files());
    selection.finish()?;
    match args.json {
        true => output::print_json(&to_json(&found))?,
        false => output::print(&page(&found))?,
    }
    if found.call_stacks > 0 {
        tell!(
            "warning: {} have calls that have not returned instead of branches: lat flow stacks shows them",
            values::counted(found.call_stacks, "sample")
        );
    }
    if found.not_kept > 0 {
        tell!(
            "warning: {} are not among them: there are too many different ones",
            values::counted(found.not_kept, "branch")
        );
    }
    let is_fine = found.damage.is_empty() && recording.source.faults().is_empty();
    Ok(if is_fine && found.not_kept == 0 { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// `FUNCTION+0x1f`, or the address.
fn place(found: &Jumps, spot: &Spot) -> String {
    let name = found.functions.get(spot.function as usize).map(|of| of.name.as_str());
    match (name, spot.offset) {
        (Some(name), Some(0)) => name.to_owned(),
        (Some(name), Some(offset)) => format!("{name}+{offset:#x}"),
        _ => format!("{:#x}", spot.address),
    }
}

/// `FILE:LINE` of the branch, without the folders.
fn source(found: &Jumps, spot: &Spot) -> Option<String> {
    let line = spot.line?;
    let path = found.sources.get(line.file as usize)?;
    Some(format!("{}:{}", path.rsplit('/').next().unwrap_or(path), line.number))
}

fn page(found: &Jumps) -> Page {
    use Align::{Left, Right};
    let mut page = Page::new();
    if found.samples == 0 {
        line!(
            page,
            "no branches: record them by perf record -b, where the processor remembers them"
        );
        return page;
    }
    let samples = values::counted(found.samples, "sample");
    line!(page, "{} in {samples}", values::counted(found.branches, "branch"));
    page.gap();
    let mut table = Table::new(&[
        ("count", Right),
        ("share", Right),
        ("mispredicted", Right),
        ("in transaction", Right),
        ("aborts", Right),
        ("cycles", Right),
        ("from", Left),
        ("to", Left),
        ("source", Left),
    ]);
    for jump in found.jumps.iter().take(ROWS) {
        let known = jump.mispredicted + jump.predicted;
        let some = |is_known: bool, text: String| if is_known { text } else { String::new() };
        table.row([
            values::count(jump.count),
            format!("{:.1} %", share(jump.count, found.branches)),
            some(known > 0, format!("{:.1} %", share(jump.mispredicted, known))),
            some(jump.in_transaction > 0, values::count(jump.in_transaction)),
            some(jump.aborted > 0, values::count(jump.aborted)),
            mean_cycles(jump).map_or_else(String::new, |mean| format!("{mean:.1}")),
            place(found, &jump.from),
            place(found, &jump.to),
            source(found, &jump.from).unwrap_or_default(),
        ]);
    }
    page.page(&table.render());
    if found.jumps.len() > ROWS {
        let more = values::count((found.jumps.len() - ROWS) as u64);
        line!(page, "  … {more} more: --json has all");
    }
    if !found.missing.is_empty() {
        page.gap();
        line!(page, "no names of functions");
        for (image, why, count) in &found.missing {
            line!(page, "  {image}: {why} ({})", values::counted(*count, "place"));
        }
    }
    page
}

fn mean_cycles(jump: &Jump) -> Option<f64> {
    (jump.timed > 0).then(|| jump.cycles as f64 / jump.timed as f64)
}

fn to_json(found: &Jumps) -> Value {
    let place = |spot: &Spot| {
        let function = found.functions.get(spot.function as usize);
        let function = function.filter(|_| spot.offset.is_some());
        let path = spot.line.and_then(|line| found.sources.get(line.file as usize));
        json!({
            "address": spot.address,
            "function": function.map(|of| &of.name),
            "image": function.map(|of| &of.image),
            "offset": spot.offset,
            "file": path,
            "line": spot.line.map(|line| line.number),
        })
    };
    let jumps = found.jumps.iter().map(|jump| {
        json!({
            "from": place(&jump.from),
            "to": place(&jump.to),
            "count": jump.count,
            "mispredicted": jump.mispredicted,
            "predicted": jump.predicted,
            "in_transaction": jump.in_transaction,
            "aborted": jump.aborted,
            "with_cycles": jump.timed,
            "cycles": jump.cycles,
        })
    });
    let missing = found
        .missing
        .iter()
        .map(|(image, why, places)| json!({ "image": image, "why": why, "places": places }));
    json!({
        "samples": found.samples,
        "branches": found.branches,
        "samples_with_call_stacks": found.call_stacks,
        "branches_not_kept": found.not_kept,
        "jumps": jumps.collect::<Vec<_>>(),
        "missing_images": missing.collect::<Vec<_>>(),
        "damage_count": found.damage.len(),
    })
}
