// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of commands. Each command's own options stand with the command.

use crate::commands::{
    completions, control, convert, demo, diff, info, keep, list, live, man, path, pleco, policy,
    print, record, run_script, sql, stats, table, tracepoints, view, xml,
};
use crate::error::CliError;
use clap::{Parser, Subcommand};

/// Record what programs do, nearly for free, and look at it.
#[derive(Debug, Parser)]
#[command(
    name = "lat",
    version,
    about,
    long_about = "Lateralis records what programs do, nearly for free, and loses nothing silently.\n\n\
        Exit codes: 0 fine; 1 ran and found problems; 2 could not run. `lat record` returns the \
        exit status of the program it recorded.",
    disable_help_subcommand = true,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; without a command, `lat` says what it could do here.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// One variant per command, in the order in which help shows them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program, or one that runs already
    Record(Box<record::RecordArgs>),
    /// Keep small recordings around the moments at which a condition was true
    Keep(Box<keep::KeepArgs>),
    /// Record for others who follow while it happens: a live stream, or dumps as of bfscope
    Live(Box<live::LiveArgs>),
    /// Show programs that can be traced now, and their events
    List(list::ListArgs),
    /// Record more events of a program that is being recorded
    Enable(control::SwitchArgs),
    /// Record fewer events of a program that is being recorded
    Disable(control::SwitchArgs),
    /// Go on after `lat stop`, or let a program run as a flight recorder
    Start(control::StartArgs),
    /// Record nothing until `lat start`
    Stop(control::TellArgs),
    /// Write what has been recorded until now
    Flush(control::TellArgs),
    /// Write what the rings of a running program hold now
    Snapshot(control::SnapshotArgs),
    /// Make a recording of what a crash left
    Recover(control::RecoverArgs),
    /// Show what a policy file would do, or translate one of Genode
    Policy(policy::PolicyArgs),
    /// Show what is in a trace: streams, events, processes, clocks, losses, damage
    Info(info::InfoArgs),
    /// Look at a trace in the browser: time line, list, statistics
    View(Box<view::ViewArgs>),
    /// Print events, one line each
    Print(print::PrintArgs),
    /// Count and time: rates, spans, budgets, losses
    Stats(stats::StatsArgs),
    /// Cycles between two points of a program, and what looking costs itself
    Tracepoints(Box<tracepoints::TracepointsArgs>),
    /// Run analyses written in XML for Trace Compass: states and latencies
    Xml(Box<xml::XmlArgs>),
    /// Tell what changed between two recordings, or several of each
    Diff(diff::DiffArgs),
    /// Tell why a span took as long as it did
    Path(path::PathArgs),
    /// Find activities by a script: who held which lock, how long each request took
    RunScript(Box<run_script::RunScriptArgs>),
    /// Ask traces in SQL; starts lat-sql
    Sql(sql::SqlArgs),
    /// Write a trace in another format
    Convert(convert::ConvertArgs),
    /// Show the tables of a trace, or write one of them as Parquet, CSV, JSON lines or Arrow
    Table(table::TableArgs),
    /// Record a small program of several processes, and show what it did
    Demo(demo::DemoArgs),
    /// Compile, format or compare schemas
    Pleco(pleco::PlecoArgs),
    /// Print the manual page of `lat` or of one of its commands
    Man(man::ManArgs),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// The server that `lat demo` records
    #[command(hide = true)]
    DemoWarehouse(demo::warehouse::WarehouseArgs),
    /// Print the command reference as Markdown
    #[command(hide = true)]
    Reference,
}

/// The parsed command line. Help and usage errors are printed here and end the
/// process, with 0 and 2.
pub fn parse() -> Result<Cli, CliError> {
    Cli::try_parse().map_err(|error| {
        // A closed pipe under `lat --help | head` is no failure.
        let _ = error.print();
        std::process::exit(error.exit_code())
    })
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_says_what_it_does_and_shows_an_example() {
        for command in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{} shows no example", command.get_name());
        }
    }
}
