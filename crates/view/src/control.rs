// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the recorder of a recording that grows can be asked for from the page. Who knows how to ask
//! is above this crate.

use serde_json::Value;

use crate::answer::Problem;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Events again.
    Start,
    /// No events, for now.
    Stop,
    /// What rings hold, to the files.
    Flush,
    /// What a flight recorder has, into a recording of its own.
    Snapshot,
    /// Some events from now on.
    Enable,
    /// Some events no more.
    Disable,
}

impl Action {
    /// By its word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "start" => Self::Start,
            "stop" => Self::Stop,
            "flush" => Self::Flush,
            "snapshot" => Self::Snapshot,
            "enable" => Self::Enable,
            "disable" => Self::Disable,
            _ => return None,
        })
    }
}

/// Asks recorders.
pub trait Control: Send + Sync {
    /// Does something for programs, by their processes, which are of the session; of events by
    /// patterns. One object for each that it was done for.
    ///
    /// # Errors
    /// It could not be done for any.
    fn act(&self, action: Action, pids: &[u32], events: &[String]) -> Result<Vec<Value>, Problem>;
}
