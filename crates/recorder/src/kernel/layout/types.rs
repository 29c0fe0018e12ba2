// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of fields: converts the kernel's declarations to the schema language.

use std::collections::HashSet;

use lateralis_model::{Base, FieldKind, IntegerClass};
use lateralis_perfdata::tracepoint::{Element, Field, Format, Kind};
use lateralis_pleco::schema::ARRAY_LENGTH_MAX;

use super::names::identifier;
use super::plan::Step;

/// Enums with more labels become numbers: they would dominate the metadata.
const LABELS_MAX: usize = 64;

/// Events whose common flags are kept.
const WAKES: [&str; 3] = ["sched_waking", "sched_wakeup", "sched_wakeup_new"];

/// A field in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    /// The kernel's name.
    pub(super) name: String,
    /// Type and annotations in the schema language.
    pub(super) text: String,
    /// How its value is copied.
    pub(super) step: Step,
}

/// The fields of an event that are kept; `text` is its description.
pub(super) fn of(format: &Format, text: &str) -> Vec<Typed> {
    let is_call = format.system == "syscalls";
    let fields = format.fields.iter();
    // The event name contains the name of the call.
    let kept = fields.filter(|field| !(is_call && field.name == "__syscall_nr"));
    // The name of a probe identifies its address.
    let kept = kept.filter(|field| !field.name.starts_with("__probe_"));
    // Only the flags of the event show whether a thread or an interrupt causes the wakeup.
    let is_wake = format.system == "sched" && WAKES.contains(&format.name.as_str());
    let flags = format.common.iter().filter(|field| is_wake && field.name == "common_flags");
    kept.chain(flags)
        .filter_map(|field| {
            let argument = if is_call { argument(field, text) } else { None };
            let (text, step) = argument.or_else(|| plain(field))?;
            Some(Typed { name: field.name.clone(), text, step })
        })
        .collect()
}

fn plain(field: &Field) -> Option<(String, Step)> {
    let (at, bytes) = (field.offset, field.size);
    Some(match field.kind {
        Kind::Integer { signed } => {
            let step = Step::Copy { at, bytes, align: bytes };
            (integer(field, bytes, signed)?, step)
        }
        Kind::Array(Element::Character) => ("string".to_owned(), Step::Text { at, bytes }),
        Kind::Array(element) => {
            let (name, each) = element_type(element)?;
            let count = bytes / each;
            if count == 0 || count > ARRAY_LENGTH_MAX as usize || count * each != bytes {
                return None;
            }
            (format!("[{name}; {count}]"), Step::Copy { at, bytes, align: each })
        }
        Kind::Located { relative, element } => {
            let (text, element_bytes) = sequence(element)?;
            (text, Step::Located { at, is_relative: relative, element_bytes })
        }
        Kind::Tail(element) => {
            let (text, element_bytes) = sequence(element)?;
            (text, Step::Tail { at, element_bytes })
        }
    })
}

/// Type of a sequence, and bytes of an element, 0 for text.
fn sequence(element: Element) -> Option<(String, usize)> {
    Some(match element {
        Element::Character => ("string".to_owned(), 0),
        Element::Byte => ("bytes".to_owned(), 1),
        Element::Integer { .. } => {
            let (name, bytes) = element_type(element)?;
            (format!("[{name}]"), bytes)
        }
    })
}

fn element_type(element: Element) -> Option<(&'static str, usize)> {
    match element {
        Element::Integer { bytes, signed } => {
            Some((number(bytes as usize, signed)?, bytes as usize))
        }
        Element::Character | Element::Byte => Some(("u8", 1)),
    }
}

fn number(bytes: usize, signed: bool) -> Option<&'static str> {
    Some(match (bytes, signed) {
        (1, false) => "u8",
        (2, false) => "u16",
        (4, false) => "u32",
        (8, false) => "u64",
        (1, true) => "i8",
        (2, true) => "i16",
        (4, true) => "i32",
        (8, true) => "i64",
        _ => return None,
    })
}

fn integer(field: &Field, bytes: usize, signed: bool) -> Option<String> {
    let name = number(bytes, signed)?;
    Some(match &field.class.kind {
        FieldKind::Unsigned(class) | FieldKind::Signed(class) => match labels(class, bytes, signed)
        {
            Some(labels) => format!("enum : {name} {{ {labels} }}"),
            None if class.base == Base::Hexadecimal => format!("{name} @hex"),
            None => name.to_owned(),
        },
        FieldKind::Bits { .. } => format!("{name} @hex"),
        _ => name.to_owned(),
    })
}

/// The labels of an enum, if all of them are names of single, representable values.
fn labels(class: &IntegerClass, bytes: usize, signed: bool) -> Option<String> {
    if class.labels.is_empty() || class.labels.len() > LABELS_MAX {
        return None;
    }
    let bits = 8 * bytes as u32;
    let possible = match signed {
        true => -(1_i128 << (bits - 1))..1 << (bits - 1),
        false => 0..1 << bits,
    };
    let (mut names, mut values) = (HashSet::new(), HashSet::new());
    let mut list = Vec::new();
    for label in &class.labels {
        let [range] = &label.ranges[..] else { return None };
        let name = identifier(&label.name);
        let is_good = range.low == range.high
            && possible.contains(&range.low)
            && !label.name.is_empty()
            && names.insert(name.to_ascii_lowercase())
            && values.insert(range.low);
        if !is_good {
            return None;
        }
        list.push(format!("{name} = {}", range.low));
    }
    Some(list.join(", "))
}

/// An argument of a system call. The kernel stores the whole register and declares it unsigned;
/// the call uses only the bits of the argument's type.
fn argument(field: &Field, text: &str) -> Option<(String, Step)> {
    let Kind::Integer { .. } = field.kind else { return None };
    if field.size != 8 {
        return None;
    }
    let declared = declared_type(text, &field.name)?;
    let (name, bytes, is_hex) = match declared {
        "int" | "pid_t" | "key_t" | "timer_t" | "clockid_t" | "mqd_t" | "key_serial_t"
        | "rwf_t" => ("i32", 4, false),
        "unsigned int" | "unsigned" | "uid_t" | "gid_t" | "u32" | "__u32" | "umode_t" | "qid_t" => {
            ("u32", 4, false)
        }
        "long" | "ssize_t" | "off_t" | "loff_t" | "s64" | "__s64" => ("i64", 8, false),
        "size_t" | "u64" | "__u64" | "aio_context_t" => ("u64", 8, false),
        "unsigned long" => ("u64", 8, matches!(field.name.as_str(), "addr" | "start" | "brk")),
        // Pointers, signal handlers, and unknown types.
        _ => ("u64", 8, true),
    };
    let at = if cfg!(target_endian = "little") { field.offset } else { field.offset + 8 - bytes };
    let hex = if is_hex { " @hex" } else { "" };
    Some((format!("{name}{hex}"), Step::Copy { at, bytes, align: bytes }))
}

/// The declaration of a field before its name.
fn declared_type<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let declared = line.trim_start().strip_prefix("field:")?.split(';').next()?;
        let before = declared.strip_suffix(name)?;
        let is_whole = before.ends_with([' ', '*']);
        is_whole.then(|| before.trim().trim_start_matches("const ").trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::samples;

    #[test]
    fn declarations_are_found_by_whole_names() {
        let text = samples::SYS_ENTER_OPENAT;
        assert_eq!(declared_type(text, "dfd"), Some("int"));
        assert_eq!(declared_type(text, "filename"), Some("char *"));
        assert_eq!(declared_type(text, "name"), None);
    }

    #[test]
    fn labels_that_are_no_enum_are_left_out() {
        let class = |labels: &[(&str, i128, i128)]| {
            let label = |&(name, low, high): &(&str, i128, i128)| lateralis_model::Label {
                name: name.to_owned(),
                ranges: vec![lateralis_model::Range { low, high }],
            };
            let labels = labels.iter().map(label).collect();
            IntegerClass { bits: 8, base: Base::Decimal, labels }
        };
        let of = |list: &[(&str, i128, i128)], signed| labels(&class(list), 1, signed);
        assert_eq!(of(&[("A", 1, 1), ("b c", 2, 2)], false).unwrap(), "A = 1, b_c = 2");
        assert_eq!(of(&[("A", 1, 2)], false), None);
        assert_eq!(of(&[("A", 1, 1), ("a", 2, 2)], false), None);
        assert_eq!(of(&[("A", -1, -1)], false), None);
        assert_eq!(of(&[("A", -1, -1)], true).unwrap(), "A = -1");
        assert_eq!(of(&[("A", 256, 256)], false), None);
    }
}
