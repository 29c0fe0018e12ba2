// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which tables are made of the answers of `lat stats`, `lat path` and `lat diff`.
//!
//! Columns are named as the members of the JSON of the commands, so that both are read alike.

mod path_and_diff;
mod stats;

/// Which command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `lat stats`, of each recording.
    Stats,
    /// `lat path`, of each recording.
    Path,
    /// `lat diff`, of two recordings.
    Diff,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Int,
    /// A number.
    Real,
    /// Text.
    Text,
    /// Yes or no.
    Bool,
    /// Whatever it is, as JSON.
    Json,
}

/// Where the value of a column is, from the row's own object outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// In the row.
    Row(&'static str),
    /// In the object that the row is part of.
    Outer(&'static str),
    /// The row itself, where it is no object.
    Itself,
    /// Place of the row in its list, from 1.
    Number,
    /// Place of the object that the row is part of, from 1.
    OuterNumber,
    /// A time that many widths behind a time, both of the outer object: `begin`, `width`.
    Bucket(&'static str, &'static str),
    /// The least trust that any number of the row deserves.
    Quality,
    /// The trust that one member of the outer object deserves.
    OuterQuality(&'static str),
    /// Whether the row is of the first of several lists.
    IsFirst,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Where it comes from.
    pub at: At,
}

/// A function that gives a table.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as help shows them.
    pub arguments: &'static str,
    /// What its rows are.
    pub gives: &'static str,
    /// Who answers.
    pub command: Command,
    /// Lists of rows: pointers (RFC 6901) of at most two levels.
    pub rows: &'static [&'static [&'static str]],
    /// Its columns in groups that several have, behind `recording` where the command is asked
    /// of each.
    pub columns: &'static [&'static [Column]],
}

impl Spec {
    /// All columns but `recording`.
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

/// All of them, in the order in which help shows them.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    stats::SPECS.iter().chain(path_and_diff::SPECS)
}
