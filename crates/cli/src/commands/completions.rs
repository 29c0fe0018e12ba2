// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat completions`: what a shell needs to complete `lat` commands.

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Options of `lat completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lat completions bash > ~/.local/share/bash-completion/completions/lat"
)]
pub struct CompletionsArgs {
    /// The shell to complete in
    pub shell: Shell,
}

/// Prints the completion script.
pub fn run(args: CompletionsArgs) -> Result<ExitStatus, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lat", &mut script);
    output::print_bytes(&script)?;
    Ok(ExitStatus::Fine)
}
