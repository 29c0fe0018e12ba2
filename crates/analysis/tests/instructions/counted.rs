// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts the instructions of filters over columns: they do not depend on the load of the machine. Tests
//! of other crates use this file as well.

use std::process::{Command, Stdio};

use lateralis_analysis::filter::Context;
use lateralis_analysis::filter::columns::{Asking, Mask, Part, Parts, Slices};
use lateralis_model::{
    Column, EventClass, FieldClass, FieldKind, IntegerClass, Label, Names, Range, Spans,
    StreamClass,
};
use lateralis_units::Nanos;

/// Set in the process whose instructions are counted: index of the filter.
const WORK: &str = "LATERALIS_COUNT_FILTER";
/// Number of events in the columns.
const EVENTS: u64 = 4 << 10;
/// Number of evaluations.
const PASSES: usize = 8;

/// A filter, and the largest number of instructions per event on a CPU with vectors of four integers.
pub type Case = (&'static str, f64);

/// Evaluates one plan on a part.
pub type Select = Box<dyn Fn(&Part<'_>, &mut Asking<'_>, &mut Mask)>;

fn classes() -> StreamClass {
    let label = |name: &str, value| {
        let ranges = vec![Range { low: value, high: value }];
        Label { name: name.into(), ranges }
    };
    let labels = vec![label("IDLE", 0), label("RUNNING", 2), label("READY", 5)];
    let state = IntegerClass { bits: 64, labels, ..IntegerClass::default() };
    let payload = FieldClass::structure([
        ("bytes", FieldClass::u64()),
        ("delta", FieldClass::i64()),
        ("ratio", FieldClass::real()),
        ("state", FieldClass::new(FieldKind::Unsigned(state))),
        ("name", FieldClass::text()),
    ]);
    let class =
        EventClass { name: "io:READ".into(), payload: Some(payload), ..EventClass::default() };
    StreamClass { event_classes: vec![class], ..StreamClass::default() }
}

/// Evaluates a part. Only instructions in here are counted.
#[inline(never)]
fn asking_that_is_counted(
    select: &Select,
    part: &Part<'_>,
    asking: &mut Asking<'_>,
    mask: &mut Mask,
) {
    for _ in 0..PASSES {
        select(part, asking, mask);
    }
}

/// Evaluates the columns. Returns the number of selected events.
fn work(select: &Select, stream: &StreamClass) -> usize {
    let times: Vec<Nanos> = (0..EVENTS as i64).map(|n| Nanos(4 * n)).collect();
    let bytes: Vec<u64> = (0..EVENTS).map(|n| n * 7919 % 10_000).collect();
    let delta: Vec<i64> = (0..EVENTS as i64)
        .map(|n| n * 31 % 100 - 50)
        .map(|n| if n > 40 { 300 * n } else { n })
        .collect();
    let ratio: Vec<f64> = (0..EVENTS).map(|n| (n * 7 % 11) as f64 / 11.0).collect();
    let state: Vec<u64> = (0..EVENTS).map(|n| n * 13 % 11).collect();
    let text = b"redis-server nginx swapper/0 redis-client kworker/u8:2-events";
    let words = [(0, 12), (13, 5), (19, 9), (29, 12), (42, 19)];
    let word = |n: u64| words[(n * n % 7 % 5) as usize];
    let starts: Vec<u64> = (0..EVENTS).map(|n| word(n).0).collect();
    let lengths: Vec<u32> = (0..EVENTS).map(|n| word(n).1).collect();
    let columns = vec![
        Column::Unsigned(&bytes),
        Column::Signed(&delta),
        Column::Real(&ratio),
        Column::Unsigned(&state),
        Column::Spans(Spans::new(&starts, &lengths, text)),
    ];
    let batch = Slices::new(0, &times, columns);
    let parts = Parts::new(&batch, stream, false);
    let part = parts.part(0);
    let names = Names::default();
    let context = Context { names: &names, streams: &[] };
    let (mut asking, mut mask) = (Asking::new(&context), Mask::default());
    asking_that_is_counted(select, &part, &mut asking, &mut mask);
    assert_eq!(mask.asked(), []);
    mask.count()
}

/// Instructions of a test; `None` without valgrind.
fn counted(test: &str, case: usize) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*asking_that_is_counted*")
        .arg(std::env::current_exe().ok()?)
        .args(["--exact", test, "--test-threads=1"])
        .env(WORK, case.to_string())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Whether the CPU has vectors of four integers.
fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Body of the test with this name: no case takes more instructions than allowed.
pub fn few_instructions(
    test: &str,
    cases: &[Case],
    plan: impl Fn(&str, &StreamClass, &EventClass) -> Select,
) {
    let stream = classes();
    let plan = |text: &str| plan(text, &stream, &stream.event_classes[0]);
    if let Ok(asked) = std::env::var(WORK) {
        let case: usize = asked.parse().expect("a number");
        assert!(work(&plan(cases[case].0), &stream) > 0);
        return;
    }
    if !is_wide() {
        eprintln!("SKIPPED: the processor has no vectors of four integers");
        return;
    }
    let mut too_many = Vec::new();
    for (index, (text, most)) in cases.iter().enumerate() {
        let chosen = work(&plan(text), &stream);
        assert!(chosen > 0 && chosen < EVENTS as usize, "{text} chooses {chosen}");
        let Some(counted) = counted(test, index) else {
            eprintln!("SKIPPED: valgrind is not there");
            return;
        };
        let each = counted as f64 / (PASSES as u64 * EVENTS) as f64;
        assert!(each > 0.01, "{text}: nothing was counted");
        eprintln!("{each:6.2} instructions an event, {most} at most: {text}");
        if each > *most {
            too_many.push((text, each, most));
        }
    }
    assert!(too_many.is_empty(), "{too_many:?}");
}
