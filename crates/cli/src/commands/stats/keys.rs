// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of spans as numbers: equal keys are equal numbers.

use std::collections::HashMap;

use lateralis_model::{Fields, Value};

/// Which fields of an event are its key, and how its keys become numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFields {
    /// The span has no key: it belongs to its thread.
    None,
    /// One field by its index among those shown, of a type that fits a number.
    One(usize),
    /// Several, or text.
    Many(Vec<usize>),
}

/// Numbers for keys of several fields; one per span name.
#[derive(Debug, Default)]
pub struct Keys {
    numbers: HashMap<Vec<u8>, u64>,
}

impl Keys {
    /// The key of an event, `None` for spans without one.
    ///
    /// Cost: for a single integer the walk to its field; else one look-up.
    pub fn number(&mut self, fields: &KeyFields, payload: Option<Fields<'_>>) -> Option<u64> {
        let mut shown = payload
            .into_iter()
            .flatten()
            .filter(|(member, _)| !lateralis_store::is_length(&member.name))
            .map(|(_, field)| field);
        match fields {
            KeyFields::None => None,
            KeyFields::One(index) => Some(shown.nth(*index).and_then(|f| f.as_u64()).unwrap_or(0)),
            KeyFields::Many(indices) => {
                let all: Vec<_> = shown.collect();
                let mut bytes = Vec::new();
                for &index in indices {
                    // Length first, so that ("a", "bc") is not ("ab", "c").
                    let part = all.get(index).map(|field| match field.value() {
                        Value::Text(text) => text.to_str().into_owned().into_bytes(),
                        Value::Bytes(bytes) => bytes.to_vec(),
                        Value::Real(real) => real.to_bits().to_le_bytes().to_vec(),
                        _ => field.as_u64().unwrap_or(0).to_le_bytes().to_vec(),
                    });
                    let part = part.unwrap_or_default();
                    bytes.extend((part.len() as u64).to_le_bytes());
                    bytes.extend(part);
                }
                let next = self.numbers.len() as u64;
                Some(*self.numbers.entry(bytes).or_insert(next))
            }
        }
    }
}
