// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the text that describes an event into a layout.

use lateralis_model::{Base, EventClass, FieldClass, FieldKind, IntegerClass, Label, Range};

use super::{print_fmt, roles};
use crate::row::packed;

/// Largest number of fields that are kept; the largest format of the kernel has some tens.
const FIELDS_MAX: usize = 256;

/// Type of the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Characters; the array is a text.
    Character,
    /// Integers of this many bytes: 2, 4 or 8.
    Integer {
        /// Bytes of each.
        bytes: u32,
        /// Whether they can be negative.
        signed: bool,
    },
    /// Anything else: the array is a blob.
    Byte,
}

/// Layout of a field in a raw record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer of 1, 2, 4 or 8 bytes at its offset.
    Integer {
        /// Whether it can be negative.
        signed: bool,
    },
    /// An array at its offset.
    Array(Element),
    /// A word of four bytes with the offset and length of the array (`__data_loc`; `__rel_loc` if the
    /// offset is relative to the end of the word).
    Located {
        /// Whether the offset is relative to the end of the word.
        relative: bool,
        /// Type of the elements of the array.
        element: Element,
    },
    /// An array from its offset to the end of the record.
    Tail(Element),
}

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// First byte in the record.
    pub offset: usize,
    /// Bytes at that offset.
    pub size: usize,
    /// Its layout.
    pub kind: Kind,
    /// The class of its values.
    pub class: FieldClass,
}

/// The description of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// `sched`, `syscalls`, …
    pub system: String,
    /// `sched_switch`, …
    pub name: String,
    /// Value of `common_type` in the records of this event.
    pub id: u16,
    /// Bytes of the text, which bound the memory of its classes.
    pub text_bytes: usize,
    /// Offset of the thread id, `common_pid`.
    pub thread_offset: Option<usize>,
    /// Fields of all events, except type and thread.
    pub common: Vec<Field>,
    /// Its own fields.
    pub fields: Vec<Field>,
}

/// The id that a format text declares, found without reading the rest.
#[must_use]
pub fn id_of(text: &str) -> Option<u16> {
    let line = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
    line.trim().parse().ok()
}

impl Format {
    /// Parses the description of an event of `system`; `long_bytes` is the size of the kernel's `long`, 4
    /// or 8.
    ///
    /// Errors: `None` if it has no name or no id. Fields that cannot be parsed are left out.
    ///
    /// Cost: proportional to the text.
    #[must_use]
    pub fn parse(system: &str, text: &str, long_bytes: u32) -> Option<Self> {
        let name = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
        let mut format = Self {
            system: system.to_owned(),
            name: name.to_owned(),
            id: id_of(text)?,
            text_bytes: text.len(),
            thread_offset: None,
            common: Vec::new(),
            fields: Vec::new(),
        };
        for line in text.lines() {
            let line = line.trim_start();
            let Some(declaration) = line.strip_prefix("field:") else {
                continue;
            };
            let Some(mut field) = field(declaration, long_bytes) else {
                continue;
            };
            match field.name.as_str() {
                "common_type" => {}
                "common_pid" => format.thread_offset = Some(field.offset),
                "common_flags" if field.size == 1 => {
                    field.class = common_flags();
                    format.common.push(field);
                }
                name if name.starts_with("common_") => format.common.push(field),
                _ => format.fields.push(field),
            }
            if format.fields.len() + format.common.len() > FIELDS_MAX {
                break;
            }
        }
        if name.ends_with("_stack") && system == "ftrace" {
            // As many addresses as fit, whatever the text declares.
            if let Some(Field { kind: kind @ Kind::Array(_), class, .. }) = format.fields.last_mut()
                && let Kind::Array(element) = *kind
            {
                *kind = Kind::Tail(element);
                *class = element_array(element, None);
            }
        }
        if let Some(at) = text.find("print fmt:") {
            print_fmt::apply(&text[at + "print fmt:".len()..], &mut format.fields);
        }
        Some(format)
    }

    /// `system:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// The event class of the model: name, payload, roles. Its context depends on the file format.
    #[must_use]
    pub fn event_class(&self) -> EventClass {
        EventClass {
            name: self.full_name(),
            payload: Some(members(&self.fields)),
            attributes: roles(self),
            ..EventClass::default()
        }
    }

    /// The class of [`Format::common`].
    #[must_use]
    pub fn common_class(&self) -> FieldClass {
        members(&self.common)
    }
}

/// Kernel context of an event (enum trace_flag_type, include/linux/trace_events.h).
fn common_flags() -> FieldClass {
    let names = ["irqs_off", "", "need_resched", "hardirq", "softirq", "preempt_resched", "nmi"];
    let label = |(bit, name): (usize, &&str)| Label {
        name: (*name).to_owned(),
        ranges: vec![Range { low: bit as i128, high: bit as i128 }],
    };
    let named = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
    FieldClass::new(FieldKind::Bits { bits: 8, flags: named.map(label).collect() })
}

fn members(fields: &[Field]) -> FieldClass {
    FieldClass::structure(fields.iter().map(|field| (field.name.clone(), field.class.clone())))
}

/// Parses `TYPE NAME[N]; offset:O; size:S; signed:B;`.
fn field(declaration: &str, long_bytes: u32) -> Option<Field> {
    let mut parts = declaration.split(';').map(str::trim);
    let declared = parts.next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        let Some((key, value)) = part.split_once(':') else { continue };
        match key {
            "offset" => offset = value.trim().parse::<u32>().ok(),
            "size" => size = value.trim().parse::<u32>().ok(),
            "signed" => is_signed = value.trim() == "1",
            _ => {}
        }
    }
    let (offset, size) = (offset? as usize, size? as usize);
    let (type_name, name, length) = split(declared)?;
    let kind = kind(type_name, length, size, is_signed, long_bytes);
    let class = match kind {
        Kind::Integer { signed } => integer(size as u32, signed, is_pointer(type_name)),
        Kind::Array(element) => element_array(element, Some(size)),
        Kind::Located { element, .. } | Kind::Tail(element) => element_array(element, None),
    };
    Some(Field { name: name.to_owned(), offset, size, kind, class })
}

/// Type, name and the text in brackets after the name or, for located fields, after the type.
fn split(declared: &str) -> Option<(&str, &str, Option<&str>)> {
    let (head, length) = match declared.strip_suffix(']') {
        Some(open) => {
            let at = open.rfind('[')?;
            (open[..at].trim_end(), Some(open[at + 1..].trim()))
        }
        None => (declared, None),
    };
    let before = head.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let (type_name, name) = (before.trim(), &head[before.len()..]);
    (!name.is_empty() && !type_name.is_empty()).then_some((type_name, name, length))
}

fn is_pointer(type_name: &str) -> bool {
    type_name.ends_with('*')
}

fn kind(
    type_name: &str,
    length: Option<&str>,
    size: usize,
    is_signed: bool,
    long_bytes: u32,
) -> Kind {
    for (word, relative) in [("__data_loc", false), ("__rel_loc", true)] {
        if let Some(of) = type_name.strip_prefix(word) {
            let of = of.trim().trim_end_matches("[]").trim();
            let element = match of.trim_end_matches('*').trim() {
                "cpumask_t" => Element::Integer { bytes: long_bytes, signed: false },
                _ => element(of, is_signed, long_bytes, None),
            };
            return Kind::Located { relative, element };
        }
    }
    match length {
        Some(length) => {
            let each = length.parse::<usize>().ok().filter(|&count| count > 0);
            let each =
                each.filter(|count| size.is_multiple_of(*count)).map(|count| (size / count) as u32);
            let element = element(type_name, is_signed, long_bytes, each.filter(|_| size > 0));
            if size == 0 { Kind::Tail(element) } else { Kind::Array(element) }
        }
        None if matches!(size, 1 | 2 | 4 | 8) => Kind::Integer { signed: is_signed },
        None => Kind::Array(Element::Byte),
    }
}

/// Element type of an array of this type; `bytes` if the size of an element is known from the size of the
/// whole.
fn element(type_name: &str, signed: bool, long_bytes: u32, bytes: Option<u32>) -> Element {
    let plain = type_name.trim_start_matches("const ").trim();
    let by_name = match plain {
        "char" | "signed char" | "unsigned char" | "u8" | "__u8" | "s8" | "__s8" | "bool"
        | "uint8_t" | "int8_t" => 1,
        "short" | "unsigned short" | "u16" | "__u16" | "s16" | "__s16" | "__be16" | "__le16"
        | "uint16_t" | "int16_t" => 2,
        "u64" | "__u64" | "s64" | "__s64" | "long long" | "unsigned long long" | "__be64"
        | "__le64" | "uint64_t" | "int64_t" | "dma_addr_t" | "sector_t" | "loff_t" => 8,
        "long" | "unsigned long" | "size_t" | "ssize_t" => long_bytes,
        _ if is_pointer(plain) => long_bytes,
        _ if plain.starts_with("struct ") || plain.starts_with("union ") => 1,
        _ => 4,
    };
    if plain == "char" {
        return Element::Character;
    }
    match bytes.unwrap_or(by_name) {
        bytes @ (2 | 4 | 8) => Element::Integer { bytes, signed },
        _ => Element::Byte,
    }
}

fn integer(bytes: u32, signed: bool, pointer: bool) -> FieldClass {
    let base = if pointer { Base::Hexadecimal } else { Base::Decimal };
    let class = IntegerClass { bits: bytes * 8, base, labels: Vec::new() };
    FieldClass::new(match signed && !pointer {
        true => FieldKind::Signed(class),
        false => FieldKind::Unsigned(class),
    })
}

fn element_array(element: Element, size: Option<usize>) -> FieldClass {
    match element {
        Element::Character => FieldClass::text(),
        Element::Byte => FieldClass::blob(),
        Element::Integer { bytes, signed } => {
            let count = size.map(|size| (size / bytes as usize) as u64);
            let element = Box::new(integer(bytes, signed, false));
            let packed = Some(packed(bytes, signed));
            FieldClass::new(FieldKind::Array { element, length: count, packed })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: thing\nID: 372\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
\tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n\
\tfield:__data_loc char[] file;\toffset:80;\tsize:4;\tsigned:0;\n\
\tfield:__rel_loc __u8[] data;\toffset:84;\tsize:4;\tsigned:0;\n\
\tfield:const struct cred * cred;\toffset:88;\tsize:8;\tsigned:0;\n\
\tfield:__data_loc cpumask_t *[] mask;\toffset:96;\tsize:4;\tsigned:0;\n\
\tfield:u8 mac[6];\toffset:100;\tsize:6;\tsigned:0;\n\
\tfield:u32 buf[];\toffset:108;\tsize:0;\tsigned:0;\n\
\nprint fmt: \"%s\", REC->prev_comm\n";

    #[test]
    fn the_forms_of_declarations_are_told_apart() {
        let format = Format::parse("test", FORMAT, 8).unwrap();
        assert_eq!((format.id, format.full_name().as_str()), (372, "test:thing"));
        assert_eq!((format.common.len(), format.thread_offset), (0, Some(4)));
        let kinds: Vec<_> =
            format.fields.iter().map(|f| (f.name.as_str(), f.offset, f.kind)).collect();
        let long = Element::Integer { bytes: 8, signed: false };
        assert_eq!(
            kinds,
            [
                ("prev_comm", 8, Kind::Array(Element::Character)),
                ("prev_pid", 24, Kind::Integer { signed: true }),
                ("args", 32, Kind::Array(long)),
                ("file", 80, Kind::Located { relative: false, element: Element::Character }),
                ("data", 84, Kind::Located { relative: true, element: Element::Byte }),
                ("cred", 88, Kind::Integer { signed: false }),
                ("mask", 96, Kind::Located { relative: false, element: long }),
                ("mac", 100, Kind::Array(Element::Byte)),
                ("buf", 108, Kind::Tail(Element::Integer { bytes: 4, signed: false })),
            ]
        );
        let six = FieldKind::Array {
            element: Box::new(FieldClass::u64()),
            length: Some(6),
            packed: Some(packed(8, false)),
        };
        assert_eq!(format.fields[2].class, FieldClass::new(six));
    }

    #[test]
    fn a_text_without_name_or_id_is_none() {
        assert_eq!(Format::parse("s", "", 8), None);
        assert_eq!(Format::parse("s", "name: a\nID: 70000\n", 8), None);
        let odd =
            "name: a\nID: 1\n\tfield:;\n\tfield:x;\toffset:1;\n\tfield:int y;\toffset:1;\tsize:4;";
        let format = Format::parse("s", odd, 8).unwrap();
        assert_eq!(format.fields.len(), 1);
    }
}
