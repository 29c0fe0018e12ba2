// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of any class as babeltrace2 prints them.

use super::digits;
use super::escape::escaped;
use super::layout::digits_mask;
use super::number;
use super::pen::Pen;
use crate::scalar::sign_extend;
use crate::{
    Base, Elements, Encoding, Field, FieldKind, Fields, IntegerClass, Label, ScalarKind, Text,
    Value,
};

pub(super) fn structure(pen: &mut Pen<'_>, fields: Fields<'_>) {
    pen.all(b"{");
    let mut comma = 0;
    for (member, field) in fields {
        if member.class.structural {
            continue;
        }
        pen.put(b",", comma);
        comma = 1;
        pen.all(b" ");
        pen.slice(member.name.as_bytes());
        pen.all(b" = ");
        value(pen, field);
    }
    pen.all(b" }");
}

pub(super) fn value(pen: &mut Pen<'_>, field: Field<'_>) {
    match (field.value(), &field.class().kind) {
        (Value::Bool(yes), _) => pen.slice(if yes { b"true" } else { b"false" }),
        (Value::Unsigned(value), FieldKind::Unsigned(class)) => integer(pen, value, false, class),
        (Value::Signed(value), FieldKind::Signed(class)) => integer(pen, value as u64, true, class),
        (Value::Bits(value), FieldKind::Bits { flags, .. }) => bits(pen, value, flags),
        (Value::Real(value), _) => pen.with(|out| number::real(out, value)),
        (Value::Text(value), _) => text(pen, value),
        (Value::Bytes(bytes), _) => {
            pen.all(b"{ ");
            for byte in bytes {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                pen.all(&[digits[0], digits[1], b' ']);
            }
            pen.all(b"}");
        }
        (Value::Struct(fields), _) => structure(pen, fields),
        (Value::Array(elements), _) => {
            pen.all(b"[");
            if !numbers(pen, elements) {
                for (index, element) in elements.enumerate() {
                    place(pen, index);
                    value(pen, element);
                }
            }
            pen.all(b" ]");
        }
        (Value::Variant(_, field) | Value::Optional(Some(field)), _) => {
            pen.all(b"{ ");
            value(pen, field);
            pen.all(b" }");
        }
        (Value::Optional(None), _) => pen.all(b"<none>"),
        // Value and class are of the same shape.
        _ => {}
    }
}

/// Appends the elements of an array of plain decimal numbers that are consecutive in memory.
/// Returns whether it is one.
fn numbers(pen: &mut Pen<'_>, elements: Elements<'_>) -> bool {
    let Some((bytes, scalar, mut at)) = elements.packed() else {
        return false;
    };
    let signed = match (&elements.class().kind, scalar.kind) {
        (FieldKind::Unsigned(class), ScalarKind::Unsigned) if is_plain(class) => false,
        (FieldKind::Signed(class), ScalarKind::Signed) if is_plain(class) => true,
        _ => return false,
    };
    let stride = scalar.stride_bits();
    pen.lend(|pen| {
        for index in 0..elements.len() {
            place(pen, index);
            let raw = scalar.raw(bytes, at).unwrap_or(0);
            at += stride;
            match signed {
                true => digits::decimal_signed(pen, sign_extend(raw, scalar.bits)),
                false => digits::decimal(pen, raw),
            }
        }
    });
    true
}

fn is_plain(class: &IntegerClass) -> bool {
    class.labels.is_empty() && class.base == Base::Decimal
}

/// The text before an element of an array.
#[inline(always)]
fn place(pen: &mut Pen<'_>, index: usize) {
    match PLACES.get(index) {
        Some((text, used)) => pen.put(text, *used),
        None => {
            pen.all(b", [");
            digits::decimal(pen, index as u64);
            pen.all(b"] = ");
        }
    }
}

/// The text before the first elements, and its length.
static PLACES: [([u8; 16], usize); 100] = {
    let mut places = [([0; 16], 0); 100];
    let mut index = 0;
    while index < places.len() {
        let (text, used) = &mut places[index];
        let digits = [b'0' + index as u8 / 10, b'0' + index as u8 % 10];
        let parts: [&[u8]; 3] = [
            if index == 0 { b" [" } else { b", [" },
            if index < 10 { digits.split_at(1).1 } else { &digits },
            b"] = ",
        ];
        let mut part = 0;
        while part < parts.len() {
            let mut at = 0;
            while at < parts[part].len() {
                text[*used] = parts[part][at];
                *used += 1;
                at += 1;
            }
            part += 1;
        }
        index += 1;
    }
    places
};

fn integer(pen: &mut Pen<'_>, value: u64, signed: bool, class: &IntegerClass) {
    if class.labels.is_empty() {
        return plain_integer(pen, value, signed, class);
    }
    pen.all(b"( ");
    let wide = if signed { i128::from(value as i64) } else { i128::from(value) };
    let of_value = |label: &&Label| label.ranges.iter().any(|range| range.contains(wide));
    let count = class.labels.iter().filter(of_value).count();
    if count == 0 {
        pen.all(b"<unknown>");
    } else {
        names(pen, class.labels.iter().filter(of_value).map(|label| label.name.as_str()), count);
    }
    pen.all(b" : container = ");
    plain_integer(pen, value, signed, class);
    pen.all(b" )");
}

fn names<'a>(pen: &mut Pen<'_>, names: impl Iterator<Item = &'a str>, count: usize) {
    if count > 1 {
        pen.all(b"{ ");
    }
    for (index, one) in names.enumerate() {
        if index > 0 {
            pen.all(b", ");
        }
        name(pen, one);
    }
    if count > 1 {
        pen.all(b" }");
    }
}

fn plain_integer(pen: &mut Pen<'_>, value: u64, signed: bool, class: &IntegerClass) {
    let masked = |digit: u32| value & digits_mask(class.bits, digit);
    match class.base {
        Base::Decimal if signed => digits::decimal_signed(pen, value as i64),
        Base::Decimal => digits::decimal(pen, value),
        Base::Hexadecimal => hexadecimal(pen, masked(4)),
        Base::Octal if signed => pen.with(|out| number::octal(out, masked(3))),
        Base::Octal => pen.with(|out| number::octal(out, value)),
        Base::Binary => pen.with(|out| number::binary(out, value, class.bits)),
    }
}

fn hexadecimal(pen: &mut Pen<'_>, value: u64) {
    pen.all(b"0x");
    digits::hexadecimal(pen, value);
}

fn bits(pen: &mut Pen<'_>, value: u64, flags: &[Label]) {
    hexadecimal(pen, value);
    let active = |label: &&Label| {
        let set = |bit: i128| (0..64).contains(&bit) && value >> bit & 1 != 0;
        label.ranges.iter().any(|range| (range.low.max(0)..=range.high.min(63)).any(set))
    };
    let mut labels: Vec<&str> = flags.iter().filter(active).map(|l| l.name.as_str()).collect();
    if labels.is_empty() {
        return;
    }
    labels.sort_unstable();
    pen.all(b" { ");
    for (index, label) in labels.iter().enumerate() {
        if index > 0 {
            pen.all(b", ");
        }
        name(pen, label);
    }
    pen.all(b" }");
}

fn text(pen: &mut Pen<'_>, text: Text<'_>) {
    match text.encoding {
        Encoding::Utf8 => quoted(pen, text.bytes),
        _ => name(pen, &text.to_str()),
    }
}

fn name(pen: &mut Pen<'_>, name: &str) {
    quoted(pen, name.as_bytes());
}

fn quoted(pen: &mut Pen<'_>, text: &[u8]) {
    pen.all(b"\"");
    escaped(pen, text, text.len());
    pen.all(b"\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_out() {
        for index in 0..1_200 {
            let mut out = Vec::new();
            let mut pen = Pen::new(&mut out);
            place(&mut pen, index);
            pen.finish();
            let comma = if index == 0 { "" } else { "," };
            assert_eq!(String::from_utf8(out).unwrap(), format!("{comma} [{index}] = "));
        }
    }
}
