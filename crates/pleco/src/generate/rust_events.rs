// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Rust functions of one event, its enums, and the guard of a span.

use super::c_events::{WORDS_MAX, scope_events};
use super::rust_module::{Types, document, raw_type};
use crate::names;
use crate::schema::{Event, FieldType, Integer, Pairing, Scalar, Schema};
use std::fmt::Write;

pub(super) fn enum_type(
    out: &mut String,
    indent: &str,
    schema: &Schema,
    index: usize,
    types: &Types,
) {
    let enumeration = &schema.enums[index];
    let name = types.definition(index);
    let _ = writeln!(
        out,
        "{indent}#[allow(missing_docs, dead_code, non_camel_case_types, clippy::all)]\n\
         {indent}#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n\
         {indent}#[repr({})]\n{indent}pub enum {name} {{",
        enumeration.container.name()
    );
    for (label, value) in &enumeration.labels {
        let _ = writeln!(out, "{indent}    {} = {value},", names::rust_variant(label));
    }
    let _ = writeln!(out, "{indent}}}\n");
}

pub(super) fn event_functions(out: &mut String, schema: &Schema, event: &Event, types: &Types) {
    let function = names::rust_lower(&event.name);
    let index = event.index;
    let names = names::rust_parameters(event);
    let parameters: Vec<String> = event
        .fields
        .iter()
        .zip(&names)
        .map(|(field, name)| format!("{name}: {}", types.parameter(schema, field.ty, "")))
        .collect();
    document(out, "    ", &event.name, &event.description);
    let _ = writeln!(
        out,
        "    #[inline]\n    pub fn {function}({}) {{\n        let lat_on = SCHEMA.on({index});\n        \
         if lat_on != 0 {{",
        parameters.join(", ")
    );
    match event.layout().payload_bytes.filter(|bytes| bytes.div_ceil(8) <= WORDS_MAX) {
        Some(bytes) => {
            let words = words(event, &names, bytes);
            let _ = writeln!(
                out,
                "            SCHEMA.emit(lat_on, {index}, {bytes}, [{}]);",
                words.join(", ")
            );
        }
        None => record(out, event, &names),
    }
    out.push_str("        }\n    }\n\n");
    let _ = writeln!(
        out,
        "    /// True while `{}` is recorded.\n    #[inline]\n    \
         pub fn {}_enabled() -> bool {{\n        SCHEMA.is_enabled({index})\n    }}\n",
        event.name,
        names::lower(&event.name)
    );
}

/// One expression for each 8 bytes of the payload.
fn words(event: &Event, names: &[String], payload_bytes: u32) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); payload_bytes.div_ceil(8) as usize];
    for ((field, offset), name) in event.fields.iter().zip(event.layout().offsets).zip(names) {
        let (element, length) = match field.ty {
            FieldType::Scalar(scalar) => (scalar, None),
            FieldType::Array { element, length } => (element, Some(length)),
            // Their size is not fixed, so this event has no words.
            FieldType::Sequence(_) | FieldType::String | FieldType::Bytes => continue,
        };
        let bytes = element.size_bytes();
        for i in 0..length.unwrap_or(1) {
            let at = offset.unwrap_or(0) + i * bytes;
            let value = if length.is_some() { format!("{name}[{i}]") } else { name.clone() };
            let bits = bits(&value, element);
            let part = if bytes == 8 {
                bits
            } else {
                format!("lat_at({bits} as u64, {}, {})", at % 8 * 8, bytes * 8)
            };
            parts[(at / 8) as usize].push(part);
        }
    }
    parts.into_iter().map(|parts| parts.join(" | ")).collect()
}

/// The value as an unsigned integer of its own width.
fn bits(value: &str, scalar: Scalar) -> String {
    let unsigned = |value: &str, integer: Integer| match integer {
        Integer::I8 => format!("{value} as u8"),
        Integer::I16 => format!("{value} as u16"),
        Integer::I32 => format!("{value} as u32"),
        Integer::I64 => format!("{value} as u64"),
        _ => value.to_owned(),
    };
    match scalar {
        Scalar::Integer(integer) => unsigned(value, integer),
        Scalar::Enum { container, .. } => {
            unsigned(&format!("{value} as {}", container.name()), container)
        }
        Scalar::F32 | Scalar::F64 => format!("{value}.to_bits()"),
        Scalar::Bool => format!("{value} as u8"),
    }
}

fn record(out: &mut String, event: &Event, names: &[String]) {
    out.push_str("            let mut lat_record = ::lateralis::Record::new();\n");
    for (field, name) in event.fields.iter().zip(names) {
        let put = match field.ty {
            FieldType::Scalar(scalar) => {
                format!("u{}({})", scalar.size_bytes() * 8, bits(name, scalar))
            }
            FieldType::Array { element, .. } => {
                let raw = raw_type(element);
                match element {
                    Scalar::Enum { .. } | Scalar::Bool => {
                        // In a variable of its own: the record borrows what it is given.
                        let _ = writeln!(
                            out,
                            "            let lat_raw_{name} = {name}.map(|value| value as {raw});"
                        );
                        format!("array_{raw}(&lat_raw_{name})")
                    }
                    _ => format!("array_{raw}({name})"),
                }
            }
            FieldType::Sequence(element) => format!("slice_{}({name})", raw_type(element)),
            FieldType::String => format!("str({name})"),
            FieldType::Bytes => format!("bytes({name})"),
        };
        let _ = writeln!(out, "            lat_record.{put};");
    }
    let _ = writeln!(out, "            SCHEMA.emit_record(lat_on, {}, &lat_record);", event.index);
}

/// A guard: the span begins where it is made and ends where it is dropped.
pub(super) fn span_guard(
    out: &mut String,
    schema: &Schema,
    span: &Pairing<'_>,
    module: usize,
    types: &Types,
) {
    let Some((begin, end)) = scope_events(schema, span) else { return };
    if begin.subsystem != module {
        return;
    }
    let function = format!("{}_span", names::lower(span.name));
    let is_taken = schema.events[schema.subsystems[module].events.clone()]
        .iter()
        .any(|event| names::lower(&event.name) == function);
    if is_taken {
        return;
    }
    let begin_names = names::rust_parameters(begin);
    let is_kept = |field: &str| end.fields.iter().any(|kept| kept.name == field);
    let is_reference = |ty: FieldType| !matches!(ty, FieldType::Scalar(_));
    let has_lifetime =
        begin.fields.iter().any(|field| is_kept(&field.name) && is_reference(field.ty));
    let lifetime = if has_lifetime { "'a " } else { "" };
    let generics = if has_lifetime { "<'a>" } else { "" };
    let elided = if has_lifetime { "<'_>" } else { "" };
    let guard = format!("{}Span", names::rust_camel(span.name));
    let mut members = String::new();
    let mut parameters = Vec::new();
    let mut kept = Vec::new();
    for (field, name) in begin.fields.iter().zip(&begin_names) {
        let ty =
            types.parameter(schema, field.ty, if is_kept(&field.name) { lifetime } else { "" });
        parameters.push(format!("{name}: {ty}"));
        if is_kept(&field.name) {
            let _ = writeln!(members, "        {name}: {ty},");
            kept.push(name.clone());
        }
    }
    let end_values: Vec<String> = end
        .fields
        .iter()
        .filter_map(|field| {
            let at = begin.fields.iter().position(|other| other.name == field.name)?;
            Some(format!("self.{}", begin_names[at]))
        })
        .collect();
    let end_path = format!(
        "super::{}::{}",
        names::rust_lower(&schema.subsystems[end.subsystem].name),
        names::rust_lower(&end.name)
    );
    let kept_fields =
        if kept.is_empty() { String::new() } else { format!(" {} ", kept.join(", ")) };
    let _ = writeln!(
        out,
        "    /// An open span `{span_name}`: it ends when this is dropped.\n    \
         pub struct {guard}{generics} {{\n{members}    }}\n\n    \
         impl ::core::ops::Drop for {guard}{elided} {{\n        fn drop(&mut self) {{\n            \
         {end_path}({values});\n        }}\n    }}\n\n    \
         /// Begins a span `{span_name}`.\n    #[must_use]\n    \
         pub fn {function}{generics}({parameters}) -> {guard}{generics} {{\n        \
         {begin_function}({arguments});\n        {guard} {{{kept_fields}}}\n    }}\n",
        span_name = span.name,
        values = end_values.join(", "),
        parameters = parameters.join(", "),
        begin_function = names::rust_lower(&begin.name),
        arguments = begin_names.join(", "),
    );
}
