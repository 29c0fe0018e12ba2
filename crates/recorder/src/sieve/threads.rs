// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies on threads, by their names.

use std::collections::HashMap;

use lateralis_ring::abi;

use super::Verdict;
use crate::classes::RegisteredSchema;
use crate::filter::{Filter, compile};
use crate::pattern::Patterns;
use crate::policy::ThreadCondition;

/// Maximum number of threads whose names are kept; beyond it all are looked up again.
const THREADS_MAX: usize = 65_536;

/// The events to record of some threads of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRule {
    /// All must hold; empty: every thread.
    pub conditions: Vec<ThreadCondition>,
    /// Events, and filters on their fields; `None`: no events.
    pub wanted: Option<(Patterns, Vec<Filter>)>,
}

impl ThreadRule {
    fn is_for(&self, name: &str) -> bool {
        self.conditions.iter().all(|condition| condition.holds(name))
    }

    /// The decision on an event of these threads. Errors: a filter that is invalid for the event.
    fn verdict(
        &self,
        entry: &RegisteredSchema,
        event: &lateralis_pleco::schema::Event,
    ) -> Result<Verdict, String> {
        let schema = &entry.schema;
        let Some((patterns, filters)) = &self.wanted else { return Ok(Verdict::Drop) };
        if !patterns.matches(&schema.subsystems[event.subsystem].name, &event.name) {
            return Ok(Verdict::Drop);
        }
        let name = schema.full_name(event);
        let Some(filter) = filters.iter().find(|filter| filter.event == name) else {
            return Ok(Verdict::Keep);
        };
        let steps = compile(filter, schema, event).map_err(|error| error.to_string())?;
        Ok(Verdict::If(steps.into()))
    }
}

#[derive(Debug)]
struct Known {
    name: Vec<u8>,
    /// The first rule that applies to it.
    rule: Option<usize>,
}

/// The rules and the known threads.
#[derive(Debug)]
pub struct Threads {
    rules: Vec<ThreadRule>,
    /// By rule and event id.
    verdicts: Vec<Vec<Verdict>>,
    bound: usize,
    known: HashMap<(u32, u32), Known>,
}

impl Threads {
    pub(super) fn new(rules: Vec<ThreadRule>) -> Threads {
        let verdicts = vec![Vec::new(); rules.len()];
        Threads { rules, verdicts, bound: 0, known: HashMap::new() }
    }

    pub(super) fn bind(&mut self, registered: &[RegisteredSchema]) -> Vec<String> {
        let mut faults = Vec::new();
        for entry in &registered[self.bound.min(registered.len())..] {
            for event in &entry.schema.events {
                let at = entry.base_id.saturating_add(event.index) as usize;
                if at >= abi::EVENT_COUNT as usize {
                    break;
                }
                for (rule, verdicts) in self.rules.iter().zip(&mut self.verdicts) {
                    let verdict = rule.verdict(entry, event).unwrap_or_else(|reason| {
                        let name = entry.schema.full_name(event);
                        faults.push(format!("{reason}; all of {name} is recorded"));
                        Verdict::Keep
                    });
                    if verdicts.len() <= at {
                        // An id that no schema contains is damage, which the sealing reports.
                        verdicts.resize(at + 1, Verdict::Keep);
                    }
                    verdicts[at] = verdict;
                }
            }
        }
        self.bound = registered.len();
        faults
    }

    /// A thread has this name from now on.
    pub fn learn(&mut self, thread: (u32, u32), name: &[u8]) {
        if self.known.get(&thread).is_some_and(|known| known.name == name) {
            return;
        }
        if self.known.len() >= THREADS_MAX {
            self.known.clear();
        }
        let text = String::from_utf8_lossy(name);
        let rule = self.rules.iter().position(|rule| rule.is_for(&text));
        self.known.insert(thread, Known { name: name.to_owned(), rule });
    }

    /// Sets a name unless the thread already has one, which may be newer.
    pub(super) fn learn_unknown(&mut self, thread: (u32, u32), name: &[u8]) {
        if !self.known.contains_key(&thread) {
            self.learn(thread, name);
        }
    }

    /// Looks up the names of all threads again.
    pub fn refresh(&mut self, name_of: &mut dyn FnMut(u32, u32) -> Option<Vec<u8>>) {
        let threads: Vec<(u32, u32)> = self.known.keys().copied().collect();
        for thread in threads {
            // Its last records may not have been read yet, so an ended thread keeps its name.
            if let Some(name) = name_of(thread.0, thread.1) {
                self.learn(thread, &name);
            }
        }
    }

    /// The decision on an event of the thread in a WRITER record. An unknown thread
    /// keeps its events, because they may be selected.
    pub(super) fn verdict(
        &mut self,
        writer: [u8; 8],
        id: u16,
        name_of: &mut dyn FnMut(u32, u32) -> Option<Vec<u8>>,
    ) -> &Verdict {
        let [a, b, c, d, e, f, g, h] = writer;
        let thread = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        if !self.known.contains_key(&thread)
            && let Some(name) = name_of(thread.0, thread.1)
        {
            self.learn(thread, &name);
        }
        let Some(known) = self.known.get(&thread) else { return &Verdict::Keep };
        let Some(rule) = known.rule else { return &Verdict::Drop };
        if u32::from(id) < abi::INTERNAL_EVENT_COUNT {
            // A mark: kept for threads that have selected events.
            let wanted = self.rules[rule].wanted.as_ref();
            let is_wanted = wanted
                .is_some_and(|(patterns, _)| patterns.decide("lateralis", "MARK") != Some(false));
            return if is_wanted { &Verdict::Keep } else { &Verdict::Drop };
        }
        self.verdicts[rule].get(usize::from(id)).unwrap_or(&Verdict::Keep)
    }
}
