// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares the exact parts of `lat path` with the true activity of CPUs.

use serde_json::Value;

use super::program::Truth;
use crate::place::Place;

/// Spans of the program.
const SPANS: [&str; 3] = ["work", "request", "lock"];
/// Number of slowest spans of each name that are explained.
const SLOWEST: &str = "12";

/// Contradictions found, and number of compared parts of exact paths.
#[derive(Debug, Default)]
pub struct Paths {
    pub wrong: Vec<String>,
    pub compared: usize,
}

/// Explains the spans of one recording.
pub fn of(place: &Place, trace: &str, truth: &Truth) -> Paths {
    let mut paths = Paths::default();
    for name in SPANS {
        let output = place.lat(&["path", trace, "--span", name, "--slowest", SLOWEST, "--json"]);
        // There is no span if its class was off.
        let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        for span in found["spans"].as_array().expect("spans") {
            if span["quality"] == "exact" {
                paths.add(&format!("{trace}: {name}"), span, truth);
            }
        }
    }
    paths
}

impl Paths {
    fn add(&mut self, what: &str, span: &Value, truth: &Truth) {
        let number = |of: &Value, name: &str| {
            of[name].as_u64().unwrap_or_else(|| panic!("{what}: {name}: {of}"))
        };
        let (begin, end) = (number(span, "begin_ns"), number(span, "end_ns"));
        let segments = span["segments"].as_array().expect("segments");
        let mut until = begin;
        for segment in segments {
            let interval = (number(segment, "begin_ns"), number(segment, "end_ns"));
            if interval.0 != until {
                self.wrong.push(format!("{what}: {until} is not followed by {segment}"));
            }
            until = interval.1;
            let Some(tid) = segment["tid"].as_u64() else { continue };
            let on_cpu = truth.nanos(interval, |stretch| u64::from(stretch.tid) == tid);
            let nanos = interval.1 - interval.0;
            let is_true = match segment["does"].as_str().expect("a word") {
                "running" | "interrupted" => on_cpu == nanos,
                "blocked" | "ready" | "resuming" => on_cpu == 0,
                _ => continue,
            };
            self.compared += 1;
            if !is_true {
                self.wrong.push(format!("{what}: {on_cpu} ns on a CPU: {segment}"));
            }
        }
        if !segments.is_empty() && until != end {
            self.wrong.push(format!("{what}: the path ends at {until}: {span}"));
        }
        let in_shares: u64 = span["shares"]
            .as_array()
            .expect("shares")
            .iter()
            .map(|share| number(share, "time_ns"))
            .sum();
        if in_shares != end - begin {
            self.wrong.push(format!("{what}: shares of {in_shares} ns: {span}"));
        }
    }
}
