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
//! * [`config`] makes the file of settings the defaults of that table;
//! * [`colour`] decides what is coloured, and where;
//! * [`output`] is standard output and error: nothing hostile gets through, and a closed pipe ends nothing.

#![forbid(unsafe_code)]

/// A line on standard error. Unlike `eprintln!` it ends nothing where nobody reads that any more (a
/// recording goes on), and what its values hold stays on this line.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::output::tell_line(format_args!($($text)*))
    };
}

#[macro_use]
extern crate lateralis_reports;

mod args;
mod beyond;
mod colour;
mod commands;
mod config;
mod embedded;
mod error;
mod exit;
mod following;
mod inputs;
mod live_copy;
mod memory;
mod newest;
mod output;
mod peer_args;
mod processes;
mod reading;
mod reference;
mod selection;
mod standard_input;
mod status_line;
mod suggestion;

use std::process::ExitCode;

use lateralis_reports::{contradictions, date, moment, script, table, values};

fn main() -> ExitCode {
    if output::is_terminal() {
        values::group_digits();
    }
    table::fit_to(output::terminal_columns);
    let code = exit::code(args::parse().and_then(commands::run));
    reading::end();
    standard_input::remove_copy();
    code
}
