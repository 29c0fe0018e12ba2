// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters of events by their fields, evaluated in the traced program before an event is recorded
//! [ring-abi §11]: `io:READ: count > 4096 and fd == 3`.
//!
//! ```text
//! parse    the text: `or`, `and`, `not`, parentheses, FIELD [& MASK] COMPARISON VALUE
//! compile  for an event of a schema: steps, each of which compares one field
//! exact    a single value, for events that start and stop a recording
//! evaluate applies the steps to a record that was read
//! ```

mod compile;
mod evaluate;
mod exact;
mod parse;

pub use compile::compile;
pub use evaluate::passes;

use std::fmt;

/// A filter as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// `SUBSYSTEM:EVENT`, exact.
    pub event: String,
    /// The condition as written.
    pub text: String,
    /// The parsed condition.
    pub condition: Expression,
}

/// A condition on the fields of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// Compares a field with a value.
    Compare {
        /// Name of the field.
        field: String,
        /// Bits of the field that are compared; `None`: all.
        mask: Option<u64>,
        /// The comparison.
        comparison: Comparison,
        /// The value.
        value: Value,
    },
    /// Both must hold.
    And(Box<Expression>, Box<Expression>),
    /// At least one must hold.
    Or(Box<Expression>, Box<Expression>),
    /// Must not hold.
    Not(Box<Expression>),
}

/// A comparison of a field with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value that a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i128),
    /// A label of an enumeration, `true` or `false`.
    Label(String),
}

/// An invalid filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The filter as given, or the invalid part.
    pub filter: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cannot use filter: filter={:?}: {}", self.filter, self.what)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Parses `SUBSYSTEM:EVENT: CONDITION`.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let error = |what: String| FilterError { filter: text.to_owned(), what };
        let mut parts = text.splitn(3, ':').map(str::trim);
        let (Some(subsystem), Some(event), Some(condition)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(error("write SUBSYSTEM:EVENT: CONDITION".to_owned()));
        };
        let is_name = |name: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '\'';
            !name.is_empty() && name.chars().all(letter)
        };
        if !is_name(subsystem) || !is_name(event) {
            return Err(error("it is for one event: SUBSYSTEM:EVENT, without * and ?".to_owned()));
        }
        Ok(Filter {
            event: format!("{subsystem}:{event}"),
            text: condition.to_owned(),
            condition: parse::expression(condition).map_err(error)?,
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.event, self.text)
    }
}

impl Comparison {
    /// Whether it holds.
    pub fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}
