// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The suite of actf: traces of CTF 2 with the text that an independent reader prints
//! of them. Payloads are compared, value by value. Where the suite is absent the test
//! says so and passes.

use std::fs;
use std::path::Path;

use lateralis_ctf::open;
use lateralis_model::{Base, Field, FieldKind, Label, Value};

/// More is read here, and damage in it is reported. The reasons are on
/// docs/reference/formats/babeltrace-differences.md.
const MORE_HERE: [(&str, usize); 5] = [
    ("dyn_str_utf16_invalid_sz_nok", 1),
    ("optional_int_no_sel_rng_nok", 2),
    // It stops where the first file is cut, which ours does in that file only.
    ("philo_nok", 134),
    ("pkt_hdr_bad_magic_nok", 2),
    ("static_str_utf16_invalid_sz_nok", 1),
];

#[test]
fn payloads_are_as_an_independent_reader_prints_them() {
    let suite =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/ctf2/actf-LGPL3");
    if !suite.is_dir() {
        println!("SKIPPED: no traces at {}", suite.display());
        return;
    }
    let (mut traces, mut payloads, mut wrong) = (0, 0, Vec::new());
    for entry in fs::read_dir(&suite).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(path.join("refs/out.ref")) else { continue };
        let payload = |line: &'_ str| {
            let payload = line.split_once("event-payload: ")?.1.strip_suffix(" }")?;
            Some(labels_sorted(payload))
        };
        let expected: Vec<String> = text.lines().filter_map(payload).collect();
        let reader = open::open(&path).unwrap();
        let mut events = reader.events();
        let mut found = Vec::new();
        while let Some(event) = events.next_event() {
            let mut out = String::new();
            if let Some(fields) = event.payload() {
                structure(&mut out, fields.into_iter().map(|(m, f)| (m.name.as_str(), f)));
            }
            found.push(labels_sorted(&out));
        }
        traces += 1;
        payloads += expected.len();
        let more = MORE_HERE.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
        if more.unwrap_or(expected.len()) != found.len() {
            wrong.push(format!("{name}: {} events, not {}", found.len(), expected.len()));
        }
        if more.is_some() {
            // All of theirs are among ours.
            for expected in expected {
                match found.iter().position(|found| *found == expected) {
                    Some(place) => drop(found.remove(place)),
                    None => wrong.push(format!("{name}: no {expected}")),
                }
            }
            continue;
        }
        for (expected, found) in expected.iter().zip(&found).filter(|(a, b)| a != b) {
            wrong.push(format!("{name}:\n  {expected}\n  {found}"));
        }
    }
    println!("{traces} traces, {payloads} payloads");
    assert_eq!(wrong, [] as [String; 0], "{}", wrong.join("\n"));
    assert!(traces >= 37 && payloads > 140, "{traces} {payloads}");
}

/// Labels of a number, `"a","b"`, are in a JSON object, which has no order.
fn labels_sorted(payload: &str) -> String {
    let sorted = |field: &str| {
        let list = field.split_once('"').and_then(|(head, rest)| {
            let (list, tail) = rest.rsplit_once('"')?;
            let mut labels: Vec<&str> = list.split("\",\"").collect();
            labels.sort_unstable();
            Some(format!("{head}\"{}\"{tail}", labels.join("\",\"")))
        });
        list.unwrap_or_else(|| field.to_owned())
    };
    payload.split(", ").map(sorted).collect::<Vec<_>>().join(", ")
}

fn structure<'a>(out: &mut String, fields: impl Iterator<Item = (&'a str, Field<'a>)>) {
    out.push_str("{ ");
    for (index, (name, field)) in fields.enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        out.push_str(name);
        out.push_str(": ");
        value(out, field);
    }
    out.push_str(" }");
}

fn value(out: &mut String, field: Field<'_>) {
    match (field.value(), &field.class().kind) {
        (Value::Bool(yes), _) => out.push(if yes { '1' } else { '0' }),
        (Value::Unsigned(number), FieldKind::Unsigned(class)) => {
            integer(out, number.into(), class.base);
            labels(out, number.into(), &class.labels);
        }
        (Value::Signed(number), FieldKind::Signed(class)) => {
            integer(out, number.into(), class.base);
            labels(out, number.into(), &class.labels);
        }
        (Value::Bits(bits), FieldKind::Bits { flags, .. }) if flags.is_empty() => {
            *out += &bits.to_string();
        }
        (Value::Bits(bits), FieldKind::Bits { flags, .. }) => {
            *out += &format!("{bits:#x}");
            let set = |label: &&Label| {
                let bit = |bit: i128| bits >> bit & 1 != 0;
                label.ranges.iter().any(|range| (range.low..=range.high).any(bit))
            };
            names(out, flags.iter().filter(set));
        }
        (Value::Real(number), _) => *out += &format!("{number:.6}"),
        (Value::Text(text), _) => {
            let text = text.to_str();
            *out += &format!("\"{}\"", text.split('\0').next().unwrap_or_default());
        }
        (Value::Struct(fields), _) => {
            structure(out, fields.into_iter().map(|(m, f)| (m.name.as_str(), f)));
        }
        (Value::Array(elements), _) => {
            out.push('[');
            for (index, element) in elements.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                value(out, element);
            }
            out.push(']');
        }
        (Value::Variant(_, field) | Value::Optional(Some(field)), _) => value(out, field),
        (Value::Optional(None), _) => *out += "nil",
        (Value::Bytes(bytes), _) => *out += &format!("{bytes:?}"),
        _ => panic!("a value that its class does not know"),
    }
}

/// With the sign before the digits.
fn integer(out: &mut String, number: i128, base: Base) {
    let sign = if number < 0 { "-" } else { "" };
    let magnitude = number.unsigned_abs();
    *out += &match base {
        Base::Decimal => number.to_string(),
        Base::Hexadecimal => format!("{sign}{magnitude:#x}"),
        Base::Octal => format!("{sign}0{magnitude:o}"),
        Base::Binary => format!("{sign}{magnitude:#b}"),
    };
}

fn labels(out: &mut String, number: i128, labels: &[Label]) {
    let of_number = |label: &&Label| label.ranges.iter().any(|range| range.contains(number));
    if !labels.is_empty() {
        names(out, labels.iter().filter(of_number));
    }
}

fn names<'a>(out: &mut String, labels: impl Iterator<Item = &'a Label>) {
    let names: Vec<String> = labels.map(|label| format!("\"{}\"", label.name)).collect();
    *out += ": ";
    *out += if names.is_empty() { "nil" } else { "" };
    *out += &names.join(",");
}
