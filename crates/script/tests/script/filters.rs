// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters: what they keep, compiled and interpreted, event by event and in columns.

use crate::drawn::{drawn, names};
use crate::traces::{every_kind, fails, kept, load};
use lateralis_analysis::filter::Context;
use lateralis_analysis::filter::columns::{Asking, Mask, Parts};
use lateralis_model::{Source, StreamSummary};
use lateralis_script::expression::{Answer, Expression};
use lateralis_script::{How, Script};
use proptest::prelude::*;

/// Salts that make every value of every field occur.
fn salts() -> Vec<u64> {
    (0..72u64).map(|n| n.wrapping_mul(0x0101_0101_0101_0101) ^ n << 40).collect()
}

fn how(script: &Script) -> How {
    script.parts()[0].how.clone()
}

#[test]
fn expressions_functions_and_calls_are_filters() {
    let trace = every_kind(&[4]);
    for (source, expected) in [
        ("event.fields.u === 1 << 31", false),
        ("event.fields.u === 2147483648 && event.cpu === 3;", true),
        ("e => e.fields.u > 4096", true),
        ("filter(e => e.fields.u > 4096)", true),
        ("filter('big', function (e) { return e.fields.u > 4096; }); filter(() => true)", true),
        ("filter(() => true); filter(() => false)", false),
        ("const limit = 4096; filter(e => e.fields.u > limit)", true),
        ("/^io:/.test(event.name) && event.fields.list.length === 2", true),
        ("event.name === 'io:READ' && event.subsystem === 'io' && event.stream === 'cpu3'", true),
        ("event.process.startsWith('redis') && event.pid === 7 && event.tid === 8", true),
        ("event.thread === undefined && event.fields.none === undefined", true),
        ("event.labels.state === undefined && event.fields.state === 0", true),
        ("event.fields.at.port === 8080 && event.fields.list[1] === 20", true),
        ("event.fields['at']['port'] === 8080 && event.fields.list[2] === undefined", true),
        ("event.fields.none?.a.b === undefined", true),
        ("event.time === 42n && typeof event.time === 'bigint'", true),
        ("event.fields.__proto__ === 9", true),
        ("event.fields.toString === undefined && event.toString === undefined", true),
        ("JSON.stringify(event.fields.at) === '{\"port\":8080}'", true),
    ] {
        let mut script = load(source);
        assert_eq!(kept(&mut script, &trace).unwrap(), [expected], "{source}");
    }
    let mut labelled = load("event.labels.state === 'RUNNING'");
    assert_eq!(kept(&mut labelled, &every_kind(&[1 | 2 << 40])).unwrap(), [true]);
}

#[test]
fn a_report_says_what_is_compiled_and_why_not() {
    for (source, expected) in [
        ("event.fields.bytes > 4096 && event.cpu === 2", "compiled"),
        ("filter(event => event.fields.bytes > 4096)", "compiled"),
        ("let n = 4; filter(e => e.fields.u > n)", "interpreted: `n`"),
        ("filter(e => /x/.test(e.name))", "interpreted: a regular expression"),
        ("filter(e => e.colour === 3)", "interpreted: `colour`, which no event has"),
        ("filter(e => e.cpu === undefined)", "compiled"),
        (
            "(undefined => filter(e => e.cpu === undefined))(3)",
            "interpreted: `undefined`, `NaN` or `Infinity` may have another meaning",
        ),
        (
            "eval('1'); filter(e => e.cpu === undefined)",
            "interpreted: `undefined`, `NaN` or `Infinity` may have another meaning",
        ),
    ] {
        assert_eq!(how(&load(source)).to_string(), expected, "{source}");
    }
}

/// The sign of a zero is seen by dividing by it, in compiled filters and in the engine.
#[test]
fn the_sign_of_zero_is_kept() {
    let salts: Vec<u64> = (0..8).map(|real| real << 24).collect();
    let trace = every_kind(&salts);
    let expression = "1 / event.fields.real === -Infinity";
    let mut expected = [false; 8];
    expected[1] = true;
    let mut compiled = load(expression);
    assert_eq!(how(&compiled), How::Compiled);
    assert_eq!(kept(&mut compiled, &trace).unwrap(), expected);
    let mut interpreted =
        load(&format!("filter(event => {{ const keep = {expression}; return keep; }})"));
    assert!(matches!(how(&interpreted), How::Interpreted(_)));
    assert_eq!(kept(&mut interpreted, &trace).unwrap(), expected);
}

#[test]
fn large_integers_are_exact() {
    // u64::MAX is a BigInt; its neighbour as a Number is not equal to it.
    let trace = every_kind(&[8]);
    for (source, expected) in [
        ("event.fields.u === 18446744073709551615n", true),
        ("event.fields.u === 18446744073709551615", false),
        ("event.fields.u == 18446744073709551615", false),
        ("event.fields.u < 18446744073709551616", true),
        ("event.fields.u >= 18446744073709551615n", true),
        ("typeof event.fields.u === 'bigint'", true),
        ("event.fields.u - 1n === 18446744073709551614n", true),
    ] {
        let mut script = load(source);
        assert_eq!(how(&script), How::Compiled, "{source}");
        assert_eq!(kept(&mut script, &trace).unwrap(), [expected], "{source}");
    }
}

#[test]
fn what_throws_throws_in_compiled_filters_as_well() {
    let trace = every_kind(&[8]);
    for (source, message, column) in [
        (
            "filter(e =>\n  e.fields.none.a > 3)",
            "TypeError: cannot read property 'a' of undefined",
            3,
        ),
        ("filter(e =>\n  e.fields.u + 1 > 3)", "TypeError: cannot convert", 3),
    ] {
        let mut script = load(source);
        assert_eq!(how(&script), How::Compiled, "{source}");
        let error = kept(&mut script, &trace).unwrap_err();
        assert!(error.message.starts_with(message), "{error}");
        assert_eq!(error.line, Some(2), "{error}");
        assert!(error.column.unwrap() >= column, "{error}");
    }
    let mut script = load("event.fields.none.a > 3");
    let error = kept(&mut script, &trace).unwrap_err();
    assert_eq!(error.line, Some(1), "{error}");
    assert_eq!(error.excerpt.as_deref(), Some("event.fields.none.a > 3"));
}

#[test]
fn counts_tell_what_each_filter_kept() {
    let trace = every_kind(&salts());
    let mut script = load("filter('a', e => e.fields.u > 1); filter('b', e => e.fields.i > 1)");
    let both = kept(&mut script, &trace).unwrap().iter().filter(|kept| **kept).count() as u64;
    let first = kept(&mut load("event.fields.u > 1"), &trace).unwrap();
    let first = first.iter().filter(|kept| **kept).count() as u64;
    assert_eq!(script.kept(), (72, vec![("a", first), ("b", both)]));
    assert!(0 < both && both < first && first < 72);
}

#[test]
fn wrong_calls_are_told_where_they_are() {
    for (source, line, message) in [
        ("\nfilter(3)", 2, "filter needs a function"),
        ("filter('x')", 1, "filter needs a function"),
        ("\n\nactivity()", 3, "activity needs a name"),
        ("activity('A', 3)", 1, "activity takes a function"),
        ("activity('A').begin(3)", 1, "begin takes names of events"),
        ("activity('A').begin()", 1, "begin needs the name of an event"),
        ("activity('A').begin('a').end('b').key(3)", 1, "key takes names of fields"),
        ("filter(e => e.cpu\nlet", 2, "SyntaxError"),
        ("throw new Error('so')", 1, "so"),
        ("nothing()", 1, "ReferenceError: nothing is not defined"),
    ] {
        let error = fails(source);
        assert!(error.message.contains(message), "{source}: {error}");
        assert_eq!(error.line, Some(line), "{source}: {error}");
        assert!(error.column.is_some() && error.caret().contains('^'), "{source}: {error}");
    }
    assert!(fails("1 +").message.contains("SyntaxError"));
    assert!(fails("let x = 3").message.contains("declares nothing"));
    assert!(fails("activity('A').begin('a')").message.contains("needs what begins and what ends"));
    assert!(fails("throw 5").message.contains("threw 5"));
}

/// Leaves of random expressions.
const LEAVES: [&str; 37] = [
    "event.fields.u",
    "event.fields.i",
    "event.fields.text",
    "event.fields.real",
    "event.fields.state",
    "event.fields.list",
    "event.fields.list[1]",
    "event.fields.list[7]",
    "event.fields.at.port",
    "event.fields.at",
    "event.fields.maybe",
    "event.fields.none",
    "event.fields.none?.x",
    "event.fields.maybe?.x",
    "event.fields.__proto__",
    "event.labels.state",
    "event.cpu",
    "event.time",
    "event.name",
    "event.process",
    "event.thread",
    "event.pid",
    "0",
    "1",
    "-0",
    "5",
    "5.5",
    "4096",
    "9007199254740992",
    "5n",
    "1152921504606846977n",
    "'5'",
    "'hello'",
    "'\\u{ffee}'",
    "undefined",
    "NaN",
    "true",
];

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&LEAVES[..]).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = [
            "===", "!==", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^",
            "<<", ">>", ">>>", "&&", "||",
        ];
        let binary = (inner.clone(), prop::sample::select(operators.to_vec()), inner.clone())
            .prop_map(|(left, operator, right)| format!("({left} {operator} {right})"));
        let unary = (prop::sample::select(vec!["!", "-", "+", "~", "typeof "]), inner.clone())
            .prop_map(|(operator, inner)| format!("({operator}({inner}))"));
        let choice = (inner.clone(), inner.clone(), inner.clone())
            .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})"));
        let nullish = (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} ?? {b})"));
        let text = (
            prop::sample::select(vec!["event.name", "event.fields.text", "event.process?"]),
            prop::sample::select(vec!["startsWith", "endsWith", "includes"]),
            prop::sample::select(vec!["'io'", "'hello'", "''", "'o'", "'\\0x'"]),
        )
            .prop_map(|(value, test, text)| format!("{value}.{test}({text})"));
        prop_oneof![6 => binary, 1 => unary, 1 => choice, 1 => nullish, 1 => text]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    /// The plan says what the engine says, for every event; where it asks, the engine
    /// must be asked anyway.
    #[test]
    fn compiled_is_what_the_engine_says(text in expression()) {
        let trace = every_kind(&salts());
        let plan = Expression::parse(&text).expect("in the subset");
        let source = format!("filter(event => {{ const keep = {text}; return keep; }})");
        let mut script = load(&source);
        prop_assert!(matches!(how(&script), How::Interpreted(_)));
        let streams = trace.streams();
        let context = Context { names: trace.names(), streams: &streams };
        let mut events = trace.events();
        while let Some(event) = events.next_event() {
            let engine = script.keeps(&event, &context);
            match (plan.holds(&event, &context), engine) {
                (Answer::Yes, engine) => prop_assert_eq!(engine, Ok(true), "{}", text),
                (Answer::No, engine) => prop_assert_eq!(engine, Ok(false), "{}", text),
                // An exception, a text read as a number, an object as a value.
                (Answer::Ask, _) => {}
            }
        }
    }

    /// Columns say what single events say.
    #[test]
    fn columns_are_what_rows_say(
        texts in prop::collection::vec(column_expression(), 8),
        batch in drawn(),
    ) {
        let streams = [StreamSummary { name: "cpu0".into(), ..StreamSummary::default() }];
        let names = names();
        let context = Context { names: &names, streams: &streams };
        let mut asking = Asking::new(&context);
        let mut mask = Mask::default();
        let parts = Parts::new(&batch, &batch.stream_class, true);
        for (text, index) in texts.iter().flat_map(|text| (0..parts.len()).map(move |i| (text, i))) {
            let (expression, part) = (Expression::parse(text).expect("in the subset"), parts.part(index));
            let number = part.class().class;
            let class = &batch.stream_class.event_classes[number as usize];
            let plan = expression.plan(&batch.stream_class, class);
            plan.select(&part, &mut asking, &mut mask);
            let rows = (0..batch.rows.len()).filter(|at| batch.rows[*at].class == number);
            let expected: Vec<Answer> =
                rows.map(|at| expression.holds(&batch.event(at), &context)).collect();
            let answer = |at: usize| match mask.asked().binary_search(&(at as u32)) {
                Ok(_) => Answer::Ask,
                Err(_) => Answer::of(Some(mask.contains(at))),
            };
            let found: Vec<Answer> = (0..mask.len()).map(answer).collect();
            prop_assert_eq!(found, expected, "{} of class {}", text, number);
        }
    }
}

fn column_expression() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "event.fields.u",
        "event.fields.i",
        "event.fields.real",
        "event.fields.flag",
        "event.fields.state",
        "event.fields.bits",
        "event.fields.at.text",
        "event.fields.at.none",
        "event.fields.at.none.more",
        "event.fields.at",
        "event.fields.blob",
        "event.fields.list",
        "event.fields.list[1]",
        "event.fields.numbers[0]",
        "event.fields.numbers[2]",
        "event.fields.u.more",
        "event.fields.seq",
        "event.fields.procname",
        "event.labels.state",
        "event.labels.level",
        "event.labels.u",
        "event.labels.none",
        "event.time",
        "event.name",
        "event.cpu",
        "event.pid",
        "event.process",
        "event.fields.unknown",
    ]);
    let constant = prop::sample::select(vec![
        "0",
        "5",
        "5.5",
        "-5",
        "4096",
        "9007199254740991",
        "9007199254740992",
        "5n",
        "-1n",
        "9007199254740993n",
        "18446744073709551615n",
        "1e30",
        "-1e30",
        "NaN",
        "Infinity",
        "-Infinity",
        "'hello'",
        "'RUNNING'",
        "'io:READ'",
        "true",
        "undefined",
        "null",
    ]);
    let operators = vec!["===", "!==", "==", "!=", "<", "<=", ">", ">="];
    let value = || value.clone();
    let pair = (value(), prop::sample::select(operators.clone()), value())
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    let arithmetic =
        vec!["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "+ 5n *", "- -", "* ~"];
    let operand = prop_oneof![3 => value(), 2 => constant.clone()];
    let number = (operand.clone(), prop::sample::select(arithmetic), operand.clone());
    let number = number.prop_map(|(l, operator, r)| format!("({l} {operator} {r})"));
    let number = prop_oneof![
        4 => number.clone(),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
        1 => number.prop_map(|inner| format!("+(-{inner})")),
    ];
    let sum = (number, prop::option::of((prop::sample::select(operators.clone()), operand)))
        .prop_map(|(left, compared)| match compared {
            Some((operator, right)) => format!("{left} {operator} {right}"),
            None => left,
        });
    let test = (
        value(),
        prop::sample::select(vec!["startsWith", "endsWith", "includes"]),
        prop::sample::select(vec!["'hello'", "''", "'o'", "'\\u{fffd}'"]),
    )
        .prop_map(|(value, test, text)| format!("{value}.{test}({text})"));
    let alone = value().prop_map(str::to_owned);
    let comparison = (value(), prop::sample::select(operators), constant, any::<bool>());
    let leaf = comparison.prop_map(|(value, operator, constant, turned)| match turned {
        true => format!("{constant} {operator} {value}"),
        false => format!("{value} {operator} {constant}"),
    });
    let leaf = prop_oneof![6 => leaf, 2 => pair, 3 => sum, 1 => test, 1 => alone];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        let choice = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            choice.prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            pair.clone().prop_map(|(a, b)| format!("({a}) && ({b})")),
            pair.prop_map(|(a, b)| format!("({a}) || ({b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}
