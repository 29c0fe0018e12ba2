// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects events by an expression over their fields.
//!
//! ```text
//! bytes > 4k && $process == "redis-server"
//! !(prev_comm =~ "swapper/*") || latency_ns >= 1.5ms
//! state == RUNNING && cpus[0] == 3 && addr.port != 0x1f90
//! ```
//!
//! * `name`, `a.b`, `list[2]`: a field of the payload, else of the event's context, the
//!   common context, the packet
//! * `$event $subsystem $phase $cpu $pid $tid $process $thread $stream $time`: properties of every event;
//!   `$time` in nanoseconds on the timeline
//! * `12`, `0x1f`, `-3`, `1.5`: numbers; with `ns us ms s` nanoseconds, with `k M G` powers of
//!   1024
//! * `"text"`, `'text'`, `WORD`: text; a bare word right of an operator is text, so labels
//!   need no quotes
//! * `== != < <= > >=`: compare; a field with labels compares by label with text, by value with
//!   numbers
//! * `=~ !~`: the text matches a pattern with `*` and `?`, or does not match it
//! * `&& || ! ( )`: as in C
//!
//! A bare operand is true if it exists and is not 0, empty or false. An event
//! without the field fails every comparison with it, also `!=`.

pub mod columns;
mod eval;
mod names;
mod parse;

pub use eval::{Context, Fact, fact, text_of};
pub use names::field_names;
pub use parse::SyntaxError;

use lateralis_model::Event;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    root: Expression,
}

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Compare(Operand, Comparison, Operand),
    Truth(Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Matches,
    MatchesNot,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Integer(i128),
    Real(f64),
    Text(String),
    Field(Vec<Step>),
    Known(Known),
}

/// A step of a field path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

/// A property of every event, besides its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// Its full name.
    Event,
    /// The part of the name before the colon.
    Subsystem,
    /// Type of the event in its format, beside the name: `begin`, `end`, `instant` …
    Phase,
    /// CPU on which it happened.
    Cpu,
    /// Id of the process that wrote it.
    Pid,
    /// Id of the thread that wrote it.
    Tid,
    /// Name of the process.
    Process,
    /// Name of the thread.
    Thread,
    /// Name of its stream.
    Stream,
    /// Time of the event, in nanoseconds on the timeline.
    Time,
}

impl Filter {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the expression is invalid, with the column.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self { root: parse::expression(text)? })
    }

    /// Whether the event is selected.
    ///
    /// Cost: a walk over the fields for each field in the expression.
    #[must_use]
    pub fn matches(&self, event: &Event<'_>, context: &Context<'_>) -> bool {
        eval::truth(&self.root, event, context)
    }
}

/// Whether `pattern`, with `*` for any characters and `?` for one byte, matches the whole text.
///
/// Cost: O(pattern × text), no recursion.
#[must_use]
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Position to resume at if the part after the last star does not match.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (p, t) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a:*", "a:B", true),
            ("a:*", "ab:B", false),
            ("*LOCK", "threads:MUTEX_LOCK", true),
            ("*LOCK", "threads:MUTEX_LOCKED", false),
            ("*a*b*", "xxaxxbxx", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "a", false),
            ("a**", "a", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }
}
