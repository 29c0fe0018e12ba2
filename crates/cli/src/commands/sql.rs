// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat sql`: starts `lat-sql`. Its engine is larger than the rest of `lat`, and is therefore a separate
//! command and package.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, CommandFactory};

use crate::args::Cli;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};

/// Name of the command.
const PROGRAM: &str = "lat-sql";

/// Environment variable that names the calling `lat`.
const LAT: &str = "LATERALIS_LAT";

/// Reason for an error if it is not installed.
pub(super) const NOT_FOUND: &str = "neither beside lat nor on the PATH";

/// Installation advice.
pub(super) const INSTALL: &str = "install the package lateralis-sql, or build it with ./x build sql in the \
    sources of Lateralis (some 25 minutes once)";

/// Options of `lat sql`, all of which belong to `lat-sql`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "The options are those of lat-sql: `lat sql --help` prints them if it is installed, \
    and otherwise \
    how to install it.\n\n\
    Examples:\n  \
    lat sql demo                                                 the shell\n  \
    lat sql demo -c 'SELECT class, count(*) FROM events GROUP BY class'\n  \
    lat sql demo -f report.sql --format csv -o report.csv\n\n\
    Exit code 1: a trace is damaged."
)]
pub struct SqlArgs {
    /// Traces, then options of lat-sql: -c SQL, -f FILE, --format FORMAT, -o FILE, --memory SIZE, …
    #[arg(value_name = "TRACE", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Replaces this process by `lat-sql`; returns only if that fails.
pub fn run(args: SqlArgs) -> Result<ExitStatus, CliError> {
    let Some(program) = engine() else {
        if args.arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            return help();
        }
        return Err(CliError::new("lat-sql is not installed", NOT_FOUND, INSTALL));
    };
    let mut command = Command::new(&program);
    // `lat-sql` runs this `lat` for the tables of `stats`, `path` and `diff`.
    command.args(&args.arguments).envs(env::current_exe().ok().map(|lat| (LAT, lat)));
    let cause: io::Error = command.exec();
    Err(CliError::at_path("cannot start", &program, &cause))
}

/// Finds the engine beside this `lat`, or on the search path.
pub(super) fn engine() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|lat| Some(lat.parent()?.join(PROGRAM)));
    beside.into_iter().chain(on_path()).find(|path| is_program(path))
}

/// Prints the help of the command if `lat-sql` is not installed.
fn help() -> Result<ExitStatus, CliError> {
    let mut table = Cli::command();
    table.build();
    if let Some(command) = table.find_subcommand_mut("sql") {
        let mut page = Page::new();
        page.lines(&command.render_long_help().to_string());
        output::print(&page)?;
    }
    Ok(ExitStatus::Fine)
}

fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(PROGRAM)).collect()
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
