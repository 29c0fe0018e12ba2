// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names in generated code: characters that other languages do not allow are mangled, reserved
//! words get the suffix `_` (spec/schema-language.md §8).

use crate::schema::{EnumType, Event, Schema};
use std::collections::HashSet;
use std::fmt::Write;

/// `'` becomes `_q`, a letter outside of ASCII `_uXXXX`; all else stays.
pub(crate) fn mangle(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => out.push(c),
            '\'' => out.push_str("_q"),
            c => {
                let _ = write!(out, "_u{:04x}", c as u32);
            }
        }
    }
    out
}

pub(crate) fn lower(name: &str) -> String {
    mangle(name).to_ascii_lowercase()
}

pub(crate) fn upper(name: &str) -> String {
    mangle(name).to_ascii_uppercase()
}

/// Beginnings of names that `lat.h` and generated headers use for other things:
/// `lat_i_…`, `lat_schema_NAME`, `lat_register_NAME` and so on.
const C_PREFIXES: [&str; 7] = ["i", "schema", "register", "patch", "zeros", "scope", "enum"];

/// The subsystem's part of C names.
fn c_subsystem(name: &str) -> String {
    let lower = lower(name);
    if C_PREFIXES.contains(&lower.as_str()) { format!("{lower}_") } else { lower }
}

/// `lat_subsystem_event`, the function that records an event.
pub(crate) fn c_function(schema: &Schema, event: &Event) -> String {
    let subsystem = &schema.subsystems[event.subsystem].name;
    format!("lat_{}_{}", c_subsystem(subsystem), lower(&event.name))
}

/// `lat_schema_name`, the variable of the schema.
pub(crate) fn c_schema(schema: &Schema) -> String {
    format!("lat_schema_{}", lower(&schema.name))
}

/// The tag of an enum: `lat_enum_schema_name`, or with subsystem, event and field.
pub(crate) fn c_enum_tag(schema: &Schema, index: usize) -> String {
    format!("lat_enum_{}", enum_path(schema, index).to_ascii_lowercase())
}

/// The constant for a label.
pub(crate) fn c_enum_label(schema: &Schema, index: usize, label: &str) -> String {
    format!("LAT_ENUM_{}_{}", enum_path(schema, index).to_ascii_uppercase(), upper(label))
}

fn enum_path(schema: &Schema, index: usize) -> String {
    match &schema.enums[index].name {
        Some(name) => format!("{}_{}", mangle(&schema.name), mangle(name)),
        None => match schema.enums[index].owner {
            Some((event, field)) => {
                let event = &schema.events[event];
                let subsystem = mangle(&schema.subsystems[event.subsystem].name);
                format!("{subsystem}_{}_{}", mangle(&event.name), mangle(&event.fields[field].name))
            }
            None => format!("{}_{index}", mangle(&schema.name)),
        },
    }
}

/// Enumerators of C11 are `int`s; an enum that needs more gets macros.
pub(crate) fn fits_c_enum(enumeration: &EnumType) -> bool {
    let range = i128::from(i32::MIN)..=i128::from(i32::MAX);
    enumeration.labels.iter().all(|(_, value)| range.contains(value))
}

/// Names for the fields of an event as parameters in C: mangled, not reserved,
/// different from each other and from the counts of the others.
pub(crate) fn c_parameters(event: &Event) -> Vec<String> {
    let mut taken = HashSet::new();
    for field in &event.fields {
        // A count is named after its field, and must not hide another field.
        taken.insert(format!("{}_count", mangle(&field.name)));
    }
    unique(event, taken, |name| C_RESERVED.contains(&name))
}

/// Names for the fields of an event as parameters in Rust.
pub(crate) fn rust_parameters(event: &Event) -> Vec<String> {
    unique(event, HashSet::new(), |name| RUST_RESERVED.contains(&name) || name == "SCHEMA")
}

fn unique(
    event: &Event,
    mut taken: HashSet<String>,
    is_reserved: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut names = Vec::new();
    for field in &event.fields {
        let mut name = mangle(&field.name);
        // Generated code and `lat.h` have names of their own with this beginning.
        if name.to_ascii_lowercase().starts_with("lat_") {
            name.insert_str(0, "f_");
        }
        while is_reserved(&name) || taken.contains(&name) {
            name.push('_');
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// A lower-case name for a module or function in Rust.
pub(crate) fn rust_lower(name: &str) -> String {
    let lower = lower(name);
    if RUST_RESERVED.contains(&lower.as_str()) { format!("{lower}_") } else { lower }
}

/// A name as it is, for a variant of an enum in Rust.
pub(crate) fn rust_variant(name: &str) -> String {
    let name = mangle(name);
    if RUST_RESERVED.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// `MUTEX_LOCK` as `MutexLock`.
pub(crate) fn rust_camel(name: &str) -> String {
    let mut out = String::new();
    for part in mangle(name).split('_') {
        let mut letters = part.chars();
        if let Some(first) = letters.next() {
            out.push(first.to_ascii_uppercase());
            let is_shouted = !part.chars().any(|c| c.is_ascii_lowercase());
            let rest = letters.as_str();
            out.push_str(&if is_shouted { rest.to_ascii_lowercase() } else { rest.to_owned() });
        }
    }
    out
}

/// Words that a parameter cannot be named in C11 or C++20, and names that the
/// standard headers define as macros or variables.
const C_RESERVED: &[&str] = &[
    // C11 [C11 §6.4.1]
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    // C++20 [lex.key], and its operators in words
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "bool",
    "catch",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    // C23 and GNU
    "typeof",
    "typeof_unqual",
    "linux",
    "unix",
    "i386",
    "NULL",
    // Types, macros and variables of the headers that generated code includes, or programs usually do
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "uintptr_t",
    "intptr_t",
    "ptrdiff_t",
    "INT8_C",
    "INT16_C",
    "INT32_C",
    "INT64_C",
    "UINT8_C",
    "UINT16_C",
    "UINT32_C",
    "UINT64_C",
    "INT8_MAX",
    "INT16_MAX",
    "INT32_MAX",
    "INT64_MAX",
    "INT8_MIN",
    "INT16_MIN",
    "INT32_MIN",
    "INT64_MIN",
    "UINT8_MAX",
    "UINT16_MAX",
    "UINT32_MAX",
    "UINT64_MAX",
    "SIZE_MAX",
    "INTMAX_MAX",
    "INTMAX_MIN",
    "UINTMAX_MAX",
    "INTPTR_MAX",
    "INTPTR_MIN",
    "UINTPTR_MAX",
    "PTRDIFF_MAX",
    "PTRDIFF_MIN",
    "WCHAR_MAX",
    "WCHAR_MIN",
    "WINT_MAX",
    "WINT_MIN",
    "SIG_ATOMIC_MAX",
    "SIG_ATOMIC_MIN",
    "offsetof",
    "errno",
    "stdin",
    "stdout",
    "stderr",
    "environ",
    "EOF",
    "assert",
    "timezone",
    "daylight",
    "tzname",
    "optarg",
    "optind",
    "opterr",
    "optopt",
    "signgam",
    "BUFSIZ",
    "RAND_MAX",
];

/// Keywords of Rust [Rust reference, Keywords], edition 2024 and reserved ones.
const RUST_RESERVED: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
