// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Windows of time saved at firings of conditions: one in the `report.json` of its
//! recording, all of them in `kept.json` of the folder.

use serde::{Deserialize, Serialize};

/// Version of `kept.json`; increases when older readers would misinterpret it.
pub const KEPT_VERSION: u32 = 1;

/// `kept.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptList {
    /// [`KEPT_VERSION`].
    pub kept_version: u32,
    /// The conditions, as written.
    pub conditions: Vec<String>,
    /// Requested time before each firing, in nanoseconds.
    pub before_ns: u64,
    /// Requested time after it.
    pub after_ns: u64,
    /// Number of firings.
    pub fired: u64,
    /// Firings without a window: the limit was reached, or it could not be written.
    pub not_kept: u64,
    /// Windows removed to make room for later ones.
    pub removed: u64,
    /// Windows in the order of time, at most 10000.
    pub windows: Vec<KeptWindow>,
    /// Problems, such as names that no schema contains.
    pub problems: Vec<String>,
    /// Items that were not evaluated.
    pub not_judged: NotJudged,
}

/// Numbers of items that were not evaluated because a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotJudged {
    /// Events, while too many were waiting.
    pub events: u64,
    /// Spans, while too many were open.
    pub spans: u64,
    /// Values of counters with too many keys.
    pub values: u64,
    /// Events that arrived after their time had been evaluated. Those that have an order were evaluated
    /// late.
    pub late_events: u64,
    /// Firings that were only counted.
    pub firings: u64,
}

/// A window of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptWindow {
    /// Name of its recording under the folder.
    pub name: String,
    /// Start of the requested time, UTC nanoseconds since 1970.
    pub from_ns: i64,
    /// End of the requested time.
    pub to_ns: i64,
    /// First event of a schema in it; `None` if there is none.
    pub first_event_ns: Option<i64>,
    /// Last event of a schema in it.
    pub last_event_ns: Option<i64>,
    /// Why it contains less than requested: one sentence each.
    pub short: Vec<String>,
    /// The previous window reached the maximum length: this one continues it.
    pub continues: bool,
    /// Number of events of schemas.
    pub events: u64,
    /// Size of its stream files in bytes.
    pub bytes: u64,
    /// It was removed to make room for a later one.
    pub removed: bool,
    /// Reasons for saving it: at most 100.
    pub reasons: Vec<KeptReason>,
    /// Number of further reasons.
    pub more_reasons: u64,
}

/// A firing of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptReason {
    /// Sequence number over all firings, from 1.
    pub number: u64,
    /// Text of the condition.
    pub condition: String,
    /// Time at which it became true, UTC nanoseconds since 1970: for a span, when it exceeded the limit.
    pub at_ns: i64,
    /// A measured duration.
    pub duration_ns: Option<u64>,
    /// It has ended; otherwise the duration is a lower bound.
    pub is_over: bool,
    /// Another measured value: a counter, events per second.
    pub value: Option<serde_json::Number>,
    /// Key of the span or counter.
    pub key: Option<String>,
    /// Process that started it.
    pub pid: Option<u32>,
    /// Thread that started it.
    pub tid: Option<u32>,
    /// No loss could have changed it; otherwise the result is uncertain.
    pub is_certain: bool,
}

impl KeptList {
    /// The file's text.
    pub fn to_json(&self) -> String {
        // It contains no map with keys that are not text: serialising cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Parses a file's text.
    pub fn from_json(text: &str) -> Result<KeptList, serde_json::Error> {
        serde_json::from_str(text)
    }
}
