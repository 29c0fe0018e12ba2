// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that only look at an event, compiled.
//!
//! ```text
//! text of the function ─ lex ─► tokens ─ parse ─► Expression ─┬─ row      event by event
//!                                                             └─ classes  columns at once
//! ```
//!
//! What is understood is a subset of JavaScript: literals, what an event has, `! - + ~ typeof`,
//! arithmetic, comparisons, `&& || ?? ?:`, and `startsWith`, `endsWith`, `includes` with
//! a text. Everything else is [`Unsupported`], with the reason, and stays with the
//! engine. The meaning is exactly JavaScript's: where a value of an event
//! leads out of the subset (a text is to be read as a number, an exception is thrown) the
//! answer is [`Answer::Ask`], and the engine runs the function for that event.

mod arithmetic;
mod classes;
mod constants;
mod lex;
mod parse;
mod row;
mod value;

use std::fmt;

use lateralis_analysis::filter::Known;

pub use classes::Piece;
pub use lateralis_analysis::filter::columns::Answer;
pub use row::{Row, label, scopes};
pub use value::{Binary, SAFE_MAX, Value};

/// Why a function is left to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Byte of the function's text.
    pub at: usize,
    /// What is there.
    pub what: String,
}

impl Unsupported {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// A compiled function of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
    paths: Vec<Path>,
    names_globals: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(Value<'static>),
    /// Index into the paths.
    Path(usize),
    Not(Box<Node>),
    Unary(Unary, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Nullish(Box<Node>, Box<Node>),
    Choose(Box<Node>, Box<Node>, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// Of a value that may be absent if the last is true.
    Text(TextTest, Box<Node>, String, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unary {
    Negate,
    Plus,
    Invert,
    TypeOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextTest {
    StartsWith,
    EndsWith,
    Includes,
}

/// Something of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Path {
    /// `event.cpu` and its like.
    Known(Known),
    /// `event.fields.a.b[2]`; at least one step.
    Field(Vec<Step>),
    /// `event.labels.a`: the name of the value of a field.
    Label(String),
}

/// A step into a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// Where to.
    pub key: Key,
    /// Whether it may start from nothing: `?.`
    pub is_optional: bool,
}

/// Where a step leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// To a field.
    Name(String),
    /// To an element.
    Index(u32),
}

impl Expression {
    /// Compiles the text of a function of one argument, as JavaScript's
    /// `Function.prototype.toString` gives it. The engine has accepted it: what is no
    /// JavaScript may be compiled to anything.
    ///
    /// # Errors
    /// Why it is left to the engine.
    pub fn of_function(text: &str) -> Result<Self, Unsupported> {
        parse::function(text)
    }

    /// Compiles an expression over `event`.
    ///
    /// # Errors
    /// As [`Expression::of_function`].
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        parse::expression(text, "event")
    }

    /// The value of a field: `a`, or `a.b` for a nested field; `None` if the text is not a name.
    #[must_use]
    pub fn field(name: &str) -> Option<Self> {
        let step = |part: &str| Step { key: Key::Name(part.to_owned()), is_optional: true };
        let steps: Vec<Step> = name.split('.').map(step).collect();
        let is_name = name.split('.').all(|part| !part.is_empty());
        let paths = vec![Path::Field(steps)];
        is_name.then_some(Self { root: Node::Path(0), paths, names_globals: false })
    }

    /// What it looks at, each once.
    #[must_use]
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether it says `undefined`, `NaN` or `Infinity`, which a script could give
    /// another meaning.
    #[must_use]
    pub fn names_globals(&self) -> bool {
        self.names_globals
    }
}
