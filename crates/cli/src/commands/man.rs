// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat man`: manual pages, generated from the table of commands.

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output;
use clap::{Args, CommandFactory};

/// Options of `lat man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lat man | man -l -\n  lat man record > lat-record.1")]
pub struct ManArgs {
    /// The command to describe; without it, `lat` itself
    pub command: Option<String>,
}

/// Prints one page in roff.
pub fn run(args: ManArgs) -> Result<ExitStatus, CliError> {
    let mut table = Cli::command();
    table.build();
    let page = match &args.command {
        None => table,
        Some(name) => {
            let command = table.find_subcommand(name).cloned();
            command.ok_or_else(|| {
                CliError::new("no such command", name.as_str(), "`lat` lists all commands")
            })?
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    output::print_bytes(&roff)?;
    Ok(ExitStatus::Fine)
}
