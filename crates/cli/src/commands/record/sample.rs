// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Call stacks in a recording: `--sample`, `--off-cpu`, `--stacks`, `--sample-stack`.

use super::{Mode, RecordArgs};
use crate::error::CliError;
use clap::ValueEnum;
use lateralis_recorder::linux::Session;
use lateralis_recorder::linux::kernel::{SampleOptions, SampleSource, SampleStack};

/// Method of unwinding the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stack {
    /// By frame pointers, when the sample is taken
    Fp,
    /// Registers and 8 KiB of the stack are recorded: for programs without frame pointers (x86-64)
    Dwarf,
}

/// Opens the sample source; `None` if no samples were requested.
///
/// Errors: it is not available. Recording has not started yet.
pub(super) fn open(args: &RecordArgs) -> Result<Option<SampleSource>, CliError> {
    let option = match (args.sample, args.off_cpu, args.stacks.is_empty()) {
        (Some(_), ..) => "--sample",
        (None, true, _) => "--off-cpu",
        (None, false, false) => "--stacks",
        (None, false, true) => return Ok(None),
    };
    let wrong =
        |place: &str, advice: &str| Err(CliError::new("cannot sample call stacks", place, advice));
    if args.sample == Some(0) {
        return wrong("--sample 0", "give at least 1 sample a second");
    }
    if args.mode == Mode::Overwrite {
        return wrong(
            "--mode overwrite",
            "the kernel keeps the oldest samples: leave one of both out",
        );
    }
    if args.command.is_empty() && args.attach.is_none() && !args.system {
        return wrong(option, "say of whom: CMD, --attach PID or --system");
    }
    let options = SampleOptions {
        hz: args.sample,
        events: args.stacks.clone(),
        off_cpu: args.off_cpu,
        stack: match args.sample_stack {
            Stack::Fp => SampleStack::FramePointers,
            Stack::Dwarf => SampleStack::Memory,
        },
        whole_machine: args.system,
        buffer_bytes: args.buffer,
    };
    let source = SampleSource::open(&options)
        .map_err(|error| CliError::new("cannot sample call stacks", error.place, error.advice))?;
    if let Some(left_out) = source.left_out().filter(|_| !args.quiet) {
        tell!("warning: {left_out}");
    }
    Ok(Some(source))
}

/// Adds the source to the session.
///
/// Errors: the kernel now refuses what it granted in the earlier test.
pub(super) fn add(session: &mut Session, source: SampleSource) -> Result<(), CliError> {
    session.add_source(Box::new(source)).map_err(|sentence| CliError::new(sentence, "", ""))
}
