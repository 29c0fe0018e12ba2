// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow packets`: number and size of packets by type.

use clap::Args;
use lateralis_store::flow::{Recorded, Sizes, sizes};
use serde_json::json;

use super::code::{CodeArgs, Hardware};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// Options of `lat flow packets`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints the number of packets and bytes by packet type. To see what a setting costs, \
    record the same \
    program twice:\n\n  \
    perf record --per-thread -e intel_pt/cyc/u -o cycles.data -- ./program\n  \
    perf record --per-thread -e intel_pt/mtc_period=9/u -o coarse.data -- ./program\n  \
    lat flow packets cycles.data\n  lat flow packets coarse.data\n\n\
    Exit code 1: there are gaps, or bytes that are not packets."
)]
pub struct PacketsArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the number of packets and bytes by type.
pub fn run(args: &PacketsArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    let follow = |recorded: &mut Recorded<'_>| Ok(sizes(recorded));
    let (found, is_complete) = args.code.follow(&args.inputs, hardware, follow)?;
    if args.json {
        print_json(&found)?;
    } else {
        print(&found)?;
    }
    let is_whole = found.gaps == 0 && found.kinds.iter().all(|kind| kind.name.is_some());
    Ok(if is_complete && is_whole { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn bytes_per_second(found: &Sizes) -> Option<f64> {
    let nanos = found.nanos.filter(|nanos| *nanos > 0)?;
    Some(found.bytes as f64 * 1e9 / nanos as f64)
}

fn bits_per_instruction(found: &Sizes) -> Option<f64> {
    (found.instructions > 0).then(|| found.bytes as f64 * 8.0 / found.instructions as f64)
}

fn print_json(found: &Sizes) -> Result<(), CliError> {
    let kinds = found
        .kinds
        .iter()
        .map(|kind| json!({ "kind": kind.name, "packets": kind.packets, "bytes": kind.bytes }));
    output::print_json(&json!({
        "kinds": kinds.collect::<Vec<_>>(),
        "bytes": found.bytes,
        "instructions": found.instructions,
        "bits_per_instruction": bits_per_instruction(found),
        "duration_ns": found.nanos,
        "bytes_per_second": bytes_per_second(found),
        "gaps": found.gaps,
    }))
}

fn print(found: &Sizes) -> Result<(), CliError> {
    let mut table = Table::new(&[
        ("kind", Align::Left),
        ("packets", Align::Right),
        ("bytes", Align::Right),
        ("share", Align::Right),
    ]);
    for kind in &found.kinds {
        let share = kind.bytes as f64 * 100.0 / found.bytes.max(1) as f64;
        table.row([
            kind.name.clone().unwrap_or_else(|| "no packet".to_owned()),
            values::count(kind.packets),
            values::count(kind.bytes),
            format!("{share:.1} %"),
        ]);
    }
    let mut page = Page::new();
    page.page(&table.render());
    line!(page, "");
    line!(page, "bytes         {}", values::count(found.bytes));
    if let Some(bits) = bits_per_instruction(found) {
        let count = values::count(found.instructions);
        let bound = if found.gaps > 0 { "≥ " } else { "" };
        line!(page, "instructions  {bound}{count}, {bits:.3} bits each");
    }
    if let (Some(nanos), Some(rate)) = (found.nanos, bytes_per_second(found)) {
        line!(page, "time          {}, {:.1} MB/s", values::time(nanos), rate / 1e6);
    }
    if found.gaps > 0 {
        line!(page, "gaps          {}", values::count(found.gaps));
    }
    output::print(&page)
}
