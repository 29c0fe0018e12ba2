// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clauses in words, for JSON and the documentation.

use crate::schema::{Clause, Event};

/// A clause with its field names instead of indices.
pub(super) struct Wording<'a> {
    /// The word of the clause: `begin`.
    pub kind: &'static str,
    /// Span, channel or field.
    pub subject: &'a str,
    /// The name of a counter.
    pub title: Option<&'a str>,
    /// Names of the key fields.
    pub keys: Vec<&'a str>,
}

pub(super) fn wording<'a>(clause: &'a Clause, event: &'a Event) -> Wording<'a> {
    let field = |index: usize| event.fields[index].name.as_str();
    let (kind, subject, title, keys) = match clause {
        Clause::Begin { span, keys } => ("begin", span.as_str(), None, keys),
        Clause::End { span, keys } => ("end", span.as_str(), None, keys),
        Clause::Send { channel, keys } => ("send", channel.as_str(), None, keys),
        Clause::Recv { channel, keys } => ("recv", channel.as_str(), None, keys),
        Clause::Counter { field: index, name, keys } => {
            ("counter", field(*index), Some(name.as_str()), keys)
        }
        Clause::State { field: index, keys } => ("state", field(*index), None, keys),
    };
    Wording { kind, subject, title, keys: keys.iter().map(|key| field(*key)).collect() }
}
