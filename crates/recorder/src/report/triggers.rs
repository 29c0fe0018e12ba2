// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Firings of conditions, and their actions.

use serde::{Deserialize, Serialize};

use super::{KeptReason, NotJudged};

/// Conditions of a recording, and their firings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Triggers {
    /// The conditions with their actions.
    pub rules: Vec<TriggerRule>,
    /// Number of firings.
    pub fired: u64,
    /// Firings, at most 10000.
    pub firings: Vec<Fired>,
    /// Number of further ones; their actions were executed, too.
    pub not_listed: u64,
    /// Commands that were not run because one was already running.
    pub commands_skipped: u64,
    /// Items that were not evaluated.
    pub not_judged: NotJudged,
}

/// A condition and its actions, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TriggerRule {
    /// The operands of `or`.
    pub conditions: Vec<String>,
    /// The actions.
    pub actions: Vec<String>,
}

/// A firing of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fired {
    /// The condition, time and measured value.
    #[serde(flatten)]
    pub reason: KeptReason,
    /// The executed actions.
    pub done: Vec<Done>,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The action, as written.
    pub action: String,
    /// Its result.
    pub outcome: Outcome,
    /// Start time, UTC nanoseconds since 1970.
    pub begun_ns: i64,
    /// Duration of a command in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// Exit status of a command as in a shell: 128 + N if signal N ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was executed; a command has ended.
    Done,
    /// A command that has not ended yet.
    Running,
    /// A command was not run because one was already running.
    Skipped,
    /// It failed: see the cause.
    Failed,
    /// A command took too long and was killed.
    TimedOut,
}
