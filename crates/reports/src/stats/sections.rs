// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--section`: what must be computed for it, and which members of the JSON belong to it.

use lateralis_semantics::kernel::Topics;
use serde_json::{Map, Value};

use super::document::{Member, Members};
use super::page::Section;

/// What must be computed; all else is cheap, or needed for everything.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Classes and processors, how many events and how often.
    pub events: bool,
    /// Durations of spans by how many were open.
    pub in_flight: bool,
    /// What each thread did of each kind of span.
    pub span_threads: bool,
    /// Who had the processors, and who woke whom.
    pub running: bool,
    /// Messages.
    pub messages: bool,
    /// States and counters.
    pub levels: bool,
    /// What the kernel did for threads and with devices.
    pub kernel: Topics,
}

impl Asked {
    /// For these sections of the page, or of the JSON; none are all that are told without.
    pub fn of(sections: &[Section], is_json: bool) -> Self {
        let asks = |any: &[Section]| {
            sections.is_empty() || any.iter().any(|section| sections.contains(section))
        };
        let running = [
            Section::Cpus,
            Section::Threads,
            Section::ThreadStates,
            Section::Applications,
            Section::Wakeups,
        ];
        Self {
            events: asks(&[Section::Events]),
            // The page tells it only when asked.
            in_flight: asks(&[Section::Latency]) && (is_json || !sections.is_empty()),
            // The page does not tell it.
            span_threads: asks(&[Section::Threads]) && is_json,
            running: asks(&running),
            messages: asks(&[Section::Messages]),
            kernel: Topics {
                calls: asks(&[Section::Calls]),
                block: asks(&[Section::Block]),
                faults: asks(&[Section::Faults]),
                network: asks(&[Section::Network]),
                idle: asks(&[Section::Idle]),
                memory: asks(&[Section::Memory]),
            },
            levels: asks(&[Section::States, Section::Counters]),
        }
    }
}

/// Members of the whole that are parts; all others are always told.
const MEMBERS: [(&str, &[Section]); 22] = [
    ("events", &[Section::Events]),
    ("events_by_cpu", &[Section::Events]),
    ("spans", &OF_SPANS),
    ("messages", &[Section::Messages]),
    ("states", &[Section::States]),
    ("counted", &[Section::Counted]),
    ("counters", &[Section::Counters]),
    ("losses", &[Section::Losses]),
    ("damage", &[Section::Losses]),
    ("budgets", &[Section::Budgets]),
    ("cpus", &[Section::Cpus]),
    ("contradictions", &[Section::Cpus, Section::Threads, Section::ThreadStates]),
    ("threads", &[Section::Threads]),
    ("thread_states", &[Section::ThreadStates]),
    ("applications", &[Section::Applications]),
    ("wakeups", &[Section::Wakeups]),
    ("calls", &[Section::Calls]),
    ("block", &[Section::Block]),
    ("page_faults", &[Section::Faults]),
    ("network", &[Section::Network]),
    ("cpu_idle", &[Section::Idle]),
    ("memory", &[Section::Memory]),
];

const OF_SPANS: [Section; 5] =
    [Section::Spans, Section::Keys, Section::Slowest, Section::Latency, Section::Threads];

/// Members of a kind of span; all others but its name belong to the table of spans.
const OF_SPAN: [(&str, Section); 8] = [
    ("by_key", Section::Keys),
    ("keys", Section::Keys),
    ("spans_of_other_keys", Section::Keys),
    ("slowest", Section::Slowest),
    ("by_thread", Section::Threads),
    ("threads", Section::Threads),
    ("histogram_ns", Section::Latency),
    ("by_in_flight", Section::Latency),
];

/// Leaves out what belongs to no wanted section; none wanted are all.
pub fn keep<'a>(mut members: Members<'a>, wanted: &'a [Section]) -> Members<'a> {
    if wanted.is_empty() {
        return members;
    }
    let is_wanted = |name: &str| {
        let of = MEMBERS.iter().find(|(member, _)| *member == name);
        of.is_none_or(|(_, sections)| sections.iter().any(|section| wanted.contains(section)))
    };
    members.retain(|name, _| is_wanted(name));
    if let Some(Member::Value(Value::Object(left_out))) = members.get_mut("left_out") {
        left_out.retain(|name, _| is_wanted(name));
    }
    if let Some(spans) = members.remove("spans") {
        let kept = spans.map_rows(move |mut span| {
            if let Some(span) = span.as_object_mut() {
                keep_of_span(span, wanted);
            }
            span
        });
        members.insert("spans".to_owned(), kept);
    }
    members
}

fn keep_of_span(span: &mut Map<String, Value>, wanted: &[Section]) {
    let is_kept = |name: &str| match OF_SPAN.iter().find(|(member, _)| *member == name) {
        // The histogram is drawn apart, and is of the durations.
        Some(("histogram_ns", _)) if wanted.contains(&Section::Spans) => true,
        Some((_, section)) => wanted.contains(section),
        None => wanted.contains(&Section::Spans) || ["name", "key_fields"].contains(&name),
    };
    let not_exact = span.remove("not_exact");
    span.retain(|name, _| is_kept(name));
    if let Some(Value::Object(mut marks)) = not_exact {
        marks.retain(|name, _| is_kept(name));
        span.insert("not_exact".to_owned(), Value::Object(marks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::document;
    use serde_json::json;

    #[test]
    fn only_what_is_wanted_stays() {
        let all = json!({
            "trace": "t",
            "events": [1],
            "messages": [],
            "left_out": { "calls": [2], "events_by_cpu": [3] },
            "spans": [{
                "name": "a", "key_fields": [], "count": 3, "by_key": [], "keys": 2,
                "histogram_ns": [], "not_exact": { "count": "lower_bound", "keys": "unknown" },
            }],
        });
        let kept = |wanted: &[Section]| {
            let mut all = document::members(all.clone());
            if let Some(Member::Value(Value::Array(spans))) = all.remove("spans") {
                all.insert("spans".to_owned(), Member::rows(spans.into_iter()));
            }
            serde_json::to_value(keep(all, wanted)).expect("JSON")
        };
        assert_eq!(kept(&[]), all);
        let left_out = json!({ "events_by_cpu": [3] });
        let events = json!({ "trace": "t", "events": [1], "left_out": left_out });
        assert_eq!(kept(&[Section::Events]), events);
        let keys = json!({
            "name": "a", "key_fields": [], "by_key": [], "keys": 2,
            "not_exact": { "keys": "unknown" },
        });
        let keys = json!({ "trace": "t", "spans": [keys], "left_out": {} });
        assert_eq!(kept(&[Section::Keys]), keys);
        let spans = kept(&[Section::Spans, Section::Messages]);
        assert_eq!(spans["spans"][0]["count"], 3);
        assert_eq!(spans["spans"][0]["histogram_ns"], json!([]));
        assert_eq!(spans["spans"][0]["not_exact"], json!({ "count": "lower_bound" }));
        assert_eq!((spans.get("events"), &spans["messages"]), (None, &json!([])));
    }
}
