// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording that is followed while it goes on: how far it is, and what its recorder is
//! asked for.

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

/// The clock of a recording is known to less than this; see `error_ns` of its report.
pub const MARGIN_NANOS: i64 = 1_000_000;

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It goes on; everything up to this moment has been written.
    UpTo(Nanos),
    /// It goes on, and its recorder cannot be asked now: it begins, or is about to end.
    Busy,
    /// Nothing will be added.
    Complete,
    /// Nobody writes to it any more, and it has not been ended.
    Interrupted,
}

/// Asks how far a recording is, and has its recorder write what the rings hold.
///
/// Errors: it is no recording of `lat record`.
fn state(path: &Path) -> Result<State, CliError> {
    let inside = path.join("..");
    let path = match path.join("report.json").exists() {
        false if inside.join("report.json").exists() => inside.as_path(),
        _ => path,
    };
    let asked_at = now();
    // Before the report: one that ends in between has said so there.
    let goes_on = is_being_written(path);
    let is_certain = goes_on && is_locked(path);
    match is_complete(path) {
        // One that begins has said nothing of itself yet.
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

/// What is done with a recording while it goes on, round by round.
pub trait Follower {
    /// What of the recording has been read.
    fn tail(&mut self) -> &mut Tail;

    /// Reads on: up to a moment, or all there is.
    fn round(&mut self, recording: Recording, until: Option<Nanos>) -> Result<(), CliError>;

    /// Whether another round is wanted.
    fn wants_more(&self) -> bool;

    /// Waits until another round may have something, which was at this state.
    fn pause(&mut self, live: Option<&LiveCopy>, state: State) {
        let _ = (live, state);
        sleep(ROUND);
    }
}

/// Follows a recording, or the copy of one that is live elsewhere, until nothing will be added or
/// no more is wanted.
///
/// Errors: it is no recording of `lat record`; those of the rounds.
pub fn follow(
    path: &Path,
    live: Option<&LiveCopy>,
    follower: &mut impl Follower,
) -> Result<State, CliError> {
    loop {
        let state = live.map_or_else(|| state(path), LiveCopy::state)?;
        let goes_on = matches!(state, State::UpTo(_) | State::Busy);
        // Where nothing came it is not looked at again.
        let is_worth_it = !goes_on || live.is_none_or(LiveCopy::has_news);
        if state != State::Busy && is_worth_it {
            let until = match state {
                State::UpTo(time) => Some(time),
                _ => None,
            };
            match follower.tail().open() {
                Ok(recording) => follower.round(recording, until)?,
                // Before the first program there is no trace yet.
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

/// The one recording to follow.
///
/// Errors: there are several.
pub fn only_one(paths: &[PathBuf]) -> Result<&Path, CliError> {
    let [path] = paths else {
        let advice = "follow one recording at a time";
        return Err(CliError::new("cannot follow", "several recordings", advice));
    };
    Ok(path)
}

/// What is said of a recording that was interrupted.
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

/// `None` if it is no recording of ours.
pub fn is_complete(path: &Path) -> Option<bool> {
    let report = fs::read(path.join("report.json")).ok()?;
    serde_json::from_slice::<Value>(&report).ok()?["complete"].as_bool()
}

/// Has the recorder of this recording write what the rings hold, also one that records no program.
/// Whether it did.
fn flush(path: &Path) -> bool {
    let here = path.canonicalize().ok();
    let is_it = |recorder: &RunningRecorder| {
        let output = recorder.answer.output.as_ref();
        here.is_some() && output.and_then(|output| output.canonicalize().ok()) == here
    };
    let recorder = recorders(None).into_iter().find(is_it);
    recorder.is_some_and(|recorder| recorder.ask(Request::Flush).is_ok())
}
