// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes that no editor writes: the compiler says what is wrong, in bounded
//! time and memory.

use lateralis_pleco::{Code, Compilation, FILE_BYTES_MAX, compile, format};
use std::time::Instant;

fn codes(compiled: &Compilation) -> Vec<Code> {
    compiled.diagnostics.iter().map(|found| found.code).collect()
}

fn check(text: &[u8], expected: &[Code]) {
    let compiled = compile("hostile.pleco", text);
    assert_eq!(codes(&compiled), expected, "{}", compiled.render());
}

#[test]
fn not_text() {
    check(b"subsystem s { event A \"\xff\", };", &[Code::NotUtf8]);
    check(b"\xfe\xff", &[Code::NotUtf8]);
    check(b"subsystem s { event A \"\xe2\x82", &[Code::NotUtf8]);
    let compiled = compile("x.pleco", b"line\n  ab\xff");
    let place = compiled.diagnostics[0].place;
    assert_eq!((place.line, place.column), (2, 5));
}

#[test]
fn control_characters() {
    check(b"subsystem s { \0 event A \"\", };", &[Code::UnexpectedCharacter, Code::Syntax][..1]);
    let compiled = compile("x.pleco", b"subsystem s { event A \"a\x07\x1b[31m\", };");
    assert_eq!(codes(&compiled), [Code::UnexpectedCharacter], "only what the original refused");
    let rendered = compiled.render();
    assert!(!rendered.contains('\x1b') && !rendered.contains('\x07'), "{rendered:?}");
}

#[test]
fn marks_and_line_ends() {
    check("\u{feff}subsystem s {\r\n event A \"\",\r\n};\r\n".as_bytes(), &[]);
    check("subsystem \u{feff}s { event A \"\" };".as_bytes(), &[Code::UnexpectedCharacter]);
    check(b"", &[Code::NoSubsystem]);
}

#[test]
fn too_large() {
    let mut text = b"subsystem s { event A \"\", };".to_vec();
    text.resize(FILE_BYTES_MAX, b' ');
    check(&text, &[]);
    text.push(b' ');
    check(&text, &[Code::FileTooLarge]);
}

#[test]
fn too_many_errors() {
    let text = format!("subsystem s {{ {} }};", "event A (a: b),".repeat(200));
    let compiled = compile("x.pleco", text.as_bytes());
    assert_eq!(compiled.diagnostics.len(), 101);
    assert_eq!(compiled.diagnostics[100].code, Code::TooManyErrors);
    assert!(compiled.schema.is_none());
}

/// Warnings, however many, leave the schema usable.
#[test]
fn too_many_warnings() {
    let events: String = (0..300).map(|i| format!("event A{i} send c{i},")).collect();
    let compiled = compile("x.pleco", format!("subsystem s {{ {events} }};").as_bytes());
    assert_eq!(compiled.diagnostics.len(), 101);
    assert_eq!(compiled.diagnostics[100].code, Code::TooManyWarnings);
    assert_eq!(compiled.schema.unwrap().events.len(), 300);
}

#[test]
fn long_names() {
    let long = "n".repeat(121);
    check(format!("subsystem {long} {{ event A \"\" }};").as_bytes(), &[Code::NameTooLong]);
    let fits = &long[1..];
    check(format!("subsystem {fits} {{ event A \"\" }};").as_bytes(), &[]);
    // A name of megabytes is not repeated in the message.
    let endless = "n".repeat(4 << 20);
    let compiled =
        compile("x.pleco", format!("subsystem s {{ event A (a: {endless}) }};").as_bytes());
    assert_eq!(codes(&compiled), [Code::UnknownType]);
    assert!(compiled.render().len() < 2000);
}

#[test]
fn too_many_events() {
    let mut text = String::from("subsystem s {\n");
    for i in 0..32_753 {
        text.push_str(&format!("event E{i} \"\",\n"));
    }
    text.push_str("};");
    check(text.as_bytes(), &[Code::TooManyEvents]);
    let fewer = text.replacen("event E0 \"\",\n", "", 1);
    check(fewer.as_bytes(), &[]);
}

/// Inputs on which a careless compiler is slow or deep. Each must be done in a
/// few seconds; the limit leaves room for a busy machine.
#[test]
fn bounded_time_and_depth() {
    let wrap = |inner: &str| format!("subsystem s {{ event A \"\" {inner} }};");
    let inputs = [
        "/*".repeat(1 << 20),
        wrap(&format!("(a: {})", "[".repeat(1 << 20))),
        wrap(&format!("(a: {}", "enum {".repeat(1 << 18))),
        "{".repeat(1 << 20),
        "subsystem s { ".repeat(1 << 16),
        wrap(&"(".repeat(1 << 20)),
        wrap(&"begin a ".repeat(1 << 17)),
        wrap(&(0..1 << 17).map(|i| format!("begin a{i} ")).collect::<String>()),
        wrap(&format!("begin a key {}", "arg ".repeat(1 << 18))),
        wrap(&format!(
            "(a: enum {{ {} }})",
            (0..1 << 17).map(|i| format!("L{i},")).collect::<String>()
        )),
        (0..1 << 15).map(|i| format!("enum e{i} {{ A }};")).collect::<String>(),
        (0..1 << 15).map(|i| format!("budget b{i} p99 < 1 s;")).collect::<String>(),
        wrap(&format!("({})", (0..1 << 16).map(|i| format!("f{i}: u8,")).collect::<String>())),
        format!("subsystem s {{ event A \"{}\" format }};", "%u".repeat(1 << 20)),
        format!("subsystem s {{ event A \"{}\" }};", "\\&".repeat(1 << 20)),
        (0..20_000)
            .map(|i| format!("subsystem s{i} {{ event A (a: enum {{ X{i} }}) }};"))
            .collect(),
        format!("subsystem s {{ event A (a: [{}u8]) }};", "\t".repeat(1 << 21)),
        "@".repeat(1 << 20),
        "\"".repeat(1 << 20),
    ];
    for (i, input) in inputs.iter().enumerate() {
        let start = Instant::now();
        let compiled = compile("x.pleco", input.as_bytes());
        assert!(compiled.diagnostics.len() <= 202);
        assert!(compiled.render().len() < 200_000, "input {i}");
        if let Some(schema) = &compiled.schema {
            let text = schema.canonical_text();
            let again = compile("x.pleco", text.as_bytes()).schema;
            assert_eq!(again.as_ref(), Some(schema), "input {i}");
            assert!(format("x.pleco", input.as_bytes()).is_ok());
        }
        let seconds = start.elapsed().as_secs();
        eprintln!("input {i}: {} ms", start.elapsed().as_millis());
        assert!(seconds < 60, "input {i} took {seconds} s");
    }
}
