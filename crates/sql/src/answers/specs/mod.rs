// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables made of the results of `lat stats`, `lat path` and `lat diff`.
//!
//! Columns have the names of the JSON members of the commands, so that both read alike.

mod path_and_diff;
mod stats;

/// Command that provides the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `lat stats`, for each recording.
    Stats,
    /// `lat path`, for each recording.
    Path,
    /// `lat diff`, for two recordings.
    Diff,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Int,
    /// A floating point number.
    Real,
    /// Text.
    Text,
    /// A boolean.
    Bool,
    /// Any value, as JSON.
    Json,
}

/// Source of the value of a column, from the row's own object outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Member of the row.
    Row(&'static str),
    /// Member of the object that contains the row.
    Outer(&'static str),
    /// The row itself, if it is not an object.
    Itself,
    /// Index of the row in its list, from 1.
    Number,
    /// Index of the object that contains the row, from 1.
    OuterNumber,
    /// Start of a bucket: a time plus the row's index times a width, both from the outer object: `begin`,
    /// `width`.
    Bucket(&'static str, &'static str),
    /// The lowest quality of any number in the row.
    Quality,
    /// The quality of one member of the outer object.
    OuterQuality(&'static str),
    /// Whether the row is in the first of several lists.
    IsFirst,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its source.
    pub at: At,
}

/// A function that returns a table.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as shown in help.
    pub arguments: &'static str,
    /// Description of its rows.
    pub gives: &'static str,
    /// The command.
    pub command: Command,
    /// Lists of rows: JSON pointers (RFC 6901) of at most two levels.
    pub rows: &'static [&'static [&'static str]],
    /// Its columns in groups shared by several specs, after `recording` if the command runs for each
    /// recording.
    pub columns: &'static [&'static [Column]],
}

impl Spec {
    /// All columns except `recording`.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        self.columns.iter().copied().flatten()
    }
}

pub(super) const fn int(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Int, at: At::Row(at) }
}

pub(super) const fn real(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Real, at: At::Row(at) }
}

pub(super) const fn text(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Text, at: At::Row(at) }
}

pub(super) const fn yes(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Bool, at: At::Row(at) }
}

pub(super) const fn outer_text(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Text, at: At::Outer(at) }
}

pub(super) const fn outer_int(name: &'static str, at: &'static str) -> Column {
    Column { name, kind: Kind::Int, at: At::Outer(at) }
}

pub(super) const QUALITY: Column = Column { name: "quality", kind: Kind::Text, at: At::Quality };
pub(super) const NOT_EXACT: Column =
    Column { name: "not_exact", kind: Kind::Json, at: At::Row("/not_exact") };

pub(super) const fn outer_quality(member: &'static str) -> Column {
    Column { name: "quality", kind: Kind::Text, at: At::OuterQuality(member) }
}

pub(super) const WINDOW: &str = "[from [, until]]";
pub(super) const SPAN: &str = "'span' [, count]";

/// All specs, in the order of help.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    stats::SPECS.iter().chain(path_and_diff::SPECS)
}
