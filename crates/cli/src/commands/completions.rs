// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat completions`: shell completion scripts for `lat`.

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output;
use clap::{Args, Command, CommandFactory};
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
    let table = Cli::command();
    // The generator also offers hidden commands, so it gets a table without them.
    let visible = table.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut command = Command::new("lat")
        .version(env!("CARGO_PKG_VERSION"))
        .args(table.get_arguments().cloned())
        .subcommands(visible);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lat", &mut script);
    output::print_bytes(&script)?;
    Ok(ExitStatus::Fine)
}
