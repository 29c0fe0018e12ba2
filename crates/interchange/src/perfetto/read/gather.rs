// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What belongs together, found in the order of time before anything is named.

use std::collections::{HashMap, HashSet};

use crate::dynamic::{Dynamic, Ends, Names, Sink};
use crate::phases::Track;

/// Edges of spans, and where flows pass.
#[derive(Debug)]
pub struct Gathering {
    pub ends: Ends<Track>,
    flows: Vec<Passing>,
    max_flows: usize,
    refused: u64,
}

/// A flow passes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Passing {
    flow: u64,
    time: i64,
    event: u64,
    ends: bool,
}

impl Gathering {
    /// Uses at most this amount of memory.
    pub fn new(limit_bytes: u64) -> Self {
        let max_flows =
            usize::try_from(limit_bytes / 4).unwrap_or(usize::MAX) / size_of::<Passing>();
        Self { ends: Ends::new(limit_bytes / 4 * 3), flows: Vec::new(), max_flows, refused: 0 }
    }

    /// A flow passes the event of this number, or ends there.
    pub fn flow(&mut self, flow: u64, time: i64, event: u64, ends: bool) {
        if self.flows.len() < self.max_flows {
            self.flows.push(Passing { flow, time, event, ends });
        } else {
            self.refused += 1;
        }
    }

    /// How much did not fit.
    pub fn refused(&self) -> u64 {
        self.refused + if self.ends.has_unnamed() { self.ends.refused } else { 0 }
    }

    /// Names of events, and with which event, by number, flows begin: a flow that has ended
    /// begins again.
    pub fn finish(mut self) -> (Names, HashSet<(u64, u64)>) {
        self.flows.sort_unstable();
        let mut open: HashMap<u64, bool> = HashMap::new();
        let mut first = HashSet::new();
        for passing in &self.flows {
            let is_open = open.entry(passing.flow).or_default();
            if !passing.ends && !*is_open {
                first.insert((passing.event, passing.flow));
            }
            *is_open = !passing.ends;
        }
        (self.ends.names(), first)
    }
}

/// Takes events to forget them.
pub struct Nowhere;

impl Sink for Nowhere {
    fn event(&mut self, _: &Dynamic<'_>) {}
}
