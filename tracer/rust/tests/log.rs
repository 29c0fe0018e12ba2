// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events without a schema file: their records and their schema.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod recorded;

use lateralis::log::Argument;
use lateralis_pleco::schema::{FieldType, Integer, Scalar, Schema};
use recorded::{Area, Entry, Fields, recorded};

const RECORD: &str = "session=a1;buffer=1048576;packet=65536";

/// The schema of the sites, after checking that it is readable.
fn schema(area: &Area) -> (u32, Schema) {
    let registered = area.schema("log_rust");
    let compiled = lateralis_pleco::compile("log_rust.pleco", registered.text.as_bytes());
    assert!(!compiled.has_errors(), "{}\n{}", compiled.render(), registered.text);
    let schema = compiled.schema.expect("no errors");
    assert_eq!(schema.canonical_text(), registered.text);
    assert_eq!(schema.hash(), registered.hash);
    assert_eq!(schema.events.len() as u32, registered.event_count);
    (registered.base_id, schema)
}

/// The fields of an entry as text.
fn fields(schema: &Schema, index: u32, fields: &mut Fields<'_>) -> Vec<String> {
    let event = &schema.events[index as usize];
    let field = |ty| match ty {
        FieldType::String => fields.string(),
        FieldType::Scalar(Scalar::Integer(Integer::U8)) => fields.u8().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::U16)) => fields.u16().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::U32)) => fields.u32().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::U64)) => fields.u64().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::I8)) => fields.i8().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::I16)) => fields.i16().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::I32)) => fields.i32().to_string(),
        FieldType::Scalar(Scalar::Integer(Integer::I64)) => fields.i64().to_string(),
        FieldType::Scalar(Scalar::F32) => fields.f32().to_string(),
        FieldType::Scalar(Scalar::F64) => fields.f64().to_string(),
        FieldType::Scalar(Scalar::Bool) => (fields.u8() != 0).to_string(),
        other => panic!("nothing logs {other:?}"),
    };
    event.fields.iter().map(|field| field.ty).map(field).collect()
}

/// Description and fields of everything logged, in order.
fn logged(area: &Area) -> Vec<(String, Vec<String>)> {
    let (base, schema) = schema(area);
    let mut entries: Vec<Entry> = area.records(|id, payload| {
        fields(&schema, id - base, payload);
    });
    entries.retain(|entry| entry.id >= base);
    entries.sort_by_key(|entry| entry.time);
    let read = |entry: &Entry| {
        let description = schema.events[(entry.id - base) as usize].description.clone();
        (description, fields(&schema, entry.id - base, &mut Fields::of(&entry.payload)))
    };
    entries.iter().map(read).collect()
}

#[inline(never)]
fn log_generic<T: Argument + Copy>(value: T) {
    lateralis::log!("generic {}", value);
}

#[inline(always)]
fn log_inlined(number: u32) {
    lateralis::log!("inlined {}", number);
}

#[test]
fn every_type() {
    let Some(run) = recorded("every_type", &[("LATERALIS_RECORD", RECORD)]) else {
        let name = String::from("a name");
        lateralis::log!("nothing");
        lateralis::log!("{} {} {} {}", 1_u8, 2_u16, 3_u32, u64::MAX);
        lateralis::log!("{} {} {} {}", -1_i8, -2_i16, -3_i32, i64::MIN);
        lateralis::log!("{} {}", usize::MAX, isize::MIN);
        lateralis::log!("{:.3} {} {:e} {:?}", 0.5_f32, -0.25_f64, 1e3, f64::INFINITY);
        lateralis::log!("{} {}", true, false);
        lateralis::log!(
            "<{}> <{}> <{:>8}> <{:<3.2}>",
            'x',
            '\u{1f41f}',
            name.as_str(),
            "\u{e9}t\u{e9}"
        );
        lateralis::log!("{:p}", 0xbeef as *const u8);
        lateralis::log!("{:#x} {:08X} {:+} {:5} {:<5} {:o}", 255_u8, 255_u32, 1_i32, 2, 3, 8_u16);
        lateralis::log!("100 % of {{}} and \"{}\" \\ \u{e9}a\n", &&7_u8);
        lateralis::log!("cut at {}", "the NUL\0 and not behind it");
        lateralis::log!(
            "{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}",
            1_u8,
            "b",
            3_u64,
            "d",
            5_u8,
            "f",
            7_u64,
            "h",
            9_u8,
            "j",
            11_u64,
            "l",
            13_u8,
            "n",
            15_u64,
            "p"
        );
        log_generic(1_u32);
        log_generic(-1.5);
        log_generic("text");
        for number in 0..2 {
            log_inlined(number);
        }
        log_inlined(2);
        return;
    };
    let run = run.succeeded();
    assert_eq!(run.area().lost(), 0);
    let read = logged(run.area());
    let read: Vec<String> =
        read.iter().map(|(text, values)| format!("{text} | {}", values.join(" "))).collect();
    assert_eq!(
        read,
        [
            "nothing | ",
            "%u %u %u %u | 1 2 3 18446744073709551615",
            "%d %d %d %d | -1 -2 -3 -9223372036854775808",
            "%u %d | 18446744073709551615 -9223372036854775808",
            "%.3f %g %e %g | 0.5 -0.25 1000 inf",
            "%s %s | true false",
            "<%s> <%s> <%8s> <%-3.2s> | x \u{1f41f} a name \u{e9}t\u{e9}",
            "%p | 48879",
            "%#x %08X %+d %5d %-5d %o | 255 255 1 2 3 8",
            "100 %% of {} and \"%u\" \\ \u{e9}a\n | 7",
            "cut at %s | the NUL",
            "%u%s%u%s%u%s%u%s%u%s%u%s%u%s%u%s | 1 b 3 d 5 f 7 h 9 j 11 l 13 n 15 p",
            "generic %u | 1",
            "generic %g | -1.5",
            "generic %s | text",
            "inlined %u | 0",
            "inlined %u | 1",
            "inlined %u | 2",
        ]
    );
}

/// A site that was never executed is known all the same, and can be enabled by its name.
#[test]
fn sites_are_known_before_they_run() {
    fn never() {
        lateralis::log!("never reached {}", 1_u8);
    }
    let line = line!() - 2;
    let wanted = format!("{RECORD};enable=log:log_{line}");
    let environment = [("LATERALIS_RECORD", wanted.as_str())];
    let Some(run) = recorded("sites_are_known_before_they_run", &environment) else {
        lateralis::log!("another site");
        if std::env::args().count() == 0 {
            never();
        }
        return;
    };
    let run = run.succeeded();
    assert!(logged(run.area()).is_empty());
    let (_, schema) = schema(run.area());
    let enabled = run.area().schema("log_rust").enabled;
    let chosen = schema.events.iter().zip(&enabled).filter(|(_, enabled)| **enabled != 0);
    let names: Vec<&str> = chosen.map(|(event, _)| event.name.as_str()).collect();
    assert_eq!(names, [format!("log_{line}")]);
}

#[test]
fn spans() {
    let Some(run) = recorded("spans", &[("LATERALIS_RECORD", RECORD)]) else {
        let _outer = lateralis::span!(outer);
        for _ in 0..2 {
            let _inner = lateralis::span!(inner);
        }
        return;
    };
    let run = run.succeeded();
    let (base, schema) = schema(run.area());
    let mut spans: Vec<&str> = schema.spans().iter().map(|span| span.name).collect();
    spans.sort_unstable();
    assert_eq!(spans, ["inner", "outer"]);
    let mut entries = run.area().records(|id, payload| {
        fields(&schema, id - base, payload);
    });
    entries.retain(|entry| entry.id >= base);
    entries.sort_by_key(|entry| entry.time);
    let names: Vec<String> = entries
        .iter()
        .map(|entry| {
            let event = &schema.events[(entry.id - base) as usize];
            let (name, part) = event.name.rsplit_once('_').expect("begin or end");
            let line: u32 = name.rsplit_once('_').expect("a line").1.parse().expect("a number");
            format!("{part} {}", line - entries_line())
        })
        .collect();
    assert_eq!(names, ["begin 0", "begin 2", "end 2", "begin 2", "end 2", "end 0"]);
}

/// The line of the first span above.
fn entries_line() -> u32 {
    let text = include_str!("log.rs");
    let at = text.lines().position(|line| line.contains("span!(outer)")).expect("it is there");
    at as u32 + 1
}

/// Arguments are not evaluated while disabled.
#[test]
fn nothing_is_evaluated_when_disabled() {
    let environment = [("LATERALIS_DISABLE", "1")];
    let Some(run) = recorded("nothing_is_evaluated_when_disabled", &environment) else {
        let mut evaluated = 0;
        for _ in 0..3 {
            lateralis::log!("{}", {
                evaluated += 1;
                evaluated
            });
        }
        assert_eq!(evaluated, 0);
        return;
    };
    assert!(run.succeeded().areas.is_empty());
}

#[test]
fn marks() {
    let Some(run) = recorded("marks", &[("LATERALIS_RECORD", RECORD)]) else {
        assert!(lateralis::is_recording());
        lateralis::mark("plain");
        lateralis::mark!("made of {} and {:?}", 1, "two");
        lateralis::mark!("{}{}", "x".repeat(239), '\u{e9}');
        lateralis::mark("");
        return;
    };
    let run = run.succeeded();
    let mut entries = run.area().records(|_, _| {});
    entries.retain(|entry| entry.id == 3);
    entries.sort_by_key(|entry| entry.time);
    let texts: Vec<String> =
        entries.iter().map(|entry| Fields::of(&entry.payload).string()).collect();
    assert_eq!(texts, ["plain", "made of 1 and \"two\"", &"x".repeat(239), ""]);
}

#[test]
fn nothing_is_marked_when_nobody_records() {
    let Some(run) = recorded("nothing_is_marked_when_nobody_records", &[]) else {
        assert!(!lateralis::is_recording());
        lateralis::mark!("formatted {}", never_displayed());
        return;
    };
    // It was not recorded, so it leaves no area.
    assert!(run.succeeded().areas.is_empty());
}

fn never_displayed() -> &'static str {
    panic!("evaluated for nobody")
}
