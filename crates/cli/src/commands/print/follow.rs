// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print -f`: a recording while it is written.
//!
//! Each round asks the recorder to write what the rings hold, and then prints
//! what happened up to shortly before it was asked: by then every stream is
//! complete up to that moment, so that lines come in the order of time. A round
//! that the recorder does not answer prints nothing.
//!
//! Rounds meet at a tick of the clock, not at a nanosecond: how ticks become
//! nanoseconds is known better in each round, ticks stay what they are.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lateralis_model::{Event, Interval, Source};
use lateralis_recorder::linux::Request;
use lateralis_recorder::linux::discovery::{self, Target};
use lateralis_recorder::linux::targets::{self, Controlled};
use lateralis_units::{Nanos, Ticks};

use super::{PrintArgs, open, print, remarks};
use crate::error::CliError;
use crate::exit::ExitStatus;
use lateralis_store::Recording;

/// Time between two rounds.
const ROUND: Duration = Duration::from_millis(200);

/// The clock of a recording is known to less than this; see `error_ns` of its
/// report.
const MARGIN_NANOS: i64 = 1_000_000;

/// Packets are chosen by nanoseconds, with this much to spare: far more than the
/// clock is corrected by.
const SPARE_NANOS: i64 = 1_000_000_000;

/// Prints until the recording is complete.
pub fn run(args: &PrintArgs) -> Result<ExitStatus, CliError> {
    let mut left = args.limit.unwrap_or(u64::MAX);
    // The last tick printed, and about when that was.
    let mut printed: Option<(Ticks, Nanos)> = None;
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
        if !complete && !flush(&recording) {
            sleep(ROUND);
            continue;
        }
        let recording = if complete { recording } else { open(args)? };
        let until = Nanos(asked_at.0 - MARGIN_NANOS);
        let clock = recording.source.trace().clocks.first();
        let end = clock.filter(|_| !complete).map(|clock| (clock.ticks(until), until));
        if end.is_none() && !complete {
            sleep(ROUND);
            continue;
        }
        let interval = Interval {
            begin: printed.map(|(_, time)| Nanos(time.0 - SPARE_NANOS)),
            end: end.map(|(_, time)| Nanos(time.0 + SPARE_NANOS)),
        };
        let is_new = |event: &Event<'_>| {
            let ticks = event.ticks.unwrap_or_default();
            printed.is_none_or(|(last, _)| ticks > last) && end.is_none_or(|(to, _)| ticks <= to)
        };
        let damage = print(args, &recording, interval, &is_new, &mut left)?;
        if complete || left == 0 {
            remarks(&recording, &damage);
            let fine = damage.is_empty() && recording.source.faults().is_empty();
            return Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems });
        }
        printed = end;
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

/// Has the recorder of this recording write what the rings hold. Whether it did:
/// one that does not answer is about to end, or has no program yet.
fn flush(recording: &Recording) -> bool {
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
            return targets::request(None, &target, Request::Flush).is_ok();
        }
    }
    false
}
