// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as an analysis sees them: by the names that the producer gave.
//!
//! Where a reader has made names of its own, the class says which they were, in attributes
//! [`ORIGINAL`](lateralis_model::original::ORIGINAL).

use std::sync::Arc;

use lateralis_model::original::Original;
use lateralis_model::{Event, Field, FieldKind, Fields, Names, Value};

use crate::datum::Datum;

/// An event, with what is not in it.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub event: &'a Event<'a>,
    /// Its name.
    pub name: &'a Arc<str>,
    /// What its class says of original names.
    pub originals: &'a [Original],
    pub names: &'a Names,
}

impl Seen<'_> {
    /// The value of a field: of the payload, then `context.NAME` of a context, then the fields that
    /// Trace Compass gives to every event.
    pub fn field(&self, name: &str) -> Datum {
        let payload = self.event.payload();
        let found = payload.and_then(|payload| find(payload, name));
        if let Some(value) = found.or_else(|| self.context(name)) {
            return value;
        }
        let writer = self.event.writer;
        let number = |number: Option<u32>| number.map_or(Datum::Null, |n| Datum::Integer(n.into()));
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        if is("timestamp") {
            Datum::Integer(self.event.time.0)
        } else if is("cpu") {
            number(self.event.packet.cpu.map(|cpu| cpu.0))
        } else if is("tid") {
            number(writer.map(|writer| writer.tid))
        } else if is("pid") {
            number(writer.map(|writer| writer.pid))
        } else {
            Datum::Null
        }
    }

    fn context(&self, name: &str) -> Option<Datum> {
        let original = self.originals.iter().find_map(|original| match original {
            Original::Process(field) if field == name => {
                let name = self.names.processes.get(&self.event.writer?.pid);
                Some(name.map_or(Datum::Null, |name| Datum::text(name)))
            }
            Original::Thread(field) if field == name => {
                let name = self.names.threads.get(&self.event.writer?.tid);
                Some(name.map_or(Datum::Null, |name| Datum::text(name)))
            }
            _ => None,
        });
        let inside = name.strip_prefix("context.");
        let event = self.event;
        let contexts = || [event.common_context(), event.context(), event.packet_context()];
        let find = |name| contexts().into_iter().flatten().find_map(|fields| find(fields, name));
        original.or_else(|| inside.and_then(find))
    }
}

/// The field of this name, or of this path through structures.
fn find(fields: Fields<'_>, name: &str) -> Option<Datum> {
    if let Some(field) = get(fields, name) {
        return datum(&field);
    }
    let (first, rest) = name.split_once('.')?;
    match get(fields, first)?.value() {
        Value::Struct(fields) => find(fields, rest),
        _ => None,
    }
}

/// Trace Compass leaves out the underscore that CTF puts before names.
fn get<'a>(fields: Fields<'a>, name: &str) -> Option<Field<'a>> {
    fields.get(name).or_else(|| fields.get(&format!("_{name}")))
}

fn datum(field: &Field<'_>) -> Option<Datum> {
    let labels = match &field.class().kind {
        FieldKind::Unsigned(class) | FieldKind::Signed(class) => class.labels.as_slice(),
        _ => &[],
    };
    let named = |number: i64| {
        let has = |range: &lateralis_model::Range| range.contains(number.into());
        let label = labels.iter().find(|label| label.ranges.iter().any(has));
        label.map_or(Datum::Integer(number), |l| Datum::Named(number, l.name.as_str().into()))
    };
    Some(match field.value() {
        Value::Bool(yes) => Datum::Integer(yes.into()),
        Value::Unsigned(number) | Value::Bits(number) => named(number as i64),
        Value::Signed(number) => named(number),
        Value::Real(real) => Datum::Real(real),
        Value::Text(text) => Datum::text(&text.to_str()),
        Value::Variant(_, field) | Value::Optional(Some(field)) => return datum(&field),
        _ => return None,
    })
}
