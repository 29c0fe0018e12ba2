// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A schema with every field type, values for its events, and an encoder that
//! follows the layout rules of spec/ring-abi.md §3 on its own: it uses the types
//! of the schema, but none of the crate's layout code.

#![allow(dead_code)] // Every test binary uses another part.

use lateralis_pleco::schema::{Event, Field, FieldType, Integer, Scalar, Schema};

pub const SCHEMA: &str = include_str!("every_type.pleco");

pub fn schema() -> Schema {
    let compiled = lateralis_pleco::compile("every_type.pleco", SCHEMA.as_bytes());
    compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

#[derive(Clone, Debug)]
pub enum Value {
    /// Integers, truth values and enums.
    Int(i128),
    F32(f32),
    F64(f64),
    Text(&'static str),
    List(Vec<Value>),
}

/// Values for every event of the schema, by its name.
pub fn records() -> Vec<(&'static str, Vec<Value>)> {
    use Value::{F32, F64, Int, Text};
    let list = |values: &[i128]| Value::List(values.iter().map(|v| Int(*v)).collect());
    vec![
        ("UNSIGNED", vec![Int(255), Int(65535), Int(0x8000_0001), Int(u64::MAX.into())]),
        ("SIGNED", vec![Int(-128), Int(-2), Int(i32::MIN.into()), Int(i64::MIN.into())]),
        ("BACKWARDS", vec![Int(1), Int(2), Int(3), Int(4), Int(-5), Int(6)]),
        ("FLOATS", vec![F32(-1.5), F64(0.1)]),
        ("TRUTH", vec![Int(1), Int(0)]),
        ("BASES", vec![Int(0xbeef), Int(0o755), Int(5)]),
        ("ENUMS", vec![Int(2), Int(-1), Int(70_000), Int(7)]),
        ("TEXT", vec![Text("a \"quoted\" word"), Int(7), Text("")]),
        ("BLOB", vec![list(&[1, 2, 255]), Int(9)]),
        ("BLOB", vec![list(&[]), Int(10)]),
        ("ARRAYS", vec![list(&[1, 2, 3]), list(&[-1, 1]), list(&[4, 5]), list(&[1, 0, 1])]),
        ("LONG", vec![list(&(1..=20).map(|i| i * 1_000_000_007).collect::<Vec<_>>())]),
        ("MATRIX", vec![Value::List(vec![F32(0.5), F32(2.0)]), list(&[2, 0])]),
        ("SEQUENCES", vec![list(&[1, 2]), list(&[-3]), list(&[u64::MAX.into()]), Int(1)]),
        ("SEQUENCES", vec![list(&[]), list(&[]), list(&[]), Int(2)]),
        ("LAST_EMPTY", vec![Int(3), list(&[])]),
        ("FLOAT_SEQUENCE", vec![Value::List(vec![F64(1.25), F64(-2.0)])]),
        ("ENUM_SEQUENCE", vec![list(&[0, 2]), list(&[1, 0])]),
        ("SIXTEEN", (0..16).map(|i| Int(i + (1 << 40))).collect()),
        ("RESERVED", vec![Int(1), Int(2), Int(3), Text("four")]),
        ("LEGACY", vec![Int(0xffff_ffff)]),
        ("NOTHING", vec![]),
    ]
}

pub fn event<'a>(schema: &'a Schema, name: &str) -> &'a Event {
    let found = schema.events.iter().find(|event| event.name == name);
    found.unwrap_or_else(|| panic!("no event {name}"))
}

/// The payload of a record, from the end of its header.
pub fn payload(event: &Event, values: &[Value], is_big: bool) -> Vec<u8> {
    assert_eq!(event.fields.len(), values.len(), "{}", event.name);
    let mut out = Vec::new();
    for (field, value) in event.fields.iter().zip(values) {
        put_field(&mut out, field, value, is_big);
    }
    out
}

fn put_field(out: &mut Vec<u8>, field: &Field, value: &Value, is_big: bool) {
    match (field.ty, value) {
        (FieldType::Scalar(scalar), value) => put_scalar(out, scalar, value, is_big),
        (FieldType::String, Value::Text(text)) => {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        (FieldType::Bytes, Value::List(items)) => {
            put_number(out, items.len() as i128, 4, is_big);
            for item in items {
                put_scalar(out, Scalar::Integer(Integer::U8), item, is_big);
            }
        }
        (FieldType::Sequence(element), Value::List(items)) => {
            put_number(out, items.len() as i128, 4, is_big);
            pad(out, size(element));
            for item in items {
                put_scalar(out, element, item, is_big);
            }
        }
        (FieldType::Array { element, length }, Value::List(items)) => {
            assert_eq!(items.len(), length as usize);
            for item in items {
                put_scalar(out, element, item, is_big);
            }
        }
        (ty, value) => panic!("{ty:?} cannot hold {value:?}"),
    }
}

fn size(scalar: Scalar) -> usize {
    match scalar {
        Scalar::Bool => 1,
        Scalar::F32 => 4,
        Scalar::F64 => 8,
        Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => match integer {
            Integer::U8 | Integer::I8 => 1,
            Integer::U16 | Integer::I16 => 2,
            Integer::U32 | Integer::I32 => 4,
            Integer::U64 | Integer::I64 => 8,
        },
    }
}

fn put_scalar(out: &mut Vec<u8>, scalar: Scalar, value: &Value, is_big: bool) {
    let number = match value {
        Value::Int(value) => *value,
        Value::F32(value) => value.to_bits().into(),
        Value::F64(value) => value.to_bits().into(),
        other => panic!("{other:?} is no number"),
    };
    put_number(out, number, size(scalar), is_big);
}

fn put_number(out: &mut Vec<u8>, value: i128, bytes: usize, is_big: bool) {
    pad(out, bytes);
    let little = value.to_le_bytes();
    let mut wanted = little[..bytes].to_vec();
    if is_big {
        wanted.reverse();
    }
    out.extend(wanted);
}

fn pad(out: &mut Vec<u8>, alignment: usize) {
    while !out.len().is_multiple_of(alignment) {
        out.push(0);
    }
}

/// The fields as babeltrace2 prints them.
pub fn shown(schema: &Schema, event: &Event, values: &[Value]) -> String {
    if values.is_empty() {
        return "{ }".to_owned();
    }
    let mut parts = Vec::new();
    for (field, value) in event.fields.iter().zip(values) {
        let name = &field.name;
        if let (FieldType::Sequence(_) | FieldType::Bytes, Value::List(items)) = (field.ty, value) {
            parts.push(format!("_{name}_length = {}", items.len()));
        }
        parts.push(format!("{name} = {}", shown_value(schema, field, value)));
    }
    format!("{{ {} }}", parts.join(", "))
}

fn shown_value(schema: &Schema, field: &Field, value: &Value) -> String {
    match (field.ty, value) {
        (_, Value::List(items)) if items.is_empty() => "[ ]".to_owned(),
        (_, Value::List(items)) => {
            let items = items.iter().enumerate();
            let shown =
                items.map(|(i, item)| format!("[{i}] = {}", shown_value(schema, field, item)));
            format!("[ {} ]", shown.collect::<Vec<_>>().join(", "))
        }
        (_, Value::Text(text)) => format!("\"{}\"", text.replace('"', "\\\"")),
        (_, Value::F32(value)) => value.to_string(),
        (_, Value::F64(value)) => value.to_string(),
        (FieldType::Bytes, Value::Int(value)) => format!("0x{value:X}"),
        (ty, Value::Int(value)) => {
            if let Some(index) = ty.enum_index() {
                let label = schema.enums[index].label(*value);
                let label = label.map_or("<unknown>".to_owned(), |label| format!("\"{label}\""));
                return format!("( {label} : container = {value} )");
            }
            let has = |word: &str| field.annotations.iter().any(|known| known.word() == word);
            if has("hex") {
                format!("0x{value:X}")
            } else if has("oct") {
                format!("0{value:o}")
            } else if has("bin") {
                format!("0b{value:08b}")
            } else {
                value.to_string()
            }
        }
    }
}
