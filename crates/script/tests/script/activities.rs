// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Activities: equal pairs, whether the schema or the script declares them.

use crate::traces::{Lock, activities, fails, load, locks};
use lateralis_analysis::{Edge, Gaps, PairedSpan, Side, Span, SpanInRun, SpanPairer, SpanSink};
use lateralis_model::Writer;
use lateralis_script::{Activity, How, Scalar};
use lateralis_units::Nanos;
use proptest::prelude::*;

const DECLARED: &str =
    "activity('Mutex').begin('threads:MUTEX_LOCK').end('threads:MUTEX_UNLOCK').key('mutex')";
const PREDICATES: &str = "activity('Mutex')
    .begin(e => e.name === 'threads:MUTEX_LOCK')
    .end('threads:*', e => e.name.endsWith(':MUTEX_UNLOCK'))
    .key(e => e.fields.mutex)";
const FUNCTION: &str = "activity('Mutex', (event, activity) => {
    if (event.name === 'threads:MUTEX_LOCK') activity.begin(event.fields.mutex);
    if (event.name === 'threads:MUTEX_UNLOCK') activity.end(event.fields.mutex);
});";

/// Begin and end of a span: time and thread; its key.
type Row = (i64, i64, Option<Writer>, Option<Writer>, Vec<Scalar>);

/// Spans in the order in which they are found, and how many have no end, and no begin.
#[derive(Default)]
struct Spans {
    rows: Vec<Row>,
    open: u64,
    orphans: u64,
}

/// The side of a span that an event is.
fn side(name: &str) -> Option<Side> {
    match name {
        "MUTEX_LOCK" => Some(Side::Begin),
        "MUTEX_UNLOCK" => Some(Side::End),
        _ => None,
    }
}

fn row(begin: &Lock, end: &Lock) -> Row {
    let writer = |of: &Lock| Some(Writer { pid: 1, tid: of.1 });
    let key = vec![Scalar::Integer(begin.4.into())];
    (begin.0 as i64, end.0 as i64, writer(begin), writer(end), key)
}

/// By looking at all that is open at each end: what began before its time, or before it in its stream; only
/// if there is none, what has its time in another stream. An end that comes before such a begin waits for it.
fn searched(all: &[Lock]) -> Spans {
    let mut spans = Spans::default();
    let (mut open, mut waiting): (Vec<Lock>, Vec<Lock>) = (Vec::new(), Vec::new());
    for &event in all {
        let (time, tid, cpu, name, mutex) = event;
        spans.orphans += waiting.extract_if(.., |end| end.0 != time).count() as u64;
        match side(name) {
            Some(Side::Begin) => {
                let is_it = |end: &Lock| end.4 == mutex && end.2 != cpu;
                let own = waiting.iter().position(|end| is_it(end) && end.1 == tid);
                match own.or_else(|| waiting.iter().position(is_it)) {
                    Some(index) => spans.rows.push(row(&event, &waiting.remove(index))),
                    None => open.push(event),
                }
            }
            Some(Side::End) => {
                let find = |can_be: &dyn Fn(&Lock) -> bool| {
                    let is_it = |begin: &Lock| begin.4 == mutex && can_be(begin);
                    let own = open.iter().rposition(|begin| is_it(begin) && begin.1 == tid);
                    own.or_else(|| open.iter().rposition(is_it))
                };
                let before = find(&|begin| begin.0 < time || begin.2 == cpu);
                match before.or_else(|| find(&|_| true)) {
                    Some(index) => spans.rows.push(row(&open.remove(index), &event)),
                    None => waiting.push(event),
                }
            }
            None => {}
        }
    }
    spans.orphans += waiting.len() as u64;
    spans.open = open.len() as u64;
    spans
}

impl SpanSink<u64> for Spans {
    fn pairs(&mut self, paired: &PairedSpan<u64>) {
        let Span { begin, end } = paired.span;
        let key = vec![Scalar::Integer(begin.key.unwrap().into())];
        self.rows.push((begin.time.0, end.time.0, begin.writer, end.writer, key));
    }

    fn pairs_in_run(&mut self, _: &SpanInRun) {}

    fn orphan(&mut self, _: u32, _: &Edge, _: u64) {
        self.orphans += 1;
    }
}

/// As declared spans are paired.
fn declared(all: &[Lock]) -> Spans {
    let mut pairer = SpanPairer::new((Nanos(0), Nanos(i64::MAX)), Gaps::default(), false);
    pairer.add_kind(false);
    let mut spans = Spans::default();
    for &(time, tid, cpu, name, mutex) in all {
        let Some(side) = side(name) else { continue };
        let (time, writer) = (Nanos(time as i64), Some(Writer { pid: 1, tid }));
        let edge = Edge { time, side, key: Some(mutex), writer };
        pairer.push(0, edge, (cpu, 0), &mut spans);
    }
    spans.open = pairer.take_unfinished(&mut spans).len() as u64;
    spans
}

fn rows(found: &[Activity]) -> Vec<Row> {
    let row =
        |a: &Activity| (a.begin.time.0, a.end.time.0, a.begin.writer, a.end.writer, a.key.clone());
    found.iter().map(row).collect()
}

/// The number of pairs. Events of one time come in the order of their streams, as readers deliver them.
fn agree(all: &[Lock]) -> Result<usize, TestCaseError> {
    let mut all = all.to_vec();
    all.sort_by_key(|(time, _, cpu, ..)| (*time, *cpu));
    let trace = locks(&all);
    let spans = searched(&all);
    let of_schema = declared(&all);
    prop_assert_eq!(&of_schema.rows, &spans.rows);
    prop_assert_eq!((of_schema.open, of_schema.orphans), (spans.open, spans.orphans));
    for source in [DECLARED, PREDICATES, FUNCTION] {
        let (found, left_over) = activities(&mut load(source), &trace).unwrap();
        prop_assert_eq!(&rows(&found), &spans.rows, "{}", source);
        prop_assert_eq!(left_over, vec![(spans.open, spans.orphans)], "{}", source);
    }
    Ok(spans.rows.len())
}

#[test]
fn a_mutex_has_its_activities() {
    let all: [Lock; 7] = [
        (10, 1, 0, "MUTEX_LOCK", 0xaa),
        (20, 2, 1, "MUTEX_LOCK", 0xbb),
        (25, 2, 1, "COND_WAIT", 0xbb),
        (30, 1, 2, "MUTEX_UNLOCK", 0xaa),
        (40, 2, 1, "MUTEX_UNLOCK", 0xcc),
        (50, 1, 2, "MUTEX_LOCK", u64::MAX),
        (70, 1, 2, "MUTEX_UNLOCK", u64::MAX),
    ];
    agree(&all).unwrap();
    let mut script = load(DECLARED);
    assert_eq!(script.parts()[0].how, How::Compiled);
    let (found, left_over) = activities(&mut script, &locks(&all)).unwrap();
    assert_eq!(left_over, [(1, 1)]);
    let durations: Vec<u64> = found.iter().map(Activity::duration_ns).collect();
    assert_eq!(durations, [20, 20]);
    assert_eq!((found[0].begin.cpu, found[0].end.cpu), (Some(0), Some(2)));
    assert_eq!(found[1].key, [Scalar::Integer(u64::MAX.into())]);
    assert_eq!(load(PREDICATES).parts()[0].how, How::Compiled);
    assert!(matches!(load(FUNCTION).parts()[0].how, How::Interpreted(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..Default::default() })]

    #[test]
    fn every_form_gives_what_declared_spans_give(
        raw in prop::collection::vec((0u64..3, 1u32..4, 0u32..4, 0usize..3, 0u64..3), 0..80),
    ) {
        let names = ["MUTEX_LOCK", "MUTEX_UNLOCK", "COND_WAIT"];
        let mut time = 0;
        let all: Vec<Lock> = raw.iter().map(|&(step, tid, cpu, name, mutex)| {
            // Several events at one time as well, in one stream or in several.
            time += step;
            (time, tid, cpu, names[name], mutex)
        }).collect();
        agree(&all)?;
    }
}

/// An end in one stream and a begin of its time in another are one span, whichever stream comes first.
#[test]
fn ends_of_one_time_belong_to_begins_of_other_streams() {
    for (begin, end) in [(0, 1), (1, 0)] {
        let all: [Lock; 4] = [
            (10, 1, begin, "MUTEX_LOCK", 7),
            (10, 1, end, "MUTEX_UNLOCK", 7),
            (20, 1, begin, "MUTEX_LOCK", 8),
            (30, 1, end, "MUTEX_UNLOCK", 8),
        ];
        assert_eq!(agree(&all).unwrap(), 2);
    }
    // In one stream the end was first.
    let all: [Lock; 2] = [(10, 1, 0, "MUTEX_UNLOCK", 7), (10, 1, 0, "MUTEX_LOCK", 7)];
    assert_eq!(agree(&all).unwrap(), 0);
}

#[test]
fn attributes_and_keys_of_every_kind() {
    let all: [Lock; 4] = [
        (10, 1, 0, "MUTEX_LOCK", 7),
        (20, 1, 1, "MUTEX_LOCK", 8),
        (30, 1, 2, "MUTEX_UNLOCK", 8),
        (40, 1, 0, "MUTEX_UNLOCK", 7),
    ];
    let trace = locks(&all);
    let of = |source: &str| activities(&mut load(source), &trace).unwrap().0;
    let text = |text: &str| Scalar::Text(text.to_owned());

    let found = of(&format!("{DECLARED}.attributes('mutex', 'none')"));
    let attribute = &found[0].attributes;
    assert_eq!((attribute.len(), &*attribute[0].0), (1, "mutex"));
    assert_eq!(attribute[0].1, Scalar::Integer(8));

    // Without a key an activity is of its thread; several fields are one key.
    let found = of("activity('A').begin('*:MUTEX_LOCK').end('*:MUTEX_UNLOCK')");
    assert_eq!(
        rows(&found).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        [(20, 30), (10, 40)]
    );
    assert!(found[0].key.is_empty());
    let found =
        of("activity('A').begin('*:MUTEX_LOCK').end('*:MUTEX_UNLOCK').key('mutex', 'none')");
    assert_eq!(found[0].key, [Scalar::Integer(8), Scalar::Nothing]);
    let found = of("const k = 'm'; activity('A').begin('*:MUTEX_LOCK').end('*:MUTEX_UNLOCK')\
        .key(e => k + e.fields.mutex)");
    assert_eq!(found[1].key, [text("m7")]);

    // What a function says; times that it computes itself.
    let found = of("activity('A', (e, a) => {
        if (e.name.endsWith('UNLOCK')) {
            a.end('x', {cpu: 'end', late: true});
            a.add(e.time - 5n, Number(e.time), 1.5, {half: 0.5, nothing: null});
        } else a.begin('x', {cpu: e.cpu});
    })");
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].key, [text("x")]);
    let values: Vec<_> = found[0].attributes.iter().map(|(n, v)| (&**n, v.clone())).collect();
    assert_eq!(values, [("cpu", Scalar::Integer(1)), ("late", Scalar::Bool(true))]);
    assert_eq!((found[1].begin.time, found[1].end.time), (Nanos(25), Nanos(30)));
    assert_eq!(found[1].key, [Scalar::Real(1.5)]);

    // An event that ends one and begins the next.
    let found = of("activity('Step').begin('threads:*').end('threads:*')");
    assert_eq!(found.iter().map(Activity::duration_ns).collect::<Vec<_>>(), [10, 10, 10]);

    // Several in one script.
    let both = format!("{DECLARED};\n{FUNCTION};");
    let found = of(&both);
    assert_eq!(found.iter().filter(|a| a.kind == 0).count(), 2);
    assert_eq!(found.iter().filter(|a| a.kind == 1).count(), 2);
}

#[test]
fn wrong_keys_and_attributes_are_told_with_their_line() {
    let trace = locks(&[(10, 1, 0, "MUTEX_LOCK", 7)]);
    for (said, message) in [
        ("a.begin({})", "the key is neither a number nor a text"),
        ("a.begin(Symbol())", "the key is neither a number nor a text"),
        ("a.begin('x'.repeat(5000))", "the key is a text of more than 4096 bytes"),
        ("a.begin(10n ** 40n)", "the key is a BigInt of more than 128 bits"),
        ("a.begin('\\ud800')", "the key is a text with halves of characters"),
        ("a.begin(1, 2)", "attributes are an object"),
        ("a.begin(1, {x: []})", "an attribute is neither a number"),
        ("a.begin(1, Object.fromEntries([...Array(70).keys()].map(k => [k, k])))", "at most 64"),
        ("a.begin(1, {['x'.repeat(300)]: 1})", "at most 256 bytes"),
        ("a.add(1, 'x')", "the end of an activity is a time"),
        ("a.add(1, 2.5)", "the end of an activity is a time"),
        ("for (;;) a.begin(1)", "more than 10000 beginnings"),
    ] {
        let source = format!("activity('A', (e, a) => {{\n  {said};\n}})");
        let error = activities(&mut load(&source), &trace).unwrap_err();
        assert!(error.message.contains(message), "{said}: {error}");
        assert_eq!(error.line, Some(2), "{said}: {error}");
    }
    let error = fails("activity('A').begin('a').end('b').key('a..b')");
    assert!(error.message.contains("no name of a field"), "{error}");
}
