// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat` without a command: the commands, and where to begin.

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output;
use clap::CommandFactory;
use std::fmt::Write;

/// Prints the commands in one screen, and the next sensible one.
pub fn run() -> Result<ExitStatus, CliError> {
    let table = Cli::command();
    let mut text = String::from("Lateralis records what programs do and looks at it.\n\n");
    for command in table.get_subcommands().filter(|c| !c.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  lat {:<12} {about}", command.get_name());
    }
    text.push_str("\n`lat COMMAND --help` explains a command, with examples.\n");
    output::print(&text)?;
    Ok(ExitStatus::Fine)
}
