// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat` without a command: lists the commands and a first step.

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use clap::CommandFactory;

/// Prints the commands on one screen, and a suggested next command.
pub fn run() -> Result<ExitStatus, CliError> {
    let table = Cli::command();
    let mut text =
        Page::of_line(format_args!("Lateralis records what programs do and looks at it."));
    text.gap();
    for command in table.get_subcommands().filter(|c| !c.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        line!(text, "  lat {:<12} {about}", command.get_name());
    }
    text.gap();
    line!(text, "`lat COMMAND --help` explains a command, with examples.");
    output::print(&text)?;
    Ok(ExitStatus::Fine)
}
