// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of the fields of a record [ring-abi §3].

use lateralis_pleco::schema::{FieldType, Integer, Scalar};
use lateralis_ring::abi;

use super::Compare;

/// Maximum compared length of a key; the rest of longer ones is ignored.
const KEY_BYTES_MAX: usize = 256;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Integer(i128),
    Real(f64),
    Text(&'a [u8]),
    /// Elements of an array or a sequence, in native byte order.
    Raw(&'a [u8]),
}

/// A value that a field is compared with, in the field's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    Integer(i128),
    Real(f64),
    Text(Vec<u8>),
}

impl Value<'_> {
    /// Whether the comparison holds; never between a number and a text.
    pub(super) fn compares(&self, compare: Compare, wanted: &Wanted) -> bool {
        let order = match (self, wanted) {
            (Value::Integer(value), Wanted::Integer(wanted)) => Some(value.cmp(wanted)),
            (Value::Integer(value), Wanted::Real(wanted)) => (*value as f64).partial_cmp(wanted),
            (Value::Real(value), Wanted::Integer(wanted)) => value.partial_cmp(&(*wanted as f64)),
            (Value::Real(value), Wanted::Real(wanted)) => value.partial_cmp(wanted),
            (Value::Text(value), Wanted::Text(wanted)) => Some((*value).cmp(wanted.as_slice())),
            _ => return false,
        };
        compare.holds(order)
    }

    /// Its value as a number, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Real(value) => Some(*value),
            Value::Text(_) | Value::Raw(_) => None,
        }
    }

    /// Appends it to a key.
    pub(super) fn add_to(&self, key: &mut String) {
        if !key.is_empty() {
            key.push(' ');
        }
        match self {
            Value::Integer(value) => key.push_str(&value.to_string()),
            Value::Real(value) => key.push_str(&value.to_string()),
            Value::Text(text) => {
                let text = &text[..text.len().min(KEY_BYTES_MAX)];
                key.push_str(&String::from_utf8_lossy(text));
            }
            Value::Raw(bytes) => {
                for byte in bytes.iter().take(KEY_BYTES_MAX / 2) {
                    key.push_str(&format!("{byte:02x}"));
                }
            }
        }
    }
}

/// Reads field `index` of a record with fields of these types. `record` begins with the record's
/// header; `None` if it is truncated.
///
/// Cost: a step for each field before it; strings are searched for NUL.
pub(super) fn field<'a>(record: &'a [u8], types: &[FieldType], index: usize) -> Option<Value<'a>> {
    let mut end = abi::RECORD_HEADER_BYTES as usize;
    for (at, ty) in types.iter().enumerate().take(index + 1) {
        let is_it = at == index;
        match *ty {
            FieldType::Scalar(kind) => {
                let size = kind.size_bytes() as usize;
                let start = end.next_multiple_of(size);
                end = start.checked_add(size)?;
                if is_it {
                    return scalar(record.get(start..end)?, kind);
                }
            }
            FieldType::Array { element, length } => {
                let size = element.size_bytes() as usize;
                let start = end.next_multiple_of(size);
                end = start.checked_add(size.checked_mul(length as usize)?)?;
                if is_it {
                    return Some(Value::Raw(record.get(start..end)?));
                }
            }
            FieldType::Sequence(_) | FieldType::Bytes => {
                let size = match *ty {
                    FieldType::Sequence(element) => element.size_bytes() as usize,
                    _ => 1,
                };
                let count_at = end.next_multiple_of(4);
                let count = record.get(count_at..count_at + 4)?.try_into().ok()?;
                let start = (count_at + 4).next_multiple_of(size);
                let bytes = (u32::from_ne_bytes(count) as usize).checked_mul(size)?;
                end = start.checked_add(bytes)?;
                if is_it {
                    return Some(Value::Raw(record.get(start..end)?));
                }
            }
            FieldType::String => {
                let text = record.get(end..)?;
                let length = text.iter().position(|byte| *byte == 0)?;
                if is_it {
                    return Some(Value::Text(&text[..length]));
                }
                end += length + 1;
            }
        }
    }
    None
}

fn scalar(bytes: &[u8], kind: Scalar) -> Option<Value<'static>> {
    let integer = |kind: Integer| -> Option<i128> {
        Some(match kind {
            Integer::U8 => i128::from(u8::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::U16 => i128::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::U32 => i128::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::U64 => i128::from(u64::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::I8 => i128::from(i8::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::I16 => i128::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::I32 => i128::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            Integer::I64 => i128::from(i64::from_ne_bytes(bytes.try_into().ok()?)),
        })
    };
    Some(match kind {
        Scalar::Integer(kind) | Scalar::Enum { container: kind, .. } => {
            Value::Integer(integer(kind)?)
        }
        Scalar::F32 => Value::Real(f64::from(f32::from_ne_bytes(bytes.try_into().ok()?))),
        Scalar::F64 => Value::Real(f64::from_ne_bytes(bytes.try_into().ok()?)),
        Scalar::Bool => Value::Integer(i128::from(*bytes.first()? != 0)),
    })
}
