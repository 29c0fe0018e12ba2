// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An analysis as it runs: names are resolved, numbers are read.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::datum::{Datum, Type};

/// An analysis.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub handlers: Vec<Handler>,
    pub machines: Vec<Machine>,
    /// Indices of machines that begin to run with the first event; the others never do.
    pub initial: Vec<usize>,
    pub tests: Vec<Condition>,
    pub actions: Vec<Vec<Action>>,
    pub maps: Vec<Vec<(Operand, Operand)>>,
    /// Fields that transitions may save, and as what.
    pub stored: Vec<(Arc<str>, Arc<str>)>,
}

/// What an event of these names does to the tree.
#[derive(Debug)]
pub(crate) struct Handler {
    pub events: Pattern,
    pub changes: Vec<Action>,
}

/// Names of events: alternatives, in which `*` matches any characters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pattern(pub Vec<Vec<String>>);

impl Pattern {
    /// All names, where `text` is empty.
    pub fn new(text: &str) -> Self {
        let text = if text.is_empty() { "*" } else { text };
        let parts = |one: &str| one.split('*').map(str::to_owned).collect();
        Self(text.split('|').map(parts).collect())
    }

    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|parts| matches(parts, name))
    }
}

/// Whether a name consists of these parts with anything in between.
fn matches(parts: &[String], name: &str) -> bool {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    if parts.len() == 1 {
        return name == first;
    }
    let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
    for part in &parts[1..parts.len() - 1] {
        // The leftmost position leaves the most for the following parts.
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

/// A name in a path.
#[derive(Debug)]
pub(crate) enum Name {
    Constant(Arc<str>),
    Field(Arc<str>),
    Event,
    Query(Path),
}

/// An attribute of the tree, or of the scenario that runs.
#[derive(Debug, Default)]
pub(crate) struct Path {
    pub of_scenario: bool,
    pub names: Vec<Name>,
}

#[derive(Debug)]
pub(crate) enum What {
    Constant(Datum),
    Field(Arc<str>),
    Event,
    Query(Path),
    Peek(Path),
}

/// Something that has a value when an event comes.
#[derive(Debug)]
pub(crate) struct Operand {
    pub what: What,
    /// Index of the map it goes through.
    pub map: Option<usize>,
    pub forced: Option<Type>,
}

impl Operand {
    pub fn new(what: What) -> Self {
        Self { what, map: None, forced: None }
    }

    pub fn forced(self, to: Type) -> Self {
        Self { forced: Some(to), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    AtLeast,
    Greater,
    AtMost,
    Less,
}

impl Operator {
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::AtLeast => order.is_ge(),
            Self::Greater => order.is_gt(),
            Self::AtMost => order.is_le(),
            Self::Less => order.is_lt(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Condition {
    Compare(Operator, Operand, Operand),
    /// The event lies in (or out of) this time, ends included, in nanoseconds.
    Time {
        begin: i64,
        end: i64,
        inside: bool,
    },
    /// Nanoseconds since the scenario entered that state.
    Elapsed(Operator, Arc<str>, i64),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// How an attribute changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Set,
    Add,
    /// The state that it is in was this one all the time.
    Update,
    Push,
    Pop,
    PopAll,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub path: Path,
    pub value: Operand,
    pub how: How,
    /// When, in nanoseconds; now where there is none.
    pub later: Option<Operand>,
}

#[derive(Debug)]
pub(crate) enum Action {
    Change(Change),
    If(Condition, Box<Action>, Option<Box<Action>>),
    Segment(SegmentPlan),
    /// Actions declared inside of others.
    All(Vec<Action>),
}

#[derive(Debug)]
pub(crate) struct SegmentPlan {
    pub name: Operand,
    pub begin: Option<Operand>,
    pub end: Option<Operand>,
    pub duration: Option<Operand>,
    pub fields: Vec<(Arc<str>, Operand)>,
}

/// A state machine; each of its runs is a scenario.
#[derive(Debug)]
pub(crate) struct Machine {
    /// One of them must hold for an event to be looked at.
    pub preconditions: Vec<Guard>,
    /// Whether an event that moved one scenario is not shown to the next.
    pub is_consuming: bool,
    /// Whether several scenarios run at a time.
    pub is_multiple: bool,
    pub initial: usize,
    pub states: Vec<StatePlan>,
}

#[derive(Debug, Default)]
pub(crate) struct StatePlan {
    pub id: Arc<str>,
    pub on_entry: Vec<usize>,
    pub on_exit: Vec<usize>,
    /// None of a final one.
    pub transitions: Vec<Transition>,
}

/// When something may happen: an event of these names, for which all tests hold.
#[derive(Debug)]
pub(crate) struct Guard {
    pub events: Pattern,
    pub tests: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Transition {
    pub guard: Guard,
    pub target: usize,
    pub actions: Vec<usize>,
    pub saves: bool,
    pub clears: bool,
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn names_match_with_stars_and_alternatives() {
        for (pattern, name, expected) in [
            ("Rpc_call", "Rpc_call", true),
            ("Rpc_call", "Rpc_calls", false),
            ("Rpc_*", "Rpc_reply", true),
            ("*_call", "Rpc_call", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*a", "a", false),
            ("", "anything", true),
            ("sys_open|sys_close*", "sys_closedir", true),
            ("sys_open|sys_close", "sys_openat", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
