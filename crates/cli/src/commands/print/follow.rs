// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print -f`: a recording while it is written.
//!
//! Each round asks the recorder to write what the rings hold, and then prints
//! what happened up to shortly before it was asked: by then every stream is
//! complete up to that moment, so that lines come in the order of time.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lateralis_model::{Interval, Source};
use lateralis_recorder::linux::discovery::Target;
use lateralis_recorder::linux::{Request, targets};
use lateralis_units::Nanos;
use serde_json::Value;

use super::{PrintArgs, open, print, remarks};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::recording::Recording;

/// Time between two rounds.
const ROUND: Duration = Duration::from_millis(200);

/// The clock of a recording is known to less than this; see `error_ns` of its
/// report.
const MARGIN_NANOS: i64 = 1_000_000;

/// Prints until the recording is complete.
pub fn run(args: &PrintArgs) -> Result<ExitStatus, CliError> {
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut printed_to: Option<Nanos> = None;
    loop {
        let asked_at = now();
        let recording = open(args)?;
        let Some(complete) = is_complete(&recording) else {
            return Err(CliError::new(
                "cannot follow",
                recording.path.display().to_string(),
                "only a recording of `lat record` says when it ends: print it without --follow",
            ));
        };
        let recording = if complete {
            recording
        } else {
            flush(&recording);
            open(args)?
        };
        let end = (!complete).then_some(Nanos(asked_at.0 - MARGIN_NANOS));
        let begin = printed_to.map(|time| Nanos(time.0 + 1));
        let damage = print(args, &recording, Interval { begin, end }, &mut left)?;
        if complete || left == 0 {
            remarks(&recording, &damage);
            let fine = damage.is_empty() && recording.source.faults().is_empty();
            return Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems });
        }
        printed_to = end;
        sleep(ROUND);
    }
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// `None` if it is no recording of ours.
fn is_complete(recording: &Recording) -> Option<bool> {
    recording.report.as_ref()?["complete"].as_bool()
}

/// Has the recorders of its processes write what they hold. One that does not
/// answer is about to end; the next round sees it.
fn flush(recording: &Recording) {
    let processes = recording.report.as_ref().map(|report| &report["processes"]);
    let pids = processes.and_then(Value::as_array).into_iter().flatten();
    for pid in pids.filter_map(|process| u32::try_from(process["pid"].as_u64()?).ok()) {
        if targets::request(None, &Target::Pid(pid), Request::Flush).is_ok() {
            // One recorder serves all processes of a recording.
            return;
        }
    }
}
