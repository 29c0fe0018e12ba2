// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow`: what a processor executed. So far by samples: `lat flow stacks`.

mod flame;
mod images;
mod stacks;

use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::exit::ExitStatus;

/// Options of `lat flow`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  perf record -F 999 -g -- ./program\n  lat flow stacks perf.data"
)]
pub struct FlowArgs {
    #[command(subcommand)]
    pub command: FlowCommand,
}

/// What is asked of it.
#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Show which functions samples were taken in, and on which paths of calls
    Stacks(Box<stacks::StacksArgs>),
}

/// Runs what was asked for.
pub fn run(args: FlowArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        FlowCommand::Stacks(args) => stacks::run(&args),
    }
}
