// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats`: how often, how long, and what is missing.

pub(super) mod gather;
mod keys;
mod page;

use clap::Args;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output;
use lateralis_model::Source;

use gather::Statistics;

/// Options of `lat stats`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lat stats demo\n  lat stats demo --json | jq '.spans[]'\n\n\
    Exit code 1: something in the trace is damaged, or a budget of a schema is exceeded.")]
pub struct StatsArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints counts, rates, losses and the durations of spans.
pub fn run(args: StatsArgs) -> Result<ExitStatus, CliError> {
    let recording = args.inputs.open()?;
    let statistics = Statistics::of(&recording);
    if args.json {
        output::print_json(&statistics.to_json(&recording))?;
    } else {
        output::print(&page::render(&recording, &statistics))?;
    }
    let exceeded = statistics.budgets.iter().any(|budget| budget.kept == Some(false));
    let damaged = !statistics.damage.is_empty() || !recording.source.faults().is_empty();
    Ok(if exceeded || damaged { ExitStatus::Problems } else { ExitStatus::Fine })
}
