// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every output for one schema, byte for byte. `UPDATE_EXPECT=1` rewrites the files
//! in tests/golden; the difference is to be reviewed like code.

use lateralis_pleco::ctf::{ByteOrder, TraceDescription, ctf1, ctf2};
use lateralis_pleco::{compile, generate, internal_schema};
use std::fs;
use std::path::Path;

#[test]
fn outputs_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = fs::read(folder.join("shop.pleco")).unwrap();
    let compiled = compile("shop.pleco", &text);
    assert!(compiled.diagnostics.is_empty(), "{}", compiled.render());
    let schema = compiled.schema.unwrap();
    let description = TraceDescription::of_schema(&schema, ByteOrder::Little);
    let outputs = [
        ("shop.h", generate::c_header(&schema)),
        ("shop.rs.txt", generate::rust_module(&schema)),
        ("shop.ctf1", ctf1(&description)),
        ("shop.ctf2", ctf2(&description)),
        ("shop.json", generate::json(&schema)),
        ("shop.md", generate::markdown(&schema)),
        ("shop.legacy.h", generate::legacy_header(&schema, "shop")),
        ("shop.legacy.json", generate::legacy_json(&schema)),
        ("shop.canonical.pleco", schema.canonical_text().to_owned()),
    ];
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    for (name, output) in outputs {
        let path = folder.join(name);
        if is_update {
            fs::write(&path, &output).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap();
        assert!(output == expected, "{name} differs; now it is\n{output}");
    }
}

/// Old traces are found by the hash of the internal schema, and its layout is
/// written by the tracer without this compiler: it changes only with the ring ABI.
#[test]
fn internal_schema_is_fixed() {
    let schema = internal_schema();
    let events: Vec<(&str, Option<u32>)> = schema
        .events
        .iter()
        .map(|event| (event.name.as_str(), event.layout().payload_bytes))
        .collect();
    let expected = [("WRITER", Some(8)), ("THREAD_NAME", None), ("PROCESS", None), ("MARK", None)];
    assert_eq!(events, expected);
    assert!(schema.events.len() <= lateralis_pleco::INTERNAL_EVENT_COUNT as usize);
    let compiled = compile("lateralis.pleco", include_bytes!("../../../spec/lateralis.pleco"));
    assert!(compiled.diagnostics.is_empty());
    let formatted = lateralis_pleco::format("x", include_bytes!("../../../spec/lateralis.pleco"));
    assert_eq!(formatted.unwrap().as_bytes(), include_bytes!("../../../spec/lateralis.pleco"));
}

/// The sample of the specification, and that of the design, compile.
#[test]
fn sample_of_the_specification() {
    let text = include_str!("../../../spec/schema-language.md");
    let mut count = 0;
    for block in text.split("```pleco\n").skip(1) {
        let schema = block.split("```").next().unwrap();
        let compiled = compile("app.pleco", schema.as_bytes());
        assert!(compiled.diagnostics.is_empty(), "{}", compiled.render());
        count += 1;
    }
    assert!(count >= 1);
}
