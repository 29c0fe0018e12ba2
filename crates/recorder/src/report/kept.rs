// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Windows of time that were kept because a condition fired: one in the `report.json` of its
//! recording, all of them in `kept.json` of the folder.

use serde::{Deserialize, Serialize};

/// Version of `kept.json`; grows when a reader would misunderstand.
pub const KEPT_VERSION: u32 = 1;

/// `kept.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptList {
    /// [`KEPT_VERSION`].
    pub kept_version: u32,
    /// What was watched for, as written.
    pub conditions: Vec<String>,
    /// Time that was asked for before each moment.
    pub before_ns: u64,
    /// And behind it.
    pub after_ns: u64,
    /// How often a condition fired.
    pub fired: u64,
    /// Of it, without a window: no more were allowed, or it could not be written.
    pub not_kept: u64,
    /// Windows that were removed to make room for later ones.
    pub removed: u64,
    /// Windows in the order of time, at most 10000.
    pub windows: Vec<KeptWindow>,
    /// Names that no schema had, and the like.
    pub problems: Vec<String>,
    /// What could not be judged.
    pub not_judged: NotJudged,
}

/// What there was no room for: it was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotJudged {
    /// Events, while too many waited.
    pub events: u64,
    /// Spans, while too many were open.
    pub spans: u64,
    /// Values of counters with too many keys.
    pub values: u64,
    /// Events that came after their time had been judged. Those that have an order were judged all
    /// the same, late.
    pub late_events: u64,
    /// Firings that were only counted.
    pub firings: u64,
}

/// A window of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptWindow {
    /// Name of its recording under the folder.
    pub name: String,
    /// Asked for: from this, UTC nanoseconds since 1970.
    pub from_ns: i64,
    /// Asked for: to this.
    pub to_ns: i64,
    /// First event of a schema in it; none if there is none.
    pub first_event_ns: Option<i64>,
    /// Last event of a schema in it.
    pub last_event_ns: Option<i64>,
    /// Why it holds less than was asked for: a sentence each.
    pub short: Vec<String>,
    /// The window before it would have been too long: this one goes on where it ends.
    pub continues: bool,
    /// Events of schemas.
    pub events: u64,
    /// Bytes of its stream files.
    pub bytes: u64,
    /// It was removed to make room for a later one.
    pub removed: bool,
    /// Why it was kept: at most 100.
    pub reasons: Vec<KeptReason>,
    /// Further ones.
    pub more_reasons: u64,
}

/// A condition that fired.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptReason {
    /// Counts all that fired, from 1.
    pub number: u64,
    /// Its text.
    pub condition: String,
    /// The moment it became true, UTC nanoseconds since 1970: of a span, when it passed the limit.
    pub at_ns: i64,
    /// A time that was measured.
    pub duration_ns: Option<u64>,
    /// It was over; else it took at least so long.
    pub is_over: bool,
    /// Something else that was measured: a counter, events a second.
    pub value: Option<serde_json::Number>,
    /// Key of the span or counter.
    pub key: Option<String>,
    /// Process that began it.
    pub pid: Option<u32>,
    /// Thread that began it.
    pub tid: Option<u32>,
    /// Nothing was lost that could have changed it; else whether it is so is unknown.
    pub is_certain: bool,
}

impl KeptList {
    /// The file's text.
    pub fn to_json(&self) -> String {
        // No map with keys that are not text is in it: nothing can fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a file's text.
    pub fn from_json(text: &str) -> Result<KeptList, serde_json::Error> {
        serde_json::from_str(text)
    }
}
