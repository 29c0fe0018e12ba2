// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata made to take time or memory: each is refused, or read, with little of both.

use crate::maker;

use std::env;
use std::fmt::Write as _;
use std::process::Command;

use maker::{any_reader, read};

/// Reads a whole trace with any metadata; returns whether the metadata had faults.
fn refused(metadata: &str, stream: &[u8]) -> bool {
    let reader = any_reader(metadata, &[stream]);
    assert!(reader.diagnostics().len() <= 128, "{} diagnostics", reader.diagnostics().len());
    read(&reader);
    !reader.diagnostics().is_empty()
}

fn v1(fields: &str) -> String {
    format!(
        "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }};
        typealias integer {{ size = 8; }} := u8;
        event {{ name = e; fields := struct {{ {fields} }}; }};"
    )
}

fn v2(aliases: &str, class: &str) -> String {
    format!(
        r#"{{"type": "preamble", "version": 2}}{aliases}
        {{"type": "data-stream-class"}}
        {{"type": "event-record-class", "name": "e", "payload-field-class": {{"type": "structure",
        "member-classes": [{{"name": "f", "field-class": {class}}}]}}}}"#
    )
}

/// Runs each of the others again with 256 MiB and 20 seconds of a processor, and
/// notices when one of them takes more.
#[test]
fn each_of_them_within_256_mebibytes_and_20_seconds() {
    if env::var_os("LATERALIS_LIMITED").is_some() {
        return;
    }
    let own = env::current_exe().unwrap();
    let list = Command::new(&own).arg("--list").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let others = names.filter(|name| {
        let own = name.strip_prefix("metadata_limits::");
        own.is_some_and(|own| !own.starts_with("each_of_them"))
    });
    let mut tried = 0;
    for name in others {
        let output = Command::new("sh")
            .args(["-c", "ulimit -d 262144 && ulimit -t 20 && exec \"$0\" --exact \"$1\""])
            .arg(&own)
            .arg(name)
            .env("LATERALIS_LIMITED", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}: {text}", output.status);
        assert!(text.contains("1 passed"), "{name}: {text}");
        tried += 1;
    }
    assert!(tried >= 8, "{tried} tests");
}

#[test]
fn sizes_and_alignments_without_measure() {
    let numbers =
        ["0", "65", "128", "4097", "4294967296", "9223372036854775808", "18446744073709551615"];
    for number in numbers.into_iter().chain(["99999999999999999999999999", "-1"]) {
        let integer = format!("integer {{ size = {number}; align = 1; }} x;");
        // Integers of more bits than a register are read, up to 4096.
        let wide = ["65", "128"].contains(&number);
        assert_eq!(refused(&v1(&integer), &[1; 64]), !wide, "size = {number}");
        let aligned = format!("u8 y; integer {{ size = 8; align = {number}; }} x;");
        // The powers of two are alignments, however useless.
        let power = number.parse::<u64>().is_ok_and(u64::is_power_of_two);
        assert!(refused(&v1(&aligned), &[1; 64]) || power, "align = {number}");
        let structure = format!("u8 y; struct {{ u8 x; }} align({number}) s;");
        assert!(refused(&v1(&structure), &[1; 64]) || power, "align({number})");
        for class in [
            format!(
                r#"{{"type": "fixed-length-unsigned-integer", "length": {number},
                "byte-order": "little-endian"}}"#
            ),
            format!(r#"{{"type": "structure", "minimum-alignment": {number}}}"#),
        ] {
            let wide = wide && class.contains("length");
            assert!(refused(&v2("", &class), &[1; 64]) || power || wide, "{class}");
        }
    }
}

#[test]
fn arrays_longer_than_any_file() {
    // 2⁶⁰ and more of nothing, of bits, of bytes, of arrays of the same.
    for count in ["1048577", "4294967295", "1152921504606846976", "18446744073709551615"] {
        for element in ["struct { }", "u8", "integer { size = 1; align = 1; }", "string"] {
            refused(&v1(&format!("{element} a[{count}];")), &[0; 4096]);
            refused(&v1(&format!("{element} a[{count}][{count}][{count}];")), &[0; 4096]);
            refused(&v1(&format!("struct {{ {element} a[{count}]; }} b[{count}];")), &[0; 4096]);
        }
        for element in [
            r#"{"type": "structure"}"#,
            r#"{"type": "null-terminated-string"}"#,
            r#"{"type": "static-length-blob", "length": 0}"#,
            r#"{"type": "static-length-string", "length": 0}"#,
            r#"{"type": "variable-length-unsigned-integer"}"#,
        ] {
            let array = |of: &str| {
                format!(
                    r#"{{"type": "static-length-array", "length": {count},
                    "element-field-class": {of}}}"#
                )
            };
            refused(&v2("", &array(element)), &[0; 4096]);
            refused(&v2("", &array(&array(element))), &[0; 4096]);
        }
        for class in ["blob", "string"] {
            let class = format!(r#"{{"type": "static-length-{class}", "length": {count}}}"#);
            let reader = any_reader(&v2("", &class), &[&[0; 4096]]);
            assert!(read(&reader).0.is_empty(), "{class}");
        }
    }
}

#[test]
fn many_classes() {
    let mut text = String::from("/* CTF 1.8 */ trace { byte_order = le; };");
    text.push_str("typealias integer { size = 16; } := u16;");
    text.push_str("stream { event.header := struct { u16 id; }; };");
    for id in 0..30_000 {
        write!(text, "event {{ id = {id}; name = e{id}; fields := struct {{ u16 x; }}; }};")
            .unwrap();
    }
    let stream: Vec<u8> = (0..30_000u16).flat_map(|id| [id.to_le_bytes(); 2].concat()).collect();
    let reader = any_reader(&text, &[&stream]);
    assert_eq!(reader.diagnostics(), []);
    let (events, damage) = read(&reader);
    assert_eq!((events.len(), damage.len()), (30_000, 0));
    // As many streams classes, of which only one can be meant.
    let streams: String = (0..30_000).map(|id| format!("stream {{ id = {id}; }};")).collect();
    refused(&format!("/* CTF 1.8 */ trace {{ byte_order = le; }}; {streams}"), &[0; 64]);
    // Numbers far apart, by which no table can be indexed.
    let far: String =
        (0..1000u64).map(|id| format!("event {{ id = {}; name = e; }};", id << 50)).collect();
    refused(&format!("/* CTF 1.8 */ trace {{ byte_order = le; }}; {far}"), &[0; 64]);
}

#[test]
fn tables_of_names_without_end() {
    let labels: String = (0..100_000).map(|label| format!("l{label}, ")).collect();
    let text = v1(&format!("enum : integer {{ size = 32; }} {{ {labels} }} x;"));
    assert!(!refused(&text, &7u32.to_le_bytes()));
    // All of them of the same value, and of all values.
    let same: String = (0..50_000).map(|label| format!("l{label} = 7, ")).collect();
    refused(&v1(&format!("enum : u8 {{ {same} }} x;")), &[7; 64]);
    let wide: String = (0..50_000).map(|label| format!("l{label} = 0 ... 255, ")).collect();
    refused(&v1(&format!("enum : u8 {{ {wide} }} x;")), &[7; 64]);
    let mappings: Vec<String> =
        (0..50_000).map(|label| format!(r#""l{label}": [[0, 255]]"#)).collect();
    let class = format!(
        r#"{{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian",
        "mappings": {{{}}}}}"#,
        mappings.join(",")
    );
    assert!(!refused(&v2("", &class), &[7; 64]));
}

#[test]
fn a_variant_of_very_many_options() {
    let labels: Vec<String> = (0..20_000).map(|label| format!("l{label}")).collect();
    let options: String = labels.iter().map(|label| format!("u8 {label};")).collect();
    let labels = labels.join(", ");
    let enumeration = format!("enum : integer {{ size = 16; }} {{ {labels} }} tag;");
    let text = v1(&format!("{enumeration} variant <tag> {{ {options} }} v;"));
    let stream: Vec<u8> =
        (0..20_000u16).flat_map(|tag| [&tag.to_le_bytes()[..], &[1]].concat()).collect();
    refused(&text, &stream);
}

#[test]
fn aliases_that_double() {
    let mut aliases = String::new();
    for level in 0..64 {
        let of = match level {
            0 => r#"{"type": "null-terminated-string"}"#.to_owned(),
            _ => {
                let member = |name: &str| {
                    format!(r#"{{"name": "{name}", "field-class": "a{}"}}"#, level - 1)
                };
                let (a, b) = (member("a"), member("b"));
                format!(r#"{{"type": "structure", "member-classes": [{a}, {b}]}}"#)
            }
        };
        let alias =
            format!(r#"{{"type": "field-class-alias", "name": "a{level}", "field-class": {of}}}"#);
        aliases.push('\x1e');
        aliases.push_str(&alias);
    }
    let text = v2(&aliases, r#""a63""#).replace("\x1e", "\n");
    assert!(refused(&text, &[0; 4096]));
    let mut text = String::from("/* CTF 1.8 */ typealias integer { size = 8; } := t0;");
    for level in 1..64 {
        let t = format!("t{}", level - 1);
        write!(text, "typedef variant {{ {t} a; {t} b; }} v{level};").unwrap();
        write!(text, "typealias struct {{ {t} a[2]; {t} b[2]; }} := t{level};").unwrap();
    }
    text.push_str("trace { byte_order = le; }; event { name = e; fields := struct { t63 x; }; };");
    assert!(refused(&text, &[0; 4096]));
}

#[test]
fn nesting_without_end() {
    let depth = 50_000;
    let structures = "struct { ".repeat(depth) + "u8 x; " + &"} s; ".repeat(depth);
    assert!(refused(&v1(&structures), &[0; 64]));
    assert!(refused(&v1(&("u8 x".to_owned() + &"[1]".repeat(depth) + ";")), &[0; 64]));
    let variants = "variant <t> { ".repeat(depth) + "u8 x; " + &"} s; ".repeat(depth);
    assert!(refused(&v1(&variants), &[0; 64]));
    let open = r#"{"type": "structure", "member-classes": [{"name": "a", "field-class": "#;
    let class = open.repeat(depth) + r#"{"type": "structure"}"# + &"}]}".repeat(depth);
    assert!(refused(&v2("", &class), &[0; 64]));
    let open =
        r#"{"type": "optional", "selector-field-location": {"path": ["f"]}, "field-class": "#;
    let class = open.repeat(depth) + r#"{"type": "structure"}"# + &"}".repeat(depth);
    assert!(refused(&v2("", &class), &[0; 64]));
    let braces = format!(
        r#"{{"type": "preamble", "version": 2, "attributes": {}"#,
        r#"{"a":"#.repeat(depth)
    );
    assert!(refused(&braces, &[0; 64]));
    // What surrounds nothing but itself, in expressions, comments and texts.
    for text in ["(".repeat(depth), "/*".repeat(depth), "\"\\".repeat(depth), "-".repeat(depth)] {
        assert!(refused(&v1(&format!("u8 x[{text}];")), &[0; 64]));
    }
}

#[test]
fn texts_without_end() {
    let long = "x".repeat(1 << 20);
    let fault = |metadata: &str| {
        let reader = any_reader(metadata, &[&[0; 64]]);
        read(&reader);
        let [first, ..] = reader.diagnostics() else { panic!("{:.200}", metadata) };
        assert!(first.message.len() < 1000, "{} bytes", first.message.len());
        first.message.clone()
    };
    assert_eq!(any_reader(&v1(&format!("u8 {long};")), &[&[0; 64]]).diagnostics(), []);
    // The events are printed, each with the name.
    refused(&v1(&format!("u8 x; }}; name = \"{long}\"; fields2 := struct {{")), &[0; 2]);
    // Each of these quotes the name, at the bottom of as many structures as may be.
    for inner in [
        format!("{long} x;"),
        format!("u8 x[{long}];"),
        format!("u8 x[env.{long}];"),
        format!("u8 {long}; u8 {long};"),
        format!("struct {long} x;"),
        format!("variant {long} x;"),
        format!("variant <{long}> {{ u8 a; }} x;"),
        format!("enum {long} x;"),
        format!("u8 x \"{long}\";"),
        format!("integer {{ size = 8; base = {long}; }} x;"),
        format!("integer {{ size = 8; byte_order = {long}; }} x;"),
        format!("integer {{ size = 8; {long} = 1; }} x;"),
        format!("integer {{ size = 8; map = {long}; }} x;"),
        format!("u8 x[1{long}];"),
    ] {
        let message = fault(&v1(&inner));
        assert!(message.contains("xxx") && message.contains('…'), "{message}");
    }
    let nested = format!("struct {{ u8 y[{long}]; }} {long}");
    let nested = (0..20).fold(nested, |inner, _| format!("struct {{ {inner}; }} s"));
    assert!(fault(&v1(&format!("{nested};"))).contains("s: s: s: "));
    for class in [
        format!(r#"{{"type": "{long}"}}"#),
        format!(r#""{long}""#),
        format!(r#"{{"type": "structure", "minimum-alignment": "{long}"}}"#),
        format!(r#"{{"type": "static-length-blob", "length": ["{long}"]}}"#),
        format!(r#"{{"type": "structure", "extensions": {{"{long}": 1}}}}"#),
        format!(r#"{{"type": "static-length-string", "length": 1, "encoding": "{long}"}}"#),
    ] {
        let class = format!(
            r#"{{"type": "structure", "member-classes": [{{"name": "{long}",
            "field-class": {class}}}]}}"#
        );
        let message = fault(&v2("", &class));
        assert!(message.contains("xxx") && message.contains('…'), "{message}");
    }
    fault(&format!("/* CTF 1.8 */ {}", "event { ".repeat(50_000)));
    fault(&format!("/* CTF 1.8 */ {}", "} ".repeat(200_000)));
    fault(&"{\"type\": \"event-record-class\"}\n".repeat(10_000));
}
