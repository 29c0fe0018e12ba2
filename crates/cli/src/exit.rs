// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exit codes: 0 fine, 1 ran and found problems, 2 could not run.

use crate::error::CliError;
use crate::inputs;
use std::process::ExitCode;

/// Outcome of a command that ran.
#[derive(Clone, Copy, Debug)]
pub enum ExitStatus {
    /// The command succeeded.
    Fine,
    /// The command ran and found problems, for instance damage in a trace or an incompatible schema.
    Problems,
    /// Exit status of the recorded program, passed on unchanged.
    Program(u8),
    /// The exit code of a command that maps its own outcomes by the same rules.
    Given(ExitCode),
}

/// Returns the process exit code of an outcome; prints an error to standard error.
pub fn code(outcome: Result<ExitStatus, CliError>) -> ExitCode {
    match outcome {
        Ok(ExitStatus::Fine) if inputs::are_incomplete() => ExitCode::from(1),
        Ok(ExitStatus::Fine) => ExitCode::SUCCESS,
        Ok(ExitStatus::Problems) => ExitCode::from(1),
        Ok(ExitStatus::Program(code)) => ExitCode::from(code),
        Ok(ExitStatus::Given(code)) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::tell_error(&error);
            ExitCode::from(2)
        }
    }
}
