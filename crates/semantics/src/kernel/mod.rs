// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a kernel did for threads and with devices: calls that returned, requests to disks, page faults …
//!
//! ```text
//! names of classes ─► rule of each, or none ── event, with its thread ─► Activity
//! ```
//!
//! Beside [`Facts`](crate::facts::Facts), which have what all analyses share: an activity has numbers of its own kind,
//! and whoever wants one kind asks for that. Of every class it is decided once whether its events mean anything here.
//! Memory: by what is open at once, bounded.

pub mod calls;
mod fields;
pub mod numbers;

use lateralis_model::role::FILTERED;
use lateralis_model::{EnvValue, Event, Trace};
use lateralis_units::Nanos;

use crate::Successions;
use crate::facts::At;
use calls::{Call, CallRule, Calls};

/// Which kinds of activity are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Topics {
    /// Calls of the system, or of a library that are recorded like them, and what they returned.
    pub calls: bool,
}

/// One thing that was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activity {
    /// A call returned, or is known not to have.
    Call(Call),
}

/// What events of a class mean.
#[derive(Debug)]
enum Rule {
    Call(CallRule),
}

/// Turns events into activities.
#[derive(Debug, Default)]
pub struct KernelEvents {
    rules: Vec<Vec<Option<Rule>>>,
    successions: Successions,
    calls: Calls,
    is_filtered: bool,
}

impl KernelEvents {
    /// Of a trace, of these kinds.
    #[must_use]
    pub fn new(trace: &Trace, topics: Topics, successions: Successions) -> Self {
        let mut events = Self { successions, ..Self::default() };
        let mut rules = Vec::with_capacity(trace.stream_classes.len());
        for (index, stream) in (0..).zip(&trace.stream_classes) {
            let architecture = architecture(trace.environment_of(index));
            if topics.calls {
                events.calls.begin_stream_class(stream, architecture);
            }
            let rule = |class| {
                let call = topics.calls.then(|| events.calls.rule(class));
                call.flatten().map(Rule::Call)
            };
            let of_stream: Vec<Option<Rule>> = stream.event_classes.iter().map(rule).collect();
            let classes = stream.event_classes.iter().zip(&of_stream);
            events.is_filtered |= classes
                .filter(|(_, rule)| rule.is_some())
                .any(|(class, _)| class.attribute(FILTERED).is_some());
            rules.push(of_stream);
        }
        events.rules = rules;
        events
    }

    /// Whether any class means anything here.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.rules.iter().flatten().any(Option::is_some)
    }

    /// Whether events of this class do.
    #[must_use]
    #[inline]
    pub fn wants(&self, stream_class: u32, class: u32) -> bool {
        let of_stream = self.rules.get(stream_class as usize);
        of_stream.and_then(|of| of.get(class as usize)).is_some_and(Option::is_some)
    }

    /// Whether the recorder left out some of the events of a class that means something here.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.is_filtered
    }

    /// The calls there are.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Shows what an event says. Events in the order of time, each with when and where it happened; without the
    /// thread, where that is in doubt.
    pub fn event(&mut self, event: &Event<'_>, at: &At, see: &mut dyn FnMut(&Activity)) {
        if let Some(ended) = self.successions.comes(at.time) {
            self.finish(Some(ended), see);
        }
        let of_stream = self.rules.get(event.stream_class_index as usize);
        let rule = of_stream.and_then(|of| of.get(event.class_index as usize));
        match rule {
            Some(Some(Rule::Call(rule))) => self.calls.event(rule, event, at, see),
            Some(None) | None => {}
        }
    }

    /// The trace has ended.
    pub fn finish(&mut self, _ended: Option<Nanos>, see: &mut dyn FnMut(&Activity)) {
        self.calls.finish(see);
    }
}

fn architecture(environment: &[(String, EnvValue)]) -> Option<&str> {
    let mut known = environment.iter().filter(|(key, _)| key == "architecture" || key == "machine");
    known.find_map(|(_, value)| value.as_text())
}
