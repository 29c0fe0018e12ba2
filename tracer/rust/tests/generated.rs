// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Modules that pleco has made: they are current, and what they record is what their schema says.
#![cfg(target_os = "linux")]

mod recorded;

/// Made by pleco of `generated/every_type.pleco`; see `generated_modules_are_current`.
mod every_type {
    include!("generated/every_type.rs");
}

use every_type::{Mode, SCHEMA, Wide, built, fixed};
use lateralis_pleco::schema::{Event, FieldType, Integer, Scalar, Schema};
use recorded::{Entry, Fields, Recorded, recorded};
use std::path::Path;
use std::{env, fs};

const RECORD: &str = "session=a1;buffer=1048576;packet=65536";

fn compiled(path: &Path) -> Schema {
    let text = fs::read(path).expect("the schema can be read");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
    let compiled = lateralis_pleco::compile(name, &text);
    let messages = compiled.render();
    compiled.schema.unwrap_or_else(|| panic!("{messages}"))
}

/// `UPDATE_EXPECT=1` writes them anew.
#[test]
fn generated_modules_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for schema in ["tests/generated/every_type.pleco", "examples/quickstart/jobs.pleco"] {
        let schema = root.join(schema);
        let module = schema.with_extension("rs");
        let made = lateralis_pleco::generate::rust_module(&compiled(&schema));
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&module, &made).expect("the module can be written");
        }
        let is = fs::read_to_string(&module).unwrap_or_default();
        assert!(is == made, "{} is not current: UPDATE_EXPECT=1", module.display());
    }
    // Registered by the program: not every program that links this crate has packets.
    let module = root.join("src/packet_events.rs");
    let schema = compiled(&root.join("../../spec/packets.pleco"));
    let made = lateralis_pleco::generate::rust_module_by_hand(&schema);
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&module, &made).expect("the module can be written");
    }
    assert!(
        fs::read_to_string(&module).unwrap_or_default() == made,
        "packet_events.rs is not current"
    );
}

fn record_everything() {
    fixed::nothing();
    fixed::legacy(0xdead_beef);
    fixed::unsigned(0x11, 0x2233, 0x4455_6677, 0x8899_aabb_ccdd_eeff);
    fixed::signed(-1, -2, -3, -4);
    fixed::backwards(u64::MAX, 1, 2, 3, -4, 5);
    fixed::floats(1.5, -2.25);
    fixed::truth(true, false, 7);
    fixed::enums(Mode::WRITE, fixed::EnumsB::MINUS, Wide::LARGE);
    let (truths, modes) = ([true, false, true], [Mode::READ, Mode::WRITE]);
    fixed::arrays(&[1, 2, 3], &[-1, 1], &[4, 5], &truths, &modes, &[0.5, 1.5, 2.5]);
    fixed::many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    drop(fixed::held_span(77, 3));
    built::text("one", 2, "");
    built::blob(1, b"bytes", 2);
    built::long(&core::array::from_fn(|i| i as u64), 9);
    built::scalars("ab", 1, -2, 3, -4, 5.5, 6.5, true, Mode::READ);
    built::arrays("a", &[1, 2, 3], &[-1, 1], &[4, 5], &truths, &modes, &[0.5, 1.5]);
    built::unsigned(&[1], &[], &[2, 3], &[4]);
    built::signed(&[-1, -2], &[-3], &[], &[i64::MIN]);
    built::floats(&[0.25], &[]);
    built::others(&[1, 0], &[2, 1, 0], 8);
}

const EXPECTED: [&str; 21] = [
    "fixed:NOTHING",
    "fixed:LEGACY 3735928559",
    "fixed:UNSIGNED 17 8755 1146447479 9843086184167632639",
    "fixed:SIGNED -1 -2 -3 -4",
    "fixed:BACKWARDS 18446744073709551615 1 2 3 -4 5",
    "fixed:FLOATS 1.5 -2.25",
    "fixed:TRUTH 1 0 7",
    "fixed:ENUMS 2 -1 70000",
    "fixed:ARRAYS [1 2 3] [-1 1] [4 5] [1 0 1] [1 2] [0.5 1.5 2.5]",
    "fixed:MANY 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
    "fixed:BEGIN 77 3",
    "fixed:END 77",
    "built:TEXT one 2 ",
    "built:BLOB 1 [98 121 116 101 115] 2",
    "built:LONG [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] 9",
    "built:SCALARS ab 1 -2 3 -4 5.5 6.5 1 1",
    "built:ARRAYS a [1 2 3] [-1 1] [4 5] [1 0 1] [1 2] [0.5 1.5]",
    "built:UNSIGNED [1] [] [2 3] [4]",
    "built:SIGNED [-1 -2] [-3] [] [-9223372036854775808]",
    "built:FLOATS [0.25] []",
    "built:OTHERS [1 0] [2 1 0] 8",
];

/// Takes one value of a type from the fields and writes it down.
fn scalar(fields: &mut Fields<'_>, ty: Scalar) -> String {
    match ty {
        Scalar::Bool => fields.u8().to_string(),
        Scalar::F32 => fields.f32().to_string(),
        Scalar::F64 => fields.f64().to_string(),
        Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => match integer {
            Integer::U8 => fields.u8().to_string(),
            Integer::U16 => fields.u16().to_string(),
            Integer::U32 => fields.u32().to_string(),
            Integer::U64 => fields.u64().to_string(),
            Integer::I8 => fields.i8().to_string(),
            Integer::I16 => fields.i16().to_string(),
            Integer::I32 => fields.i32().to_string(),
            Integer::I64 => fields.i64().to_string(),
        },
    }
}

/// Takes the fields of an event and writes them down.
fn event(event: &Event, name: &str, fields: &mut Fields<'_>) -> String {
    let mut line = name.to_owned();
    for field in &event.fields {
        let (count, element) = match field.ty {
            FieldType::Scalar(ty) => {
                line += &format!(" {}", scalar(fields, ty));
                continue;
            }
            FieldType::String => {
                line += &format!(" {}", fields.string());
                continue;
            }
            FieldType::Array { element, length } => (length, element),
            FieldType::Bytes => (fields.u32(), Scalar::Integer(Integer::U8)),
            FieldType::Sequence(element) => (fields.u32(), element),
        };
        fields.align(element.size_bytes() as usize);
        let values: Vec<String> = (0..count).map(|_| scalar(fields, element)).collect();
        line += &format!(" [{}]", values.join(" "));
    }
    line
}

fn check(run: Recorded) {
    let run = run.succeeded();
    let area = run.area();
    assert_eq!(area.lost(), 0);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = compiled(&root.join("tests/generated/every_type.pleco"));
    let registered = area.schema("every_type");
    assert_eq!(registered.text, schema.canonical_text());
    assert_eq!(registered.hash, schema.hash());
    let line = |id: u32, fields: &mut Fields<'_>| {
        let found = &schema.events[(id - registered.base_id) as usize];
        event(found, &schema.full_name(found), fields)
    };
    let mut entries = area.records(|id, fields| {
        line(id, fields);
    });
    entries.retain(|entry| entry.id >= registered.base_id);
    entries.sort_by_key(|entry| entry.time);
    let read = |entry: &Entry| line(entry.id, &mut Fields::of(&entry.payload));
    // Once by the slow path, where a thread's first event goes, then by the fast one.
    for half in entries.chunks(EXPECTED.len()) {
        assert_eq!(half.iter().map(read).collect::<Vec<String>>(), EXPECTED);
    }
    assert_eq!(entries.len(), 2 * EXPECTED.len());
}

#[test]
fn every_type_on_rings_of_cpus() {
    let environment = [("LATERALIS_RECORD", RECORD)];
    match recorded("every_type_on_rings_of_cpus", &environment) {
        Some(run) => check(run),
        None => (0..2).for_each(|_| record_everything()),
    }
}

#[test]
fn every_type_on_rings_of_threads() {
    let environment = [("LATERALIS_RECORD", RECORD), ("LATERALIS_RING", "thread")];
    match recorded("every_type_on_rings_of_threads", &environment) {
        Some(run) => check(run),
        None => (0..2).for_each(|_| record_everything()),
    }
}

/// A program that has recorded nothing yet has its schema in the area already.
#[test]
fn modules_register_at_start() {
    let Some(run) = recorded("modules_register_at_start", &[("LATERALIS_RECORD", RECORD)]) else {
        return;
    };
    let registered = run.succeeded().area().schema("every_type");
    assert_eq!(registered.event_count, EXPECTED.len() as u32);
}

#[test]
fn enabled_functions_say_what_is_recorded() {
    let wanted = format!("{RECORD};enable=fixed:*,!fixed:MANY");
    let environment = [("LATERALIS_RECORD", wanted.as_str())];
    let Some(run) = recorded("enabled_functions_say_what_is_recorded", &environment) else {
        assert!(fixed::nothing_enabled() && fixed::end_enabled());
        assert!(!fixed::many_enabled() && !built::text_enabled());
        assert_eq!(SCHEMA.on(0), 1);
        return;
    };
    run.succeeded();
}
