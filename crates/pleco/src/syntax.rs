// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written in a schema file, before it is checked. The parser makes
//! this tree from any text; parts that could not be read are left out.

use crate::source::Span;

/// A word with its place.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// The text of a string literal with its place.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub value: String,
    pub span: Span,
}

/// A number with its place. Wider than any field, so that "does not fit" can be said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub value: i128,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub schema_name: Option<Name>,
    pub enums: Vec<EnumDefinition>,
    pub subsystems: Vec<SubsystemDefinition>,
    pub budgets: Vec<BudgetDefinition>,
}

#[derive(Debug)]
pub(crate) struct SubsystemDefinition {
    pub name: Name,
    pub description: Option<Text>,
    pub id: Option<Number>,
    pub events: Vec<EventDefinition>,
}

#[derive(Debug)]
pub(crate) struct EventDefinition {
    pub name: Name,
    pub description: Option<Text>,
    pub id: Option<Number>,
    /// `None`: no field list was written, which means `(arg: u32)`.
    pub fields: Option<Vec<FieldDefinition>>,
    pub clauses: Vec<ClauseDefinition>,
}

#[derive(Debug)]
pub(crate) struct FieldDefinition {
    pub name: Name,
    pub ty: TypeExpression,
    pub annotations: Vec<Name>,
}

#[derive(Debug)]
pub(crate) enum TypeExpression {
    Named(Name),
    Enum(EnumBody),
    /// `[element; length]`
    Array(ElementExpression, Option<Number>),
    /// `[element]`
    Sequence(ElementExpression),
    /// Could not be read; was reported.
    Unreadable,
}

#[derive(Debug)]
pub(crate) enum ElementExpression {
    Named(Name),
    Enum(EnumBody),
    /// An array in an array, or unreadable; was reported.
    Unusable,
}

#[derive(Debug)]
pub(crate) struct EnumBody {
    pub span: Span,
    pub container: Option<Name>,
    pub labels: Vec<LabelDefinition>,
}

#[derive(Debug)]
pub(crate) struct LabelDefinition {
    pub name: Name,
    pub value: Option<Number>,
}

#[derive(Debug)]
pub(crate) struct EnumDefinition {
    pub name: Name,
    pub body: EnumBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClauseKind {
    Begin,
    End,
    Send,
    Recv,
    Counter,
    State,
    Format,
}

impl ClauseKind {
    pub const WORDS: [(&'static str, ClauseKind); 7] = [
        ("begin", ClauseKind::Begin),
        ("end", ClauseKind::End),
        ("send", ClauseKind::Send),
        ("recv", ClauseKind::Recv),
        ("counter", ClauseKind::Counter),
        ("state", ClauseKind::State),
        ("format", ClauseKind::Format),
    ];

    pub fn from_word(word: &str) -> Option<ClauseKind> {
        Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

#[derive(Debug)]
pub(crate) struct ClauseDefinition {
    pub kind: ClauseKind,
    pub span: Span,
    /// Span, channel or field; `None` for `format`, and where it is missing (reported).
    pub subject: Option<Name>,
    /// The name given to a counter.
    pub title: Option<Name>,
    pub keys: Vec<Name>,
}

#[derive(Debug)]
pub(crate) struct BudgetDefinition {
    pub span_name: Name,
    pub statistic: crate::schema::Statistic,
    pub is_inclusive: bool,
    /// The number as it is written.
    pub limit: Name,
    pub unit: crate::schema::BudgetUnit,
    pub span: Span,
}
