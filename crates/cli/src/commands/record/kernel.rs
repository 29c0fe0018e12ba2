// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel events in a recording: `--kernel`, `--system`.

use super::{Mode, RecordArgs};
use crate::error::CliError;
use clap::ValueEnum;
use lateralis_recorder::kernel::choice::SYSTEM_GROUPS;
use lateralis_recorder::linux::Session;
use lateralis_recorder::linux::kernel::{self, KernelBy, KernelError, KernelOptions};
use lateralis_recorder::source::Source;

/// A source, or the privilege that is missing.
pub(super) type Opened = Result<Box<dyn Source>, String>;

/// Interface that supplies kernel events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelWay {
    /// An instance of tracefs
    Tracefs,
    /// The buffers of perf_event_open: for those who may read tracefs and have CAP_PERFMON
    Perf,
}

fn way(args: &RecordArgs) -> Result<KernelBy, CliError> {
    let overwrites = args.mode == Mode::Overwrite;
    match args.kernel_by {
        Some(KernelWay::Perf) if overwrites => {
            let advice = "perf's buffers keep the oldest events: use --kernel-by tracefs, or \
                          --mode discard";
            Err(CliError::new("cannot overwrite", "--kernel-by perf", advice))
        }
        Some(KernelWay::Perf) => Ok(KernelBy::Perf),
        Some(KernelWay::Tracefs) => Ok(KernelBy::Tracefs),
        None if overwrites => Ok(KernelBy::Tracefs),
        None => Ok(KernelBy::Either),
    }
}

/// Opens the requested source; `None` if none was requested. The inner error names a missing privilege:
/// everything else can still be recorded.
///
/// Errors: an event does not exist. Recording has not started yet.
pub(super) fn open(args: &RecordArgs) -> Result<Option<Opened>, CliError> {
    if args.kernel.is_empty() && args.probe.is_empty() && !args.system {
        return Ok(None);
    }
    let events = if args.kernel.is_empty() && args.system {
        SYSTEM_GROUPS.map(String::from).to_vec()
    } else {
        args.kernel.clone()
    };
    let options = KernelOptions {
        events,
        probes: args.probe.clone(),
        whole_machine: args.system,
        buffer_bytes: args.buffer,
        tracefs: None,
        by: way(args)?,
        relate_clocks: false,
    };
    match kernel::open(&options) {
        Ok(source) => Ok(Some(Ok(source))),
        Err(KernelError::Unavailable(sentence)) => Ok(Some(Err(sentence))),
        Err(KernelError::Probe(error)) => Err(CliError::new(error.what, error.place, error.advice)),
        Err(KernelError::Choice(error)) => {
            let advice = match &error.near[..] {
                [] => "`lat record --help` lists the groups; any other is SUBSYSTEM:EVENT, as in \
                       available_events of tracefs"
                    .to_owned(),
                near => format!("did you mean {}?", near.join(", ")),
            };
            Err(CliError::new("the kernel has no events of that name", error.word, advice))
        }
    }
}

/// Adds the source to the session, or prints the reason for not adding it.
pub(super) fn add(session: &mut Session, kernel: Opened, args: &RecordArgs) {
    let added = match kernel {
        Ok(source) => session.add_source(source),
        Err(sentence) => {
            session.note_problem(sentence.clone());
            Err(sentence)
        }
    };
    if let (Err(sentence), false) = (added, args.quiet) {
        tell!("warning: {sentence}");
    }
}
