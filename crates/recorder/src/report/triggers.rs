// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions that fired, and what was done.

use serde::{Deserialize, Serialize};

use super::{KeptReason, NotJudged};

/// Conditions of a recording, and how often they fired.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Triggers {
    /// What was asked for.
    pub rules: Vec<TriggerRule>,
    /// How often a condition fired.
    pub fired: u64,
    /// Firings, at most 10000.
    pub firings: Vec<Fired>,
    /// Further ones: they were acted on, too.
    pub not_listed: u64,
    /// Commands that were not run because one ran already.
    pub commands_skipped: u64,
    /// What could not be judged.
    pub not_judged: NotJudged,
}

/// A condition and its actions, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TriggerRule {
    /// What is joined by `or`, each.
    pub conditions: Vec<String>,
    /// What is done.
    pub actions: Vec<String>,
}

/// A condition that fired.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fired {
    /// Which, when, what was measured.
    #[serde(flatten)]
    pub reason: KeptReason,
    /// What was done.
    pub done: Vec<Done>,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// It, as written.
    pub action: String,
    /// What became of it.
    pub outcome: Outcome,
    /// When it was begun, UTC nanoseconds since 1970.
    pub begun_ns: i64,
    /// How long a command took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// Exit status of a command as a shell gives it: 128 + N if signal N ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done; a command ended.
    Done,
    /// A command that has not ended.
    Running,
    /// A command was not run because one ran already.
    Skipped,
    /// It could not be done: see the cause.
    Failed,
    /// A command took too long and was killed.
    TimedOut,
}
