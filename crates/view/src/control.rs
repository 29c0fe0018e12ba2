// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of the page to the recorder of a live recording. A crate above this one implements them.

use serde_json::Value;

use crate::answer::Problem;

/// Command to a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Resumes recording.
    Start,
    /// Pauses recording.
    Stop,
    /// Writes the contents of the rings to the files.
    Flush,
    /// Writes what a flight recorder holds to a recording of its own.
    Snapshot,
    /// Enables some events from now on.
    Enable,
    /// Disables some events.
    Disable,
}

impl Action {
    /// Parses the name of a command.
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

/// Controls recorders.
pub trait Control: Send + Sync {
    /// Applies a command to processes of the session, given by their ids. Events are selected by
    /// patterns. Returns one object per process to which the command was applied.
    ///
    /// # Errors
    /// If the command could be applied to no process.
    fn act(&self, action: Action, pids: &[u32], events: &[String]) -> Result<Vec<Value>, Problem>;
}
