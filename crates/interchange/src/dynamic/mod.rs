// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events whose fields are known only when they are met.
//!
//! Chrome JSON, Perfetto and FXT attach any arguments to any event. The model needs a class for
//! each kind of event. An importer therefore reads its bytes twice with the same code: the first
//! time a [`Survey`] collects the fields of the events of each kind, the second time [`Fill`] adds
//! them to a trace. Memory of the first pass is bounded by the number of distinct kinds, not by the
//! number of events.

mod ends;
mod fill;
mod shape;
mod survey;

use std::borrow::Cow;

use lateralis_model::Writer;

pub use ends::{Ends, Names};
pub use fill::Fill;
pub use survey::{ClassText, Survey};

/// A value of any shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Dyn<'a> {
    /// JSON's `null`, or an argument without a value.
    Null,
    /// Yes or no.
    Bool(bool),
    /// Integer ≥ 0.
    Unsigned(u64),
    /// Integer.
    Signed(i64),
    /// Integer ≥ 0 that is read in base 16, an address for instance.
    Hex(u64),
    /// Floating point.
    Real(f64),
    /// Characters.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Elements.
    List(Vec<Dyn<'a>>),
    /// Named values; names are different.
    Dict(Named<'a>),
}

/// Named values in order.
pub type Named<'a> = Vec<(Cow<'a, str>, Dyn<'a>)>;

/// Makes the names of `values` different: the second `x` becomes `x#2`.
pub fn make_unique(values: &mut Named<'_>) {
    for at in 1..values.len() {
        let (before, rest) = values.split_at_mut(at);
        let name = &mut rest[0].0;
        if before.iter().all(|(other, _)| other != name) {
            continue;
        }
        let mut number = 2u32;
        let mut candidate = format!("{name}#{number}");
        while before.iter().any(|(other, _)| *other == candidate) {
            number += 1;
            candidate = format!("{name}#{number}");
        }
        *name = Cow::Owned(candidate);
    }
}

/// To which kind of stream an event belongs: which fields its common context has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// No common field.
    Global,
    /// `pid`, `tid`.
    Thread,
    /// `cpu_id`, `pid`, `tid`; one stream for each processor.
    Cpu(u32),
}

impl Lane {
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Global => 0,
            Self::Thread => 1,
            Self::Cpu(_) => 2,
        }
    }
}

/// An event as an importer met it.
#[derive(Debug, Clone)]
pub struct Dynamic<'a> {
    /// Its kind of stream.
    pub lane: Lane,
    /// What the format calls its kind: a phase, a record type.
    pub tag: u32,
    /// Its category; empty if it has none.
    pub category: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Nanoseconds.
    pub time: i64,
    /// Its thread.
    pub writer: Option<Writer>,
    /// What the format itself says about it.
    pub context: Named<'a>,
    /// What its author says.
    pub payload: Named<'a>,
}

/// Takes the events of one walk.
pub trait Sink {
    /// The next event.
    fn event(&mut self, event: &Dynamic<'_>);
}

/// Writes a value as JSON.
pub fn to_json(value: &Dyn<'_>, out: &mut Vec<u8>) {
    match value {
        Dyn::Null => out.extend_from_slice(b"null"),
        Dyn::Bool(true) => out.extend_from_slice(b"true"),
        Dyn::Bool(false) => out.extend_from_slice(b"false"),
        Dyn::Unsigned(number) | Dyn::Hex(number) => crate::json::number(out, number),
        Dyn::Signed(number) => crate::json::number(out, number),
        Dyn::Real(number) => crate::json::real(out, *number),
        Dyn::Text(text) => crate::json::string(out, text),
        Dyn::Bytes(bytes) => crate::json::hex_string(out, bytes),
        Dyn::List(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                to_json(element, out);
            }
            out.push(b']');
        }
        Dyn::Dict(members) => named_to_json(members, out),
    }
}

/// Writes named values as a JSON object.
pub fn named_to_json(members: &Named<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        crate::json::string(out, name);
        out.push(b':');
        to_json(value, out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_numbered() {
        let mut values: Named<'_> =
            ["a", "b", "a", "a#2", "a"].map(|name| (Cow::Borrowed(name), Dyn::Null)).into();
        make_unique(&mut values);
        let names: Vec<_> = values.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["a", "b", "a#2", "a#2#2", "a#3"]);
    }

    #[test]
    fn values_are_written_as_json() {
        let value = Dyn::Dict(vec![
            ("n".into(), Dyn::Null),
            ("l".into(), Dyn::List(vec![Dyn::Signed(-1), Dyn::Real(0.5), Dyn::Hex(16)])),
            ("t".into(), Dyn::Text("a\"\n".into())),
        ]);
        let mut out = Vec::new();
        to_json(&value, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"n":null,"l":[-1,0.5,16],"t":"a\"\n"}"#);
    }
}
