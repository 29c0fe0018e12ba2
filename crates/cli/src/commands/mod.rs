// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One file per command: its options, and what it does with them.

pub mod clean;
pub mod completions;
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
        Some(Command::Record(args)) => record::run(*args),
        Some(Command::Keep(args)) => keep::run(*args),
        Some(Command::Live(args)) => live::run(*args),
        Some(Command::Top(args)) => top::run(*args),
        Some(Command::List(args)) => list::run(args),
        Some(Command::Clean(args)) => clean::run(args),
        Some(Command::Doctor(args)) => doctor::run(args),
        Some(Command::Enable(args)) => control::switch(args, true),
        Some(Command::Disable(args)) => control::switch(args, false),
        Some(Command::Start(args)) => control::start(args),
        Some(Command::Stop(args)) => control::stop(args),
        Some(Command::Flush(args)) => control::flush(args),
        Some(Command::Snapshot(args)) => control::snapshot(args),
        Some(Command::Recover(args)) => control::recover(args),
        Some(Command::Policy(args)) => policy::run(args),
        Some(Command::Info(args)) => info::run(args),
        Some(Command::Print(args)) => print::run(args),
        Some(Command::Stats(args)) => stats::run(args),
        Some(Command::Tracepoints(args)) => tracepoints::run(*args),
        Some(Command::Flow(args)) => flow::run(args),
        Some(Command::Xml(args)) => xml::run(*args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::Path(args)) => path::run(args),
        Some(Command::RunScript(args)) => run_script::run(*args),
        Some(Command::Sql(args)) => sql::run(args),
        Some(Command::Convert(args)) => convert::run(args),
        Some(Command::Table(args)) => table::run(args),
        Some(Command::Demo(args)) => demo::run(args),
        Some(Command::Pleco(args)) => pleco::run(args),
        Some(Command::Man(args)) => man::run(args),
        Some(Command::Completions(args)) => completions::run(args),
        Some(Command::View(args)) => view::run(*args),
        Some(Command::DemoWarehouse(args)) => demo::warehouse::run(args),
        Some(Command::Reference) => crate::reference::run(),
    }
}
