// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions on what a program does, judged while it is recorded: `span(request) > 5ms`.
//!
//! ```text
//! text ─ parse ─▶ Condition ─ bind (schemas) ─▶ what to look for in records
//! packets ─ read ─▶ facts ─ order of time, up to a watermark ─ judge ─▶ Firing
//! ```
//!
//! Packets of different rings come in any order, a span may begin in one and end in another. So
//! what they say is collected, and judged in the order of time as far as all rings were read: up to
//! the watermark that [`Watch::advance`] is given. What happened does not depend on when it was
//! looked at: a span fires at the moment it passed its limit, ended or not.
//!
//! No I/O, no clock, bounded memory whatever the packets say: open spans, keys, facts and losses
//! have caps, and what did not fit is counted ([`Watch::limits`]).

mod bind;
mod combine;
mod judge;
mod names;
mod parse;
mod read;
mod spans;
mod state;
#[cfg(test)]
mod tests;
mod watch;

pub use parse::ConditionError;
pub use watch::{Firing, Limits, Measured, SpanEnd, Watch};

/// Longest text of a condition.
pub const TEXT_MAX: usize = 4096;
/// Most tests in a condition.
pub const TESTS_MAX: usize = 16;
/// Most parentheses within each other.
pub const DEPTH_MAX: usize = 16;
/// Most events of a sequence, and most fields of an event that are compared.
pub const PARTS_MAX: usize = 16;

/// When something shall be done: at each moment at which one of the alternatives fires.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// All tests in the order of the text, each with its text.
    pub tests: Vec<(String, Test)>,
    /// What is joined by `or`, each with its text.
    pub alternatives: Vec<(String, Term)>,
}

/// How tests are joined. Each term fires at moments.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// The test of this number fires.
    Test(usize),
    /// One of them fires.
    Any(Vec<Term>),
    /// `A and B within TIME`: the last of them fires, and all others fired in the time before.
    /// A firing counts once.
    All {
        /// All of these.
        terms: Vec<Term>,
        /// From the first to the last, at most.
        within_ns: u64,
    },
}

impl Condition {
    /// Events that its tests name. Those of spans and counters only a schema knows.
    pub fn event_names(&self) -> impl Iterator<Item = &EventName> {
        self.tests.iter().flat_map(|(_, test)| match test {
            Test::Sequence { events, .. } => &events[..],
            Test::Missing { event, .. } | Test::Rate { event, .. } | Test::Event { event, .. } => {
                std::slice::from_ref(event)
            }
            Test::Span { .. } | Test::Counter { .. } => &[],
        })
    }
}

impl Term {
    /// Whether the test of this number is part of it.
    #[must_use]
    pub fn has(&self, test: usize) -> bool {
        match self {
            Term::Test(own) => *own == test,
            Term::Any(terms) | Term::All { terms, .. } => terms.iter().any(|term| term.has(test)),
        }
    }
}

/// An event by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventName {
    /// Its subsystem; `None`: any.
    pub subsystem: Option<String>,
    /// Its name.
    pub event: String,
}

impl EventName {
    /// Whether an event of this subsystem with this name is meant.
    #[must_use]
    pub fn is(&self, subsystem: &str, event: &str) -> bool {
        self.event == event && self.subsystem.as_deref().is_none_or(|name| name == subsystem)
    }
}

impl std::fmt::Display for EventName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.subsystem {
            Some(subsystem) => write!(f, "{subsystem}:{}", self.event),
            None => f.write_str(&self.event),
        }
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum Compare {
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    Different,
}

impl Compare {
    /// Whether it holds for values in this order; `None`: they have none (NaN).
    #[must_use]
    pub fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match self {
            Compare::Greater => order == Some(Greater),
            Compare::AtLeast => matches!(order, Some(Greater | Equal)),
            Compare::Less => order == Some(Less),
            Compare::AtMost => matches!(order, Some(Less | Equal)),
            Compare::Equal => order == Some(Equal),
            Compare::Different => order != Some(Equal),
        }
    }
}

/// A value as written in a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `42`, `-7`, `0x2a`.
    Integer(i128),
    /// `1.5`.
    Real(f64),
    /// `"text"`.
    Text(String),
    /// A label of an enum, `true` or `false`.
    Word(String),
}

/// A field of an event compared with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldTest {
    /// Name of the field.
    pub field: String,
    /// How.
    pub compare: Compare,
    /// With what.
    pub value: Literal,
}

/// One test. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `span(NAME) > TIME`: a span takes longer, whether it has ended or not.
    Span {
        /// Name of the span, as in `begin NAME`.
        name: String,
        /// It fires when this has passed.
        limit_ns: u64,
    },
    /// `sequence(A, B, C) within TIME`: events in this order, others between them or not.
    Sequence {
        /// The events.
        events: Vec<EventName>,
        /// From the first to the last, at most.
        within_ns: u64,
    },
    /// `missing(EVENT) for TIME`: the event did not come for so long.
    Missing {
        /// The event.
        event: EventName,
        /// It fires when this has passed.
        limit_ns: u64,
    },
    /// `rate(EVENT) > N/s over TIME`.
    Rate {
        /// The event.
        event: EventName,
        /// Greater or less.
        compare: Compare,
        /// Events per second.
        per_second: f64,
        /// Time over which they are counted.
        over_ns: u64,
    },
    /// `counter(NAME) > N`: fires when it becomes true, for each key on its own.
    Counter {
        /// Name of the counter, as in `counter NAME`.
        name: String,
        /// How.
        compare: Compare,
        /// With what.
        value: f64,
    },
    /// `event(EVENT, FIELD == VALUE)`.
    Event {
        /// The event.
        event: EventName,
        /// All must hold.
        fields: Vec<FieldTest>,
    },
}
