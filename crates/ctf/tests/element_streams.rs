// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams of yactfr's suite: metadata, commented bytes, and the elements that
//! an independent decoder finds in them, value by value.
//!
//! The bytes are in the Normand notation, of which the common part is read here;
//! files that need more are named as skipped. Where the traces are absent the
//! test says so and passes.

use std::fs;
use std::path::Path;

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::{Field, Value};

/// Intended differences of this reader: fields of another byte order may begin inside a byte, which
/// costs nothing to read; the stream class is that of the outermost `stream_id` of a packet header,
/// as in babeltrace; LEB128 of more bytes than its number needs is read if the number fits 64 bits.
const ACCEPTED: [&str; 6] = [
    "ctf-1/fail-le-to-be-change-in-byte",
    "ctf-1/fail-be-to-le-change-in-byte",
    "ctf-2/fail-le-to-be-change-in-byte",
    "ctf-2/fail-be-to-le-change-in-byte",
    "ctf-1/pass-multiple-dst-id-fl-ints",
    "ctf-2/fail-vl-uint-oversized-gt-10-bytes",
];

/// Of the 74 files, those whose notation is read here.
const FILES_READ: usize = 60;

#[test]
fn every_value_is_that_of_an_independent_decoder() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/yactfr-MIT/tests-iter-data");
    if !suite.is_dir() {
        println!("skipped: no streams at {}", suite.display());
        return;
    }
    let (mut read, mut wrong) = (0, Vec::new());
    for version in ["ctf-1", "ctf-2"] {
        for entry in fs::read_dir(suite.join(version)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{version}/{}", path.file_stem().unwrap().to_string_lossy());
            let text = fs::read_to_string(&path).unwrap();
            match check(&name, &text) {
                None => println!("skipped: {name}: notation"),
                Some(Ok(())) => read += 1,
                Some(Err(_)) if ACCEPTED.contains(&name.as_str()) => read += 1,
                Some(Err(difference)) => wrong.push(format!("{name}: {difference}")),
            }
        }
    }
    println!("{read} files read");
    assert_eq!(wrong, [] as [String; 0]);
    assert!(read >= FILES_READ, "{read} files read");
}

/// `None` if the notation is not understood.
fn check(name: &str, text: &str) -> Option<Result<(), String>> {
    let text = text.strip_prefix("---\n").unwrap_or(text);
    let mut parts = text.split("\n---\n");
    let (metadata, notation, dump) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = normand(notation)?;
    let file = StreamFile { name: "stream".into(), bytes: Box::new(bytes) };
    // The aliases that the suite adds before every metadata text.
    let metadata = with_aliases(metadata);
    let reader = Reader::new(metadata.as_bytes(), vec![file]);
    let mut events = Vec::new();
    let mut merge = reader.events();
    while let Some(event) = merge.next_event() {
        let mut values = Vec::new();
        for (_, field) in event.payload().into_iter().flatten() {
            flatten(field, &mut values);
        }
        events.push(values);
    }
    let damaged = !reader.damage().is_empty() || merge.damage().next().is_some();
    let (mut expected, cut) = elements(dump);
    if name.contains("/fail-") {
        // The last event is the one that fails.
        expected.truncate(expected.len() - usize::from(cut));
        if !damaged && reader.diagnostics().is_empty() {
            return Some(Err("no damage found".to_owned()));
        }
    } else if damaged {
        return Some(Err(format!("damage: {:?}", reader.damage())));
    }
    if events == expected {
        return Some(Ok(()));
    }
    let at = events.iter().zip(&expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(events.len().min(expected.len()));
    let faults = reader.diagnostics();
    let (ours, theirs) = (events.get(at), expected.get(at));
    Some(Err(format!("event {at}: {ours:?} instead of {theirs:?} {faults:?}")))
}

fn with_aliases(metadata: &str) -> String {
    // The suite has the fragments of CTF 2 in a list.
    if let Ok(serde_json::Value::Array(fragments)) = serde_json::from_str(metadata) {
        return fragments.iter().map(|fragment| format!("\u{1e}{fragment}\n")).collect();
    }
    let mut text = String::from("/* CTF 1.8 */\n");
    for (bits, align) in [(8, 8), (16, 8), (32, 8), (64, 8)] {
        for (order, suffix) in [("native", ""), ("le", "le"), ("be", "be")] {
            for (sign, letter) in [("false", 'u'), ("true", 'i')] {
                text.push_str(&format!(
                    "typealias integer {{ size = {bits}; align = {align}; signed = {sign}; \
                     byte_order = {order}; }} := {letter}{bits}{suffix};\n"
                ));
            }
        }
    }
    text + metadata
}

#[derive(Debug, PartialEq, Clone)]
enum Leaf {
    Number(i128),
    /// Rounded as the dump is.
    Real(String),
    Bytes(Vec<u8>),
}

fn flatten(field: Field<'_>, out: &mut Vec<Leaf>) {
    match field.value() {
        Value::Bool(yes) => out.push(Leaf::Number(i128::from(yes))),
        Value::Unsigned(number) | Value::Bits(number) => out.push(Leaf::Number(number.into())),
        Value::Signed(number) => out.push(Leaf::Number(number.into())),
        Value::Real(number) => out.push(Leaf::Real(rounded(number))),
        Value::Text(text) => out.push(Leaf::Bytes(text.bytes.to_vec())),
        Value::Bytes(bytes) => out.push(Leaf::Bytes(bytes.to_vec())),
        Value::Struct(fields) => fields.into_iter().for_each(|(_, field)| flatten(field, out)),
        Value::Array(elements) => elements.for_each(|element| flatten(element, out)),
        Value::Variant(_, field) | Value::Optional(Some(field)) => flatten(field, out),
        Value::Optional(None) => {}
    }
}

fn rounded(number: f64) -> String {
    format!("{number:.4e}")
}

/// The payloads in a dump, and whether it ends inside an event.
fn elements(dump: &str) -> (Vec<Vec<Leaf>>, bool) {
    let mut events: Vec<Vec<Leaf>> = Vec::new();
    let (mut in_payload, mut open_events) = (None, 0usize);
    let mut depth = 0usize;
    let mut events_at = Vec::new();
    let mut kind = "";
    for line in dump.lines() {
        let Some((_, element)) = line.trim_start().split_once(' ') else { continue };
        let element = element.trim();
        if element == "ER {" {
            events.push(Vec::new());
            events_at.push(depth);
            open_events += 1;
        }
        if element == "SC:5 {" {
            in_payload = Some(depth);
        }
        if element == "}" {
            depth = depth.saturating_sub(1);
            if in_payload == Some(depth) {
                in_payload = None;
            }
            if events_at.last() == Some(&depth) {
                events_at.pop();
                open_events -= 1;
            }
            continue;
        }
        if let (Some(_), Some(event)) = (in_payload, events.last_mut()) {
            leaf(element, &mut kind, event);
        }
        depth += usize::from(element.ends_with('{'));
    }
    (events, open_events > 0)
}

fn leaf<'a>(element: &'a str, kind: &mut &'a str, event: &mut Vec<Leaf>) {
    let tag = element.split([':', ' ']).next().unwrap_or("");
    let parts = || element.split(':').skip(1);
    match tag {
        "FLUI" | "FLSI" | "FLBA" | "FLBM" | "FLB" | "VLUI" | "VLSI" | "FLUE" | "FLSE" => {
            if let Some(number) = parts().find_map(|part| part.parse().ok()) {
                event.push(Leaf::Number(number));
            }
        }
        "FLFPN" => {
            if let Some(number) = parts().find_map(|part| part.parse::<f64>().ok()) {
                event.push(Leaf::Real(rounded(number)));
            }
        }
        "NTS" | "SLS" | "DLS" | "SLB" | "DLB" => {
            *kind = tag;
            event.push(Leaf::Bytes(Vec::new()));
        }
        "RD" => {
            let data = element.splitn(3, ':').nth(2).unwrap_or("");
            if let Some(Leaf::Bytes(bytes)) = event.last_mut() {
                bytes.extend(raw_data(data, kind.ends_with('B')));
                if !kind.ends_with('B') {
                    cut_at_null(bytes);
                }
            }
        }
        _ => {}
    }
}

fn raw_data(data: &str, hexadecimal: bool) -> Vec<u8> {
    let hex = |digits: &str| u8::from_str_radix(digits, 16).unwrap_or(0);
    let mut bytes = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        if let Some(code) = rest.strip_prefix('$').filter(|_| !hexadecimal) {
            bytes.push(hex(&code[..2]));
            rest = &code[2..];
        } else if hexadecimal {
            bytes.push(hex(&rest[..2]));
            rest = &rest[2..];
        } else {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            bytes.extend(&rest.as_bytes()[..first]);
            rest = &rest[first..];
        }
    }
    bytes
}

/// Text ends at its first null, whose width shows in the data: a null of one
/// byte inside UTF-16 has a neighbour that is none.
fn cut_at_null(bytes: &mut Vec<u8>) {
    let unit = match bytes.as_slice() {
        [0, 0, 0, ..] | [_, 0, 0, 0, ..] => 4,
        [0, ..] | [_, 0, ..] if bytes.len().is_multiple_of(2) => 2,
        _ => 1,
    };
    let null = bytes.chunks(unit).position(|unit| unit.iter().all(|&byte| byte == 0));
    if let Some(index) = null {
        bytes.truncate(index * unit);
    }
}

/// Reads the common part of Normand: bytes in hexadecimal, `$` decimal, `%`
/// binary, text, numbers with a width, byte orders, comments.
fn normand(notation: &str) -> Option<Vec<u8>> {
    let mut out = Bits::default();
    let mut rest = notation;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "(),;:|.".contains(c));
        let Some(first) = rest.chars().next() else { return out.bytes() };
        match first {
            '#' => {
                let end = rest[1..].find(['#', '\n']).map_or(rest.len(), |at| at + 2);
                rest = &rest[end..];
            }
            '"' | 'u' => {
                let (unit, after) = match first {
                    '"' => ("u8", rest),
                    _ => rest.split_once(' ')?,
                };
                let (text, after) = quoted(after)?;
                out.text(unit, &text)?;
                rest = after;
            }
            '[' => {
                let (inside, after) = rest[1..].split_once(']')?;
                let (value, width) = inside.rsplit_once(':')?;
                out.number(value.trim(), width.trim())?;
                rest = after;
            }
            '%' => {
                rest = &rest[1..];
                let mut bits = 0;
                while bits < 8 {
                    rest = rest.trim_start();
                    match rest.chars().next()? {
                        bit @ ('0' | '1') => {
                            out.bit(bit == '1');
                            bits += 1;
                            rest = &rest[1..];
                        }
                        '#' => rest = &rest[rest.find('\n')?..],
                        _ => return None,
                    }
                }
            }
            '$' => {
                let digits = rest[1..].trim_start();
                let end = digits.find(|c: char| !c.is_ascii_digit() && c != '-');
                let (digits, after) = digits.split_at(end.unwrap_or(digits.len()));
                out.number(digits, "8")?;
                rest = after;
            }
            '!' => {
                out.big = match rest.get(1..3)? {
                    "be" => true,
                    "le" => false,
                    _ => return None,
                };
                rest = &rest[3..];
            }
            digit if digit.is_ascii_hexdigit() => {
                let pair: String = rest.chars().filter(|c| !c.is_whitespace()).take(2).collect();
                let byte = u8::from_str_radix(&pair, 16).ok()?;
                out.number(&byte.to_string(), "8")?;
                let second = rest[1..].find(|c: char| !c.is_whitespace())? + 2;
                rest = &rest[second..];
            }
            _ => return None,
        }
    }
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.trim_start().strip_prefix('"')?.char_indices();
    let start = text.len() - text.trim_start().len() + 1;
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((out, &text[start + index + 1..])),
            '\\' => out.push(match characters.next()?.1 {
                '0' => '\0',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other @ ('\\' | '"') => other,
                _ => return None,
            }),
            other => out.push(other),
        }
    }
    None
}

#[derive(Default)]
struct Bits {
    bits: Vec<bool>,
    big: bool,
}

impl Bits {
    fn bit(&mut self, bit: bool) {
        self.bits.push(bit);
    }

    fn byte(&mut self, byte: u8) {
        (0..8).rev().for_each(|index| self.bit(byte >> index & 1 != 0));
    }

    fn text(&mut self, unit: &str, text: &str) -> Option<()> {
        match unit {
            "u8" => text.bytes().for_each(|byte| self.byte(byte)),
            "u16be" => text.encode_utf16().flat_map(u16::to_be_bytes).for_each(|b| self.byte(b)),
            "u16le" => text.encode_utf16().flat_map(u16::to_le_bytes).for_each(|b| self.byte(b)),
            "u32be" => {
                text.chars().flat_map(|c| u32::from(c).to_be_bytes()).for_each(|b| self.byte(b))
            }
            "u32le" => {
                text.chars().flat_map(|c| u32::from(c).to_le_bytes()).for_each(|b| self.byte(b))
            }
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self, value: &str, width: &str) -> Option<()> {
        if let "uleb128" | "sleb128" = width {
            return self.leb128(integer(value)?, width == "sleb128");
        }
        let width: usize = width.parse().ok().filter(|&width| width <= 64)?;
        let raw = match (integer(value), width) {
            (Some(number), _) if !value.contains('.') => number as u64,
            (_, 32) => u64::from(value.parse::<f32>().ok()?.to_bits()),
            (_, 64) => value.parse::<f64>().ok()?.to_bits(),
            _ => return None,
        };
        if self.big {
            (0..width).rev().for_each(|index| self.bit(raw >> index & 1 != 0));
            return Some(());
        }
        // What a little-endian number does inside a byte is not needed here.
        if !(width + self.bits.len()).is_multiple_of(8) || !width.is_multiple_of(8) {
            return None;
        }
        raw.to_le_bytes()[..width / 8].iter().for_each(|&byte| self.byte(byte));
        Some(())
    }

    fn leb128(&mut self, mut value: i128, signed: bool) -> Option<()> {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            let sign = low & 0x40 != 0;
            let done = if signed { value == 0 && !sign || value == -1 && sign } else { value == 0 };
            self.byte(if done { low } else { low | 0x80 });
            if done {
                return Some(());
            }
        }
    }

    fn bytes(self) -> Option<Vec<u8>> {
        let whole = self.bits.len().is_multiple_of(8);
        let byte = |bits: &[bool]| bits.iter().fold(0, |sum, &bit| sum << 1 | u8::from(bit));
        whole.then(|| self.bits.chunks(8).map(byte).collect())
    }
}

fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * number)
}
