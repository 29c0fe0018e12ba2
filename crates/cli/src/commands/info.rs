// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat info`: what is in a trace.

mod facts;
mod page;

use clap::Args;

use crate::beyond;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output;
use crate::selection::{self, SelectArgs};
use lateralis_model::Source;

use facts::Facts;

/// Options of `lat info`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lat info demo\n  lat info demo --json | jq .losses\n  \
    lat info demo --where 'bytes > 4k'                number, time and origin of these events\n  \
    lat info lttng-traces/auto-20261121/kernel\n\n\
    Exit code 1: the trace is damaged. Losses are printed, and do not count as damage.")]
pub struct InfoArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints what a trace holds: streams, events, clocks, processes, losses,
/// damage. Reads all events once.
pub fn run(args: InfoArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    selection::warn_of_unknown_fields(&args.select, recording.source.trace());
    if args.select.needs_names() {
        recording.learn_names();
    }
    let selection = selection::select(&args.select, &recording, true)?;
    let facts = Facts::of(&recording, &selection);
    selection.finish()?;
    beyond::warn(facts.times_beyond);
    if args.json {
        output::print_versioned_json(&facts.document(&recording))?;
    } else {
        output::print(&page::render(&recording, &facts))?;
    }
    let fine = facts.damage.is_empty() && recording.source.faults().is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}
