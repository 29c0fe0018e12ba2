// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat`: record what programs do, and look at it.
//!
//! This crate is the edge: it parses arguments, opens files, prints, and maps
//! outcomes to exit codes. What a trace is, how it is recorded and what can be
//! computed from it live in the other crates; a command here is the thin shell
//! around one of them.
//!
//! * [`args`] is the table of commands and options; help, man pages, shell
//!   completions and `docs/reference/cli.md` are all made from it;
//! * [`commands`] has one file per command;
//! * [`error`] and [`exit`] fix what a failure looks like and what it returns;
//! * [`inputs`] and [`selection`] are the traces and the choice of events that commands share;
//! * [`output`] is standard output and error that survive a closed pipe.

/// A line on standard error. Unlike `eprintln!` it ends nothing where nobody reads that any more: a
/// recording goes on.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::output::tell(format_args!("{}\n", format_args!($($text)*)))
    };
}

mod args;
mod commands;
mod date;
mod embedded;
mod error;
mod exit;
mod following;
mod inputs;
mod live_copy;
mod moment;
mod output;
mod peer_args;
mod reference;
mod script;
mod selection;
mod status_line;
mod table;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(args::parse().and_then(commands::run))
}
