// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters of events: the traced program's decisions match the condition.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lateralis_pleco::schema::{Event, FieldType, Scalar};
use lateralis_pleco::{Schema, compile as pleco};
use lateralis_recorder::filter::{Comparison, Expression, Filter, Value, compile, passes};
use lateralis_recorder::linux::{Session, discovery};

use crate::policy::until;
use crate::program::Workshop;
use crate::{SCHEMA, check, options};

const FIELDS: &str = "schema x; subsystem s { event E (a: u8, b: i16, c: u32, d: i64, e: bool, \
    f: enum { X, Y = 7, Z }, g: u64, h: i8, i: [u16; 3], j: i32, k: f32, l: string, m: u8), };";

/// Reads filters and payloads, and answers each with a digit.
const HARNESS: &str = r#"
    #include "filter.h"
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        struct lat_area_filter filter;
        unsigned char sizes[2];
        while (fread(&filter, sizeof filter, 1, stdin) == 1 && fread(sizes, 2, 1, stdin) == 1) {
            unsigned char *payload = malloc(sizes[0] + 1u), *exact = payload + 1;
            if (fread(exact, 1, sizes[0], stdin) != sizes[0]) return 1;
            const struct lat_i_piece pieces[2] = {{exact, sizes[1]},
                                                  {exact + sizes[1], (size_t)sizes[0] - sizes[1]}};
            putchar(lat_i_filter_passes(&filter, pieces, 2) ? '1' : '0');
            free(payload);
        }
        return 0;
    }
"#;

fn schema(text: &str) -> Schema {
    pleco("x.pleco", text.as_bytes()).schema.expect("the test's schema is right")
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Compiles the harness, with sanitizers if the compiler supports them.
fn harness(workshop: &Workshop) -> PathBuf {
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c");
    let (source, binary) = (workshop.path("harness.c"), workshop.path("harness"));
    fs::write(&source, HARNESS).unwrap();
    let build = |flags: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-O1", "-g"]).args(flags).arg("-I").arg(tracer.join("include"));
        command.arg("-I").arg(tracer.join("src")).arg(&source).arg(tracer.join("src/filter.c"));
        command.arg("-o").arg(&binary).output().unwrap().status.success()
    };
    if !build(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]) {
        eprintln!("SKIPPED: filters under sanitizers: the compiler has none");
        assert!(build(&[]), "the harness compiles");
    }
    binary
}

/// A condition of `size` comparisons on numbers of the event.
fn condition(numbers: &mut Numbers, event: &Event, size: u64) -> Expression {
    if size > 1 {
        let left = 1 + numbers.below(size - 1);
        let both = (
            Box::new(condition(numbers, event, left)),
            Box::new(condition(numbers, event, size - left)),
        );
        let joined = match numbers.below(2) {
            0 => Expression::And(both.0, both.1),
            _ => Expression::Or(both.0, both.1),
        };
        return if numbers.below(4) == 0 { Expression::Not(Box::new(joined)) } else { joined };
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "j"];
    let field = names[numbers.below(names.len() as u64) as usize];
    let all = [
        Comparison::Equal,
        Comparison::Unequal,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];
    let ty = event.fields.iter().find(|one| one.name == field).unwrap().ty;
    let (least, greatest) = range(ty);
    let mask = (numbers.below(4) == 0).then(|| numbers.next() >> numbers.below(64));
    // Near the values in payloads, and at the limits.
    let near = [least, greatest, 0, 1, 2, 3, -1, numbers.next() as i64 as i128];
    let number = near[numbers.below(8) as usize].clamp(least, greatest);
    let number = if mask.is_some() { number.max(0) } else { number };
    Expression::Compare {
        field: field.to_owned(),
        mask,
        comparison: all[numbers.below(6) as usize],
        value: Value::Number(number),
    }
}

fn range(ty: FieldType) -> (i128, i128) {
    match ty {
        FieldType::Scalar(Scalar::Integer(integer) | Scalar::Enum { container: integer, .. }) => {
            integer.range()
        }
        _ => (0, 255),
    }
}

/// The result of the condition, computed on plain numbers.
fn holds(expression: &Expression, event: &Event, payload: &[u8]) -> bool {
    match expression {
        Expression::Not(inner) => !holds(inner, event, payload),
        Expression::And(left, right) => holds(left, event, payload) & holds(right, event, payload),
        Expression::Or(left, right) => holds(left, event, payload) | holds(right, event, payload),
        Expression::Compare { field, mask, comparison, value } => {
            let at = event.fields.iter().position(|one| one.name == *field).unwrap();
            let offset = event.layout().offsets[at].unwrap() as usize;
            let (least, greatest) = range(event.fields[at].ty);
            let bytes = match greatest - least {
                0xff => 1,
                0xffff => 2,
                0xffff_ffff => 4,
                _ => 8,
            };
            let mut raw = [0; 16];
            raw[..bytes].copy_from_slice(&payload[offset..offset + bytes]);
            let mut number = i128::from_le_bytes(raw);
            if let Some(mask) = mask {
                number &= i128::from(*mask);
            } else if number > greatest {
                number -= greatest - least + 1;
            }
            let Value::Number(value) = value else { panic!("only numbers here") };
            comparison.holds(number, *value)
        }
    }
}

#[test]
fn the_program_decides_as_the_condition_says() {
    if cfg!(target_endian = "big") {
        eprintln!("SKIPPED: the plain evaluation reads little-endian payloads");
        return;
    }
    let Some(workshop) = Workshop::new("filter-property") else { return };
    let schema = schema(FIELDS);
    let event = &schema.events[0];
    let mut numbers = Numbers(0x1a7e_7a11);
    let (mut input, mut expected) = (Vec::new(), String::new());
    for _ in 0..4000 {
        let size = 1 + numbers.below(16);
        let condition = condition(&mut numbers, event, size);
        let filter = Filter { event: "s:E".into(), text: String::new(), condition };
        let steps = compile(&filter, &schema, event).expect("a filter of at most 16 comparisons");
        input.extend((steps.len() as u32).to_ne_bytes());
        input.extend([0; 4]);
        steps.iter().for_each(|step| input.extend(step.to_bytes()));
        input.extend(vec![0; 504 - 24 * steps.len()]);
        // Often small numbers, so that equality occurs.
        let most = [3, 256][numbers.below(2) as usize];
        let payload: Vec<u8> = (0..60).map(|_| numbers.below(most) as u8).collect();
        input.extend([payload.len() as u8, numbers.below(61) as u8]);
        input.extend(&payload);
        let holds = holds(&filter.condition, event, &payload);
        let _ = write!(expected, "{}", u8::from(holds));
        // The reader of the ring decides alike.
        assert_eq!(passes(&steps, &payload), holds, "{filter:?} {payload:?}");
    }
    let mut child = Command::new(harness(&workshop))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(expected.contains('0') && expected.contains('1'));
    let wrong = found.chars().zip(expected.chars()).position(|(found, said)| found != said);
    assert_eq!((found.len(), wrong), (expected.len(), None));
}

fn refused(text: &str, said: &str) {
    let schema = schema(FIELDS);
    let error = match Filter::parse(text) {
        Err(error) => error,
        Ok(filter) => compile(&filter, &schema, &schema.events[0]).expect_err(text),
    };
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn what_cannot_be_a_filter_is_refused_with_its_reason() {
    refused("s:E", "SUBSYSTEM:EVENT: CONDITION");
    refused("s:*: a == 1", "without * and ?");
    refused("s:E: ", "where a field is expected");
    refused("s:E: a = ", "a number or a label");
    refused("s:E: a 1", "one of == !=");
    refused("s:E: (a == 1", "`)` is missing");
    refused("s:E: a == 1 b", "`b` is not expected");
    refused("s:E: l == \"x\"", "texts cannot be compared");
    refused("s:E: l == 1", "no single number");
    refused("s:E: i == 1", "no single number");
    refused("s:E: m == 1", "no fixed place");
    refused("s:E: k > 1", "floating-point");
    refused("s:E: nn > 1", "no field `nn`");
    refused("s:E: a == 256", "from 0 to 255");
    refused("s:E: b & 1 == -1", "never -1");
    refused("s:E: f == W", "never `W`");
    refused("s:E: a == X", "`X` is none");
    refused(&format!("s:E: a == 1{}", " or a == 1".repeat(16)), "at most 16");
    refused(&format!("s:E: {}a == 1", "not ".repeat(99)), "nested deeper");
    refused("s:E: a == 0x1ffffffffffffffff", "no number of 64 bits");
    refused("s:E: a % 2 == 0", "means nothing here");
}

/// Writes a thousand ticks and names for each byte that it reads.
const ASKED: &str = r#"
    #include <stdio.h>
    int main(void) {
        while (getchar() != EOF)
            for (uint32_t n = 0; n < 1000; n++) {
                lat_app_tick(n);
                lat_app_named("name", n);
                lat_app_pair(n % 10, n);
            }
        return 0;
    }
"#;

fn start(workshop: &Workshop, path: &Path) -> Child {
    let mut command = Command::new(path);
    command.env("LATERALIS_DIR", workshop.areas()).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn only_what_passes_is_recorded() {
    let Some(workshop) = Workshop::new("filter-recorded") else { return };
    for flags in [&["-O2"][..], &["-O2", "-DLAT_RING_THREAD"]] {
        let asked = workshop.compile_with("asked", SCHEMA, ASKED, flags);
        let mut running = start(&workshop, &asked);
        let areas = || discovery::list(Some(&workshop.areas()));
        until("the program can be traced", || !areas().is_empty());
        let name = format!("out{}", flags.len());
        let mut options = options(&workshop, &name);
        let texts = [
            "app:TICK: n >= 100 and (n < 110 or n & 0x1ff == 0x1ff) or n == 7",
            "app:PAIR: not (thread != 3 or n > 500)",
            "app:NAMED: n == 1",
            "app:OTHER: n == 1",
        ];
        options.filters = texts.map(|text| Filter::parse(text).unwrap()).to_vec();
        let mut session = Session::new(options).unwrap();
        session.attach(running.id()).unwrap();
        let watched = areas()[0].events.iter().filter(|event| event.watched).count();
        assert_eq!(watched, 2);
        running.stdin.take().unwrap().write_all(b"x").unwrap();
        assert!(running.wait().unwrap().success());
        let summary = session.run(&mut |_| {}).unwrap();
        if let Some(read) = check(&summary) {
            let ticks = read.lines.iter().filter(|line| line.contains("app:TICK"));
            let seven = ticks.clone().filter(|line| line.contains("{ 7 }")).count();
            assert_eq!(seven, 1);
        }
        let report = &summary.report;
        // 100 to 109, 511, and 7.
        assert_eq!(report.events["app:TICK"], 12);
        // 3, 13, … 493.
        assert_eq!(report.events["app:PAIR"], 50);
        // Its number follows a text.
        assert_eq!(report.events["app:NAMED"], 1000);
        assert_eq!(report.totals.lost.total, 0);
        assert_eq!(report.areas[0].filters, texts[..2]);
        let problems = report.problems.join("\n");
        assert!(problems.contains("no fixed place"), "{problems}");
        assert!(problems.contains("no program had an event app:OTHER"), "{problems}");
        assert_eq!(report.problems.len(), 2, "{problems}");
    }
}

#[test]
fn what_a_killed_recorder_left_holds_for_nobody() {
    let Some(workshop) = Workshop::new("filter-left") else { return };
    let asked = workshop.compile("asked", SCHEMA, ASKED);
    let mut running = start(&workshop, &asked);
    let areas = || discovery::list(Some(&workshop.areas()));
    until("the program can be traced", || !areas().is_empty());
    let mut left = options(&workshop, "left");
    left.filters = vec![Filter::parse("app:TICK: n == 1").unwrap()];
    let mut session = Session::new(left).unwrap();
    session.attach(running.id()).unwrap();
    // Without its end: the program is unchanged.
    drop(session);
    assert!(areas()[0].events.iter().any(|event| event.watched));
    let mut session = Session::new(options(&workshop, "out")).unwrap();
    session.attach(running.id()).unwrap();
    running.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(running.wait().unwrap().success());
    let summary = session.run(&mut |_| {}).unwrap();
    check(&summary);
    assert_eq!(summary.report.events["app:TICK"], 1000);
    assert_eq!(summary.report.areas[0].filters, Vec::<String>::new());
}
