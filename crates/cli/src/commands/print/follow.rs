// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print -f`: a recording while it is written.
//!
//! Each round asks the recorder to write what the rings hold, and then prints
//! what happened up to shortly before it was asked: by then every stream is
//! complete up to that moment, so that lines come in the order of time.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lateralis_model::{Interval, Source};
use lateralis_recorder::linux::Request;
use lateralis_recorder::linux::discovery::{self, Target};
use lateralis_recorder::linux::targets::{self, Controlled};
use lateralis_units::Nanos;

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

/// Has the recorder of this recording write what the rings hold. One that does
/// not answer is about to end; the next round sees it.
fn flush(recording: &Recording) {
    let here = recording.path.canonicalize().ok();
    let mut asked = BTreeSet::new();
    for program in discovery::list(None) {
        if !program.recorder_pid.is_some_and(|pid| asked.insert(pid)) {
            continue;
        }
        let target = Target::Pid(program.pid);
        let recorders = targets::request(None, &target, Request::Status).unwrap_or_default();
        let outputs = recorders.iter().filter_map(|recorder| match recorder {
            Controlled::ByRecorder { answer, .. } => answer.output.as_ref(),
            Controlled::FlightRecorder { .. } => None,
        });
        if outputs.filter_map(|output| output.canonicalize().ok()).any(|o| Some(o) == here) {
            let _ = targets::request(None, &target, Request::Flush);
            return;
        }
    }
}
