// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C functions of one event, and the scope of a span.
//!
//! An event whose payload has a fixed size of at most 16 words is packed into
//! words by shifts, which the compiler turns into as many stores; so are the
//! numbers of one that has few of them and then a string. Everything else is put
//! together in a small buffer first.

use super::c_header::{c_integer, comment};
use crate::names;
use crate::schema::{Clause, Event, FieldType, Integer, Pairing, Scalar, Schema};
use std::fmt::Write;

/// Payloads of at most this number of words are passed as words.
pub(super) const WORDS_MAX: u32 = 16;

/// Bytes that an event can have before its string to be recorded in one step
/// (`LAT_I_TEXT_PREFIX`).
const TEXT_PREFIX_MAX: u32 = 32;

pub(super) fn event_functions(out: &mut String, schema: &Schema, event: &Event) {
    let function = names::c_function(schema, event);
    let variable = names::c_schema(schema);
    let index = event.index;
    let note = comment(&event.name, &event.description);
    let _ = writeln!(out, "/* {note} */");
    let _ = writeln!(
        out,
        "LAT_EVENT int {function}_enabled(void)\n{{\n    \
         return lat_i_on(&{variable}, {index}u) != 0;\n}}\n"
    );
    let layout = event.layout();
    let fixed = layout.payload_bytes.filter(|bytes| bytes.div_ceil(8) <= WORDS_MAX);
    let prefix = text_prefix_bytes(event);
    let is_built = fixed.is_none() && prefix.is_none();
    if is_built {
        built_function(out, schema, event, &variable);
    }
    let _ = writeln!(out, "LAT_EVENT void {function}({})\n{{", parameters(schema, event));
    let _ = writeln!(out, "    LAT_SITE({variable}, {index}u, lat_on);");
    if let Some(bytes) = fixed {
        emit_words(out, event, &variable, bytes);
    } else if let Some(bytes) = prefix {
        emit_text(out, event, &variable, bytes);
    } else {
        let mut arguments = vec!["lat_on".to_owned()];
        arguments.extend(parameter_list(schema, event).into_iter().map(|(_, name)| name));
        let _ = writeln!(out, "    {}({});", built_name(schema, event), arguments.join(", "));
    }
    out.push_str("}\n\n");
}

/// Bytes before the string of an event that ends with one and whose other fields are few and of a fixed size.
fn text_prefix_bytes(event: &Event) -> Option<u32> {
    let is_last = matches!(event.fields.last()?.ty, FieldType::String);
    let offset = event.layout().offsets.last().copied().flatten()?;
    (is_last && offset <= TEXT_PREFIX_MAX).then_some(offset)
}

fn emit_words(out: &mut String, event: &Event, variable: &str, payload_bytes: u32) {
    let words = words(event, payload_bytes);
    let index = event.index;
    let _ = write!(
        out,
        "    lat_i_emit{}(&{variable}, lat_on, {index}u, {payload_bytes}u",
        words.len()
    );
    for word in words {
        let _ = write!(out, ",\n        {word}");
    }
    out.push_str(");\n");
}

/// One expression for each 8 bytes of the payload. Fields are aligned to their
/// size, so none lies in two words.
fn words(event: &Event, payload_bytes: u32) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); payload_bytes.div_ceil(8) as usize];
    let layout = event.layout();
    let names = names::c_parameters(event);
    for ((field, offset), name) in event.fields.iter().zip(&layout.offsets).zip(&names) {
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
                format!("LAT_I_PACK((uint64_t){bits}, {}u, {}u)", at % 8 * 8, bytes * 8)
            };
            parts[(at / 8) as usize].push(part);
        }
    }
    parts.into_iter().map(|parts| parts.join("\n            | ")).collect()
}

/// The value as an unsigned integer of its own width.
fn bits(value: &str, scalar: Scalar) -> String {
    match scalar {
        Scalar::Integer(integer) => unsigned(value, integer, false),
        Scalar::Enum { container, .. } => unsigned(value, container, true),
        Scalar::F32 => format!("lat_i_f32_bits({value})"),
        Scalar::F64 => format!("lat_i_f64_bits({value})"),
        Scalar::Bool => format!("(uint8_t)({value} ? 1 : 0)"),
    }
}

fn unsigned(value: &str, integer: Integer, is_enum: bool) -> String {
    if integer.is_signed() || is_enum {
        format!("(uint{}_t){value}", integer.size_bytes() * 8)
    } else {
        value.to_owned()
    }
}

/// Numbers that are packed into words, and a string.
fn emit_text(out: &mut String, event: &Event, variable: &str, prefix_bytes: u32) {
    let names = names::c_parameters(event);
    let text = names.last().map_or("", String::as_str);
    let _ = write!(
        out,
        "    lat_i_emit_string(&{variable}, lat_on, {}u, {prefix_bytes}u, {text}",
        event.index
    );
    let words = words(event, prefix_bytes);
    if words.is_empty() {
        // A macro of C11 wants an argument there.
        out.push_str(", 0");
    }
    for word in words {
        let _ = write!(out, ",\n        {word}");
    }
    out.push_str(");\n");
}

fn built_name(schema: &Schema, event: &Event) -> String {
    let function = names::c_function(schema, event);
    format!("lat_i_built_{}", function.strip_prefix("lat_").unwrap_or(&function))
}

/// Everything else: put together on the stack, in a function of its own, so that calls of the event hold
/// neither that memory nor that code.
fn built_function(out: &mut String, schema: &Schema, event: &Event, variable: &str) {
    let mut list = vec![("unsigned".to_owned(), "lat_on".to_owned())];
    list.extend(parameter_list(schema, event));
    let declared: Vec<String> = list.iter().map(|(ty, name)| declare(ty, name)).collect();
    let _ = writeln!(
        out,
        "LAT_I_APART void {}({})\n{{",
        built_name(schema, event),
        declared.join(", ")
    );
    emit_built(out, event, variable);
    out.push_str("}\n\n");
}

fn emit_built(out: &mut String, event: &Event, variable: &str) {
    out.push_str("    struct lat_i_build lat_build;\n    lat_i_build_init(&lat_build);\n");
    for (field, name) in event.fields.iter().zip(names::c_parameters(event)) {
        let put = match field.ty {
            FieldType::Scalar(scalar) => {
                format!(
                    "lat_i_put_u{}(&lat_build, {})",
                    scalar.size_bytes() * 8,
                    bits(&name, scalar)
                )
            }
            FieldType::Array { element, length } => {
                format!("lat_i_put_array(&lat_build, {name}, {length}u, {}u)", element.size_bytes())
            }
            FieldType::Sequence(element) => format!(
                "lat_i_put_sequence(&lat_build, {name}, {name}_count, {}u)",
                element.size_bytes()
            ),
            FieldType::String => format!("lat_i_put_string(&lat_build, {name})"),
            FieldType::Bytes => format!("lat_i_put_bytes(&lat_build, {name}, {name}_count)"),
        };
        let _ = writeln!(out, "    {put};");
    }
    let _ =
        writeln!(out, "    lat_i_build_emit(&{variable}, lat_on, {}u, &lat_build);", event.index);
}

/// Type and name of each parameter; sequences and bytes have two.
fn parameter_list(schema: &Schema, event: &Event) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (field, name) in event.fields.iter().zip(names::c_parameters(event)) {
        match field.ty {
            FieldType::Scalar(scalar) => list.push((scalar_type(schema, scalar), name)),
            FieldType::Array { element, .. } => {
                list.push((format!("const {} *", element_type(element)), name));
            }
            FieldType::Sequence(element) => {
                list.push((format!("const {} *", element_type(element)), name.clone()));
                list.push(("uint32_t".to_owned(), format!("{name}_count")));
            }
            FieldType::String => list.push(("const char *".to_owned(), name)),
            FieldType::Bytes => {
                list.push(("const void *".to_owned(), name.clone()));
                list.push(("uint32_t".to_owned(), format!("{name}_count")));
            }
        }
    }
    list
}

fn parameters(schema: &Schema, event: &Event) -> String {
    let list = parameter_list(schema, event);
    if list.is_empty() {
        return "void".to_owned();
    }
    let written: Vec<String> = list.iter().map(|(ty, name)| declare(ty, name)).collect();
    written.join(", ")
}

fn declare(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}

fn scalar_type(schema: &Schema, scalar: Scalar) -> String {
    match scalar {
        Scalar::Enum { index, .. } if names::fits_c_enum(&schema.enums[index]) => {
            format!("enum {}", names::c_enum_tag(schema, index))
        }
        scalar => element_type(scalar).to_owned(),
    }
}

/// In arrays an enum is the integer that holds it: an array of C enums has
/// elements of another size.
fn element_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => c_integer(integer),
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::Bool => "bool",
    }
}

/// The scope macro of a span that exactly one event begins and one ends, if the
/// fields of the end are among those of the beginning.
pub(super) fn span_scope(schema: &Schema, span: &Pairing<'_>) -> Option<String> {
    let (begin, end) = scope_events(schema, span)?;
    let subsystem = &schema.subsystems[begin.subsystem].name;
    let (low, high) = (names::lower(subsystem), names::upper(subsystem));
    let name = format!("lat_scope_{low}_{}", names::lower(span.name));
    let macro_name = format!("LAT_SPAN_{high}_{}", names::upper(span.name));
    let begin_list = parameter_list(schema, begin);
    let end_names = end_arguments(begin, end)?;
    let mut out = format!("struct {name} {{\n");
    for (ty, field) in begin_list.iter().filter(|(_, field)| end_names.contains(field)) {
        let _ = writeln!(out, "    {};", declare(ty, field));
    }
    if end_names.is_empty() {
        // A struct without members is not C.
        out.push_str("    char nothing;\n");
    }
    out.push_str("};\n\n");
    let begin_arguments: Vec<&str> = begin_list.iter().map(|(_, name)| name.as_str()).collect();
    let _ = writeln!(
        out,
        "LAT_EVENT struct {name} {name}_begin({})\n{{\n    struct {name} lat_scope;",
        parameters(schema, begin)
    );
    for field in &end_names {
        let _ = writeln!(out, "    lat_scope.{field} = {field};");
    }
    if end_names.is_empty() {
        out.push_str("    lat_scope.nothing = 0;\n");
    }
    let _ = writeln!(
        out,
        "    {}({});\n    return lat_scope;\n}}\n",
        names::c_function(schema, begin),
        begin_arguments.join(", ")
    );
    let end_values: Vec<String> =
        end_names.iter().map(|field| format!("lat_scope->{field}")).collect();
    let unused = if end_names.is_empty() { "    (void)lat_scope;\n" } else { "" };
    let _ = writeln!(
        out,
        "LAT_EVENT void {name}_end(struct {name} *lat_scope)\n{{\n{unused}    {}({});\n}}\n",
        names::c_function(schema, end),
        end_values.join(", ")
    );
    let arguments = if begin_arguments.is_empty() { "" } else { "..." };
    let values = if begin_arguments.is_empty() { "" } else { "__VA_ARGS__" };
    let _ = writeln!(
        out,
        "#define {macro_name}({arguments}) \\\n    \
         __attribute__((cleanup({name}_end), unused)) struct {name} LAT_I_SCOPE_NAME = \\\n        \
         {name}_begin({values})\n"
    );
    Some(out)
}

/// The one event that begins a span and the one that ends it. Ambiguous spans,
/// and events with clauses that say more than the span, have no scope.
pub(super) fn scope_events<'a>(
    schema: &'a Schema,
    span: &Pairing<'_>,
) -> Option<(&'a Event, &'a Event)> {
    let ([begin], [end]) = (span.openings.as_slice(), span.closings.as_slice()) else {
        return None;
    };
    let (begin, end) = (&schema.events[*begin], &schema.events[*end]);
    let is_within = end.fields.iter().all(|field| {
        begin.fields.iter().any(|other| other.name == field.name && other.ty == field.ty)
    });
    let is_plain = !begin.clauses.iter().any(|clause| matches!(clause, Clause::End { .. }));
    (is_within && is_plain).then_some((begin, end))
}

/// The parameters of the beginning that the end takes, in the end's order.
fn end_arguments(begin: &Event, end: &Event) -> Option<Vec<String>> {
    let begin_names = names::c_parameters(begin);
    let mut arguments = Vec::new();
    for field in &end.fields {
        let at = begin.fields.iter().position(|other| other.name == field.name)?;
        let name = &begin_names[at];
        arguments.push(name.clone());
        if matches!(field.ty, FieldType::Sequence(_) | FieldType::Bytes) {
            arguments.push(format!("{name}_count"));
        }
    }
    Some(arguments)
}
