// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow`: executed code, from a processor's trace packets or from samples.

mod branches;
mod chart;
pub mod code;
mod coverage;
mod delta;
mod dump;
mod flame;
mod function;
mod impact;
pub mod kept_code;
mod numbers;
mod packets;
mod stacks;
mod sunburst;
mod trf;

use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::exit::ExitStatus;

/// Options of `lat flow`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  perf record -F 999 -g -- ./program\n  lat flow stacks perf.data\n  \
    perf record --per-thread -e intel_pt//u -- ./program\n  lat flow dump perf.data"
)]
pub struct FlowArgs {
    #[command(subcommand)]
    pub command: FlowCommand,
}

/// Subcommands of `lat flow`.
#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Show the branches recorded with samples (LBR; perf record -b)
    Branches(Box<branches::BranchesArgs>),
    /// Show executed functions and source lines, with counts (Intel PT)
    Coverage(Box<coverage::CoverageArgs>),
    /// Print every executed instruction (Intel PT)
    Dump(Box<dump::DumpArgs>),
    /// Count instructions and time between two points in the code (Intel PT)
    Delta(Box<delta::DeltaArgs>),
    /// Count instructions per call of a function (Intel PT)
    Function(Box<function::FunctionArgs>),
    /// Compare instructions per system call in two traces (Intel PT)
    Impact(Box<impact::ImpactArgs>),
    /// Count packets and bytes by packet type (Intel PT)
    Packets(Box<packets::PacketsArgs>),
    /// Count kernel instructions per system call (Intel PT)
    Syscalls(Box<impact::SyscallsArgs>),
    /// Show time by function and call path, from samples or from executed instructions
    Stacks(Box<stacks::StacksArgs>),
    /// Compare the temporal resolution of traces (Intel PT)
    Trf(Box<trf::TrfArgs>),
}

/// Runs the subcommand.
pub fn run(args: FlowArgs) -> Result<ExitStatus, CliError> {
    match args.command {
        FlowCommand::Branches(args) => branches::run(&args),
        FlowCommand::Coverage(args) => coverage::run(&args),
        FlowCommand::Dump(args) => dump::run(&args),
        FlowCommand::Delta(args) => delta::run(&args),
        FlowCommand::Function(args) => function::run(&args),
        FlowCommand::Impact(args) => impact::impact(&args),
        FlowCommand::Packets(args) => packets::run(&args),
        FlowCommand::Syscalls(args) => impact::syscalls(&args),
        FlowCommand::Stacks(args) => stacks::run(&args),
        FlowCommand::Trf(args) => trf::run(&args),
    }
}
