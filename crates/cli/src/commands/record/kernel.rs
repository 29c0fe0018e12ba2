// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the kernel in a recording: `--kernel`, `--system`.

use super::RecordArgs;
use crate::error::CliError;
use lateralis_recorder::kernel::choice::SYSTEM_GROUPS;
use lateralis_recorder::linux::Session;
use lateralis_recorder::linux::kernel::{KernelError, KernelOptions, KernelSource};

/// Gets ready what was asked for; `None` if nothing was. The inner error says which right is
/// missing: everything else can be recorded.
///
/// Errors: an event that there is not. Nothing has begun then.
pub(super) fn open(args: &RecordArgs) -> Result<Option<Result<KernelSource, String>>, CliError> {
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
        relate_clocks: false,
    };
    match KernelSource::open(&options) {
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

/// Adds it to the session, or says why not.
pub(super) fn add(session: &mut Session, kernel: Result<KernelSource, String>, args: &RecordArgs) {
    let added = match kernel {
        Ok(source) => session.add_source(Box::new(source)),
        Err(sentence) => {
            session.note_problem(sentence.clone());
            Err(sentence)
        }
    };
    if let (Err(sentence), false) = (added, args.quiet) {
        eprintln!("warning: {sentence}");
    }
}
