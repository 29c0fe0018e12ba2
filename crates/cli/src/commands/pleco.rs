// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat pleco`: the schema compiler, identical to the command `pleco`.

use crate::error::CliError;
use crate::exit::ExitStatus;
use clap::Args;
use std::ffi::OsString;

/// Arguments of `lat pleco`, which parses them itself.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:
  lat pleco gen app.pleco --c app.h       one C function per event
  lat pleco fmt app.pleco                 format in place
  lat pleco check OLD.pleco NEW.pleco     is NEW compatible with old traces and programs?

`lat pleco help` lists all outputs. Identical to the separate command `pleco`."
)]
pub struct PlecoArgs {
    /// gen, fmt, check or help, and their arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub arguments: Vec<OsString>,
}

/// Runs the compiler.
pub fn run(args: PlecoArgs) -> Result<ExitStatus, CliError> {
    Ok(ExitStatus::Given(lateralis_pleco::command::main("lat pleco", args.arguments.into_iter())))
}
