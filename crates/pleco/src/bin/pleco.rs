// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `pleco`: see [`lateralis_pleco::command`].

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    lateralis_pleco::command::main("pleco", std::env::args_os().skip(1))
}
