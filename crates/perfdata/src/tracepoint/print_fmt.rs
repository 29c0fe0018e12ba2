// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Information about fields in the print format of an event: names of values and flags, and numbers to be
//! shown in hexadecimal.
//!
//! Only arguments that are a field, possibly cast or masked, are used; all others are computations.

use lateralis_model::{Base, FieldKind, IntegerClass, Label, Range};

use super::expression::evaluate;
use super::{Field, Kind};

/// Largest number of arguments of a format that are used.
const ARGUMENTS_MAX: usize = 256;

/// Adds labels and bases to the classes of `fields`.
///
/// Cost: proportional to the text.
pub fn apply(text: &str, fields: &mut [Field]) {
    let Some((conversions, arguments)) = conversions(text) else {
        return;
    };
    for (index, argument) in split(arguments, ',').into_iter().take(ARGUMENTS_MAX).enumerate() {
        let argument = argument.trim();
        if let Some((table, symbolic)) = table(argument) {
            label(table, symbolic, fields);
        } else if let Some(name) = bare_field(argument) {
            let base = match conversions.get(index) {
                Some(b'x' | b'X' | b'p') => Base::Hexadecimal,
                Some(b'o') => Base::Octal,
                _ => continue,
            };
            if let Some(class) = integer_of(fields, name) {
                class.base = base;
            }
        }
    }
}

fn integer_of<'f>(fields: &'f mut [Field], name: &str) -> Option<&'f mut IntegerClass> {
    let field = fields.iter_mut().find(|field| field.name == name)?;
    match &mut field.class.kind {
        FieldKind::Signed(class) | FieldKind::Unsigned(class) => Some(class),
        _ => None,
    }
}

/// The conversions of the literals at the start of `text`, one per argument, and the text of the
/// arguments.
fn conversions(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut rest = text.trim_start();
    let mut literal = Vec::new();
    while let Some(inside) = rest.strip_prefix('"') {
        let end = end_of_string(inside)?;
        literal.extend_from_slice(&inside.as_bytes()[..end]);
        rest = inside[end + 1..].trim_start();
    }
    let arguments = rest.strip_prefix(',')?;
    let mut found = Vec::new();
    let mut bytes = literal.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            continue;
        }
        for byte in bytes.by_ref() {
            match byte {
                b'%' => break,
                b'*' => found.push(b'*'),
                b'0'..=b'9'
                | b'.'
                | b'-'
                | b'+'
                | b' '
                | b'#'
                | b'l'
                | b'h'
                | b'z'
                | b'L'
                | b'j'
                | b't' => {}
                conversion => {
                    found.push(conversion);
                    break;
                }
            }
        }
    }
    Some((found, arguments))
}

/// Bytes before the quote that ends the string.
fn end_of_string(inside: &str) -> Option<usize> {
    let mut escaped = false;
    inside.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Parts between separators outside of brackets and strings.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0u32);
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        if quoted {
            quoted = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            '"' => quoted = true,
            '(' | '{' | '[' => depth = depth.saturating_add(1),
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '\n' if depth == 0 => {
                // The argument list ends with its line.
                parts.push(&text[begin..at]);
                return parts;
            }
            _ if character == separator && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Contents of the first `__print_symbolic(…)` (then true) or `__print_flags(…)` of an argument.
fn table(argument: &str) -> Option<(&str, bool)> {
    for (call, symbolic) in [("__print_symbolic", true), ("__print_flags", false)] {
        let Some(at) = argument.find(call) else { continue };
        let after = argument[at + call.len()..].trim_start_matches("_u64").trim_start();
        let inside = after.strip_prefix('(')?;
        let mut depth = 1u32;
        let (mut quoted, mut escaped) = (false, false);
        for (at, byte) in inside.bytes().enumerate() {
            if quoted {
                quoted = escaped || byte != b'"';
                escaped = byte == b'\\' && !escaped;
                continue;
            }
            match byte {
                b'"' => quoted = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some((&inside[..at], symbolic));
            }
        }
    }
    None
}

fn label(table: &str, symbolic: bool, fields: &mut [Field]) {
    let mut parts = split(table, ',').into_iter();
    let Some(name) = parts.next().and_then(masked_field) else {
        return;
    };
    let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
        return;
    };
    let Kind::Integer { .. } = field.kind else {
        return;
    };
    let pairs = parts.filter_map(pair);
    let bits = field.size as u32 * 8;
    if symbolic {
        let labels = pairs
            .map(|(value, name)| Label { name, ranges: vec![Range { low: value, high: value }] });
        if let FieldKind::Signed(class) | FieldKind::Unsigned(class) = &mut field.class.kind {
            class.labels = labels.collect();
        }
        return;
    }
    let single = pairs.filter_map(|(mask, name)| {
        // Some masks of flags are negative numbers with the width of the field.
        let mask = (mask as u64) & (u64::MAX >> (64 - bits));
        let bit = i128::from(mask.trailing_zeros());
        mask.is_power_of_two().then(|| Label { name, ranges: vec![Range { low: bit, high: bit }] })
    });
    let flags: Vec<_> = single.collect();
    if !flags.is_empty() {
        field.class.kind = FieldKind::Bits { bits, flags };
    }
}

/// `{ VALUE, "NAME" }`.
fn pair(text: &str) -> Option<(i128, String)> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (value, name) = inside.split_once(',')?;
    let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((evaluate(value)?, name.to_owned()))
}

/// The field of `REC->name`, with optional casts and parentheses around it.
fn bare_field(text: &str) -> Option<&str> {
    let mut text = text.trim();
    loop {
        if let Some(name) = text.strip_prefix("REC->") {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            return plain.then_some(name);
        }
        let inside = text.strip_prefix('(')?;
        text = match inside.strip_suffix(')') {
            Some(inner) if inner.trim_start().starts_with("REC->") => inner.trim(),
            // A cast.
            _ => inside[inside.find(')')? + 1..].trim(),
        };
    }
}

/// Like [`bare_field`], optionally followed by `& CONSTANT`.
fn masked_field(text: &str) -> Option<&str> {
    if let Some(name) = bare_field(text) {
        return Some(name);
    }
    let (name, mask) = text.split_once('&')?;
    evaluate(mask)?;
    bare_field(name)
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use lateralis_model::{Base, FieldKind};

    fn format(print: &str) -> Format {
        let text = format!(
            "name: e\nID: 1\nformat:\n\tfield:long a;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield:u32 b;\toffset:16;\tsize:4;\tsigned:0;\n\nprint fmt: {print}\n"
        );
        Format::parse("s", &text, 8).unwrap()
    }

    #[test]
    fn tables_become_labels_and_flags() {
        let format = format(
            "\"state=%s%s, 100%% vec=%u [action=%s]\", (REC->a & (((0x1 | 0x2) + 1) << 1)) ? \
             __print_flags(REC->a & ((((0x1 | 0x2) + 1) << 1) - 1), \"|\", { 0x1, \"S\" }, \
             { 0x2, \"D\" }, { 0x3, \"both\" }) : \"R\", \"+\", REC->b, \
             __print_symbolic(REC->b, { 0, \"HI, you\" }, { 1UL, \"TIMER\" }, { NAME, \"no\" })",
        );
        let FieldKind::Bits { bits: 64, flags } = &format.fields[0].class.kind else {
            panic!("{:?}", format.fields[0].class)
        };
        let names: Vec<_> = flags.iter().map(|f| (f.name.as_str(), f.ranges[0].low)).collect();
        assert_eq!(names, [("S", 0), ("D", 1)]);
        let FieldKind::Unsigned(class) = &format.fields[1].class.kind else { panic!() };
        let names: Vec<_> = class.labels.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["HI, you", "TIMER"]);
    }

    #[test]
    fn bases_follow_the_conversions() {
        let format = format("\"%*d %s %lx %04o\", 1, 2, \"x\", (unsigned long)REC->a, (REC->b)");
        let base = |index: usize| match &format.fields[index].class.kind {
            FieldKind::Signed(class) | FieldKind::Unsigned(class) => class.base,
            _ => panic!(),
        };
        assert_eq!((base(0), base(1)), (Base::Hexadecimal, Base::Octal));
    }

    #[test]
    fn a_format_that_computes_changes_nothing() {
        let plain = format("\"\"").fields;
        for print in [
            "\"%x\", REC->a >> 4",
            "\"%x\", ((REC->a) + 1)",
            "\"%s\", __print_symbolic(REC->a >> 2, { 0, \"x\" })",
            "\"%s\", __print_symbolic(REC->a, { 0, \"x\" }",
            "\"%x\", (",
            "\"%x",
            "REC->a",
        ] {
            assert_eq!(format(print).fields, plain, "{print}");
        }
    }
}
