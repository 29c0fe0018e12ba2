// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties over generated schemas and damaged texts: formatting changes
//! nothing and is idempotent, the canonical text is the schema, and nothing panics.

use lateralis_pleco::ctf::{ByteOrder, TraceDescription, ctf1, ctf2};
use lateralis_pleco::{Compilation, compile, format, generate};
use proptest::collection::vec;
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "bool", "mode",
        ])
        .prop_map(str::to_owned),
        (-3_i32..300).prop_map(|first| format!("enum {{ A = {first}, B, C }}")),
        Just("enum:i64{K,L=-5,}".to_owned()),
    ]
}

fn field_type() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => scalar(),
        1 => (scalar(), 1_u32..40).prop_map(|(element, n)| format!("[{element};{n}]")),
        1 => scalar().prop_map(|element| format!("[ {element} ]")),
        1 => Just("string".to_owned()),
        1 => Just("bytes".to_owned()),
    ]
}

/// White space and comments, as they may stand between any two tokens.
fn gap() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just(" "),
        1 => Just("\n"),
        1 => Just("\n\n\n"),
        1 => Just("\t\r\n"),
        1 => Just(" // remark\n"),
        1 => Just(" /* remark */ "),
        1 => Just("/* two\n * lines /* nested */ */"),
        1 => Just("\n// alone\n"),
    ]
}

fn event() -> impl Strategy<Value = String> {
    let fields = prop::option::of(vec(field_type(), 0..6));
    let description = prop::option::of("[ -~é\u{80}-\u{2fff}]{0,12}");
    let clauses = prop::sample::subsequence(
        vec!["begin work", "end work", "send way", "recv way", "begin other key"],
        0..3,
    );
    (fields, description, clauses, vec(gap(), 6), any::<bool>()).prop_map(
        |(fields, description, clauses, gaps, is_last_comma)| {
            let mut out = String::from("NAME");
            out.push_str(gaps[0]);
            if let Some(text) = description {
                let escaped: String =
                    text.escape_default().to_string().replace("\\u{", "\\x").replace('}', "\\&");
                out.push_str(&format!("\"{}\"", escaped.replace("\\'", "'")));
                out.push_str(gaps[1]);
            }
            let is_legacy = fields.is_none();
            let has_key =
                fields.as_ref().is_none_or(|f| f.first().is_some_and(|t| t.starts_with('u')));
            if let Some(types) = fields {
                out.push('(');
                let listed: Vec<String> =
                    types.iter().enumerate().map(|(i, ty)| format!("f{i}:{ty}")).collect();
                out.push_str(&listed.join(&format!(",{}", gaps[2])));
                if is_last_comma && !listed.is_empty() {
                    out.push(',');
                }
                out.push_str(&format!("{})", gaps[3]));
            }
            for clause in clauses {
                if let Some(clause) = clause.strip_suffix(" key") {
                    if has_key {
                        let field = if is_legacy { "arg" } else { "f0" };
                        out.push_str(&format!("{}{clause} key {field}", gaps[4]));
                    }
                } else {
                    out.push_str(&format!("{}{clause}", gaps[4]));
                }
            }
            out.push_str(gaps[5]);
            out
        },
    )
}

/// A schema file without errors.
fn schema_text() -> impl Strategy<Value = String> {
    let subsystem = (vec((event(), gap()), 1..5), gap(), prop::option::of(0_u16..9));
    vec(subsystem, 1..4).prop_map(|subsystems| {
        let mut out = String::from("enum mode : u16 { X, Y = 7 };\n");
        for (s, (events, gap, step)) in subsystems.into_iter().enumerate() {
            let id = step.map_or(String::new(), |step| format!("= {}", s * 10 + usize::from(step)));
            out.push_str(&format!("subsystem{gap} s{s} {id} {{{gap}"));
            for (e, (event, gap)) in events.into_iter().enumerate() {
                out.push_str(&event.replacen("NAME", &format!("event {gap}E{e}"), 1));
                out.push_str(&format!(",{gap}"));
            }
            out.push_str(&format!("}}{gap};"));
        }
        out
    })
}

fn compiled(text: &str) -> Compilation {
    let compiled = compile("x.pleco", text.as_bytes());
    assert!(compiled.schema.is_some(), "{text}\n{}", compiled.render());
    compiled
}

/// A text that is nearly a schema: some of its parts are doubled, cut or replaced.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..5, any::<u8>());
    (schema_text(), vec(damage, 1..6)).prop_map(|(text, damages)| {
        let mut bytes = text.into_bytes();
        for (from, to, kind, byte) in damages {
            if bytes.is_empty() {
                break;
            }
            let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
            let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 20));
            match kind {
                0 => drop(bytes.drain(a..b)),
                1 => bytes[a] = byte,
                2 => bytes.insert(a, b"{}()[],;:=@\"'\\/*"[usize::from(byte) % 16]),
                3 => {
                    let part = bytes[a..b].to_vec();
                    bytes.splice(b..b, part);
                }
                _ => bytes.truncate(b),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formatting_changes_nothing(text in schema_text()) {
        let before = compiled(&text).schema;
        let once = format("x.pleco", text.as_bytes()).unwrap();
        prop_assert_eq!(&compiled(&once).schema, &before, "{}\n{}", text, once);
        let twice = format("x.pleco", once.as_bytes()).unwrap();
        prop_assert_eq!(&twice, &once, "{}", text);
        let remarks = |text: &str| text.matches("remark").count() + text.matches("nested").count();
        prop_assert_eq!(remarks(&once), remarks(&text), "every comment is still there");
    }

    #[test]
    fn canonical_text_is_the_schema(text in schema_text()) {
        let schema = compiled(&text).schema.unwrap();
        let canonical = schema.canonical_text();
        let again = compiled(canonical).schema.unwrap();
        prop_assert_eq!(&again, &schema, "{}", canonical);
        prop_assert_eq!(again.canonical_text(), canonical);
        prop_assert_eq!(again.hash(), schema.hash());
        prop_assert!(lateralis_pleco::compat::check(&schema, &again).is_empty());
    }

    #[test]
    fn outputs_are_made_from_any_schema(text in schema_text()) {
        let schema = compiled(&text).schema.unwrap();
        let description = TraceDescription::of_schema(&schema, ByteOrder::Big);
        let metadata = ctf1(&description);
        let classes = metadata.matches("\nevent {").count();
        prop_assert_eq!(classes, schema.events.len() + 4);
        for fragment in ctf2(&description).split('\u{1e}').skip(1) {
            serde_json::from_str::<serde_json::Value>(fragment).unwrap();
        }
        serde_json::from_str::<serde_json::Value>(&generate::json(&schema)).unwrap();
        serde_json::from_str::<serde_json::Value>(&generate::legacy_json(&schema)).unwrap();
        let header = generate::c_header(&schema);
        prop_assert_eq!(header.matches("    LAT_SITE(").count(), schema.events.len());
        let module = generate::rust_module(&schema);
        prop_assert_eq!(module.matches("let lat_on = ").count(), schema.events.len());
        prop_assert!(generate::markdown(&schema).starts_with("# Schema"));
    }

    #[test]
    fn damaged_schemas_never_panic(bytes in damaged()) {
        let compiled = compile("x.pleco", &bytes);
        let has_error = compiled.diagnostics.iter().any(|d| d.severity() == lateralis_pleco::Severity::Error);
        prop_assert_eq!(has_error, compiled.schema.is_none());
        prop_assert!(compiled.diagnostics.len() <= 202);
        for found in &compiled.diagnostics {
            let rendered = found.render();
            prop_assert!(rendered.lines().count() >= 5);
            prop_assert!(found.place.line >= 1 && found.place.column >= 1);
        }
        if let Ok(formatted) = format("x.pleco", &bytes) {
            prop_assert_eq!(compile("x.pleco", formatted.as_bytes()).schema, compiled.schema);
            prop_assert_eq!(&format("x.pleco", formatted.as_bytes()).unwrap(), &formatted);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        let compiled = compile("x.pleco", &bytes);
        prop_assert_eq!(compiled.schema.is_none(), compiled.has_errors());
        let _ = compiled.render();
    }

    #[test]
    fn formats_never_panic(text in "[%a-z0-9.*+ #-]{0,30}") {
        let pieces = lateralis_pleco::format_string::pieces(&text);
        let length: usize = pieces.iter().map(|piece| match piece {
            lateralis_pleco::format_string::Piece::Text(text) => text.len() + usize::from(*text == "%"),
            lateralis_pleco::format_string::Piece::Conversion(conversion) => conversion.written.len(),
            lateralis_pleco::format_string::Piece::Unusable(text) => text.len(),
        }).sum();
        prop_assert_eq!(length, text.len(), "every character is in one piece");
    }
}
