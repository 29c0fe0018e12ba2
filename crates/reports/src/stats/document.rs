// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON of `lat stats`, whose rows are made while they are written: a trace may have a million threads,
//! and a row is some kilobytes as a [`Value`].

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A member of an object.
pub enum Member<'a> {
    /// A value that is small.
    Value(Value),
    /// A list.
    Rows(Rows<'a>),
    /// Members by name.
    Object(Members<'a>),
}

/// Members by name, in the order in which they are written.
pub type Members<'a> = BTreeMap<String, Member<'a>>;

/// The members of an object that is small.
pub fn members<'a>(object: Value) -> Members<'a> {
    match object {
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, Member::Value(value))).collect()
        }
        _ => Members::new(),
    }
}

/// Rows of a list, made one by one.
pub struct Rows<'a>(RefCell<Option<Box<dyn Iterator<Item = Value> + 'a>>>);

impl<'a> Member<'a> {
    /// A list of rows that are made when they are written, once.
    pub fn rows(rows: impl Iterator<Item = Value> + 'a) -> Self {
        Self::Rows(Rows(RefCell::new(Some(Box::new(rows)))))
    }

    /// The rows of a list, made one by one; none of anything else.
    pub fn into_rows(self) -> Box<dyn Iterator<Item = Value> + 'a> {
        match self {
            Self::Rows(Rows(rows)) => Box::new(rows.into_inner().into_iter().flatten()),
            Self::Value(Value::Array(rows)) => Box::new(rows.into_iter()),
            Self::Value(_) | Self::Object(_) => Box::new(std::iter::empty()),
        }
    }

    /// The same rows, each changed.
    pub fn map_rows(self, change: impl Fn(Value) -> Value + 'a) -> Self {
        match self {
            Self::Rows(Rows(rows)) => match rows.into_inner() {
                Some(rows) => Self::rows(rows.map(change)),
                None => Self::Rows(Rows(RefCell::new(None))),
            },
            other => other,
        }
    }
}

impl From<Value> for Member<'_> {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Object(members) => members.serialize(serializer),
            Self::Rows(Rows(rows)) => {
                serializer.collect_seq(rows.borrow_mut().take().into_iter().flatten())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_made_while_they_are_written() {
        let made = std::cell::Cell::new(0);
        let rows = (0..3).map(|number| {
            made.set(made.get() + 1);
            json!(number)
        });
        let rows = Member::rows(rows).map_rows(|row| json!({ "n": row }));
        let mut inner = members(json!({ "a": true }));
        inner.insert("rows".to_owned(), rows);
        let all = Members::from([("object".to_owned(), Member::Object(inner))]);
        assert_eq!(made.get(), 0);
        let text = serde_json::to_string(&all).expect("JSON");
        assert_eq!(text, r#"{"object":{"a":true,"rows":[{"n":0},{"n":1},{"n":2}]}}"#);
        assert_eq!(made.get(), 3);
    }
}
