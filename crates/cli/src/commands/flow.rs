// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow`: what a processor executed, by its own packets or by samples.

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

/// What is asked of it.
#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Show where branches led that the processor remembered at samples (perf record -b)
    Branches(Box<branches::BranchesArgs>),
    /// Show which functions and lines of source were executed, and how often (Intel PT)
    Coverage(Box<coverage::CoverageArgs>),
    /// Show every instruction that a processor executed (Intel PT)
    Dump(Box<dump::DumpArgs>),
    /// Show how many instructions are executed from one place in the code to another (Intel PT)
    Delta(Box<delta::DeltaArgs>),
    /// Show how many instructions calls of a function execute (Intel PT)
    Function(Box<function::FunctionArgs>),
    /// Show how many more instructions system calls execute in a second trace (Intel PT)
    Impact(Box<impact::ImpactArgs>),
    /// Show how many bytes of what kinds of packets there are (Intel PT)
    Packets(Box<packets::PacketsArgs>),
    /// Show how many instructions a kernel executes for system calls (Intel PT)
    Syscalls(Box<impact::SyscallsArgs>),
    /// Show which functions samples were taken in, or executed how many instructions, and on which paths of
    /// calls
    Stacks(Box<stacks::StacksArgs>),
    /// Show how finely traces say when something was, beside each other (Intel PT)
    Trf(Box<trf::TrfArgs>),
}

/// Runs what was asked for.
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
