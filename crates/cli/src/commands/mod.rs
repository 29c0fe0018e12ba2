// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One file per command: its options, and what it does with them.

pub mod clean;
pub mod completions;
pub mod config;
pub mod control;
pub mod convert;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod flow;
pub mod info;
pub mod keep;
pub mod list;
pub mod live;
pub mod man;
mod overview;
pub mod path;
pub mod pleco;
pub mod policy;
pub mod print;
mod receive;
pub mod record;
mod recording_summary;
pub mod run_script;
mod serial;
pub mod sql;
pub mod stats;
pub mod table;
pub mod top;
pub mod tracepoints;
pub mod view;
pub mod xml;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::exit::ExitStatus;

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Result<ExitStatus, CliError> {
    match cli.command {
        None => overview::run(),
        Some(Command::Record(args)) => record::run(*args.0),
        Some(Command::Keep(args)) => keep::run(*args.0),
        Some(Command::Live(args)) => live::run(*args.0),
        Some(Command::Top(args)) => top::run(*args.0),
        Some(Command::List(args)) => list::run(*args.0),
        Some(Command::Clean(args)) => clean::run(*args.0),
        Some(Command::Doctor(args)) => doctor::run(*args.0),
        Some(Command::Config(args)) => config::run(*args.0),
        Some(Command::Enable(args)) => control::switch(*args.0, true),
        Some(Command::Disable(args)) => control::switch(*args.0, false),
        Some(Command::Start(args)) => control::start(*args.0),
        Some(Command::Stop(args)) => control::stop(*args.0),
        Some(Command::Flush(args)) => control::flush(*args.0),
        Some(Command::Snapshot(args)) => control::snapshot(*args.0),
        Some(Command::Recover(args)) => control::recover(*args.0),
        Some(Command::Policy(args)) => policy::run(*args.0),
        Some(Command::Info(args)) => info::run(*args.0),
        Some(Command::Print(args)) => print::run(*args.0),
        Some(Command::Stats(args)) => stats::run(*args.0),
        Some(Command::Tracepoints(args)) => tracepoints::run(*args.0),
        Some(Command::Flow(args)) => flow::run(*args.0),
        Some(Command::Xml(args)) => xml::run(*args.0),
        Some(Command::Diff(args)) => diff::run(*args.0),
        Some(Command::Path(args)) => path::run(*args.0),
        Some(Command::RunScript(args)) => run_script::run(*args.0),
        Some(Command::Sql(args)) => sql::run(*args.0),
        Some(Command::Convert(args)) => convert::run(*args.0),
        Some(Command::Table(args)) => table::run(*args.0),
        Some(Command::Demo(args)) => demo::run(*args.0),
        Some(Command::Pleco(args)) => pleco::run(*args.0),
        Some(Command::Man(args)) => man::run(*args.0),
        Some(Command::Completions(args)) => completions::run(*args.0),
        Some(Command::View(args)) => view::run(*args.0),
        Some(Command::DemoWarehouse(args)) => demo::warehouse::run(*args.0),
        Some(Command::Reference) => crate::reference::run(),
    }
}
