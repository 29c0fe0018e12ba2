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

use std::io::{self, Write as _};

use lateralis_model::{Event, Interval, Source};
use lateralis_units::{Nanos, Ticks};

use super::{PrintArgs, open, print, remarks};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::{self, State};

/// Packets are chosen by nanoseconds, with this much to spare: far more than the
/// clock is corrected by.
const SPARE_NANOS: i64 = 1_000_000_000;

/// Prints until the recording is complete.
pub fn run(args: &PrintArgs) -> Result<ExitStatus, CliError> {
    let mut left = args.limit.unwrap_or(u64::MAX);
    // The last tick printed, and about when that was.
    let mut printed: Option<(Ticks, Nanos)> = None;
    let [path] = args.inputs.traces.as_slice() else {
        let advice = "follow one recording at a time";
        return Err(CliError::new("cannot follow", "several recordings", advice));
    };
    loop {
        let state = following::state(path)?;
        let until = match state {
            State::Busy => {
                following::wait();
                continue;
            }
            State::UpTo(time) => Some(time),
            State::Complete | State::Interrupted => None,
        };
        let recording = open(args)?;
        let clock = recording.source.trace().clocks.first();
        let end = until.and_then(|until| Some((clock?.ticks(until), until)));
        if until.is_some() && end.is_none() {
            following::wait();
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
        if until.is_none() || left == 0 {
            remarks(&recording, &damage);
            if state == State::Interrupted {
                // Nobody is left to tell if standard error is closed.
                let _ = writeln!(io::stderr(), "{}", following::interrupted(path));
            }
            let fine = damage.is_empty()
                && recording.source.faults().is_empty()
                && state != State::Interrupted;
            return Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems });
        }
        printed = end;
        following::wait();
    }
}
