// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows a recording in progress: its state, and requests to its recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lateralis_recorder::linux::{Request, RunningRecorder, is_being_written, is_locked, recorders};
use lateralis_store::{Recording, Tail};
use lateralis_units::Nanos;
use serde_json::Value;

use crate::error::CliError;
use crate::live_copy::LiveCopy;

/// Time between two rounds.
const ROUND: Duration = Duration::from_millis(200);

/// The clock error of a recording is smaller than this; see `error_ns` of its report.
pub const MARGIN_NANOS: i64 = 1_000_000;

/// Progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In progress; everything up to this time has been written.
    UpTo(Nanos),
    /// In progress, and its recorder cannot answer now: it is starting or about to end.
    Busy,
    /// Nothing will be added.
    Complete,
    /// No recorder writes to it any more, and it was not completed.
    Interrupted,
}

/// Returns the progress of a recording, and has its recorder write the contents of the rings.
///
/// Errors: it is not a recording of `lat record`.
fn state(path: &Path) -> Result<State, CliError> {
    let inside = path.join("..");
    let path = match path.join("report.json").exists() {
        false if inside.join("report.json").exists() => inside.as_path(),
        _ => path,
    };
    let asked_at = now();
    // Tested before the report is read: a recorder that ends in between has then completed the report.
    let goes_on = is_being_written(path);
    let is_certain = goes_on && is_locked(path);
    match is_complete(path) {
        // A new recording has no report yet.
        None if is_certain && flush(path) => Ok(State::UpTo(Nanos(asked_at.0 - MARGIN_NANOS))),
        None if is_certain => Ok(State::Busy),
        None => Err(CliError::new(
            "cannot follow",
            path.display().to_string(),
            "only a recording of `lat record` says when it ends: read it without --follow",
        )),
        Some(true) => Ok(State::Complete),
        Some(false) if !goes_on => Ok(State::Interrupted),
        Some(false) if flush(path) => Ok(State::UpTo(Nanos(asked_at.0 - MARGIN_NANOS))),
        Some(false) => Ok(State::Busy),
    }
}

/// Processes a recording in progress, round by round.
pub trait Follower {
    /// Returns the reading position.
    fn tail(&mut self) -> &mut Tail;

    /// Reads the events up to a time, or all.
    fn round(&mut self, recording: Recording, until: Option<Nanos>) -> Result<(), CliError>;

    /// Whether another round is wanted.
    fn wants_more(&self) -> bool;

    /// Waits until another round may have new events; `state` is that of the last round.
    fn pause(&mut self, live: Option<&LiveCopy>, state: State) {
        let _ = (live, state);
        sleep(ROUND);
    }
}

/// Follows a recording, or the copy of a live one, until it is complete or the follower wants no more.
///
/// Errors: it is not a recording of `lat record`; errors of the rounds.
pub fn follow(
    path: &Path,
    live: Option<&LiveCopy>,
    follower: &mut impl Follower,
) -> Result<State, CliError> {
    loop {
        let state = live.map_or_else(|| state(path), LiveCopy::state)?;
        let goes_on = matches!(state, State::UpTo(_) | State::Busy);
        // Without new data it is not read again.
        let is_worth_it = !goes_on || live.is_none_or(LiveCopy::has_news);
        if state != State::Busy && is_worth_it {
            let until = match state {
                State::UpTo(time) => Some(time),
                _ => None,
            };
            match follower.tail().open() {
                Ok(recording) => follower.round(recording, until)?,
                // Before the first program there is no trace.
                Err(_) if goes_on => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !goes_on || !follower.wants_more() {
            return Ok(state);
        }
        follower.pause(live, state);
    }
}

/// Returns the single recording to follow.
///
/// Errors: several are given.
pub fn only_one(paths: &[PathBuf]) -> Result<&Path, CliError> {
    let [path] = paths else {
        let advice = "follow one recording at a time";
        return Err(CliError::new("cannot follow", "several recordings", advice));
    };
    Ok(path)
}

/// Formats the message for a recording that was interrupted.
pub fn interrupted(path: &Path, live: Option<&LiveCopy>) -> String {
    if live.is_some() {
        return "interrupted: the connection ended before the recording did".to_owned();
    }
    let path = path.display();
    format!(
        "interrupted: its recorder is gone: what the rings hold is saved by `lat recover`: {path}"
    )
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Whether the report says that the recording is complete; `None` if it is not a Lateralis recording.
pub fn is_complete(path: &Path) -> Option<bool> {
    let report = fs::read(path.join("report.json")).ok()?;
    serde_json::from_slice::<Value>(&report).ok()?["complete"].as_bool()
}

/// Has the recorder of this recording write the contents of the rings, even if it records no program. Returns
/// whether it did.
fn flush(path: &Path) -> bool {
    let here = path.canonicalize().ok();
    let is_it = |recorder: &RunningRecorder| {
        let output = recorder.answer.output.as_ref();
        here.is_some() && output.and_then(|output| output.canonicalize().ok()) == here
    };
    let recorder = recorders(None).into_iter().find(is_it);
    recorder.is_some_and(|recorder| recorder.ask(Request::Flush).is_ok())
}
