// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions on a program's events, evaluated during recording: `span(request) > 5ms`.
//!
//! ```text
//! text ─ parse ─▶ Condition ─ bind (schemas) ─▶ interests in records
//! packets ─ read ─▶ facts ─ order of time, up to a watermark ─ judge ─▶ Firing
//! ```
//!
//! Packets of different rings arrive in any order, and a span may begin in one and end in another. So
//! facts are collected, and evaluated in the order of time up to the point that all rings have
//! reached: the watermark passed to [`Watch::advance`]. The result does not depend on the time of
//! evaluation: a span fires at the time at which it exceeded its limit, whether it has ended or not.
//!
//! No I/O, no clock, bounded memory whatever the packets contain: open spans, keys, facts and losses
//! are limited, and those beyond the limits are counted ([`Watch::limits`]).

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

/// Maximum length of a condition.
pub const TEXT_MAX: usize = 4096;
/// Maximum number of tests in a condition.
pub const TESTS_MAX: usize = 16;
/// Maximum nesting of parentheses.
pub const DEPTH_MAX: usize = 16;
/// Maximum number of events of a sequence, and of compared fields of an event.
pub const PARTS_MAX: usize = 16;

/// A condition: fires each time that one of its alternatives fires.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// All tests in the order of the text, each with its text.
    pub tests: Vec<(String, Test)>,
    /// The operands of `or`, each with its text.
    pub alternatives: Vec<(String, Term)>,
}

/// A combination of tests. Each term fires at certain times.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// The test of this number.
    Test(usize),
    /// Fires when one of these does.
    Any(Vec<Term>),
    /// `A and B within TIME`: fires with the last of them, if all others fired within the time before.
    /// Each firing is used once.
    All {
        /// The terms.
        terms: Vec<Term>,
        /// Maximum time from the first to the last.
        within_ns: u64,
    },
}

impl Condition {
    /// Events named by its tests. Those of spans and counters are known from schemas only.
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
    /// Whether the term contains the test of this number.
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
    /// Its subsystem; `None` matches any.
    pub subsystem: Option<String>,
    /// Its name.
    pub event: String,
}

impl EventName {
    /// Whether the name matches an event of this subsystem.
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

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Self-explanatory.
pub enum Compare {
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    Different,
}

impl Compare {
    /// Whether it holds for values in this order; `None` if they have none (NaN).
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
    /// The comparison.
    pub compare: Compare,
    /// The value.
    pub value: Literal,
}

/// One test. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `span(NAME) > TIME`: a span takes longer, whether it has ended or not.
    Span {
        /// Name of the span, as in `begin NAME`.
        name: String,
        /// Time after which it fires.
        limit_ns: u64,
    },
    /// `sequence(A, B, C) within TIME`: events in this order, possibly with others between them.
    Sequence {
        /// The events.
        events: Vec<EventName>,
        /// Maximum time from the first to the last.
        within_ns: u64,
    },
    /// `missing(EVENT) for TIME`: the event did not occur for this time.
    Missing {
        /// The event.
        event: EventName,
        /// Time after which it fires.
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
        /// Length of the window in which they are counted.
        over_ns: u64,
    },
    /// `counter(NAME) > N`: fires when it becomes true, separately for each key.
    Counter {
        /// Name of the counter, as in `counter NAME`.
        name: String,
        /// The comparison.
        compare: Compare,
        /// The value.
        value: f64,
    },
    /// `event(EVENT, FIELD == VALUE)`.
    Event {
        /// The event.
        event: EventName,
        /// All of these must match.
        fields: Vec<FieldTest>,
    },
}
